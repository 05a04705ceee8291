//! Values as `console` and `output` show them: the language's own look.

use std::fmt::Write as _;

use karmaform_model::{Kind, Object, Type, Value};

/// The value as text. Secrets and what is not known yet are only named.
pub fn render(value: &Value) -> String {
    let mut out = String::new();
    write_value(value, 0, &mut out);
    out
}

fn write_value(value: &Value, indent: usize, out: &mut String) {
    // Of what is not known there is nothing yet that could be hidden.
    let hides = |mark: bool| mark && !value.is_unknown();
    if hides(value.secret) {
        out.push_str("(sensitive value)");
        return;
    }
    if hides(value.ephemeral) {
        out.push_str("(ephemeral value)");
        return;
    }
    match &value.kind {
        Kind::Null(ty) => match ty {
            Type::Any => out.push_str("null"),
            Type::String => out.push_str("tostring(null)"),
            Type::Number => out.push_str("tonumber(null)"),
            Type::Bool => out.push_str("tobool(null)"),
            Type::List(element) | Type::Set(element) | Type::Map(element) => {
                let _ = write!(out, "to{}(null) /* of {} */", ty.word(), phrase(element));
            }
            other => drop(write!(out, "null /* {} */", other.word())),
        },
        Kind::Unknown(_) => out.push_str("(known after apply)"),
        Kind::Bool(b) => drop(write!(out, "{b}")),
        Kind::Number(n) => drop(write!(out, "{n}")),
        Kind::String(s) => write_string(s, indent, out),
        Kind::List(_, items) => wrapped("tolist(", items, indent, out),
        Kind::Set(_, items) => wrapped("toset(", items, indent, out),
        Kind::Tuple(items) => write_items(items, indent, out),
        Kind::Map(_, entries) => {
            out.push_str("tomap(");
            write_entries(entries, indent, out);
            out.push(')');
        }
        Kind::Object(entries) => write_entries(entries, indent, out),
    }
}

fn wrapped(name: &str, items: &[Value], indent: usize, out: &mut String) {
    out.push_str(name);
    write_items(items, indent, out);
    out.push(')');
}

fn line(indent: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
}

fn write_items(items: &[Value], indent: usize, out: &mut String) {
    if items.is_empty() {
        out.push_str("[]");
        return;
    }
    out.push('[');
    for item in items {
        line(indent + 2, out);
        write_value(item, indent + 2, out);
        out.push(',');
    }
    line(indent, out);
    out.push(']');
}

fn write_entries(entries: &Object, indent: usize, out: &mut String) {
    if entries.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push('{');
    for (name, value) in entries {
        line(indent + 2, out);
        out.push_str(&quoted(name));
        out.push_str(" = ");
        write_value(value, indent + 2, out);
    }
    line(indent, out);
    out.push('}');
}

/// `list of string`
fn phrase(ty: &Type) -> String {
    match ty {
        Type::List(element) | Type::Set(element) | Type::Map(element) => format!("{} of {}", ty.word(), phrase(element)),
        _ => ty.word().to_owned(),
    }
}

/// Text of several lines is shown as a heredoc, all of whose lines are indented, also empty ones.
fn write_string(text: &str, indent: usize, out: &mut String) {
    let lines: Vec<_> = text.split('\n').collect();
    let printable = |line: &&str| line.strip_suffix('\r').unwrap_or(line).chars().all(|c| !c.is_control() || c == '\t');
    if lines.len() < 2 || !lines.iter().all(printable) {
        return out.push_str(&quoted(text));
    }
    let mut marker = "EOT".to_owned();
    while lines.iter().any(|l| l.trim() == marker) {
        marker.push('_');
    }
    out.push_str(if indent == 0 { "<<" } else { "<<-" });
    out.push_str(&marker);
    for part in &lines {
        line(indent, out);
        out.push_str(part);
    }
    line(indent, out);
    out.push_str(&marker);
}

/// A text in quotes, with escapes for what can't be seen, as in plans. `${` stands as it is: this is what the text holds, not how it would be written.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if is_visible(c) => out.push(c),
            c => out.push_str(&match u32::from(c) {
                code @ ..0x80 => format!("\\x{code:02x}"),
                code @ ..0x10000 => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    out.push('"');
    out
}

/// True if something is to be seen of a character, or it is a plain space. Not of what only joins, separates or turns others round, and not of what is
/// no character yet.
pub(crate) fn is_visible(c: char) -> bool {
    // Behind a letter an accent stands as it is, and what can't be seen is still escaped.
    c.is_ascii_graphic() || !format!("x{c}").escape_debug().any(|escaped| escaped == '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_look_like_the_language() {
        let value = Value::object([
            ("a", Value::strings(["x", "y${\u{1}"])),
            ("b", Value::tuple(vec![1i64.into(), Value::from("s").secret(), Value::unknown(Type::String)])),
            ("c", Value::map(Type::Any, Default::default())),
            ("d", Value::null(Type::String)),
            ("e", "l1\nl2\n".into()),
        ]);
        let expected = "{\n  \"a\" = tolist([\n    \"x\",\n    \"y${\\x01\",\n  ])\n  \"b\" = [\n    1,\n    (sensitive value),\n    (known after apply),\n  ]\n  \"c\" = tomap({})\n  \"d\" = tostring(null)\n  \"e\" = <<-EOT\n  l1\n  l2\n  \n  EOT\n}";
        assert_eq!(render(&value), expected);
        assert_eq!(render(&Value::tuple(vec![Value::unknown(Type::String).secret()])), "[\n  (known after apply),\n]");
        assert_eq!(render(&"a\"b".into()), "\"a\\\"b\"");
        assert_eq!(render(&"\u{200d}\u{a0}\u{f0000}\u{b}é".into()), "\"\\u200d\\u00a0\\U000f0000\\vé\"");
        assert_eq!(render(&"e\u{301} \u{378}\u{890}\u{110bd}\u{fffd}".into()), "\"e\u{301} \\u0378\\u0890\\U000110bd\u{fffd}\"");
        assert_eq!(render(&Value::null(Type::list(Type::list(Type::String)))), "tolist(null) /* of list of string */");
    }
}
