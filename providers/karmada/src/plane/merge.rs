//! Merging what a user wrote over what karmaform made: objects by key, lists whose items have names by name, anything else replaced.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Type, Value};

/// The user's `patch` over a manifest. One that is not known yet leaves what names the object.
pub(crate) fn patched(manifest: Arg, patch: &Value) -> Arg {
    if patch.is_null() {
        return manifest;
    }
    if !patch.is_unknown() {
        return merged(manifest, patch);
    }
    let Arg::Object(mut entries) = manifest else { return manifest };
    entries.insert("spec".to_owned(), Value::unknown_not_null(Type::Any).into());
    if let Some(Arg::Object(metadata)) = entries.get_mut("metadata") {
        for name in ["labels", "annotations"] {
            metadata.insert(name.to_owned(), Value::unknown(Type::Any).into());
        }
    }
    Arg::Object(entries)
}

/// A patch over one part.
fn merged(base: Arg, patch: &Value) -> Arg {
    let marked = |part: &Value| part.clone().secret_if(patch.secret);
    match (opened(base), patch) {
        (Arg::Object(mut entries), _) if patch.as_entries().is_some() => {
            for (name, part) in patch.as_entries().into_iter().flatten() {
                match entries.remove(name) {
                    _ if part.is_null() => {}
                    Some(there) => drop(entries.insert(name.clone(), merged(there, &marked(part)))),
                    None => drop(entries.insert(name.clone(), marked(part).into())),
                }
            }
            Arg::Object(entries)
        }
        (Arg::List(mut items), _) if is_named(&items, patch) => {
            for part in patch.as_items().unwrap_or_default() {
                let name = part.get("name").and_then(Value::as_str);
                match items.iter_mut().find(|i| name_of(i) == name) {
                    Some(there) => {
                        let before = std::mem::replace(there, Arg::Object(BTreeMap::new()));
                        *there = merged(before, &marked(part));
                    }
                    None => items.push(marked(part).into()),
                }
            }
            Arg::List(items)
        }
        _ => patch.clone().into(),
    }
}

/// The same with its parts as arguments.
fn opened(base: Arg) -> Arg {
    let Arg::Value(value) = base else { return base };
    let secret = value.secret;
    match (value.as_entries(), value.as_items()) {
        (Some(entries), _) => Arg::Object(entries.iter().map(|(n, v)| (n.clone(), v.clone().secret_if(secret).into())).collect()),
        (None, Some(items)) => Arg::List(items.iter().map(|v| v.clone().secret_if(secret).into()).collect()),
        _ => Arg::Value(value),
    }
}

fn is_named(items: &[Arg], patch: &Value) -> bool {
    let named = |v: &Value| v.get("name").and_then(Value::as_str).is_some();
    patch.as_items().is_some_and(|parts| !parts.is_empty() && parts.iter().all(named)) && items.iter().all(|i| name_of(i).is_some())
}

fn name_of(item: &Arg) -> Option<&str> {
    match item {
        Arg::Object(entries) => match entries.get("name")? {
            Arg::Value(name) => name.as_str(),
            _ => None,
        },
        Arg::Value(value) => value.get("name")?.as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use karmaform_model::{implied_from_json, to_json};
    use serde_json::{Value as Json, json};

    use super::*;

    fn check(base: &Json, patch: &Json, expected: &Json) {
        for base in [Arg::from_json(base), Arg::Value(implied_from_json(base))] {
            let made = patched(base, &implied_from_json(patch)).resolve(&|_, _| Value::unknown(Type::Any));
            assert_eq!(to_json(&made), *expected);
        }
    }

    #[test]
    fn objects_merge_by_key_and_lists_by_name() {
        check(
            &json!({ "a": 1, "b": { "c": 2, "d": 3 } }),
            &json!({ "b": { "c": null, "e": 4 } }),
            &json!({ "a": 1, "b": { "d": 3, "e": 4 } }),
        );
        check(&json!({ "a": [1, 2] }), &json!({ "a": [3] }), &json!({ "a": [3] }));
        let named = json!({ "l": [{ "name": "x", "v": 1 }, { "name": "y", "v": 2 }] });
        check(
            &named,
            &json!({ "l": [{ "name": "y", "w": 3 }, { "name": "z" }] }),
            &json!({ "l": [{ "name": "x", "v": 1 }, { "name": "y", "v": 2, "w": 3 }, { "name": "z" }] }),
        );
        check(&named, &json!({ "l": [] }), &json!({ "l": [] }));
        check(&named, &json!({ "l": { "k": 1 } }), &json!({ "l": { "k": 1 } }));
    }

    #[test]
    fn a_patch_that_comes_later_leaves_the_name() {
        let base = Arg::from_json(&json!({ "kind": "D", "metadata": { "name": "a", "labels": {} }, "spec": { "replicas": 1 } }));
        let made = patched(base, &Value::unknown(Type::Any)).resolve(&|_, _| Value::unknown(Type::Any));
        assert_eq!(made.get("metadata").and_then(|m| m.get("name")), Some(&"a".into()));
        assert!(made.get("spec").is_some_and(Value::is_unknown));
        assert!(made.get("metadata").and_then(|m| m.get("labels")).is_some_and(Value::is_unknown));
    }

    #[test]
    fn a_secret_patch_stays_secret() {
        let base = Arg::from_json(&json!({ "a": {} }));
        let patch = implied_from_json(&json!({ "a": { "b": "x" } })).secret();
        assert!(patched(base, &patch).resolve(&|_, _| Value::unknown(Type::Any)).contains_secret());
    }
}
