//! `ceil` and `floor`

use karmaform_model::Number;

use super::prelude::*;

pub(super) const CEIL: Function = Function {
    name: "ceil",
    doc: "The nearest whole number that is not smaller.",
    body: Some(|a| Ok(round(&a.number(0), true).into())),
    #[cfg(test)]
    rows: &[("ceil(1.1)", "2"), ("ceil(-1.9)", "-1"), ("ceil(5)", "5"), ("ceil(7/49*49)", "7"), ("ceil(1/0)", "+Inf")],
    ..BASE
};

pub(super) const FLOOR: Function = Function {
    name: "floor",
    doc: "The nearest whole number that is not larger.",
    body: Some(|a| Ok(round(&a.number(0), false).into())),
    #[cfg(test)]
    rows: &[
        ("floor(-1.1)", "-2"),
        ("floor(1.9)", "1"),
        ("floor(10/3*3)", "10"),
        ("floor(null)", "ERROR must not be null"),
        ("floor([])", "ERROR number required, but have tuple"),
    ],
    ..BASE
};

const BASE: Function = Function { parameters: &[Parameter::number("num")], gives: Gives::Is(Shape::Number), ..Function::BASE };

fn round(number: &Number, up: bool) -> Number {
    match number {
        Number::Float(float) if !number.is_whole() => Number::from_integer(float.whole(up)),
        Number::NegativeZero => Number::Int(0),
        other => other.clone(),
    }
}
