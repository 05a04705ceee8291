//! Values as a plan shows them: one side at a time. Two sides are `diff`'s.
//!
//! A value that is secret is never looked into; connections are shown by the id of what they reach.

use karmaform_lang::quoted;
use karmaform_model::{Kind, Number, Object, Type, Value, implied_from_json};

use super::style::{Mark, Theme, Tone};

/// One line of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// The column of the text; the mark stands before it.
    pub(crate) indent: usize,
    /// What happens to it.
    pub(crate) mark: Mark,
    /// The text.
    pub(crate) text: String,
    /// Follows in red.
    pub(crate) note: Option<&'static str>,
    /// The text is a remark.
    pub(crate) faint: bool,
}

/// Collects lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printer {
    lines: Vec<Line>,
    /// How the values that come are compared.
    pub(super) manner: Manner,
}

/// How two values are compared, and what goes is marked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// They have no type of their own: elements of as many are compared place by place, unless they only change places; a null is a value as
    /// others are; what goes from inside says no ` -> null`; and texts are shown as a whole.
    pub(super) untyped: bool,
    /// What is unchanged is shown, too: below an attribute that says which thing it is.
    pub(super) whole: bool,
}

/// Shown even when unchanged: they say which thing it is.
pub(super) const NAMING: [&str; 3] = ["id", "name", "tags"];

/// What a secret looks like.
pub(crate) const SECRET: &str = "(sensitive value)";
/// What an unknown value looks like.
pub(crate) const UNKNOWN: &str = "(known after apply)";

impl Printer {
    /// One that compares values in that manner.
    pub(super) fn comparing(manner: Manner) -> Self {
        Self { manner, ..Self::default() }
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, indent: usize, mark: Mark, text: impl Into<String>) {
        self.lines.push(Line { indent, mark, text: text.into(), note: None, faint: false });
    }

    /// Adds a remark.
    pub(crate) fn remark(&mut self, indent: usize, text: impl Into<String>) {
        self.lines.push(Line { indent, mark: Mark::None, text: text.into(), note: None, faint: true });
    }

    /// Adds an empty line.
    pub(crate) fn gap(&mut self) {
        self.line(0, Mark::None, "");
    }

    /// Where the next line goes, for [`Printer::note`].
    pub(crate) fn position(&self) -> usize {
        self.lines.len()
    }

    /// Puts a note behind the line at `position`, or behind the first one after the remarks that stand there.
    pub(crate) fn note(&mut self, position: usize, note: &'static str) {
        if let Some(line) = self.lines.iter_mut().skip(position).find(|line| !line.faint) {
            line.note = Some(note);
        }
    }

    /// Appends to the text of the last line.
    pub(crate) fn append(&mut self, text: &str) {
        if let Some(line) = self.lines.last_mut() {
            line.text.push_str(text);
        }
    }

    /// Gives the line at `position` the mark of a change.
    pub(crate) fn change_at(&mut self, position: usize) {
        if let Some(line) = self.lines.get_mut(position) {
            line.mark = Mark::Change;
        }
    }

    /// Takes the lines of another printer; the first one joins the last line here.
    pub(crate) fn join(&mut self, other: Self) {
        let mut lines = other.lines.into_iter();
        if let Some(first) = lines.next() {
            self.append(&first.text);
        }
        self.lines.extend(lines);
    }

    /// Takes the lines of another printer behind those here.
    pub(crate) fn extend(&mut self, other: Self) {
        self.lines.extend(other.lines);
    }

    /// The text of the one line, if there is just one.
    pub(crate) fn only_line(&self) -> Option<&str> {
        match self.lines.as_slice() {
            [line] => Some(&line.text),
            _ => None,
        }
    }

    /// All as text.
    pub(crate) fn finish(self, theme: &Theme) -> String {
        let mut out = String::new();
        for line in self.lines {
            if !line.text.is_empty() || line.mark != Mark::None {
                let mark_width = if line.mark == Mark::None { 0 } else { 4 };
                out.extend(std::iter::repeat_n(' ', line.indent.saturating_sub(mark_width)));
                if line.mark != Mark::None {
                    out.push_str(&line.mark.painted(theme));
                    out.push(' ');
                }
                let tone = if line.faint { Tone::Faint } else { Tone::Plain };
                out.push_str(&theme.paint(tone, &line.text));
                if let Some(note) = line.note {
                    out.push(' ');
                    out.push_str(&theme.paint(Tone::Remove, note));
                }
            }
            out.push('\n');
        }
        out
    }

    /// One side of a value, each line with that mark. `prefix` is `name = ` or nothing, `suffix` a comma or ` -> null`.
    pub(crate) fn value(&mut self, indent: usize, mark: Mark, prefix: &str, value: &Value, suffix: &str) {
        if let Some(text) = inline(value) {
            return self.line(indent, mark, format!("{prefix}{text}{suffix}"));
        }
        match &value.kind {
            Kind::String(s) => match json_structure(s) {
                Some(inner) => {
                    self.line(indent, mark, format!("{prefix}jsonencode("));
                    let (start, inner_mark) = (self.position(), mark);
                    self.value(indent + 4, inner_mark, "", &inner, "");
                    if let Some(line) = self.lines.get_mut(start) {
                        line.mark = Mark::None;
                    }
                    self.line(indent, Mark::None, format!("){suffix}"));
                }
                None => {
                    self.line(indent, mark, format!("{prefix}<<-EOT"));
                    // As in Terraform: where anything may stand, blank ends are not shown.
                    let shown = if self.manner.untyped { s.trim() } else { s.strip_suffix('\n').unwrap_or(s) };
                    for line in shown.split('\n') {
                        self.line(indent + 4, Mark::None, visible(line));
                    }
                    self.line(indent, Mark::None, format!("EOT{suffix}"));
                }
            },
            Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) => {
                self.line(indent, mark, format!("{prefix}["));
                for item in items {
                    self.value(indent + 4, mark, "", item, ",");
                }
                self.line(indent, Mark::None, format!("]{suffix}"));
            }
            Kind::Map(_, entries) | Kind::Object(entries) => {
                self.line(indent, mark, format!("{prefix}{{"));
                let keys = key_texts(entries.keys(), is_map(value));
                for (key, item) in keys.iter().zip(entries.values()) {
                    // As in Terraform: the objects of a map stand one after the other as those of a list do.
                    let comma = if is_map(value) && matches!(item.kind, Kind::Object(_)) && !item.secret { "," } else { "" };
                    self.value(indent + 4, mark, &format!("{key} = "), item, comma);
                }
                self.line(indent, Mark::None, format!("}}{suffix}"));
            }
            _ => {}
        }
    }
}

/// The value on one line, if it has that form.
pub(crate) fn inline(value: &Value) -> Option<String> {
    Some(match &value.kind {
        _ if value.secret => SECRET.to_owned(),
        Kind::Unknown(_) => UNKNOWN.to_owned(),
        Kind::Null(_) => "null".to_owned(),
        Kind::Bool(b) => b.to_string(),
        // As in Terraform.
        Kind::Number(Number::NegativeZero) => "0".to_owned(),
        Kind::Number(n) => n.to_string(),
        Kind::String(s) => match json_structure(s) {
            Some(inner) => format!("jsonencode({})", inline(&inner)?),
            None if s.contains('\n') => return None,
            None => quoted(s),
        },
        Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) if items.is_empty() => "[]".to_owned(),
        Kind::Map(_, entries) | Kind::Object(entries) if entries.is_empty() => "{}".to_owned(),
        _ => return None,
    })
}

/// A line of a multi-line string; control characters must not reach the terminal.
pub(crate) fn visible(line: &str) -> String {
    line.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// The keys of a map or an object, padded to one width: as in Terraform to as many characters as the longest has bytes.
pub(crate) fn key_texts<'a>(keys: impl Iterator<Item = &'a String>, quote_all: bool) -> Vec<String> {
    let texts: Vec<String> = keys.map(|k| if quote_all || !is_identifier(k) { quoted(k) } else { k.clone() }).collect();
    let width = texts.iter().map(String::len).max().unwrap_or(0);
    texts.into_iter().map(|k| format!("{k:width$}")).collect()
}

/// The value as JSON has it, where only objects and tuples are told apart: that of an output, or of an attribute of any type.
pub(crate) fn untyped(value: &Value) -> Value {
    let all = |items: &[Value]| items.iter().map(untyped).collect::<Vec<_>>();
    let plain = match &value.kind {
        Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) => Value::tuple(all(items)),
        Kind::Map(_, entries) | Kind::Object(entries) => entries.iter().map(|(n, v)| (n.clone(), untyped(v))).collect::<Object>().into(),
        _ => return value.clone(),
    };
    plain.secret_if(value.secret)
}

/// Keys of maps are data and always quoted; those of objects are names.
pub(crate) fn is_map(value: &Value) -> bool {
    matches!(value.kind, Kind::Map(..))
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// What a string holds if it is a JSON object or array, from its first character on.
pub(crate) fn json_structure(text: &str) -> Option<Value> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(implied_from_json(&json))
}

/// The same with every connection shortened to the id of what it reaches; also a data source's object that carries one.
pub(crate) fn shortened(value: &Value) -> Value {
    if let Some(short) = connection(value) {
        return short.secret_if(value.secret);
    }
    if let Some(carried) = value.get("connection") {
        if let Some(short) = connection(carried) {
            return short.secret_if(value.secret || carried.secret);
        }
        if carried.is_unknown()
            && let Some(address) = value.get("address")
        {
            return address.clone().secret_if(value.secret);
        }
    }
    value.map_parts(|_, part| shortened(part))
}

fn connection(value: &Value) -> Option<Value> {
    let (Kind::Object(parts) | Kind::Map(_, parts)) = &value.kind else { return None };
    let known = parts.get("provider").is_some_and(|p| p.as_str().is_some());
    let id = parts.get("id").filter(|id| known && (id.as_str().is_some() || id.is_unknown()))?;
    Some(id.clone())
}

/// All attributes of an object, shortened.
pub(crate) fn shortened_object(object: &Object) -> Object {
    object.iter().map(|(n, v)| (n.clone(), shortened(v))).collect()
}

/// A null, for sides that are not there.
pub(crate) fn nothing() -> Value {
    Value::null(Type::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &Value, expected: &str) {
        let mut printer = Printer::default();
        printer.value(4, Mark::Add, "x = ", value, "");
        assert_eq!(printer.finish(&Theme::plain()), expected);
    }

    #[test]
    fn one_side_of_each_kind() {
        check(&"a\"b".into(), "  + x = \"a\\\"b\"\n");
        check(&"${a}".into(), "  + x = \"${a}\"\n");
        check(&Value::from("pw").secret(), "  + x = (sensitive value)\n");
        check(&Value::unknown(Type::String), "  + x = (known after apply)\n");
        check(&Value::strings(["a"]), "  + x = [\n      + \"a\",\n    ]\n");
        check(&Value::strings(Vec::<&str>::new()), "  + x = []\n");
        check(
            &Value::object([("a", 1i64.into()), ("long name", Value::from("pw").secret())]),
            "  + x = {\n      + a           = 1\n      + \"long name\" = (sensitive value)\n    }\n",
        );
        check(&"l1\nl2\n".into(), "  + x = <<-EOT\n        l1\n        l2\n    EOT\n");
        check(&"\u{200d}\u{1}\u{7f}\u{85}\u{a0}".into(), "  + x = \"\\u200d\\x01\\x7f\\u0085\\u00a0\"\n");
        check(&"\u{2028}\u{e0001}e\u{301} é".into(), "  + x = \"\\u2028\\U000e0001e\u{301} é\"\n");
        check(&"[]\n".into(), "  + x = jsonencode([])\n");
        check(&" {\"a\":1}".into(), "  + x = \" {\\\"a\\\":1}\"\n");
        let keys = Value::object([("ключ", 1i64.into()), ("a", 1i64.into())]);
        check(&keys, "  + x = {\n      + a        = 1\n      + ключ     = 1\n    }\n");
        check(
            &r#"{"a":[1]}"#.into(),
            "  + x = jsonencode(\n        {\n          + a = [\n              + 1,\n            ]\n        }\n    )\n",
        );
    }

    #[test]
    fn a_connection_is_its_id() {
        let connection =
            Value::object([("provider", "ssh".into()), ("id", "10.0.0.1:22".into()), ("private_key", Value::from("k").secret())]);
        assert_eq!(shortened(&connection), "10.0.0.1:22".into());
        let host = Value::object([("address", "10.0.0.1".into()), ("connection", connection), ("memory_bytes", 1i64.into())]);
        assert_eq!(shortened(&Value::object([("a", host)])), Value::object([("a", "10.0.0.1:22".into())]));
        let plain = Value::object([("id", "x".into())]);
        assert_eq!(shortened(&plain), plain);
    }
}
