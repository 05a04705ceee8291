//! `pow`

use karmaform_model::Number;

use super::floats;
use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "pow",
    doc: "A number to a power, as precise as a 64-bit float.",
    parameters: &[Parameter::number("num"), Parameter::number("power")],
    gives: Gives::Is(Shape::Number),
    body: Some(|a| {
        let result = floats::power(a.number(0).as_f64(), a.number(1).as_f64());
        Number::from_f64(result).map(Value::from).ok_or_else(|| FunctionError::new("these numbers have no power"))
    }),
    #[cfg(test)]
    rows: &[
        ("pow(3,2)", "9"),
        ("pow(2,0.5)", "1.4142135623730951"),
        ("pow(2,64)", "18446744073709550000"),
        ("pow(1.1,10)", "2.593742460100002"),
        ("pow(7,20)", "79792266297612000"),
        ("ceil(pow(10,23))", "100000000000000000000000"),
        ("pow(2,-1)", "0.5"),
        ("pow(0,0)", "1"),
        ("pow(10,1000000)", "+Inf"),
        ("pow(-8,0.5)", "ERROR no power"),
    ],
    ..Function::BASE
};
