//! Special forms: their arguments are expressions, so the evaluator handles them. Here is only what the reference page says.

use super::prelude::*;

pub(super) const TRY: Function = Function {
    name: "try",
    doc: "The first of the expressions that has a value without an error.",
    rest: Some(Parameter::any("expressions")),
    gives: Gives::Is(Shape::Any),
    ..Function::BASE
};

pub(super) const CAN: Function = Function {
    name: "can",
    doc: "True if the expression has a value without an error.",
    parameters: &[Parameter::any("expression")],
    gives: Gives::Is(Shape::Bool),
    ..Function::BASE
};

pub(super) const TEMPLATEFILE: Function = Function {
    name: "templatefile",
    doc: "The text of a file, with the templates in it replaced by what the variables give.",
    parameters: &[Parameter::string("path"), Parameter::any("vars")],
    ..Function::BASE
};

pub(super) const TEMPLATESTRING: Function = Function {
    name: "templatestring",
    doc: "The text that a reference gives, with the templates in it replaced by what the variables give.",
    parameters: &[Parameter::string("template"), Parameter::any("vars")],
    ..Function::BASE
};
