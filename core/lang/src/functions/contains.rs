//! `contains`

use super::prelude::*;
use crate::ops::equal;

pub(super) const FUNCTION: Function = Function {
    name: "contains",
    doc: "True if a list or set holds an element that equals a value; the types must be the same.",
    parameters: &[Parameter::of("list", Kinds::Sequence), Parameter::any("value").unknown()],
    gives: Gives::Is(Shape::Bool),
    body: Some(|a| {
        let (items, wanted) = (sequence(a, 0)?, a.value(1));
        let mut undecided = false;
        for item in items {
            match equal(item, wanted) {
                Some(true) => return Ok(true.into()),
                Some(false) => {}
                None => undecided = true,
            }
        }
        Ok(if undecided { a.unknown() } else { false.into() })
    }),
    #[cfg(test)]
    rows: &[
        ("contains([\"a\"],\"a\")", "true"),
        ("contains([1],\"1\")", "false"),
        ("contains(toset([\"a\"]),\"b\")", "false"),
        ("contains(\"abc\",\"a\")", "ERROR a list, set or tuple is required"),
        ("contains([1],null)", "ERROR must not be null"),
        ("contains([1,2],tonumber(u.output))", "UNKNOWN bool"),
        ("contains([\"x\",u.id],\"x\")", "true"),
        ("contains([\"x\",u.id],\"y\")", "UNKNOWN bool"),
        ("issensitive(contains([\"a\"],sensitive(\"a\")))", "true"),
        ("issensitive(contains([\"a\",sensitive(\"b\")],\"a\"))", "true"),
    ],
    ..Function::BASE
};
