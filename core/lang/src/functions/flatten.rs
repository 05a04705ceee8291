//! `flatten`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "flatten",
    doc: "The list with the elements of lists within it, however deep, in their place.",
    parameters: &[Parameter::of("list", Kinds::Sequence).marked()],
    gives: Gives::Is(Shape::Any),
    body: Some(|a| {
        sequence(a, 0)?;
        let mut out = Vec::new();
        let mut marks = Marks::default();
        if flatten(a.value(0), &mut out, &mut marks) { Ok(Value::tuple(out).marked(marks)) } else { Ok(a.unknown().marked(marks)) }
    }),
    #[cfg(test)]
    rows: &[
        ("flatten([[1,[2]],[],3])", "[1, 2, 3]"),
        ("flatten([])", "[]"),
        ("flatten([tolist([\"a\"]),toset([\"b\"]),{a=[1]}])", "[\"a\", \"b\", {\"a\" = [1]}]"),
        ("flatten([null])", "[null]"),
        ("flatten(\"a\")", "ERROR a list, set or tuple is required"),
        ("flatten([[1],[u.id]])", "[1, UNKNOWN string]"),
        ("flatten([[1],u.output])", "[1, UNKNOWN string]"),
        ("flatten([[1],u.list])", "UNKNOWN"),
        ("flatten([toset([\"a\",u.id])])", "UNKNOWN"),
        ("flatten([toset([u.id])])", "[UNKNOWN string]"),
        ("flatten([[1],u.any])", "UNKNOWN"),
        ("issensitive(flatten([[1],[sensitive(2)]]))", "false"),
        ("flatten([[1],[sensitive(2)]])", "[1, (sensitive value)]"),
        ("flatten([[1],sensitive([2])])", "(sensitive value)"),
    ],
    ..Function::BASE
};

/// False for a set with unknown elements: they may turn out to be equal to others.
fn has_known_length(value: &Value) -> bool {
    !matches!(&value.kind, Kind::Set(_, items) if items.len() > 1) || value.is_wholly_known()
}

/// Puts the leaves of a list into `out`; false if it is not known yet how many there are. A mark on a list, whose elements are no
/// longer together afterwards, goes on the whole.
fn flatten(value: &Value, out: &mut Vec<Value>, marks: &mut Marks) -> bool {
    *marks |= value.marks();
    let mut known = has_known_length(value);
    for item in value.as_items().unwrap_or_default() {
        match &item.kind {
            Kind::List(..) | Kind::Set(..) | Kind::Tuple(_) => known &= flatten(item, out, marks),
            Kind::Unknown(u) if matches!(u.ty, Type::Any | Type::List(_) | Type::Set(_) | Type::Tuple(_)) => {
                *marks |= item.marks();
                known = false;
            }
            _ => out.push(item.clone()),
        }
    }
    known
}
