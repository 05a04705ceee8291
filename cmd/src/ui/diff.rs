//! Two values against each other, as a plan shows them: only what differs, with the rest counted.

use karmaform_lang::quoted;
use karmaform_model::{Kind, Object, Value};

use crate::redact::{same_marks, same_or_withheld};

use super::align::{Edit, TEXT_CONTEXT, align, is_change, near_changes};
use super::lists::{by_place, is_by_place};
use super::style::Mark;
use super::values::{Manner, NAMING, Printer, SECRET, UNKNOWN, is_map, json_structure, key_texts, nothing, visible};

/// What is said of what will be hidden, on two lines.
const TO_SECRET: (&str, &str) =
    ("# Warning: this attribute value will be marked as sensitive and will not", "# display in UI output after applying this change.");
/// The same of what will not be hidden any more.
const TO_CLEAR: (&str, &str) = ("# Warning: this attribute value will no longer be marked as sensitive", "# after applying this change.");

impl Printer {
    /// Both sides of an attribute that differ.
    pub(crate) fn difference(&mut self, indent: usize, prefix: &str, before: &Value, after: &Value, suffix: &str) {
        if before.secret != after.secret && before.is_null() == after.is_null() {
            let unchanged = if same_or_withheld(Some(before), Some(after)) { " The value is unchanged." } else { "" };
            let column = indent.saturating_sub(2);
            let (first, second) = if after.secret { TO_SECRET } else { TO_CLEAR };
            self.remark(column, first);
            self.remark(column, format!("{second}{unchanged}"));
        }
        if before.secret || after.secret {
            let mark = match (before.is_null(), after.is_null()) {
                (true, false) => Mark::Add,
                (false, true) => Mark::Remove,
                _ => Mark::Change,
            };
            let arrow = if mark == Mark::Remove && suffix.is_empty() { " -> null" } else { suffix };
            return self.line(indent, mark, format!("{prefix}{SECRET}{arrow}"));
        }
        if before.is_null() {
            return self.value(indent, Mark::Add, prefix, after, suffix);
        }
        if after.is_null() {
            let arrow = if suffix.is_empty() { " -> null" } else { suffix };
            return self.value(indent, Mark::Remove, prefix, before, arrow);
        }
        self.change(indent, prefix, before, after, suffix);
    }

    /// Both sides, neither of which is null or secret.
    fn change(&mut self, indent: usize, prefix: &str, before: &Value, after: &Value, suffix: &str) {
        match (&before.kind, &after.kind) {
            (_, Kind::Unknown(_)) => {
                let start = self.position();
                self.value(indent, Mark::Remove, prefix, before, &format!(" -> {UNKNOWN}{suffix}"));
                self.change_at(start);
            }
            (Kind::String(a), Kind::String(b)) => self.text_difference(indent, prefix, a, b, suffix),
            (Kind::Map(_, a) | Kind::Object(a), Kind::Map(_, b) | Kind::Object(b)) => {
                self.line(indent, Mark::Change, format!("{prefix}{{"));
                let noun = if is_map(after) { "element" } else { "attribute" };
                self.entries(indent + 4, a, b, is_map(after), noun);
                self.line(indent, Mark::None, format!("}}{suffix}"));
            }
            (Kind::Set(_, a), Kind::Set(_, b)) => self.set_difference(indent, prefix, a, b, suffix),
            (Kind::List(_, a) | Kind::Tuple(a), Kind::List(_, b) | Kind::Tuple(b)) => self.list_difference(indent, prefix, a, b, suffix),
            _ => self.both(indent, prefix, before, after, suffix),
        }
    }

    /// Both sides of a part of a value, where a null is a value as others are if nothing has a type.
    pub(super) fn inner_difference(&mut self, indent: usize, prefix: &str, before: &Value, after: &Value, suffix: &str) {
        let one_is_null = before.is_null() != after.is_null();
        if self.manner.untyped && one_is_null && !after.is_unknown() && !before.secret && !after.secret {
            return self.both(indent, prefix, before, after, suffix);
        }
        self.difference(indent, prefix, before, after, suffix);
    }

    /// `before -> after`, whatever they are.
    fn both(&mut self, indent: usize, prefix: &str, before: &Value, after: &Value, suffix: &str) {
        let start = self.position();
        self.value(indent, Mark::Remove, prefix, before, " -> ");
        let mut second = Self::comparing(self.manner);
        second.value(indent, Mark::Add, "", after, suffix);
        self.join(second);
        self.change_at(start);
    }

    fn entries(&mut self, indent: usize, before: &Object, after: &Object, quote: bool, noun: &str) {
        let null = nothing();
        let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let side = |of: &Object, name: &str| of.get(name).unwrap_or(&null).clone();
        let is_changed = |n: &String| !is_alike(before.get(n), after.get(n)) || before.contains_key(n) != after.contains_key(n);
        let is_naming = |n: &String| !quote && NAMING.contains(&n.as_str());
        let around = self.manner;
        let (shown, hidden): (Vec<_>, Vec<_>) = names.into_iter().partition(|n| around.whole || is_changed(n) || is_naming(n));
        // What is hidden has its place in the width of the keys.
        let keys = key_texts(shown.iter().chain(&hidden).copied(), quote);
        for (key, name) in keys.iter().zip(&shown) {
            let (b, a) = (side(before, name), side(after, name));
            self.manner.whole = around.whole || is_naming(name);
            if !is_changed(name) {
                self.value(indent, Mark::None, &format!("{key} = "), &b, "");
            } else if after.contains_key(name) && before.contains_key(name) {
                self.inner_difference(indent, &format!("{key} = "), &b, &a, "");
            } else if self.manner.untyped && !b.secret && !after.contains_key(name) {
                self.value(indent, Mark::Remove, &format!("{key} = "), &b, "");
            } else {
                self.difference(indent, &format!("{key} = "), &b, &a, "");
            }
        }
        self.manner = around;
        self.hidden(indent, hidden.len(), noun);
    }

    /// `# (2 unchanged attributes hidden)`
    pub(crate) fn hidden(&mut self, indent: usize, count: usize, noun: &str) {
        if count > 0 {
            let plural = if count == 1 { "" } else { "s" };
            self.remark(indent, format!("# ({count} unchanged {noun}{plural} hidden)"));
        }
    }

    fn set_difference(&mut self, indent: usize, prefix: &str, before: &[Value], after: &[Value], suffix: &str) {
        let within = |v: &Value, all: &[Value]| all.iter().any(|o| same_or_withheld(Some(v), Some(o)));
        self.line(indent, Mark::Change, format!("{prefix}["));
        for item in before.iter().filter(|v| !within(v, after)) {
            self.value(indent + 4, Mark::Remove, "", item, ",");
        }
        for item in after.iter().filter(|v| !within(v, before)) {
            self.value(indent + 4, Mark::Add, "", item, ",");
        }
        let kept: Vec<&Value> = before.iter().filter(|v| within(v, after)).collect();
        if self.manner.whole {
            kept.iter().for_each(|item| self.value(indent + 4, Mark::None, "", item, ","));
        } else {
            self.hidden(indent + 4, kept.len(), "element");
        }
        self.line(indent, Mark::None, format!("]{suffix}"));
    }

    /// Both sides of a text that is JSON: what it holds. On one line what is so small.
    fn json_difference(&mut self, indent: usize, prefix: &str, before: &Value, after: &Value, suffix: &str) {
        let mut inner = Self::comparing(Manner { untyped: true, ..self.manner });
        let remark = if same_or_withheld(Some(before), Some(after)) {
            inner.value(indent + 4, Mark::None, "", before, "");
            " # whitespace changes"
        } else {
            inner.difference(indent + 4, "", before, after, "");
            ""
        };
        if let Some(text) = inner.only_line() {
            return self.line(indent, Mark::Change, format!("{prefix}jsonencode({text}){remark}{suffix}"));
        }
        self.line(indent, Mark::Change, format!("{prefix}jsonencode({remark}"));
        self.extend(inner);
        self.line(indent, Mark::None, format!("){suffix}"));
    }

    fn text_difference(&mut self, indent: usize, prefix: &str, before: &str, after: &str, suffix: &str) {
        let (old, new) = (json_structure(before), json_structure(after));
        if let (Some(a), Some(b)) = (&old, &new) {
            return self.json_difference(indent, prefix, a, b, suffix);
        }
        if old.is_some() || new.is_some() {
            return self.both(indent, prefix, &before.into(), &after.into(), suffix);
        }
        if !before.contains('\n') && !after.contains('\n') {
            return self.line(indent, Mark::Change, format!("{prefix}{} -> {}{suffix}", quoted(before), quoted(after)));
        }
        let untyped = self.manner.untyped;
        let lines = |s: &str| {
            let shown = if untyped && s.contains('\n') { s.trim() } else { s.strip_suffix('\n').unwrap_or(s) };
            shown.split('\n').map(str::to_owned).collect::<Vec<_>>()
        };
        let (a, b) = (lines(before), lines(after));
        self.line(indent, Mark::Change, format!("{prefix}<<-EOT"));
        let same = |i: usize, j: usize| a[i] == b[j];
        let pairs = self.manner.untyped && is_by_place(a.len(), b.len(), same);
        let edits = if pairs { by_place(a.len(), same) } else { align(a.len(), b.len(), same) };
        let shown = if self.manner.untyped { vec![true; edits.len()] } else { near_changes(&edits, TEXT_CONTEXT, is_change) };
        let mut at = 0;
        while at < edits.len() {
            match edits[at] {
                Edit::Keep(i, _) if shown[at] => self.line(indent + 4, Mark::None, visible(&a[i])),
                Edit::Keep(..) => {
                    let run = shown[at..].iter().take_while(|s| !**s).count();
                    self.hidden(indent + 4, run, "line");
                    at += run;
                    continue;
                }
                Edit::Drop(i) => self.line(indent + 4, Mark::Remove, visible(&a[i])),
                Edit::Insert(j) => self.line(indent + 4, Mark::Add, visible(&b[j])),
            }
            at += 1;
        }
        if a == b && !untyped {
            self.remark(indent + 4, "# (the newline at the end changes)");
        }
        self.line(indent, Mark::None, format!("EOT{suffix}"));
    }
}

/// True if two sides are the same, and as secret.
pub(super) fn is_alike(before: Option<&Value>, after: Option<&Value>) -> bool {
    same_or_withheld(before, after) && before.zip(after).is_none_or(|(a, b)| same_marks(a, b))
}

#[cfg(test)]
mod tests {
    use karmaform_model::Type;

    use super::*;
    use crate::ui::style::Theme;

    fn check(before: &Value, after: &Value, expected: &str) {
        let mut printer = Printer::default();
        printer.difference(4, "x = ", before, after, "");
        assert_eq!(printer.finish(&Theme::plain()), expected);
    }

    #[test]
    fn scalars() {
        check(&"a".into(), &"b".into(), "  ~ x = \"a\" -> \"b\"\n");
        check(&1i64.into(), &"b".into(), "  ~ x = 1 -> \"b\"\n");
        check(&"a".into(), &nothing(), "  - x = \"a\" -> null\n");
        check(&nothing(), &"a".into(), "  + x = \"a\"\n");
        check(&"a".into(), &Value::unknown(Type::String), "  ~ x = \"a\" -> (known after apply)\n");
        check(&Value::from("a").secret(), &Value::from("b").secret(), "  ~ x = (sensitive value)\n");
        let warned = "  # Warning: this attribute value will be marked as sensitive and will not\n  # display in UI output after applying this change.\n";
        check(&"a".into(), &Value::from("b").secret(), &format!("{warned}  ~ x = (sensitive value)\n"));
    }

    #[test]
    fn collections() {
        check(
            &Value::tuple(vec![1i64.into(), 2i64.into(), 9i64.into()]),
            &Value::tuple(vec![1i64.into(), 2i64.into(), 9i64.into(), 3i64.into()]),
            "  ~ x = [\n        # (2 unchanged elements hidden)\n        9,\n      + 3,\n    ]\n",
        );
        check(
            &Value::set(Type::String, vec!["a".into(), "b".into()]),
            &Value::set(Type::String, vec!["b".into(), "c".into()]),
            "  ~ x = [\n      - \"a\",\n      + \"c\",\n        # (1 unchanged element hidden)\n    ]\n",
        );
        check(
            &Value::object([("a", 1i64.into()), ("b", 1i64.into())]),
            &Value::object([("a", 2i64.into()), ("b", 1i64.into()), ("c", "n".into())]),
            "  ~ x = {\n      ~ a = 1 -> 2\n      + c = \"n\"\n        # (1 unchanged attribute hidden)\n    }\n",
        );
        check(
            &Value::tuple(vec![Value::object([("a", 1i64.into())])]),
            &Value::tuple(vec![Value::object([("a", 2i64.into())])]),
            "  ~ x = [\n      ~ {\n          ~ a = 1 -> 2\n        },\n    ]\n",
        );
        check(&Value::strings(["a"]), &Value::unknown(Type::Any), "  ~ x = [\n      - \"a\",\n    ] -> (known after apply)\n");
    }

    #[test]
    fn what_has_no_type_is_compared_place_by_place_if_as_long() {
        let check = |before: &Value, after: &Value, expected: &str| {
            let mut printer = Printer::comparing(Manner { untyped: true, whole: false });
            printer.difference(4, "x = ", before, after, "");
            assert_eq!(printer.finish(&Theme::plain()), expected);
        };
        let numbers = |all: &[i64]| Value::tuple(all.iter().map(|n| (*n).into()).collect());
        check(&numbers(&[1, 2, 3]), &numbers(&[1, 3, 4]), "  ~ x = [\n        1,\n      ~ 2 -> 3,\n      ~ 3 -> 4,\n    ]\n");
        check(&numbers(&[1, 2, 3]), &numbers(&[1, 3]), "  ~ x = [\n        1,\n      - 2,\n        3,\n    ]\n");
        check(&Value::tuple(vec![nothing()]), &numbers(&[1]), "  ~ x = [\n      ~ null -> 1,\n    ]\n");
        check(&"a\nb\n".into(), &"b\nc\n".into(), "  ~ x = <<-EOT\n      - a\n      + b\n      - b\n      + c\n    EOT\n");
        check(
            &Value::object([("a", 1i64.into()), ("b", 1i64.into()), ("long", 1i64.into())]),
            &Value::object([("a", nothing()), ("long", 1i64.into())]),
            "  ~ x = {\n      ~ a    = 1 -> null\n      - b    = 1\n        # (1 unchanged attribute hidden)\n    }\n",
        );
        check(&" a".into(), &" a\nb".into(), "  ~ x = <<-EOT\n      -  a\n      + a\n      + b\n    EOT\n");
    }

    #[test]
    fn below_what_names_a_thing_all_is_shown() {
        let side = |n: i64| {
            let list = Value::tuple(vec![1i64.into(), 2i64.into(), n.into()]);
            let inner = Value::object([("kept", "k".into()), ("n", n.into()), ("l", list)]);
            Value::object([("tags", inner.clone()), ("other", inner)])
        };
        check(
            &side(3),
            &side(4),
            "  ~ x = {\n      ~ other = {\n          ~ l    = [\n                # (1 unchanged element hidden)\n                2,\n\
             \x20             - 3,\n              + 4,\n            ]\n          ~ n    = 3 -> 4\n            # (1 unchanged attribute hidden)\n        }\n\
             \x20     ~ tags  = {\n            kept = \"k\"\n          ~ l    = [\n                1,\n                2,\n\
             \x20             - 3,\n              + 4,\n            ]\n          ~ n    = 3 -> 4\n        }\n    }\n",
        );
    }

    #[test]
    fn texts_are_compared_by_line() {
        check(
            &"line1\nline2\nline3\n".into(),
            &"line1\nline2b\nline3\n".into(),
            "  ~ x = <<-EOT\n        line1\n      - line2\n      + line2b\n        line3\n    EOT\n",
        );
        let many: Vec<String> = (0..20).map(|i| format!("l{i}")).collect();
        let mut printer = Printer::default();
        printer.difference(4, "", &many.join("\n").into(), &format!("{}\nend", many.join("\n")).into(), "");
        let text = printer.finish(&Theme::plain());
        assert!(text.contains("# (17 unchanged lines hidden)") && text.contains("  + end"), "{text}");
        check(
            &r#"{"a":1,"b":2}"#.into(),
            &r#"{"a":1,"b":3}"#.into(),
            "  ~ x = jsonencode(\n      ~ {\n          ~ b = 2 -> 3\n            # (1 unchanged attribute hidden)\n        }\n    )\n",
        );
        check(&"{}".into(), &"[]".into(), "  ~ x = jsonencode({} -> [])\n");
        check(&"[]".into(), &"[]\n".into(), "  ~ x = jsonencode([]) # whitespace changes\n");
        check(&"{}".into(), &"x".into(), "  ~ x = jsonencode({}) -> \"x\"\n");
        check(
            &r#"{"a":1}"#.into(),
            &"x\ny\n".into(),
            "  ~ x = jsonencode(\n        {\n          - a = 1\n        }\n    ) -> <<-EOT\n        x\n        y\n    EOT\n",
        );
    }
}
