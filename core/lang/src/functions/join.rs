//! `join`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "join",
    doc: "The strings of one or more lists, with a separator between them.",
    parameters: &[Parameter::string("separator")],
    rest: Some(Parameter::new("lists", Shape::STRINGS)),
    body: Some(|a| {
        if a.len() < 2 {
            return Err(FunctionError::new("at least one list must be given"));
        }
        let mut all = Vec::new();
        for i in 1..a.len() {
            match a.strings(i)? {
                Some(items) => all.extend(items),
                None => return Ok(a.unknown()),
            }
        }
        let separators = a.text(0).len().saturating_mul(all.len());
        fits(all.iter().map(|s| s.len()).sum::<usize>().saturating_add(separators))?;
        Ok(string(all.join(a.text(0))))
    }),
    #[cfg(test)]
    rows: &[
        ("join(\",\",[\"a\",\"b\"])", "\"a,b\""),
        ("join(\",\",toset([\"b\",\"a\"]))", "\"a,b\""),
        ("join(\",\",[1,true])", "\"1,true\""),
        ("join(\"-\",[\"a\"],[],[\"b\",\"c\"])", "\"a-b-c\""),
        ("join(\",\",[])", "\"\""),
        ("join(\",\",[\"a\",null])", "ERROR element 1 is null"),
        ("join(\",\")", "ERROR at least one list"),
        ("join(\",\",[\"a\",u.id])", "UNKNOWN string"),
        ("join(\",\",\"a\")", "ERROR list(string) required, but have string"),
        ("join(\",\",[[1]])", "ERROR element 0: string required, but have tuple"),
    ],
    ..Function::BASE
};
