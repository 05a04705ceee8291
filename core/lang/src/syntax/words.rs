//! The texts of syntax errors by what stands at the place: see [`super::explain`].

use std::ops::Range;

use karmaform_model::{Diagnostic, Span};

use super::scan::identifier_length;

/// What is wrong, before it has a file.
#[derive(Debug, PartialEq)]
pub(super) struct Cause {
    at: Range<usize>,
    summary: &'static str,
    detail: String,
    hint: Option<String>,
}

impl Cause {
    pub(super) fn new(at: Range<usize>, summary: &'static str, detail: impl Into<String>) -> Self {
        Self { at, summary, detail: detail.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn into_diagnostic(self, span: impl Fn(Range<usize>) -> Span) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.summary, self.detail).with_span(Some(span(self.at)));
        match self.hint {
            Some(hint) => diagnostic.with_hint(hint),
            None => diagnostic,
        }
    }
}

/// The item at `start` could not be read.
pub(super) fn at_item(text: &str, start: usize) -> Cause {
    let rest = &text[start..];
    let length = identifier_length(rest);
    let line = rest.lines().next().unwrap_or_default();
    let name = start..start + length;
    if length == 0 {
        let cause = Cause::new(
            start..start + line.trim_end().len(),
            "Argument or block expected",
            "A line starts with the name of an argument or a block.",
        );
        return if rest.starts_with('"') { cause.hint("Names of arguments are written without quotes.") } else { cause };
    }
    let after_name = rest[length..].trim_start_matches([' ', '\t']);
    let Some(value) = after_name.strip_prefix('=') else {
        return after_a_name(text, start + rest.len() - after_name.len(), name);
    };
    let value_start = start + rest.len() - value.len();
    value_cause(text, value_start, name)
}

/// A value that the parser could not say anything about.
fn value_cause(text: &str, start: usize, name: Range<usize>) -> Cause {
    let value = &text[start..];
    let line = value.lines().next().unwrap_or_default();
    let code = code_only(line);
    let trimmed = code.trim();
    if trimmed.is_empty() {
        return Cause::new(name, "Argument without a value", "After \"=\" a value must follow on the same line.");
    }
    for (operator, single) in [("&&", '&'), ("||", '|')] {
        if let Some(at) = code.replace(operator, "  ").find(single) {
            return Cause::new(start + at..start + at + 1, "Invalid operator", format!("There is no operator \"{single}\"."))
                .hint(format!("Write {operator} for a logical combination."));
        }
    }
    let end = start + line.trim_end().len();
    let code_end = start + code.trim_end().len();
    if trimmed.ends_with(['+', '-', '*', '/', '%', '=', '<', '>', '!', '?', ':', '&', '|']) {
        let cause = Cause::new(code_end - 1..code_end, "Incomplete expression", "The line ends with an operator and nothing follows.");
        return cause.hint("Put the whole expression in parentheses to break it over lines.");
    }
    if line.contains("%{") || value.contains("%{") {
        let at = start + value.find("%{").unwrap_or(0);
        return Cause::new(
            at..at + 2,
            "Invalid template directive",
            "After \"%{\" only if, else, endif, for and endfor may stand, and each must be ended.",
        )
        .hint("Every %{ if } needs an %{ endif }, every %{ for } an %{ endfor }; a literal \"%{\" is written \"%%{\".");
    }
    let skipped = line.len() - line.trim_start().len();
    Cause::new(start + skipped..end, "Invalid expression", "This value could not be read.")
}

/// After the name of an argument or block comes something else than `=`, a label or `{`.
fn after_a_name(text: &str, at: usize, name: Range<usize>) -> Cause {
    let rest = &text[at..];
    let word = &text[name.clone()];
    let first = rest.chars().next();
    match first {
        None | Some('\n' | '\r' | '#') => {
            let cause = Cause::new(
                name,
                "Argument without a value",
                format!("After \"{word}\" either \"=\" and a value or a block's \"{{\" must follow."),
            );
            let next = rest.trim_start();
            if next.starts_with('{') { cause.hint("The opening brace must stand on the same line as the block's name.") } else { cause }
        }
        Some(':') => {
            Cause::new(at..at + 1, "Colon in place of an equals sign", format!("The argument \"{word}\" must be followed by \"=\"."))
                .hint(format!("Write {word} = ..."))
        }
        Some('.' | '[') => {
            Cause::new(at..at + 1, "Invalid argument name", "Arguments are set by their plain name, without dots or brackets.")
                .hint("To set a part of something, write the whole object: name = { part = value }.")
        }
        Some(',') => {
            Cause::new(at..at + 1, "Unexpected comma", "Labels of a block are separated by spaces only.").hint("Remove the comma.")
        }
        _ => missing_equals(text, at, name),
    }
}

fn missing_equals(text: &str, at: usize, name: Range<usize>) -> Cause {
    let word = &text[name.clone()];
    Cause::new(name.start..at, "Missing equals sign", format!("\"{word}\" is followed by a value without \"=\"."))
        .hint(format!("Write {word} = VALUE, or {word} {{ ... }} for a block."))
}

/// Something stands at `at` that does not belong there.
pub(super) fn at_character(text: &str, at: usize, message: &str) -> Cause {
    let rest = &text[at..];
    let first = rest.chars().next();
    let end = at + first.filter(|c| *c != '\n').map_or(0, char::len_utf8);
    let line_start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let before = text[line_start..at].trim();
    let found = found_words(rest);
    if message.contains("invalid structure") || message == "expected `{`" {
        let name_start = line_start + text[line_start..].len() - text[line_start..].trim_start().len();
        let length = identifier_length(&text[name_start..]);
        if message == "expected `{`" {
            return header_cause(text, at, name_start..name_start + length);
        }
        return after_a_name(text, at, name_start..name_start + length);
    }
    if first == Some('\'') || before.ends_with('\'') {
        return Cause::new(at..end, "Single quotes", "Strings are written in double quotes.").hint("Replace ' by \".");
    }
    let last = before.chars().last();
    if last.is_some_and(|c| c.is_ascii_digit()) && rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') && !text[..at].ends_with(' ')
    {
        return Cause::new(
            at..end,
            "Invalid number",
            "Numbers are decimal: digits, a point, an exponent. No 0x, no underscores, no units.",
        );
    }
    if message.contains("invalid block body") && before.is_empty() {
        return at_item(text, at);
    }
    if message.contains("invalid block body") {
        return Cause::new(at..end, "Several arguments on one line", "A block on one line holds at most one argument and no blocks.")
            .hint("Write each argument of the block on a line of its own.");
    }
    if message.contains("expected newline or eof") {
        return after_value(rest, at..end, before, &found);
    }
    if message.contains("invalid expression") || message.contains("traversal operator") {
        return expression_expected(text, at..end, before, &found, message);
    }
    let cause = |summary, detail: String| Cause::new(at..end, summary, detail);
    if message.ends_with("expected `]`") {
        return cause("Missing comma", format!("Elements of a list are separated by commas, but {found} follows."))
            .hint("Put a comma between the elements, or close the list with \"]\".");
    }
    if message.contains("invalid object item") {
        return cause("Missing comma", format!("Entries of an object on one line are separated by commas, but {found} follows."))
            .hint("Put a comma between the entries, or each on a line of its own.");
    }
    if message.contains("object value assignment") {
        // The parser has read over the character that it did not want.
        let read = text[..at].trim_end_matches([' ', '\t']);
        let before = read.chars().next_back().map_or(0, char::len_utf8);
        let at = read.len() - before;
        let found = found_words(&text[at..]);
        let cause = |summary, detail: String| Cause::new(at..at + before, summary, detail);
        return cause("Missing equals sign", format!("In an object every key is followed by \"=\" and a value, but here is {found}."))
            .hint("Write KEY = VALUE. For a list use brackets.");
    }
    if message.contains("expected `)`") {
        return cause("Missing comma", format!("Arguments are separated by commas, but here is {found}."))
            .hint("Put a comma between the arguments, or close with \")\".");
    }
    if message.ends_with("expected `:`") {
        let what = if before.contains("for ") { "a for expression" } else { "a condition (CONDITION ? A : B)" };
        return cause("Missing colon", format!("In {what} \":\" must follow here, but there is {found}."));
    }
    if message.ends_with("expected `}`") {
        return cause("Invalid interpolation", format!("The expression in \"${{...}}\" should end here, but {found} follows."))
            .hint("For a literal \"${\" (as in shell scripts) write \"$${\".");
    }
    if message.contains("invalid attribute") {
        return cause("Nested block on one line", "A block on one line can't hold another block.".into()).hint("Break it over lines.");
    }
    cause("Invalid syntax", format!("This can't be read: found {found}."))
}

/// Something stands at `start` that does not belong into an expression that stands alone.
pub(super) fn in_expression(text: &str, start: usize, message: &str) -> Cause {
    let rest = text[start..].trim_end();
    if rest == "." {
        return no_name(start);
    }
    if !rest.is_empty() && rest.chars().all(|c| "+-*/%&|=<>!?:".contains(c)) {
        return Cause::new(start..start + rest.len(), "Incomplete expression", format!("Nothing follows after \"{rest}\"."));
    }
    match rest.chars().next() {
        None if start == 0 => Cause::new(0..0, "Value expected", "Here a value must stand, but there is nothing."),
        Some(first) if start == 0 && first != '\'' => {
            expression_expected(text, 0..first.len_utf8(), "", &found_words(rest), "invalid expression")
        }
        _ => at_character(text, start, message),
    }
}

fn header_cause(text: &str, at: usize, name: Range<usize>) -> Cause {
    let word = &text[name.clone()];
    let rest = text[at..].trim_start_matches([' ', '\t']);
    let ends = rest.is_empty() || rest.starts_with(['\n', '\r', '#', '"']);
    if rest.starts_with(',') {
        return after_a_name(text, at, name);
    }
    // Blocks that everybody knows are not meant as arguments.
    if ends && !matches!(word, "resource" | "data" | "variable" | "output" | "provider" | "module" | "locals") {
        return missing_equals(text, at, name);
    }
    let cause =
        Cause::new(name, "Block without a body", format!("After the labels of \"{word}\" the opening brace must follow on the same line."));
    cause.hint("Put \"{\" at the end of this line; it can't stand on the next one.")
}

/// True for `NAME = WORD`, where what follows may be meant as what a function takes.
fn is_lone_word(before: &str) -> bool {
    let Some((_, value)) = before.split_once('=') else { return false };
    let value = value.trim();
    !value.is_empty() && identifier_length(value) == value.len() && !["true", "false", "null"].contains(&value)
}

fn after_value(rest: &str, at: Range<usize>, before: &str, found: &str) -> Cause {
    let cause = |summary, detail: String| Cause::new(at.clone(), summary, detail);
    match rest.chars().next() {
        Some(',') => {
            cause("Unexpected comma", "Arguments of a block are separated by line breaks, not by commas.".into()).hint("Remove the comma.")
        }
        Some(';') => cause("Unexpected semicolon", "Arguments end with their line.".into()).hint("Remove the semicolon."),
        Some('=') => cause("Unexpected equals sign", "One argument takes one value.".into()).hint("To compare, write ==."),
        Some('.' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '&' | '|' | '!' | '?') => {
            cause("Incomplete expression", format!("Nothing that could be read follows after {found}."))
                .hint("Put the whole expression in parentheses to break it over lines.")
        }
        Some('"' | '0'..='9') if is_lone_word(before) => {
            cause("Text after a value", format!("The argument ends here, but {found} follows on the same line."))
                .hint("What a function takes stands in parentheses: upper(\"a\").")
        }
        _ if before.ends_with("= if") => cause("Invalid condition", "There is no \"if ... then\".".into()).hint("Write CONDITION ? A : B."),
        _ => cause("Text after a value", format!("The argument ends here, but {found} follows on the same line."))
            .hint("Put the next argument on its own line; to join texts use \"${a}${b}\"."),
    }
}

fn expression_expected(text: &str, at: Range<usize>, before: &str, found: &str, message: &str) -> Cause {
    let cause = |summary, detail: String| Cause::new(at.clone(), summary, detail);
    let rest = &text[at.start..];
    match rest.chars().next() {
        _ if message.contains("traversal operator") => {
            // The parser reads on behind the end of the line.
            let dot = text[..at.start].trim_end().len();
            if text[dot..at.start].contains('\n') && text[..dot].ends_with('.') {
                return no_name(dot - 1);
            }
            cause("Invalid reference", format!("After a dot a name must follow, but there is {found}."))
                .hint("Indexes need no dot: list[0].")
        }
        Some('$') => cause("Invalid expression", "\"$\" stands only in strings: \"${name}\".".into())
            .hint("Outside of strings write the name alone: var.x."),
        Some('`') => cause("Invalid quotes", "Strings are written in double quotes.".into()),
        Some(',') => cause("Unexpected comma", "A value is missing before this comma.".into()),
        Some('=') if before.ends_with('=') => {
            cause("Invalid operator", "There is no such operator.".into()).hint("To compare write ==, to set write =.")
        }
        Some('?') => cause("Invalid operator", "There is no operator \"??\".".into()).hint("Use coalesce(a, b) or CONDITION ? A : B."),
        Some('\n' | '\r') | None if before.ends_with('=') && !before.ends_with("==") => {
            let name = identifier_length(before);
            let line_start = text[..at.start].rfind('\n').map_or(0, |n| n + 1);
            let start = line_start + text[line_start..].len() - text[line_start..].trim_start().len();
            Cause::new(start..start + name, "Argument without a value", "After \"=\" a value must follow on the same line.")
        }
        Some('\n') | None => {
            let at = at.start.saturating_sub(1)..at.start;
            let at = if text.is_char_boundary(at.start) { at } else { at.end..at.end };
            Cause::new(at, "Incomplete expression", "The line ends and nothing follows.")
                .hint("Put the whole expression in parentheses to break it over lines.")
        }
        Some('>') if before.ends_with('=') => cause("Unexpected \"=>\"", "\"=>\" stands only in for expressions.".into()).hint("Write =."),
        _ => cause("Value expected", format!("Here a value must stand, but there is {found}.")),
    }
}

/// A dot that is the last of its line.
pub(super) fn no_name(dot: usize) -> Cause {
    Cause::new(dot..dot + 1, "Incomplete reference", "After a dot a name must follow, but the line ends.")
        .hint("Write the name, or remove the dot.")
}

/// What stands there, in words.
fn found_words(rest: &str) -> String {
    match rest.chars().next() {
        None => "the end of the text".into(),
        Some('\n' | '\r') => "the end of the line".into(),
        Some('"') => "a string".into(),
        Some('#') => "a comment".into(),
        Some(c) if c.is_ascii_digit() => "a number".into(),
        Some(c) if c.is_alphabetic() || c == '_' => format!("\"{}\"", &rest[..identifier_length(rest)]),
        Some(c) => format!("\"{c}\""),
    }
}

/// The line with strings and comments blanked out, byte for byte.
fn code_only(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let (mut quoted, mut escaped) = (false, false);
    for (i, c) in line.char_indices() {
        if !quoted && (c == '#' || line[i..].starts_with("//")) {
            break;
        }
        let quote = c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        if quote {
            quoted = !quoted;
        }
        let keep = !quoted || quote;
        out.extend(std::iter::repeat_n(if keep && c.is_ascii() { c } else { '_' }, c.len_utf8()));
    }
    out
}
