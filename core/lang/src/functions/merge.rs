//! `merge`

use std::collections::BTreeMap;

use karmaform_model::ObjectAttribute;

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "merge",
    doc: "One map or object of all entries; where keys are the same, the last one counts.",
    rest: Some(Parameter::any("maps").null().unknown().marked()),
    gives: Gives::Depends(result_type),
    body: Some(|a| {
        let marks = a.marks();
        let mut unknown = false;
        let mut merged = Object::new();
        for (i, value) in a.values().iter().copied().enumerate() {
            match &value.kind {
                Kind::Null(Type::Any | Type::Map(_) | Type::Object(_)) => {}
                Kind::Map(_, entries) | Kind::Object(entries) => merged.extend(entries.iter().map(|(n, v)| (n.clone(), v.clone()))),
                Kind::Unknown(u) if matches!(u.ty, Type::Any | Type::Map(_) | Type::Object(_)) => unknown = true,
                _ => return Err(FunctionError::at(i, "a map or object is required")),
            }
        }
        let merged = match result_type(a.values()) {
            _ if unknown => a.unknown(),
            Type::Map(ty) => Value::map(*ty, merged),
            _ => merged.into(),
        };
        Ok(merged.marked(marks))
    }),
    #[cfg(test)]
    rows: &[
        ("merge({a=1},null,{a=\"x\",b=2})", "{\"a\" = \"x\" \"b\" = 2}"),
        ("merge({a={x=1}},{a={y=2}})", "{\"a\" = {\"y\" = 2}}"),
        ("merge()", "{}"),
        ("merge(null)", "{}"),
        ("merge(tomap(null))", "tomap({})"),
        ("merge(null,tomap({a=1}))", "{\"a\" = 1}"),
        ("merge(tostring(null))", "ERROR a map or object is required"),
        ("merge(tomap({a=1}),tomap({b=2}))", "tomap({\"a\" = 1 \"b\" = 2})"),
        ("merge(tomap({a=1}),{b=\"x\"})", "{\"a\" = 1 \"b\" = \"x\"}"),
        ("merge({a=1},[])", "ERROR a map or object is required"),
        ("merge({a=1},{b=u.id})", "{\"a\" = 1 \"b\" = UNKNOWN string}"),
        ("merge({a=1},u.map)", "UNKNOWN any"),
        ("merge(tomap({a=\"b\"}),u.map)", "UNKNOWN map(string)"),
        ("merge({a=1},u.id)", "ERROR a map or object is required"),
        ("issensitive(merge({a=1},sensitive({b=2})))", "true"),
        ("issensitive(merge({a=1},{b=sensitive(2)}))", "false"),
        ("merge({a=1},{b=sensitive(2)})", "{\"a\" = 1 \"b\" = (sensitive value)}"),
    ],
    ..Function::BASE
};

/// A map if all are maps of one type, nulls too; else an object, whose type is asked for only where one of them is not known yet.
fn result_type(values: &[&Value]) -> Type {
    let mut types = values.iter().copied().map(Value::ty);
    match types.next() {
        Some(first @ Type::Map(_)) if types.all(|t| t == first) => first,
        _ if values.iter().any(|v| v.is_unknown()) => object_type(values),
        _ => Type::Any,
    }
}

/// The object that comes, if all of its keys are known by now.
fn object_type(values: &[&Value]) -> Type {
    let mut attributes = BTreeMap::new();
    for value in values {
        match (&value.kind, value.ty()) {
            (Kind::Null(_), _) => {}
            (_, Type::Object(own)) => attributes.extend(own),
            (Kind::Map(element, entries), _) => {
                attributes.extend(entries.keys().map(|name| (name.clone(), ObjectAttribute::required(element.clone()))));
            }
            _ => return Type::Any,
        }
    }
    Type::Object(attributes)
}
