//! `chomp`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "chomp",
    doc: "The string without the line breaks at its end.",
    parameters: &[Parameter::string("str")],
    body: Some(|a| Ok(string(a.text(0).trim_end_matches(['\n', '\r'])))),
    #[cfg(test)]
    rows: &[("chomp(\"a\\r\\n\\n\")", "\"a\""), ("chomp(\"\\na \")", "\"\\na \"")],
    ..Function::BASE
};
