//! All that is wrong in the lines of one block: each entry of its body is looked at by itself, so that one mistake hides no other.
//!
//! It is asked only once the parser gave up on a block. What it says stands where it stands in the block's text.

use std::collections::BTreeMap;
use std::ops::Range;

use hcl_edit::parser::Error;
use karmaform_model::{Diagnostic, Span};

use super::found::Entries;
use super::scan::{enclosed_length, identifier_length, objects};
use super::{explain, keys};

/// So many mistakes of one block are told; the others come once these are mended.
const MOST: usize = 20;
/// Of longer blocks only the first mistake is told: the others would take too long.
const LARGEST: usize = 256 << 10;

/// What is wrong with a block that the parser gave up on. What the parser said first is kept as it said it.
pub(super) fn told(first: &Error, text: &str, span: impl Fn(Range<usize>) -> Span) -> Vec<Diagnostic> {
    let at = first.location().offset();
    let mut all = vec![explain::error(first, text, &span)];
    let mut mistakes = if text.len() > LARGEST { Vec::new() } else { mistakes(text) };
    mistakes.sort_by_key(|mistake| mistake.start);
    // It is about the first of them, where it isn't about what stands before: an entry that goes on is often blamed on the next one.
    let is_told = |mistake: &Mistake| match mistake.kind {
        Kind::Refused { .. } => mistake.start <= at,
        Kind::Double { .. } => mistake.start == at,
    };
    if let Some(told) = mistakes.iter().position(is_told) {
        mistakes.remove(told);
    }
    all.extend(mistakes.into_iter().map(|mistake| mistake.into_diagnostic(text, &span)));
    all
}

struct Mistake {
    /// Where its entry begins, or the name that is there twice; behind an escape the next one.
    start: usize,
    kind: Kind,
}

enum Kind {
    /// The parser does not take it, in a text in which all else is blank.
    Refused { alone: String, error: Error },
    /// An argument was set before in the same body.
    Double { name: Range<usize>, first: Range<usize> },
}

impl Mistake {
    fn into_diagnostic(self, text: &str, span: impl Fn(Range<usize>) -> Span) -> Diagnostic {
        match self.kind {
            Kind::Refused { alone, error } => explain::error(&error, &alone, span),
            Kind::Double { name, first } => explain::double(&text[name.clone()], span(name), Some(span(first))),
        }
    }
}

fn mistakes(text: &str) -> Vec<Mistake> {
    let bodies: Vec<_> = objects(text, false).into_iter().filter(|o| is_body(text, o)).collect();
    let entries: Vec<Vec<_>> = bodies.iter().map(|body| entries(text, body, &bodies)).collect();
    let mut found = Vec::new();
    for body in &entries {
        let mut names: BTreeMap<&str, Range<usize>> = BTreeMap::new();
        let mut is_after_broken = false;
        for entry in body {
            if found.len() >= MOST {
                return found;
            }
            let written = &text[entry.clone()];
            if keys::parse_body(written, &[]).is_err() {
                // The rest of a broken entry, on the next line, tells nothing new.
                if !is_after_broken || explain::starts_item(written.trim()) {
                    found.extend(refused(&alone(text, entries.iter().flatten(), entry), entry.start));
                }
                is_after_broken = true;
                continue;
            }
            is_after_broken = false;
            if let Some(name) = argument(text, entry) {
                match names.get(&text[name.clone()]) {
                    Some(first) => found.push(Mistake { start: name.start, kind: Kind::Double { name, first: first.clone() } }),
                    None => drop(names.insert(&text[name.clone()], name)),
                }
            }
        }
    }
    found
}

/// True if what is in braces is the body of a block: only a name and labels stand in front of it.
fn is_body(text: &str, braces: &Entries) -> bool {
    let Some(brace) = braces.starts.first().and_then(|start| start.checked_sub(1)).filter(|_| !braces.is_value) else { return false };
    let line = text[..brace].rfind('\n').map_or(0, |n| n + 1);
    let mut rest = text[line..brace].trim();
    if identifier_length(rest) == 0 {
        return false;
    }
    while !rest.is_empty() {
        let length = if rest.starts_with('"') { enclosed_length(rest).unwrap_or(0) } else { identifier_length(rest) };
        if length == 0 {
            return false;
        }
        rest = rest[length..].trim_start();
    }
    true
}

/// The entries of a body, each up to the end of its last line, but for nested blocks of several lines, whose entries are their own.
fn entries(text: &str, body: &Entries, bodies: &[Entries]) -> Vec<Range<usize>> {
    let begins = |(i, at): (usize, &usize)| (i == 0 || text[..*at].ends_with('\n')).then_some(*at);
    let starts: Vec<_> = body.starts.iter().enumerate().filter_map(begins).collect();
    let ends = starts.iter().skip(1).copied().chain([body.end]);
    // Bodies are in the order of their ends.
    let has_body = |entry: &Range<usize>| {
        let next = bodies.partition_point(|b| b.end < entry.start);
        bodies.get(next).is_some_and(|b| b.end < entry.end)
    };
    let all = starts.iter().copied().zip(ends).map(|(start, end)| start..end);
    all.filter(|entry| !text[entry.clone()].trim().is_empty() && !has_body(entry)).collect()
}

/// The name of the argument that an entry sets.
fn argument(text: &str, entry: &Range<usize>) -> Option<Range<usize>> {
    let rest = text[entry.clone()].trim_start();
    let start = entry.end - rest.len();
    let length = identifier_length(rest);
    (length > 0 && rest[length..].trim_start().starts_with('=')).then_some(start..start + length)
}

/// The text with spaces for all entries but this one.
fn alone<'e>(text: &str, entries: impl Iterator<Item = &'e Range<usize>>, entry: &Range<usize>) -> String {
    let mut copy = text.to_owned();
    for other in entries.filter(|other| *other != entry) {
        let blank: String = text[other.clone()].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect();
        copy.replace_range(other.clone(), &blank);
    }
    copy
}

/// What the parser has against the entry that begins there: the first thing, or several escapes that mean nothing.
fn refused(alone: &str, mut start: usize) -> Vec<Mistake> {
    let mut copy = alone.to_owned();
    let mut found = Vec::new();
    while found.len() < MOST {
        let Err(error) = keys::parse_body(&copy, &[]) else { break };
        let at = error.location().offset();
        if at < start {
            break;
        }
        let escape = at.saturating_sub(2)..at;
        let is_escape = error.message().contains("escape sequence") && copy.get(escape.clone()).is_some_and(|e| e.starts_with('\\'));
        found.push(Mistake { start, kind: Kind::Refused { alone: alone.to_owned(), error } });
        if !is_escape {
            break;
        }
        copy.replace_range(escape, "--");
        start = at;
    }
    found
}
