//! Lines: each in up to three cells, whose beginnings are aligned with those of the lines around.

use super::lexer::{Kind, Token};

/// A line with its line break.
pub(super) struct Line {
    /// All of it, but for what stands in the other two.
    pub(super) lead: Vec<Token>,
    /// `= value` of an attribute whose value ends on this line.
    pub(super) assign: Vec<Token>,
    /// A comment behind other things, and the line break behind that.
    pub(super) comment: Vec<Token>,
    /// It begins inside of a heredoc, where spaces are content.
    pub(super) in_heredoc: bool,
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
    // Heredocs that are open where the line begins; a heredoc may stand in an interpolation of another.
    let mut heredocs = 0usize;
    let mut finish = |tokens: Vec<Token>| {
        let begins_inside = heredocs > 0;
        for token in &tokens {
            match token.kind {
                Kind::HeredocOpen => heredocs += 1,
                Kind::HeredocClose => heredocs = heredocs.saturating_sub(1),
                _ => {}
            }
        }
        lines.push(cells(tokens, begins_inside));
    };
    for token in tokens {
        // A heredoc with all its lines is part of the line it begins on.
        let end = token.kind == Kind::Newline;
        current.push(token);
        if end {
            finish(std::mem::take(&mut current));
        }
    }
    if !current.is_empty() {
        finish(current);
    }
    lines
}

fn cells(mut lead: Vec<Token>, in_heredoc: bool) -> Line {
    if in_heredoc {
        return Line { lead, assign: Vec::new(), comment: Vec::new(), in_heredoc };
    }
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
    Line { lead, assign, comment, in_heredoc }
}
