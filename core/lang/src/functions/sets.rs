//! `setunion`, `setintersection` and `setsubtract`

use super::prelude::*;

pub(super) const UNION: Function = Function {
    name: "setunion",
    doc: "All elements of several sets.",
    parameters: &[Parameter::new("first_set", Shape::SET).unknown()],
    rest: Some(Parameter::new("other_sets", Shape::SET).unknown()),
    gives: Gives::Depends(common_type),
    body: Some(|a| {
        let Some((element, sets)) = common(a)? else { return Ok(a.unknown()) };
        Ok(Value::set(element, sets.into_iter().flatten().collect()))
    }),
    #[cfg(test)]
    rows: &[
        ("setunion([\"a\",\"b\"],[\"b\"])", "toset([\"a\", \"b\"])"),
        ("setunion([1],[\"a\"])", "toset([\"1\", \"a\"])"),
        ("setunion([])", "toset([])"),
        ("setunion(slice(tolist([{a=1}]),0,0),[\"a\"])", "ERROR a type in common"),
        ("setunion([[1]],[{}])", "ERROR a type in common"),
        ("setunion([\"a\"],[u.id])", "toset([\"a\", UNKNOWN string])"),
        ("setunion([\"a\"],u.list)", "UNKNOWN set(string)"),
        ("issensitive(setunion([\"a\"],[sensitive(\"b\")]))", "true"),
    ],
    ..Function::BASE
};

pub(super) const INTERSECTION: Function = Function {
    name: "setintersection",
    doc: "The elements that all of several sets hold.",
    parameters: &[Parameter::new("first_set", Shape::SET).unknown()],
    rest: Some(Parameter::new("other_sets", Shape::SET).unknown()),
    gives: Gives::Depends(common_type),
    body: Some(|a| {
        let Some((element, sets)) = common_known(a)? else { return Ok(a.unknown()) };
        let Some((first, others)) = sets.split_first() else { return Ok(Value::set(element, Vec::new())) };
        Ok(Value::set(element, first.iter().filter(|v| others.iter().all(|o| holds(o, v))).cloned().collect()))
    }),
    #[cfg(test)]
    rows: &[
        ("setintersection([\"a\",\"b\"],[\"b\"])", "toset([\"b\"])"),
        ("setintersection([1,2],[\"2\"],[2,3])", "toset([\"2\"])"),
        ("setintersection([\"a\"],[])", "toset([])"),
        ("setintersection([\"a\"],[u.id])", "UNKNOWN set(string)"),
    ],
    ..Function::BASE
};

pub(super) const SUBTRACT: Function = Function {
    name: "setsubtract",
    doc: "The elements of a set that another does not hold.",
    parameters: &[Parameter::new("a", Shape::SET).unknown(), Parameter::new("b", Shape::SET).unknown()],
    gives: Gives::Depends(common_type),
    body: Some(|a| {
        let Some((element, sets)) = common_known(a)? else { return Ok(a.unknown()) };
        let [from, off] = sets.as_slice() else { return Ok(a.unknown()) };
        Ok(Value::set(element, from.iter().filter(|v| !holds(off, v)).cloned().collect()))
    }),
    #[cfg(test)]
    rows: &[
        ("setsubtract([\"a\",\"b\"],[\"b\"])", "toset([\"a\"])"),
        ("setsubtract([{a=1}],[])", "toset([{\"a\" = 1}])"),
        ("setsubtract([1,2],[\"2\"])", "toset([\"1\"])"),
        ("setsubtract([\"a\"],[u.id])", "UNKNOWN set(string)"),
    ],
    ..Function::BASE
};

/// An element type and the elements of several sets.
type Sets = (Type, Vec<Vec<Value>>);

/// The sets as sets of one element type; none while one of them is unknown.
fn common(a: &Arguments<'_>) -> Result<Option<Sets>, FunctionError> {
    let element =
        unify(&element_types(a.values())).ok_or_else(|| FunctionError::new("the elements of all sets must have a type in common"))?;
    let mut sets = Vec::new();
    for (i, value) in a.values().iter().copied().enumerate() {
        let set = convert(value, &Type::set(element.clone())).map_err(|e| a.misfit(i, &e))?;
        let Kind::Set(_, items) = set.kind else { return Ok(None) };
        sets.push(items);
    }
    Ok(Some((element, sets)))
}

/// The same; none while an element of one of them is unknown.
fn common_known(a: &Arguments<'_>) -> Result<Option<Sets>, FunctionError> {
    Ok(common(a)?.filter(|(_, sets)| sets.iter().flatten().all(Value::is_wholly_known)))
}

fn common_type(values: &[&Value]) -> Type {
    Type::set(unify(&element_types(values)).unwrap_or(Type::Any))
}

/// The types of the elements of each, but of those that have none and could have any.
fn element_types(values: &[&Value]) -> Vec<Type> {
    let is_open = |v: &Value, ty: &Type| *ty == Type::Any && v.as_items().is_some_and(<[Value]>::is_empty);
    values.iter().map(|v| (v, element_type(&v.ty()))).filter(|(v, ty)| !is_open(v, ty)).map(|(_, ty)| ty).collect()
}

/// True if a set, which is sorted, holds a value.
fn holds(set: &[Value], value: &Value) -> bool {
    let from = set.partition_point(|v| v.total_order(value).is_lt());
    set[from..].iter().take_while(|v| v.total_order(value).is_eq()).any(|v| v == value)
}
