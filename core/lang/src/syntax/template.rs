//! Templates: strip markers, the dedenting of `<<-` heredocs, and the tree of directives.
//!
//! A template is flattened to tokens, literals one line each as the language's own scanner makes them; then `~` trims the neighbouring
//! token, then the common indentation goes, then the tree is built. In that order, or the results differ from Terraform's.

use std::ops::Range;

use hcl_edit::Span as _;
use hcl_edit::template::{Directive, Element, Strip};
use karmaform_model::Diagnostic;
use unicode_segmentation::UnicodeSegmentation;

use super::lower::Lower;
use super::{Expr, Part, explain};

/// Where the literal text of a template comes from.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Quoting {
    /// `"..."`: backslash escapes, one token per literal.
    Quoted,
    /// Inside of a directive of such a template: the same, but the parser leaves the escapes as they are.
    Inside,
    /// Heredoc or file: only `$${` and `%%{`, a token per line.
    Plain { flush: bool },
}

enum Token {
    Literal(String),
    Interpolation(Expr),
    If(Expr),
    Else,
    EndIf,
    For { key_name: Option<String>, value_name: String, collection: Expr },
    EndFor,
}

/// The parts of a template.
pub(super) fn lower_template<'e>(lower: &mut Lower<'_>, elements: impl Iterator<Item = &'e Element>, quoting: Quoting) -> Vec<Part> {
    let mut flat = Flat { tokens: Vec::new(), trim_next: false };
    for element in elements {
        flat.element(lower, element, quoting);
    }
    if quoting == (Quoting::Plain { flush: true }) {
        dedent(&mut flat.tokens);
    }
    let mut tokens = flat.tokens.into_iter();
    tree(&mut tokens).0
}

struct Flat {
    tokens: Vec<Token>,
    /// The last token ended with `~}`.
    trim_next: bool,
}

impl Flat {
    fn element(&mut self, lower: &mut Lower<'_>, element: &Element, quoting: Quoting) {
        match element {
            Element::Literal(text) => {
                // A quoted literal is unescaped by the parser; plain ones are read from the text, before the parser's own dedenting.
                let source = lower.text;
                let raw = text.span().and_then(|span| Some((span.start, source.get(span)?)));
                match (quoting, raw) {
                    (Quoting::Plain { .. }, Some((_, raw))) => {
                        for line in raw.split_inclusive('\n') {
                            self.literal(lower.name(&line.replace("$${", "${").replace("%%{", "%{")));
                        }
                    }
                    (Quoting::Inside, Some((start, raw))) => {
                        let text = unescaped(lower, raw, start);
                        self.literal(lower.name(&text));
                    }
                    _ => self.literal(lower.name(text)),
                }
            }
            Element::Interpolation(i) => self.control(i.strip, |_| Token::Interpolation(lower.expression(&i.expr, true))),
            Element::Directive(directive) => match &**directive {
                Directive::If(d) => {
                    self.control(d.if_expr.strip, |_| Token::If(lower.expression(&d.if_expr.cond_expr, true)));
                    self.elements(lower, d.if_expr.template.iter(), quoting);
                    if let Some(otherwise) = &d.else_expr {
                        self.control(otherwise.strip, |_| Token::Else);
                        self.elements(lower, otherwise.template.iter(), quoting);
                    }
                    self.control(d.endif_expr.strip, |_| Token::EndIf);
                }
                Directive::For(d) => {
                    let f = &d.for_expr;
                    self.control(f.strip, |_| Token::For {
                        key_name: f.key_var.as_ref().map(|k| lower.name(k.as_str())),
                        value_name: lower.name(f.value_var.as_str()),
                        collection: lower.expression(&f.collection_expr, true),
                    });
                    self.elements(lower, f.template.iter(), quoting);
                    self.control(d.endfor_expr.strip, |_| Token::EndFor);
                }
            },
        }
    }

    /// What stands inside of a directive.
    fn elements<'e>(&mut self, lower: &mut Lower<'_>, elements: impl Iterator<Item = &'e Element>, quoting: Quoting) {
        let quoting = if quoting == Quoting::Quoted { Quoting::Inside } else { quoting };
        for element in elements {
            self.element(lower, element, quoting);
        }
    }

    fn literal(&mut self, text: String) {
        let trim = std::mem::take(&mut self.trim_next);
        self.tokens.push(Token::Literal(if trim { text.trim_start().to_owned() } else { text }));
    }

    fn control(&mut self, strip: Strip, token: impl FnOnce(&Self) -> Token) {
        if matches!(strip, Strip::Start | Strip::Both)
            && let Some(Token::Literal(text)) = self.tokens.last_mut()
        {
            text.truncate(text.trim_end().len());
        }
        self.trim_next = matches!(strip, Strip::End | Strip::Both);
        let token = token(self);
        self.tokens.push(token);
    }
}

/// The text that a literal in quotes means; `start` is where it stands.
fn unescaped(lower: &mut Lower<'_>, raw: &str, start: usize) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(first) = rest.chars().next() {
        match character(first, rest) {
            Ok((meant, length)) => {
                text.push(meant);
                rest = rest.get(length..).unwrap_or_default();
            }
            Err((length, problem)) => {
                let at = start + raw.len() - rest.len();
                refuse(lower, at..at + length, problem);
                break;
            }
        }
    }
    text
}

/// The character that stands at the start of a text in quotes, and how many bytes make it up; or how many are wrong, and what is.
fn character(first: char, rest: &str) -> Result<(char, usize), (usize, Wrong)> {
    if rest.starts_with("$${") || rest.starts_with("%%{") {
        return Ok((first, 2));
    }
    let second = rest[first.len_utf8()..].chars().next();
    match (first, second) {
        ('\\', Some('n')) => Ok(('\n', 2)),
        ('\\', Some('r')) => Ok(('\r', 2)),
        ('\\', Some('t')) => Ok(('\t', 2)),
        ('\\', Some(same @ ('\\' | '"'))) => Ok((same, 2)),
        ('\\', Some('u')) => code_point(rest, 4),
        ('\\', Some('U')) => code_point(rest, 8),
        ('\\', _) => Err((1 + second.map_or(0, char::len_utf8), Wrong::Escape)),
        ('"', _) => Err((1, Wrong::Quote)),
        _ => Ok((first, first.len_utf8())),
    }
}

/// `\uNNNN`, `\UNNNNNNNN`
fn code_point(rest: &str, digits: usize) -> Result<(char, usize), (usize, Wrong)> {
    let code = rest.get(2..2 + digits).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()));
    let code = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
    code.map(|c| (c, 2 + digits)).ok_or((2, Wrong::CodePoint))
}

/// What may be wrong with a character in quotes.
#[derive(Clone, Copy)]
enum Wrong {
    Escape,
    CodePoint,
    /// It ends the text, while a directive is open.
    Quote,
}

fn refuse(lower: &mut Lower<'_>, at: Range<usize>, problem: Wrong) {
    let error = match problem {
        Wrong::Escape => Diagnostic::error(explain::ESCAPE, explain::ESCAPES).with_hint(explain::BACKSLASH),
        Wrong::CodePoint => Diagnostic::error(explain::ESCAPE, explain::CODE_POINTS),
        Wrong::Quote => Diagnostic::error("Unclosed directive", "The text ends here, but a directive in it has no end.")
            .with_hint("Close %{ if } with %{ endif }, and %{ for } with %{ endfor }."),
    };
    let span = lower.span(at);
    lower.diagnostics.push(error.with_span(Some(span)));
}

/// Takes the smallest indentation of all lines off all lines. Blank lines don't count; a line that starts with `${` has none.
fn dedent(tokens: &mut [Token]) {
    let mut smallest = usize::MAX;
    let mut at_line_start = true;
    let mut starts = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let text = match token {
            Token::Literal(text) => Some(text),
            _ => None,
        };
        if std::mem::take(&mut at_line_start) {
            let indent = match text {
                Some(text) if text.trim_start().is_empty() && text.ends_with('\n') => usize::MAX,
                Some(text) => {
                    starts.push(i);
                    text[..text.len() - text.trim_start().len()].graphemes(true).count()
                }
                None => 0,
            };
            smallest = smallest.min(indent);
        }
        at_line_start = text.is_some_and(|t| t.ends_with('\n'));
    }
    for i in starts {
        if let Token::Literal(text) = &mut tokens[i] {
            let bytes: usize = text.graphemes(true).take(smallest).map(str::len).sum();
            text.drain(..bytes);
        }
    }
}

enum End {
    Template,
    Else,
    Directive,
}

/// The parser has balanced the directives already.
fn tree(tokens: &mut impl Iterator<Item = Token>) -> (Vec<Part>, End) {
    let mut parts: Vec<Part> = Vec::new();
    while let Some(token) = tokens.next() {
        match token {
            Token::Literal(text) => match parts.last_mut() {
                Some(Part::Literal(before)) => before.push_str(&text),
                _ => parts.push(Part::Literal(text)),
            },
            Token::Interpolation(expr) => parts.push(Part::Interpolation(expr)),
            Token::If(condition) => {
                let (then, end) = tree(tokens);
                let otherwise = if matches!(end, End::Else) { tree(tokens).0 } else { Vec::new() };
                parts.push(Part::If { condition, then, otherwise });
            }
            Token::For { key_name, value_name, collection } => {
                let body = tree(tokens).0;
                parts.push(Part::For { key_name, value_name, collection, body });
            }
            Token::Else => return (parts, End::Else),
            Token::EndIf | Token::EndFor => return (parts, End::Directive),
        }
    }
    (parts, End::Template)
}

/// True if the text of a quoted template (outside of its interpolations) holds a line break.
pub(super) fn breaks_line<'e>(text: &str, elements: impl Iterator<Item = &'e Element>) -> bool {
    fn any<'e>(text: &str, mut elements: impl Iterator<Item = &'e Element>) -> bool {
        elements.any(|element| match element {
            Element::Literal(literal) => literal.span().and_then(|s| text.get(s)).is_some_and(|t| t.contains('\n')),
            Element::Interpolation(_) => false,
            Element::Directive(directive) => match &**directive {
                Directive::If(d) => {
                    any(text, d.if_expr.template.iter()) || d.else_expr.as_ref().is_some_and(|e| any(text, e.template.iter()))
                }
                Directive::For(d) => any(text, d.for_expr.template.iter()),
            },
        })
    }
    any(text, elements)
}
