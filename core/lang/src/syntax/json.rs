//! Configuration written as JSON, to the same tree that HCL text becomes: blocks are objects by their labels, texts are templates. The mapping
//! is Terraform's. Nothing that comes after the syntax knows which of the two it was, but for keys that come to the same text: HCL takes the later one.

mod form;
mod read;

use std::ops::Range;

use karmaform_model::{Catalog, Diagnostic, Diagnostics, FileId, Span, Type, Value};

use self::form::{Inside, Words};
use self::read::{Kind, Node, Text, read};
use super::lower::normalised;
use super::parse::{Parsed, Whole, failed, on_big_stack};
use super::{Attribute, Block, Body, Expr, ExprKind, Label, ObjectKey, Part, numbers};

/// What is written to nobody in a block: a comment.
const COMMENT: &str = "//";

/// Parses a configuration file. The catalog says what is a block in resources.
pub(super) fn parse_body(file: FileId, text: &str, catalog: &Catalog) -> Parsed {
    parse_deep(file, text, catalog, Inside::File)
}

/// Parses a file with tests.
pub(super) fn parse_tests(file: FileId, text: &str, catalog: &Catalog) -> Parsed {
    parse_deep(file, text, catalog, Inside::Tests)
}

/// Parses a variables file.
pub(super) fn parse_values(file: FileId, text: &str, catalog: &Catalog) -> Parsed {
    parse_deep(file, text, catalog, Inside::Values)
}

fn parse_deep(file: FileId, text: &str, catalog: &Catalog, inside: Inside<'_>) -> Parsed {
    on_big_stack(|| parse(file, text, catalog, inside)).unwrap_or_else(|| {
        let error = failed(Span { file, start: 0, end: 0 });
        Parsed { diagnostics: error.into(), broken: true, ..Parsed::default() }
    })
}

fn parse(file: FileId, text: &str, catalog: &Catalog, inside: Inside<'_>) -> Parsed {
    let base = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let inner = &text[base..];
    if let Some(refused) = super::parse::too_large(file, text) {
        return refused;
    }
    let mut lower = Lower { file, text: inner, base, catalog, diagnostics: Diagnostics::new() };
    let (node, doubles) = read(inner);
    let is_double = !doubles.is_empty();
    let told: Vec<_> = doubles.into_iter().map(|p| p.told(|range| lower.span(range))).collect();
    lower.diagnostics.extend(told);
    let node = match node {
        Ok(node) => node,
        Err(problem) => {
            let told = problem.told(|range| lower.span(range));
            lower.diagnostics.push(told);
            return Parsed { diagnostics: lower.diagnostics, broken: true, ..Parsed::default() };
        }
    };
    let mut body = Body::default();
    // A list of blocks is a configuration, but values have one name each.
    if matches!((inside, &node.kind), (Inside::Values, kind) if !matches!(kind, Kind::Object(_))) {
        let error = Diagnostic::error("Object needed", "A file with values of variables is one JSON object.");
        lower.diagnostics.push(error.with_span(Some(lower.span(node.at.clone()))).with_hint("Write { \"NAME\": VALUE, ... }."));
        return Parsed { diagnostics: lower.diagnostics, broken: true, ..Parsed::default() };
    }
    lower.refuse_null(&node, "A file");
    for node in lower.objects(&node, "A file") {
        lower.body(node, inside, &mut body);
    }
    let broken = is_double || lower.diagnostics.has_errors();
    Parsed { body, diagnostics: lower.diagnostics, broken }
}

struct Lower<'t> {
    file: FileId,
    text: &'t str,
    base: usize,
    catalog: &'t Catalog,
    diagnostics: Diagnostics,
}

/// The entries of an object.
type Entries = [(Text, Range<usize>, Node)];

impl<'t> Lower<'t> {
    fn span(&self, range: Range<usize>) -> Span {
        let clamp = |at: usize| u32::try_from(self.base + at).unwrap_or(u32::MAX);
        Span { file: self.file, start: clamp(range.start), end: clamp(range.end) }
    }

    /// An object, or a list of them; anything else is wrong here.
    fn objects<'n>(&mut self, node: &'n Node, what: &str) -> Vec<&'n Entries> {
        match &node.kind {
            Kind::Object(entries) => vec![entries],
            Kind::Null => Vec::new(),
            Kind::List(items) => items.iter().flat_map(|item| self.objects(item, what)).collect(),
            _ => {
                self.object_needed(node, what);
                Vec::new()
            }
        }
    }

    fn object_needed(&mut self, node: &Node, what: &str) {
        let error = Diagnostic::error("Object needed", format!("{what} is an object here, or a list of objects."));
        self.diagnostics.push(error.with_span(Some(self.span(node.at.clone()))).with_hint("Write { \"NAME\": ... }."));
    }

    /// Nothing is no object where names have to be, neither alone nor in a list.
    fn refuse_null(&mut self, node: &Node, what: &str) {
        match &node.kind {
            Kind::Null => self.object_needed(node, what),
            Kind::List(items) => items.iter().for_each(|item| self.refuse_null(item, what)),
            _ => {}
        }
    }

    fn body(&mut self, entries: &Entries, inside: Inside<'t>, body: &mut Body) {
        for (key, at, node) in entries.iter().filter(|(key, ..)| key.text != COMMENT) {
            let (name, name_span) = (normalised(&key.text), self.span(at.clone()));
            if let Some(form) = inside.block(&name) {
                let kind = Block { kind: name, kind_span: name_span, labels: Vec::new(), span: name_span, body: Body::default() };
                self.blocks(node, form.labels, form.inside, kind, body);
            } else if matches!((inside, &node.kind), (Inside::File | Inside::Tests, Kind::Object(_) | Kind::List(_) | Kind::Null)) {
                // That there is no such block is said where blocks are sorted out.
                body.blocks.push(Block { kind: name, kind_span: name_span, labels: Vec::new(), span: name_span, body: Body::default() });
            } else {
                let expr = self.expr(node, inside.words(&name));
                body.attributes.push(Attribute { name, name_span, expr });
            }
        }
    }

    /// The blocks of one kind: objects by label, as deep as there are labels.
    fn blocks(&mut self, node: &Node, labels: usize, inside: Inside<'t>, block: Block, body: &mut Body) {
        let what = format!("The block \"{}\"", block.kind);
        if labels > 0 {
            self.refuse_null(node, &what);
            for entries in self.objects(node, &what) {
                for (key, at, node) in entries.iter().filter(|(key, ..)| key.text != COMMENT) {
                    let span = self.span(at.clone());
                    let mut block = Block { span, ..block.clone() };
                    block.labels.push(Label { text: normalised(&key.text), span });
                    self.blocks(node, labels - 1, inside, block, body);
                }
            }
            return;
        }
        let names: Vec<_> = block.labels.iter().map(|l| l.text.as_str()).collect();
        let inside = inside.labelled(&names, self.catalog);
        for entries in self.objects(node, &what) {
            let mut block = block.clone();
            self.body(entries, inside, &mut block.body);
            body.blocks.push(block);
        }
    }

    fn expr(&mut self, node: &Node, words: Words) -> Expr {
        let span = self.span(node.at.clone());
        let kind = match &node.kind {
            Kind::Null => ExprKind::Literal(Value::null(Type::Any)),
            Kind::Bool(value) => ExprKind::Literal((*value).into()),
            Kind::Number => match numbers::number(self.text.get(node.at.clone()).unwrap_or_default()) {
                Some(number) => ExprKind::Literal(number.into()),
                None => {
                    let error = Diagnostic::error("Number out of range", "Numbers have at most 4096 digits before and after the point.");
                    self.diagnostics.push(error.with_span(Some(span)));
                    ExprKind::Wrong
                }
            },
            Kind::Text(text) => return self.text(text, span, words),
            Kind::List(items) => ExprKind::Tuple(items.iter().map(|item| self.expr(item, words)).collect()),
            Kind::Object(entries) => {
                let mut made = Vec::with_capacity(entries.len());
                // As in Terraform: in a value a comment is an entry as others are.
                for (key, at, value) in entries {
                    let keys = if words == Words::Templates { words } else { Words::Literal };
                    let span = self.span(at.clone());
                    made.push((ObjectKey::Once(self.text(key, span, keys)), self.expr(value, words)));
                }
                ExprKind::Object(made)
            }
        };
        Expr { kind, span }
    }

    /// A text as what it stands for. The span is that of the text with its quotes.
    fn text(&mut self, text: &Text, span: Span, words: Words) -> Expr {
        let literal = || Expr { kind: ExprKind::Literal(normalised(&text.text).into()), span };
        let is_plain = !text.text.contains("${") && !text.text.contains("%{");
        let is_part = text.text.contains(['/', '*']) || text.text.contains("::");
        let base = if text.places.is_empty() { self.base + text.start } else { self.base };
        let whole = Whole { file: self.file, text: &text.text, base, places: &text.places };
        match words {
            Words::Literal => literal(),
            Words::Templates if is_plain => literal(),
            Words::Parts if is_part => literal(),
            Words::Templates => {
                let (parts, found) = whole.template();
                let failed = found.has_errors();
                self.diagnostics.extend(found);
                match parts.as_slice() {
                    _ if failed => Expr::wrong(span),
                    [Part::Literal(text)] => Expr { kind: ExprKind::Literal(text.as_str().into()), span },
                    _ => Expr { kind: ExprKind::Template(parts), span },
                }
            }
            Words::Expressions | Words::Parts => {
                // Terraform takes "${a.b}" for a.b here, too.
                let bare = text.text.strip_prefix("${").and_then(|t| t.strip_suffix('}'));
                let whole = match bare {
                    Some(bare) if text.places.is_empty() => Whole { text: bare, base: base + 2, ..whole },
                    Some(bare) => Whole { text: bare, places: text.places.get(2..).unwrap_or_default(), ..whole },
                    None => whole,
                };
                let (expr, found) = whole.expression();
                self.diagnostics.extend(found);
                expr
            }
        }
    }
}

#[cfg(test)]
mod tests;
