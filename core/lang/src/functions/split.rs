//! `split`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "split",
    doc: "The parts of a string between separators.",
    parameters: &[Parameter::string("separator"), Parameter::string("str")],
    gives: Gives::Is(Shape::STRINGS),
    body: Some(|a| {
        let (separator, text) = (a.text(0), a.text(1));
        if separator.is_empty() {
            return Ok(strings(text.chars().map(String::from)));
        }
        Ok(strings(text.split(separator)))
    }),
    #[cfg(test)]
    rows: &[
        ("split(\",\",\"\")", "tolist([\"\"])"),
        ("split(\",\",\"a,,b\")", "tolist([\"a\", \"\", \"b\"])"),
        ("split(\"\",\"abc\")", "tolist([\"a\", \"b\", \"c\"])"),
        ("split(\"\",\"\")", "tolist([])"),
        ("split(\",\",u.id)", "UNKNOWN list(string)"),
        ("split(\",\",sensitive(\"a\"))", "(sensitive value)"),
    ],
    ..Function::BASE
};
