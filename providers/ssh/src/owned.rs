//! The ownership file of a host: which things there are karmaform's. Written by the functions in `script/prelude.sh`.

use std::collections::BTreeMap;

/// Where a host keeps what it remembers, but for users who can't write there.
pub(crate) const PLACE: &str = "/var/lib/karmaform";

/// The kind of directories that were only made because something had to be put into them.
pub(crate) const PARENT: &str = "parent";

/// The kind of directories that were there, empty, before they became ours to fill; they are never removed.
pub(crate) const ADOPTED: &str = "adopted";

/// The kind of directories that something is on its way to or from; the note says which the other one is, and after a tab what unit uses it.
pub(crate) const MOVING: &str = "moving";

/// The kind of places that something was brought away from; the note says where it is, and after a tab what unit uses it.
pub(crate) const MOVED: &str = "moved";

/// Its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owned(BTreeMap<(String, String), String>);

impl Owned {
    /// `kind<TAB>identity<TAB>note`; the note may be empty, and is for scripts on the host but for those of `moving` and `moved`. Lines that look otherwise are left alone.
    pub(crate) fn parse(text: &str) -> Self {
        let line = |l: &str| {
            let mut fields = l.splitn(3, '\t');
            Some(((fields.next()?.to_owned(), fields.next()?.to_owned()), fields.next().unwrap_or_default().to_owned()))
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// The names of all of a kind.
    pub(crate) fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.keys().filter(move |(k, _)| k == kind).map(|(_, name)| name.as_str())
    }

    /// True if it is ours.
    pub(crate) fn has(&self, kind: &str, identity: &str) -> bool {
        self.0.contains_key(&(kind.to_owned(), identity.to_owned()))
    }

    /// What is noted of it; `None`: nothing.
    pub(crate) fn note(&self, kind: &str, identity: &str) -> Option<&str> {
        self.0.get(&(kind.to_owned(), identity.to_owned())).map(String::as_str).filter(|note| !note.is_empty())
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
        assert_eq!((owned.note("ssh_user", "etcd"), owned.note("ssh_file", "/a b")), (Some("said of it"), None));
    }
}
