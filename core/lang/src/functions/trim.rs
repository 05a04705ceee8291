//! `trim` and `trimspace`

use super::prelude::*;

pub(super) const TRIM: Function = Function {
    name: "trim",
    doc: "The string without any of the given characters at its start and end.",
    parameters: &[Parameter::string("str"), Parameter::string("cutset")],
    body: Some(|a| Ok(string(a.text(0).trim_matches(|c| a.text(1).contains(c))))),
    #[cfg(test)]
    rows: &[("trim(\"xxaxx\",\"x\")", "\"a\""), ("trim(\"?!a!?\",\"!?\")", "\"a\""), ("trim(\"a\",\"\")", "\"a\"")],
    ..Function::BASE
};

pub(super) const TRIMSPACE: Function = Function {
    name: "trimspace",
    doc: "The string without space at its start and end.",
    parameters: &[Parameter::string("str")],
    body: Some(|a| Ok(string(a.text(0).trim()))),
    #[cfg(test)]
    rows: &[("trimspace(\"\\t a \\n\")", "\"a\""), ("trimspace(\"a b\")", "\"a b\"")],
    ..Function::BASE
};
