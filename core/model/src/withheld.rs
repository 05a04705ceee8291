//! What stands in a plan where a secret was: enough to tell whether two of them were the same, and that it was known.

use crate::{Kind, Type, Unknown, Value};

/// No text that is known begins so.
const WITHHELD: &str = "\u{0}withheld ";

impl Value {
    /// What stands for this one; equal ones are to have equal numbers.
    #[must_use]
    pub fn withheld(&self, number: usize) -> Self {
        let unknown = Unknown { prefix: Some(format!("{WITHHELD}{number}")), ..Unknown::of(self.ty().without_names()) };
        Self::from(Kind::Unknown(Box::new(unknown))).secret()
    }

    /// The number of what stands for another one.
    pub fn withheld_number(&self) -> Option<&str> {
        match &self.kind {
            Kind::Unknown(unknown) => unknown.prefix.as_deref().and_then(|prefix| prefix.strip_prefix(WITHHELD)),
            _ => None,
        }
    }
}

impl Type {
    /// The same without the names of attributes, which may be as secret as what they have.
    #[must_use]
    pub fn without_names(&self) -> Self {
        match self {
            Self::Object(_) => Self::Any,
            Self::List(element) => Self::list(element.without_names()),
            Self::Set(element) => Self::set(element.without_names()),
            Self::Map(element) => Self::map(element.without_names()),
            Self::Tuple(items) => Self::Tuple(items.iter().map(Self::without_names).collect()),
            Self::Any | Self::Bool | Self::Number | Self::String => self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_withheld_tells_no_names() {
        let object = Value::object([("hunter2", "x".into())]);
        for value in [object.clone(), Value::tuple(vec![object.clone()]), Value::list(object.ty(), vec![object])] {
            let withheld = value.withheld(3);
            assert_eq!(withheld.withheld_number(), Some("3"));
            assert!(!format!("{:?}", withheld.ty()).contains("hunter2"));
        }
    }
}
