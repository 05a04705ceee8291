//! `length`

use unicode_segmentation::UnicodeSegmentation;

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "length",
    doc: "How many elements a collection has, or characters as seen a string.",
    parameters: &[Parameter::any("value").unknown().marked()],
    gives: Gives::Is(Shape::Number),
    body: Some(|a| {
        let value = a.value(0);
        let length = match &value.kind {
            Kind::String(s) => s.graphemes(true).count().into(),
            Kind::List(_, items) | Kind::Tuple(items) => items.len().into(),
            // Unknown elements may turn out equal to others.
            Kind::Set(_, items) if !value.is_wholly_known() => unknown_between(Some(1), Some(items.len())),
            Kind::Set(_, items) => items.len().into(),
            Kind::Map(_, entries) | Kind::Object(entries) => entries.len().into(),
            Kind::Unknown(u) => match &u.ty {
                Type::Tuple(types) => types.len().into(),
                Type::Object(attributes) => attributes.len().into(),
                // What follows a known beginning makes it no shorter.
                Type::String => unknown_between(Some(u.prefix.as_deref().map_or(0, |known| known.graphemes(true).count())), None),
                Type::List(_) | Type::Set(_) | Type::Map(_) => unknown_between(Some(u.min_length.unwrap_or(0)), u.max_length),
                Type::Any => a.unknown(),
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        };
        Ok(length.marked(value.marks()))
    }),
    #[cfg(test)]
    rows: &[
        ("length(\"é👨\u{200d}👩\u{200d}👧\")", "2"),
        ("length({a=1})", "1"),
        ("length(toset([1,1]))", "1"),
        ("length([1,2])", "2"),
        ("length(\"\")", "0"),
        ("length(1)", "ERROR a string or a collection is required"),
        ("length(null)", "ERROR must not be null"),
        ("length([1,u.id])", "2"),
        ("length({a=u.id})", "1"),
        ("length(toset([1,u.id]))", "UNKNOWN number"),
        ("length(toset([u.id]))", "1"),
        ("length(u.list)", "UNKNOWN number"),
        ("length(\"pre-${u.id}\") > 3", "true"),
        ("length(\"pre-${u.id}\") > 4", "UNKNOWN bool"),
        ("length(u.list) < 0", "false"),
        ("issensitive(length(sensitive(\"abc\")))", "true"),
        ("issensitive(length([sensitive(1)]))", "false"),
    ],
    ..Function::BASE
};

fn wrong() -> FunctionError {
    FunctionError::at(0, "a string or a collection is required")
}
