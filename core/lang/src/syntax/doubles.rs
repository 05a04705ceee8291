//! Keys that stand in an object twice, which the language accepts and the parser does not: all of a text get other names in one pass, of the
//! same length, as what they are is read from the text as written.

use std::collections::BTreeSet;
use std::ops::Range;

use super::found::Entries;
use super::scan::{enclosed_length, identifier_length, objects};

/// Of such letters made-up names are.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Renames in a copy of a text, in which other things may be patched already, what is written as a key before it in its object is, and notes
/// where. `at` is where the parser stopped: what is around it is an object for certain. True if what stands there has another name now.
pub(super) fn rename(text: &str, copy: &mut String, at: usize, is_template: bool, renamed: &mut BTreeSet<usize>) -> bool {
    let mut changes = Vec::new();
    for object in objects(text, is_template) {
        let keys = keys(text, &object);
        if object.is_value || keys.iter().any(|key| key.start == at) {
            changes.extend(doubles(copy, &keys));
        }
    }
    let has_other = changes.iter().any(|(key, _)| key.start == at);
    for (key, name) in changes {
        renamed.insert(key.start);
        copy.replace_range(key, &name);
    }
    has_other
}

/// So many letters, others with each number as long as there are any.
pub(super) fn name(length: usize, mut number: usize) -> String {
    let mut letters = vec!['a'; length];
    for letter in letters.iter_mut().rev() {
        *letter = char::from(LETTERS[number % LETTERS.len()]);
        number /= LETTERS.len();
    }
    letters.into_iter().collect()
}

fn keys(text: &str, object: &Entries) -> Vec<Range<usize>> {
    let ends = object.starts.iter().skip(1).chain([&object.end]);
    object.starts.iter().zip(ends).filter_map(|(start, end)| key(text, *start..*end)).collect()
}

/// A key that is one word, or stands in quotes or brackets, at the start of an entry.
fn key(text: &str, entry: Range<usize>) -> Option<Range<usize>> {
    let mut rest = text.get(entry.clone())?.trim_start();
    while let Some(comment) = rest.strip_prefix("/*") {
        rest = comment.split_once("*/")?.1.trim_start();
    }
    let start = entry.end - rest.len();
    let length = if rest.starts_with(['(', '"']) { enclosed_length(rest)? } else { identifier_length(rest) };
    let behind = rest.get(length..)?.trim_start();
    let is_key = length > 0 && behind.starts_with(['=', ':']) && !behind.starts_with("==") && !behind.starts_with("::");
    is_key.then_some(start..start + length)
}

/// All but the first of what is written the same, with the names that they get.
fn doubles(text: &str, keys: &[Range<usize>]) -> Vec<(Range<usize>, String)> {
    let mut taken: BTreeSet<String> = keys.iter().map(|key| text[key.clone()].to_owned()).collect();
    let (mut seen, mut number, mut changes) = (BTreeSet::new(), 0, Vec::new());
    for key in keys {
        let written = &text[key.clone()];
        if seen.insert(written) {
            continue;
        }
        // After as many as are taken one is free, unless no more are so short.
        let free = (0..=taken.len()).find_map(|_| {
            number += 1;
            Some(like(written, number)).filter(|name| !taken.contains(name))
        });
        if let Some(name) = free {
            taken.insert(name.clone());
            changes.push((key.clone(), name));
        }
    }
    changes
}

/// What can stand in the place of a key.
fn like(written: &str, number: usize) -> String {
    let length = written.len();
    if length > 2 && written.starts_with(['(', '"']) { format!("\"{}\"", name(length - 2, number)) } else { name(length, number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, at: usize, expected: &str) {
        let (mut copy, mut renamed) = (text.to_owned(), BTreeSet::new());
        let has_other = rename(text, &mut copy, at, false, &mut renamed);
        assert_eq!(copy, expected, "{text}");
        assert_eq!(has_other, renamed.contains(&at), "{text}");
    }

    #[test]
    fn all_doubles_of_a_text_are_renamed_at_once() {
        check("a = { b = 1, b = 2 }\n", 13, "a = { b = 1, c = 2 }\n");
        check(
            "a = {\n b = 1 # c\n /* d */ b : {x = 1, y = 2, x = 3}\n}\n",
            26,
            "a = {\n b = 1 # c\n /* d */ c : {x = 1, y = 2, b = 3}\n}\n",
        );
        check("a = { \"k\" = 1, \"k\" = 2, (k) = 3, (k) = 4 }\n", 0, "a = { \"k\" = 1, \"b\" = 2, (k) = 3, \"c\" = 4 }\n");
        check("a = { 日 = 1, 日 = 2 }\n", 15, "a = { 日 = 1, aab = 2 }\n");
        check("a = { \"\" = 1, \"\" = 2 }\n", 14, "a = { \"\" = 1, ab = 2 }\n");
    }

    #[test]
    fn what_is_no_double_stays() {
        for text in
            ["b {\n  a = 1\n  a = 2\n}\n", "a = { b = 1, c = { b = 1 } }\n", "a = {for b in c : b => 1}\n", "a = { b(1) = 1, b(2) = 2 }\n"]
        {
            check(text, 0, text);
        }
    }
}
