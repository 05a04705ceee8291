//! Two sequences side by side: what stayed, what went, what came. Knows lines and places, not what they mean.

use super::style::{Theme, Tone};

/// Lists longer than this (in pairs to compare) are not aligned element by element.
pub(crate) const LARGEST_ALIGNMENT: usize = 4_000_000;
/// Unchanged lines of a text that stay visible around a change.
pub(crate) const TEXT_CONTEXT: usize = 3;

/// One step from an old sequence to a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// In both, at these places.
    Keep(usize, usize),
    /// Only in the old one.
    Drop(usize),
    /// Only in the new one.
    Insert(usize),
}

/// True for what went and what came.
pub(crate) fn is_change(edit: &Edit) -> bool {
    !matches!(edit, Edit::Keep(..))
}

/// Which edits to show: changes, and what is near them.
pub(crate) fn near_changes(edits: &[Edit], context: usize, is_change: impl Fn(&Edit) -> bool) -> Vec<bool> {
    let mut shown: Vec<bool> = edits.iter().map(is_change).collect();
    let changes: Vec<usize> = shown.iter().enumerate().filter(|(_, c)| **c).map(|(i, _)| i).collect();
    for at in changes {
        for near in at.saturating_sub(context)..(at + context + 1).min(shown.len()) {
            shown[near] = true;
        }
    }
    shown
}

/// The longest common subsequence as edits; drops before inserts. Of several as long it is the one that Terraform takes, so that plans read alike.
pub(crate) fn align(old: usize, new: usize, equal: impl Fn(usize, usize) -> bool) -> Vec<Edit> {
    if old.saturating_mul(new) <= LARGEST_ALIGNMENT {
        return edits(old, new, 0, &common(old, new, &equal), &equal);
    }
    let head = (0..old.min(new)).take_while(|i| equal(*i, *i)).count();
    let tail = (0..old.min(new) - head).take_while(|i| equal(old - 1 - i, new - 1 - i)).count();
    let (rows, columns) = (old - head - tail, new - head - tail);
    let mut all: Vec<Edit> = (0..head).map(|i| Edit::Keep(i, i)).collect();
    let inner = |i: usize, j: usize| equal(head + i, head + j);
    let is_small = rows.saturating_mul(columns) <= LARGEST_ALIGNMENT;
    let kept = if is_small { common(rows, columns, &inner) } else { Vec::new() };
    all.extend(edits(rows, columns, head, &kept, &inner));
    all.extend((0..tail).map(|i| Edit::Keep(old - tail + i, new - tail + i)));
    all
}

/// A longest common subsequence, as pairs of places.
fn common(old: usize, new: usize, equal: &impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let mut longest = vec![vec![0u32; new + 1]; old + 1];
    for i in 0..old {
        for j in 0..new {
            longest[i + 1][j + 1] = if equal(i, j) { longest[i][j] + 1 } else { longest[i][j + 1].max(longest[i + 1][j]) };
        }
    }
    let mut pairs = Vec::new();
    let (mut i, mut j) = (old, new);
    while i > 0 && j > 0 {
        if equal(i - 1, j - 1) {
            (i, j) = (i - 1, j - 1);
            pairs.push((i, j));
        } else if longest[i - 1][j] > longest[i][j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    pairs.reverse();
    pairs
}

/// The edits that keep these, each as early as it comes.
fn edits(old: usize, new: usize, offset: usize, kept: &[(usize, usize)], equal: &impl Fn(usize, usize) -> bool) -> Vec<Edit> {
    let mut all = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (a, b) in kept {
        while i < *a && !equal(i, *b) {
            all.push(Edit::Drop(offset + i));
            i += 1;
        }
        while j < *b && !equal(*a, j) {
            all.push(Edit::Insert(offset + j));
            j += 1;
        }
        all.push(Edit::Keep(offset + i, offset + j));
        (i, j) = (i + 1, j + 1);
    }
    all.extend((i..old).map(|i| Edit::Drop(offset + i)));
    all.extend((j..new).map(|j| Edit::Insert(offset + j)));
    all
}

/// Two texts as a unified diff.
pub(crate) fn unified(before: &str, after: &str, name: &str, theme: &Theme) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let edits = align(a.len(), b.len(), |i, j| a[i] == b[j]);
    let shown = near_changes(&edits, TEXT_CONTEXT, is_change);
    let mut out = format!("--- old/{name}\n+++ new/{name}\n");
    let (mut old_line, mut new_line, mut at) = (1, 1, 0);
    while at < edits.len() {
        if !shown[at] {
            (old_line, new_line, at) = (old_line + 1, new_line + 1, at + 1);
            continue;
        }
        let length = shown[at..].iter().take_while(|s| **s).count();
        let hunk = &edits[at..at + length];
        let old_count = hunk.iter().filter(|e| !matches!(e, Edit::Insert(_))).count();
        let new_count = hunk.iter().filter(|e| !matches!(e, Edit::Drop(_))).count();
        out.push_str(&theme.paint(Tone::Read, &format!("@@ -{old_line},{old_count} +{new_line},{new_count} @@")));
        out.push('\n');
        for edit in hunk {
            let line = match edit {
                Edit::Keep(i, _) => format!(" {}", a[*i]),
                Edit::Drop(i) => theme.paint(Tone::Remove, &format!("-{}", a[*i])),
                Edit::Insert(j) => theme.paint(Tone::Add, &format!("+{}", b[*j])),
            };
            out.push_str(&line);
            out.push('\n');
        }
        (old_line, new_line, at) = (old_line + old_count, new_line + new_count, at + length);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unified_diff_has_its_line_numbers() {
        let before: String = (1..=10).map(|i| format!("l{i}\n")).collect();
        let after = before.replace("l9", "new");
        assert_eq!(
            unified(&before, &after, "f", &Theme::plain()),
            "--- old/f\n+++ new/f\n@@ -6,5 +6,5 @@\n l6\n l7\n l8\n-l9\n+new\n l10\n"
        );
    }

    #[test]
    fn edits_rebuild_the_new_sequence() {
        let (a, b) = ("abcabba", "cbabac");
        let (x, y): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let rebuilt: String = align(x.len(), y.len(), |i, j| x[i] == y[j])
            .into_iter()
            .filter_map(|e| match e {
                Edit::Keep(_, j) | Edit::Insert(j) => Some(y[j]),
                Edit::Drop(_) => None,
            })
            .collect();
        assert_eq!(rebuilt, b);
    }
}
