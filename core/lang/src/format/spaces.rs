//! The space between two tokens of a line: one or none.

use super::lexer::{Kind, Token};
use super::lines::Line;

/// Sets the spaces within the cells of all lines; where cells begin is left alone.
pub(super) fn space(lines: &mut [Line]) {
    for line in lines {
        let Line { lead, assign, comment, .. } = line;
        let last_of_lead = lead.last().cloned();
        within(None, lead);
        within(last_of_lead.as_ref(), assign);
        within(None, comment);
    }
}

fn within(before: Option<&Token>, cell: &mut [Token]) {
    for i in 1..cell.len() {
        let before = if i > 1 { cell.get(i - 2) } else { before };
        let spaces = usize::from(is_apart(before, &cell[i - 1], &cell[i]));
        // Text inside of strings has its spaces in itself.
        cell[i].spaces = spaces;
    }
}

/// True if a space stands between `left` and `right`; `before` is what stands before `left`.
fn is_apart(before: Option<&Token>, left: &Token, right: &Token) -> bool {
    use Kind::{
        Close, Comment, HeredocClose, HeredocOpen, HeredocText, Literal, Newline, Number, Open, QuoteClose, QuoteOpen, TemplateClose,
        TemplateOpen, Word,
    };
    let ends_value = |t: &Token| matches!(t.kind, Word | Number | Close | QuoteClose | HeredocClose | TemplateClose);
    // `for x in [1]`: a word that is no name of a value, as it follows a value without a sign in between.
    let keyword = left.kind == Word && left.text == "in" && before.is_some_and(ends_value);
    if right.kind == Newline || right.is(",") || right.is("...") || [left, right].iter().any(|t| t.is(".") || t.is("::")) {
        return false;
    }
    if left.is(",") {
        return true;
    }
    let text = |t: &Token| matches!(t.kind, Literal | HeredocText);
    if text(left) || text(right) || matches!(left.kind, QuoteOpen | HeredocOpen) || matches!(right.kind, QuoteClose | HeredocClose) {
        return false;
    }
    if left.kind == Word && right.is("(") {
        return false;
    }
    if right.is("[") && (matches!(left.kind, Word | Number | Close | TemplateClose)) {
        return keyword;
    }
    // Behind these Terraform takes each minus for one between two values.
    let is_between = |t: &Token| ends_value(t) || t.is("=>") || matches!(t.kind, TemplateOpen | Comment);
    if left.is("!") || (left.is("-") && !before.is_some_and(is_between)) {
        return false;
    }
    // Braces stand apart from what is in them, other brackets don't.
    if left.is("{") || right.is("}") {
        return !(left.is("{") && right.is("}"));
    }
    if (left.kind == TemplateOpen && right.is("{")) || (left.is("}") && right.kind == TemplateClose) {
        return true;
    }
    if left.kind == TemplateClose && right.kind == TemplateOpen {
        return false;
    }
    !(matches!(left.kind, Open | TemplateOpen) || matches!(right.kind, Close | TemplateClose))
}
