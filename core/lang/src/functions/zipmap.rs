//! `zipmap`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "zipmap",
    doc: "A map or object of keys from one list and values from another.",
    parameters: &[Parameter::new("keys", Shape::STRINGS), Parameter::of("values", Kinds::Ordered).marked().unknown()],
    gives: Gives::Depends(|values| match values.get(1).map(|v| v.ty()) {
        Some(Type::List(t)) => Type::Map(t),
        _ => Type::Any,
    }),
    body: Some(|a| {
        let list = a.value(1);
        let Some(keys) = a.strings(0)? else { return Ok(a.unknown().marked(list.all_marks())) };
        if let Some(length) = known_length(list).filter(|length| *length != keys.len()) {
            return Err(FunctionError::new(format!("there are {} keys, but {length} values", keys.len())));
        }
        let (Kind::List(_, items) | Kind::Tuple(items)) = &list.kind else { return Ok(a.unknown().marked(list.all_marks())) };
        let entries: Object = keys.into_iter().map(str::to_owned).zip(items.iter().cloned()).collect();
        let zipped = if let Kind::List(ty, _) = &list.kind { Value::map(ty.clone(), entries) } else { entries.into() };
        Ok(zipped.marked(list.marks()))
    }),
    #[cfg(test)]
    rows: &[
        ("zipmap([\"a\",\"b\"],[1,\"x\"])", "{\"a\" = 1 \"b\" = \"x\"}"),
        ("zipmap([\"a\"],tolist([1]))", "tomap({\"a\" = 1})"),
        ("zipmap([],[])", "{}"),
        ("zipmap([\"a\"],[])", "ERROR there are 1 keys, but 0 values"),
        ("zipmap([\"a\",\"a\"],[1,2])", "{\"a\" = 2}"),
        ("zipmap([\"a\"],[u.id])", "{\"a\" = UNKNOWN string}"),
        ("zipmap([u.id],[1])", "UNKNOWN"),
        ("zipmap([\"a\"],u.list)", "UNKNOWN map(string)"),
        ("issensitive(zipmap([\"a\"],sensitive(u.list)))", "true"),
        ("issensitive(zipmap([\"a\"],[sensitive(1)]))", "false"),
        ("zipmap([\"a\"],[sensitive(1)])", "{\"a\" = (sensitive value)}"),
        ("zipmap([sensitive(\"a\")],[1])", "(sensitive value)"),
    ],
    ..Function::BASE
};
