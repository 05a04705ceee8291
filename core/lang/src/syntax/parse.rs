//! Entry to parsing: texts in, bodies, expressions and templates with diagnostics out.
//!
//! The parser recurses, so it runs on threads with a stack of known size; big texts are parsed on several.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::thread;

use karmaform_model::{Catalog, Diagnostic, Diagnostics, FileId, Span};

use super::found::{Big, Scan};
use super::lower::{AMBIGUOUS_KEY, Lower};
use super::scan::{scan, scan_template};
use super::template::{Quoting, lower_template};
use super::{Body, Expr, ExprKind, Part, explain, json, keys, recover};
use crate::source::SourceFile;

/// Enough for the deepest text that the parser accepts, in a debug build, several times over.
const STACK: usize = 16 << 20;
/// Files in JSON end so.
const JSON: &str = ".json";
/// Texts longer than this are parsed on several threads.
const BIG: usize = 256 << 10;
/// The longest file that is read, in bytes. One of 10 MB takes half a second; what is made of it takes tens of times its size.
const LARGEST: usize = 16 << 20;
/// More threads than this gain nothing.
const MOST_THREADS: usize = 8;

/// A parsed file.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub body: Body,
    pub diagnostics: Diagnostics,
    /// A part of it was left out because it did not parse.
    pub broken: bool,
}

/// Parses a configuration file: JSON by its name, or HCL. The catalog says what is a block in JSON.
pub(crate) fn parse_file(file: FileId, source: &SourceFile, catalog: &Catalog) -> Parsed {
    if source.path.ends_with(JSON) { json::parse_body(file, &source.text, catalog) } else { parse_body(file, &source.text) }
}

/// Parses a file with tests, likewise.
pub(crate) fn parse_tests(file: FileId, source: &SourceFile, catalog: &Catalog) -> Parsed {
    if source.path.ends_with(JSON) { json::parse_tests(file, &source.text, catalog) } else { parse_body(file, &source.text) }
}

/// Parses a variables file, likewise.
pub(crate) fn parse_values(file: FileId, source: &SourceFile, catalog: &Catalog) -> Parsed {
    if source.path.ends_with(JSON) { json::parse_values(file, &source.text, catalog) } else { parse_body(file, &source.text) }
}

/// A file that would take seconds and gigabytes to read is a mistake, and nobody is to wait for it.
pub(super) fn too_large(file: FileId, text: &str) -> Option<Parsed> {
    (text.len() > LARGEST).then(|| {
        let (is, may) = (text.len() >> 20, LARGEST >> 20);
        let error = Diagnostic::error(
            "File too large",
            format!("It has {is} MiB; one of a configuration, of values or of tests may have {may} MiB."),
        )
        .with_span(Some(Span { file, start: 0, end: 0 }))
        .with_hint("Put large data into a file of its own and read it with file(), jsondecode(file()) or csvdecode(file()).");
        Parsed { diagnostics: error.into(), broken: true, ..Parsed::default() }
    })
}

/// Parses a text in HCL.
pub(crate) fn parse_body(file: FileId, text: &str) -> Parsed {
    // A byte order mark is no part of the text.
    let base = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let text = &text[base..];
    if let Some(refused) = too_large(file, text) {
        return refused;
    }
    let Scan { items, problems, big, .. } = scan(text);
    let whole = Whole { file, text, base, places: &[] };
    let mut parsed = Parsed { broken: !problems.is_empty(), ..Parsed::default() };
    for part in whole.parse_parallel(&items, &big) {
        parsed.body.attributes.extend(part.body.attributes);
        parsed.body.blocks.extend(part.body.blocks);
        parsed.diagnostics.extend(part.diagnostics);
        parsed.broken |= part.broken;
    }
    refuse_doubles(&mut parsed);
    let unbalanced = problems.iter().map(|p| explain::problem(p, text, |range| whole.span(range)));
    let mut all: Vec<_> = unbalanced.chain(parsed.diagnostics).collect();
    all.sort_by_key(|d| d.span.map_or(0, |s| s.start));
    parsed.diagnostics = all.into_iter().collect();
    parsed
}

/// What is wrong with the syntax of a text; nothing is said of its meaning, as what a key without quotes stands for is.
pub fn syntax_errors(file: FileId, text: &str) -> Diagnostics {
    parse_body(file, text).diagnostics.into_iter().filter(|d| d.summary != AMBIGUOUS_KEY).collect()
}

/// True if an expression goes on: so far nothing is wrong with it, but a bracket, an interpolation or a heredoc in it is open.
pub fn is_unfinished(text: &str) -> bool {
    scan(&format!("{text}\n")).unfinished
}

/// True if what an expression gives is the name of a type, as `type` gives it, and no text of the user's.
pub fn gives_type(text: &str) -> bool {
    fn is_type(expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Call(call) => call.name == "type",
            ExprKind::Parentheses(inner) => is_type(inner),
            ExprKind::Conditional(parts) => parts[1..].iter().all(is_type),
            _ => false,
        }
    }
    is_type(&parse_expression(FileId(0), text).0)
}

/// Parses an expression.
pub(crate) fn parse_expression(file: FileId, text: &str) -> (Expr, Diagnostics) {
    let whole = Whole { file, text, base: 0, places: &[] };
    on_big_stack(|| whole.expression())
        .unwrap_or_else(|| (Expr::wrong(whole.span(0..text.len())), failed(whole.span(0..text.len())).into()))
}

/// Parses a template as it stands in a file.
pub(crate) fn parse_template(file: FileId, text: &str) -> (Vec<Part>, Diagnostics) {
    let whole = Whole { file, text, base: 0, places: &[] };
    on_big_stack(|| whole.template()).unwrap_or_else(|| (Vec::new(), failed(whole.span(0..0)).into()))
}

/// The text with spaces for its comments: the parser knows none before and behind an expression that stands alone.
fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains(['#', '/']) {
        return text.into();
    }
    let mut copy = text.to_owned();
    for comment in scan(text).comments {
        let blank = text[comment.clone()].split('\n').map(|line| " ".repeat(line.len())).collect::<Vec<_>>().join("\n");
        copy.replace_range(comment, &blank);
    }
    copy.into()
}

/// A text, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Whole<'t> {
    pub file: FileId,
    pub text: &'t str,
    pub base: usize,
    /// Where each byte stands, where the text is not as it is written.
    pub places: &'t [usize],
}

impl<'t> Whole<'t> {
    fn span(&self, range: Range<usize>) -> Span {
        let clamp = |at: usize| u32::try_from(self.base + self.places.get(at).copied().unwrap_or(at)).unwrap_or(u32::MAX);
        Span { file: self.file, start: clamp(range.start), end: clamp(range.end) }
    }

    /// The expression that it is. Recurses; see [`on_big_stack`].
    pub(super) fn expression(self) -> (Expr, Diagnostics) {
        let bare = without_comments(self.text);
        let leading = bare.len() - bare.trim_start().len();
        let inner = &self.text[leading..bare.trim_end().len().max(leading)];
        let whole = match self.places.get(leading..) {
            Some(places) if !places.is_empty() => Whole { text: inner, places, ..self },
            _ => Whole { text: inner, base: self.base + leading, ..self },
        };
        if let Some(problem) = scan(inner).problems.first() {
            let error = explain::problem(problem, inner, |range| whole.span(range));
            return (Expr::wrong(whole.span(0..inner.len())), error.into());
        }
        match keys::parse_expression(bare.trim()) {
            Ok(patched) => {
                let mut lower = whole.lower(&patched.renamed, &[]);
                let expr = lower.expression(&patched.tree, false);
                (expr, lower.diagnostics)
            }
            Err(error) => {
                let told = explain::expression_error(&error, inner, |range| whole.span(range));
                (Expr::wrong(whole.span(0..inner.len())), told.into())
            }
        }
    }

    /// The template that it is. Recurses; see [`on_big_stack`].
    pub(super) fn template(self) -> (Vec<Part>, Diagnostics) {
        if let Some(problem) = scan_template(self.text) {
            return (Vec::new(), explain::template_problem(&problem, self.text, |range| self.span(range)).into());
        }
        match keys::parse_template(self.text) {
            Ok(patched) => {
                let mut lower = self.lower(&patched.renamed, &[]);
                let parts = lower_template(&mut lower, patched.tree.iter(), Quoting::Plain { flush: false });
                (parts, lower.diagnostics)
            }
            Err(error) => (Vec::new(), explain::template_error(&error, self.text, |range| self.span(range)).into()),
        }
    }

    fn lower<'l>(&self, renamed: &'l BTreeSet<usize>, big: &'l [Big]) -> Lower<'l>
    where
        't: 'l,
    {
        Lower { text: self.text, file: self.file, base: self.base, places: self.places, renamed, big, diagnostics: Diagnostics::new() }
    }

    fn parse_parallel(&self, items: &[Range<usize>], big: &[Big]) -> Vec<Parsed> {
        let threads = if self.text.len() < BIG { 1 } else { thread::available_parallelism().map_or(2, usize::from).min(MOST_THREADS) };
        let share = items.len().div_ceil(threads).max(1);
        let mut parts = Vec::new();
        thread::scope(|scope| {
            let running: Vec<_> = items
                .chunks(share)
                .map(|chunk| (chunk, thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || self.parse_items(chunk, big))))
                .collect();
            for (chunk, handle) in running {
                let parsed = match handle {
                    Ok(handle) => handle.join().ok(),
                    // No thread to be had: the parser's own limits keep this within a usual stack.
                    Err(_) => Some(self.parse_items(chunk, big)),
                };
                parts.push(parsed.unwrap_or_else(|| {
                    let start = chunk.first().map_or(0, |r| r.start);
                    Parsed { diagnostics: failed(self.span(start..start)).into(), broken: true, ..Parsed::default() }
                }));
            }
        });
        parts
    }

    fn parse_items(&self, items: &[Range<usize>], big: &[Big]) -> Parsed {
        let mut parsed = Parsed::default();
        let mut after_broken = false;
        for range in items {
            let text = &self.text[range.clone()];
            let item = Whole { text, base: self.base + range.start, ..*self };
            let big = within(big, range);
            let blank: Vec<_> = big.iter().map(|b| b.inside.clone()).collect();
            match keys::parse_body(text, &blank) {
                Ok(patched) => {
                    after_broken = false;
                    let mut lower = item.lower(&patched.renamed, &big);
                    let body = lower.body(&patched.tree, item.span(0..text.len()));
                    parsed.broken |= lower.diagnostics.has_errors();
                    parsed.diagnostics.extend(lower.diagnostics);
                    parsed.body.attributes.extend(body.attributes);
                    parsed.body.blocks.extend(body.blocks);
                }
                Err(error) => {
                    parsed.broken = true;
                    // The rest of a broken item, on the next line, tells nothing new.
                    if !after_broken || explain::starts_item(text) {
                        let span = |range| item.span(range);
                        // A big object would be read once more, as a whole.
                        let told =
                            if blank.is_empty() { recover::told(&error, text, span) } else { vec![explain::error(&error, text, span)] };
                        parsed.diagnostics.extend(told);
                    }
                    after_broken = true;
                }
            }
        }
        parsed
    }
}

/// The big objects of an item, with places relative to it.
fn within(big: &[Big], item: &Range<usize>) -> Vec<Big> {
    let first = big.partition_point(|b| b.inside.start < item.start);
    let here = big[first..].iter().take_while(|b| b.inside.end <= item.end);
    let moved = |b: &Big| Big {
        inside: b.inside.start - item.start..b.inside.end - item.start,
        cuts: b.cuts.iter().map(|c| c - item.start).collect(),
    };
    here.map(moved).collect()
}

/// Items are parsed one by one, so nobody else sees two attributes of one name in a file.
fn refuse_doubles(parsed: &mut Parsed) {
    let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
    let mut doubles = Vec::new();
    for attribute in &parsed.body.attributes {
        match seen.get(attribute.name.as_str()) {
            Some(first) => doubles.push(explain::double(&attribute.name, attribute.name_span, Some(*first))),
            None => drop(seen.insert(&attribute.name, attribute.name_span)),
        }
    }
    parsed.diagnostics.extend(doubles);
}

/// Work that recurses as deep as a text is nested.
pub(super) fn on_big_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok()?.join().ok())
}

pub(super) fn failed(span: Span) -> Diagnostic {
    Diagnostic::error("Text could not be read", "The parser gave up on this text. This is a bug.").with_span(Some(span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_key_stands_for_is_no_matter_of_syntax() {
        let text = "module \"m\" {\n  providers = {\n    a.b = a\n  }\n}\n";
        assert!(syntax_errors(FileId(0), text).is_empty());
        assert_eq!(parse_body(FileId(0), text).diagnostics.iter().map(|d| d.summary.as_str()).collect::<Vec<_>>(), [AMBIGUOUS_KEY]);
        assert!(!syntax_errors(FileId(0), "a = { b. = 1 }\n").is_empty());
    }
}
