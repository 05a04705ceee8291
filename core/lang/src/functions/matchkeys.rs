//! `matchkeys`

use super::prelude::*;
use crate::ops::equal;

pub(super) const FUNCTION: Function = Function {
    name: "matchkeys",
    doc: "The elements of a list whose counterparts in a second list are found in a third.",
    parameters: &[Parameter::new("values", Shape::LIST), Parameter::new("keys", Shape::LIST), Parameter::new("searchset", Shape::LIST)],
    gives: Gives::Depends(|values| values.first().map_or(Type::Any, |v| v.ty())),
    body: Some(|a| {
        if a.items(0).len() != a.items(1).len() {
            return Err(FunctionError::new("the lists of values and keys must have the same length"));
        }
        let ty = unify(&[a.value(1).ty(), a.value(2).ty()]).ok_or_else(|| FunctionError::at(2, "must have the type of the keys"))?;
        let as_common = |i: usize| convert(a.value(i), &ty).map_err(|e| a.misfit(i, &e));
        let (keys, wanted) = (as_common(1)?, as_common(2)?);
        let has_none = wanted.as_items().is_some_and(<[Value]>::is_empty);
        if !has_none && (!keys.is_wholly_known() || !wanted.is_wholly_known()) {
            return Ok(a.unknown());
        }
        let wanted = wanted.as_items().unwrap_or_default();
        let pairs = a.items(0).iter().zip(keys.as_items().unwrap_or_default());
        let found = pairs.filter(|(_, key)| wanted.iter().any(|w| equal(w, key) == Some(true))).map(|(v, _)| v.clone()).collect();
        Ok(Value::list(element_type(&a.value(0).ty()), found))
    }),
    #[cfg(test)]
    rows: &[
        ("matchkeys([\"i1\",\"i2\"],[\"a\",\"b\"],[\"a\"])", "tolist([\"i1\"])"),
        ("matchkeys([\"i1\",\"i2\",\"i3\"],[\"a\",\"b\",\"a\"],[\"a\"])", "tolist([\"i1\", \"i3\"])"),
        ("matchkeys([\"i1\"],[\"a\"],[])", "tolist([])"),
        ("matchkeys([\"i1\"],[1],[\"1\"])", "tolist([\"i1\"])"),
        ("matchkeys([\"i1\"],[],[])", "ERROR the same length"),
        ("matchkeys([\"i1\"],[u.id],[\"a\"])", "UNKNOWN list(string)"),
        ("issensitive(matchkeys([\"a\"],[\"b\"],[sensitive(\"b\")]))", "true"),
    ],
    ..Function::BASE
};
