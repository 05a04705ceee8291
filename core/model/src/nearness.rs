//! "Did you mean": the name that a user may have meant, or which there are.

/// The known name that is closest to `name`, if one is close: in a third of its letters at the most, and in three. Capitals do not matter.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Enough for a typo or two, too little for a different word.
    let limit = (name.chars().count() / 3).min(FARTHEST);
    known
        .into_iter()
        .filter(|candidate| *candidate != name)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(d, _)| limit > 0 && *d <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// A list for a message: `"a", "b"`; cut where it gets long.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 12;
    let names: Vec<_> = names.into_iter().collect();
    let shown: Vec<_> = names.iter().take(MOST).map(|n| format!("\"{n}\"")).collect();
    let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// More letters than these are another word.
const FARTHEST: usize = 3;

/// How many letters to insert, delete, replace or swap with the next.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<_>, Vec<_>) = (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    if a.len().abs_diff(b.len()) > FARTHEST {
        return usize::MAX;
    }
    let mut before_last: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_and_not_all_of_many() {
        assert_eq!(listed(["a", "b"]), "\"a\", \"b\"");
        assert!(listed(["a"; 13]).ends_with(", \"a\" and 1 more"));
    }

    #[test]
    fn typos_are_found_and_other_words_are_not() {
        assert_eq!((distance("abc", ""), distance("kitten", "sitting"), distance("same", "same"), distance("ab", "ba")), (3, 3, 0, 1));
        let names = ["content", "path", "owner", "group", "mode", "snapshot-count", "max-txn-ops"];
        for (name, expected) in [
            ("pth", Some("path")),
            ("contnet", Some("content")),
            ("Owner", Some("owner")),
            ("snapshot-cont", Some("snapshot-count")),
            ("x", None),
            ("replicas", None),
            ("colour", None),
            ("path", None),
        ] {
            assert_eq!(nearest(name, names), expected, "{name}");
        }
    }
}
