//! Texts that say where programs come from, with words in them that are filled in for each host: `{arch}`, `{version}`, `{program}`.

use crate::{Type, Value};

/// What stands for the architecture of the host that a program is for.
const ARCHITECTURE: &str = "{arch}";

/// The text with its words filled in; `words` are those beside `{arch}`, each with what it stands for. Unknown while the architecture is needed and
/// not known. What is no text stays as it is.
pub fn source_on(source: &Value, words: &[(&str, &str)], architecture: Option<&str>) -> Value {
    let Some(text) = source.as_str() else { return source.clone() };
    if text.contains(ARCHITECTURE) && architecture.is_none() {
        return Value::unknown_not_null(Type::String).marked(source.marks());
    }
    let text = words.iter().fold(text.to_owned(), |text, (word, with)| text.replace(word, with));
    Value::from(text.replace(ARCHITECTURE, architecture.unwrap_or_default())).marked(source.marks())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_filled_in_where_they_are_known() {
        let source = Value::from("https://x/v{version}/{arch}/etcd-{version}.tar").secret();
        let words = [("{version}", "3.6.8")];
        let known = source_on(&source, &words, Some("arm64"));
        assert_eq!(known.as_str(), Some("https://x/v3.6.8/arm64/etcd-3.6.8.tar"));
        assert!(known.secret);
        let later = source_on(&source, &words, None);
        assert!(later.is_unknown() && later.secret);
        assert_eq!(source_on(&"e-{version}".into(), &words, None).as_str(), Some("e-3.6.8"));
        assert!(source_on(&Value::null(Type::String), &words, None).is_null());
    }
}
