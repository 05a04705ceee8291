//! "Did you mean": the closest of some names.

/// The candidate closest to `name`, if one is close.
pub(crate) fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Enough for a typo or two, too little for a different word.
    let limit = (name.chars().count() / 3).min(3);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(d, _)| limit > 0 && *d <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The hint for it.
pub(crate) fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(name, candidates).map(|found| format!("Did you mean \"{found}\"?"))
}

/// A list for a message: `"a", "b"`; cut where it gets long.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 12;
    let names: Vec<_> = names.into_iter().collect();
    let shown: Vec<_> = names.iter().take(MOST).map(|n| format!("\"{n}\"")).collect();
    let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// How many letters to insert, delete, replace or swap with the next.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<_>, Vec<_>) = (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    if a.len().abs_diff(b.len()) > 3 {
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
    fn typos_are_found_and_other_words_are_not() {
        let names = ["content", "path", "owner", "group", "mode"];
        for (name, expected) in
            [("pth", Some("path")), ("contnet", Some("content")), ("Owner", Some("owner")), ("x", None), ("replicas", None)]
        {
            assert_eq!(closest(name, names), expected, "{name}");
        }
        assert_eq!(listed(["a", "b"]), "\"a\", \"b\"");
    }
}
