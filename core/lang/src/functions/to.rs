//! `tobool`, `tonumber`, `tostring`, `tolist`, `toset` and `tomap`

use super::prelude::*;

const BASE: Function = Function { parameters: &[Parameter::any("v").null().unknown().marked()], may_be_null: true, ..Function::BASE };

pub(super) const BOOL: Function = Function {
    name: "tobool",
    doc: "The value as a bool: \"true\" and \"false\" become what they say.",
    gives: Gives::Is(Shape::Bool),
    body: Some(to),
    #[cfg(test)]
    rows: &[
        ("tobool(\"1\")", "true"),
        ("tobool(\"true\")", "true"),
        ("tobool(\"TRUE\")", "ERROR \"TRUE\" can't become a bool; only the strings \"true\" and \"false\" can"),
        ("tobool(1)", "ERROR a number can't become a bool"),
        ("tobool(null)", "tobool(null)"),
        ("tobool(sensitive(true))", "(sensitive value)"),
    ],
    ..BASE
};

pub(super) const NUMBER: Function = Function {
    name: "tonumber",
    doc: "The value as a number: a string in decimal notation becomes what it says.",
    gives: Gives::Is(Shape::Number),
    body: Some(to),
    #[cfg(test)]
    rows: &[
        ("tonumber(\"1e3\")", "1000"),
        ("tonumber(\"-1.50\")", "-1.5"),
        ("tonumber(\"0x10\")", "ERROR \"0x10\" can't become a number; only a string in decimal notation can"),
        ("tonumber(true)", "ERROR a bool can't become a number"),
        ("tonumber(\"\")", "ERROR \"\" can't become a number"),
        ("tonumber(null)", "tonumber(null)"),
        ("tonumber(tobool(null))", "ERROR a bool can't become a number"),
        ("tonumber(u.output)", "UNKNOWN number"),
        ("tonumber(sensitive(\"hidden\"))", "ERROR the (secret) value can't become a number"),
    ],
    ..BASE
};

pub(super) const STRING: Function = Function {
    name: "tostring",
    doc: "The value as a string: numbers in decimal notation, bools as \"true\" and \"false\".",
    gives: Gives::Is(Shape::String),
    body: Some(to),
    #[cfg(test)]
    rows: &[
        ("tostring(true)", "\"true\""),
        ("tostring(1e21)", "\"1000000000000000000000\""),
        ("tostring(0.1)", "\"0.1\""),
        ("tostring([])", "ERROR a tuple can't become a string"),
        ("tostring(null)", "tostring(null)"),
        ("tostring(tonumber(null))", "tostring(null)"),
        ("tostring(tolist(null))", "ERROR a list can't become a string"),
    ],
    ..BASE
};

pub(super) const LIST: Function = Function {
    name: "tolist",
    doc: "The value as a list, all elements converted to one type.",
    gives: Gives::Is(Shape::LIST),
    body: Some(to),
    #[cfg(test)]
    rows: &[
        ("tolist([1,\"a\",true])", "tolist([\"1\", \"a\", \"true\"])"),
        ("tolist(toset([10,9]))", "tolist([9, 10])"),
        ("tolist([])", "tolist([])"),
        ("tolist({})", "ERROR an object can't become a list"),
        ("tolist(tomap(null))", "ERROR a map can't become a list"),
        ("tolist([null,1])", "tolist([tonumber(null), 1])"),
        ("tolist([null,{a=1}])", "ERROR all elements must have the same type"),
        ("tolist(toset([\"a\",u.id]))", "UNKNOWN list(string)"),
        ("tolist(toset([u.id]))", "tolist([UNKNOWN string])"),
        ("tolist([1,[]])", "ERROR all elements must have the same type"),
        ("tolist([1,u.id])", "tolist([\"1\", UNKNOWN string])"),
        ("issensitive(tolist([1,sensitive(2)]))", "false"),
        ("tolist([1,sensitive(2)])", "tolist([1, (sensitive value)])"),
    ],
    ..BASE
};

pub(super) const SET: Function = Function {
    name: "toset",
    doc: "The value as a set: without repeated elements, without order, all elements converted to one type.",
    gives: Gives::Is(Shape::SET),
    body: Some(to),
    #[cfg(test)]
    rows: &[
        ("toset([1,\"a\",true])", "toset([\"1\", \"a\", \"true\"])"),
        ("toset([2,1,2])", "toset([1, 2])"),
        ("toset([tolist([1]),null])", "ERROR all elements must have the same type"),
        ("toset(u.list)", "UNKNOWN set(string)"),
        ("toset(\"a\")", "ERROR a string can't become a set"),
        ("toset([1,u.id])", "toset([\"1\", UNKNOWN string])"),
        ("issensitive(toset([1,sensitive(2)]))", "true"),
    ],
    ..BASE
};

pub(super) const MAP: Function = Function {
    name: "tomap",
    doc: "The value as a map, all elements converted to one type.",
    gives: Gives::Is(Shape::Map(&Shape::Any)),
    body: Some(to),
    #[cfg(test)]
    rows: &[
        ("tomap({a=1,b=\"x\"})", "tomap({\"a\" = \"1\" \"b\" = \"x\"})"),
        ("tomap({})", "tomap({})"),
        ("tomap([])", "ERROR a tuple can't become a map"),
        ("tomap({a=1,b=[]})", "ERROR all elements must have the same type"),
        ("tomap({a=u.id})", "tomap({\"a\" = UNKNOWN string})"),
    ],
    ..BASE
};

fn to(a: &Arguments<'_>) -> Answer {
    let Gives::Is(shape) = a.function.gives else { return Ok(a.unknown()) };
    let (value, ty) = (a.value(0), shape.ty());
    if let Kind::Null(own) = &value.kind
        && *own != Type::Any
    {
        // A null of some type becomes one of another as its values would.
        let converted = convert(&Value::unknown(own.clone()), &ty).map_err(|e| FunctionError::at(0, misfit(a, value, &ty, &e)))?;
        return Ok(Value::null(converted.ty()).marked(value.marks()));
    }
    convert(value, &ty).map_err(|e| FunctionError::at(0, misfit(a, value, &ty, &e)))
}

fn misfit(a: &Arguments<'_>, value: &Value, ty: &Type, error: &karmaform_model::ConvertError) -> String {
    let wanted = ty.word();
    match (value.as_str().is_some(), ty) {
        (true, Type::Bool) => format!("{} can't become a bool; only the strings \"true\" and \"false\" can", a.quote(0)),
        (true, Type::Number) => format!("{} can't become a number; only a string in decimal notation can", a.quote(0)),
        _ if matches!(error, karmaform_model::ConvertError::Wrong { .. }) => {
            let found = value.ty().word().to_owned();
            let article = if found.starts_with('o') { "an" } else { "a" };
            format!("{article} {found} can't become a {wanted}")
        }
        _ => a.misfit(0, error).message,
    }
}
