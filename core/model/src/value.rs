//! Values of the language: known, unknown ("known after apply"), null, and secret.
//!
//! A mark sits on the exact part that is secret or ephemeral; operations that lose structure carry it up. Knows no schema.

mod copies;
mod order;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::convert::value_type;
use crate::{Marks, Number, Object, ObjectAttribute, Path, PathStep, Type};

/// A value with its marks.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// What it is.
    pub kind: Kind,
    /// Never shown, never written in clear outside the state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Of this run alone: in no state and in no plan, so it is not written either.
    #[serde(skip)]
    pub ephemeral: bool,
}

/// What a value is.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `null` of a type ([`Type::Any`] if undecided).
    Null(Type),
    /// Known after apply.
    Unknown(Box<Unknown>),
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(String),
    /// `list(element)`
    List(Type, Vec<Value>),
    /// `set(element)`: sorted, without doubles; made by [`Value::set`].
    Set(Type, Vec<Value>),
    /// `map(element)`
    Map(Type, Object),
    /// `[a, b]` as written.
    Tuple(Vec<Value>),
    /// `{ a = b }` as written, and attributes of resources.
    Object(Object),
}

/// What is known about an unknown value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unknown {
    /// Its type, as far as decided.
    pub ty: Type,
    /// It will not be null.
    pub not_null: bool,
    /// A string that starts so.
    pub prefix: Option<String>,
    /// A collection of at least so many elements; a number of at least that (the length of an unknown collection).
    pub min_length: Option<usize>,
    /// A collection of at most so many elements; a number of at most that.
    pub max_length: Option<usize>,
}

impl Unknown {
    /// Nothing known but the type.
    pub fn of(ty: Type) -> Self {
        Self { ty, not_null: false, prefix: None, min_length: None, max_length: None }
    }
}

impl From<Kind> for Value {
    fn from(kind: Kind) -> Self {
        Self { kind, secret: false, ephemeral: false }
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Kind::Bool(b).into()
    }
}

impl From<Number> for Value {
    fn from(n: Number) -> Self {
        Kind::Number(n).into()
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Number::from(n).into()
    }
}

impl From<usize> for Value {
    fn from(n: usize) -> Self {
        Number::from(n).into()
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Self {
        Kind::String(s.to_owned()).into()
    }
}

impl From<String> for Value {
    fn from(s: String) -> Self {
        Kind::String(s).into()
    }
}

impl From<Object> for Value {
    fn from(o: Object) -> Self {
        Kind::Object(o).into()
    }
}

impl Value {
    /// `null` of this type.
    pub fn null(ty: Type) -> Self {
        Kind::Null(value_type(ty)).into()
    }

    /// Known after apply.
    pub fn unknown(ty: Type) -> Self {
        Kind::Unknown(Box::new(Unknown::of(value_type(ty)))).into()
    }

    /// Known after apply, and not null.
    pub fn unknown_not_null(ty: Type) -> Self {
        Kind::Unknown(Box::new(Unknown { not_null: true, ..Unknown::of(ty) })).into()
    }

    /// `list(string)` of these.
    pub fn strings<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Self {
        Kind::List(Type::String, items.into_iter().map(|s| Self::from(s.as_ref())).collect()).into()
    }

    /// A list.
    pub fn list(element: Type, items: Vec<Self>) -> Self {
        Kind::List(element, items).into()
    }

    /// A set: sorted and without doubles. Unknown elements are all kept. Marks of parts become marks of the whole set.
    pub fn set(element: Type, items: Vec<Self>) -> Self {
        let marks = items.iter().fold(Marks::default(), |all, v| all | v.all_marks());
        let mut items: Vec<_> = items.into_iter().map(Self::without_marks).collect();
        // What has parts is sorted by their text, which is made once for each.
        let has_parts = |v: &Self| matches!(v.kind, Kind::List(..) | Kind::Set(..) | Kind::Tuple(_) | Kind::Map(..) | Kind::Object(_));
        let (mut parted, rest): (Vec<_>, Vec<_>) = items.into_iter().partition(has_parts);
        parted.sort_by_cached_key(Self::order_text);
        items = rest;
        items.sort_by(Self::total_order);
        // Only what is unknown or null stands beside what has parts, and comes after it.
        items.splice(0..0, parted);
        items.dedup_by(|a, b| a == b && a.is_wholly_known());
        Self::from(Kind::Set(element, items)).marked(marks)
    }

    /// A map.
    pub fn map(element: Type, entries: Object) -> Self {
        Kind::Map(element, entries).into()
    }

    /// A tuple.
    pub fn tuple(items: Vec<Self>) -> Self {
        Kind::Tuple(items).into()
    }

    /// An object.
    pub fn object<const N: usize>(attributes: [(&str, Self); N]) -> Self {
        Kind::Object(attributes.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()).into()
    }

    /// The same, secret.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// The same, secret if `secret`; never takes a mark away.
    #[must_use]
    pub fn secret_if(mut self, secret: bool) -> Self {
        self.secret |= secret;
        self
    }

    /// The same, ephemeral.
    #[must_use]
    pub fn ephemeral(mut self) -> Self {
        self.ephemeral = true;
        self
    }

    /// Its own marks, without those of its parts.
    pub fn marks(&self) -> Marks {
        Marks { secret: self.secret, ephemeral: self.ephemeral }
    }

    /// Its marks and those of all its parts.
    pub fn all_marks(&self) -> Marks {
        self.parts().fold(self.marks(), |all, v| all | v.all_marks())
    }

    /// The same with these marks as well; never takes one away.
    #[must_use]
    pub fn marked(mut self, marks: Marks) -> Self {
        self.secret |= marks.secret;
        self.ephemeral |= marks.ephemeral;
        self
    }

    /// Its type.
    pub fn ty(&self) -> Type {
        match &self.kind {
            Kind::Null(ty) => ty.clone(),
            Kind::Unknown(u) => u.ty.clone(),
            Kind::Bool(_) => Type::Bool,
            Kind::Number(_) => Type::Number,
            Kind::String(_) => Type::String,
            Kind::List(e, _) => Type::list(e.clone()),
            Kind::Set(e, _) => Type::set(e.clone()),
            Kind::Map(e, _) => Type::map(e.clone()),
            Kind::Tuple(items) => Type::Tuple(items.iter().map(Self::ty).collect()),
            Kind::Object(o) => Type::Object(o.iter().map(|(n, v)| (n.clone(), ObjectAttribute::required(v.ty()))).collect()),
        }
    }

    /// True for `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null(_))
    }

    /// True if this very value is unknown (its parts are not looked at).
    pub fn is_unknown(&self) -> bool {
        matches!(self.kind, Kind::Unknown(_))
    }

    /// True if no part of it is unknown.
    pub fn is_wholly_known(&self) -> bool {
        !self.is_unknown() && self.parts().all(Self::is_wholly_known)
    }

    /// True if it or a part of it is an infinite number, which JSON, and so a state, can't hold.
    pub fn contains_infinity(&self) -> bool {
        matches!(self.kind, Kind::Number(Number::PositiveInfinity | Number::NegativeInfinity)) || self.parts().any(Self::contains_infinity)
    }

    /// True if it or a part of it is secret.
    pub fn contains_secret(&self) -> bool {
        self.secret || self.parts().any(Self::contains_secret)
    }

    /// True if it or a part of it is ephemeral.
    pub fn contains_ephemeral(&self) -> bool {
        self.ephemeral || self.parts().any(Self::contains_ephemeral)
    }

    /// The direct parts of a collection; nothing for anything else.
    pub fn parts(&self) -> impl Iterator<Item = &Self> {
        let (items, entries) = match &self.kind {
            Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) => (Some(items), None),
            Kind::Map(_, entries) | Kind::Object(entries) => (None, Some(entries)),
            _ => (None, None),
        };
        items.into_iter().flatten().chain(entries.into_iter().flat_map(|e| e.values()))
    }

    /// Where its secret parts are; the empty path if all of it is.
    pub fn secret_paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        self.collect_secrets(&Path::default(), &mut found);
        found
    }

    fn collect_secrets(&self, here: &Path, found: &mut Vec<Path>) {
        if self.secret {
            found.push(here.clone());
            return;
        }
        match &self.kind {
            Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) => {
                for (i, v) in items.iter().enumerate() {
                    v.collect_secrets(&here.then(PathStep::Index(i)), found);
                }
            }
            Kind::Map(_, e) | Kind::Object(e) => {
                for (n, v) in e {
                    v.collect_secrets(&here.then(PathStep::Name(n.clone())), found);
                }
            }
            _ => {}
        }
    }

    /// Marks the part at this path, as far as it exists.
    pub fn mark_secret(&mut self, path: &[PathStep]) {
        self.set_secret(path, true);
    }

    /// Takes the mark of the part at this path away, and of nothing in it.
    pub fn unmark_secret(&mut self, path: &[PathStep]) {
        self.set_secret(path, false);
    }

    fn set_secret(&mut self, path: &[PathStep], secret: bool) {
        match path.split_first() {
            None => self.secret = secret,
            Some((step, rest)) => match (&mut self.kind, step) {
                (Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items), PathStep::Index(i)) => {
                    if let Some(v) = items.get_mut(*i) {
                        v.set_secret(rest, secret);
                    }
                }
                (Kind::Map(_, e) | Kind::Object(e), PathStep::Name(n)) => {
                    if let Some(v) = e.get_mut(n) {
                        v.set_secret(rest, secret);
                    }
                }
                _ => {}
            },
        }
    }

    /// True if nothing is there to be marked at this path, or has its mark.
    pub fn is_marked(&self, path: &[PathStep]) -> bool {
        let Some((step, rest)) = path.split_first() else { return self.secret };
        self.part(step).is_none_or(|v| v.is_marked(rest))
    }

    /// The part at this path; marks on the way are carried onto it.
    pub fn at(&self, path: &[PathStep]) -> Option<Self> {
        let Some((step, rest)) = path.split_first() else { return Some(self.clone()) };
        self.part(step)?.at(rest).map(|v| v.marked(self.marks()))
    }

    fn part(&self, step: &PathStep) -> Option<&Self> {
        match (&self.kind, step) {
            (Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items), PathStep::Index(i)) => items.get(*i),
            (Kind::Map(_, e) | Kind::Object(e), PathStep::Name(n)) => e.get(n),
            _ => None,
        }
    }

    /// The attribute or entry of this name.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Map(_, e) | Kind::Object(e) => e.get(name),
            _ => None,
        }
    }

    /// A known string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(s) => Some(s),
            _ => None,
        }
    }

    /// A known bool.
    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            Kind::Bool(b) => Some(b),
            _ => None,
        }
    }

    /// A known number.
    pub fn as_number(&self) -> Option<&Number> {
        match &self.kind {
            Kind::Number(n) => Some(n),
            _ => None,
        }
    }

    /// A known whole number.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::as_i64)
    }

    /// The elements of a known list, set or tuple.
    pub fn as_items(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a known map or object.
    pub fn as_entries(&self) -> Option<&Object> {
        match &self.kind {
            Kind::Map(_, e) | Kind::Object(e) => Some(e),
            _ => None,
        }
    }
}

/// Debug output must not become a way for secrets to get out.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.secret {
            f.write_str("(secret)")
        } else if self.ephemeral {
            f.write_str("(ephemeral)")
        } else {
            fmt::Debug::fmt(&self.kind, f)
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null(t) => write!(f, "null({t})"),
            Self::Unknown(u) => write!(f, "unknown({})", u.ty),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Number(n) => write!(f, "{n}"),
            Self::String(s) => write!(f, "{s:?}"),
            Self::List(_, items) => write!(f, "list{items:?}"),
            Self::Set(_, items) => write!(f, "set{items:?}"),
            Self::Tuple(items) => write!(f, "{items:?}"),
            Self::Map(_, e) => write!(f, "map{e:?}"),
            Self::Object(e) => write!(f, "{e:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_sorted_and_has_no_doubles() {
        let set = Value::set(Type::String, vec!["b".into(), "a".into(), "b".into()]);
        assert_eq!(set.as_items().unwrap(), ["a".into(), "b".into()]);
        assert!(Value::set(Type::String, vec![Value::from("x").secret()]).secret);
    }

    #[test]
    fn marks_are_found_carried_and_hidden() {
        let value = Value::object([("a", Value::tuple(vec![1i64.into(), Value::from("pw").secret()])), ("b", "x".into())]);
        let path = Path(vec![PathStep::Name("a".into()), PathStep::Index(1)]);
        assert_eq!(value.secret_paths(), std::slice::from_ref(&path));
        assert!(!format!("{value:?}").contains("pw"));
        let mut plain = value.clone().without_marks();
        assert!(!plain.contains_secret());
        plain.mark_secret(&path.0);
        assert_eq!(plain, value);
        assert!(value.clone().secret().at(&path.0).unwrap().secret);
    }
}
