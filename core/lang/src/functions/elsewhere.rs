//! Functions that Terraform has and karmaform has not: why, and what to do instead. Whoever brings a configuration is told by name.

/// A function that is not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// `convert`
    pub name: &'static str,
    /// Why it is not here; a sentence without its full stop.
    pub why: &'static str,
    /// What to do instead; a whole sentence.
    pub instead: &'static str,
}

/// The list, sorted by name.
pub const ELSEWHERE: &[Elsewhere] = &[Elsewhere {
    name: "convert",
    why: "a type is no value",
    instead: "Use tostring(), tonumber(), tobool(), tolist(), toset() or tomap(), or a variable with a type.",
}];

/// The entry of a name, if Terraform has such a function and karmaform has not.
pub(crate) fn elsewhere(name: &str) -> Option<&'static Elsewhere> {
    ELSEWHERE.iter().find(|e| e.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_here_is_not_elsewhere() {
        for entry in ELSEWHERE {
            assert!(!super::super::names().contains(&entry.name), "{} is here", entry.name);
            assert!(entry.instead.ends_with('.') && !entry.why.ends_with('.'), "{}", entry.name);
        }
        assert!(ELSEWHERE.is_sorted_by_key(|e| e.name));
        assert_eq!(elsewhere("convert").map(|e| e.name), Some("convert"));
        assert_eq!(elsewhere("upper"), None);
    }
}
