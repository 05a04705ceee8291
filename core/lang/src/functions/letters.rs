//! `lower`, `upper` and `title`: one character becomes one character, so that the German sharp s stays as it is.

use super::prelude::*;

const BASE: Function = Function { parameters: &[Parameter::string("str")], ..Function::BASE };

pub(super) const LOWER: Function = Function {
    name: "lower",
    doc: "The string in small letters.",
    body: Some(|a| Ok(string(a.text(0).chars().map(small).collect::<String>()))),
    #[cfg(test)]
    rows: &[("lower(\"HÉLLO ẞ\")", "\"héllo ß\""), ("lower(null)", "ERROR must not be null"), ("lower(u.id)", "UNKNOWN string")],
    ..BASE
};

pub(super) const UPPER: Function = Function {
    name: "upper",
    doc: "The string in capital letters.",
    body: Some(|a| Ok(string(a.text(0).chars().map(capital).collect::<String>()))),
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
            if first { initial(c) } else { c }
        });
        Ok(string(titled.collect::<String>()))
    }),
    #[cfg(test)]
    rows: &[("title(\"hello world-foo bar_baz\")", "\"Hello World-Foo Bar_baz\""), ("title(\"1a don't\")", "\"1a Don'T\"")],
    ..BASE
};

fn small(c: char) -> char {
    match c {
        // Alone it loses its dot, which would be a second character.
        'İ' => 'i',
        _ => single(c, c.to_lowercase()),
    }
}

fn capital(c: char) -> char {
    match c {
        // Greek letters with an iota below keep it in one character, where all capitals would write it behind.
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => behind(c, 8),
        'ᾳ' | 'ῃ' | 'ῳ' => behind(c, 9),
        _ => single(c, c.to_uppercase()),
    }
}

/// The letter at the start of a word.
fn initial(c: char) -> char {
    match c {
        // Two letters in one.
        'Ǆ' | 'ǅ' | 'ǆ' => 'ǅ',
        'Ǉ' | 'ǈ' | 'ǉ' => 'ǈ',
        'Ǌ' | 'ǋ' | 'ǌ' => 'ǋ',
        'Ǳ' | 'ǲ' | 'ǳ' => 'ǲ',
        // Georgian words begin with no capital, unless all their letters are.
        '\u{10d0}'..='\u{10ff}' => c,
        _ => capital(c),
    }
}

/// So many places behind it.
fn behind(c: char, places: u32) -> char {
    char::from_u32(u32::from(c) + places).unwrap_or(c)
}

/// The characters that have got their other size only after Unicode 15, which is Terraform's.
fn is_single_sized(c: char) -> bool {
    matches!(c, 'ƛ' | 'ɤ' | '\u{a7cb}'..='\u{a7cf}' | '\u{a7d2}'..='\u{a7d5}' | '\u{a7da}'..='\u{a7dc}')
        || matches!(c, '\u{10d50}'..='\u{10d85}' | '\u{16ea0}'..='\u{16ed3}')
}

/// The mapped character, if it is one; else the old one.
fn single(old: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(new), None) if !is_single_sized(old) => new,
        _ => old,
    }
}

fn separates(c: char) -> bool {
    if c.is_ascii() { !(c.is_ascii_alphanumeric() || c == '_') } else { c.is_whitespace() }
}
