//! `pow`

use karmaform_model::Number;

use super::prelude::*;
use crate::ops::arithmetic;

pub(super) const FUNCTION: Function = Function {
    name: "pow",
    doc: "A number to a power: exact for whole exponents, else as precise as a 64-bit float.",
    parameters: &[Parameter::number("num"), Parameter::number("power")],
    gives: Gives::Is(Shape::Number),
    body: Some(|a| {
        let exact = a.number(1).as_i64().and_then(|p| u32::try_from(p).ok()).and_then(|p| arithmetic::power(&a.number(0), p));
        let result = exact.or_else(|| Number::from_f64(a.number(0).as_f64().powf(a.number(1).as_f64())));
        result.map(Value::from).ok_or_else(|| FunctionError::new("these numbers have no power"))
    }),
    #[cfg(test)]
    rows: &[
        ("pow(3,2)", "9"),
        ("pow(2,0.5)", "1.4142135623730951"),
        ("pow(2,64)", "18446744073709551616"),
        ("pow(2,-1)", "0.5"),
        ("pow(0,0)", "1"),
        ("pow(10,1000000)", "+Inf"),
        ("pow(-8,0.5)", "ERROR no power"),
    ],
    ..Function::BASE
};
