//! `reverse`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "reverse",
    doc: "The list backwards.",
    parameters: &[Parameter::of("list", Kinds::Sequence).marked()],
    gives: Gives::Depends(|values| match values.first().map(|v| v.ty()) {
        Some(Type::Tuple(types)) => Type::Tuple(types.into_iter().rev().collect()),
        Some(Type::List(t) | Type::Set(t)) => Type::List(t),
        _ => Type::Any,
    }),
    body: Some(|a| {
        let list = a.value(0);
        let backwards = |items: &[Value]| items.iter().rev().cloned().collect::<Vec<_>>();
        Ok(match &list.kind {
            Kind::Tuple(items) => Value::tuple(backwards(items)),
            Kind::List(ty, items) | Kind::Set(ty, items) => Value::list(ty.clone(), backwards(items)),
            _ => return Err(FunctionError::at(0, Kinds::Sequence.required())),
        }
        .marked(list.marks()))
    }),
    #[cfg(test)]
    rows: &[
        ("reverse([1,\"a\"])", "[\"a\", 1]"),
        ("reverse(tolist([1,2]))", "tolist([2, 1])"),
        ("reverse(toset([\"b\",\"a\"]))", "tolist([\"b\", \"a\"])"),
        ("reverse(\"abc\")", "ERROR a list, set or tuple is required"),
        ("reverse([1,u.id])", "[UNKNOWN string, 1]"),
        ("reverse(u.list)", "UNKNOWN list(string)"),
        ("reverse([sensitive(1),2])", "[2, (sensitive value)]"),
    ],
    ..Function::BASE
};
