//! Small ways to read and write attributes.

use karmaform_model::{Object, Value, secret_leaves};

/// A known string.
pub(crate) fn text<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

/// A known whole number.
pub(crate) fn number(object: &Object, name: &str) -> Option<i64> {
    object.get(name).and_then(Value::as_i64)
}

/// A known bool.
pub(crate) fn boolean(object: &Object, name: &str) -> Option<bool> {
    object.get(name).and_then(Value::as_bool)
}

/// The known strings of a map.
pub(crate) fn entries(object: &Object, name: &str) -> Vec<(String, String)> {
    let entries = object.get(name).and_then(Value::as_entries);
    entries.into_iter().flatten().filter_map(|(n, v)| Some((n.clone(), v.as_str()?.to_owned()))).collect()
}

/// An object of these.
pub(crate) fn object<const N: usize>(parts: [(&str, Value); N]) -> Object {
    parts.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()
}

/// The strings inside the secret parts of these attributes, to be kept out of messages.
pub(crate) fn secrets(object: &Object, names: &[&str]) -> Vec<String> {
    let values = names.iter().filter_map(|n| object.get(n));
    values.flat_map(secret_leaves).filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::{Type, redact};

    #[test]
    fn secrets_are_found_and_hidden() {
        let environment =
            Value::map(Type::String, [("A".to_owned(), Value::from("hunter22").secret()), ("B".to_owned(), "open".into())].into());
        let found = secrets(&object([("environment", environment)]), &["environment", "missing"]);
        assert_eq!(found, ["hunter22"]);
        assert_eq!(redact("open hunter22!", &found), "open (sensitive)!");
        assert_eq!(redact("a b", &["a".to_owned()]), "a b");
    }
}
