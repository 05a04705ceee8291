//! The attributes and nested blocks of one resource, one-sided or compared, by its schema.

use karmaform_lang::quoted;
use karmaform_model::{Attribute, Block, Connection, Nesting, Object, Path, PlannedResource, Schema, Type, Value};

use crate::redact::same_or_withheld;

use super::diff::is_alike;
use super::style::Mark;
use super::values::{Manner, NAMING, Printer, key_texts, nothing, shortened, shortened_object, untyped};

/// What a write-only attribute looks like.
const WRITE_ONLY: &str = "(write-only attribute)";

/// An object with all marks of secrecy: those of the schema and those of the configuration.
pub(crate) fn marked(mut object: Object, schema: Option<&Schema>, secret_paths: &[Path]) -> Value {
    if let Some(schema) = schema {
        schema.mark(&mut object);
    }
    let mut whole = Value::from(object);
    secret_paths.iter().for_each(|path| whole.mark_secret(&path.0));
    whole
}

/// An object ready to be shown: secrets marked as the schema and these paths say, connections shortened.
pub(crate) fn presentable(object: &Object, schema: Option<&Schema>, secret_paths: &[Path]) -> Object {
    let whole = marked(object.clone(), schema, secret_paths);
    whole.as_entries().map(shortened_object).unwrap_or_default()
}

/// The same of what is there before a change: what becomes secret by it is not yet.
pub(crate) fn presentable_before(object: &Object, schema: Option<&Schema>, resource: &PlannedResource) -> Object {
    let whole = marked_before(marked(object.clone(), schema, &resource.secret_paths), resource);
    whole.as_entries().map(shortened_object).unwrap_or_default()
}

/// What is there before a change, without the marks that only come with it. It is to be compared, and to be shown only beside what comes.
pub(crate) fn marked_before(mut whole: Value, resource: &PlannedResource) -> Value {
    resource.newly_secret.iter().for_each(|path| whole.unmark_secret(&path.0));
    whole
}

impl Printer {
    /// Everything an object has, with one mark. Deleted ones say `-> null`.
    pub(crate) fn one_sided(&mut self, indent: usize, mark: Mark, schema: Option<&Schema>, object: &Object) {
        let suffix = if mark == Mark::Remove { " -> null" } else { "" };
        let (attributes, blocks) = split(schema, object);
        let shown: Vec<_> = attributes.into_iter().filter(|(_, v)| !v.is_null()).collect();
        let keys = key_texts(shown.iter().map(|(n, _)| *n), false);
        for (key, (name, value)) in keys.iter().zip(&shown) {
            if is_write_only(schema, name) {
                self.line(indent, mark, format!("{key} = {WRITE_ONLY}"));
            } else if is_untyped(schema, name) {
                let around = std::mem::replace(&mut self.manner, Manner { untyped: true, whole: false });
                self.value(indent, mark, &format!("{key} = "), &untyped(value), suffix);
                self.manner = around;
            } else {
                self.value(indent, mark, &format!("{key} = "), value, suffix);
            }
        }
        for (block, value) in blocks {
            for (label, part) in bodies(block, value) {
                self.gap();
                self.block(indent, mark, block, &label, &part);
            }
        }
    }

    fn block(&mut self, indent: usize, mark: Mark, block: &Block, label: &str, value: &Value) {
        match value.as_entries() {
            Some(entries) if !value.secret => {
                self.line(indent, mark, format!("{}{label} {{", block.name));
                self.one_sided(indent + 4, mark, Some(&block.schema), entries);
                self.line(indent, Mark::None, "}");
            }
            _ => self.value(indent, mark, &format!("{}{label} = ", block.name), value, ""),
        }
    }

    /// What differs between two objects; the rest is counted. `because` are the paths that force a replacement.
    pub(crate) fn compared(&mut self, indent: usize, schema: Option<&Schema>, before: &Object, after: &Object, because: &[Path]) {
        let null = nothing();
        let mut names: Vec<&String> = before.keys().chain(after.keys()).filter(|n| !is_block(schema, n)).collect();
        names.sort_unstable();
        names.dedup();
        // Where anything may stand, a list and a set of the same are the same.
        let is_same = |n: &String| {
            if is_untyped(schema, n) {
                is_alike(before.get(n).map(untyped).as_ref(), after.get(n).map(untyped).as_ref())
            } else {
                is_alike(before.get(n), after.get(n))
            }
        };
        let is_naming = |n: &str| NAMING.contains(&n) || schema.and_then(|s| s.attribute(n)).is_some_and(|a| a.identity);
        let is_null = |n: &&String| before.get(n).is_none_or(Value::is_null) && after.get(n).is_none_or(Value::is_null);
        // Of a null it does not matter whether it is secret.
        let is_changed = |n: &&String| !is_write_only(schema, n) && !is_null(n) && !is_same(n);
        let (changed, unchanged): (Vec<&String>, Vec<&String>) = names.into_iter().partition(is_changed);
        let (naming, hidden): (Vec<&String>, Vec<&String>) =
            unchanged.into_iter().filter(|n| !is_null(n) && !is_write_only(schema, n)).partition(|n| is_naming(n));
        let mut shown: Vec<(&String, bool)> =
            changed.into_iter().map(|n| (n, true)).chain(naming.into_iter().map(|n| (n, false))).collect();
        shown.sort_unstable();
        // What is hidden has its place in the width of the names.
        let keys = key_texts(shown.iter().map(|(n, _)| *n).chain(hidden.iter().copied()), false);
        for (key, (name, is_changed)) in keys.iter().zip(&shown) {
            let (b, a) = (before.get(name).unwrap_or(&null), after.get(name).unwrap_or(&null));
            let start = self.position();
            if *is_changed {
                let manner = Manner { untyped: is_untyped(schema, name), whole: NAMING.contains(&name.as_str()) };
                let side = |v: &Value| if manner.untyped { untyped(v) } else { v.clone() };
                let around = std::mem::replace(&mut self.manner, manner);
                self.difference(indent, &format!("{key} = "), &side(b), &side(a), "");
                self.manner = around;
            } else {
                self.value(indent, Mark::None, &format!("{key} = "), b, "");
            }
            // What becomes unknown says so behind its last line.
            let position = if a.is_unknown() { self.position().saturating_sub(1) } else { start };
            // As in Terraform: what may be of any type says nothing of it unless it is unknown or secret, as the head of the resource does.
            let is_typed = !a.is_unknown() && !b.secret && !a.secret && schema.and_then(|s| s.attribute(name)).is_some_and(|a| a.typed);
            if *is_changed && !is_typed && because.iter().any(|p| p.root() == Some(name.as_str())) {
                self.note(position, "# forces replacement");
            }
        }
        self.hidden(indent, hidden.len(), "attribute");
        self.compared_blocks(indent, schema, before, after);
    }

    fn compared_blocks(&mut self, indent: usize, schema: Option<&Schema>, before: &Object, after: &Object) {
        let null = nothing();
        let mut unchanged = 0;
        for block in schema.into_iter().flat_map(|s| &s.blocks) {
            let side = |of: &Object| bodies(block, of.get(block.name).unwrap_or(&null));
            let (old, new) = (side(before), side(after));
            let mut labels: Vec<&String> = old.iter().chain(&new).map(|(l, _)| l).collect();
            labels.sort_unstable();
            labels.dedup();
            // Blocks without labels pair by their place.
            let count = if block.nesting == Nesting::Map { 1 } else { old.len().max(new.len()) };
            for (label, at) in labels.iter().flat_map(|l| (0..count).map(move |i| (*l, i))) {
                let pick = |of: &[(String, Value)]| of.iter().filter(|(l, _)| l == label).nth(at).map(|(_, v)| v.clone());
                match (pick(&old), pick(&new)) {
                    (Some(a), Some(b)) if same_or_withheld(Some(&a), Some(&b)) => unchanged += 1,
                    (Some(a), Some(b)) => match (a.as_entries(), b.as_entries()) {
                        (Some(x), Some(y)) if !a.secret && !b.secret => {
                            self.gap();
                            self.line(indent, Mark::Change, format!("{}{label} {{", block.name));
                            self.compared(indent + 4, Some(&block.schema), x, y, &[]);
                            self.line(indent, Mark::None, "}");
                        }
                        _ => self.difference(indent, &format!("{}{label} = ", block.name), &a, &b, ""),
                    },
                    (Some(a), None) => {
                        self.gap();
                        self.block(indent, Mark::Remove, block, label, &a);
                    }
                    (None, Some(b)) => {
                        self.gap();
                        self.block(indent, Mark::Add, block, label, &b);
                    }
                    (None, None) => {}
                }
            }
        }
        if unchanged > 0 {
            self.gap();
            self.hidden(indent, unchanged, "block");
        }
    }
}

fn is_block(schema: Option<&Schema>, name: &str) -> bool {
    schema.is_some_and(|s| s.block(name).is_some())
}

fn is_write_only(schema: Option<&Schema>, name: &str) -> bool {
    schema.and_then(|s| s.attribute(name)).is_some_and(|a: &Attribute| a.write_only)
}

fn is_untyped(schema: Option<&Schema>, name: &str) -> bool {
    schema.and_then(|s| s.attribute(name)).is_some_and(|a| a.ty == Type::Any)
}

type Attributes<'a> = Vec<(&'a String, &'a Value)>;

fn split<'a>(schema: Option<&'a Schema>, object: &'a Object) -> (Attributes<'a>, Vec<(&'a Block, &'a Value)>) {
    let attributes = object.iter().filter(|(n, _)| !is_block(schema, n)).collect();
    let blocks = schema.into_iter().flat_map(|s| &s.blocks).filter_map(|b| Some((b, object.get(b.name)?))).collect();
    (attributes, blocks)
}

/// The single blocks of a block attribute, each with its label as written.
fn bodies(block: &Block, value: &Value) -> Vec<(String, Value)> {
    if value.is_null() {
        return Vec::new();
    }
    if value.secret || value.is_unknown() {
        return vec![(String::new(), value.clone())];
    }
    match block.nesting {
        Nesting::Single => vec![(String::new(), value.clone())],
        Nesting::List => value.as_items().into_iter().flatten().map(|v| (String::new(), v.clone())).collect(),
        Nesting::Map => {
            let entries = value.as_entries().into_iter().flatten();
            entries.map(|(label, v)| (format!(" {}", quoted(label)), v.clone())).collect()
        }
    }
}

/// The shown value of the connection a resource goes through, if it is known.
pub(crate) fn connection_of(schema: &Schema, object: &Object) -> Option<String> {
    let Connection::Attribute(name) = schema.connection else { return None };
    shortened(object.get(name)?).as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use karmaform_model::Type;

    use super::*;
    use crate::ui::style::Theme;

    fn schema() -> Schema {
        let inner = Schema::new("", vec![Attribute::optional("args", Type::map(Type::String), "")]);
        Schema::new(
            "",
            vec![
                Attribute::required("host", Type::Any, ""),
                Attribute::required("path", Type::String, "").identity(),
                Attribute::optional("content", Type::String, ""),
                Attribute::optional("password", Type::String, "").secret(),
                Attribute::optional("hint", Type::String, "").write_only(),
            ],
        )
        .through("host")
        .with_blocks(vec![Block { name: "component", nesting: Nesting::Map, schema: inner }])
    }

    fn object(content: &str, component: Option<&str>) -> Object {
        let host = Value::object([("provider", "ssh".into()), ("id", "h:22".into()), ("user", content.into())]);
        let mut object: Object = [
            ("host".to_owned(), host),
            ("path".to_owned(), "/a".into()),
            ("content".to_owned(), content.into()),
            ("password".to_owned(), Value::from("hunter2")),
            ("hint".to_owned(), "x".into()),
        ]
        .into();
        if let Some(name) = component {
            let body = Value::object([("args", Value::map(Type::String, [("v".to_owned(), Value::from("4"))].into()))]);
            object.insert("component".into(), Value::map(Type::Any, [(name.to_owned(), body)].into()));
        }
        presentable(&object, Some(&schema()), &[])
    }

    #[test]
    fn one_side_shows_all_but_secrets() {
        let mut printer = Printer::default();
        printer.one_sided(4, Mark::Add, Some(&schema()), &object("new", Some("scheduler")));
        assert_eq!(
            printer.finish(&Theme::plain()),
            "  + content  = \"new\"\n  + hint     = (write-only attribute)\n  + host     = \"h:22\"\n  + password = (sensitive value)\n  \
             + path     = \"/a\"\n\n  + component \"scheduler\" {\n      + args = {\n          + \"v\" = \"4\"\n        }\n    }\n"
        );
    }

    #[test]
    fn two_sides_show_what_differs() {
        let mut printer = Printer::default();
        printer.compared(4, Some(&schema()), &object("old", None), &object("new", Some("b")), &[Path::attribute("content")]);
        assert_eq!(
            printer.finish(&Theme::plain()),
            "  ~ content  = \"old\" -> \"new\" # forces replacement\n    path     = \"/a\"\n    # (2 unchanged attributes hidden)\n\n  \
             + component \"b\" {\n      + args = {\n          + \"v\" = \"4\"\n        }\n    }\n"
        );
    }

    #[test]
    fn of_what_becomes_unknown_the_reason_stands_behind_it() {
        let schema = Schema::new("", vec![Attribute::optional("x", Type::Any, "")]);
        let check = |before: Value, after: Value, expected: &str| {
            let side = |value: Value| Object::from([("x".to_owned(), value)]);
            let mut printer = Printer::default();
            printer.compared(4, Some(&schema), &side(before), &side(after), &[Path::attribute("x")]);
            assert_eq!(printer.finish(&Theme::plain()), expected);
        };
        let one = || vec!["a".into()];
        let unknown = Value::unknown(Type::Any);
        check(Value::tuple(one()), unknown, "  ~ x = [\n      - \"a\",\n    ] -> (known after apply) # forces replacement\n");
        check(Value::tuple(one()), Value::set(Type::String, one()), "    # (1 unchanged attribute hidden)\n");
    }
}
