//! `substr`

use unicode_segmentation::UnicodeSegmentation;

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "substr",
    doc: "Part of a string, by offset (negative: from the end) and length (negative: all that follows; 0 too behind a negative offset), in characters as seen.",
    parameters: &[Parameter::string("str"), Parameter::number("offset"), Parameter::number("length")],
    body: Some(|a| {
        let characters: Vec<&str> = a.text(0).graphemes(true).collect();
        let (offset, length) = (a.whole(1)?, a.whole(2)?);
        let total = i64::try_from(characters.len()).unwrap_or(i64::MAX);
        let start = if offset < 0 { offset.saturating_add(total).max(0) } else { offset.min(total) };
        // Counted from the end, a length of 0 is none: all that follows is taken.
        let end = if length < 0 || (length == 0 && offset < 0) { total } else { start.saturating_add(length).min(total) };
        let place = |n: i64| usize::try_from(n).unwrap_or(0);
        Ok(string(characters[place(start)..place(end)].concat()))
    }),
    #[cfg(test)]
    rows: &[
        ("substr(\"hello\",-3,2)", "\"ll\""),
        ("substr(\"hello\",1,-1)", "\"ello\""),
        ("substr(\"hello\",1,-2)", "\"ello\""),
        ("substr(\"hello\",10,2)", "\"\""),
        ("substr(\"hello\",1,0)", "\"\""),
        ("substr(\"hello\",-3,0)", "\"llo\""),
        ("substr(\"hello\",-9,0)", "\"hello\""),
        ("substr(\"hello\",3,100)", "\"lo\""),
        ("substr(\"hello\",-30,2)", "\"he\""),
        ("substr(\"👨\u{200d}👩\u{200d}👧ab\",1,1)", "\"a\""),
        ("substr(\"hello\",0.5,2)", "ERROR a whole number is required"),
    ],
    ..Function::BASE
};
