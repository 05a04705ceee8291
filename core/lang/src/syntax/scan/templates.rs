//! Templates: strings in quotes, heredocs and texts that stand alone, and where an expression begins in them.

use super::super::found::Doubtful;
use super::{Open, Scanner, identifier_length, is_continue};

impl Scanner<'_> {
    pub(super) fn open_heredoc(&mut self) -> bool {
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

    pub(super) fn heredoc(&mut self) {
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

    pub(super) fn plain(&mut self) {
        match self.bytes[self.at] {
            b'$' | b'%' => self.interpolation(),
            _ => self.at += 1,
        }
    }

    pub(super) fn quoted(&mut self) {
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
