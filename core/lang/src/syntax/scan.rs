//! A quick walk over a text: where its top-level items are, and which brackets, strings and heredocs are not closed.
//!
//! It knows just enough of the language to tell code from strings and comments. Two uses: items are parsed one by one, and the real cause
//! of an unbalanced text is named (the parser would blame the end of the file).

use std::ops::Range;

use super::found::{Big, Doubtful, Entries, Problem, ProblemKind, Scan};

/// How many problems of one file are looked for; each may cost a walk to the end of the text.
const MOST_PROBLEMS: usize = 20;

/// Entries (lines, commas) from which on an object is parsed in pieces.
const MANY: usize = 1000;

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

/// Keywords that stand at the start of a line only as top-level blocks.
const TOP_LEVEL: [&str; 8] = ["resource", "data", "variable", "output", "locals", "provider", "karmaform", "module"];

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

    fn problem(&mut self, kind: ProblemKind, at: Range<usize>, found: Option<Range<usize>>) {
        self.broken = true;
        self.scan.problems.push(Problem { kind, at, found });
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

    /// Says what is not closed; gives where that opened.
    fn blame_open(&mut self, found: Option<Range<usize>>) -> usize {
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
    fn next_header(&self, from: usize) -> Option<usize> {
        let mut start = from;
        loop {
            start += self.text.get(start..)?.find('\n')? + 1;
            if self.is_header(start) {
                return Some(start);
            }
        }
    }

    fn is_header(&self, start: usize) -> bool {
        let line = self.text.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
        TOP_LEVEL
            .iter()
            .any(|word| line.strip_prefix(word).is_some_and(|rest| rest.trim_start().starts_with(['"', '{']) && rest.contains('{')))
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

    fn close(&mut self, closer: u8) {
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
    fn cut(&mut self) {
        if let Some(Open::Bracket { byte: b'{', cuts, .. }) = self.stack.last_mut() {
            cuts.push(self.at + 1);
        }
    }

    /// True if the brace there opens a value: what stands behind a name or a label is a block's body.
    fn is_value(&self, at: usize) -> bool {
        self.text[..at].trim_end().bytes().last().is_some_and(|b| b"=:,([?".contains(&b))
    }

    /// True where only expressions stand, and no blocks: in brackets, a `{for}` or an interpolation.
    fn is_in_expression(&self) -> bool {
        matches!(self.stack.last(), Some(Open::Bracket { joins_lines: true, .. } | Open::Interpolation { .. }))
    }

    fn note_big(&mut self, at: usize, cuts: Vec<usize>) {
        if cuts.len() > MANY && self.is_value(at) && !self.text[at + 1..].trim_start().starts_with("for") {
            self.scan.big.retain(|inner| inner.inside.start < at);
            self.scan.big.push(Big { inside: at + 1..self.at, cuts });
        }
    }

    fn open_heredoc(&mut self) -> bool {
        let Some(rest) = self.text[self.at..].strip_prefix("<<") else { return false };
        let marker_text = rest.strip_prefix('-').unwrap_or(rest);
        let length = identifier_length(marker_text);
        let after = &marker_text[length..];
        if length == 0 || !(after.starts_with('\n') || after.starts_with("\r\n")) {
            return false;
        }
        let start = self.at + (self.text[self.at..].len() - marker_text.len());
        let marker = start..start + length;
        let depth = self.stack.len();
        self.stack.push(Open::Heredoc { at: self.at..marker.end, marker: marker.clone(), lookalike: true });
        self.at = marker.end + after.find('\n').map_or(0, |n| n + 1);
        self.line_start = self.at;
        self.end_heredoc();
        if let Some(Open::Heredoc { lookalike, .. }) = self.stack.get_mut(depth) {
            *lookalike = false;
        }
        true
    }

    /// At the start of a line in a heredoc: closes it if this is its end, which is the word alone.
    fn end_heredoc(&mut self) {
        let text = self.text;
        let Some(Open::Heredoc { marker, lookalike, .. }) = self.stack.last_mut() else { return };
        let line = &text[self.at..];
        let Some(rest) = line.trim_start_matches([' ', '\t']).strip_prefix(&text[marker.clone()]) else { return };
        if rest.starts_with(is_continue) {
            return;
        }
        if !rest.lines().next().unwrap_or_default().trim().is_empty() {
            *lookalike = true;
            return;
        }
        let (opening, is_doubtful) = (marker.clone(), *lookalike);
        self.at += line.len() - rest.len();
        self.stack.pop();
        if is_doubtful {
            self.scan.doubtful.push(Doubtful { closing: self.at - opening.len()..self.at, opening });
        }
    }

    fn heredoc(&mut self) {
        match self.bytes[self.at] {
            b'\n' => {
                self.at += 1;
                self.line_start = self.at;
                self.end_heredoc();
            }
            b'\r' => self.carriage_return(),
            b'$' | b'%' => self.interpolation(),
            _ => self.at += 1,
        }
    }

    fn plain(&mut self) {
        match self.bytes[self.at] {
            b'$' | b'%' => self.interpolation(),
            _ => self.at += 1,
        }
    }

    fn quoted(&mut self) {
        match self.bytes[self.at] {
            b'\\' => self.at += if matches!(self.bytes.get(self.at + 1), Some(b'\n') | None) { 1 } else { 2 },
            b'"' => {
                self.stack.pop();
                self.at += 1;
            }
            b'\n' => {
                self.blame_open(None);
                // Go on as if everything opened on this line had been closed at its end.
                let line = self.line_start;
                self.stack.retain(|open| match open {
                    Open::Quote { at } | Open::Interpolation { at } => *at < line,
                    _ => true,
                });
                if matches!(self.stack.last(), Some(Open::Quote { .. })) {
                    self.stack.pop();
                }
            }
            b'\r' => self.carriage_return(),
            b'$' | b'%' => self.interpolation(),
            _ => self.at += 1,
        }
    }

    /// It belongs to the end of a line, and to nothing else.
    fn carriage_return(&mut self) {
        if self.bytes.get(self.at + 1) != Some(&b'\n') {
            self.problem(ProblemKind::Return, self.at..self.at + 1, None);
        }
        self.at += 1;
    }

    /// At `$` or `%` in a template.
    fn interpolation(&mut self) {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(b"$${") || rest.starts_with(b"%%{") {
            self.at += 3;
        } else if rest.get(1) == Some(&b'{') {
            self.stack.push(Open::Interpolation { at: self.at });
            self.at += 2;
        } else {
            self.at += 1;
        }
    }
}

/// True if what stands behind a brace is a `for` expression, and no attribute or key of that name.
fn begins_for(text: &str) -> bool {
    let mut rest = text.trim_start();
    while ["#", "//", "/*"].iter().any(|mark| rest.starts_with(mark)) {
        let (behind, end) = rest.strip_prefix("/*").map_or((rest, "\n"), |text| (text, "*/"));
        rest = behind.split_once(end).map_or("", |(_, after)| after).trim_start();
    }
    let Some(behind) = rest.strip_prefix("for") else { return false };
    let names = |c: char| c.is_alphabetic() || matches!(c, '_' | '#' | '/');
    behind.starts_with([' ', '\t', '\r', '\n', '#', '/']) && behind.trim_start().starts_with(names)
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
