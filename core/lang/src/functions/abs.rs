//! `abs`

use super::prelude::*;
use crate::ops::arithmetic::{has_minus, negate};

pub(super) const FUNCTION: Function = Function {
    name: "abs",
    doc: "The number without its sign.",
    parameters: &[Parameter::number("num")],
    gives: Gives::Is(Shape::Number),
    body: Some(|a| {
        let number = a.number(0);
        Ok(if has_minus(&number) { negate(&number) } else { number }.into())
    }),
    #[cfg(test)]
    rows: &[
        ("abs(-3)", "3"),
        ("abs(2.5)", "2.5"),
        ("abs(\"-1\")", "1"),
        ("abs(-1/0)", "+Inf"),
        ("abs(tonumber(u.output))", "UNKNOWN number"),
    ],
    ..Function::BASE
};
