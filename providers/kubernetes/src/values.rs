//! Small ways to read attributes, and to keep secrets out of messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{Diagnostic, Object, Value, secret_leaves};

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
    let seconds = wanted.get("timeout").and_then(Value::as_number)?.as_f64();
    (seconds < 0.0).then(|| Diagnostic::error("Bad timeout", "`timeout` must not be negative."))
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
