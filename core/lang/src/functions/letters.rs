//! `lower`, `upper` and `title`: one character becomes one character, so that the German sharp s stays as it is.

use super::prelude::*;

const BASE: Function = Function { parameters: &[Parameter::string("str")], ..Function::BASE };

pub(super) const LOWER: Function = Function {
    name: "lower",
    doc: "The string in small letters.",
    body: Some(|a| Ok(string(a.text(0).chars().map(|c| single(c, c.to_lowercase())).collect::<String>()))),
    #[cfg(test)]
    rows: &[("lower(\"HÉLLO ẞ\")", "\"héllo ß\""), ("lower(null)", "ERROR must not be null"), ("lower(u.id)", "UNKNOWN string")],
    ..BASE
};

pub(super) const UPPER: Function = Function {
    name: "upper",
    doc: "The string in capital letters.",
    body: Some(|a| Ok(string(a.text(0).chars().map(|c| single(c, c.to_uppercase())).collect::<String>()))),
    #[cfg(test)]
    rows: &[("upper(\"ß\")", "\"ß\""), ("upper(\"a\")", "\"A\""), ("upper(\"éa1\")", "\"ÉA1\""), ("upper(true)", "\"TRUE\"")],
    ..BASE
};

pub(super) const TITLE: Function = Function {
    name: "title",
    doc: "The string with a capital letter at the start of each word.",
    body: Some(|a| {
        let mut before = ' ';
        let titled = a.text(0).chars().map(|c| {
            let first = separates(before);
            before = c;
            if first { single(c, c.to_uppercase()) } else { c }
        });
        Ok(string(titled.collect::<String>()))
    }),
    #[cfg(test)]
    rows: &[("title(\"hello world-foo bar_baz\")", "\"Hello World-Foo Bar_baz\""), ("title(\"1a don't\")", "\"1a Don'T\"")],
    ..BASE
};

/// The mapped character, if it is one; else the old one.
fn single(old: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(new), None) => new,
        _ => old,
    }
}

fn separates(c: char) -> bool {
    if c.is_ascii() { !(c.is_ascii_alphanumeric() || c == '_') } else { c.is_whitespace() }
}
