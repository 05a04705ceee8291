//! `transpose`

use std::collections::BTreeMap;

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "transpose",
    doc: "A map of lists turned around: each string of a list becomes a key, with the keys of the lists it was in.",
    parameters: &[Parameter::new("values", Shape::Map(&Shape::STRINGS))],
    gives: Gives::Is(Shape::Map(&Shape::STRINGS)),
    body: Some(|a| {
        let input = a.value(0);
        if !input.is_wholly_known() {
            return Ok(a.unknown());
        }
        let mut turned: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (key, list) in input.as_entries().into_iter().flatten() {
            let Some(items) = list.as_items() else {
                return Err(FunctionError::at(0, "a list is null, which is not allowed here"));
            };
            for item in items {
                let item = item.as_str().ok_or_else(|| FunctionError::at(0, "a list holds null, which is not allowed here"))?;
                turned.entry(item.to_owned()).or_default().push(key);
            }
        }
        Ok(Value::map(Type::list(Type::String), turned.into_iter().map(|(k, v)| (k, strings(v))).collect()))
    }),
    #[cfg(test)]
    rows: &[
        ("transpose({a=[\"x\",\"y\"],b=[\"x\"]})", "tomap({\"x\" = tolist([\"a\", \"b\"]) \"y\" = tolist([\"a\"])})"),
        ("transpose({})", "tomap({})"),
        ("transpose({a=[u.id]})", "UNKNOWN map(list(string))"),
        ("transpose(u.map)", "ERROR the elements: list(string) required, but have string"),
        ("transpose({a=slice(tolist([{b=1}]),0,0)})", "ERROR element \"a\": the elements: string required, but have object"),
        ("transpose({a=[null]})", "ERROR a list holds null"),
    ],
    ..Function::BASE
};
