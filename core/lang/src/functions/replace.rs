//! `replace`

use super::pattern;
use super::prelude::*;
use crate::budget::LONGEST_TEXT;

pub(super) const FUNCTION: Function = Function {
    name: "replace",
    doc: "The string with each occurrence of a substring, or of a /regular expression/, replaced.",
    parameters: &[Parameter::string("str"), Parameter::string("substr"), Parameter::string("replace")],
    body: Some(|a| {
        let (text, what, with) = (a.text(0), a.text(1), a.text(2));
        // Only where that may be too long is it worth counting.
        let groups = with.matches('$').count().saturating_mul(text.len());
        let is_short = text.len().saturating_add(1).saturating_mul(with.len()).saturating_add(groups) <= LONGEST_TEXT;
        match what.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            Some(expression) => {
                let pattern = pattern::compile(a, 1, expression)?;
                if !is_short {
                    fits(pattern.find_iter(text).count().saturating_mul(with.len()).saturating_add(text.len()).saturating_add(groups))?;
                }
                Ok(string(pattern.replace_all(text, with)))
            }
            None => {
                if !is_short {
                    fits(text.matches(what).count().saturating_mul(with.len()).saturating_add(text.len()))?;
                }
                Ok(string(text.replace(what, with)))
            }
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
