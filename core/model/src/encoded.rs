//! The attributes of a resource as the state keeps them, which are decoded once however often they are looked at: a plan goes over all of them
//! several times.

use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};

use crate::{ConvertError, Object, Schema};

/// Attributes as [`Schema::encode`] gives them. Used like the map it holds.
#[derive(Clone, Debug, Default)]
pub struct Encoded {
    map: Map<String, Json>,
    decoded: OnceLock<Object>,
}

impl Encoded {
    /// What they are, with the marks of the schema, which must be that of their resource type. Copies have what was decoded by then.
    ///
    /// # Errors
    /// If they do not fit the schema.
    pub fn decoded(&self, schema: &Schema) -> Result<Object, ConvertError> {
        if let Some(known) = self.decoded.get() {
            return Ok(known.clone());
        }
        let object = schema.decode(&self.map)?;
        Ok(self.decoded.get_or_init(|| object).clone())
    }
}

impl Deref for Encoded {
    type Target = Map<String, Json>;

    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

impl DerefMut for Encoded {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.decoded = OnceLock::new();
        &mut self.map
    }
}

impl PartialEq for Encoded {
    fn eq(&self, other: &Self) -> bool {
        self.map == other.map
    }
}

impl From<Map<String, Json>> for Encoded {
    fn from(map: Map<String, Json>) -> Self {
        Self { map, decoded: OnceLock::new() }
    }
}

impl FromIterator<(String, Json)> for Encoded {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(attributes: I) -> Self {
        Map::from_iter(attributes).into()
    }
}

impl Serialize for Encoded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.map.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Encoded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attribute, Type};

    #[test]
    fn what_was_decoded_is_forgotten_with_a_change() {
        let schema = Schema::new("", vec![Attribute::optional("a", Type::String, "")]);
        let mut encoded: Encoded = [("a".to_owned(), Json::from("1"))].into_iter().collect();
        assert_eq!(encoded.decoded(&schema).unwrap()["a"], "1".into());
        let copy = encoded.clone();
        encoded.insert("a".to_owned(), "2".into());
        assert_eq!(encoded.decoded(&schema).unwrap()["a"], "2".into());
        assert_eq!(copy.decoded(&schema).unwrap()["a"], "1".into());
        assert_ne!(copy, encoded);
    }
}
