//! Words for syntax errors: what was meant, probably, and what to write instead.
//!
//! The parser gives a position and what it would have liked to see. That is often far from the cause, so the text around is looked at.

use std::ops::Range;

use hcl_edit::parser::Error;
use karmaform_model::{Diagnostic, Span};

use super::found::{Problem, ProblemKind};
use super::habits::habit;
use super::scan::identifier_length;
use super::words::{Cause, at_character, at_item, in_expression};

/// What is wrong about an escape, and what to do.
pub(super) const ESCAPE: &str = "Invalid escape sequence";
pub(super) const ESCAPES: &str = "After a backslash only n, r, t, \", \\, uNNNN and UNNNNNNNN are known.";
pub(super) const CODE_POINTS: &str = "\\u needs four hexadecimal digits of a character, \\U eight.";
pub(super) const BACKSLASH: &str = "For a literal backslash write two: \\\\.";

/// Something that is not closed.
pub(super) fn problem(problem: &Problem, text: &str, span: impl Fn(Range<usize>) -> Span) -> Diagnostic {
    let found = problem.found.clone().and_then(|f| text.get(f)).unwrap_or_default();
    let closer = |byte: u8| match byte {
        b'{' => '}',
        b'[' => ']',
        _ => ')',
    };
    let (summary, detail, hint) = match problem.kind {
        ProblemKind::Bracket(byte) => {
            let (open, close) = (char::from(byte), closer(byte));
            let what = if found.is_empty() {
                format!("This \"{open}\" has no \"{close}\" before the end of the file.")
            } else if found.starts_with(close) {
                format!("This \"{open}\" seems to have no \"{close}\": the next one stands where an outer one belongs.")
            } else if found.starts_with(char::is_alphabetic) {
                format!("This \"{open}\" has no \"{close}\" before the next top-level block.")
            } else {
                format!("This \"{open}\" has no \"{close}\"; \"{found}\" came first.")
            };
            let name = match byte {
                b'{' => "Unclosed brace",
                b'[' => "Unclosed bracket",
                _ => "Unclosed parenthesis",
            };
            (name, what, format!("Add \"{close}\" where it ends."))
        }
        ProblemKind::Interpolation => (
            "Unclosed interpolation",
            "This \"${\" or \"%{\" has no \"}\" before its string ends.".to_owned(),
            "Add \"}\"; for a literal \"${\" write \"$${\".".to_owned(),
        ),
        ProblemKind::Quote => (
            "Unclosed string",
            "This string has no closing quote before the end of its line.".to_owned(),
            "Add the quote; for text of several lines use a heredoc: <<-EOT ... EOT.".to_owned(),
        ),
        ProblemKind::Heredoc => {
            let marker = text.get(problem.at.clone()).unwrap_or_default().trim_start_matches(['<', '-']);
            let what = format!("No line holds only \"{marker}\", which would end this heredoc.");
            ("Unclosed heredoc", what, format!("Write {marker} alone on a line after the text."))
        }
        ProblemKind::Comment => {
            ("Unclosed comment", "This \"/*\" has no \"*/\" before the end of the file.".to_owned(), "Add \"*/\".".to_owned())
        }
        ProblemKind::Closer(byte) => {
            let close = char::from(byte);
            ("Unexpected closing bracket", format!("Nothing is open that \"{close}\" could close."), "Remove it.".to_owned())
        }
        ProblemKind::Return => {
            let detail = "A carriage return stands here without a line feed behind it, outside of comments.".to_owned();
            (
                "Invalid character",
                detail,
                "Write \\r for one in a string; else delete it. Lines end with a line feed, or with both.".to_owned(),
            )
        }
    };
    let mut diagnostic = Diagnostic::error(summary, detail).with_span(Some(span(problem.at.clone()))).with_hint(hint);
    if let Some(at) = &problem.found {
        diagnostic = diagnostic.with_label(span(at.clone()), "found this instead");
    }
    diagnostic
}

/// What the parser refused.
pub(super) fn error(error: &Error, text: &str, span: impl Fn(Range<usize>) -> Span) -> Diagnostic {
    told(error, text, span, |text, start, message| {
        let line_start = text[..start].rfind('\n').map_or(0, |n| n + 1);
        let first_on_line = text[line_start..start].trim().is_empty();
        // A value that the parser gives up on is blamed on the start of its item.
        if first_on_line && (starts_item(&text[start..]) || start == 0) { at_item(text, start) } else { at_character(text, start, message) }
    })
}

/// The same of an expression that stands alone, where no item begins.
pub(super) fn expression_error(error: &Error, text: &str, span: impl Fn(Range<usize>) -> Span) -> Diagnostic {
    told(error, text, span, in_expression)
}

/// `otherwise` says what it is about where nothing better is known.
fn told(error: &Error, text: &str, span: impl Fn(Range<usize>) -> Span, otherwise: impl FnOnce(&str, usize, &str) -> Cause) -> Diagnostic {
    let at = place(error, text);
    let message = error.message();
    if message.contains("redefined attribute") {
        let length = identifier_length(&text[at..]);
        let name = &text[at..at + length];
        return double(name, span(at..at + length), earlier(text, at, name).map(&span));
    }
    if let Some((place, character)) = strange(text, at) {
        if is_curly(character) {
            return Diagnostic::error(
                "Curly quotes",
                format!("Strings are written in straight double quotes, and this is \"{character}\"."),
            )
            .with_span(Some(span(place..place + character.len_utf8())))
            .with_hint("Write \" in its place. It often comes along with copied text.");
        }
        let code = u32::from(character);
        let detail = format!(
            "The character U+{code:04X} stands here. It can't be seen, or looks like something else, and means nothing outside of strings."
        );
        return Diagnostic::error("Invalid character", detail)
            .with_span(Some(span(place..place + character.len_utf8())))
            .with_hint("Delete it, and type a plain space if one belongs there. It often comes along with copied text.");
    }
    let cause = limit(message, text, at).or_else(|| habit(text, at)).or_else(|| known_message(message, text, at)).unwrap_or_else(|| {
        let start = at + text[at..].len() - text[at..].trim_start_matches([' ', '\t']).len();
        otherwise(text, start, message)
    });
    cause.into_diagnostic(span)
}

/// True if a quote as it is printed stands where the parser gave up, or behind a block's name. In the text of a heredoc there may be many.
fn is_for_a_quote(text: &str, at: usize, line: usize, place: usize) -> bool {
    let before = &text[line..place];
    let is_header = before.trim_start().starts_with(char::is_alphabetic)
        && before.ends_with(' ')
        && before.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
    place == at || at <= place && is_header
}

/// True for quotes as they are printed.
fn is_curly(c: char) -> bool {
    matches!(c, '\u{2018}'..='\u{201f}' | '«' | '»')
}

/// A character that nobody sees, or a quote as it is printed, outside of strings and comments, on the line that the parser gave up on.
fn strange(text: &str, at: usize) -> Option<(usize, char)> {
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let line = text[start..].split('\n').next().unwrap_or_default();
    let line = line.strip_suffix('\r').unwrap_or(line);
    let (mut quoted, mut escaped) = (false, false);
    for (i, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '#' => return None,
            '\t' => {}
            '\u{a0}' | '\u{ad}' | '\u{feff}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{2069}' | '\u{3000}' => {
                return Some((start + i, c));
            }
            '/' if line[i..].starts_with("//") => return None,
            _ if c.is_control() || is_curly(c) && is_for_a_quote(text, at, start, start + i) => return Some((start + i, c)),
            _ => {}
        }
    }
    None
}

/// Where the parser gave up, which may be inside of a character.
fn place(error: &Error, text: &str) -> usize {
    let mut at = error.location().offset().min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// What is not closed in a template of its own.
pub(super) fn template_problem(found: &Problem, text: &str, span: impl Fn(Range<usize>) -> Span) -> Diagnostic {
    let line = text[..found.at.start].matches('\n').count() + 1;
    let mut error = problem(found, text, span);
    error.detail = format!("Line {line} of the template could not be read. {}", error.detail);
    error
}

/// What the parser refused in a template of its own.
pub(super) fn template_error(error: &Error, text: &str, span: impl Fn(Range<usize>) -> Span) -> Diagnostic {
    let at = place(error, text);
    let (line, start) = text.as_bytes()[..at].iter().enumerate().fold(
        (1, 0),
        |(line, start), (i, b)| {
            if *b == b'\n' { (line + 1, i + 1) } else { (line, start) }
        },
    );
    let excerpt: String = String::from_utf8_lossy(&text.as_bytes()[start..]).lines().next().unwrap_or_default().chars().take(60).collect();
    // What opened last before the place is what the parser was in.
    let before = &text[..at];
    let is_expression = !text.contains("%{") || before.rfind("${") > before.rfind("%{");
    let hint = if is_expression {
        "Check the expression in \"${...}\"; a literal \"${\" is written \"$${\"."
    } else {
        "Every %{ if } needs an %{ endif }, every %{ for } an %{ endfor }; a literal \"${\" is written \"$${\"."
    };
    Diagnostic::error("Invalid template", format!("Line {line} of the template could not be read: {excerpt}"))
        .with_span(Some(span(at..at)))
        .with_hint(hint)
}

/// An attribute that is there twice.
pub(super) fn double(name: &str, span: Span, first: Option<Span>) -> Diagnostic {
    let error = Diagnostic::error("Argument set twice", format!("The argument \"{name}\" was set before in the same block."))
        .with_span(Some(span))
        .with_hint("Keep one of the two.");
    match first {
        Some(first) => error.with_label(first, "first set here"),
        None => error,
    }
}

/// True if the text starts like an attribute or a block.
pub(super) fn starts_item(text: &str) -> bool {
    let length = identifier_length(text);
    let rest = text[length..].trim_start_matches([' ', '\t']);
    length > 0 && (rest.starts_with(['=', '{', '"']) && !rest.starts_with("==") || identifier_length(rest) > 0)
}

fn limit(message: &str, text: &str, at: usize) -> Option<Cause> {
    if message.contains("nesting depth") {
        let cause = Cause::new(at..at, "Nested too deeply", "Brackets, blocks, conditions and templates may be nested 64 levels deep.");
        return Some(cause.hint("Take inner parts out into locals."));
    }
    if message.contains("chained binary operators") {
        let end = at + text[at..].chars().next().map_or(0, char::len_utf8);
        let cause = Cause::new(at..end, "Too many operators", "One expression may hold 128 binary operators in a row.");
        return Some(cause.hint("Use a function over a list (anytrue, alltrue, sum, join), or locals for the parts."));
    }
    None
}

fn known_message(message: &str, text: &str, at: usize) -> Option<Cause> {
    let back = |length: usize| at.saturating_sub(length);
    let whole = |range: Range<usize>| if text.get(range.clone()).is_some() { range } else { at..at };
    Some(if message.contains("redefined object key") {
        let length = identifier_length(text[at..].trim_start_matches('"')).max(1);
        Cause::new(whole(at..at + length), "Key written twice", "This object has that key already.").hint("Keep one of the two.")
    } else if message.contains("escape sequence") {
        Cause::new(whole(back(2)..at), ESCAPE, ESCAPES).hint(BACKSLASH)
    } else if message.contains("unicode") {
        Cause::new(whole(back(2)..at), ESCAPE, CODE_POINTS)
    } else if message.ends_with("expected newline") && text[..at].rsplit(['\n', '=']).next().is_some_and(|l| l.contains("<<")) {
        Cause::new(
            at..at,
            "Text after the start of a heredoc",
            "The text of a heredoc starts on the next line; after its marker nothing may follow.",
        )
    } else if message.ends_with("expected `in`") {
        Cause::new(at..at, "Incomplete for expression", "After the names of a for expression, \"in\" and the collection must follow.")
            .hint("Write it as [for x in list : x] or {for k, v in map : k => v}.")
    } else if message.ends_with("expected `=>`") {
        Cause::new(at..at, "Incomplete for expression", "A for expression in braces makes an object and needs a key: KEY => VALUE.")
            .hint("For a list use brackets: [for x in list : x].")
    } else {
        return None;
    })
}

/// Where an attribute of this name was set before `at`; the last such line.
fn earlier(text: &str, at: usize, name: &str) -> Option<Range<usize>> {
    let mut end = at;
    loop {
        let start = text[..end].rfind(name)?;
        let after = text[start + name.len()..].trim_start_matches([' ', '\t']);
        let line_start = text[..start].rfind('\n').map_or(0, |n| n + 1);
        if text[line_start..start].trim().is_empty() && after.starts_with('=') {
            return Some(start..start + name.len());
        }
        end = start;
    }
}
