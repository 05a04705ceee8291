//! Things that the language accepts and the parser does not: a key written twice in an object, numbers beyond a float, some ends of heredocs.
//!
//! The text is patched without changing its length and parsed again; lowering reads names and numbers from the text as written.

use std::collections::BTreeSet;
use std::ops::Range;

use hcl_edit::parser::{self, Error};
use hcl_edit::structure::Body;

use super::heredocs::with_clear_ends;
use super::numbers::number_length;

/// Patches per item; each costs one more parse.
const MOST_PATCHES: usize = 64;

/// A parsed item.
pub(super) struct Patched<T> {
    pub tree: T,
    /// Where keys of objects were renamed.
    pub renamed: BTreeSet<usize>,
}

/// Parses a body, with these ranges blanked out: the insides of objects that are parsed in pieces.
pub(super) fn parse_body(text: &str, blank: &[Range<usize>]) -> Result<Patched<Body>, Error> {
    let text = with_clear_ends(text, false);
    if blank.is_empty() {
        return parse_patching(&text, parser::parse_body);
    }
    let mut copy = text.into_owned();
    for range in blank {
        copy.replace_range(range.clone(), &" ".repeat(range.len()));
    }
    parse_patching(&copy, parser::parse_body)
}

/// Parses an expression.
pub(super) fn parse_expression(text: &str) -> Result<Patched<hcl_edit::expr::Expression>, Error> {
    parse_patching(&with_clear_ends(text, false), parser::parse_expr)
}

/// Parses a template without quotes.
pub(super) fn parse_template(text: &str) -> Result<Patched<hcl_edit::template::Template>, Error> {
    parse_patching(&with_clear_ends(text, true), parser::parse_template)
}

fn parse_patching<T>(text: &str, parse: fn(&str) -> Result<T, Error>) -> Result<Patched<T>, Error> {
    let mut renamed = BTreeSet::new();
    let first = match parse(text) {
        Ok(tree) => return Ok(Patched { tree, renamed }),
        Err(error) => error,
    };
    let mut copy = text.to_owned();
    let mut error = first.clone();
    for attempt in 0..MOST_PATCHES {
        let at = error.location().offset();
        let patched = if error.message().contains("redefined object key") {
            renamed.insert(at);
            rename_key(&mut copy, at, attempt)
        } else {
            tame_number(&mut copy, at)
        };
        if !patched {
            break;
        }
        match parse(&copy) {
            Ok(tree) => return Ok(Patched { tree, renamed }),
            Err(next) => error = next,
        }
    }
    // The message must be about the text as written; only a patch that got further tells more than the first one.
    Err(if error.location().offset() > first.location().offset() && !error.message().contains("redefined object key") {
        error
    } else {
        first
    })
}

/// Gives the key at `at` another name of the same length. Only letters and digits of plain names change.
fn rename_key(copy: &mut String, at: usize, attempt: usize) -> bool {
    let Some(rest) = copy.get(at..) else { return false };
    let start = at + usize::from(rest.starts_with('"'));
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let length = copy.as_bytes()[start..].iter().take_while(|b| is_part(b)).count();
    if length == 0 {
        return false;
    }
    let mut name = vec![b'a'; length];
    let mut number = attempt + 1;
    for byte in name.iter_mut().rev() {
        *byte = b"abcdefghijklmnopqrstuvwxyz"[number % 26];
        number /= 26;
    }
    // An ASCII name for an ASCII name of the same length keeps the text valid.
    let Ok(name) = String::from_utf8(name) else { return false };
    copy.replace_range(start..start + length, &name);
    true
}

/// Takes the exponent off a number that is too big for a float, at or around `at`.
fn tame_number(copy: &mut String, at: usize) -> bool {
    let bytes = copy.as_bytes();
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-');
    let mut start = at.min(bytes.len());
    while start > 0 && is_part(bytes[start - 1]) {
        start -= 1;
    }
    let end = bytes.len().min(at + 64);
    for from in start..end {
        let before = from.checked_sub(1).map(|i| bytes[i]);
        if !bytes[from].is_ascii_digit() || before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
            continue;
        }
        let length = number_length(&copy[from..]);
        if copy[from..from + length].parse::<f64>().is_ok_and(f64::is_infinite) {
            let mut plain = "1".repeat(length.min(15));
            plain.extend(std::iter::repeat_n(' ', length - plain.len()));
            copy.replace_range(from..from + length, &plain);
            return true;
        }
    }
    false
}
