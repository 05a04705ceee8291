//! Brackets: which one closes which, and what is inside of them.

use super::super::found::{Big, Entries, ProblemKind};
use super::{Open, Scanner};

/// Entries (lines, commas) from which on an object is parsed in pieces.
const MANY: usize = 1000;

impl Scanner<'_> {
    pub(super) fn close(&mut self, closer: u8) {
        let opener = match closer {
            b'}' => b'{',
            b']' => b'[',
            _ => b'(',
        };
        let matches = |open: &Open| match open {
            Open::Bracket { byte, .. } => *byte == opener,
            Open::Interpolation { .. } => opener == b'{',
            Open::Quote { .. } | Open::Heredoc { .. } | Open::Text => false,
        };
        match self.stack.last() {
            Some(open) if matches(open) => {
                if let Some(Open::Bracket { byte, at, indent, joins_lines, cuts }) = self.stack.pop() {
                    if self.notes_objects && !joins_lines && !cuts.is_empty() {
                        let starts = [at + 1].into_iter().chain(cuts.iter().copied()).collect();
                        self.scan.objects.push(Entries { starts, end: self.at, is_value: self.is_value(at) || self.is_in_expression() });
                    }
                    self.note_big(at, cuts);
                    let first_on_line = self.bytes[self.line_start..self.at].iter().all(|b| matches!(b, b' ' | b'\t'));
                    if at < self.line_start && first_on_line && self.indent() < indent && self.suspect.is_none() {
                        self.suspect = Some((byte, at, self.at));
                    }
                }
            }
            None => {
                let at = self.at..self.at + 1;
                self.problem(ProblemKind::Closer(closer), at, None);
            }
            Some(_) => {
                let found = self.at..self.at + 1;
                if self.stack.iter().any(&matches) {
                    let is_slip = self.is_slip(matches);
                    self.blame_open(Some(found));
                    if is_slip {
                        self.stack.pop();
                        return;
                    }
                    while self.stack.pop().is_some_and(|open| !matches(&open)) {}
                } else {
                    self.problem(ProblemKind::Closer(closer), found, None);
                }
            }
        }
    }

    /// True if a closer is meant for the innermost bracket though it is one of another kind: what it would close was opened on a line before,
    /// and the innermost on this one, or further right, where the closer stands as well.
    fn is_slip(&self, matches: impl Fn(&Open) -> bool) -> bool {
        let Some(Open::Bracket { at: inner, indent, .. }) = self.stack.last() else { return false };
        let Some(Open::Bracket { at: outer, indent: further_out, .. }) = self.stack.iter().rev().find(|open| matches(open)) else {
            return false;
        };
        let first_on_line = self.text[self.line_start..self.at].trim().is_empty();
        // What follows goes on in what was opened before, or closes it.
        let indent_of = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
        let next = self.text[self.at..].lines().skip(1).find(|line| !line.trim().is_empty());
        let goes_on = next.is_none_or(|line| line.trim_start().starts_with(['}', ']', ')']) || indent_of(line) > *further_out);
        goes_on
            && *outer < self.line_start
            && (*inner >= self.line_start || first_on_line && indent != further_out && self.indent() == *indent)
    }

    /// An entry of the innermost object ends here.
    pub(super) fn cut(&mut self) {
        if let Some(Open::Bracket { byte: b'{', cuts, .. }) = self.stack.last_mut() {
            cuts.push(self.at + 1);
        }
    }

    /// True if the brace there opens a value: what stands behind a name or a label is a block's body.
    fn is_value(&self, at: usize) -> bool {
        self.text[..at].trim_end().bytes().last().is_some_and(|b| b"=:,([?".contains(&b))
    }

    /// True where only expressions stand, and no blocks: in brackets, a `{for}` or an interpolation.
    pub(super) fn is_in_expression(&self) -> bool {
        matches!(self.stack.last(), Some(Open::Bracket { joins_lines: true, .. } | Open::Interpolation { .. }))
    }

    fn note_big(&mut self, at: usize, cuts: Vec<usize>) {
        if cuts.len() > MANY && self.is_value(at) && !self.text[at + 1..].trim_start().starts_with("for") {
            self.scan.big.retain(|inner| inner.inside.start < at);
            self.scan.big.push(Big { inside: at + 1..self.at, cuts });
        }
    }
}

/// True if what stands behind a brace is a `for` expression, and no attribute or key of that name.
pub(super) fn begins_for(text: &str) -> bool {
    let mut rest = text.trim_start();
    while ["#", "//", "/*"].iter().any(|mark| rest.starts_with(mark)) {
        let (behind, end) = rest.strip_prefix("/*").map_or((rest, "\n"), |text| (text, "*/"));
        rest = behind.split_once(end).map_or("", |(_, after)| after).trim_start();
    }
    let Some(behind) = rest.strip_prefix("for") else { return false };
    let names = |c: char| c.is_alphabetic() || matches!(c, '_' | '#' | '/');
    behind.starts_with([' ', '\t', '\r', '\n', '#', '/']) && behind.trim_start().starts_with(names)
}
