//! What a member expands into, in push mode or any other: who it is, what the control plane has there, and its Cluster object.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, ChildStep, Expansion, Key, PathStep, Type, Value};
use serde_json::json;

use super::arguments::Arguments;
use super::{estimator, preflight, pull, push};
use crate::api::CLUSTER_NAMESPACE;
use crate::plane::{child, part, part_of};

/// How long any object may take, in seconds.
const TIMEOUT: i64 = 60;
/// The API of members.
pub(crate) const CLUSTERS: &str = "cluster.karmada.io/v1alpha1";

/// The children and outputs.
pub(crate) fn expand(member: &Arguments) -> Expansion {
    let mut children = push::children(member);
    children.push(plane_namespace(member));
    children.extend(push::credentials(member));
    if member.is_pull() {
        children.extend(pull::rights(member));
    }
    children.push(cluster(member));
    children.extend(owners(member));
    children.extend(pull::agent(member));
    children.extend(estimator::children(member));
    children.push(membership(member));
    let outputs = BTreeMap::from([
        ("name".to_owned(), member.name.as_str().into()),
        ("id".to_owned(), id(member)),
        ("uid".to_owned(), Arg::child(&part("cluster"), "uid")),
        ("verified".to_owned(), Arg::child(&part("membership"), "verified")),
    ]);
    Expansion { children: preflight::before(member, children), outputs }
}

/// An object somewhere.
pub(crate) fn object(path: Vec<ChildStep>, connection: &Value, manifest: Arg) -> Child {
    child(
        path,
        "kubernetes_object",
        [("cluster", connection.clone().into()), ("manifest", manifest), ("reclaim", true.into()), ("timeout", TIMEOUT.into())],
    )
}

/// An object in the member.
pub(crate) fn in_member(member: &Arguments, path: Vec<ChildStep>, manifest: Arg) -> Child {
    with(object(path, &member.member, manifest), "exclusive", true.into())
}

/// An object in the Karmada API.
pub(crate) fn in_plane(member: &Arguments, path: Vec<ChildStep>, manifest: Arg) -> Child {
    object(path, &member.plane, manifest)
}

/// With one more argument.
pub(crate) fn with(mut child: Child, name: &str, value: Arg) -> Child {
    child.arguments.insert(name.to_owned(), value);
    child
}

/// After these.
pub(crate) fn after(mut child: Child, paths: &[Vec<ChildStep>]) -> Child {
    child.after.extend_from_slice(paths);
    child
}

/// The labels of all that karmaform makes for a member. Source of the second: `KarmadaSystemLabel`, `pkg/util/constants.go` in karmada.
pub(crate) fn labels() -> serde_json::Value {
    json!({ "app.kubernetes.io/managed-by": "karmaform", "karmada.io/system": "true" })
}

/// What tells a cluster from all others: the UID of its namespace kube-system, which nobody can make again.
fn id(member: &Arguments) -> Arg {
    member.member.get("id").cloned().unwrap_or_else(|| Value::unknown_not_null(Type::String)).into()
}

/// The namespace of credentials in the Karmada API, which all members share. Karmada's own stays, whoever goes.
fn plane_namespace(member: &Arguments) -> Child {
    let manifest = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": member.namespace, "labels": labels() } });
    let made = with(in_plane(member, part("plane_namespace"), Arg::from_json(&manifest)), "shared", true.into());
    let stays = if member.namespace == CLUSTER_NAMESPACE { "keep" } else { "keep_if_used" };
    with(made, stays, true.into())
}

/// The Cluster object. Nobody else's is taken over, and no cluster is a member twice.
fn cluster(member: &Arguments) -> Child {
    let mut manifest = Arg::from_json(&json!({
        "apiVersion": CLUSTERS,
        "kind": "Cluster",
        "metadata": { "name": member.name },
        "spec": { "syncMode": if member.is_pull() { "Pull" } else { "Push" }, "secretRef": { "namespace": member.namespace, "name": member.name } },
    }));
    let mut labels = BTreeMap::from([("app.kubernetes.io/managed-by".to_owned(), Arg::from("karmaform"))]);
    labels.extend(member.labels.as_entries().into_iter().flatten().map(|(n, v)| (n.clone(), v.clone().into())));
    manifest.set(&["metadata", "labels"], if member.labels.is_unknown() { member.labels.clone().into() } else { Arg::Object(labels) });
    manifest.set(&["spec", "id"], id(member));
    manifest.set(&["spec", "apiEndpoint"], member.endpoint.clone().into());
    if member.impersonation {
        let name = push::impersonator_secret(member);
        manifest.set(&["spec", "impersonatorSecretRef"], Arg::from_json(&json!({ "namespace": member.namespace, "name": name })));
    }
    // An agent says itself what it does, and would not be allowed to change what it finds here.
    if member.insecure && !member.is_pull() {
        manifest.set(&["spec", "insecureSkipTLSVerification"], true.into());
    }
    let written = [
        ("proxyURL", &member.proxy_url),
        ("proxyHeader", &member.proxy_headers),
        ("provider", &member.provider),
        ("region", &member.region),
        ("zones", &member.zones),
        ("resourceModels", &member.resource_models),
    ];
    for (field, value) in written.into_iter().filter(|(_, v)| !v.is_null()) {
        manifest.set(&["spec", field], value.clone().into());
    }
    let made = with(in_plane(member, part("cluster"), manifest), "unique", Arg::List(vec!["/spec/id".into()]));
    // A proxy or less TLS that somebody set leads Karmada elsewhere. An agent writes more of it by itself.
    let made = if member.is_pull() { made } else { with(made, "exclusive", true.into()) };
    // Neither which cluster it is nor how it comes together with its control plane can be changed while it is a member.
    let made = with(made, "replace_with", joined_as(member));
    after(made, &push::secret_paths(member))
}

/// What a membership is: another cluster behind the name, or another mode, is another one.
pub(crate) fn joined_as(member: &Arguments) -> Arg {
    Arg::Text(vec![format!("{} ", member.mode).into(), id(member)])
}

/// The credentials go with the Cluster object, whoever deletes that.
fn owners(member: &Arguments) -> Vec<Child> {
    let owner = |path: &Vec<ChildStep>| {
        let key = match path.first().and_then(|s| s.key.as_ref()) {
            Some(Key::Name(key)) => key.as_str(),
            _ => "",
        };
        let arguments = [
            ("cluster", member.plane.clone().into()),
            ("object", Arg::child(path, "object")),
            ("object_uid", Arg::child(path, "uid")),
            ("owner", Arg::child(&part("cluster"), "object")),
            ("api_version", CLUSTERS.into()),
            ("uid", Arg::child(&part("cluster"), "uid")),
        ];
        child(part_of("owner", key), "kubernetes_owner", arguments)
    };
    push::secret_paths(member).iter().map(owner).collect()
}

/// That it is ready; and how it leaves.
fn membership(member: &Arguments) -> Child {
    let arguments = [
        ("cluster", member.plane.clone().into()),
        ("name", member.name.as_str().into()),
        ("uid", Arg::child(&part("cluster"), "uid")),
        ("replace_with", joined_as(member)),
        ("taints", member.taints.clone().into()),
        ("keep_resources", member.keep_resources.into()),
        ("force", member.force.into()),
        ("verify", member.verify.clone().into()),
        ("timeout", member.timeout.clone().into()),
        ("leave_timeout", member.leave_timeout.clone().into()),
    ];
    let made = child(part("membership"), "karmada_membership", arguments);
    // What it may do there must not go before it has left.
    let mut first = push::rights_paths(member);
    first.extend(member.is_pull().then(pull::runs));
    after(made, &first)
}

/// A field that a child exposes.
pub(crate) fn exposed(path: &[ChildStep], name: &str) -> Arg {
    Arg::Part(Box::new(Arg::child(path, "exposed")), vec![PathStep::Name(name.to_owned())])
}
