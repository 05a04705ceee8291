//! What the function files use all the time.

use crate::budget::{LONGEST_TEXT, long_text};
pub(super) use karmaform_model::{Kind, Marks, Object, Type, Value, convert, unify};

pub(super) use super::arguments::{Answer, Arguments, FunctionError, string, strings, unknown, unknown_between, unknown_with_prefix};
pub(super) use super::definition::{Function, Gives, Kinds, Parameter, Shape};

/// The elements of a list, set or tuple argument.
pub(super) fn sequence<'a>(a: &Arguments<'a>, index: usize) -> Result<&'a [Value], FunctionError> {
    a.value(index).as_items().ok_or_else(|| FunctionError::at(index, Kinds::Sequence.required()))
}

/// The type of the elements of a list, set or map type; of all elements of a tuple or object type together.
pub(super) fn element_type(ty: &Type) -> Type {
    match ty {
        Type::List(t) | Type::Set(t) | Type::Map(t) => (**t).clone(),
        Type::Tuple(ts) => unify(ts).unwrap_or(Type::Any),
        Type::Object(attributes) => unify(&attributes.values().map(|a| a.ty.clone()).collect::<Vec<_>>()).unwrap_or(Type::Any),
        _ => Type::Any,
    }
}

/// How many elements a list or a tuple has: of a tuple its type tells, before the rest is known.
pub(super) fn known_length(value: &Value) -> Option<usize> {
    match &value.kind {
        Kind::List(_, items) | Kind::Tuple(items) => Some(items.len()),
        Kind::Unknown(unknown) => match &unknown.ty {
            Type::Tuple(types) => Some(types.len()),
            _ => None,
        },
        _ => None,
    }
}

/// A text of so many bytes may be made.
pub(super) fn fits(bytes: usize) -> Result<(), FunctionError> {
    if bytes > LONGEST_TEXT { Err(FunctionError::new(long_text())) } else { Ok(()) }
}
