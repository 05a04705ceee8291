//! Lines: each in up to three cells, whose beginnings are aligned with those of the lines around.

use super::lexer::{Kind, Token};

/// A line with its line break. Within a heredoc it is what ends with a line break of an interpolation; those of the text end no line.
pub(super) struct Line {
    /// All of it, but for what stands in the other two.
    pub(super) lead: Vec<Token>,
    /// `= value` of an attribute whose value ends on this line.
    pub(super) assign: Vec<Token>,
    /// A comment behind other things, and the line break behind that.
    pub(super) comment: Vec<Token>,
}

impl Line {
    /// All its tokens.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.lead.iter().chain(&self.assign).chain(&self.comment)
    }
}

/// The lines of a text.
pub(super) fn split(tokens: Vec<Token>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut current = Vec::new();
    for token in tokens {
        let end = token.kind == Kind::Newline;
        current.push(token);
        if end {
            lines.push(cells(std::mem::take(&mut current)));
        }
    }
    if !current.is_empty() {
        lines.push(cells(current));
    }
    lines
}

fn cells(mut lead: Vec<Token>) -> Line {
    let broken = usize::from(lead.last().is_some_and(|t| t.kind == Kind::Newline));
    let last = lead.len() - broken;
    // As in Terraform: at the end of a text without a line break one between `/*` and `*/` is among them.
    let ends_line = |t: &Token| t.kind == Kind::Comment && (broken == 0 || !t.text.starts_with("/*"));
    let comment = if last > 1 && ends_line(&lead[last - 1]) { lead.split_off(last - 1) } else { Vec::new() };
    let assign = match lead.iter().position(|t| t.is("=")) {
        // Brackets that stay open make it a value of several lines, and those are aligned with nothing.
        Some(place) if place > 0 && lead[place..].iter().map(Token::brackets).sum::<i32>() == 0 => lead.split_off(place),
        _ => Vec::new(),
    };
    Line { lead, assign, comment }
}
