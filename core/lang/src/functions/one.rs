//! `one`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "one",
    doc: "The only element of a list or set, or null if it has none.",
    parameters: &[Parameter::of("list", Kinds::Sequence).unknown()],
    gives: Gives::Depends(|values| values.first().map_or(Type::Any, |v| element_type(&v.ty()))),
    may_be_null: true,
    body: Some(|a| {
        if a.value(0).is_unknown() {
            return if known_length(a.value(0)).is_some_and(|length| length > 1) { Err(wrong()) } else { Ok(a.unknown()) };
        }
        let items = sequence(a, 0).map_err(|_| wrong())?;
        match items {
            [] => Ok(Value::null(element_type(&a.value(0).ty()))),
            [single] => Ok(single.clone()),
            // Unknown elements of a set may turn out to be one and the same.
            _ if matches!(a.value(0).kind, Kind::Set(..)) && !a.value(0).is_wholly_known() => Ok(a.unknown()),
            _ => Err(wrong()),
        }
    }),
    #[cfg(test)]
    rows: &[
        ("one([])", "null"),
        ("one([1])", "1"),
        ("one(toset([\"a\"]))", "\"a\""),
        ("one([1,2])", "ERROR a list, set or tuple of no or one element is required"),
        ("one(1)", "ERROR a list, set or tuple is required"),
        ("one(u.id)", "ERROR a list, set or tuple is required"),
        ("one([u.id])", "UNKNOWN string"),
        ("one(u.list)", "UNKNOWN string"),
        ("issensitive(one([sensitive(1)]))", "true"),
    ],
    ..Function::BASE
};

fn wrong() -> FunctionError {
    FunctionError::at(0, "a list, set or tuple of no or one element is required")
}
