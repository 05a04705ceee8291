//! `range`

use karmaform_model::Number;

use super::prelude::*;
use crate::ops::arithmetic::{add, is_negative};

/// As many as Terraform allows: more is a mistake in nearly all cases, and would only slow everything down.
const MOST: usize = 1024;

pub(super) const FUNCTION: Function = Function {
    name: "range",
    doc: "A list of numbers: up to a limit, from a start to a limit, or from a start to a limit by a step.",
    rest: Some(Parameter::number("params")),
    gives: Gives::Is(Shape::List(&Shape::Number)),
    body: Some(range),
    #[cfg(test)]
    rows: &[
        ("range(3)", "tolist([0, 1, 2])"),
        ("range(0)", "tolist([])"),
        ("range(-2)", "tolist([0, -1])"),
        ("range(3,0)", "tolist([3, 2, 1])"),
        ("range(1,4)", "tolist([1, 2, 3])"),
        ("formatlist(\"%.1f\",range(0,1,0.3))", "tolist([\"0.0\", \"0.3\", \"0.6\", \"0.9\"])"),
        ("contains(range(0,1,0.3),0.9)", "false"),
        ("range(4,0,-2)", "tolist([4, 2])"),
        ("range(1,5,-1)", "ERROR the step must be positive"),
        ("range(5,1,1)", "ERROR the step must be negative"),
        ("range(1,5,0)", "ERROR more than 1024 numbers"),
        ("range(1025)", "ERROR more than 1024 numbers"),
        ("range()", "ERROR from one to three numbers"),
        ("range(tonumber(u.output))", "UNKNOWN list(number)"),
    ],
    ..Function::BASE
};

fn range(a: &Arguments<'_>) -> Answer {
    let (start, limit) = match a.len() {
        1 => (Number::Int(0), a.number(0)),
        2 | 3 => (a.number(0), a.number(1)),
        _ => return Err(FunctionError::new("from one to three numbers must be given")),
    };
    let down = limit < start;
    let step = if a.len() == 3 { a.number(2) } else { Number::Int(if down { -1 } else { 1 }) };
    let negative = is_negative(&step);
    if start != limit && step != Number::Int(0) && negative != down {
        let sign = if down { "negative" } else { "positive" };
        return Err(FunctionError::at(2, format!("the step must be {sign}, to get from the start to the limit")));
    }
    let mut numbers = Vec::new();
    let mut next = start;
    while if down { next > limit } else { next < limit } {
        if numbers.len() == MOST {
            let why = format!("more than {MOST} numbers come out of this; bring start and limit together, or take a larger step");
            return Err(FunctionError::new(why));
        }
        numbers.push(Value::from(next.clone()));
        next = add(&next, &step).map_err(FunctionError::new)?;
    }
    Ok(Value::list(Type::Number, numbers))
}
