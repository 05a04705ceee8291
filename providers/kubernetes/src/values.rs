//! Small ways to read attributes, and to keep secrets out of messages.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{Diagnostic, Object, Value, secret_leaves};
use serde_json::Value as Json;

/// A known string.
pub(crate) fn text<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

/// A known bool; false if it is not there.
pub(crate) fn is_true(object: &Object, name: &str) -> bool {
    object.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// What is wrong with `timeout`, if anything is.
pub(crate) fn bad_timeout(wanted: &Object) -> Option<Diagnostic> {
    bad_seconds(wanted, "timeout")
}

/// The same for any attribute that is a time in seconds.
pub(crate) fn bad_seconds(wanted: &Object, name: &str) -> Option<Diagnostic> {
    let seconds = wanted.get(name).and_then(Value::as_number)?.as_f64();
    let why = if seconds < 0.0 { "must not be negative" } else { "is longer than anybody could wait" };
    Duration::try_from_secs_f64(seconds).is_err().then(|| Diagnostic::error("Bad timeout", format!("`{name}` {why}.")))
}

/// Listed objects by their names.
pub(crate) fn by_name(items: Vec<Json>) -> BTreeMap<String, Json> {
    items.into_iter().map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item)).collect()
}

/// An object of these.
pub(crate) fn object<const N: usize>(parts: [(&str, Value); N]) -> Object {
    parts.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()
}

/// Bytes as servers write them into JSON.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// And back, if it is text.
pub(crate) fn decode(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text).ok()?).ok()
}

/// The strings inside the secret parts of values, plain and as base64, to be kept out of messages.
pub(crate) fn secrets<'a>(values: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    let texts = values.into_iter().flat_map(secret_leaves).filter_map(Value::as_str);
    texts.flat_map(|text| [Some(text.to_owned()), Some(encode(text.as_bytes())), decode(text)]).flatten().collect()
}

/// A map of labels, as a query has it: `a=b,c=d`.
pub(crate) fn selector(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_entries).into_iter().flatten();
    labels.filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?))).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::redact;

    #[test]
    fn secrets_are_hidden_in_both_spellings() {
        let value = Value::object([("a", Value::from("hunter22").secret()), ("b", "open".into())]);
        let found = secrets([&value]);
        assert_eq!(redact("open hunter22 aHVudGVyMjI= x", &found), "open (sensitive) (sensitive) x");
    }
}
