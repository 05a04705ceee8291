//! `compact`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "compact",
    doc: "The list of strings without the empty ones and nulls.",
    parameters: &[Parameter::new("list", Shape::STRINGS)],
    gives: Gives::Is(Shape::STRINGS),
    body: Some(|a| {
        if a.items(0).iter().any(Value::is_unknown) {
            return Ok(a.unknown());
        }
        Ok(strings(a.items(0).iter().filter_map(Value::as_str).filter(|s| !s.is_empty())))
    }),
    #[cfg(test)]
    rows: &[
        ("compact([\"a\",\"\",null,\"b\"])", "tolist([\"a\", \"b\"])"),
        ("compact([])", "tolist([])"),
        ("compact([\"a\",u.id])", "UNKNOWN list(string)"),
    ],
    ..Function::BASE
};
