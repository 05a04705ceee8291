//! Attributes by name. Copies share what they hold until one of them changes: plans, states and observations are full of equal ones.

mod entries;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Value;
pub use entries::Entries;

/// Attributes of an object or entries of a map, by name; what a resource is configured with and what it has.
/// Used like the [`Entries`] it holds; a clone costs nothing, and the first change to a shared one copies this level of it.
#[derive(Clone, Default)]
pub struct Object(Arc<Entries>);

impl Object {
    /// Without attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an attribute. What it has already it keeps, and then a copy that is shared stays so.
    pub fn put(&mut self, name: &str, value: Value) {
        if self.get(name) != Some(&value) {
            self.insert(name.to_owned(), value);
        }
    }
}

impl Deref for Object {
    type Target = Entries;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Object {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl From<BTreeMap<String, Value>> for Object {
    fn from(attributes: BTreeMap<String, Value>) -> Self {
        Self(Arc::new(attributes.into()))
    }
}

impl<const N: usize> From<[(String, Value); N]> for Object {
    fn from(attributes: [(String, Value); N]) -> Self {
        attributes.into_iter().collect()
    }
}

impl FromIterator<(String, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(attributes: I) -> Self {
        Self(Arc::new(attributes.into_iter().collect()))
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = entries::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = (&'a String, &'a Value);
    type IntoIter = entries::Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a mut Object {
    type Item = (&'a String, &'a mut Value);
    type IntoIter = entries::IterMut<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter())
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_has_already_is_not_set_again() {
        let first = Object::from([("a".to_owned(), Value::from(1i64))]);
        let mut second = first.clone();
        second.put("a", 1i64.into());
        assert!(Arc::ptr_eq(&first.0, &second.0));
        second.put("a", 2i64.into());
        assert_eq!((first["a"].as_i64(), second["a"].as_i64()), (Some(1), Some(2)));
    }

    #[test]
    fn a_changed_copy_leaves_the_other_as_it_was() {
        let first = Object::from([("a".to_owned(), Value::from(1i64))]);
        let mut second = first.clone();
        assert_eq!(first, second);
        second.insert("a".to_owned(), Value::from(2i64));
        assert_eq!((first["a"].as_i64(), second["a"].as_i64()), (Some(1), Some(2)));
        assert_ne!(first, second);
    }
}
