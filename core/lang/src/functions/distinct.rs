//! `distinct`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "distinct",
    doc: "The list without repeated elements; the first of equal ones stays.",
    parameters: &[Parameter::new("list", Shape::LIST)],
    gives: Gives::Depends(|values| values.first().map_or(Type::Any, |v| v.ty())),
    body: Some(|a| {
        let list = a.value(0);
        if !list.is_wholly_known() {
            return Ok(a.unknown());
        }
        // Sorted by value and place, equal ones are neighbours: no comparing of everything with everything.
        let mut order: Vec<_> = a.items(0).iter().enumerate().collect();
        order.sort_by(|(i, x), (j, y)| x.total_order(y).then(i.cmp(j)));
        order.dedup_by(|(_, x), (_, y)| x == y);
        order.sort_by_key(|(i, _)| *i);
        Ok(Value::list(element_type(&list.ty()), order.into_iter().map(|(_, v)| v.clone()).collect()))
    }),
    #[cfg(test)]
    rows: &[
        ("distinct([1,\"1\",2])", "tolist([\"1\", \"2\"])"),
        ("distinct([3,1,3,2,1])", "tolist([3, 1, 2])"),
        ("distinct([[1],[1],[2]])", "tolist([[1], [2]])"),
        ("distinct([])", "tolist([])"),
        ("distinct([\"a\",u.id])", "UNKNOWN list(string)"),
        ("issensitive(distinct([\"a\",sensitive(\"a\")]))", "true"),
    ],
    ..Function::BASE
};
