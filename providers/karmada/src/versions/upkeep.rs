//! How long versions of Karmada and of Kubernetes get patches.

use super::{MINORS, Version, number};

/// So many of the newest minor versions of Karmada get patches. Source: <https://karmada.io/docs/releases>, and the tags.
const KEPT: usize = 3;

/// The day on which patches of a minor version of Kubernetes end, 00:00 UTC, in seconds since 1970. Of those before they have ended, of those
/// after nothing is known. Source: <https://kubernetes.io/releases/patch-releases/>.
const KUBE: &[(u32, i64)] = &[
    (31, 1_762_819_200), // 2025-11-11
    (32, 1_772_236_800), // 2026-02-28
    (33, 1_782_604_800), // 2026-06-28
    (34, 1_793_059_200), // 2026-10-27
    (35, 1_803_772_800), // 2027-02-28
];

/// True if a version of Karmada gets none any more, going by the newest that is known.
pub(crate) fn is_over(version: &Version) -> bool {
    MINORS.iter().rev().nth(KEPT - 1).is_some_and(|oldest| version.minor < oldest.number)
}

/// When the patches of a version of Kubernetes (`1.34.1`) end: `Some(None)` if they have, and it is not known when; `None` if nothing is known.
pub(crate) fn kube_end(version: &str) -> Option<Option<i64>> {
    let minor = number(version.strip_prefix("1.")?.split('.').next()?)?;
    let oldest = KUBE.first().map_or(0, |(minor, _)| *minor);
    if minor < oldest { Some(None) } else { KUBE.iter().find(|(known, _)| *known == minor).map(|(_, end)| Some(*end)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_end() {
        let over = |text: &str| is_over(&Version::parse(text).unwrap());
        assert_eq!(["1.15.0", "1.16.8", "1.17.0", "1.19.0"].map(over), [true, true, false, false]);
        assert_eq!(kube_end("1.20.2"), Some(None));
        assert_eq!(kube_end("1.34.1"), Some(Some(1_793_059_200)));
        assert_eq!((kube_end("1.36.2"), kube_end("2.0.0"), kube_end("x")), (None, None, None));
    }
}
