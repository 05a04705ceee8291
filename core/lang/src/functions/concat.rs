//! `concat`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "concat",
    doc: "All elements of several lists, in order.",
    rest: Some(Parameter::of("seqs", Kinds::Ordered).marked()),
    gives: Gives::Depends(result_type),
    body: Some(|a| {
        if a.len() == 0 {
            return Err(FunctionError::new("at least one list must be given"));
        }
        if let Some(i) = a.values().iter().copied().position(|v| !matches!(v.kind, Kind::List(..) | Kind::Tuple(_))) {
            return Err(FunctionError::at(i, Kinds::Ordered.required()));
        }
        let marks = a.marks();
        let all: Vec<_> = a.values().iter().copied().filter_map(Value::as_items).flatten().cloned().collect();
        let ty = result_type(a.values());
        let all = Value::tuple(all).marked(marks);
        if ty == Type::Any { Ok(all) } else { convert(&all, &ty).map_err(|e| a.misfit(0, &e)) }
    }),
    #[cfg(test)]
    rows: &[
        ("concat([1],[\"a\"],[])", "[1, \"a\"]"),
        ("concat(tolist([1]),tolist([\"a\"]))", "tolist([\"1\", \"a\"])"),
        ("concat(tolist([1]),[2])", "[1, 2]"),
        ("concat([])", "[]"),
        ("concat(\"a\")", "ERROR a list or tuple is required"),
        ("concat([1],toset([2]))", "ERROR a list or tuple is required"),
        ("concat(u.list,u.id)", "ERROR a list or tuple is required"),
        ("concat()", "ERROR at least one list"),
        ("concat([1],[u.id])", "[1, UNKNOWN string]"),
        ("concat(tolist([\"a\"]),u.list)", "UNKNOWN list(string)"),
        ("issensitive(concat([1],[sensitive(2)]))", "false"),
        ("concat([1],[sensitive(2)])", "[1, (sensitive value)]"),
        ("concat([1],sensitive([2]))", "(sensitive value)"),
    ],
    ..Function::BASE
};

/// A list if all are lists of kinds that go together; else a tuple, whose type only the elements tell.
fn result_type(values: &[&Value]) -> Type {
    let types: Vec<_> = values.iter().copied().map(Value::ty).collect();
    if types.iter().all(|t| matches!(t, Type::List(_))) { unify(&types).unwrap_or(Type::Any) } else { Type::Any }
}
