//! `coalesce` and `coalescelist`

use super::prelude::*;

pub(super) const COALESCE: Function = Function {
    name: "coalesce",
    doc: "The first argument that is neither null nor an empty string.",
    rest: Some(Parameter::any("vals").null().unknown()),
    gives: Gives::Depends(common_type),
    body: Some(|a| {
        if a.len() == 0 {
            return Err(FunctionError::new("at least one value must be given"));
        }
        let types: Vec<_> = a.values().iter().copied().map(Value::ty).collect();
        let ty = unify(&types).ok_or_else(|| FunctionError::new("all values must have a type in common"))?;
        for (i, value) in a.values().iter().copied().enumerate() {
            if value.is_unknown() {
                return Ok(unknown(ty, true));
            }
            let value = convert(value, &ty).map_err(|e| a.misfit(i, &e))?;
            if !value.is_null() && value.as_str() != Some("") {
                return Ok(value);
            }
        }
        Err(FunctionError::new("all values are null or empty strings"))
    }),
    #[cfg(test)]
    rows: &[
        ("coalesce(\"\",null,\"x\")", "\"x\""),
        ("coalesce(null,1,\"a\")", "\"1\""),
        ("coalesce(null,\"\")", "ERROR all values are null or empty"),
        ("coalesce()", "ERROR at least one value"),
        ("coalesce(1,[])", "ERROR a type in common"),
        ("coalesce(toset([1]),[\"a\"])", "toset([1])"),
        ("coalesce(\"a\",u.id)", "\"a\""),
        ("coalesce(u.id,\"a\")", "UNKNOWN string"),
        ("coalesce(null,u.id)", "UNKNOWN string"),
        ("issensitive(coalesce(\"x\",sensitive(\"y\")))", "true"),
    ],
    ..Function::BASE
};

pub(super) const COALESCELIST: Function = Function {
    name: "coalescelist",
    doc: "The first argument that is a list with at least one element.",
    rest: Some(Parameter::any("vals").null().unknown()),
    gives: Gives::Is(Shape::Any),
    body: Some(|a| {
        if a.len() == 0 {
            return Err(FunctionError::new("at least one list must be given"));
        }
        let known = a.values().iter().take_while(|value| !value.is_unknown());
        if let Some(i) = known.map(|value| value.ty()).position(|ty| !matches!(ty, Type::List(_) | Type::Tuple(_))) {
            return Err(FunctionError::at(i, "must be a list"));
        }
        for value in a.values().iter().copied() {
            match &value.kind {
                Kind::Unknown(_) => return Ok(unknown(Type::Any, false)),
                Kind::List(_, items) | Kind::Tuple(items) if !items.is_empty() => return Ok(value.clone()),
                _ => {}
            }
        }
        Err(FunctionError::new("all lists are empty or null"))
    }),
    #[cfg(test)]
    rows: &[
        ("coalescelist([],[1])", "[1]"),
        ("coalescelist(null,[1])", "ERROR must be a list"),
        ("coalescelist(tolist(null),[1])", "[1]"),
        ("coalescelist([1],2)", "ERROR must be a list"),
        ("coalescelist([1],u.list,2)", "[1]"),
        ("coalescelist([],[])", "ERROR all lists are empty or null"),
        ("coalescelist(toset([1]))", "ERROR must be a list"),
        ("coalescelist(\"a\")", "ERROR must be a list"),
        ("coalescelist([1],u.list)", "[1]"),
        ("coalescelist(u.list,[1])", "UNKNOWN"),
    ],
    ..Function::BASE
};

fn common_type(values: &[&Value]) -> Type {
    unify(&values.iter().copied().map(Value::ty).collect::<Vec<_>>()).unwrap_or(Type::Any)
}
