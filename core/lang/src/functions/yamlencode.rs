//! `yamlencode`

use karmaform_model::Number;

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "yamlencode",
    doc: "The value as YAML text, in blocks.",
    parameters: &[Parameter::any("value").null().unknown()],
    body: Some(|a| {
        let value = a.value(0);
        if !value.is_wholly_known() {
            return Ok(a.unknown());
        }
        let mut out = String::new();
        write(value, 0, Place::Top, &mut out);
        Ok(string(out))
    }),
    #[cfg(test)]
    rows: &[
        (
            "yamlencode({a=[1,\"x\",true],b=\"l1\\nl2\",c={},d=[],e=null,f=\"yes\"})",
            "\"\\\"a\\\":\\n- 1\\n- \\\"x\\\"\\n- true\\n\\\"b\\\": |-\\n  l1\\n  l2\\n\\\"c\\\": {}\\n\\\"d\\\": []\\n\\\"e\\\": null\\n\\\"f\\\": \\\"yes\\\"\\n\"",
        ),
        ("yamlencode([[1,[2]],{a=1,b=[2]}])", "\"- - 1\\n  - - 2\\n- \\\"a\\\": 1\\n  \\\"b\\\":\\n  - 2\\n\""),
        ("yamlencode({a={b={c=1.5}}})", "\"\\\"a\\\":\\n  \\\"b\\\":\\n    \\\"c\\\": 1.5\\n\""),
        ("yamlencode({a=\"x\\n\",b=\"x\\n\\n\"})", "\"\\\"a\\\": |\\n  x\\n\\\"b\\\": |+\\n  x\\n\\n\""),
        ("yamlencode({b=\" x\\ny\"})", "\"\\\"b\\\": |2-\\n   x\\n  y\\n\""),
        ("yamlencode([\"a\\nb\"])", "\"- |-\\n  a\\n  b\\n\""),
        ("yamlencode([])", "\"[]\\n\""),
        ("yamlencode(\"a\")", "\"\\\"a\\\"\\n\""),
        ("yamlencode(null)", "\"null\\n\""),
        ("yamlencode(\"a\\tb\\\\ \\\"\")", "\"\\\"a\\\\tb\\\\\\\\ \\\\\\\"\\\"\\n\""),
        ("yamlencode({a=u.id})", "UNKNOWN string"),
        ("issensitive(yamlencode([sensitive(1)]))", "true"),
    ],
    ..Function::BASE
};

/// What the text so far ends with.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Nothing: the value begins the document.
    Top,
    /// `key:`
    Key,
    /// `-`
    Dash,
}

fn write(value: &Value, level: usize, place: Place, out: &mut String) {
    let space = if place == Place::Top { "" } else { " " };
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
                out.push_str(&quoted(name));
                out.push(':');
                write(item, level + 1, Place::Key, out);
            }
        }
        Kind::List(..) | Kind::Set(..) | Kind::Tuple(_) => line(space, "[]", out),
        Kind::Map(..) | Kind::Object(_) => line(space, "{}", out),
        Kind::String(s) if s.contains('\n') && plain_lines(s) => block(s, level, space, out),
        Kind::String(s) => line(space, &quoted(s), out),
        Kind::Number(Number::PositiveInfinity) => line(space, ".inf", out),
        Kind::Number(Number::NegativeInfinity) => line(space, "-.inf", out),
        Kind::Number(n) => line(space, &n.to_string(), out),
        Kind::Bool(b) => line(space, &b.to_string(), out),
        Kind::Null(_) | Kind::Unknown(_) => line(space, "null", out),
    }
}

fn line(space: &str, text: &str, out: &mut String) {
    out.push_str(space);
    out.push_str(text);
    out.push('\n');
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

/// True if a text can stand in a literal block as it is.
fn plain_lines(text: &str) -> bool {
    let printable = |c: char| c == '\n' || !(c.is_control() || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}'));
    !text.starts_with('\n') && text.chars().all(printable) && !text.split('\n').any(|l| l.ends_with(' '))
}

fn block(text: &str, level: usize, space: &str, out: &mut String) {
    let ending = match text.strip_suffix('\n') {
        None => "|-",
        Some(rest) if rest.ends_with('\n') => "|+",
        Some(_) => "|",
    };
    // Spaces at the beginning would be taken for indentation, so that must be said in numbers.
    let indentation = if text.starts_with(' ') { "2" } else { "" };
    line(space, &ending.replacen('|', &format!("|{indentation}"), 1), out);
    for part in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if !part.is_empty() {
            out.push_str(&"  ".repeat(level.max(1)));
            out.push_str(part);
        }
        out.push('\n');
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{feff}' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c if c.is_control() => out.push_str(&format!("\\x{:02X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
