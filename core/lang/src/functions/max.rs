//! `max` and `min`

use karmaform_model::Number;

use super::prelude::*;

pub(super) const MAX: Function = Function {
    name: "max",
    doc: "The largest of the numbers.",
    // Of those that are equal, as zeros of both signs are, the first.
    body: Some(|a| best(a, |numbers| numbers.reduce(|best, n| if n > best { n } else { best }))),
    #[cfg(test)]
    rows: &[
        ("max()", "ERROR at least one number"),
        ("max([1,2]...)", "2"),
        ("max(1,\"30\",5)", "30"),
        ("max(5, length(toset([1,u.id])))", "UNKNOWN number"),
        ("issensitive(max(1,sensitive(2)))", "true"),
    ],
    ..BASE
};

pub(super) const MIN: Function = Function {
    name: "min",
    doc: "The smallest of the numbers.",
    body: Some(|a| best(a, Iterator::min)),
    #[cfg(test)]
    rows: &[
        ("min(1,2.5)", "1"),
        ("min(-1/0,0)", "-Inf"),
        ("min(1,tonumber(u.output))", "UNKNOWN number"),
        ("min(\"x\")", "ERROR number required"),
    ],
    ..BASE
};

const BASE: Function = Function { rest: Some(Parameter::number("numbers")), gives: Gives::Is(Shape::Number), ..Function::BASE };

fn best(a: &Arguments<'_>, of: fn(std::vec::IntoIter<Number>) -> Option<Number>) -> Answer {
    let numbers: Vec<_> = a.values().iter().copied().filter_map(Value::as_number).cloned().collect();
    of(numbers.into_iter()).map(Value::from).ok_or_else(|| FunctionError::new("at least one number must be given"))
}
