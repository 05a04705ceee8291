//! "Did you mean", and lists of names, as messages have them.

pub(crate) use karmaform_model::listed;
use karmaform_model::nearest;

/// The hint with the closest of some names, if one is close.
pub(crate) fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).map(|found| format!("Did you mean \"{found}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_close_is_named() {
        assert_eq!(hint("pth", ["path"]).as_deref(), Some("Did you mean \"path\"?"));
    }
}
