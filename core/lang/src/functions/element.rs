//! `element`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "element",
    doc: "The element of a list at an index that starts over behind the end; negative ones count from the end.",
    parameters: &[Parameter::of("list", Kinds::Ordered).marked(), Parameter::number("index").marked()],
    gives: Gives::Depends(result_type),
    may_be_null: true,
    body: Some(|a| {
        let list = a.value(0);
        let (Kind::List(_, items) | Kind::Tuple(items)) = &list.kind else {
            return Err(FunctionError::at(0, Kinds::Ordered.required()));
        };
        let index = a.whole(1)?;
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if length == 0 {
            return Err(FunctionError::new("an empty list has no element"));
        }
        let place = usize::try_from(index.rem_euclid(length)).unwrap_or(0);
        let marks = list.marks() | a.value(1).marks();
        Ok(items.get(place).cloned().unwrap_or_else(|| Value::null(Type::Any)).marked(marks))
    }),
    #[cfg(test)]
    rows: &[
        ("element([1,2],5)", "2"),
        // Terraform 1.11 crashes here; OpenTofu counts from the end.
        ("element([1,2],-1)", "2"),
        ("element([],0)", "ERROR an empty list has no element"),
        ("element(toset([1]),0)", "ERROR a list or tuple is required"),
        ("element([1],0.5)", "ERROR a whole number is required"),
        ("element([1,2],tonumber(u.output))", "UNKNOWN number"),
        ("element(u.list,0)", "UNKNOWN string"),
        ("issensitive(element([\"a\"],sensitive(0)))", "true"),
        ("issensitive(element([1,sensitive(2)],0))", "false"),
        ("issensitive(element([1,sensitive(2)],1))", "true"),
    ],
    ..Function::BASE
};

fn result_type(values: &[&Value]) -> Type {
    let Some(list) = values.first() else { return Type::Any };
    match (list.ty(), values.get(1).and_then(|v| v.as_i64())) {
        (Type::Tuple(types), Some(index)) if !types.is_empty() => {
            let length = i64::try_from(types.len()).unwrap_or(i64::MAX);
            usize::try_from(index.rem_euclid(length)).ok().and_then(|i| types.get(i).cloned()).unwrap_or(Type::Any)
        }
        // Which element is not known: only a type that all have is certain.
        (Type::Tuple(types), _) => match types.split_first() {
            Some((first, rest)) if rest.iter().all(|t| t == first) => first.clone(),
            _ => Type::Any,
        },
        (ty, _) => element_type(&ty),
    }
}
