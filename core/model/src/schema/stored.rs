//! Objects as the state keeps them: to JSON and back, by a schema.

use serde_json::{Map, Value as Json};

use super::{Block, Nesting, Schema};
use crate::{ConvertError, Object, Type, Value, from_json, to_json};

impl Block {
    /// Stored JSON of it with null for what is missing.
    fn completed(&self, stored: &Json) -> Json {
        match (self.nesting, stored) {
            (Nesting::Single, one) => self.schema.completed(one),
            (Nesting::List, Json::Array(items)) => items.iter().map(|i| self.schema.completed(i)).collect(),
            (Nesting::Map, Json::Object(items)) => {
                Json::Object(items.iter().map(|(label, i)| (label.clone(), self.schema.completed(i))).collect())
            }
            (_, other) => other.clone(),
        }
    }
}

impl Schema {
    /// Stored attributes to an object: all attributes present, unknown names dropped. [`Type::Any`] is read from `{"value", "type"}`.
    ///
    /// # Errors
    /// If a stored value does not fit; names the attribute.
    pub fn decode(&self, stored: &Map<String, Json>) -> Result<Object, ConvertError> {
        let mut object = Object::new();
        for attribute in self.attributes.iter().filter(|a| a.is_stored()) {
            let (name, ty) = (attribute.name, attribute.ty.clone());
            let value = match (stored.get(name), &ty) {
                (None | Some(Json::Null), _) => Value::null(ty),
                (Some(json), Type::Any) => decode_dynamic(json)?,
                (Some(json), _) => {
                    from_json(json, &ty).map_err(|e| ConvertError::Inside { place: format!("attribute \"{name}\""), cause: Box::new(e) })?
                }
            };
            object.insert(name.to_owned(), value);
        }
        for block in &self.blocks {
            // What a block did not have yet when it was stored was not written.
            let json = block.completed(stored.get(block.name).unwrap_or(&Json::Null));
            let place = || format!("block \"{}\"", block.name);
            let value = from_json(&json, &block.ty()).map_err(|e| ConvertError::Inside { place: place(), cause: Box::new(e) })?;
            object.insert(block.name.to_owned(), value);
        }
        self.mark(&mut object);
        Ok(object)
    }

    fn completed(&self, stored: &Json) -> Json {
        let Json::Object(entries) = stored else { return stored.clone() };
        let mut entries = entries.clone();
        for attribute in &self.attributes {
            entries.entry(attribute.name).or_insert(Json::Null);
        }
        for block in &self.blocks {
            let below = entries.get(block.name).map_or(Json::Null, |e| block.completed(e));
            entries.insert(block.name.to_owned(), below);
        }
        Json::Object(entries)
    }

    /// The reverse of [`Schema::decode`]; write-only and volatile attributes are left out.
    pub fn encode(&self, object: &Object) -> Map<String, Json> {
        let mut stored = Map::new();
        for attribute in self.attributes.iter().filter(|a| a.is_stored()) {
            let json = match object.get(attribute.name) {
                Some(value) if attribute.ty == Type::Any && !value.is_null() => encode_dynamic(value),
                Some(value) => to_json(value),
                None => Json::Null,
            };
            stored.insert(attribute.name.to_owned(), json);
        }
        for block in &self.blocks {
            stored.insert(block.name.to_owned(), object.get(block.name).map_or(Json::Null, to_json));
        }
        stored
    }
}

fn decode_dynamic(json: &Json) -> Result<Value, ConvertError> {
    match (json.get("value"), json.get("type").and_then(Type::from_json)) {
        (Some(value), Some(ty)) => from_json(value, &ty),
        _ => from_json(json, &Type::Any),
    }
}

fn encode_dynamic(value: &Value) -> Json {
    serde_json::json!({ "value": to_json(value), "type": value.ty().to_json() })
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::*;

    #[test]
    fn stored_attributes_come_back_with_types_and_marks() {
        let schema = Schema::new(
            "",
            vec![
                Attribute::required("path", Type::String, "").identity(),
                Attribute::optional("key", Type::String, "").secret(),
                Attribute::optional("input", Type::Any, ""),
                Attribute::computed("now", Type::Number, "").volatile(),
            ],
        );
        let object: Object = [
            ("path".to_owned(), Value::from("/a")),
            ("key".to_owned(), Value::from("k").secret()),
            ("input".to_owned(), Value::set(Type::Number, vec![2i64.into(), 1i64.into()])),
            ("now".to_owned(), Value::from(5i64)),
        ]
        .into();
        let stored = schema.encode(&object);
        assert_eq!(Json::Object(stored.clone()).to_string(), r#"{"input":{"type":["set","number"],"value":[1,2]},"key":"k","path":"/a"}"#);
        let back = schema.decode(&stored).unwrap();
        assert_eq!(back["input"], object["input"]);
        assert!(back["key"].secret);
        assert!(!back.contains_key("now"));
        assert_eq!(schema.identity(&object).len(), 1);
    }

    #[test]
    fn blocks_stored_before_an_attribute_was_there_are_read() {
        let inner = |more: &[&'static str]| Schema::new("", more.iter().map(|name| Attribute::optional(name, Type::String, "")).collect());
        let block = |name, nesting, schema| Block { name, nesting, schema };
        let schema = |names: &[&'static str]| {
            let nested = inner(names).with_blocks(vec![block("deep", Nesting::Single, inner(names))]);
            let kinds = [("one", Nesting::Single), ("many", Nesting::List), ("named", Nesting::Map)];
            Schema::new("", vec![]).with_blocks(kinds.map(|(name, nesting)| block(name, nesting, nested.clone())).to_vec())
        };
        let one = serde_json::json!({ "a": "x", "deep": { "a": "y" } });
        let stored = serde_json::json!({ "one": one, "many": [one], "named": { "n": one } });
        let object = schema(&["a", "b"]).decode(stored.as_object().unwrap()).unwrap();
        let expected = serde_json::json!({ "a": "x", "b": null, "deep": { "a": "y", "b": null } });
        assert_eq!(to_json(&object["one"]), expected);
        assert_eq!(to_json(&object["many"]), serde_json::json!([expected]));
        assert_eq!(to_json(&object["named"]), serde_json::json!({ "n": expected }));
        assert!(schema(&["a", "b"]).decode(&Map::new()).unwrap()["one"].is_null());
    }
}
