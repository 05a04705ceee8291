//! Which fields are ours: the server's `managedFields`, and what of an object they cover.
//!
//! The format is Kubernetes' FieldsV1: `f:name` a field, `k:{...}` a list's item by its keys, `v:...` a set's item, `i:n` by its place,
//! `.` the thing itself; `{}` all below.

use serde_json::{Map, Value as Json};

use crate::client::MANAGER;

/// The fields that our applies own; none if we never applied.
pub(crate) fn ours(live: &Json) -> Option<Json> {
    let entries = live["metadata"]["managedFields"].as_array()?;
    let mine = entries.iter().filter(|e| is_ours(e));
    mine.map(|e| e["fieldsV1"].clone()).reduce(|a, b| union(&a, &b))
}

/// True for the account of our applies.
pub(crate) fn is_ours(entry: &Json) -> bool {
    entry["manager"] == MANAGER && entry["operation"] == "Apply" && entry["subresource"].as_str().is_none_or(str::is_empty)
}

/// True for an object without any account of its fields that says by its label that it is ours.
pub(crate) fn is_untracked(live: &Json) -> bool {
    let has_account = live["metadata"]["managedFields"].as_array().is_some_and(|m| !m.is_empty());
    !has_account && live["metadata"]["labels"]["app.kubernetes.io/managed-by"] == MANAGER
}

/// What is covered by either. All of something covers parts of it.
pub(crate) fn union(a: &Json, b: &Json) -> Json {
    let (Json::Object(x), Json::Object(y)) = (a, b) else { return Json::Object(Map::new()) };
    if x.is_empty() || y.is_empty() {
        return Json::Object(Map::new());
    }
    let mut all = x.clone();
    for (name, below) in y {
        let joined = x.get(name).map_or_else(|| below.clone(), |other| union(other, below));
        all.insert(name.clone(), joined);
    }
    Json::Object(all)
}

/// The fields that a manifest would own, as far as can be told without the server: lists as a whole.
pub(crate) fn of_manifest(manifest: &Json) -> Json {
    fn below(json: &Json) -> Json {
        match json {
            Json::Object(entries) => Json::Object(entries.iter().map(|(n, v)| (format!("f:{n}"), below(v))).collect()),
            _ => Json::Object(Map::new()),
        }
    }
    below(&content(manifest))
}

/// The fields that a manifest would own, items of lists by the keys that somebody's account in the object has for them.
pub(crate) fn of_wanted(manifest: &Json, live: &Json) -> Json {
    let accounts = live["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    below(&content(manifest), &accounts.iter().map(|a| &a["fieldsV1"]).collect::<Vec<_>>())
}

fn below(wanted: &Json, accounts: &[&Json]) -> Json {
    let dot = || Json::Object(Map::from_iter([(".".to_owned(), Map::new().into())]));
    let inside = |name: &str| accounts.iter().filter_map(|a| a.get(name)).collect::<Vec<_>>();
    match wanted {
        // Others may set what is in it.
        Json::Object(entries) if entries.is_empty() => dot(),
        Json::Object(entries) => Json::Object(
            entries
                .iter()
                .map(|(n, v)| {
                    let name = format!("f:{n}");
                    let of_it = below(v, &inside(&name));
                    (name, of_it)
                })
                .collect(),
        ),
        Json::Array(items) => {
            let mut names: Vec<&String> = accounts.iter().filter_map(|a| a.as_object()).flat_map(Map::keys).collect();
            if names.iter().any(|name| name.starts_with("v:")) {
                return Json::Object(items.iter().map(|item| (format!("v:{item}"), Map::new().into())).collect());
            }
            names.retain(|name| name.starts_with("k:"));
            let named = |item: &Json| names.iter().find(|name| is_item_so_far(name, item)).map(|name| (*name).clone());
            let all: Option<Map<String, Json>> = items
                .iter()
                .map(|item| {
                    let name = named(item)?;
                    let mut of_it = below(item, &inside(&name));
                    of_it.as_object_mut()?.insert(".".to_owned(), Map::new().into());
                    Some((name, of_it))
                })
                .collect();
            // Nobody knows the keys of all: it is one thing.
            Json::Object(all.unwrap_or_default())
        }
        _ => Json::Object(Map::new()),
    }
}

/// As [`is_item`], of one whose keys a server may fill in.
fn is_item_so_far(name: &str, item: &Json) -> bool {
    let keys = name.strip_prefix("k:").and_then(|keys| serde_json::from_str::<Map<String, Json>>(keys).ok()).unwrap_or_default();
    let is = |(key, value): (&String, &Json)| item.get(key).is_none_or(|own| own == value);
    keys.iter().any(|(key, value)| item.get(key) == Some(value)) && keys.iter().all(is)
}

/// Without what names the object; that is nobody's field.
pub(crate) fn content(manifest: &Json) -> Json {
    let mut content = manifest.clone();
    if let Some(entries) = content.as_object_mut() {
        entries.remove("apiVersion");
        entries.remove("kind");
        if let Some(Json::Object(metadata)) = entries.get_mut("metadata") {
            metadata.remove("name");
            metadata.remove("namespace");
            if metadata.is_empty() {
                entries.remove("metadata");
            }
        }
    }
    content
}

/// Fields that are ours, and the empty structures of a manifest among them: servers up to 1.21 keep no account of who owns one
/// (`emptyDir: {}`), and whoever only wants one has all of it where there is one.
pub(crate) fn with_empty(owned: &Json, manifest: &Json) -> Json {
    let Some(fields) = owned.as_object().filter(|f| !f.is_empty()) else { return owned.clone() };
    let mut all = fields.clone();
    match manifest {
        Json::Object(entries) => {
            for (name, wanted) in entries {
                match all.get_mut(&format!("f:{name}")) {
                    Some(below) => *below = with_empty(below, wanted),
                    None if wanted.as_object().is_some_and(Map::is_empty) => {
                        all.insert(format!("f:{name}"), Json::Object(Map::from_iter([(".".to_owned(), Map::new().into())])));
                    }
                    None => {}
                }
            }
        }
        Json::Array(items) => {
            for (name, below) in &mut all {
                if let Some(item) = items.iter().enumerate().find(|(i, item)| is_item(name, *i, item)) {
                    *below = with_empty(below, item.1);
                }
            }
        }
        _ => {}
    }
    Json::Object(all)
}

/// The part of an object that these fields cover.
pub(crate) fn project(live: &Json, fields: &Json) -> Json {
    let Some(fields) = fields.as_object().filter(|f| !f.is_empty()) else { return live.clone() };
    match live {
        Json::Object(entries) => {
            let covered = entries.iter().filter_map(|(n, v)| Some((n.clone(), project(v, fields.get(&format!("f:{n}"))?))));
            Json::Object(covered.collect())
        }
        Json::Array(items) => {
            let covered = items
                .iter()
                .enumerate()
                .filter_map(|(i, item)| fields.iter().find(|(name, _)| is_item(name, i, item)).map(|(_, below)| project(item, below)));
            Json::Array(covered.collect())
        }
        other => other.clone(),
    }
}

/// What we own parts of and a manifest no longer has, as a strategic merge patch that takes it away; none if there is nothing.
///
/// A server removes what its owner leaves out, field by field, but not what it had filled in itself. Of a structure that it fills in, that
/// leaves a part which it then refuses: a probe without anything to ask. So such a structure has to be taken away as a whole first.
pub(crate) fn dropped(owned: &Json, manifest: &Json, live: &Json) -> Option<Json> {
    let owned = owned.as_object()?;
    match live {
        Json::Object(live) => {
            let fields = owned.iter().filter_map(|(name, below)| {
                let field = name.strip_prefix("f:")?;
                let there = live.get(field)?;
                let gone = match manifest.get(field) {
                    Some(wanted) => dropped(below, wanted, there)?,
                    None => there.is_object().then_some(Json::Null)?,
                };
                Some((field.to_owned(), gone))
            });
            let patch: Map<String, Json> = fields.collect();
            (!patch.is_empty()).then_some(Json::Object(patch))
        }
        // Of a list's item the server takes away all, so only items that stay are looked into.
        Json::Array(live) => {
            let items = owned.iter().filter_map(|(name, below)| {
                let keys = name.strip_prefix("k:").and_then(|keys| serde_json::from_str::<Json>(keys).ok())?;
                let find = |items: &[Json]| items.iter().find(|item| is_item(name, usize::MAX, item)).cloned();
                let mut patch = dropped(below, &find(manifest.as_array()?)?, &find(live)?)?;
                patch.as_object_mut()?.extend(keys.as_object()?.clone());
                Some(patch)
            });
            let patch: Vec<Json> = items.collect();
            (!patch.is_empty()).then_some(Json::Array(patch))
        }
        _ => None,
    }
}

/// What is left of what was [`dropped`] and belongs to nobody, as such a patch: a probe with nothing but the defaults of a server, which takes that in a
/// template of old versions, and refuses every pod that is made of it. None if nothing is.
pub(crate) fn hulls(dropped: &Json, live: &Json) -> Option<Json> {
    let accounts = live["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    left(dropped, live, &accounts.iter().map(|account| &account["fieldsV1"]).collect::<Vec<_>>())
}

fn left(dropped: &Json, live: &Json, owned: &[&Json]) -> Option<Json> {
    match (dropped, live) {
        (Json::Object(dropped), Json::Object(live)) => {
            let fields =
                dropped.iter().filter(|(_, gone)| gone.is_null() || gone.is_object() || gone.is_array()).filter_map(|(field, gone)| {
                    let there = live.get(field)?;
                    let below: Vec<&Json> = owned.iter().filter_map(|o| o.get(format!("f:{field}"))).collect();
                    let left = if gone.is_null() {
                        (there.is_object() && below.is_empty()).then_some(Json::Null)
                    } else {
                        left(gone, there, &below)
                    };
                    Some((field.clone(), left?))
                });
            let patch: Map<String, Json> = fields.collect();
            (!patch.is_empty()).then_some(Json::Object(patch))
        }
        (Json::Array(dropped), Json::Array(live)) => {
            let items = dropped.iter().filter_map(|item| {
                let keys: Map<String, Json> =
                    item.as_object()?.iter().filter(|(_, v)| v.is_string() || v.is_number()).map(|(n, v)| (n.clone(), v.clone())).collect();
                let there = live.iter().find(|item| keys.iter().all(|(n, v)| item.get(n) == Some(v)))?;
                let of_it = |o: &&Json| {
                    Some(o.as_object()?.iter().find(|(name, _)| name.starts_with("k:") && is_item(name, usize::MAX, there))?.1.clone())
                };
                let below: Vec<Json> = owned.iter().filter_map(of_it).collect();
                let mut patch = left(item, there, &below.iter().collect::<Vec<_>>())?;
                patch.as_object_mut()?.extend(keys);
                Some(patch)
            });
            let patch: Vec<Json> = items.collect();
            (!patch.is_empty()).then_some(Json::Array(patch))
        }
        _ => None,
    }
}

pub(crate) fn is_item(name: &str, index: usize, item: &Json) -> bool {
    let parsed = |text: &str| serde_json::from_str::<Json>(text).ok();
    match name.split_once(':') {
        Some(("k", keys)) => match parsed(keys) {
            Some(Json::Object(keys)) => keys.iter().all(|(n, v)| item.get(n) == Some(v)),
            _ => false,
        },
        Some(("v", value)) => parsed(value).as_ref() == Some(item),
        Some(("i", place)) => place.parse() == Ok(index),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_left_and_belongs_to_nobody_goes() {
        let dropped =
            json!({ "spec": { "containers": [{ "name": "main", "livenessProbe": null, "startupProbe": null }], "theirs": null } });
        let live = json!({
            "metadata": { "managedFields": [
                { "manager": "karmaform", "fieldsV1": { "f:spec": { "f:containers": { "k:{\"name\":\"main\"}": { "f:image": {} } } } } },
                { "manager": "other", "fieldsV1": { "f:spec": {
                    "f:theirs": { "f:a": {} }, "f:containers": { "k:{\"name\":\"main\"}": { "f:startupProbe": { "f:httpGet": {} } } } } } },
            ] },
            "spec": { "theirs": { "a": 1 }, "containers": [
                { "name": "side", "livenessProbe": { "periodSeconds": 10 } },
                { "name": "main", "image": "x", "livenessProbe": { "periodSeconds": 10 }, "startupProbe": { "httpGet": {} } },
            ] },
        });
        assert_eq!(hulls(&dropped, &live), Some(json!({ "spec": { "containers": [{ "name": "main", "livenessProbe": null }] } })));
        assert_eq!(hulls(&json!({ "spec": { "gone": null } }), &live), None);
    }

    fn live() -> Json {
        json!({
            "metadata": { "name": "a", "labels": { "x": "1", "y": "2" }, "finalizers": ["p/a", "p/b"], "managedFields": [
                { "manager": "karmaform", "operation": "Apply", "fieldsV1": {
                    "f:metadata": { "f:labels": { ".": {}, "f:x": {} }, "f:finalizers": { "v:\"p/a\"": {} } },
                    "f:spec": { "f:selector": {}, "f:containers": { "k:{\"name\":\"main\"}": {
                        ".": {}, "f:name": {}, "f:ports": { "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} } } } } } } },
                { "manager": "karmaform", "operation": "Apply", "subresource": "status", "fieldsV1": { "f:status": {} } },
                { "manager": "kubectl", "operation": "Update", "fieldsV1": { "f:metadata": { "f:labels": { "f:y": {} } } } },
            ] },
            "spec": { "selector": { "app": "a" }, "replicas": 1, "containers": [
                { "name": "sidecar", "image": "s" },
                { "name": "main", "image": "m", "ports": [{ "containerPort": 80, "protocol": "TCP" }, { "containerPort": 80, "protocol": "UDP" }] },
            ] },
            "status": { "x": 1 },
        })
    }

    #[test]
    fn only_what_is_ours_is_seen() {
        let fields = ours(&live()).unwrap();
        assert_eq!(
            project(&live(), &fields),
            json!({
                "metadata": { "labels": { "x": "1" }, "finalizers": ["p/a"] },
                "spec": { "selector": { "app": "a" }, "containers": [{ "name": "main", "ports": [{ "containerPort": 80 }] }] },
            })
        );
        assert_eq!(
            ours(&json!({ "metadata": { "managedFields": [{ "manager": "kubectl", "operation": "Apply", "fieldsV1": {} }] } })),
            None
        );
    }

    #[test]
    fn united_with_what_is_wanted() {
        let wanted =
            json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "a", "labels": { "y": "3" } }, "spec": { "containers": [] } });
        let fields = union(&ours(&live()).unwrap(), &of_manifest(&wanted));
        let seen = project(&live(), &fields);
        assert_eq!(seen["metadata"]["labels"], json!({ "x": "1", "y": "2" }));
        assert_eq!(seen["spec"]["containers"], live()["spec"]["containers"], "a list is compared whole until the server says how");
        assert_eq!(seen["metadata"].get("name"), None);
    }

    /// Somebody wrote it back: our account lacks what was changed meanwhile, or is gone.
    #[test]
    fn what_is_wanted_is_found_by_the_keys_of_any_account() {
        let mut live = live();
        live["metadata"]["managedFields"][0]["manager"] = json!("kubectl");
        let wanted = json!({ "metadata": { "labels": { "x": "1" }, "finalizers": ["p/a"] }, "spec": { "more": {}, "containers": [
            { "name": "main", "image": "m", "ports": [{ "containerPort": 80 }] }] } });
        let fields = of_wanted(&wanted, &live);
        let port = json!({ ".": {}, "f:containerPort": {} });
        let container =
            json!({ ".": {}, "f:name": {}, "f:image": {}, "f:ports": { "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": port } });
        assert_eq!(fields["f:spec"], json!({ "f:more": { ".": {} }, "f:containers": { "k:{\"name\":\"main\"}": container } }));
        assert_eq!(fields["f:metadata"]["f:finalizers"], json!({ "v:\"p/a\"": {} }));
        let mut seen = wanted.clone();
        seen["spec"].as_object_mut().unwrap().remove("more");
        assert_eq!(project(&live, &fields), seen);
        // Of items that are not there nobody knows the keys.
        let other = json!({ "spec": { "containers": [{ "name": "other" }] } });
        assert_eq!(of_wanted(&other, &live)["f:spec"]["f:containers"], json!({}));
    }

    #[test]
    fn an_empty_structure_is_seen_where_it_is_wanted_and_there() {
        let owned = json!({ "f:spec": { "f:volumes": { "k:{\"name\":\"tmp\"}": { ".": {}, "f:name": {} } }, "f:whole": {} } });
        let spec = |volume: Json| json!({ "spec": { "volumes": [volume], "whole": { "a": {} } } });
        let wanted = spec(json!({ "name": "tmp", "emptyDir": {} }));
        let fields = with_empty(&owned, &wanted);
        assert_eq!(project(&wanted, &fields), wanted);
        assert_eq!(
            project(&spec(json!({ "name": "tmp", "emptyDir": { "medium": "Memory" } })), &fields),
            wanted,
            "others may set what is in it"
        );
        for other in [json!({ "name": "tmp", "hostPath": {} }), json!({ "name": "tmp" }), json!({ "name": "tmp", "emptyDir": null })] {
            assert_ne!(project(&spec(other.clone()), &fields), wanted, "{other}");
        }
        // What is in it and ours is still looked at.
        let full = json!({ "f:spec": { "f:volumes": { "k:{\"name\":\"tmp\"}": { ".": {}, "f:emptyDir": { "f:medium": {} } } } } });
        let live = spec(json!({ "name": "tmp", "emptyDir": { "medium": "Memory" } }));
        assert_eq!(project(&live, &with_empty(&full, &wanted))["spec"]["volumes"][0]["emptyDir"], json!({ "medium": "Memory" }));
    }

    #[test]
    fn structures_that_are_left_out_are_found() {
        let owned = json!({ "f:spec": { "f:containers": { "k:{\"name\":\"a\"}": { ".": {}, "f:startupProbe": { "f:httpGet": { "f:path": {} } }, "f:image": {} } }, "f:gone": { "f:x": {} } } });
        let live = json!({ "spec": { "containers": [{ "name": "b" }, { "name": "a", "image": "i", "startupProbe": { "httpGet": { "path": "/" }, "successThreshold": 1 } }] } });
        let manifest = |container: Json| json!({ "spec": { "containers": [container] } });
        let expected = manifest(json!({ "name": "a", "startupProbe": null }));
        assert_eq!(dropped(&owned, &manifest(json!({ "name": "a", "image": "j" })), &live), Some(expected));
        let kept = json!({ "name": "a", "image": "i", "startupProbe": { "httpGet": { "path": "/x" } } });
        assert_eq!(dropped(&owned, &manifest(kept), &live), None);
        assert_eq!(dropped(&owned, &manifest(json!({ "name": "c" })), &live), None);
    }

    #[test]
    fn what_a_server_keeps_no_account_of_is_ours_by_its_label() {
        let live = |manager: &str, fields: Json| json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": manager }, "managedFields": fields } });
        assert!(is_untracked(&live("karmaform", Json::Null)));
        assert!(!is_untracked(&live("helm", Json::Null)));
        assert!(!is_untracked(&live("karmaform", json!([{ "manager": "kubectl" }]))));
    }
}
