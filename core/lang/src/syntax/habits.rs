//! Mistakes that people bring along from other languages and from other places of this one. They are known by their look, around the place
//! where the parser gave up.

use super::scan::{identifier_length, scan};
use super::words::{Cause, no_name};

/// The one that is there, if it is one of these.
pub(super) fn habit(text: &str, at: usize) -> Option<Cause> {
    // What is meant stands behind the blanks.
    let at = text.len() - text[at..].trim_start_matches([' ', '\t']).len();
    let line_start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let line = text[line_start..].lines().next().unwrap_or_default();
    let here = Here { text, at, line_start, line };
    here.last_dot()
        .or_else(|| here.header())
        .or_else(|| here.angle_brackets())
        .or_else(|| here.heredoc())
        .or_else(|| here.exponent())
        .or_else(|| here.list_for())
        .or_else(|| here.directive())
}

/// Where the parser gave up.
struct Here<'t> {
    text: &'t str,
    at: usize,
    line_start: usize,
    line: &'t str,
}

impl Here<'_> {
    /// What stands on the line before the place.
    fn before(&self) -> &str {
        &self.text[self.line_start..self.at]
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// `a = var.` with something else on the next lines, of which the parser takes the first word for the name.
    fn last_dot(&self) -> Option<Cause> {
        let found = scan(self.text);
        let dot = found.last_dots.into_iter().rfind(|dot| *dot < self.at)?;
        let behind = dot + 1;
        let mut code = self.text[behind..self.at].to_owned();
        for comment in found.comments.into_iter().rev().filter(|comment| behind <= comment.start && comment.end <= self.at) {
            code.replace_range(comment.start - behind..comment.end - behind, "");
        }
        let word = code.trim();
        if identifier_length(word) < word.len() {
            return None;
        }
        let read = &self.text[..dot];
        let stem = read.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let digits = &read[stem.len()..];
        if digits.ends_with('.') {
            return None;
        }
        // With a letter before them they belong to a name, with a dot they are an index.
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
            && !stem.trim_end_matches('-').ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if is_number {
            let cause = Cause::new(stem.len()..dot + 1, "Incomplete number", "Digits must follow after the point of a number.");
            return Some(cause.hint("Write it like 1.5, or without the point."));
        }
        Some(no_name(dot))
    }

    /// `output "o" = {` and `output "o${1}" {`
    fn header(&self) -> Option<Cause> {
        let indent = self.line.len() - self.line.trim_start().len();
        let word = identifier_length(&self.line[indent..]);
        let labels = self.line[indent + word..].trim_start();
        if word == 0 || !labels.starts_with('"') || !self.line.trim_end().ends_with(['{', '}']) {
            return None;
        }
        let label_start = self.line.len() - labels.len();
        let mut at = label_start;
        while self.line[at..].starts_with('"') {
            let inner = &self.line[at + 1..];
            let end = inner.find('"')?;
            if let Some(found) = ["${", "%{"].iter().filter_map(|mark| inner[..end].find(mark)).min() {
                let start = self.line_start + at + 1 + found;
                // In a text of several lines it is another mistake.
                if self.at > start + 2 {
                    return None;
                }
                let cause = Cause::new(
                    start..start + 2,
                    "Interpolation in a label",
                    "The label of a block is a plain text: nothing in it is evaluated.",
                );
                return Some(cause.hint("Write the name itself. For one block for each of many things set for_each in it."));
            }
            let behind = &inner[end + 1..];
            at = self.line.len() - behind.trim_start().len();
        }
        let rest = self.line[at..].strip_prefix('=')?.trim_start();
        if !rest.starts_with('{') {
            return None;
        }
        let header = self.line[indent..at].trim_end();
        let start = self.line_start + at;
        let cause = Cause::new(start..start + 1, "Block with an equals sign", "A block has no \"=\" before its brace.");
        Some(cause.hint(format!("Write {header} {{ ... }}.")))
    }

    /// `list<string>`
    fn angle_brackets(&self) -> Option<Cause> {
        let words = ["list", "set", "map", "object", "tuple", "optional"];
        words.iter().find_map(|word| {
            let at = self.line.find(&format!("{word}<"))?;
            let is_word = !self.line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '"'));
            let inner = &self.line[at + word.len() + 1..];
            let end = inner.find('>')?;
            if !is_word || !inner.starts_with(|c: char| c.is_alphabetic() || c == '{' || c == '[') {
                return None;
            }
            let start = self.line_start + at + word.len();
            // The parser has given up here, or where it took the second one for an operator.
            if !(start..=start + end + 3).contains(&self.at) {
                return None;
            }
            let example = if inner[..end].contains('<') { "string" } else { inner[..end].trim() };
            let cause = Cause::new(start..start + 1, "Angle brackets in a type", "What a type is made of stands in parentheses.");
            Some(cause.hint(format!("Write {word}({example}).")))
        })
    }

    /// `<< EOT`
    fn heredoc(&self) -> Option<Cause> {
        let before = self.before();
        let arrows = before.trim_end();
        let start = arrows.strip_suffix("<<-").or_else(|| arrows.strip_suffix("<<"))?.len();
        let length = identifier_length(self.rest());
        if length == 0 || arrows.len() == before.len() {
            return None;
        }
        let marker = &self.rest()[..length];
        let span = self.line_start + start..self.at + length;
        let cause =
            Cause::new(span, "Space in the start of a heredoc", "The word that ends a heredoc stands right behind \"<<\" or \"<<-\".");
        Some(cause.hint(format!("Write {}{marker}.", &arrows[start..])))
    }

    /// `1e`
    fn exponent(&self) -> Option<Cause> {
        let before = self.before().trim_end();
        let number = before.trim_end_matches(['+', '-']);
        let digits = number.strip_suffix(['e', 'E'])?;
        let length = digits.len() - digits.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let stem = &digits[..digits.len() - length];
        if length == 0 || stem.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '"')) && !stem.ends_with("= -") {
            return None;
        }
        let start = self.line_start + stem.len();
        let cause =
            Cause::new(start..self.line_start + before.len(), "Incomplete number", "Digits must follow after the \"e\" of an exponent.");
        Some(cause.hint("Write it like 1e6, or without the \"e\"."))
    }

    /// `=>` and `...` in a `for` expression that makes a list.
    fn list_for(&self) -> Option<Cause> {
        if !["=>", "..."].iter().any(|sign| self.rest().starts_with(sign)) {
            return None;
        }
        let read = &self.text[..self.at];
        let is_list = read.rfind("[for ").is_some_and(|list| {
            let inside = &read[list + 1..];
            !inside.contains("{for ") && inside.matches('[').count() >= inside.matches(']').count()
        });
        let rest = self.rest();
        if is_list && rest.starts_with("=>") {
            let detail = "With KEY => VALUE a for expression makes an object, and stands in braces.";
            let cause = Cause::new(self.at..self.at + 2, "\"=>\" in brackets", detail);
            return Some(cause.hint("Write {for k, v in map : k => v}; for a list [for x in list : x]."));
        }
        if is_list && rest.starts_with("...") {
            let detail = "\"...\" gathers values of one key, and only in braces there are keys.";
            let cause = Cause::new(self.at..self.at + 3, "\"...\" in brackets", detail);
            return Some(cause.hint("Write {for x in list : KEY => x...}, or remove it."));
        }
        None
    }

    /// `%{for ...}...%{endif}`: the end of another directive.
    fn directive(&self) -> Option<Cause> {
        let rest = self.rest();
        let word = &rest[..identifier_length(rest)];
        let before = self.text[..self.at].trim_end().trim_end_matches('~');
        if !matches!(word, "endif" | "endfor" | "else") || !before.ends_with("%{") {
            return None;
        }
        let mut open = Vec::new();
        let start = before.len() - 2;
        for (place, _) in self.text[..start].match_indices("%{").filter(|(place, _)| !self.text[..*place].ends_with('%')) {
            let inside = self.text[place + 2..].trim_start_matches('~').trim_start();
            match &inside[..identifier_length(inside)] {
                "if" => open.push("endif"),
                "for" => open.push("endfor"),
                "endif" | "endfor" => drop(open.pop()),
                _ => {}
            }
        }
        let wanted = *open.last()?;
        if word == wanted || wanted == "endif" && word == "else" {
            return None;
        }
        let (what, span) = (wanted.trim_start_matches("end"), self.at..self.at + word.len());
        let cause = Cause::new(
            span,
            "Invalid template directive",
            format!("The directive that is open here is an %{{ {what} }}, and \"{word}\" is none of its parts."),
        );
        Some(cause.hint(format!("Write %{{ {wanted} }} to end it.")))
    }
}
