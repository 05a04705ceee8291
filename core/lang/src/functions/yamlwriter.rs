//! Values written as YAML, byte by byte as Terraform does.

use karmaform_model::Number;

use super::prelude::*;

/// Columns from which on a text in quotes goes on in the next line.
const WIDTH: usize = 80;
/// Keys of more bytes than this stand behind a `?`.
const LONGEST_KEY: usize = 128;

/// What the text so far ends with.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Nothing: the value begins the document.
    Top,
    /// `key:`
    Key,
    /// `-`, or the `?` and `:` of a long key and its value.
    Dash,
}

/// A wholly known value as a YAML document.
pub(super) fn yaml(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, Place::Top, &mut out);
    out
}

fn write(value: &Value, level: usize, place: Place, out: &mut String) {
    match &value.kind {
        Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) if !items.is_empty() => {
            // Items stand below their key without more indentation; within an item the first one stays on its line.
            let level = if place == Place::Key { level - 1 } else { level };
            for (i, item) in items.iter().enumerate() {
                begin(i, level, place, out);
                out.push('-');
                write(item, level + 1, Place::Dash, out);
            }
        }
        Kind::Map(_, entries) | Kind::Object(entries) if !entries.is_empty() => {
            for (i, (name, item)) in entries.iter().enumerate() {
                begin(i, level, place, out);
                let value_place = key(name, level, out);
                write(item, level + 1, value_place, out);
            }
        }
        Kind::List(..) | Kind::Set(..) | Kind::Tuple(_) => line(place, "[]", out),
        Kind::Map(..) | Kind::Object(_) => line(place, "{}", out),
        Kind::String(s) => text(s, level, place, out),
        Kind::Number(Number::PositiveInfinity) => plain(place, "+Inf", out),
        Kind::Number(Number::NegativeInfinity) => plain(place, "-Inf", out),
        Kind::Number(n) => plain(place, &n.to_string(), out),
        Kind::Bool(b) => plain(place, &b.to_string(), out),
        Kind::Null(_) | Kind::Unknown(_) => plain(place, "null", out),
    }
}

/// The key and its colon; gives where that leaves its value.
fn key(name: &str, level: usize, out: &mut String) -> Place {
    if !name.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) && name.len() <= LONGEST_KEY {
        quote(name, None, out);
        out.push(':');
        return Place::Key;
    }
    out.push('?');
    text(name, level + 1, Place::Dash, out);
    out.push_str(&"  ".repeat(level));
    out.push(':');
    Place::Dash
}

fn line(place: Place, text: &str, out: &mut String) {
    if place != Place::Top {
        out.push(' ');
    }
    out.push_str(text);
    out.push('\n');
}

/// A value without quotes. Where it is the whole document, its end is marked.
fn plain(place: Place, text: &str, out: &mut String) {
    line(place, text, out);
    if place == Place::Top {
        out.push_str("...\n");
    }
}

/// Goes to where the next item or key of a collection begins.
fn begin(number: usize, level: usize, place: Place, out: &mut String) {
    match (number, place) {
        (0, Place::Dash) => out.push(' '),
        (0, Place::Key) => {
            out.push('\n');
            out.push_str(&"  ".repeat(level));
        }
        _ => out.push_str(&"  ".repeat(level)),
    }
}

fn text(text: &str, level: usize, place: Place, out: &mut String) {
    let level = level.max(1);
    if text.contains('\n') && is_block(text) {
        return block(text, level, place, out);
    }
    if place != Place::Top {
        out.push(' ');
    }
    quote(text, Some(level), out);
    out.push('\n');
}

/// True if a text can stand in a literal block as it is.
fn is_block(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || is_plain(c)) && !text.split('\n').any(|l| l.ends_with(' '))
}

/// True for what may stand in a text unescaped.
fn is_plain(c: char) -> bool {
    !c.is_control() && u32::from(c) < 0x10000 && !matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{fffe}'..)
}

fn block(text: &str, level: usize, place: Place, out: &mut String) {
    let ending = match text.strip_suffix('\n') {
        None => "-",
        Some(rest) if rest.is_empty() || rest.ends_with('\n') => "+",
        Some(_) => "",
    };
    // Spaces and empty lines at the beginning would be taken for indentation, so that must be said in numbers.
    let indentation = if text.starts_with([' ', '\n']) { "2" } else { "" };
    line(place, &format!("|{indentation}{ending}"), out);
    for part in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if !part.is_empty() {
            out.push_str(&"  ".repeat(level));
            out.push_str(part);
        }
        out.push('\n');
    }
}

/// The text in quotes; with a level it may go on in the next line, from that on.
fn quote(text: &str, level: Option<usize>, out: &mut String) {
    let mut column = out.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    out.push('"');
    let mut after_space = false;
    for (i, c) in text.char_indices() {
        if let (' ', Some(level), false) = (c, level, after_space)
            && column > WIDTH
            && i > 0
            && i + 1 < text.len()
        {
            out.push('\n');
            out.push_str(&"  ".repeat(level));
            column = 2 * level;
            // The line break stands for this space; one more would be lost.
            if text[i + 1..].starts_with(' ') {
                out.push('\\');
                column += 1;
            }
        } else {
            let before = out.len();
            escape(c, out);
            column += out[before..].chars().count();
        }
        after_space = c == ' ';
    }
    out.push('"');
}

fn escape(c: char, out: &mut String) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\0' => out.push_str("\\0"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\u{b}' => out.push_str("\\v"),
        '\u{c}' => out.push_str("\\f"),
        '\r' => out.push_str("\\r"),
        '\u{1b}' => out.push_str("\\e"),
        '\u{85}' => out.push_str("\\N"),
        '\u{2028}' => out.push_str("\\L"),
        '\u{2029}' => out.push_str("\\P"),
        c if is_plain(c) => out.push(c),
        c => out.push_str(&match u32::from(c) {
            code @ ..0x100 => format!("\\x{code:02X}"),
            code @ ..0x10000 => format!("\\u{code:04X}"),
            code => format!("\\U{code:08X}"),
        }),
    }
}
