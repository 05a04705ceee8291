//! Secrets in texts that are to be shown: which ones there are, and how they are hidden.

use crate::Value;

/// The values that have no parts, inside the secret and the ephemeral parts of a value: what must not stand anywhere in clear.
pub fn secret_leaves(value: &Value) -> Vec<&Value> {
    fn collect<'a>(value: &'a Value, inside: bool, found: &mut Vec<&'a Value>) {
        let secret = inside || value.marks().any();
        if secret && value.parts().next().is_none() {
            found.push(value);
        }
        value.parts().for_each(|part| collect(part, secret, found));
    }
    let mut found = Vec::new();
    collect(value, false, &mut found);
    found
}

/// Replaces secrets in a text that is to be shown. Very short ones stay: hiding every "a" hides the message.
pub fn redact(text: &str, secrets: &[String]) -> String {
    let mut pieces: Vec<&str> = secrets.iter().flat_map(|s| s.lines()).map(str::trim).filter(|s| s.len() >= 4).collect();
    // A longer secret may hold a shorter one.
    pieces.sort_by_key(|p| std::cmp::Reverse(p.len()));
    pieces.iter().fold(text.to_owned(), |shown, piece| shown.replace(piece, "(sensitive)"))
}

/// A URL for messages: it may hold a password or a token, in front of the host or behind a question mark.
pub fn without_credentials(url: &str) -> String {
    let without_query = url.split(['?', '#']).next().unwrap_or(url);
    match without_query.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://{rest}"),
        None => without_query.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_wherever_the_mark_is() {
        let value = Value::object([
            ("a", Value::tuple(vec!["in".into(), 1i64.into()]).secret()),
            ("b", Value::tuple(vec!["open".into(), Value::from("deep").secret()])),
            ("c", Value::from("now").ephemeral()),
        ]);
        assert_eq!(secret_leaves(&value), [&"in".into(), &1i64.into(), &Value::from("deep").secret(), &Value::from("now").ephemeral()]);
    }

    #[test]
    fn long_secrets_are_hidden_before_what_they_hold() {
        let secrets = ["hunter2".to_owned(), "hunter22\nline".to_owned(), "a".to_owned()];
        assert_eq!(redact("a hunter22 line", &secrets), "a (sensitive) (sensitive)");
    }

    #[test]
    fn no_password_of_an_address_is_shown() {
        assert_eq!(without_credentials("https://u:p@h/a.tgz?token=t#x"), "https://h/a.tgz");
        assert_eq!(without_credentials("https://h/a.tgz"), "https://h/a.tgz");
    }
}
