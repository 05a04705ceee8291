//! What is told to be wrong with a text, and where it goes on behind that.

use std::ops::Range;

use super::super::found::{Problem, ProblemKind};
use super::{Open, Scanner};

/// Keywords that stand at the start of a line only as top-level blocks.
const TOP_LEVEL: [&str; 8] = ["resource", "data", "variable", "output", "locals", "provider", "karmaform", "module"];

impl Scanner<'_> {
    pub(super) fn problem(&mut self, kind: ProblemKind, at: Range<usize>, found: Option<Range<usize>>) {
        self.broken = true;
        self.scan.problems.push(Problem { kind, at, found });
    }

    /// Says what is not closed; gives where that opened.
    pub(super) fn blame_open(&mut self, found: Option<Range<usize>>) -> usize {
        if let (Some((byte, at, closer)), Some(Open::Bracket { .. })) = (self.suspect, self.stack.last()) {
            self.problem(ProblemKind::Bracket(byte), at..at + 1, Some(closer..closer + 1));
            return at;
        }
        // A string is blamed on the interpolation around it that was not closed.
        let outer = self.stack.iter().rev().find(|o| matches!(o, Open::Heredoc { .. } | Open::Bracket { .. } | Open::Interpolation { .. }));
        let (kind, at) = match (self.stack.last(), outer) {
            (Some(Open::Quote { .. }), Some(Open::Interpolation { at })) => (ProblemKind::Interpolation, *at..*at + 2),
            (Some(Open::Quote { at }), _) => (ProblemKind::Quote, *at..*at + 1),
            (Some(Open::Heredoc { at, .. }), _) => (ProblemKind::Heredoc, at.clone()),
            (Some(Open::Interpolation { at }), _) => (ProblemKind::Interpolation, *at..*at + 2),
            (Some(Open::Bracket { byte, at, .. }), _) => (ProblemKind::Bracket(*byte), *at..*at + 1),
            (Some(Open::Text) | None, _) => return self.at,
        };
        let start = at.start;
        self.problem(kind, at, found);
        start
    }

    /// The next line after `from` that starts a top-level block.
    pub(super) fn next_header(&self, from: usize) -> Option<usize> {
        let mut start = from;
        loop {
            start += self.text.get(start..)?.find('\n')? + 1;
            if self.is_header(start) {
                return Some(start);
            }
        }
    }

    pub(super) fn is_header(&self, start: usize) -> bool {
        let line = self.text.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
        TOP_LEVEL
            .iter()
            .any(|word| line.strip_prefix(word).is_some_and(|rest| rest.trim_start().starts_with(['"', '{']) && rest.contains('{')))
    }
}
