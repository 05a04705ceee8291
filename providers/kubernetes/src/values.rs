//! Small ways to read attributes, and to keep secrets out of messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{Object, Value};

/// A known string.
pub(crate) fn text<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

/// A known bool; false if it is not there.
pub(crate) fn is_true(object: &Object, name: &str) -> bool {
    object.get(name).and_then(Value::as_bool).unwrap_or(false)
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

/// The strings inside the secret parts of a value, plain and as base64, to be kept out of messages.
pub(crate) fn secrets<'a>(values: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    let mut found = Vec::new();
    values.into_iter().for_each(|v| collect(v, v.secret, &mut found));
    found
}

fn collect(value: &Value, secret: bool, found: &mut Vec<String>) {
    let secret = secret || value.secret;
    match value.as_str() {
        Some(text) if secret => {
            found.extend([text.to_owned(), encode(text.as_bytes())]);
            found.extend(decode(text));
        }
        _ => value.parts().for_each(|p| collect(p, secret, found)),
    }
}

/// Replaces secrets in a text that is to be shown. Very short ones stay: hiding every "a" hides the message.
pub(crate) fn redact(text: &str, secrets: &[String]) -> String {
    let mut pieces: Vec<&str> = secrets.iter().flat_map(|s| s.lines()).map(str::trim).filter(|s| s.len() >= 4).collect();
    // a longer secret may hold a shorter one
    pieces.sort_by_key(|p| std::cmp::Reverse(p.len()));
    pieces.iter().fold(text.to_owned(), |shown, piece| shown.replace(piece, "(sensitive)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_in_both_spellings() {
        let value = Value::object([("a", Value::from("hunter22").secret()), ("b", "open".into())]);
        let found = secrets([&value]);
        assert_eq!(redact("open hunter22 aHVudGVyMjI= x", &found), "open (sensitive) (sensitive) x");
    }
}
