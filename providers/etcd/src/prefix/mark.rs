//! Marks: keys that say whose a prefix is. All are below one prefix of their own, so that one look tells all of them.
//!
//! Pure: it knows keys and texts, and no client.

use serde_json::{Value as Json, json};

/// Where marks are.
pub(crate) const ROOT: &str = "/karmaform.io/prefixes";

/// Whose a prefix is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) prefix: String,
    /// In words.
    pub(crate) owner: String,
    /// What tells the owner from others.
    pub(crate) uid: String,
    /// The keys are a copy that does not count yet.
    pub(crate) is_copy: bool,
    /// Which move brought the keys here, or is about to; empty if none did. Ids of clusters would not do: those of clusters of one member that were
    /// started with the same words are the same, and a mark that was restored from a snapshot is the same, too.
    pub(crate) came_by: String,
    /// Of a copy: the other etcd's revision when all of it was compared last; 0 while it never was.
    pub(crate) compared_at: i64,
    /// Which move took away what counts; empty as long as none did.
    pub(crate) left_by: String,
    /// The revision it was last written at; 0 for one that is not written yet.
    pub(crate) revision: i64,
}

/// The key of the mark of a prefix.
pub(crate) fn key(prefix: &str) -> String {
    format!("{ROOT}{prefix}")
}

impl Mark {
    /// As it is written.
    pub(crate) fn value(&self) -> String {
        let mut json = json!({ "owner": self.owner, "uid": self.uid });
        for (name, id) in [("came_by", &self.came_by), ("left_by", &self.left_by)].into_iter().filter(|(_, id)| !id.is_empty()) {
            json[name] = id.as_str().into();
        }
        if self.is_copy {
            json["copy"] = true.into();
            json["compared_at"] = self.compared_at.into();
        }
        json.to_string()
    }

    /// True if what is below the prefix is what counts, as far as its mark says it.
    pub(crate) fn counts(&self) -> bool {
        !self.is_copy && self.left_by.is_empty()
    }

    /// Reads one. What is not of our making is a mark of somebody all the same.
    pub(crate) fn read(key: &[u8], value: &[u8], revision: i64) -> Option<Self> {
        let prefix = std::str::from_utf8(key).ok()?.strip_prefix(ROOT)?.to_owned();
        let json: Json = serde_json::from_slice(value).unwrap_or_default();
        let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        let is_copy = json["copy"].as_bool().unwrap_or(false);
        let (came_by, left_by) = (text("came_by"), text("left_by"));
        let compared_at = json["compared_at"].as_i64().unwrap_or(0);
        Some(Self { prefix, owner: text("owner"), uid: text("uid"), is_copy, came_by, compared_at, left_by, revision })
    }

    /// Its owner for a message.
    pub(crate) fn whose(&self) -> String {
        if self.owner.is_empty() { "somebody whom its mark does not name".to_owned() } else { format!("\"{}\"", self.owner) }
    }
}

/// All keys below a prefix: from the first (included) to the second (not included). Source: kube-apiserver ends its prefix with "/"
/// (`storage/etcd3/store.go`), and "0" is what follows that.
pub(crate) fn range(prefix: &str) -> (String, String) {
    (format!("{prefix}/"), format!("{prefix}0"))
}

/// True if the keys of one prefix are among those of the other.
pub(crate) fn overlap(a: &str, b: &str) -> bool {
    let is_below = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
    is_below(a, b) || is_below(b, a)
}

/// The prefixes above this one.
pub(crate) fn above(prefix: &str) -> Vec<&str> {
    prefix.match_indices('/').map(|(at, _)| &prefix[..at]).filter(|p| !p.is_empty()).collect()
}

/// Why this is no prefix.
pub(crate) fn problem(prefix: &str) -> Option<&'static str> {
    let Some(rest) = prefix.strip_prefix('/') else { return Some("does not start with \"/\"") };
    if rest.split('/').any(|part| matches!(part, "" | "." | "..")) {
        // kube-apiserver would clean it up, and what it then uses would be another one.
        return Some("ends with \"/\", or has an empty part, \".\" or \"..\" in it");
    }
    if prefix.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("has a blank in it");
    }
    (prefix == "/karmaform.io" || prefix.starts_with("/karmaform.io/")).then_some("is where karmaform itself keeps notes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_nest_by_their_parts() {
        for (a, b, expected) in [
            ("/registry", "/registry/a", true),
            ("/registry/a/b", "/registry", true),
            ("/registry", "/registry2", false),
            ("/a/b", "/a/c", false),
            ("/a", "/a", false),
        ] {
            assert_eq!(overlap(a, b), expected, "{a} {b}");
        }
        assert_eq!(above("/a/b/c"), ["/a", "/a/b"]);
        assert!(above("/a").is_empty());
    }

    #[test]
    fn a_prefix_is_what_everybody_reads_the_same_way() {
        for good in ["/registry", "/karmada/prod-1", "/a.b/c_d"] {
            assert_eq!(problem(good), None, "{good}");
        }
        for bad in ["registry", "", "/", "/a/", "//a", "/a//b", "/a/../b", "/./a", "/a b", "/a\tb", "/karmaform.io/x"] {
            assert!(problem(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn marks_come_back() {
        let text = |text: &str| text.to_owned();
        let plain = Mark {
            prefix: text("/a/b"),
            owner: text("ns/\"x\""),
            uid: text("u"),
            is_copy: false,
            came_by: String::new(),
            compared_at: 0,
            left_by: String::new(),
            revision: 7,
        };
        let copy = Mark { is_copy: true, came_by: text("m1"), compared_at: 9, ..plain.clone() };
        let came = Mark { is_copy: false, compared_at: 0, ..copy.clone() };
        let left = Mark { left_by: text("m2"), ..came.clone() };
        for mark in [&plain, &copy, &came, &left] {
            assert_eq!(Mark::read(key("/a/b").as_bytes(), mark.value().as_bytes(), 7).as_ref(), Some(mark));
        }
        assert_eq!([&plain, &copy, &came, &left].map(Mark::counts), [true, false, true, false]);
        assert_eq!(Mark::read(b"/karmaform.io/prefixes/x", b"\xff", 1).map(|m| m.uid), Some(String::new()));
        assert_eq!(Mark::read(b"/other/x", b"{}", 1), None);
    }
}
