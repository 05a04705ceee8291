//! Fields of an object that others are made of: a token that a controller puts into a Secret, for one.
//!
//! They are remembered, so that what is made of them changes when they do; what a plan showed of them stays so until the next plan.

use std::collections::BTreeMap;

use karmaform_model::{Change, Diagnostic, Object, Type, Value};
use serde_json::Value as Json;

/// The attribute.
pub(crate) const EXPOSED: &str = "exposed";
/// What says which.
const EXPOSE: &str = "expose";

/// Its type.
pub(crate) fn ty() -> Type {
    Type::map(Type::String)
}

/// The pointers by their names; none if nothing is to be read.
fn pointers(object: &Object) -> Option<BTreeMap<String, String>> {
    let entries = object.get(EXPOSE)?.as_entries()?;
    Some(entries.iter().filter_map(|(n, v)| Some((n.clone(), v.as_str()?.to_owned()))).collect())
}

/// What is wrong with the pointers.
pub(crate) fn problem(wanted: &Object) -> Option<Diagnostic> {
    let unique = wanted.get("unique").and_then(Value::as_items).unwrap_or_default().iter().filter_map(Value::as_str).map(str::to_owned);
    let all = pointers(wanted).unwrap_or_default().into_values().chain(unique);
    let bad = all.into_iter().find(|p| !p.starts_with('/'))?;
    let detail = format!("\"{bad}\" does not start with \"/\", as a JSON pointer (RFC 6901) does.");
    Some(Diagnostic::error("Bad path of a field", detail).with_hint("Write it like \"/data/token\"; a \"/\" in a name is \"~1\"."))
}

/// The value of the attribute for an object as it is.
pub(crate) fn read(asked: Option<&Object>, live: &Json) -> Value {
    let Some(pointers) = asked.and_then(pointers) else { return Value::null(ty()) };
    let one = |pointer: &str| match live.pointer(pointer) {
        None | Some(Json::Null) => Value::null(Type::String),
        Some(Json::String(text)) => text.as_str().into(),
        Some(other) => other.to_string().into(),
    };
    Value::map(Type::String, pointers.into_iter().map(|(name, pointer)| (name, one(&pointer))).collect()).secret()
}

/// Nothing where nothing is to be read, or an earlier version read nothing.
pub(crate) fn complete(before: &mut Object, wanted: &Object) {
    if pointers(wanted).is_none() {
        before.put(EXPOSED, Value::null(ty()));
    }
}

/// Tells of a change what is known before it is made: that nothing is to be read, or what was read while the same is to be.
pub(crate) fn foretell(change: &mut Change) {
    let was = match &change {
        Change::Update { before, .. } => before.get(EXPOSED).filter(|v| !v.is_null()).cloned(),
        _ => None,
    };
    let is_change = !matches!(change, Change::NoOp { .. });
    let Some(after) = change.after_mut() else { return };
    let Some(wanted) = pointers(after) else {
        after.put(EXPOSED, Value::null(ty()));
        return;
    };
    let is_of = |value: &Value| value.as_entries().is_some_and(|e| e.keys().eq(wanted.keys()) && !e.values().any(Value::is_null));
    if is_change {
        after.insert(EXPOSED.to_owned(), was.filter(is_of).unwrap_or_else(|| Value::unknown(ty())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::to_json;
    use serde_json::json;

    #[test]
    fn fields_are_read_by_pointers() {
        let asked = |pointers: &[(&str, &str)]| {
            let map = pointers.iter().map(|(n, p)| ((*n).to_owned(), Value::from(*p))).collect();
            Object::from([(EXPOSE.to_owned(), Value::map(Type::String, map))])
        };
        let live = json!({ "data": { "token": "abc", "ca.crt": "x" }, "spec": { "n": 3 } });
        let of = asked(&[("token", "/data/token"), ("ca", "/data/ca.crt"), ("n", "/spec/n"), ("none", "/status/x")]);
        let value = read(Some(&of), &live);
        assert!(value.contains_secret());
        assert_eq!(to_json(&value), json!({ "token": "abc", "ca": "x", "n": "3", "none": null }));
        assert!(read(Some(&Object::new()), &live).is_null());
        assert!(problem(&of).is_none());
        assert!(problem(&asked(&[("token", "data.token")])).is_some());
    }
}
