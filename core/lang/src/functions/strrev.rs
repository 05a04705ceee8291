//! `strrev`

use unicode_segmentation::UnicodeSegmentation;

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "strrev",
    doc: "The string backwards, character as seen by character as seen.",
    parameters: &[Parameter::string("str")],
    body: Some(|a| Ok(string(a.text(0).graphemes(true).rev().collect::<String>()))),
    #[cfg(test)]
    rows: &[
        ("strrev(\"é👨\u{200d}👩\u{200d}👧a\")", "\"a👨\u{200d}👩\u{200d}👧é\""),
        ("strrev(\"\")", "\"\""),
        ("strrev(\"12\")", "\"21\""),
    ],
    ..Function::BASE
};
