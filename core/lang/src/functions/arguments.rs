//! The arguments as a function's body sees them, and the values it answers with.

use karmaform_model::{ConvertError, Kind, Marks, Number, Type, Unknown, Value};
use unicode_normalization::{UnicodeNormalization, is_nfc};
use unicode_segmentation::UnicodeSegmentation;

use super::definition::{Function, Gives};
use crate::Context;

/// What a body gives.
pub(crate) type Answer = Result<Value, FunctionError>;

/// Why a call failed. Never quotes a secret argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionError {
    /// The number of the argument that is wrong, from 0; none if it is the call as a whole.
    pub(crate) argument: Option<usize>,
    /// What is wrong, in words that fit behind "the call of f failed:" or "the argument x is wrong:".
    pub(crate) message: String,
}

impl FunctionError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { argument: None, message: message.into() }
    }

    pub(crate) fn at(argument: usize, message: impl Into<String>) -> Self {
        Self { argument: Some(argument), message: message.into() }
    }
}

/// Converted and checked arguments.
pub(crate) struct Arguments<'a> {
    pub(super) function: &'a Function,
    pub(super) values: Vec<&'a Value>,
    /// As they were before conversion, with all marks.
    pub(super) given: &'a [Value],
    pub(crate) context: &'a Context,
}

/// What an argument is that was left out.
static NOTHING: Value = Value { kind: Kind::Null(Type::Any), secret: false, ephemeral: false };

impl<'a> Arguments<'a> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// All of them.
    pub(crate) fn values(&self) -> &[&'a Value] {
        &self.values
    }

    /// One of them; null if it was left out.
    pub(crate) fn value(&self, index: usize) -> &'a Value {
        self.values.get(index).copied().unwrap_or(&NOTHING)
    }

    /// A string argument. Generic code made sure that it is one.
    pub(crate) fn text(&self, index: usize) -> &'a str {
        self.value(index).as_str().unwrap_or_default()
    }

    /// A number argument.
    pub(crate) fn number(&self, index: usize) -> Number {
        self.value(index).as_number().cloned().unwrap_or(Number::Int(0))
    }

    /// A number argument that must be whole and of sane size.
    pub(crate) fn whole(&self, index: usize) -> Result<i64, FunctionError> {
        let number = self.number(index);
        number.as_i64().ok_or_else(|| {
            let why = if number.is_whole() { "this whole number is too large" } else { "a whole number is required" };
            FunctionError::at(index, why)
        })
    }

    /// A whole number argument of at least zero.
    pub(crate) fn count(&self, index: usize) -> Result<usize, FunctionError> {
        usize::try_from(self.whole(index)?).map_err(|_| FunctionError::at(index, "must not be negative"))
    }

    /// The elements of a collection argument; nothing if it has none.
    pub(crate) fn items(&self, index: usize) -> &'a [Value] {
        self.value(index).as_items().unwrap_or_default()
    }

    /// The strings of a `list(string)` argument; none while one of them is unknown. A null among them is refused.
    pub(crate) fn strings(&self, index: usize) -> Result<Option<Vec<&'a str>>, FunctionError> {
        let items = self.items(index);
        if let Some(i) = items.iter().position(Value::is_null) {
            return Err(FunctionError::at(index, format!("element {i} is null, which is not allowed here")));
        }
        Ok(items.iter().map(Value::as_str).collect())
    }

    /// True if an argument, or a part of it, is secret or ephemeral, so that no message may quote it.
    pub(crate) fn is_secret(&self, index: usize) -> bool {
        self.given.get(index).is_some_and(|v| v.all_marks().any())
    }

    /// The marks of all arguments, without those of their parts.
    pub(crate) fn marks(&self) -> Marks {
        self.values.iter().fold(Marks::default(), |all, v| all | v.marks())
    }

    /// An argument for a message: quoted, or a word for it if it is secret.
    pub(crate) fn quote(&self, index: usize) -> String {
        if self.is_secret(index) {
            return "the (secret) value".to_owned();
        }
        match &self.value(index).kind {
            Kind::String(s) => format!("{s:?}"),
            Kind::Number(n) => n.to_string(),
            _ => "the value".to_owned(),
        }
    }

    /// Why an argument does not become a type.
    pub(crate) fn misfit(&self, index: usize, error: &ConvertError) -> FunctionError {
        FunctionError::at(index, conversion(error, self.is_secret(index)))
    }

    /// The result while it is not known: of the right type, and not null if the function never gives null.
    pub(crate) fn unknown(&self) -> Value {
        let ty = match self.function.gives {
            Gives::Is(shape) => shape.ty(),
            Gives::Depends(of) => of(&self.values),
        };
        unknown(ty, !self.function.may_be_null)
    }
}

/// A failed conversion in words. It may name keys of a map, which a secret one must not get out.
pub(super) fn conversion(error: &ConvertError, secret: bool) -> String {
    match error {
        ConvertError::Inside { .. } | ConvertError::Missing(_) if secret => "a part of the (secret) value has the wrong type".to_owned(),
        _ => error.to_string(),
    }
}

/// Not known yet.
pub(crate) fn unknown(ty: Type, not_null: bool) -> Value {
    Kind::Unknown(Box::new(Unknown { not_null, ..Unknown::of(ty) })).into()
}

/// A string that is not known yet but surely starts so.
pub(crate) fn unknown_with_prefix(prefix: &str) -> Value {
    let prefix = stable_prefix(prefix);
    Kind::Unknown(Box::new(Unknown { not_null: true, prefix: (!prefix.is_empty()).then_some(prefix), ..Unknown::of(Type::String) })).into()
}

/// A number that is not known yet, between these bounds; known if they leave only one.
pub(crate) fn unknown_between(least: Option<usize>, most: Option<usize>) -> Value {
    if let Some(only) = least.filter(|_| least == most) {
        return only.into();
    }
    Kind::Unknown(Box::new(Unknown { not_null: true, min_length: least, max_length: most, ..Unknown::of(Type::Number) })).into()
}

/// What is left of a prefix after what follows may have melted into its last character (an accent, the second half of CRLF).
fn stable_prefix(prefix: &str) -> String {
    let mut prefix: String = prefix.nfc().collect();
    // These are of their own whatever follows: beside letters and digits, there are signs that a stroke makes others of.
    let is_of_its_own = |c: char| matches!(c, ' ' | '\t') || (c.is_ascii_punctuation() && !matches!(c, '<' | '=' | '>' | '`'));
    if let Some((at, last)) = prefix.grapheme_indices(true).next_back()
        && !(last.len() == 1 && last.starts_with(is_of_its_own))
    {
        prefix.truncate(at);
    }
    prefix
}

/// A string value. All strings of the language are in normal form C, so that equal text is equal.
pub(crate) fn string(text: impl Into<String>) -> Value {
    let text = text.into();
    Value::from(if is_nfc(&text) { text } else { text.nfc().collect() })
}

/// `list(string)`
pub(crate) fn strings<S: Into<String>>(items: impl IntoIterator<Item = S>) -> Value {
    Value::list(Type::String, items.into_iter().map(string).collect())
}
