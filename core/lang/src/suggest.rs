//! "Did you mean", and lists of names, as messages have them.

use karmaform_model::nearest;

/// The hint with the closest of some names, if one is close.
pub(crate) fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).map(|found| format!("Did you mean \"{found}\"?"))
}

/// A list for a message: `"a", "b"`; cut where it gets long.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 12;
    let names: Vec<_> = names.into_iter().collect();
    let shown: Vec<_> = names.iter().take(MOST).map(|n| format!("\"{n}\"")).collect();
    let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed() {
        assert_eq!(listed(["a", "b"]), "\"a\", \"b\"");
        assert_eq!(hint("pth", ["path"]).as_deref(), Some("Did you mean \"path\"?"));
    }
}
