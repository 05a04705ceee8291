//! `lookup`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "lookup",
    doc: "The element of a map or object with a key, or a default if there is none.",
    parameters: &[
        Parameter::of("inputMap", Kinds::Entries).marked().unknown(),
        Parameter::string("key").marked(),
        Parameter::any("default").marked().null().unknown(),
    ],
    optional: 1,
    gives: Gives::Depends(result_type),
    may_be_null: true,
    body: Some(|a| {
        let (map, key) = (a.value(0), a.value(1));
        let default = (a.len() > 2).then(|| a.value(2));
        let element = match &map.kind {
            Kind::Map(ty, _) => Some(ty),
            Kind::Unknown(unknown) => match &unknown.ty {
                Type::Map(ty) => Some(&**ty),
                _ => None,
            },
            _ => None,
        };
        let default = match (element, default) {
            (Some(ty), Some(d)) => Some(
                convert(d, ty)
                    .ok()
                    .filter(|v| *ty == Type::Any || v.ty() == *ty)
                    .ok_or_else(|| FunctionError::at(2, "must have the type of the map's elements"))?,
            ),
            (_, default) => default.cloned(),
        };
        if let Kind::Unknown(unknown) = &map.kind {
            if default.is_none() && matches!(&unknown.ty, Type::Object(attributes) if !attributes.contains_key(a.text(1))) {
                return Err(missing(a));
            }
            let of_default = default.map_or_else(Marks::default, |d| d.all_marks());
            return Ok(a.unknown().marked(map.marks() | key.marks() | of_default));
        }
        let Some(entries) = map.as_entries() else { return Err(FunctionError::at(0, Kinds::Entries.required())) };
        let found = entries.get(a.text(1)).cloned().or(default);
        Ok(found.ok_or_else(|| missing(a))?.marked(map.marks() | key.marks()))
    }),
    #[cfg(test)]
    rows: &[
        ("lookup(u.list,\"a\",1)", "ERROR a map or object is required"),
        ("lookup({a=1},\"a\",\"d\")", "1"),
        ("lookup({a=1},\"b\",\"d\")", "\"d\""),
        ("lookup({a=1},\"b\")", "ERROR no element \"b\""),
        ("lookup(tomap({a=1}),\"b\",\"d\")", "ERROR must have the type of the map's elements"),
        ("lookup(tomap({a=1}),\"b\",2)", "2"),
        ("lookup(tomap({a=\"x\"}),\"b\",2)", "\"2\""),
        ("lookup({a=1},\"b\",null)", "null"),
        ("lookup(tomap({a=1}),\"b\",tobool(null))", "ERROR must have the type of the map's elements"),
        ("lookup(tomap({a=\"x\"}),\"b\",tolist(null))", "ERROR must have the type of the map's elements"),
        ("lookup(tomap({a=tolist([1])}),\"b\",tostring(null))", "ERROR must have the type of the map's elements"),
        ("lookup(tomap({a=tolist([1])}),\"b\",toset(null))", "tolist(null)"),
        ("lookup([],\"b\",2)", "ERROR a map or object is required"),
        ("lookup({a=1},u.id,2)", "UNKNOWN"),
        ("lookup({a=u.id},\"b\",2)", "2"),
        ("lookup(u.map,\"b\",\"c\")", "UNKNOWN string"),
        ("lookup(u.map,\"b\",[])", "ERROR must have the type of the map's elements"),
        ("issensitive(lookup(u.map,\"b\",sensitive(\"c\")))", "true"),
        ("issensitive(lookup({a=1,b=sensitive(2)},\"a\",0))", "false"),
        ("issensitive(lookup({a=1,b=sensitive(2)},\"b\",0))", "true"),
        ("issensitive(lookup({a=1},\"a\",sensitive(0)))", "false"),
        ("lookup({a=1},sensitive(\"hidden\"))", "ERROR no element the (secret) value"),
    ],
    ..Function::BASE
};

fn missing(a: &Arguments<'_>) -> FunctionError {
    FunctionError::new(format!("there is no element {}, and no default was given", a.quote(1)))
}

fn result_type(values: &[&Value]) -> Type {
    match (values.first().map(|v| v.ty()), values.get(1).and_then(|v| v.as_str())) {
        (Some(Type::Map(t)), _) => *t,
        (Some(Type::Object(attributes)), Some(key)) => attributes.get(key).map_or(Type::Any, |a| a.ty.clone()),
        _ => Type::Any,
    }
}
