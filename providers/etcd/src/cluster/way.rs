//! The versions between two: etcd goes from one minor version to the next, and leaves some only from a patch that knows how (facts of etcd, "Rolling upgrade
//! and downgrade"; etcd's upgrade and downgrade guides). One plan goes to the first of them, and leaves the rest to those after it.

use std::cmp::Ordering;

use crate::versions::Version;

/// The lowest minor version that members can be told to go down to: from 3.6 to it.
pub(crate) const FIRST_WAY_DOWN: u32 = 5;

/// How the versions on the way are said.
pub(crate) const SOURCES: &str =
    "Where `through` says where each of them is, plans go that way by themselves, from the version that was applied last.";

/// Patches of a minor version that one above it does not take over from, and that don't take over from it.
pub(crate) fn is_too_old(above: u32, version: &Version) -> bool {
    floor(above).is_some_and(|floor| version.minor + 1 == above && version.patch < floor)
}

/// The lowest patch of the version before that this minor version goes together with.
pub(crate) fn floor(minor: u32) -> Option<u32> {
    Version { text: String::new(), minor, patch: 0 }.floor()
}

/// The versions between two, in their order, both left out. Of each minor version that one of `known` that is newest, or else the oldest patch that does.
/// Empty: it goes at once, or there is no way.
pub(crate) fn between(from: &Version, to: &Version, known: &[Version]) -> Vec<Version> {
    let of = |minor: u32, floor: u32| {
        let best = known.iter().filter(|v| v.minor == minor && v.patch >= floor).max_by_key(|v| v.patch);
        best.cloned().unwrap_or_else(|| Version { text: format!("3.{minor}.{floor}"), minor, patch: floor })
    };
    match to.minor.cmp(&from.minor) {
        Ordering::Equal => Vec::new(),
        Ordering::Greater => (from.minor..to.minor)
            .filter_map(|minor| {
                let floor = floor(minor + 1).unwrap_or(0);
                (minor != from.minor || from.patch < floor).then(|| of(minor, floor))
            })
            .collect(),
        Ordering::Less if to.minor < FIRST_WAY_DOWN => Vec::new(),
        Ordering::Less => (to.minor..from.minor)
            .rev()
            .filter_map(|minor| {
                let floor = floor(minor + 1).unwrap_or(0);
                (minor != to.minor || to.patch < floor).then(|| of(minor, floor))
            })
            .collect(),
    }
}

/// The same in words, with the last of them: the newest of each minor version, as that is what etcd's guides want.
pub(crate) fn steps(from: &Version, to: &Version) -> Vec<String> {
    let newest = |version: Version| format!("the newest 3.{}", version.minor);
    between(from, to, &[]).into_iter().map(newest).chain([to.text.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn ways_lead_over_what_etcd_asks_for() {
        for (from, to, known, expected) in [
            ("3.5.16", "3.5.33", "", ""),
            ("3.5.33", "3.6.14", "", ""),
            ("3.4.23", "3.5.33", "", ""),
            ("3.5.16", "3.6.14", "", "3.5.32"),
            ("3.5.16", "3.6.14", "3.5.33 3.5.32 3.5.3", "3.5.33"),
            ("3.4.23", "3.7.1", "", "3.5.32 3.6.11"),
            ("3.5.33", "3.7.1", "3.6.14", "3.6.14"),
            ("3.6.14", "3.5.33", "", ""),
            ("3.6.14", "3.5.16", "", "3.5.32"),
            ("3.7.1", "3.5.33", "", "3.6.11"),
            ("3.7.1", "3.6.3", "", "3.6.11"),
            ("3.6.14", "3.4.23", "", ""),
        ] {
            let known: Vec<Version> = known.split_whitespace().map(version).collect();
            let way: Vec<String> = between(&version(from), &version(to), &known).into_iter().map(|v| v.text).collect();
            assert_eq!(way.join(" "), expected, "{from} to {to}");
        }
    }
}
