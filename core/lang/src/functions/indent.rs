//! `indent`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "indent",
    doc: "The string with spaces put in front of every line but the first.",
    parameters: &[Parameter::number("spaces"), Parameter::string("str")],
    body: Some(|a| {
        let spaces = a.count(0)?;
        if spaces > 10_000 {
            return Err(FunctionError::at(0, "more than 10,000 spaces are not useful"));
        }
        Ok(string(a.text(1).replace('\n', &format!("\n{}", " ".repeat(spaces)))))
    }),
    #[cfg(test)]
    rows: &[
        ("indent(2,\"a\\nb\\n\")", "\"a\\n  b\\n  \""),
        ("indent(0,\"a\\nb\")", "\"a\\nb\""),
        ("indent(1.5,\"a\")", "ERROR a whole number is required"),
        ("indent(-1,\"a\")", "ERROR must not be negative"),
    ],
    ..Function::BASE
};
