//! What is wanted: arguments as evaluated, made ready to be compared. The same in planning and in applying, or the plan would not hold.

use std::collections::BTreeMap;

use karmaform_lang::{Config, IgnoreChanges, IgnoredPath};
use karmaform_model::{
    Address, Child, ChildStep, Composite, Connection, ConvertError, Diagnostic, Diagnostics, Kind, Leg, Object, Path, Schema, Value,
    convert, fits, same,
};

use crate::values::{carry_marks, is_wholly_known};

/// What says in a data source, and in the connection that it gives, whether the other end must answer.
pub(crate) const REQUIRED: &str = "required";

/// Arguments with `ignore_changes` taken from what is.
pub(crate) fn prepared(config: &Config, schema: &Schema, address: &Address, mut wanted: Object, before: Option<&Object>) -> Object {
    if let Some(before) = before
        && let Some(ignored) = ignored(config, address)
    {
        ignore(schema, ignored, &mut wanted, before);
    }
    made_ready(address, wanted, before)
}

/// What a plan brings about of a composite's arguments, ready to be compared, and what it leaves for a later one. `None`: it brings about all of them.
/// What is secret of the arguments is so in what is made of them.
pub(crate) fn first_leg(ty: &dyn Composite, arguments: &Object, before: Option<&Object>) -> Option<Leg> {
    let mut leg = ty.first_leg(before?, arguments)?;
    carry_marks(arguments, &mut leg.wanted);
    Some(leg)
}

/// What differs on the first leg of a way is kept by `ignore_changes` as it is then, and would stay so for ever.
pub(crate) fn kept_on_the_way(config: &Config, address: &Address, arguments: &Object, leg: &Object) -> Option<Diagnostic> {
    let Some(IgnoreChanges::Paths(paths)) = ignored(config, address) else { return None };
    let part = |object: &Object, path: &Path| crate::values::part_of(object, path).cloned();
    let differs = |path: &&IgnoredPath| !same(part(arguments, &path.path).as_ref(), part(leg, &path.path).as_ref());
    let path = paths.iter().find(differs)?;
    let detail =
        format!("The way there leads over other values of what `ignore_changes` keeps as it is ({}), and they would stay.", path.path);
    Some(
        Diagnostic::error("A way of several plans that would leave something behind", detail)
            .at(address)
            .with_hint("Take it out of `ignore_changes` until the last of these plans is applied."),
    )
}

/// What `ignore_changes` says of an instance; `None`: nothing. A child has no lifecycle of its own; its composite's arguments were prepared
/// before it was expanded.
pub(crate) fn ignored<'c>(config: &'c Config, address: &Address) -> Option<&'c IgnoreChanges> {
    let said = config.block(address).filter(|_| !address.is_child()).map(|b| &b.lifecycle.ignore_changes);
    said.filter(|said| **said != IgnoreChanges::None)
}

/// Arguments for something new in place of what is: as Terraform has it, nothing of the old one is kept then, ignored or not.
pub(crate) fn made_ready(address: &Address, mut wanted: Object, before: Option<&Object>) -> Object {
    // Where all is known there is nothing to assume, and the copy stays the same one.
    if let Some(before) = before.filter(|_| !address.is_child() && !is_wholly_known(&wanted)) {
        for (name, value) in wanted.iter_mut().filter(|(_, v)| !v.is_wholly_known()) {
            if let Some(before) = before.get(name) {
                assume_same(value, before);
            }
        }
    }
    wanted
}

/// Takes the connections in a value for the same as before, in blocks too.
fn assume_same(value: &mut Value, before: &Value) {
    if let Some(id) = way_id(before) {
        assume_id(value, id);
    } else if let (Kind::Object(parts), Kind::Object(before)) = (&mut value.kind, &before.kind) {
        for (name, part) in parts.iter_mut().filter(|(_, v)| !v.is_wholly_known()) {
            if let Some(before) = before.get(name) {
                assume_same(part, before);
            }
        }
    }
}

/// What a connection reached, or one that a value carries.
fn way_id(value: &Value) -> Option<&Value> {
    let way = value.get("connection").unwrap_or(value);
    way.get("provider").and(connection_id(way)).filter(|id| id.is_wholly_known())
}

/// Whoever does not answer can't say which thing it is: it is taken for the same as before. Apply refuses if it is another.
fn assume_id(value: &mut Value, id: &Value) {
    let may_fail = may_fail(value);
    let Kind::Object(parts) = &mut value.kind else { return };
    if let Some(way) = parts.get_mut("connection") {
        assume_id(way, id);
    } else if may_fail
        && parts.contains_key("provider")
        && let Some(open) = parts.get_mut("id").filter(|v| v.is_unknown())
    {
        *open = id.clone();
    }
}

/// True for a connection whose other end may be gone for good (`required = false`): that nobody answers there is worth a warning, and what
/// the state remembers stands.
pub(crate) fn may_fail(connection: &Value) -> bool {
    connection.get(REQUIRED).and_then(Value::as_bool) == Some(false)
}

fn ignore(schema: &Schema, changes: &IgnoreChanges, wanted: &mut Object, before: &Object) {
    match changes {
        IgnoreChanges::None => {}
        IgnoreChanges::All => {
            let configurable = schema.attributes.iter().filter(|a| a.is_configurable() && a.is_stored()).map(|a| a.name);
            for name in configurable.chain(schema.blocks.iter().map(|b| b.name)) {
                if let Some(value) = before.get(name) {
                    wanted.insert(name.to_owned(), value.clone());
                }
            }
        }
        IgnoreChanges::Paths(paths) => {
            for IgnoredPath { path, is_entry } in paths {
                let is_typed = path.root().and_then(|name| schema.attribute(name)).is_some_and(|a| a.typed);
                let around = Path(path.0[..path.0.len().saturating_sub(1)].to_vec());
                // As Terraform has it where any type may stand: only a map has entries, and of anything else all of it is ignored.
                let is_map = match crate::values::part_of(wanted, &around).filter(|v| !v.is_unknown()) {
                    Some(told) => matches!(told.kind, Kind::Map(..)),
                    None => !crate::values::part_of(before, &around).is_some_and(|v| matches!(v.kind, Kind::Object(_))),
                };
                let is_whole = *is_entry && is_typed && !is_map;
                crate::values::take_from(wanted, before, if is_whole { &around } else { path });
            }
        }
    }
}

/// An unknown connection would mean "replace everything behind it", since it could be another. It is almost never another, and apply
/// refuses if it is; so the plan takes it for the same.
pub(crate) fn assume_connection(schema: &Schema, wanted: &mut Object, before: Option<&Object>) {
    if let Some(before) = before
        && let Connection::Attribute(name) = schema.connection
        && wanted.get(name).is_some_and(|v| !id_is_known(v))
        && let Some(known) = before.get(name).filter(|v| id_is_known(v))
    {
        wanted.insert(name.to_owned(), known.clone());
    }
}

/// Of a child that nobody could look at: what its composite can't say, for want of facts about where it is, is what it was. What changes
/// because a sibling does is still a change, unless the same attribute lacks a fact, too; a plan with the thing there shows all.
pub(crate) fn assume_unseen(child: &Child, wanted: &mut Object, before: &Object) {
    let siblings_are_known = |_: &[ChildStep], _: &str| Value::from("known");
    for (name, argument) in &child.arguments {
        if wanted.get(name).is_some_and(|v| !v.is_wholly_known())
            && !argument.resolve(&siblings_are_known).is_wholly_known()
            && let Some(before) = before.get(name).filter(|v| v.is_wholly_known())
        {
            wanted.insert(name.clone(), before.clone());
        }
    }
}

/// True if it is known what a connection reaches.
fn id_is_known(connection: &Value) -> bool {
    !connection.is_unknown() && connection_id(connection).is_none_or(|id| id.is_wholly_known())
}

/// What a connection reaches, apart from how.
pub(crate) fn connection_id(connection: &Value) -> Option<&Value> {
    connection.get("id")
}

/// The arguments of a child or a gate, with siblings' attributes in place: every configurable attribute present, converted and marked.
pub(crate) fn resolved(
    schema: &Schema,
    arguments: &BTreeMap<String, karmaform_model::Arg>,
    lookup: &dyn Fn(&[ChildStep], &str) -> Value,
) -> Result<Object, Diagnostics> {
    let mut problems = Diagnostics::new();
    let mut object = Object::new();
    for name in arguments.keys().filter(|n| schema.type_of(n).is_none()) {
        problems.push(bug(format!("It gives the argument \"{name}\", which does not exist.")));
    }
    let mut put = |name: &str, value: Result<Value, ConvertError>| match value {
        Ok(value) => drop(object.insert(name.to_owned(), value)),
        Err(error) => problems.push(bug(format!("Its argument \"{name}\" does not fit: {error}."))),
    };
    for attribute in schema.attributes.iter().filter(|a| a.is_configurable()) {
        let ty = &attribute.ty;
        let given = arguments.get(attribute.name).map(|a| a.resolve(lookup)).filter(|v| !v.is_null() || attribute.default.is_none());
        let value = given.or_else(|| attribute.default.clone()).unwrap_or_else(|| Value::null(ty.clone()));
        put(attribute.name, if fits(&value, ty) { Ok(value) } else { convert(&value, ty) });
    }
    for block in &schema.blocks {
        let value = match arguments.get(block.name).map(|a| a.resolve(lookup)) {
            None => Ok(Value::null(block.ty())),
            Some(value) => convert(&value, &block.constraint()),
        };
        put(block.name, value);
    }
    schema.mark(&mut object);
    if problems.is_empty() { Ok(object) } else { Err(problems) }
}

/// The arguments of a child.
pub(crate) fn child_arguments(schema: &Schema, child: &Child, lookup: &dyn Fn(&[ChildStep], &str) -> Value) -> Result<Object, Diagnostics> {
    resolved(schema, &child.arguments, lookup)
}

fn bug(what: String) -> Diagnostic {
    Diagnostic::error("Composite gives wrong arguments", format!("{what} This is a bug of the composite."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::Type;

    #[test]
    fn what_may_not_answer_is_taken_for_the_same_in_blocks_too() {
        let way = |id: Value, required: bool| Value::object([("provider", "kubernetes".into()), ("id", id), ("required", required.into())]);
        let block = |id: Value, required: bool| Value::object([("cluster", way(id, required)), ("port", 1i64.into())]);
        let before = block("u1".into(), false);
        let unknown = || Value::unknown_not_null(Type::String);
        let mut silent = block(unknown(), false);
        assume_same(&mut silent, &before);
        assert_eq!(silent, before);
        let mut needed = block(unknown(), true);
        assume_same(&mut needed, &before);
        assert!(!needed.is_wholly_known(), "what must answer says itself which it is");
        let mut another = block("u2".into(), false);
        assume_same(&mut another, &before);
        assert_eq!(another, block("u2".into(), false));
    }

    #[test]
    fn what_is_missing_of_a_thing_that_is_away_is_what_it_was() {
        let open = || karmaform_model::Arg::from(Value::unknown_not_null(Type::String));
        let sibling = [ChildStep::new("key")];
        let text = |arg: karmaform_model::Arg| karmaform_model::Arg::Text(vec!["a ".into(), arg]);
        let child = Child {
            path: vec![ChildStep::new("file")],
            resource_type: "file".to_owned(),
            arguments: [("path", "/a".into()), ("content", text(open())), ("key", text(karmaform_model::Arg::child(&sibling, "pem")))]
                .map(|(n, a)| (n.to_owned(), a))
                .into(),
            after: Vec::new(),
            apart: &[],
        };
        let before = Object::from([("path", "/b"), ("content", "a b"), ("key", "a k")].map(|(n, v)| (n.to_owned(), v.into())));
        let changing = |_: &[ChildStep], _: &str| Value::unknown(Type::String);
        let mut wanted: Object = child.arguments.iter().map(|(n, a)| (n.clone(), a.resolve(&changing))).collect();
        assume_unseen(&child, &mut wanted, &before);
        assert_eq!((wanted["path"].as_str(), wanted["content"].as_str()), (Some("/a"), Some("a b")));
        assert!(wanted["key"].is_unknown(), "a key that changes is another one");
    }
}
