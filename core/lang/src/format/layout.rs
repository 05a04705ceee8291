//! Where lines and their cells begin.

use unicode_segmentation::UnicodeSegmentation;

use super::lexer::{Kind, Token};
use super::lines::Line;

/// Two spaces for each line above that left a bracket open. However many brackets one line opens, it is one step; the line that closes
/// them stands below the one that opened them.
///
/// As in Terraform, what a heredoc leaves open on the line it begins on is not counted, but what is closed on its later lines is. So an
/// interpolation of several lines ends levels that it did not begin, and what follows stands further to the left.
pub(super) fn indent(lines: &mut [Line]) {
    // How many brackets each of those lines left open.
    let mut open: Vec<i32> = Vec::new();
    for line in lines.iter_mut() {
        let mut net = line.tokens().take_while(|t| t.kind != Kind::HeredocOpen).map(Token::brackets).sum::<i32>();
        let mut level = open.len();
        if net > 0 {
            open.push(net);
        }
        while net < 0 {
            let Some(last) = open.last_mut() else { break };
            if *last + net > 0 {
                *last += net;
                net = 0;
            } else {
                net += *last;
                open.pop();
            }
            level = open.len();
        }
        if let Some(first) = line.lead.first_mut() {
            first.spaces = if first.kind == Kind::Newline { 0 } else { 2 * level };
        }
    }
}

/// Brings the `=` signs of neighbouring lines below each other, then their comments.
pub(super) fn align(lines: &mut [Line]) {
    for group in lines.chunk_by_mut(|a, b| a.assign.is_empty() == b.assign.is_empty()) {
        let widest = group.iter().map(|l| width(&l.lead)).max().unwrap_or(0);
        for line in group {
            let spaces = widest - width(&line.lead) + 1;
            if let Some(first) = line.assign.first_mut() {
                first.spaces = spaces;
            }
        }
    }
    let before = |l: &Line| width(&l.lead) + width(&l.assign);
    for group in lines.chunk_by_mut(|a, b| a.comment.is_empty() == b.comment.is_empty()) {
        let widest = group.iter().map(before).max().unwrap_or(0);
        for line in group {
            let spaces = widest - before(line) + 1;
            if let Some(first) = line.comment.first_mut() {
                first.spaces = spaces;
            }
        }
    }
}

/// Columns as Terraform counts them: what breaks a line within a heredoc is one, too.
fn width(tokens: &[Token]) -> usize {
    tokens.iter().map(|t| t.spaces + t.text.graphemes(true).count()).sum()
}
