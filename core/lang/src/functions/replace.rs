//! `replace`

use super::pattern;
use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "replace",
    doc: "The string with each occurrence of a substring, or of a /regular expression/, replaced.",
    parameters: &[Parameter::string("str"), Parameter::string("substr"), Parameter::string("replace")],
    body: Some(|a| {
        let (text, what, with) = (a.text(0), a.text(1), a.text(2));
        match what.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            Some(expression) => Ok(string(pattern::compile(a, 1, expression)?.replace_all(text, with))),
            None => Ok(string(text.replace(what, with))),
        }
    }),
    #[cfg(test)]
    rows: &[
        ("replace(\"a1b2\",\"/([0-9])/\",\"<$1>\")", "\"a<1>b<2>\""),
        ("replace(\"a.b\",\".\",\"-\")", "\"a-b\""),
        ("replace(\"ab\",\"/(?P<x>a)/\",\"$x-\")", "\"a-b\""),
        ("replace(\"abab\",\"b\",\"\")", "\"aa\""),
        ("replace(\"ab\",\"\",\"-\")", "\"-a-b-\""),
        ("replace(\"a/b\",\"/\",\"-\")", "\"a-b\""),
        ("replace(\"ab\",\"/(/\",\"-\")", "ERROR \"/(/\" is no valid regular expression"),
    ],
    ..Function::BASE
};
