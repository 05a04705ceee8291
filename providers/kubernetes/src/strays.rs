//! What carries the labels of something that is ours, and is none of it. Reads only: a LIST for each kind in each namespace, of what is labelled.
//!
//! Whose an object is can only be told where it has a namespace: `app.kubernetes.io/instance` and `part-of` name one control plane, or one etcd,
//! among those of a namespace, and what has no such label is ours in a namespace that is, unless it is a member's, which may be another state's.
//! Of objects without a namespace those are told that only a control plane has, in a Karmada API that is ours: there is one to each. Claims are
//! not, which stay where that is wanted.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use karmaform_model::{Diagnostic, Diagnostics, Known, Stray, Strays, Unlisted, Value};
use serde_json::Value as Json;

use crate::client::{Client, MANAGER};
use crate::look::{DEFAULT_NAMESPACE, place};
use crate::manifest::{self, MANAGED_BY, Name};
use crate::pods_by_hand::is_workload;
use crate::values::{is_true, text};

const INSTANCE: &str = "app.kubernetes.io/instance";
const PART_OF: &str = "app.kubernetes.io/part-of";
const NAME: &str = "app.kubernetes.io/name";
/// Of everything that is made for a member. Source: `KarmadaSystemLabel`, `pkg/util/constants.go` in karmada.
const SYSTEM: &str = "karmada.io/system";
/// With their data, they outlive what they were made for.
const CLAIM: &str = "PersistentVolumeClaim";

/// Looked for in each namespace, whether there is one of ours or not.
const USUAL: [(&str, &str); 10] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("v1", "ConfigMap"),
    ("v1", "Pod"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
];

/// Looked for in a Karmada API that is ours. They have no namespace.
const OF_A_PLANE: [(&str, &str); 5] = [
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("apiregistration.k8s.io/v1", API_SERVICE),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
];
/// What makes a Karmada API of an API server.
const API_SERVICE: &str = "APIService";

/// Version, kind, namespace.
type Kind = (String, String, String);

/// Looks. What may not be listed is a warning, if it is of a kind that ours are of, or made by ours.
pub(crate) async fn strays(client: &Client, known: &[Known]) -> Strays {
    let marks = Marks::of(known);
    let usual = marks.namespaces().flat_map(|n| USUAL.map(|(version, kind)| (version.to_owned(), kind.to_owned(), n.clone())));
    let namespaces: BTreeSet<&String> = marks.namespaces().collect();
    let of_ours = marks.kinds.iter().filter(|(_, kind, namespace)| kind != CLAIM && namespaces.contains(namespace)).cloned();
    // Pods are looked at with what makes them, too, and there nobody tells that they may not be listed.
    let pods: BTreeSet<Kind> = marks.with_pods.iter().map(|n| ("v1".to_owned(), "Pod".to_owned(), n.clone())).collect();
    let of_plane = OF_A_PLANE.iter().filter(|_| marks.plane.is_some()).map(|(v, k)| ((*v).to_owned(), (*k).to_owned(), String::new()));
    let kinds: BTreeSet<Kind> = usual.chain(of_ours).chain(of_plane).chain(pods.iter().cloned()).collect();
    let at_once = client.at_once().await;
    let lists = kinds.into_iter().map(|kind| async { (list(client, &kind).await, kind) });
    let (mut found, mut lacking, mut unlisted, mut wrong) = (Vec::new(), BTreeSet::new(), Vec::new(), Diagnostics::default());
    for (listed, kind) in futures::stream::iter(lists).buffered(at_once).collect::<Vec<_>>().await {
        match listed {
            Listed::Items(items) => found.extend(items.iter().filter_map(|item| marks.stray(&kind, item))),
            Listed::Forbidden if pods.contains(&kind) => unlisted.push(kind.2),
            Listed::Forbidden if marks.kinds.contains(&kind) => drop(lacking.insert(format!("{} in the namespace {}", kind.1, kind.2))),
            Listed::Forbidden => {}
            Listed::Failed(error) => wrong.push(*error),
        }
    }
    if !lacking.is_empty() {
        let lacking = Vec::from_iter(lacking).join(", ");
        let detail = format!(
            "What at {} has karmaform's labels and is in no state is not known: there is no right to list {lacking}.",
            client.place()
        );
        wrong.push(
            Diagnostic::warning("A right to look is missing", detail).with_hint("Give the connection's user the right to list them."),
        );
    }
    let pods = if unlisted.is_empty() {
        None
    } else {
        let rights: Vec<String> = unlisted.iter().map(|namespace| format!("\"list pods in {namespace}\"")).collect();
        let detail = format!(
            "What somebody did to pods at {} by hand, and which are none of ours, is not known: there is no right to {}.",
            client.place(),
            rights.join(", ")
        );
        let why =
            Diagnostic::warning("A right to look is missing", detail).with_hint("Give the connection's user the right to list pods there.");
        Some(Unlisted { begin: unlisted.iter().map(|namespace| format!("Pod/{namespace}/")).collect(), why })
    };
    found.sort_by(|a: &Stray, b: &Stray| a.name.cmp(&b.name));
    found.dedup();
    Strays { found, wrong, unlisted: pods.into_iter().collect() }
}

enum Listed {
    Items(Vec<Json>),
    Forbidden,
    Failed(Box<Diagnostic>),
}

async fn list(client: &Client, (version, kind, namespace): &Kind) -> Listed {
    let place = match place(client, version, kind, namespace).await {
        Ok(Some(place)) if place.namespace.is_none() == namespace.is_empty() => place,
        Ok(_) => return Listed::Items(Vec::new()),
        Err(error) => return Listed::Failed(Box::new(error)),
    };
    match client.labelled(&place, &format!("{MANAGED_BY}={MANAGER}")).await {
        Ok(items) => Listed::Items(items),
        Err(failure) if failure.code() == Some(403) => Listed::Forbidden,
        Err(failure) if failure.is_unserved() => Listed::Items(Vec::new()),
        Err(failure) => Listed::Failed(Box::new(failure.diagnostic(client.place(), &place.call("list", ""), &[]))),
    }
}

/// Who is known, and by which marks ours are to be told.
#[derive(Default)]
struct Marks {
    /// Everything that is known.
    names: BTreeSet<Name>,
    /// Kinds and namespaces of what is ours.
    kinds: BTreeSet<Kind>,
    /// One with these marks: by namespace, instance and what that is of; and by its name as well.
    instances: BTreeMap<(String, String, Option<String>, Option<String>), usize>,
    /// Namespaces that are ours alone.
    owned: BTreeMap<String, usize>,
    /// One of the control plane whose API this is.
    plane: Option<usize>,
    /// Namespaces with something of ours that makes pods, or leads to them.
    with_pods: BTreeSet<String>,
}

impl Marks {
    fn of(known: &[Known]) -> Self {
        let mut marks = Self::default();
        for (index, one) in known.iter().enumerate() {
            let Some(name) = text(&one.object, "object").and_then(Name::parse).map(placed) else { continue };
            let manifest = one.object.get("manifest");
            if one.is_ours
                && !is_true(&one.object, "adopted")
                && let Some(manifest) = manifest
            {
                marks.add(index, &name, manifest, is_true(&one.object, "shared"));
                if one.is_part && name.kind == API_SERVICE {
                    marks.plane.get_or_insert(index);
                }
            }
            marks.names.insert(name);
        }
        marks
    }

    fn add(&mut self, index: usize, name: &Name, manifest: &Value, is_shared: bool) {
        let labels = manifest.get("metadata").and_then(|m| m.get("labels"));
        let label = |label: &str| labels.and_then(|l| l.get(label)).and_then(Value::as_str).map(str::to_owned);
        if label(MANAGED_BY).as_deref() != Some(MANAGER) {
            return;
        }
        if name.kind == "Namespace" && !is_shared {
            self.owned.entry(name.name.clone()).or_insert(index);
        }
        let version = manifest::api_version(manifest).map_or_else(|| format!("{}/", name.group), str::to_owned);
        if !name.namespace.is_empty() && (is_workload(&name.kind) || leads_to_pods(name, manifest)) {
            self.with_pods.insert(name.namespace.clone());
        }
        self.kinds.insert((version, name.kind.clone(), name.namespace.clone()));
        if let Some(instance) = label(INSTANCE) {
            for part in [label(NAME), None] {
                let marks = (name.namespace.clone(), instance.clone(), label(PART_OF), part);
                self.instances.entry(marks).or_insert(index);
            }
        }
    }

    fn namespaces(&self) -> impl Iterator<Item = &String> {
        let of_instances = self.instances.keys().map(|(namespace, ..)| namespace);
        of_instances.chain(self.owned.keys()).collect::<BTreeSet<_>>().into_iter()
    }

    /// What is listed, if it is one.
    fn stray(&self, (version, kind, _): &Kind, item: &Json) -> Option<Stray> {
        let metadata = &item["metadata"];
        let text = |value: &Json| value.as_str().map(str::to_owned);
        // What others make for an object of ours has its labels, and an owner; what is on its way out is nobody's any more.
        let is_made = metadata["ownerReferences"].as_array().is_some_and(|o| !o.is_empty());
        if is_made || metadata["deletionTimestamp"].is_string() {
            return None;
        }
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let namespace = text(&metadata["namespace"]).unwrap_or_default();
        let name = Name { kind: kind.clone(), group: group.to_owned(), namespace, name: text(&metadata["name"])? };
        if self.names.contains(&placed(name.clone())) {
            return None;
        }
        let beside = match text(&metadata["labels"][INSTANCE]) {
            Some(instance) => {
                let whole = text(&metadata["labels"][PART_OF]);
                let of = |part| self.instances.get(&(name.namespace.clone(), instance.clone(), whole.clone(), part));
                of(text(&metadata["labels"][NAME])).or_else(|| of(None))?
            }
            None if metadata["labels"][SYSTEM] == "true" => return None,
            None if name.namespace.is_empty() => self.plane.as_ref()?,
            None => self.owned.get(&name.namespace)?,
        };
        Some(Stray { name: name.to_string(), beside: *beside })
    }
}

/// A Service that is no other name of something elsewhere, and whose addresses nobody else gives it.
fn leads_to_pods(name: &Name, manifest: &Value) -> bool {
    let Some(spec) = manifest.get("spec").filter(|_| name.kind == "Service" && name.group.is_empty()) else { return false };
    let is_alias = spec.get("type").and_then(Value::as_str) == Some("ExternalName");
    !is_alias && spec.get("selector").and_then(Value::as_entries).is_some_and(|labels| !labels.is_empty())
}

/// With the namespace that it is in when it names none.
fn placed(mut name: Name) -> Name {
    if name.namespace.is_empty() {
        name.namespace = DEFAULT_NAMESPACE.to_owned();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::{Object, implied_from_json};
    use serde_json::json;

    fn known(is_ours: bool, manifest: Json) -> Known {
        let group = manifest["apiVersion"].as_str().unwrap().split_once('/').map_or(String::new(), |(g, _)| format!(".{g}"));
        let (kind, metadata) = (manifest["kind"].as_str().unwrap(), &manifest["metadata"]);
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        let name = format!("{kind}{group}/{namespace}/{}", metadata["name"].as_str().unwrap());
        let object = Object::from_iter([("object".to_owned(), name.into()), ("manifest".to_owned(), implied_from_json(&manifest))]);
        Known { resource_type: "kubernetes_object".into(), is_part: true, is_ours, object }
    }

    fn marked(kind: &str, name: &str, instance: Option<&str>) -> Json {
        let mut labels = json!({ "app.kubernetes.io/managed-by": "karmaform", NAME: kind.to_lowercase() });
        if let Some(instance) = instance {
            labels[INSTANCE] = instance.into();
        }
        json!({ "apiVersion": "v1", "kind": kind, "metadata": { "namespace": "karmada-system", "name": name, "labels": labels } })
    }

    fn strays(known: &[Known], listed: &[Json]) -> Vec<(String, usize)> {
        let marks = Marks::of(known);
        let kind = |item: &Json| ("v1".to_owned(), item["kind"].as_str().unwrap().to_owned(), "karmada-system".to_owned());
        listed.iter().filter_map(|item| marks.stray(&kind(item), item)).map(|s| (s.name, s.beside)).collect()
    }

    #[test]
    fn what_has_the_marks_of_ours_and_is_not_known_is_a_stray() {
        let known = [
            known(true, marked("Secret", "certs", Some("karmada"))),
            known(true, marked("Service", "api", Some("karmada"))),
            // Wanted, and not made by us yet.
            known(false, marked("Service", "new", Some("karmada"))),
        ];
        let mut made = marked("Service", "made", Some("karmada"));
        made["metadata"]["ownerReferences"] = json!([{ "kind": "X" }]);
        let mut going = marked("Service", "going", Some("karmada"));
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        // An etcd of the same name, of another state.
        let mut etcds = marked("Service", "etcds", Some("karmada"));
        etcds["metadata"]["labels"][PART_OF] = "etcd".into();
        let listed = [
            marked("Service", "api", Some("karmada")),
            marked("Service", "new", Some("karmada")),
            marked("Service", "old", Some("karmada")),
            marked("ConfigMap", "map", Some("karmada")),
            // Another control plane's, and nobody knows whose.
            marked("Service", "theirs", Some("other")),
            marked("Service", "unknown", None),
            etcds,
            made,
            going,
        ];
        let found = strays(&known, &listed);
        assert_eq!(found, [("Service/karmada-system/old".to_owned(), 1), ("ConfigMap/karmada-system/map".to_owned(), 0)]);
    }

    #[test]
    fn in_a_namespace_of_ours_an_instance_need_not_be_named() {
        let namespace = |extra: &[(&str, Value)]| {
            let labels = json!({ "app.kubernetes.io/managed-by": "karmaform" });
            let mut one =
                known(true, json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "karmada-system", "labels": labels } }));
            one.object.extend(extra.iter().map(|(n, v)| ((*n).to_owned(), v.clone())));
            one
        };
        let mut members = marked("Service", "estimator", None);
        members["metadata"]["labels"][SYSTEM] = "true".into();
        let listed = [marked("Secret", "one", None), members];
        assert_eq!(strays(&[namespace(&[])], &listed), [("Secret/karmada-system/one".to_owned(), 0)]);
        assert_eq!(strays(&[namespace(&[("shared", true.into())])], &listed), []);
        assert_eq!(strays(&[namespace(&[("adopted", true.into())])], &listed), []);
    }

    #[tokio::test]
    async fn in_a_karmada_api_of_ours_what_has_no_namespace_is_told_too() {
        const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        let of = |version: &str, kind: &str, name: &str, system: bool| {
            let mut labels = json!({ "app.kubernetes.io/managed-by": "karmaform" });
            if system {
                labels[SYSTEM] = "true".into();
            }
            json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name, "labels": labels } })
        };
        let role = |name: &str, system: bool| of("rbac.authorization.k8s.io/v1", "ClusterRole", name, system);
        let items = json!({ "items": [role("old", false), role("view", false), role("agent-of-a-member", true)] });
        let (client, seen) =
            crate::mock::client(move |_, path| (200, if path == ROLES { items.clone() } else { json!({ "items": [] }) })).await;
        let ours = known(true, role("view", false));
        let alone = super::strays(&client, std::slice::from_ref(&ours)).await;
        assert!(alone.found.is_empty() && !seen.lock().unwrap().iter().any(|asked| asked.contains("clusterroles")));
        let api = known(true, of("apiregistration.k8s.io/v1", API_SERVICE, "v1alpha1.cluster.karmada.io", false));
        let Strays { found, wrong, .. } = super::strays(&client, &[ours, api]).await;
        let told: Vec<(&str, usize)> = found.iter().map(|stray| (stray.name.as_str(), stray.beside)).collect();
        assert_eq!(told, [("ClusterRole.rbac.authorization.k8s.io//old", 1)], "{wrong:?}");
    }

    #[tokio::test]
    async fn what_may_not_be_listed_is_named_if_ours_may_be_among_it() {
        let (client, _) = crate::mock::client(|_, path| match path {
            "/api/v1/namespaces/karmada-system/services" => (200, json!({ "items": [marked("Service", "old", Some("karmada"))] })),
            _ => crate::mock::refused(403, "secrets is forbidden: User \"u\" cannot list resource \"secrets\""),
        })
        .await;
        let mut api = marked("Service", "api", Some("karmada"));
        api["spec"] = json!({ "selector": { "app": "api" } });
        let known = [known(true, marked("Secret", "certs", Some("karmada"))), known(true, api)];
        let Strays { found, wrong, unlisted } = super::strays(&client, &known).await;
        assert_eq!(found.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["Service/karmada-system/old"]);
        let why = wrong.iter().next().unwrap();
        assert_eq!((wrong.len(), why.summary.as_str(), why.is_error()), (1, "A right to look is missing", false));
        assert!(why.detail.ends_with("there is no right to list Secret in the namespace karmada-system."), "{}", why.detail);
        assert!(why.hints[0].contains("right to list"), "{why:?}");
        // The Service leads to pods, whoever makes these. Of others all is told.
        assert_eq!((unlisted.len(), unlisted[0].begin.clone()), (1, vec!["Pod/karmada-system/".to_owned()]));
        let pods = &unlisted[0].why;
        assert_eq!((pods.summary.as_str(), pods.is_error()), ("A right to look is missing", false));
        assert!(pods.detail.ends_with("there is no right to \"list pods in karmada-system\"."), "{}", pods.detail);
    }

    #[tokio::test]
    async fn pods_that_may_not_be_listed_are_named_with_what_makes_them() {
        let (client, seen) = crate::mock::client(|_, path| match path {
            "/api/v1/namespaces/agents/pods" => crate::mock::refused(403, "pods is forbidden: User \"u\" cannot list resource \"pods\""),
            _ => (200, json!({ "items": [] })),
        })
        .await;
        let labels = json!({ "app.kubernetes.io/managed-by": "karmaform" });
        let of = |kind: &str, version: &str, spec: Json| {
            let metadata = json!({ "namespace": "agents", "name": "a", "labels": labels });
            known(true, json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec }))
        };
        // Without an instance, in a namespace of somebody else: nothing there is a stray, and its pods are looked at all the same.
        let Strays { found, wrong, unlisted } = super::strays(&client, &[of("Deployment", "apps/v1", json!({}))]).await;
        let told: Vec<&str> = unlisted.iter().map(|u| u.why.detail.rsplit(": ").next().unwrap()).collect();
        assert_eq!((found.len(), wrong.len(), told), (0, 0, vec!["there is no right to \"list pods in agents\"."]), "{wrong:?}");
        assert_eq!(*seen.lock().unwrap().last().unwrap(), "GET /api/v1/namespaces/agents/pods");
        let selector = json!({ "app": "a" });
        for (kind, spec, is_told) in [
            ("ConfigMap", json!({}), false),
            ("Service", json!({ "selector": selector }), true),
            ("Service", json!({ "selector": {} }), false),
            ("Service", json!({ "ports": [] }), false),
            ("Service", json!({ "type": "ExternalName", "externalName": "a.example", "selector": selector }), false),
        ] {
            let told = super::strays(&client, &[of(kind, "v1", spec.clone())]).await;
            assert_eq!((told.wrong.len(), told.unlisted.len()), (0, usize::from(is_told)), "{kind} {spec}");
        }
    }
}
