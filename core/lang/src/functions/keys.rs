//! `keys` and `values`

use super::prelude::*;

pub(super) const KEYS: Function = Function {
    name: "keys",
    doc: "The keys of a map or object, sorted.",
    parameters: &[Parameter::of("inputMap", Kinds::Entries).marked().unknown()],
    gives: Gives::Depends(|values| match values.first().map(|v| v.ty()) {
        Some(Type::Map(_)) => Type::list(Type::String),
        Some(Type::Object(attributes)) => Type::Tuple(vec![Type::String; attributes.len()]),
        _ => Type::Any,
    }),
    body: Some(|a| {
        let map = a.value(0);
        let keys = |names: Vec<&String>| names.into_iter().map(string).collect::<Vec<_>>();
        Ok(match &map.kind {
            Kind::Map(_, entries) => Value::list(Type::String, keys(entries.keys().collect())),
            Kind::Object(attributes) => Value::tuple(keys(attributes.keys().collect())),
            // The type of an object has its keys, even while the object is unknown.
            Kind::Unknown(u) => match &u.ty {
                Type::Object(attributes) => Value::tuple(keys(attributes.keys().collect())),
                Type::Map(_) | Type::Any => a.unknown(),
                _ => return Err(FunctionError::at(0, Kinds::Entries.required())),
            },
            _ => return Err(FunctionError::at(0, Kinds::Entries.required())),
        }
        .marked(map.marks()))
    }),
    #[cfg(test)]
    rows: &[
        ("keys({b=1,a=2})", "[\"a\", \"b\"]"),
        ("keys(tomap({b=1,a=2}))", "tolist([\"a\", \"b\"])"),
        ("keys([1])", "ERROR a map or object is required"),
        ("keys({a=u.id})", "[\"a\"]"),
        ("keys(u.map)", "UNKNOWN list(string)"),
        ("issensitive(keys(sensitive({a=1})))", "true"),
        ("issensitive(keys({a=sensitive(1)}))", "false"),
    ],
    ..Function::BASE
};

pub(super) const VALUES: Function = Function {
    name: "values",
    doc: "The values of a map or object, in the order of their keys.",
    parameters: &[Parameter::of("mapping", Kinds::Entries).marked()],
    gives: Gives::Depends(|values| match values.first().map(|v| v.ty()) {
        Some(Type::Map(t)) => Type::List(t),
        Some(Type::Object(attributes)) => Type::Tuple(attributes.into_values().map(|a| a.ty).collect()),
        _ => Type::Any,
    }),
    body: Some(|a| {
        let map = a.value(0);
        Ok(match &map.kind {
            Kind::Map(ty, entries) => Value::list(ty.clone(), entries.values().cloned().collect()),
            Kind::Object(attributes) => Value::tuple(attributes.values().cloned().collect()),
            _ => return Err(FunctionError::at(0, Kinds::Entries.required())),
        }
        .marked(map.marks()))
    }),
    #[cfg(test)]
    rows: &[
        ("values({b=1,a=2})", "[2, 1]"),
        ("values(tomap({b=1,a=2}))", "tolist([2, 1])"),
        ("values({a=u.id})", "[UNKNOWN string]"),
        ("values(u.map)", "UNKNOWN list(string)"),
        ("values(\"a\")", "ERROR a map or object is required"),
        ("issensitive(values({a=sensitive(1)}))", "false"),
        ("values({a=sensitive(1)})", "[(sensitive value)]"),
        ("values(sensitive({a=1}))", "(sensitive value)"),
    ],
    ..Function::BASE
};
