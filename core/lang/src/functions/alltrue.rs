//! `alltrue` and `anytrue`

use super::prelude::*;

const BASE: Function =
    Function { parameters: &[Parameter::new("list", Shape::List(&Shape::Bool))], gives: Gives::Is(Shape::Bool), ..Function::BASE };

pub(super) const ALLTRUE: Function = Function {
    name: "alltrue",
    doc: "True if every element is true; an empty list has none that is not.",
    body: Some(|a| Ok(decide(a, false))),
    #[cfg(test)]
    rows: &[
        ("alltrue([true,\"true\"])", "true"),
        ("alltrue([])", "true"),
        ("alltrue([true,false])", "false"),
        ("alltrue([true,null])", "false"),
        ("alltrue([tobool(u.output),false])", "false"),
        ("alltrue([tobool(u.output),true])", "UNKNOWN bool"),
        ("alltrue([1])", "ERROR element 0: bool required, but have number"),
    ],
    ..BASE
};

pub(super) const ANYTRUE: Function = Function {
    name: "anytrue",
    doc: "True if at least one element is true.",
    body: Some(|a| Ok(decide(a, true))),
    #[cfg(test)]
    rows: &[
        ("anytrue([false,true])", "true"),
        ("anytrue([])", "false"),
        ("anytrue([null])", "false"),
        ("anytrue([tobool(u.output),true])", "true"),
        ("anytrue([tobool(u.output)])", "UNKNOWN bool"),
    ],
    ..BASE
};

/// One element of `deciding` settles it; null counts as false.
fn decide(a: &Arguments<'_>, deciding: bool) -> Value {
    let truth = |v: &Value| if v.is_null() { Some(false) } else { v.as_bool() };
    let items = a.items(0);
    if items.iter().any(|v| truth(v) == Some(deciding)) {
        return deciding.into();
    }
    if items.iter().any(Value::is_unknown) { a.unknown() } else { (!deciding).into() }
}
