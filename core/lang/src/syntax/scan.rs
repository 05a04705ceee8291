//! A quick walk over a text: where its top-level items are, and which brackets, strings and heredocs are not closed.
//!
//! It knows just enough of the language to tell code from strings and comments. Two uses: items are parsed one by one, and the real cause
//! of an unbalanced text is named (the parser would blame the end of the file).

mod blame;
mod brackets;
mod templates;

use std::ops::Range;

use self::brackets::begins_for;
use super::found::{Doubtful, Entries, Problem, ProblemKind, Scan};

/// How many problems of one file are looked for; each may cost a walk to the end of the text.
const MOST_PROBLEMS: usize = 20;

#[derive(Clone, Debug)]
enum Open {
    Bracket {
        byte: u8,
        at: usize,
        indent: usize,
        /// Line breaks right in it mean nothing.
        joins_lines: bool,
        cuts: Vec<usize>,
    },
    Interpolation {
        at: usize,
    },
    Quote {
        at: usize,
    },
    /// `lookalike`: a line in it begins like its end, or nothing but its end has come yet.
    Heredoc {
        at: Range<usize>,
        marker: Range<usize>,
        lookalike: bool,
    },
    /// A template that stands alone: the text itself.
    Text,
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    line_start: usize,
    /// What is the last of its line so far, in code and without comments.
    last_code: Option<usize>,
    stack: Vec<Open>,
    /// Start of the item under way.
    item: Option<usize>,
    broken: bool,
    /// A bracket whose closer stands further left than its own line: a hint at what is not closed.
    suspect: Option<(u8, usize, usize)>,
    /// Lines that look like the beginning of a top-level block are taken for one, whatever is open.
    guesses: bool,
    /// What may be an object is noted.
    notes_objects: bool,
    scan: Scan,
}

/// Walks over the text. Only where something is wrong with it are lines looked at for where it goes on: in a text without indentation
/// a block may well stand in another at the beginning of a line.
pub(super) fn scan(text: &str) -> Scan {
    let found = walk(text, false);
    if found.problems.is_empty() { found } else { walk(text, true) }
}

fn walk(text: &str, guesses: bool) -> Scan {
    let mut scanner = Scanner::new(text, Vec::new(), guesses);
    scanner.run();
    scanner.scan
}

/// Heredocs in a text without problems that the parser would end elsewhere, in its order.
pub(super) fn doubtful_heredocs(text: &str, is_template: bool) -> Vec<Doubtful> {
    if !text.contains("<<") {
        return Vec::new();
    }
    Scanner::new(text, if is_template { vec![Open::Text] } else { Vec::new() }, false).until_problem().scan.doubtful
}

/// Where line breaks mean nothing: these, and the comments that they end.
pub(super) fn idle_breaks(text: &str, is_template: bool) -> Vec<Range<usize>> {
    let found = Scanner::new(text, if is_template { vec![Open::Text] } else { Vec::new() }, false).until_problem().scan;
    let is_idle = |at: usize| found.idle_breaks.binary_search(&at).is_ok();
    let comments = found.comments.into_iter().filter(|c| is_idle(c.end) && !text[c.clone()].starts_with("/*"));
    let comments: Vec<_> = comments.collect();
    found.idle_breaks.iter().map(|at| *at..at + 1).chain(comments).collect()
}

/// What may be objects with several entries in a text without problems.
pub(super) fn objects(text: &str, is_template: bool) -> Vec<Entries> {
    objects_and_comments(text, is_template).0
}

/// The same, and all comments.
pub(super) fn objects_and_comments(text: &str, is_template: bool) -> (Vec<Entries>, Vec<Range<usize>>) {
    let mut scanner = Scanner::new(text, if is_template { vec![Open::Text] } else { Vec::new() }, false);
    scanner.notes_objects = true;
    let found = scanner.until_problem().scan;
    (found.objects, found.comments)
}

/// How many bytes of the string or the bracket at the text's start.
pub(super) fn enclosed_length(text: &str) -> Option<usize> {
    let mut scanner = Scanner::new(text, Vec::new(), false);
    while scanner.at < text.len() && scanner.scan.problems.is_empty() {
        scanner.step();
        if scanner.stack.is_empty() {
            return Some(scanner.at);
        }
    }
    None
}

/// The first thing in a template that stands alone that is not closed, or closed twice. The parser would try so often what it could be that
/// nobody waits for it.
pub(super) fn scan_template(text: &str) -> Option<Problem> {
    let mut scanner = Scanner::new(text, vec![Open::Text], false).until_problem();
    if scanner.scan.problems.is_empty() && scanner.stack.len() > 1 {
        scanner.blame_open(None);
    }
    scanner.scan.problems.into_iter().next()
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str, stack: Vec<Open>, guesses: bool) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            line_start: 0,
            last_code: None,
            stack,
            item: None,
            broken: false,
            suspect: None,
            guesses,
            notes_objects: false,
            scan: Scan::default(),
        }
    }

    /// Walks to the end, or to the first problem.
    fn until_problem(mut self) -> Self {
        while self.at < self.bytes.len() && self.scan.problems.is_empty() {
            self.step();
        }
        self
    }

    fn step(&mut self) {
        match self.stack.last() {
            Some(Open::Quote { .. }) => self.quoted(),
            Some(Open::Heredoc { .. }) => self.heredoc(),
            Some(Open::Text) => self.plain(),
            _ => self.code(),
        }
    }

    fn run(&mut self) {
        loop {
            while self.at < self.bytes.len() {
                self.step();
                if self.scan.problems.len() >= MOST_PROBLEMS {
                    return;
                }
            }
            if self.stack.is_empty() {
                self.end_item();
                return;
            }
            self.scan.unfinished |= self.scan.problems.is_empty();
            let opened = self.blame_open(None);
            match self.next_header(opened) {
                Some(start) => self.restart(start),
                None => return,
            }
        }
    }

    fn end_item(&mut self) {
        if let Some(start) = self.item.take()
            && !self.broken
        {
            // The carriage return belongs to the line's end.
            let end = self.text[..self.at].trim_end_matches('\r').len();
            self.scan.items.push(start..end.max(start));
        }
        self.broken = false;
        self.suspect = None;
    }

    fn restart(&mut self, at: usize) {
        self.stack.clear();
        self.item = None;
        self.broken = false;
        self.suspect = None;
        self.at = at;
        self.line_start = at;
    }

    fn indent(&self) -> usize {
        self.bytes[self.line_start..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
    }

    fn code(&mut self) {
        let rest = &self.bytes[self.at..];
        match rest[0] {
            b'\n' => {
                if self.stack.is_empty() {
                    self.end_item();
                }
                let joins = self.is_in_expression();
                if joins {
                    self.scan.idle_breaks.push(self.at);
                }
                let last = self.last_code.take();
                self.scan.last_dots.extend(last.filter(|at| !joins && self.bytes[*at] == b'.'));
                self.cut();
                self.at += 1;
                self.new_line();
                return;
            }
            b'\r' => return self.carriage_return(),
            b' ' | b'\t' => {}
            b'#' => return self.skip_line(),
            b'/' if rest.starts_with(b"//") => return self.skip_line(),
            b'/' if rest.starts_with(b"/*") => return self.comment(),
            first => {
                self.item.get_or_insert(self.at);
                self.last_code = Some(self.at);
                match first {
                    b'"' => self.stack.push(Open::Quote { at: self.at }),
                    b'{' | b'[' | b'(' => {
                        let indent = self.indent();
                        let joins_lines = first != b'{' || begins_for(&self.text[self.at + 1..]);
                        self.stack.push(Open::Bracket { byte: first, at: self.at, indent, joins_lines, cuts: Vec::new() });
                    }
                    b'}' | b']' | b')' => self.close(first),
                    b',' => self.cut(),
                    b'<' if self.open_heredoc() => return,
                    _ => {}
                }
            }
        }
        self.at += 1;
    }

    fn new_line(&mut self) {
        self.line_start = self.at;
        let in_code = matches!(self.stack.last(), Some(Open::Bracket { .. } | Open::Interpolation { .. }));
        if self.guesses && in_code && self.bytes.get(self.at).is_some_and(u8::is_ascii_lowercase) && self.is_header(self.at) {
            let word = self.text[self.at..].split([' ', '"', '{']).next().unwrap_or_default().len();
            self.blame_open(Some(self.at..self.at + word));
            self.restart(self.at);
        }
    }

    fn skip_line(&mut self) {
        let start = self.at;
        self.at = self.text[self.at..].find('\n').map_or(self.bytes.len(), |n| self.at + n);
        self.scan.comments.push(start..self.at);
    }

    fn comment(&mut self) {
        match self.text[self.at + 2..].find("*/") {
            Some(n) => {
                self.scan.comments.push(self.at..self.at + n + 4);
                self.at += n + 4;
            }
            None => {
                self.problem(ProblemKind::Comment, self.at..self.at + 2, None);
                self.at = self.bytes.len();
                self.stack.clear();
            }
        }
    }

    /// It belongs to the end of a line, and to nothing else.
    fn carriage_return(&mut self) {
        if self.bytes.get(self.at + 1) != Some(&b'\n') {
            self.problem(ProblemKind::Return, self.at..self.at + 1, None);
        }
        self.at += 1;
    }
}

/// How many bytes of the identifier at the text's start.
pub(super) fn identifier_length(text: &str) -> usize {
    if !text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return 0;
    }
    text.find(|c| !is_continue(c)).unwrap_or(text.len())
}

fn is_continue(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests;
