//! `signum`

use super::prelude::*;
use crate::ops::arithmetic::is_negative;

pub(super) const FUNCTION: Function = Function {
    name: "signum",
    doc: "-1, 0 or 1, after the sign of the number.",
    parameters: &[Parameter::number("num")],
    gives: Gives::Is(Shape::Number),
    body: Some(|a| {
        // A fraction has no sign here, as little as a number beyond 64 bits.
        a.whole(0)?;
        let number = a.number(0);
        let sign = if is_negative(&number) { -1i64 } else { i64::from(number != karmaform_model::Number::Int(0)) };
        Ok(sign.into())
    }),
    #[cfg(test)]
    rows: &[("signum(-3)", "-1"), ("signum(0)", "0"), ("signum(1.5)", "ERROR a whole number is required"), ("signum(12)", "1")],
    ..Function::BASE
};
