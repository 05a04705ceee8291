//! What others set in an object that is to be ours alone: which fields these are, how they are shown, and how they become ours, so that the next
//! apply takes them away.
//!
//! Nobody's metadata are anybody else's business, a pod template's neither (`kubectl rollout restart` leaves a mark there), and status is for
//! controllers to write. So is what [`is_completed`] names, whatever such a controller is called: where all of Kubernetes is one program, as in k3s,
//! its controllers write under that program's name. In a Karmada API they have their own, and sign `cluster-info` for each bootstrap token.

use serde_json::{Map, Value as Json, json};

use crate::client::MANAGER;
use crate::defaults::is_filled_in;
use crate::fields::{is_item, is_ours, of_wanted, ours, project, union};

/// Parts of Kubernetes itself. Source: a manager is a user agent up to its first slash (`managerOrUserAgent`, `k8s.io/apiserver`).
const SYSTEM: &[&str] = &["kube-controller-manager", "kube-apiserver", "clusterrole-aggregation-controller"];
const VOLUME: &str = "PersistentVolume";
/// What others complete in their own ways once it is there: drivers volumes, and OpenShift accounts.
const COMPLETED: &[&str] = &[VOLUME, "PersistentVolumeClaim", "ServiceAccount"];
/// Fields that say nothing of what an object does, at any depth but in data.
const PASSED_OVER: &[&str] = &["f:metadata", "f:status"];
/// Fields with names that somebody made up.
const DATA: &[&str] = &["f:data", "f:stringData", "f:binaryData"];
/// Of a Cluster, what Karmada's controllers write and what tells schedulers about it.
const OF_CLUSTERS: &[&str] = &["f:taints", "f:resourceModels", "f:provider", "f:region", "f:zone", "f:zones"];
/// `false` at an object: others may set fields of it all the same.
const WAY_OUT: &str = "karmaform.io/exclusive";
/// Where secrets may be: variables of the environment and headers, arguments, ways through a proxy.
const VEILED: &[&str] = &["value", "args", "command", "proxyHeader", "proxyURL"];
/// What is shown in place of a value that somebody else wrote, and that may be a secret.
const VEIL: &str = "(set by somebody else)";

/// What gives ClusterRoles more rights. Source: `kubectl explain clusterrole.aggregationRule`, and the labels of the roles that a server comes with.
const AGGREGATES: &str = "f:rbac.authorization.k8s.io/aggregate-to-";

/// What of an object is ours. Where somebody has made it anew, we have no account there, and what is wanted counts.
pub(crate) fn mine(live: &Json, wanted: &Json) -> Json {
    ours(live).unwrap_or_else(|| of_wanted(wanted, live))
}

/// The fields that others set and we did not, as FieldsV1; `None` if there are none, or nobody keeps account of them.
pub(crate) fn others(kind: &str, live: &Json, wanted: &Json) -> Option<Json> {
    let mine = mine(live, wanted);
    if is_open(live) {
        return None;
    }
    if is_completed(kind, live, &mine) {
        return left_behind(kind, live, wanted);
    }
    let entries = managers(live)?;
    let version = entries.iter().find(|e| is_ours(e)).map_or(&wanted["apiVersion"], |e| &e["apiVersion"]);
    // Fields of another version may have other names.
    let theirs = entries.iter().filter(|e| is_other(e) && e["apiVersion"] == *version).map(|e| &e["fieldsV1"]);
    let of_one = |fields: &Json| {
        let set = less(&counting(kind, fields)?, &mine)?;
        if is_whole(fields, &mine) { said(&set, live) } else { Some(set) }
    };
    theirs.filter_map(of_one).reduce(|a, b| union(&a, &b))
}

/// True of an object that says itself that others may do with it what they like.
pub(crate) fn is_open(live: &Json) -> bool {
    live["metadata"]["annotations"][WAY_OUT] == "false"
}

/// True for the account of somebody who wrote the object back whole: most of what is ours is in it.
fn is_whole(fields: &Json, mine: &Json) -> bool {
    let left = less(mine, fields).map_or(0, |left| leaves(&left));
    left * 2 < leaves(mine)
}

fn leaves(fields: &Json) -> usize {
    let named = fields.as_object().into_iter().flatten().filter(|(name, _)| *name != ".");
    named.map(|(_, below)| if below.as_object().is_none_or(Map::is_empty) { 1 } else { leaves(below) }).sum()
}

/// Without what a server would have filled in; `None` if nothing is left.
fn said(fields: &Json, live: &Json) -> Option<Json> {
    let left = fields.as_object()?.iter().filter_map(|(name, below)| {
        let there = match name.strip_prefix("f:") {
            Some(field) => live.get(field),
            None => live.as_array().and_then(|all| all.iter().enumerate().find(|(i, item)| is_item(name, *i, item))).map(|(_, item)| item),
        };
        let is_leaf = below.as_object().is_none_or(Map::is_empty);
        let left = match (name.strip_prefix("f:"), there) {
            (Some(field), Some(value)) if is_leaf && is_filled_in(field, value) => None,
            (_, Some(value)) if !is_leaf && !DATA.contains(&name.as_str()) => said(below, value),
            _ => Some(below.clone()),
        };
        left.map(|left| (name.clone(), left))
    });
    without_hollow(left.collect())
}

/// True of a Secret or a ConfigMap that somebody made immutable: no field of it can be set or taken away again, this one neither. Source:
/// `kubernetes.io/docs/concepts/configuration/secret`, section "Immutable Secrets".
pub(crate) fn is_sealed(others: &Json, live: &Json) -> bool {
    live["immutable"] == true && others["f:immutable"].is_object()
}

/// The account of an object's fields in which all that [`others`] set is ours; `None` if that is nothing.
pub(crate) fn taken_over(kind: &str, live: &Json, wanted: &Json) -> Option<Json> {
    let (mine, theirs) = (mine(live, wanted), others(kind, live, wanted)?);
    let mut entries = managers(live)?.clone();
    if !entries.iter().any(is_ours) {
        entries.push(json!({ "manager": MANAGER, "operation": "Apply", "apiVersion": wanted["apiVersion"], "fieldsType": "FieldsV1" }));
    }
    // What binds a volume is Kubernetes' own account, and it goes as long as nobody has it.
    let gives = |e: &Json| is_other(e) || (kind == VOLUME && !is_ours(e));
    entries.iter_mut().filter(|e| gives(e)).for_each(|e| e["fieldsV1"] = rest(&e["fieldsV1"], &theirs));
    let entry = entries.iter_mut().find(|e| is_ours(e))?;
    entry["fieldsV1"] = union(&mine, &theirs);
    entries.retain(|e| e["fieldsV1"].as_object().is_none_or(|f| !f.is_empty()));
    Some(entries.into())
}

/// A manifest with these fields of what is there in it, without the values of others that may be secrets.
pub(crate) fn shown_in(base: &Json, live: &Json, fields: &Json) -> Json {
    let mut shown = laid_over(base, live, fields);
    for name in DATA.iter().filter_map(|field| field.strip_prefix("f:")) {
        let keys = shown.get_mut(name).and_then(Json::as_object_mut);
        keys.into_iter().flatten().filter(|(key, _)| base[name].get(key).is_none()).for_each(|(_, value)| *value = VEIL.into());
    }
    veil(&mut shown, Some(base));
    shown
}

/// Takes out of sight what may hold a secret and is not as in `base`.
fn veil(shown: &mut Json, base: Option<&Json>) {
    match shown {
        Json::Object(entries) => {
            for (name, below) in entries {
                match base.and_then(|b| b.get(name)) {
                    Some(base) if base == below => {}
                    _ if VEILED.contains(&name.as_str()) => *below = VEIL.into(),
                    base => veil(below, base),
                }
            }
        }
        Json::Array(items) => {
            for item in items {
                let name = item.get("name").cloned();
                let base =
                    base.and_then(Json::as_array).and_then(|all| all.iter().find(|b| name.is_some() && b.get("name") == name.as_ref()));
                veil(item, base);
            }
        }
        _ => {}
    }
}

fn laid_over(base: &Json, live: &Json, fields: &Json) -> Json {
    let Some(below) = fields.as_object().filter(|f| !f.is_empty()) else { return live.clone() };
    match (base, live) {
        (Json::Object(base), Json::Object(live)) => {
            let mut all = base.clone();
            for (name, below) in below {
                let Some((name, live)) = name.strip_prefix("f:").and_then(|n| Some((n, live.get(n)?))) else { continue };
                let value = base.get(name).map_or_else(|| project(live, below), |base| laid_over(base, live, below));
                all.insert(name.to_owned(), value);
            }
            Json::Object(all)
        }
        (Json::Array(base), Json::Array(live)) => {
            let mut all = base.clone();
            for (i, item) in live.iter().enumerate() {
                let Some((name, below)) = below.iter().find(|(name, _)| is_item(name, i, item)) else { continue };
                match all.iter_mut().enumerate().find(|(i, base)| is_item(name, *i, base)) {
                    Some((_, base)) => *base = laid_over(base, item, below),
                    None => all.push(project(item, below)),
                }
            }
            Json::Array(all)
        }
        _ => live.clone(),
    }
}

/// Services that get an address from somebody, Secrets that a token comes into, and roles whose rules are collected, too: if we made them so.
fn is_completed(kind: &str, live: &Json, mine: &Json) -> bool {
    COMPLETED.contains(&kind)
        || (kind == "Service" && live["spec"]["type"] == "LoadBalancer" && mine["f:spec"]["f:type"].is_object())
        || (kind == "Secret" && live["type"] == "kubernetes.io/service-account-token" && mine["f:type"].is_object())
        || (kind == "ClusterRole" && mine["f:aggregationRule"].is_object())
}

/// Of a volume that is made for one claim, what still binds it to one that is gone: nobody gets it as long as that is there.
fn left_behind(kind: &str, live: &Json, wanted: &Json) -> Option<Json> {
    let is_for_one = kind == VOLUME && wanted["spec"]["claimRef"].is_object() && wanted["spec"]["claimRef"]["uid"].is_null();
    let is_left = live["status"]["phase"] == "Released" && live["spec"]["claimRef"]["uid"].is_string();
    (is_for_one && is_left).then(|| json!({ "f:spec": { "f:claimRef": { "f:uid": {} } } }))
}

fn managers(live: &Json) -> Option<&Vec<Json>> {
    live["metadata"]["managedFields"].as_array()
}

/// Not of a part that is served by itself. What scales by one writes a field like anybody else.
fn is_other(entry: &Json) -> bool {
    let manager = entry["manager"].as_str().unwrap_or_default();
    let is_whole = entry["subresource"].as_str().is_none_or(|s| s.is_empty() || s == "scale");
    manager != MANAGER && !SYSTEM.contains(&manager) && is_whole
}

/// What of these fields counts; `None` if that is nothing.
fn counting(kind: &str, fields: &Json) -> Option<Json> {
    let entries = fields.as_object().filter(|f| !f.is_empty());
    let Some(entries) = entries else { return Some(fields.clone()) };
    let is_passed_over = |name: &str| PASSED_OVER.contains(&name) || (kind == "Cluster" && OF_CLUSTERS.contains(&name));
    let rights = |(name, below): (&String, &Json)| {
        let labels = below.get("f:labels").and_then(Json::as_object).filter(|_| kind == "ClusterRole" && name == "f:metadata")?;
        let labels: Map<String, Json> =
            labels.iter().filter(|(l, _)| l.starts_with(AGGREGATES)).map(|(l, b)| (l.clone(), b.clone())).collect();
        (!labels.is_empty()).then(|| (name.clone(), json!({ "f:labels": labels })))
    };
    let rights = entries.iter().filter_map(rights);
    let left = entries.iter().filter(|(name, _)| !is_passed_over(name)).filter_map(|(name, below)| {
        let left = match below.as_object().filter(|b| DATA.contains(&name.as_str()) && !b.is_empty()) {
            Some(below) => without_hollow(below.clone())?,
            None => counting(kind, below)?,
        };
        Some((name.clone(), left))
    });
    without_hollow(left.chain(rights).collect())
}

/// Without what the other set covers; `None` if nothing is left.
fn less(fields: &Json, covered: &Json) -> Option<Json> {
    let entries = fields.as_object()?;
    let covered = covered.as_object().filter(|c| !c.is_empty())?;
    let left = entries.iter().filter_map(|(name, below)| {
        let left = covered.get(name).map_or_else(|| Some(below.clone()), |covered| less(below, covered))?;
        Some((name.clone(), left))
    });
    without_hollow(left.collect())
}

/// That a structure is there says nothing by itself.
fn without_hollow(fields: Map<String, Json>) -> Option<Json> {
    fields.keys().any(|name| name != ".").then_some(Json::Object(fields))
}

/// Without what is taken away, and without what is empty then.
fn rest(fields: &Json, taken: &Json) -> Json {
    let (Some(entries), Some(taken)) = (fields.as_object(), taken.as_object()) else { return fields.clone() };
    let left = entries.iter().filter_map(|(name, below)| match taken.get(name) {
        None => Some((name.clone(), below.clone())),
        Some(taken) if taken.as_object().is_none_or(Map::is_empty) => None,
        Some(taken) => Some((name.clone(), rest(below, taken))).filter(|(_, left)| left.as_object().is_some_and(|l| !l.is_empty())),
    });
    Json::Object(left.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(others: &Json) -> Json {
        json!({
            "metadata": { "name": "a", "managedFields": [
                { "manager": "karmaform", "operation": "Apply", "fieldsV1": { "f:spec": { "f:replicas": {}, "f:template": { "f:spec": { "f:containers": {
                    "k:{\"name\":\"main\"}": { ".": {}, "f:name": {}, "f:image": {} } } } } } } },
                others,
            ] },
            "spec": { "replicas": 1, "paused": true, "template": {
                "metadata": { "annotations": { "kubectl.kubernetes.io/restartedAt": "today" } },
                "spec": { "containers": [
                    { "name": "main", "image": "m", "env": [{ "name": "X", "value": "1" }], "imagePullPolicy": "Always" },
                    { "name": "theirs", "image": "t", "imagePullPolicy": "Always" },
                ] } } },
        })
    }

    fn theirs() -> Json {
        json!({ "manager": "kubectl-edit", "operation": "Update", "fieldsV1": {
            "f:metadata": { "f:annotations": { "f:a": {} } }, "f:spec": { "f:paused": {}, "f:template": {
                "f:metadata": { "f:annotations": { ".": {}, "f:kubectl.kubernetes.io/restartedAt": {} } },
                "f:spec": { "f:containers": {
                    "k:{\"name\":\"main\"}": { "f:env": { ".": {}, "k:{\"name\":\"X\"}": { ".": {}, "f:name": {}, "f:value": {} } } },
                    "k:{\"name\":\"theirs\"}": { ".": {}, "f:name": {}, "f:image": {} } } } } } } })
    }

    #[test]
    fn what_others_added_is_shown_beside_what_is_ours() {
        let live = of(&theirs());
        let others = others("Deployment", &live, &Json::Null).unwrap();
        let base = json!({ "spec": { "replicas": 1, "template": { "spec": { "containers": [{ "name": "main", "image": "m" }] } } } });
        let expected = json!({ "spec": { "replicas": 1, "paused": true, "template": { "spec": { "containers": [
            { "name": "main", "image": "m", "env": [{ "name": "X", "value": VEIL }] },
            { "name": "theirs", "image": "t" },
        ] } } } });
        assert_eq!(shown_in(&base, &live, &others), expected);
        // Of a key of ours it is shown what became of it, and what is as it should be is no difference.
        let map = json!({ "metadata": {}, "data": { "theirs": "secret", "ours": "other", "same": "s" } });
        let (base, fields) =
            (json!({ "data": { "ours": "o", "same": "s" } }), json!({ "f:data": { "f:theirs": {}, "f:ours": {}, "f:same": {} } }));
        assert_eq!(shown_in(&base, &map, &fields), json!({ "data": { "theirs": VEIL, "ours": "other", "same": "s" } }));
        let cluster = json!({ "spec": { "proxyHeader": { "Authorization": ["x"] }, "syncMode": "Push" } });
        let shown = shown_in(&json!({ "spec": { "syncMode": "Push" } }), &cluster, &json!({ "f:spec": { "f:proxyHeader": {} } }));
        assert_eq!(shown, json!({ "spec": { "syncMode": "Push", "proxyHeader": VEIL } }));
    }

    #[test]
    fn what_is_taken_over_is_nobody_elses() {
        let mut live = of(&theirs());
        live["metadata"]["managedFields"] = taken_over("Deployment", &live, &Json::Null).unwrap();
        assert_eq!(others("Deployment", &live, &Json::Null), None);
        let mine = ours(&live).unwrap();
        let containers = &mine["f:spec"]["f:template"]["f:spec"]["f:containers"];
        assert!(
            containers["k:{\"name\":\"theirs\"}"]["f:image"].is_object() && containers["k:{\"name\":\"main\"}"]["f:image"].is_object(),
            "{mine}"
        );
        // Their marks stay theirs.
        let left = &live["metadata"]["managedFields"][1]["fieldsV1"];
        assert!(left["f:metadata"]["f:annotations"]["f:a"].is_object(), "{left}");
        assert!(left["f:spec"]["f:template"]["f:metadata"].is_object() && left["f:spec"]["f:template"]["f:spec"].is_null(), "{left}");
    }

    /// Somebody wrote it back whole: the account is that one's, with what servers fill in.
    #[test]
    fn what_was_added_while_it_was_made_anew_is_found_and_becomes_ours() {
        let wanted = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" }, "spec": {
            "replicas": 2, "template": { "spec": { "containers": [{ "name": "main", "image": "m" }] } } } });
        let item = json!({ ".": {}, "f:name": {}, "f:image": {}, "f:terminationMessagePath": {}, "f:resources": {} });
        let fields = |more: Json| {
            let mut spec = json!({ "f:replicas": {}, "f:strategy": { "f:type": {}, "f:rollingUpdate": { ".": {}, "f:maxSurge": {} } },
                "f:template": { "f:spec": { "f:restartPolicy": {}, "f:containers": { ".": {}, "k:{\"name\":\"main\"}": item } } } });
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "f:metadata": { "f:labels": { "f:x": {} } }, "f:spec": spec })
        };
        // As an item of a list it has no version of its own.
        let live = |more: Json, set: Json| {
            let mut live = json!({
                "metadata": { "name": "a", "managedFields": [
                    { "manager": "kubectl-replace", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": fields(more) }] },
                "spec": { "replicas": 2, "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%" } }, "template": { "spec": {
                    "restartPolicy": "Always", "containers": [
                        { "name": "main", "image": "m", "terminationMessagePath": "/dev/termination-log", "resources": {} }] } } },
            });
            live["spec"].as_object_mut().unwrap().extend(set.as_object().unwrap().clone());
            live
        };
        assert_eq!(others("Deployment", &live(json!({}), json!({})), &wanted), None);
        let mut more = live(json!({ "f:paused": {}, "f:minReadySeconds": {} }), json!({ "paused": true, "minReadySeconds": 1 }));
        let theirs = others("Deployment", &more, &wanted).unwrap();
        assert_eq!(theirs, json!({ "f:spec": { "f:paused": {}, "f:minReadySeconds": {} } }));
        more["metadata"]["managedFields"] = taken_over("Deployment", &more, &wanted).unwrap();
        assert_eq!(others("Deployment", &more, &wanted), None);
        let mine = ours(&more).unwrap();
        assert!(mine["f:spec"]["f:paused"].is_object() && mine["f:spec"]["f:replicas"].is_object(), "{mine}");
        // Where there is an account of ours, whatever somebody else sets is that one's.
        let mut set = live(json!({}), json!({}));
        let accounts = set["metadata"]["managedFields"].as_array_mut().unwrap();
        accounts[0]["fieldsV1"] = json!({ "f:spec": { "f:strategy": { "f:type": {} } } });
        accounts.push(json!({ "manager": "karmaform", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": { "f:spec": { "f:replicas": {} } } }));
        assert_eq!(others("Deployment", &set, &wanted), Some(json!({ "f:spec": { "f:strategy": { "f:type": {} } } })));
        // The labels of roles that give rights are nobody else's.
        let labels = json!({ "f:metadata": { "f:labels": { "f:rbac.authorization.k8s.io/aggregate-to-view": {}, "f:x": {} } } });
        let role = json!({ "metadata": { "managedFields": [{ "manager": "kubectl", "operation": "Update", "fieldsV1": labels }] } });
        let expected = json!({ "f:metadata": { "f:labels": { "f:rbac.authorization.k8s.io/aggregate-to-view": {} } } });
        assert_eq!(others("ClusterRole", &role, &json!({ "rules": [] })), Some(expected));
        assert_eq!(others("Role", &role, &json!({ "rules": [] })), None);
    }

    /// The claim that it is for is gone, and another one of that name waits for it.
    #[test]
    fn what_binds_a_volume_to_a_claim_that_is_gone_is_taken_away() {
        let wanted = json!({ "apiVersion": "v1", "spec": { "claimRef": { "name": "data" } } });
        let mut live = json!({ "metadata": { "managedFields": [
                { "manager": "karmaform", "operation": "Apply", "apiVersion": "v1", "fieldsV1": { "f:spec": { "f:claimRef": { "f:name": {} } } } },
                { "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
                  "fieldsV1": { "f:spec": { "f:claimRef": { "f:uid": {}, "f:resourceVersion": {} } } } }] },
            "spec": { "claimRef": { "name": "data", "uid": "u1" } }, "status": { "phase": "Bound" } });
        assert_eq!(others(VOLUME, &live, &wanted), None);
        live["status"]["phase"] = "Released".into();
        let theirs = others(VOLUME, &live, &wanted).unwrap();
        assert_eq!(shown_in(&wanted, &live, &theirs)["spec"]["claimRef"], json!({ "name": "data", "uid": "u1" }));
        let accounts = taken_over(VOLUME, &live, &wanted).unwrap();
        assert!(accounts[0]["fieldsV1"]["f:spec"]["f:claimRef"]["f:uid"].is_object(), "{accounts}");
        assert!(accounts[1]["fieldsV1"]["f:spec"]["f:claimRef"]["f:uid"].is_null(), "{accounts}");
        // Who says for which one by its UID means just that one.
        assert_eq!(others(VOLUME, &live, &json!({ "spec": { "claimRef": { "name": "data", "uid": "u1" } } })), None);
        assert_eq!(others(VOLUME, &live, &json!({ "spec": {} })), None);
    }

    #[test]
    fn marks_and_what_the_system_fills_in_are_nothing() {
        let entry = |manager: &str, subresource: &str, fields: Json| {
            of(&json!({ "manager": manager, "operation": "Update", "subresource": subresource, "fieldsV1": fields }))
        };
        let paused = json!({ "f:spec": { "f:paused": {} } });
        assert_eq!(others("Deployment", &entry("kubectl", "", paused.clone()), &Json::Null), Some(paused.clone()));
        assert_eq!(others("Deployment", &entry("kubectl", "scale", paused.clone()), &Json::Null), Some(paused.clone()));
        assert_eq!(others("Deployment", &entry("kubectl", "status", paused.clone()), &Json::Null), None);
        assert_eq!(
            others("ConfigMap", &entry("kube-controller-manager", "", json!({ "f:data": { "f:jws-kubeconfig-abcdef": {} } })), &Json::Null),
            None
        );
        assert_eq!(others("Deployment", &entry("karmaform", "", paused), &Json::Null), None);
        let marks = json!({ "f:metadata": { "f:labels": { "f:a": {} } }, "f:spec": { "f:template": { "f:metadata": { "f:labels": { "f:a": {} } } } } });
        assert_eq!(others("Deployment", &entry("kubectl", "", marks), &Json::Null), None);
        let of_kind = |kind: &str, fields: Json, mut more: Json| {
            let mut live = entry("k3s", "", fields);
            let made = more.as_object_mut().unwrap().remove("made").unwrap_or_default();
            live["metadata"]["managedFields"][0]["fieldsV1"].as_object_mut().unwrap().extend(made.as_object().cloned().unwrap_or_default());
            live.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            others(kind, &live, &Json::Null).is_some()
        };
        // What we made of it ourselves.
        let made = |fields: Json, mut more: Json| {
            more["made"] = fields;
            more
        };
        let (spec, data) = (json!({ "f:spec": { "f:paused": {} } }), json!({ "f:data": { "f:token": {} } }));
        assert!(of_kind("Service", spec.clone(), json!({ "spec": { "type": "ClusterIP" } })));
        assert!(of_kind("Service", spec.clone(), json!({ "spec": { "type": "LoadBalancer" } })), "somebody else made it so");
        assert!(!of_kind(
            "Service",
            spec.clone(),
            made(json!({ "f:spec": { "f:type": {} } }), json!({ "spec": { "type": "LoadBalancer" } }))
        ));
        assert!(!of_kind("PersistentVolumeClaim", spec.clone(), json!({})));
        assert!(of_kind("Secret", data.clone(), json!({ "type": "Opaque" })));
        let token = json!({ "type": "kubernetes.io/service-account-token" });
        assert!(!of_kind("Secret", data.clone(), made(json!({ "f:type": {} }), token)));
        assert!(!of_kind("ServiceAccount", json!({ "f:secrets": {}, "f:imagePullSecrets": {} }), json!({})));
        assert!(!of_kind("ClusterRole", json!({ "f:rules": {} }), made(json!({ "f:aggregationRule": {} }), json!({}))));
        assert!(of_kind("ClusterRole", json!({ "f:rules": {} }), json!({})));
        assert!(!of_kind("Cluster", json!({ "f:spec": { "f:taints": {}, "f:region": {} } }), json!({})));
        assert!(of_kind("Cluster", json!({ "f:spec": { "f:taints": {}, "f:proxyURL": {} } }), json!({})));
        // A key may have any name, and one may say that others are welcome.
        assert!(of_kind("ConfigMap", json!({ "f:data": { ".": {}, "f:status": {} } }), json!({})));
        assert!(!of_kind("ConfigMap", json!({ "f:data": { ".": {} } }), json!({})));
        let mut welcome = entry("kubectl", "", spec);
        welcome["metadata"]["annotations"] = json!({ "karmaform.io/exclusive": "false" });
        assert_eq!(others("Deployment", &welcome, &Json::Null), None);
        // The same value of both.
        assert_eq!(others("Deployment", &entry("kubectl", "", json!({ "f:spec": { "f:replicas": {} } })), &Json::Null), None);
        assert_eq!(others("Deployment", &json!({ "metadata": {} }), &Json::Null), None);
    }
}
