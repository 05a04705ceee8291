//! `strcontains`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "strcontains",
    doc: "True if a string holds a substring.",
    parameters: &[Parameter::string("str"), Parameter::string("substr")],
    gives: Gives::Is(Shape::Bool),
    body: Some(|a| Ok(a.text(0).contains(a.text(1)).into())),
    #[cfg(test)]
    rows: &[("strcontains(\"abc\",\"b\")", "true"), ("strcontains(\"abc\",\"x\")", "false"), ("strcontains(\"abc\",\"\")", "true")],
    ..Function::BASE
};
