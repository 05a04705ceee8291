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
    // Lines with their ends: whether the last one has any is a difference, too.
    let (a, b): (Vec<&str>, Vec<&str>) = (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
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
        let head = format!("@@ -{} +{} @@", place_of(old_line, old_count), place_of(new_line, new_count));
        out.push_str(&theme.paint(Tone::Read, &head));
        out.push('\n');
        for edit in hunk {
            let line = match edit {
                Edit::Keep(i, _) | Edit::Drop(i) => a[*i],
                Edit::Insert(j) => b[*j],
            };
            let text = line.strip_suffix('\n').unwrap_or(line);
            out.push_str(&match edit {
                Edit::Keep(..) => format!(" {text}"),
                Edit::Drop(_) => theme.paint(Tone::Remove, &format!("-{text}")),
                Edit::Insert(_) => theme.paint(Tone::Add, &format!("+{text}")),
            });
            out.push_str(if line.ends_with('\n') { "\n" } else { "\n\\ No newline at end of file\n" });
        }
        (old_line, new_line, at) = (old_line + old_count, new_line + new_count, at + length);
    }
    out
}

/// Where a hunk is, as patches have it: one line by its number alone, none by that of the line before.
fn place_of(line: usize, count: usize) -> String {
    match count {
        0 => format!("{},0", line - 1),
        1 => line.to_string(),
        _ => format!("{line},{count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hunk_of_one_line_has_no_count_and_a_missing_line_end_is_told() {
        let check = |before: &str, after: &str, hunk: &str| {
            assert_eq!(unified(before, after, "f", &Theme::plain()), format!("--- old/f\n+++ new/f\n{hunk}"));
        };
        let no_end = "\\ No newline at end of file\n";
        check("a=1\n", "a = 1\n", "@@ -1 +1 @@\n-a=1\n+a = 1\n");
        check("a=1", "a = 1", &format!("@@ -1 +1 @@\n-a=1\n{no_end}+a = 1\n{no_end}"));
        check("a\nb", "c\nb", &format!("@@ -1,2 +1,2 @@\n-a\n+c\n b\n{no_end}"));
        check("", "a\n", "@@ -0,0 +1 @@\n+a\n");
    }

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
