//! `sort`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "sort",
    doc: "The list of strings in the order of their bytes.",
    parameters: &[Parameter::new("list", Shape::STRINGS)],
    gives: Gives::Is(Shape::STRINGS),
    body: Some(|a| {
        let Some(mut items) = a.strings(0)? else {
            // As long as the order is open, every place may take any of them.
            let places = a.items(0).iter().map(|_| unknown(Type::String, true)).collect();
            return Ok(Value::list(Type::String, places));
        };
        items.sort_unstable();
        Ok(strings(items))
    }),
    #[cfg(test)]
    rows: &[
        ("sort([10,9])", "tolist([\"10\", \"9\"])"),
        ("sort([\"b\",\"B\",\"a\",\"é\"])", "tolist([\"B\", \"a\", \"b\", \"é\"])"),
        ("sort([])", "tolist([])"),
        ("sort(tolist([]))", "tolist([])"),
        ("sort(slice(tolist([{a=1}]),0,0))", "ERROR the elements: string required, but have object"),
        ("sort(toset([\"b\",u.id]))", "UNKNOWN list(string)"),
        ("sort([\"a\",null])", "ERROR element 1 is null"),
        ("sort([\"b\",u.id])", "tolist([UNKNOWN string, UNKNOWN string])"),
        ("issensitive(sort([\"b\",sensitive(\"a\")]))", "true"),
    ],
    ..Function::BASE
};
