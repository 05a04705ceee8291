//! What things are called in the bucket, as Terraform names them, and how that is written in addresses.

use karmaform_model::{Item, Serial};

/// The key of an item of the state with this key.
pub(crate) fn key(state: &str, item: &Item) -> String {
    match item {
        Item::State => state.to_owned(),
        Item::Lock => format!("{state}.tflock"),
        Item::Generation(serial) => format!("{}{serial:020}.tfstate", generations(state)),
        Item::History => format!("{}history.json", generations(state)),
        Item::Scratch(name) => format!("{state}.probe-{name}"),
    }
}

/// What the keys of generations begin with.
pub(crate) fn generations(state: &str) -> String {
    format!("{state}.generations/")
}

/// The serial in the key of a generation; `None` for anything else that lies there.
pub(crate) fn generation(state: &str, key: &str) -> Option<Serial> {
    let digits = key.strip_prefix(&generations(state))?.strip_suffix(".tfstate")?;
    (digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// The workspace whose state has this key; `None` for anything else. `prefix` ends with a slash, `state` is the default workspace's.
pub(crate) fn workspace<'a>(prefix: &str, state: &str, key: &'a str) -> Option<&'a str> {
    let name = key.strip_prefix(prefix)?.strip_suffix(state)?.strip_suffix('/')?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

/// A text as it stands in an address: as signatures want it, all but unreserved characters and those in `kept` as `%XX`.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>
pub(crate) fn encoded(text: &str, kept: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ if kept.as_bytes().contains(&byte) => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_terraforms() {
        let name = |item| key("env:/dev/prod/karmada", &item);
        assert_eq!(name(Item::State), "env:/dev/prod/karmada");
        assert_eq!(name(Item::Lock), "env:/dev/prod/karmada.tflock");
        assert_eq!(name(Item::Generation(42)), "env:/dev/prod/karmada.generations/00000000000000000042.tfstate");
        assert_eq!(name(Item::History), "env:/dev/prod/karmada.generations/history.json");
        assert_eq!(name(Item::Scratch("a-1".to_owned())), "env:/dev/prod/karmada.probe-a-1");
        assert_eq!(encoded("env:/dev/a b+ü~", "/"), "env%3A/dev/a%20b%2B%C3%BC~");
    }

    #[test]
    fn workspaces_are_told_from_what_else_lies_there() {
        let name = |key| workspace("env:/", "prod/k", key);
        assert_eq!(name("env:/dev/prod/k"), Some("dev"));
        for other in
            ["env:/dev/prod/k.tflock", "env:/dev/other", "env:/a/b/prod/k", "env:/prod/k", "env://prod/k", "dev/prod/k", "env:/devprod/k"]
        {
            assert_eq!(name(other), None, "{other}");
        }
    }

    #[test]
    fn only_generations_are_taken_for_such() {
        for serial in [0, 42, u64::MAX] {
            assert_eq!(generation("k", &key("k", &Item::Generation(serial))), Some(serial));
        }
        for other in [
            "k.generations/42.tfstate",
            "k.generations/history.json",
            "k.generations/0000000000000000004x.tfstate",
            "k.generations/99999999999999999999.tfstate",
            "x",
        ] {
            assert_eq!(generation("k", other), None, "{other}");
        }
    }
}
