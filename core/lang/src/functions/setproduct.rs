//! `setproduct`

use super::prelude::*;

/// Beyond this a product only fills the memory; ten lists of ten elements would have ten thousand million combinations.
const MOST: usize = 1_000_000;

pub(super) const FUNCTION: Function = Function {
    name: "setproduct",
    doc: "All combinations of one element of each of several lists or sets.",
    rest: Some(Parameter::of("sets", Kinds::Sequence).marked().unknown()),
    gives: Gives::Depends(result_type),
    body: Some(|a| {
        if a.len() < 2 {
            return Err(FunctionError::new("at least two lists or sets must be given"));
        }
        if a.values().iter().any(|v| v.is_unknown()) {
            return Ok(a.unknown().marked(a.values().iter().fold(Marks::default(), |all, v| all | v.all_marks())));
        }
        let mut total = Some(1usize);
        for i in 0..a.len() {
            total = total.and_then(|t| t.checked_mul(sequence(a, i).map(<[Value]>::len).unwrap_or(0)));
            sequence(a, i)?;
            if matches!(a.value(i).ty(), Type::Tuple(types) if unify(&types).is_none()) {
                return Err(FunctionError::at(i, "all elements must be of the same type"));
            }
        }
        if total.is_none_or(|t| t > MOST) {
            return Err(FunctionError::new(format!("these have more than {MOST} combinations")));
        }
        let marks = a.marks();
        let ty = result_type(a.values());
        // Of two elements of a set one that is not known may be the other.
        let is_open = |v: &Value| matches!(&v.kind, Kind::Set(_, items) if items.len() > 1) && !v.is_wholly_known();
        if a.values().iter().copied().any(is_open) {
            return Ok(a.unknown().marked(marks));
        }
        let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
        for (i, value) in a.values().iter().enumerate() {
            let element = element_type(&value.ty());
            let items: Vec<_> = value
                .as_items()
                .unwrap_or_default()
                .iter()
                .map(|v| convert(v, &element))
                .collect::<Result<_, _>>()
                .map_err(|e| a.misfit(0, &e))?;
            // A null beside a structure has no type in common with it, and none of its own.
            let differ = |pair: &[Value]| pair[0].ty() != pair[1].ty() && pair.iter().all(Value::is_wholly_known);
            if element.has_any() && items.windows(2).any(differ) {
                return Err(FunctionError::at(i, "all elements must be of the same type"));
            }
            rows = rows.iter().flat_map(|row| items.iter().map(|v| row.iter().chain([v]).cloned().collect())).collect();
        }
        let rows = rows.into_iter().map(Value::tuple).collect();
        let element = element_type(&ty);
        let product = if matches!(ty, Type::Set(_)) { Value::set(element, rows) } else { Value::list(element, rows) };
        Ok(product.marked(marks))
    }),
    #[cfg(test)]
    rows: &[
        ("setproduct([\"a\",\"b\"],[1,2])", "tolist([[\"a\", 1], [\"a\", 2], [\"b\", 1], [\"b\", 2]])"),
        ("setproduct(toset([\"a\"]),toset([1]))", "toset([[\"a\", 1]])"),
        ("setproduct(toset([\"a\"]),[2,1])", "toset([[\"a\", 1], [\"a\", 2]])"),
        ("setproduct([\"a\"],[])", "tolist([])"),
        ("setproduct([\"a\"])", "ERROR at least two"),
        ("setproduct(u.list)", "ERROR at least two"),
        ("setproduct([\"a\"],1)", "ERROR a list, set or tuple is required"),
        ("setproduct([\"a\"],[1,true])", "ERROR all elements must be of the same type"),
        ("setproduct([\"a\"],[{a=1},null])", "ERROR all elements must be of the same type"),
        ("setproduct([\"a\"],[1,true,\"x\"])", "tolist([[\"a\", \"1\"], [\"a\", \"true\"], [\"a\", \"x\"]])"),
        ("setproduct([\"a\"],[u.id])", "tolist([[\"a\", UNKNOWN string]])"),
        ("setproduct([\"a\"],toset([u.id]))", "toset([[\"a\", UNKNOWN string]])"),
        ("setproduct(toset([\"a\",\"b\"]),[u.id])", "toset([[\"a\", UNKNOWN string], [\"b\", UNKNOWN string]])"),
        ("setproduct([\"a\"],toset([u.id,\"b\"]))", "UNKNOWN set(tuple([string, string]))"),
        ("setproduct(toset([u.id]),[])", "toset([])"),
        ("setproduct([\"a\"],u.list)", "UNKNOWN list(tuple([string, string]))"),
        ("setproduct([\"a\"],[1,\"b\"])", "tolist([[\"a\", \"1\"], [\"a\", \"b\"]])"),
    ],
    ..Function::BASE
};

/// A set if one of them is, as then there is no order to keep; else a list.
fn result_type(values: &[&Value]) -> Type {
    let row = Type::Tuple(values.iter().copied().map(|v| element_type(&v.ty())).collect());
    if values.iter().any(|v| matches!(v.ty(), Type::Set(_))) { Type::set(row) } else { Type::list(row) }
}
