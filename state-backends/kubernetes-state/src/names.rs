//! What things are called, as Terraform names them.

use karmaform_model::{Item, Serial};

/// The Secret of an item, or the Lease of the lock.
pub(crate) fn name(workspace: &str, suffix: &str, item: &Item) -> String {
    let state = format!("tfstate-{workspace}-{suffix}");
    match item {
        Item::State => state,
        Item::Lock => format!("lock-{state}"),
        Item::Generation(serial) => format!("{state}-generation-{serial:020}"),
        Item::History => format!("{state}-history"),
        Item::Scratch(name) => format!("{state}-probe-{name}"),
    }
}

/// The serial in the name of a generation; `None` for anything else.
pub(crate) fn generation(workspace: &str, suffix: &str, name: &str) -> Option<Serial> {
    let digits = name.strip_prefix(&format!("tfstate-{workspace}-{suffix}-generation-"))?;
    (digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// The workspace whose state a Secret is, `default` aside; `None` for anything else.
pub(crate) fn workspace<'a>(suffix: &str, name: &'a str) -> Option<&'a str> {
    let workspace = name.strip_prefix("tfstate-")?.strip_suffix(suffix)?.strip_suffix('-')?;
    (workspace != "default" && !workspace.is_empty()).then_some(workspace)
}

/// A part of a large value.
pub(crate) fn part(name: &str, id: &str, number: usize) -> String {
    format!("{name}-{id}-part-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_terraforms() {
        let named = |item| name("default", "prod", &item);
        assert_eq!(named(Item::State), "tfstate-default-prod");
        assert_eq!(named(Item::Lock), "lock-tfstate-default-prod");
        assert_eq!(generation("default", "prod", &named(Item::Generation(7))), Some(7));
        assert_eq!(generation("default", "prod", &part(&named(Item::Generation(7)), "ab", 1)), None);
        let of = |name: &str| workspace("prod", name).map(str::to_owned);
        assert_eq!(of("tfstate-dev-2-prod"), Some("dev-2".to_owned()));
        assert_eq!((of("tfstate-default-prod"), of("tfstate-dev-prod-part-1"), of("tfstate-prod")), (None, None, None));
    }
}
