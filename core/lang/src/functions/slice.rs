//! `slice`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "slice",
    doc: "Part of a list, from an index up to, but without, another.",
    parameters: &[
        Parameter::of("list", Kinds::Ordered).marked().unknown(),
        Parameter::number("start_index").marked(),
        Parameter::number("end_index").marked(),
    ],
    gives: Gives::Depends(|values| match values.first().map(|v| v.ty()) {
        Some(ty @ Type::List(_)) => ty,
        _ => Type::Any,
    }),
    body: Some(|a| {
        let list = a.value(0);
        let (start, end) = (a.count(1)?, a.count(2)?);
        if known_length(list).is_some_and(|length| end > length) {
            return Err(FunctionError::at(2, "must not be greater than the length of the list"));
        }
        if start > end {
            return Err(FunctionError::at(1, "must not be greater than the end index"));
        }
        let (Kind::List(_, items) | Kind::Tuple(items)) = &list.kind else { return Ok(a.unknown().marked(a.marks())) };
        let part = items[start..end].to_vec();
        let part = if let Kind::List(ty, _) = &list.kind { Value::list(ty.clone(), part) } else { Value::tuple(part) };
        Ok(part.marked(a.marks()))
    }),
    #[cfg(test)]
    rows: &[
        ("slice([1,2,3],1,3)", "[2, 3]"),
        ("slice(tolist([1,2,3]),0,1)", "tolist([1])"),
        ("slice([1],1,1)", "[]"),
        ("slice(\"abc\",0,1)", "ERROR a list or tuple is required"),
        ("slice(toset([1]),0,1)", "ERROR a list or tuple is required"),
        ("slice([1],0,2)", "ERROR the length of the list"),
        ("slice([1],1,0)", "ERROR the end index"),
        ("slice([1],-1,0)", "ERROR must not be negative"),
        ("slice([1,u.id],0,1)", "[1]"),
        ("slice(toset([1]),0,u.any)", "ERROR a list or tuple is required"),
        ("slice(u.list,0,1)", "UNKNOWN list(string)"),
        ("slice(u.list,2,1)", "ERROR the end index"),
        ("slice(u.list,-1,1)", "ERROR must not be negative"),
        ("issensitive(slice(sensitive(u.list),0,1))", "true"),
        ("issensitive(slice([1,sensitive(2)],0,1))", "false"),
        ("slice([1,sensitive(2)],1,2)", "[(sensitive value)]"),
    ],
    ..Function::BASE
};
