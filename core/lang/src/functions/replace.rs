//! `replace`

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::pattern;
use super::prelude::*;
use crate::budget::LONGEST_TEXT;

pub(super) const FUNCTION: Function = Function {
    name: "replace",
    doc: "The string with each occurrence of a substring, or of a /regular expression/, replaced.",
    parameters: &[Parameter::string("str"), Parameter::string("substr"), Parameter::string("replace")],
    body: Some(|a| {
        let (text, what, with) = (a.text(0), a.text(1), a.text(2));
        // Only where that may be too long is it worth counting.
        let groups = with.matches('$').count().saturating_mul(text.len());
        let is_short = text.len().saturating_add(1).saturating_mul(with.len()).saturating_add(groups) <= LONGEST_TEXT;
        match what.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            Some(expression) => {
                let pattern = pattern::compile(a, 1, expression)?;
                if !is_short {
                    fits(pattern.find_iter(text).count().saturating_mul(with.len()).saturating_add(text.len()).saturating_add(groups))?;
                }
                let pieces = pieces(with);
                Ok(string(pattern.replace_all(text, |found: &Captures<'_>| pieces.iter().map(|p| p.text(found)).collect::<String>())))
            }
            None => {
                if !is_short {
                    fits(text.matches(what).count().saturating_mul(with.len()).saturating_add(text.len()))?;
                }
                Ok(string(text.replace(what, with)))
            }
        }
    }),
    #[cfg(test)]
    rows: &[
        ("replace(\"a1b2\",\"/([0-9])/\",\"<$1>\")", "\"a<1>b<2>\""),
        ("replace(\"a.b\",\".\",\"-\")", "\"a-b\""),
        ("replace(\"ab\",\"/(?P<x>a)/\",\"$x-\")", "\"a-b\""),
        ("replace(\"abab\",\"b\",\"\")", "\"aa\""),
        ("replace(\"ab\",\"\",\"-\")", "\"-a-b-\""),
        ("replace(\"a/b\",\"/\",\"-\")", "\"a-b\""),
        ("replace(\"ab\",\"/(/\",\"-\")", "ERROR \"/(/\" is no valid regular expression"),
    ],
    ..Function::BASE
};

/// A part of what replaces a match.
enum Piece<'a> {
    Text(&'a str),
    /// What a group has found, by its number or its name.
    Number(usize),
    Name(&'a str),
}

impl<'a> Piece<'a> {
    fn text(&self, found: &Captures<'a>) -> &'a str {
        let group = match self {
            Self::Text(text) => return text,
            Self::Number(number) => found.get(*number),
            Self::Name(name) => found.name(name),
        };
        group.map_or("", |g| g.as_str())
    }

    /// A zero in front makes a name of a number.
    fn group(name: &'a str) -> Self {
        let number = name.parse().ok().filter(|_| name == "0" || !name.starts_with('0'));
        number.map_or(Self::Name(name), Self::Number)
    }
}

/// A `$` that means something; any other is a dollar. Names end where no letter, digit or underscore follows, of any alphabet.
static DOLLAR: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\$(?:\$|(?<bare>[\p{L}\p{Nd}_]+)|\{(?<braced>[\p{L}\p{Nd}_]+)\})").ok());

/// The parts of what replaces a match: `$1`, `${1}`, `$name` and `${name}` are groups, `$$` is a dollar.
fn pieces(with: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut done) = (Vec::new(), 0);
    for found in DOLLAR.iter().flat_map(|dollar| dollar.captures_iter(with)) {
        let Some(whole) = found.get(0) else { continue };
        let name = found.name("bare").or_else(|| found.name("braced"));
        pieces.push(Piece::Text(&with[done..whole.start()]));
        pieces.push(name.map_or(Piece::Text("$"), |name| Piece::group(name.as_str())));
        done = whole.end();
    }
    pieces.push(Piece::Text(&with[done..]));
    pieces
}
