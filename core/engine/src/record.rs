//! A composite's own record: what the state keeps of the composite itself, apart from its children.

use karmaform_model::{Change, Object, Schema, Value, convert, default_plan, same};

use crate::before::Before;
use crate::decide::Decision;

/// What a record keeps of an argument: of a connection, and of a thing that carries one, only which thing it is. Its facts (free disk, the
/// clock) are of the moment and would make every plan a change, and its credentials have no place in a second entry of the state.
fn only_ways(value: &Value) -> Value {
    match value.get("connection").and_then(which) {
        Some(way) => Value::object([("connection", way)]),
        None => which(value).filter(|_| !value.is_unknown()).unwrap_or_else(|| value.map_parts(|_, part| only_ways(part))),
    }
}

/// What a connection reaches; none for what is no connection.
fn which(connection: &Value) -> Option<Value> {
    if connection.is_unknown() {
        return Some(connection.clone());
    }
    let parts = ["provider", "id"].map(|name| Some((name.to_owned(), connection.get(name)?.clone())));
    parts.into_iter().collect::<Option<Object>>().map(Value::from)
}

/// A composite's record: arguments, and outputs of the schema's types.
pub(crate) fn record_object(schema: &Schema, arguments: &Object, outputs: Object) -> Object {
    let mut record: Object = arguments.iter().map(|(name, value)| (name.clone(), only_ways(value))).collect();
    for (name, value) in outputs {
        if let Some(attribute) = schema.attribute(&name) {
            let value = convert(&value, &attribute.ty).unwrap_or(value);
            record.insert(name, value);
        }
    }
    for attribute in schema.attributes.iter().filter(|a| a.is_computed()) {
        record.get_or_insert_with(attribute.name, || Value::null(attribute.ty.clone()));
    }
    schema.mark(&mut record);
    record
}

/// All outputs are known, and nothing else is another.
fn only_outputs_differ(schema: &Schema, before: &Object, record: &Object) -> bool {
    record.iter().all(|(name, value)| match schema.attribute(name) {
        Some(attribute) if attribute.is_computed() && !attribute.is_configurable() => value.is_wholly_known(),
        _ => same(before.get(name), Some(value)),
    })
}

/// The record itself is never replaced: its children are, each as its own type says. `is_still`: none of them changes.
pub(crate) fn record_decision(schema: &Schema, before: &Before, record: &Object, is_still: bool) -> Decision {
    // What an earlier version kept of a connection counts for no more than what is kept now.
    let kept = |name: &str, value: &Value| {
        let is_output = schema.attribute(name).is_some_and(|a| !a.is_configurable());
        if is_output { value.clone() } else { only_ways(value) }
    };
    let known = before.compared.as_ref().map(|b| b.iter().map(|(name, value)| (name.clone(), kept(name, value))).collect::<Object>());
    let change = match default_plan(schema, known.as_ref(), Some(record)) {
        Change::Replace { before, .. } => match default_plan(schema, None, Some(record)) {
            Change::Create { after } => Change::Update { before, after },
            other => other,
        },
        // Nothing is to be done, and what the outputs are made of was seen to be another than the state remembers: that is no change, as for any
        // computed attribute.
        Change::Update { before, .. } if is_still && only_outputs_differ(schema, &before, record) => {
            Change::NoOp { object: record.clone() }
        }
        change => change,
    };
    Decision { change, reason: None }
}
