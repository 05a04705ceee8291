//! The same value, changed in all its parts.

use super::{Kind, Value};
use crate::{Marks, Number, PathStep};

impl Value {
    /// A copy with `change` done to each direct part; the value's own marks stay.
    #[must_use]
    pub fn map_parts(&self, mut change: impl FnMut(PathStep, &Self) -> Self) -> Self {
        let mut indexed = |items: &[Self]| -> Vec<Self> { items.iter().enumerate().map(|(i, v)| change(PathStep::Index(i), v)).collect() };
        let kind = match &self.kind {
            Kind::List(t, items) => Kind::List(t.clone(), indexed(items)),
            Kind::Set(t, items) => Kind::Set(t.clone(), indexed(items)),
            Kind::Tuple(items) => Kind::Tuple(indexed(items)),
            Kind::Map(t, e) => Kind::Map(t.clone(), e.iter().map(|(n, v)| (n.clone(), change(PathStep::Name(n.clone()), v))).collect()),
            Kind::Object(e) => Kind::Object(e.iter().map(|(n, v)| (n.clone(), change(PathStep::Name(n.clone()), v))).collect()),
            other => other.clone(),
        };
        Self { kind, ..*self }
    }

    /// The same with nulls where it is not known.
    #[must_use]
    pub fn with_nulls(self) -> Self {
        match &self.kind {
            Kind::Unknown(u) => Self { kind: Kind::Null(u.ty.clone()), ..self },
            _ if self.is_wholly_known() => self,
            // Two that are not known are one null.
            Kind::Set(ty, items) => Self::set(ty.clone(), items.iter().map(|v| v.clone().with_nulls()).collect()).marked(self.marks()),
            _ => self.map_parts(|_, part| part.clone().with_nulls()),
        }
    }

    /// The same as a state gives it back: a zero has no sign.
    #[must_use]
    pub fn as_stored(self) -> Self {
        match &self.kind {
            Kind::Number(Number::NegativeZero) => Self { kind: Kind::Number(Number::Int(0)), ..self },
            Kind::Null(_) | Kind::Unknown(_) | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => self,
            _ => self.map_parts(|_, part| part.clone().as_stored()),
        }
    }

    /// The same without any mark; for comparing and for writing the state.
    #[must_use]
    pub fn without_marks(self) -> Self {
        if self.all_marks() == Marks::default() {
            return self;
        }
        self.map_parts(|_, v| v.clone().without_marks()).kind.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Type;

    #[test]
    fn what_is_not_known_becomes_null_and_zeros_lose_their_sign() {
        let unknown = || Value::unknown(Type::String);
        let set = Value::set(Type::String, vec![unknown(), unknown(), "a".into()]);
        assert_eq!(format!("{:?}", set.secret().with_nulls()), "(secret)");
        let set = Value::set(Type::String, vec![unknown(), unknown(), "a".into()]).with_nulls();
        assert_eq!(set.as_items().map(<[Value]>::len), Some(2), "{set:?}");
        let object =
            Value::object([("a", Value::tuple(vec![unknown().secret(), Value::unknown(Type::Any)])), ("b", 1i64.into())]).with_nulls();
        assert!(object.is_wholly_known() && object.get("b") == Some(&1i64.into()));
        assert_eq!(object.secret_paths().len(), 1);
        let zero = || Value::from(Number::NegativeZero);
        let stored = Value::object([("a", Value::tuple(vec![zero().secret(), 1i64.into()]))]).as_stored();
        assert!(!format!("{:?}", stored.clone().without_marks()).contains("-0") && stored.contains_secret());
    }
}
