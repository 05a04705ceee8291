//! What a user may have meant, where names of the outside world are written: settings, flags, feature gates.

/// The known name that differs least, if it differs little: in a quarter of its letters at the most.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().map(|n| (distance(name, n), n)).min().filter(|(d, n)| *d <= n.len() / 4).map(|(_, n)| n)
}

/// How many letters to add, drop or change.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted_and_only_near_names_are_found() {
        assert_eq!((distance("", "abc"), distance("kitten", "sitting"), distance("same", "same")), (3, 3, 0));
        let known = ["snapshot-count", "max-txn-ops"];
        assert_eq!(nearest("snapshot-cont", known), Some("snapshot-count"));
        assert_eq!(nearest("colour", known), None);
    }
}
