//! `index`

use super::prelude::*;
use crate::ops::equal;

pub(super) const FUNCTION: Function = Function {
    name: "index",
    doc: "The place of the first element of a list that equals a value.",
    parameters: &[Parameter::of("list", Kinds::Ordered), Parameter::any("value")],
    gives: Gives::Is(Shape::Number),
    body: Some(|a| {
        let list = a.value(0);
        let (Kind::List(_, items) | Kind::Tuple(items)) = &list.kind else {
            return Err(FunctionError::at(0, Kinds::Ordered.required()));
        };
        let wanted = a.value(1);
        for (i, item) in items.iter().enumerate() {
            match equal(item, wanted) {
                Some(true) => return Ok(i.into()),
                Some(false) => {}
                None => return Ok(a.unknown()),
            }
        }
        Err(FunctionError::at(1, "this value is not in the list"))
    }),
    #[cfg(test)]
    rows: &[
        ("index([\"a\",\"b\"],\"b\")", "1"),
        ("index([\"a\"],\"c\")", "ERROR is not in the list"),
        ("index([],\"c\")", "ERROR is not in the list"),
        ("index([\"a\",u.id],\"a\")", "0"),
        ("index([u.id,\"a\"],\"a\")", "UNKNOWN number"),
        ("index({},1)", "ERROR a list or tuple is required"),
    ],
    ..Function::BASE
};
