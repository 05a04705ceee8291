//! `sum`

use karmaform_model::Number;

use super::prelude::*;
use crate::ops::arithmetic;

pub(super) const FUNCTION: Function = Function {
    name: "sum",
    doc: "The sum of the numbers in a list or set.",
    parameters: &[Parameter::any("list")],
    gives: Gives::Is(Shape::Number),
    body: Some(sum),
    #[cfg(test)]
    rows: &[
        ("sum([1,\"2\"])", "3"),
        ("sum([0.1,0.2])", "0.3"),
        ("sum(toset([1,1,2]))", "3"),
        ("sum([])", "ERROR at least one number"),
        ("sum([1,null])", "ERROR element 1 is null"),
        ("sum([1,\"x\"])", "ERROR element 1 is no number"),
        ("sum({a=1})", "ERROR a list, set or tuple is required"),
        ("sum([\"x\",u.id])", "UNKNOWN number"),
        ("sum([1,tonumber(u.output)])", "UNKNOWN number"),
    ],
    ..Function::BASE
};

fn sum(a: &Arguments<'_>) -> Answer {
    let items = sequence(a, 0)?;
    if items.is_empty() {
        return Err(FunctionError::at(0, "must hold at least one number"));
    }
    if !a.value(0).is_wholly_known() {
        return Ok(a.unknown());
    }
    // The one zero that changes nothing, not even the sign of the other.
    let mut total = Number::NegativeZero;
    for (i, item) in items.iter().enumerate() {
        if item.is_null() {
            return Err(FunctionError::at(0, format!("element {i} is null, which is not allowed here")));
        }
        let item = convert(item, &Type::Number).map_err(|_| FunctionError::at(0, format!("element {i} is no number")))?;
        if let Some(n) = item.as_number() {
            total = arithmetic::add(&total, n).map_err(FunctionError::new)?;
        }
    }
    Ok(total.into())
}
