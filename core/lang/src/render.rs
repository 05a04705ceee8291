//! Values as `console` and `output` show them: the language's own look.

use std::fmt::Write as _;

use karmaform_model::{Kind, Value};

/// The value as text. Secrets and what is not known yet are only named.
pub fn render(value: &Value) -> String {
    let mut out = String::new();
    write_value(value, 0, &mut out);
    out
}

fn write_value(value: &Value, indent: usize, out: &mut String) {
    if value.secret {
        out.push_str("(sensitive value)");
        return;
    }
    match &value.kind {
        Kind::Null(ty) => match ty {
            karmaform_model::Type::Any => out.push_str("null"),
            karmaform_model::Type::String => out.push_str("tostring(null)"),
            karmaform_model::Type::Number => out.push_str("tonumber(null)"),
            karmaform_model::Type::Bool => out.push_str("tobool(null)"),
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

fn write_entries(entries: &std::collections::BTreeMap<String, Value>, indent: usize, out: &mut String) {
    if entries.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push('{');
    for (name, value) in entries {
        line(indent + 2, out);
        quoted(name, out);
        out.push_str(" = ");
        write_value(value, indent + 2, out);
    }
    line(indent, out);
    out.push('}');
}

/// Text of several lines is shown as a heredoc.
fn write_string(text: &str, indent: usize, out: &mut String) {
    let lines: Vec<_> = text.split('\n').collect();
    let printable = |c: char| !c.is_control() || c == '\t' || c == '\n';
    if lines.len() < 2 || !text.chars().all(printable) {
        return quoted(text, out);
    }
    let mut marker = "EOT".to_owned();
    while lines.iter().any(|l| l.trim() == marker) {
        marker.push('_');
    }
    out.push_str(if indent == 0 { "<<" } else { "<<-" });
    out.push_str(&marker);
    for part in &lines {
        if part.is_empty() {
            out.push('\n');
        } else {
            line(indent, out);
            out.push_str(&part.replace("${", "$${").replace("%{", "%%{"));
        }
    }
    line(indent, out);
    out.push_str(&marker);
}

fn quoted(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '$' | '%' if rest.peek() == Some(&'{') => {
                out.push(c);
                out.push(c);
            }
            c if c.is_control() || c == '\u{200d}' || c == '\u{2028}' || c == '\u{2029}' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::Type;

    #[test]
    fn values_look_like_the_language() {
        let value = Value::object([
            ("a", Value::strings(["x", "y${"])),
            ("b", Value::tuple(vec![1i64.into(), Value::from("s").secret(), Value::unknown(Type::String)])),
            ("c", Value::map(Type::Any, Default::default())),
            ("d", Value::null(Type::String)),
            ("e", "l1\nl2\n".into()),
        ]);
        let expected = "{\n  \"a\" = tolist([\n    \"x\",\n    \"y$${\",\n  ])\n  \"b\" = [\n    1,\n    (sensitive value),\n    (known after apply),\n  ]\n  \"c\" = tomap({})\n  \"d\" = tostring(null)\n  \"e\" = <<-EOT\n  l1\n  l2\n\n  EOT\n}";
        assert_eq!(render(&value), expected);
        assert_eq!(render(&"a\"b".into()), "\"a\\\"b\"");
    }
}
