//! `log`

use karmaform_model::Number;

use super::floats::logarithm;
use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "log",
    doc: "The logarithm of a number to a base, as precise as a 64-bit float.",
    parameters: &[Parameter::number("num"), Parameter::number("base")],
    gives: Gives::Is(Shape::Number),
    body: Some(|a| {
        let result = logarithm(a.number(0).as_f64()) / logarithm(a.number(1).as_f64());
        Number::from_f64(result).map(Value::from).ok_or_else(|| FunctionError::new("these numbers have no logarithm"))
    }),
    #[cfg(test)]
    rows: &[
        ("log(8,2)", "3"),
        ("log(9,3)", "2.0000000000000004"),
        ("log(50,10)", "1.6989700043360185"),
        ("log(0,2)", "-Inf"),
        ("log(-1,2)", "ERROR no logarithm"),
    ],
    ..Function::BASE
};
