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

/// A list if all are lists of kinds that go together; else a tuple, whose type is asked for only where one of them is not known yet.
fn result_type(values: &[&Value]) -> Type {
    let types: Vec<_> = values.iter().copied().map(Value::ty).collect();
    if types.iter().all(|t| matches!(t, Type::List(_))) {
        return unify(&types).unwrap_or(Type::Any);
    }
    if values.iter().any(|v| v.is_unknown()) { tuple_type(values, types) } else { Type::Any }
}

/// The tuple that comes, if it is known by now how many elements it will have.
fn tuple_type(values: &[&Value], types: Vec<Type>) -> Type {
    let mut parts = Vec::new();
    for (value, ty) in values.iter().zip(types) {
        match (&value.kind, ty) {
            (_, Type::Tuple(own)) => parts.extend(own),
            (Kind::List(element, items), _) => parts.extend(std::iter::repeat_n(element.clone(), items.len())),
            _ => return Type::Any,
        }
    }
    Type::Tuple(parts)
}
