//! How much one expression may make. A few lines can stand for more values than any machine has room for ("billion laughs"): that is an error in
//! time, and not a program that is killed.

use karmaform_model::{Diagnostic, Kind, Span, Value};

use crate::eval::{Errors, unknown};

/// The longest text that an expression may make, in bytes.
pub(crate) const LONGEST_TEXT: usize = 64 << 20;
/// How many values a named value may have in it, those inside of others counted, too.
const MOST_VALUES: usize = 1_000_000;
/// How many rounds a `for` may go, those of all within it counted, too.
pub(crate) const MOST_ROUNDS: usize = 2_000_000;

/// How much text it may have in it, in bytes: whole files, too, that are only handed on.
const MOST_TEXT: usize = 256 << 20;
/// Errors that no `try` makes up for.
pub(crate) const BEYOND_LIMITS: [&str; 3] = ["Too many rounds", "Text too long", "Value too large"];

/// What is left of both while a value is weighed.
struct Left {
    values: usize,
    bytes: usize,
}

/// The value, unless it is too large to make anything of it.
pub(crate) fn bounded(value: Value, what: &str, span: Span, errors: &mut Errors) -> Value {
    let Some(refused) = too_large(&value, what, span) else { return value };
    errors.push(refused);
    unknown().marked(value.marks())
}

/// Why a value is too large to go on with, or nothing.
fn too_large(value: &Value, what: &str, span: Span) -> Option<Diagnostic> {
    let mut left = Left { values: MOST_VALUES, bytes: MOST_TEXT };
    if take(value, &mut left).is_some() {
        return None;
    }
    let detail =
        format!("{what} has more than {MOST_VALUES} values in it, or more than {} MiB of text. Nothing is made of that.", MOST_TEXT >> 20);
    Some(
        Diagnostic::error("Value too large", detail)
            .with_span(Some(span))
            .with_hint("It may be made of itself again and again: look at what it refers to."),
    )
}

/// Takes off what a value has; `None` if that is more than is left.
fn take(value: &Value, left: &mut Left) -> Option<()> {
    left.values = left.values.checked_sub(1)?;
    match &value.kind {
        Kind::String(text) => left.bytes = left.bytes.checked_sub(text.len())?,
        Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) => items.iter().try_for_each(|item| take(item, left))?,
        Kind::Map(_, entries) | Kind::Object(entries) => entries.iter().try_for_each(|(name, value)| {
            left.bytes = left.bytes.checked_sub(name.len())?;
            take(value, left)
        })?,
        _ => {}
    }
    Some(())
}

/// What is said of a text that would be too long, without a full stop.
pub(crate) fn long_text() -> String {
    format!("The text would have more than {} MiB", LONGEST_TEXT >> 20)
}

#[cfg(test)]
mod tests {
    use karmaform_model::FileId;

    use super::*;

    #[test]
    fn what_no_machine_has_room_for_is_an_error() {
        let span = Span { file: FileId(0), start: 0, end: 1 };
        let said = |value: &Value| too_large(value, "The local \"a\"", span).is_some();
        assert!(!said(&Value::tuple(vec![true.into(); MOST_VALUES - 1])));
        assert!(said(&Value::tuple(vec![true.into(); MOST_VALUES])));
        let nested = Value::tuple(vec![Value::tuple(vec![true.into(); 1_000]); 1_000]);
        assert!(said(&nested));
        assert!(!said(&"x".repeat(MOST_TEXT).into()));
        assert!(said(&"x".repeat(MOST_TEXT + 1).into()));
    }
}
