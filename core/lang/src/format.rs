//! `fmt`: the canonical layout of a configuration text.
//!
//! Works on tokens and lines of the source text, never on a tree, so that every comment and every line break stays where it is: lines
//! are indented, tokens spaced, `=` signs and trailing comments of neighbouring lines aligned. Knows nothing of expressions' values.

mod layout;
mod lexer;
mod lines;
mod rewrite;
mod spaces;

#[cfg(test)]
mod tests;

use lexer::Token;

/// Why a text was not formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// The line it is on, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for FormatError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for FormatError {}

/// The same text in canonical layout. Line breaks stay `\n` or `\r\n`, as each is. Formatting the result again changes nothing.
///
/// # Errors
/// If a bracket, string, comment or heredoc is never closed, or a character can't stand where it is.
pub fn format(text: &str) -> Result<String, FormatError> {
    let written = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = written.replace("\r\n", "\n");
    let tokens = rewrite::rewrite(lexer::lex(&text)?);
    let mut lines = lines::split(tokens);
    layout::indent(&mut lines);
    spaces::space(&mut lines);
    layout::align(&mut lines);
    let mut out = String::with_capacity(written.len());
    for Token { spaces, text, .. } in lines.iter().flat_map(lines::Line::tokens) {
        out.extend(std::iter::repeat_n(' ', *spaces));
        out.push_str(text);
    }
    // As in Terraform: spaces behind all else stay, if no line break does. What they are a part of, a comment for one, has them already.
    if !out.ends_with([' ', '\t']) {
        out.extend(std::iter::repeat_n(' ', text.len() - text.trim_end_matches([' ', '\t']).len()));
    }
    Ok(if written.len() == text.len() { out } else { with_line_breaks(&out, written) })
}

/// The text with the line breaks that its lines have in `written`; the first one's if there are not as many.
fn with_line_breaks(text: &str, written: &str) -> String {
    let breaks: Vec<&str> = written.split_inclusive('\n').map(|line| if line.ends_with("\r\n") { "\r\n" } else { "\n" }).collect();
    let same = text.split_inclusive('\n').count() == breaks.len();
    let mut out = String::with_capacity(written.len());
    for (i, line) in text.split_inclusive('\n').enumerate() {
        match line.strip_suffix('\n') {
            Some(line) => {
                out.push_str(line);
                out.push_str(breaks[if same { i } else { 0 }]);
            }
            None => out.push_str(line),
        }
    }
    out
}
