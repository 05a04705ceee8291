//! `==`: same type and same content, as far as known.

use karmaform_model::{Kind, Number, Type, Unknown, Value};

/// Whether two values are equal; `None` while that depends on something unknown. No conversion: `1 == "1"` is false, as is
/// `[] == tolist([])`. Marks play no part.
pub(crate) fn equal(a: &Value, b: &Value) -> Option<bool> {
    if a.is_null() && b.is_null() {
        return Some(true);
    }
    if a.is_null() || b.is_null() {
        return if not_null(a) || not_null(b) { Some(false) } else { None };
    }
    match (&a.kind, &b.kind) {
        (Kind::Unknown(x), Kind::Unknown(y)) => (x.not_null || y.not_null).then(|| differ(&x.ty, &y.ty)).flatten(),
        (Kind::Unknown(u), _) => with_unknown(u, b),
        (_, Kind::Unknown(u)) => with_unknown(u, a),
        (Kind::Bool(x), Kind::Bool(y)) => Some(x == y),
        (Kind::Number(x), Kind::Number(y)) => Some(x == y),
        (Kind::String(x), Kind::String(y)) => Some(x == y),
        // Nothing in them tells what they are of; that they are of nothing that is known is a type of its own.
        (Kind::List(s, x), Kind::List(t, y)) | (Kind::Set(s, x), Kind::Set(t, y)) if x.is_empty() && y.is_empty() => Some(s == t),
        (Kind::Map(s, x), Kind::Map(t, y)) if x.is_empty() && y.is_empty() => Some(s == t),
        (Kind::List(s, x), Kind::List(t, y)) => differ(s, t).or_else(|| all(x, y, within(s, t))),
        (Kind::Tuple(x), Kind::Tuple(y)) => all(x, y, part),
        (Kind::Set(s, x), Kind::Set(t, y)) => differ(s, t).or_else(|| {
            // Elements have no places, so an unknown one may be any of the other side's.
            let known = a.is_wholly_known() && b.is_wholly_known() || x.is_empty() || y.is_empty();
            known.then(|| all(x, y, within(s, t)).unwrap_or(false))
        }),
        (Kind::Map(s, x), Kind::Map(t, y)) => differ(s, t).or_else(|| entries(x, y, within(s, t))),
        (Kind::Object(x), Kind::Object(y)) => entries(x, y, part),
        _ => Some(false),
    }
}

/// Whether two parts of values are equal. Nulls are alike, whatever their types, but the types of what holds them are not.
fn part(a: &Value, b: &Value) -> Option<bool> {
    if a.is_null() && b.is_null() { Some(a.ty() == b.ty()) } else { equal(a, b) }
}

/// How elements of these types are compared.
fn within(a: &Type, b: &Type) -> Compare {
    if a == b { equal } else { part }
}

type Compare = fn(&Value, &Value) -> Option<bool>;

/// True if the value certainly isn't null.
fn not_null(value: &Value) -> bool {
    match &value.kind {
        Kind::Null(_) => false,
        Kind::Unknown(u) => u.not_null,
        _ => true,
    }
}

/// `Some(false)` if values of these types are never equal.
fn differ(a: &Type, b: &Type) -> Option<bool> {
    let certain = !a.has_any() && !b.has_any();
    let other_kind = a.word() != b.word() && *a != Type::Any && *b != Type::Any;
    (a != b && (certain || other_kind)).then_some(false)
}

fn with_unknown(unknown: &Unknown, known: &Value) -> Option<bool> {
    if let (Some(prefix), Some(text)) = (&unknown.prefix, known.as_str())
        && !text.starts_with(prefix.as_str())
    {
        return Some(false);
    }
    if let Some(items) = known.as_items()
        && !matches!(known.kind, Kind::Set(..))
        && (unknown.min_length.is_some_and(|least| items.len() < least) || unknown.max_length.is_some_and(|most| items.len() > most))
    {
        return Some(false);
    }
    if let Some(number) = known.as_number()
        && (unknown.min_length.is_some_and(|least| *number < Number::from(least))
            || unknown.max_length.is_some_and(|most| *number > Number::from(most)))
    {
        return Some(false);
    }
    differ(&unknown.ty, &known.ty())
}

fn all(a: &[Value], b: &[Value], compare: Compare) -> Option<bool> {
    if a.len() != b.len() {
        return Some(false);
    }
    together(a.iter().zip(b).map(|(x, y)| compare(x, y)))
}

fn entries(a: &karmaform_model::Object, b: &karmaform_model::Object, compare: Compare) -> Option<bool> {
    if !a.keys().eq(b.keys()) {
        return Some(false);
    }
    together(a.values().zip(b.values()).map(|(x, y)| compare(x, y)))
}

/// False if any is false, else unknown if any is unknown.
fn together(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(true);
    for answer in answers {
        match answer {
            Some(false) => return Some(false),
            None => result = None,
            Some(true) => {}
        }
    }
    result
}
