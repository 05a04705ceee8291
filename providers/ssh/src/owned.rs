//! The ownership file of a host: which things there are karmaform's. Written by the functions in `script/prelude.sh`.

use std::collections::BTreeSet;

/// The kind of directories that were only made because something had to be put into them.
pub(crate) const PARENT: &str = "parent";

/// The kind of directories that were there, empty, before they became ours to fill; they are never removed.
pub(crate) const ADOPTED: &str = "adopted";

/// Its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owned(BTreeSet<(String, String)>);

impl Owned {
    /// `kind<TAB>identity<TAB>note`; the note may be empty, and is for scripts on the host. Lines that look otherwise are left alone.
    pub(crate) fn parse(text: &str) -> Self {
        let line = |l: &str| {
            let mut fields = l.split('\t');
            Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// The names of all of a kind.
    pub(crate) fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == kind).map(|(_, name)| name.as_str())
    }

    /// True if it is ours.
    pub(crate) fn has(&self, kind: &str, identity: &str) -> bool {
        self.0.contains(&(kind.to_owned(), identity.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let owned = Owned::parse("ssh_file\t/a b\t\nssh_user\tetcd\tsaid of it\nrubbish\n");
        assert!(owned.has("ssh_file", "/a b") && owned.has("ssh_user", "etcd"));
        assert!(!owned.has("ssh_user", "/a b"));
    }
}
