//! Values that stand for what only a provider could tell: random letters, and the zero of every other type.

use std::sync::atomic::{AtomicU64, Ordering};

use karmaform_model::{Connection, Kind, Object, Schema, Type, Value, convert};

use crate::disk::sha256;

/// So many letters and digits are enough to tell things apart.
const LETTERS: usize = 8;
/// The attribute that is the way to something, and must lead to its provider.
const WAY: &str = "connection";

/// Where random letters come from.
pub(super) struct Letters {
    seed: String,
    turn: AtomicU64,
}

impl Letters {
    /// The same letters in the same order for the same seed.
    pub(super) fn new(seed: String) -> Self {
        Self { seed, turn: AtomicU64::new(0) }
    }

    fn next(&self) -> String {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let digest = sha256(format!("{}/{turn}", self.seed).as_bytes());
        let pairs = digest.as_bytes().chunks(4).take(LETTERS).map(|c| c.iter().fold(0u32, |n, b| n * 31 + u32::from(*b)));
        pairs.filter_map(|n| char::from_digit(n % 36, 36)).collect()
    }

    fn value(&self, ty: &Type) -> Value {
        match ty {
            // What may be anything is nothing, as in Terraform.
            Type::Any => Value::null(Type::Any),
            Type::String => self.next().into(),
            Type::Bool => false.into(),
            Type::Number => 0i64.into(),
            Type::List(element) => Value::list((**element).clone(), Vec::new()),
            Type::Set(element) => Value::set((**element).clone(), Vec::new()),
            Type::Map(element) => Value::map((**element).clone(), Object::new()),
            Type::Tuple(types) => Value::tuple(types.iter().map(|t| self.value(t)).collect()),
            Type::Object(attributes) => attributes.iter().map(|(n, a)| (n.clone(), self.value(&a.ty))).collect::<Object>().into(),
        }
    }

    /// The value with every part made up that is not known.
    fn known(&self, value: &Value) -> Value {
        match &value.kind {
            Kind::Unknown(unknown) => self.value(&unknown.ty).secret_if(value.secret),
            _ => value.map_parts(|_, part| self.known(part)),
        }
    }

    /// Fills in what only the provider gives and nobody knows: what `defaults` say, else something made up.
    pub(super) fn fill(&self, schema: &Schema, defaults: Option<&Object>, object: &mut Object) {
        for attribute in schema.attributes.iter().filter(|a| a.is_computed()) {
            let there = object.get(attribute.name).cloned().unwrap_or_else(|| Value::unknown(attribute.ty.clone()));
            if there.is_wholly_known() {
                continue;
            }
            let said = defaults.and_then(|d| d.get(attribute.name)).filter(|_| there.is_unknown());
            // Whatever type it would have had: what may be anything is nothing.
            let is_anything = attribute.ty == Type::Any && there.is_unknown();
            let made = || if is_anything { Value::null(Type::Any) } else { self.known(&there) };
            let value = said.cloned().unwrap_or_else(made).secret_if(there.secret);
            object.insert(attribute.name.to_owned(), value);
        }
        schema.mark(object);
    }

    /// What a data source says: its arguments, and the rest made up. `told`: what its provider knows of a place that it can't see.
    pub(super) fn read(
        &self,
        provider: &str,
        schema: &Schema,
        defaults: Option<&Object>,
        arguments: &Object,
        told: Option<Object>,
    ) -> Object {
        let mut object = told.unwrap_or_else(|| arguments.clone());
        for attribute in schema.attributes.iter().filter(|a| a.is_computed()) {
            let is_way = attribute.name == WAY && schema.connection == Connection::Arguments;
            let said = defaults.and_then(|d| d.get(attribute.name));
            let there = object.get(attribute.name).filter(|v| !v.is_null() && (said.is_none() || arguments.get(attribute.name) == Some(v)));
            let value = match (there, said) {
                (Some(_), _) => continue,
                (None, said) if is_way => self.way(provider, arguments, &attribute.ty, said),
                (None, Some(said)) => said.clone(),
                (None, None) => Value::unknown(attribute.ty.clone()),
            };
            object.insert(attribute.name.to_owned(), value);
        }
        self.fill(schema, None, &mut object);
        object
    }

    /// A connection value that leads to the mocked provider, with what is said of it besides.
    fn way(&self, provider: &str, arguments: &Object, ty: &Type, said: Option<&Value>) -> Value {
        let mut way: Object = arguments.iter().filter(|(_, v)| !v.is_null()).map(|(n, v)| (n.clone(), v.clone())).collect();
        way.insert("provider".to_owned(), provider.into());
        way.insert("id".to_owned(), self.next().into());
        way.extend(said.and_then(Value::as_entries).cloned().unwrap_or_default());
        if let Type::Object(wanted) = ty {
            for (name, attribute) in wanted {
                way.get_or_insert_with(name, || Value::null(attribute.ty.clone()));
            }
        }
        let way = Value::from(way);
        convert(&way, ty).unwrap_or(way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::Attribute;

    #[test]
    fn what_nobody_knows_is_made_up_by_type() {
        let attributes = vec![
            Attribute::required("name", Type::String, ""),
            Attribute::computed("id", Type::String, ""),
            Attribute::computed("key", Type::String, "").secret(),
            Attribute::computed("size", Type::Number, ""),
            Attribute::computed("names", Type::list(Type::String), ""),
            Attribute::computed("told", Type::Bool, ""),
            Attribute::computed("anything", Type::Any, ""),
        ];
        let schema = Schema::new("", attributes);
        let letters = Letters::new("seed".into());
        let mut object = Object::from([("name".to_owned(), "a".into()), ("id".to_owned(), Value::unknown(Type::String))]);
        letters.fill(&schema, Some(&Object::from([("told".to_owned(), true.into())])), &mut object);
        assert_eq!(object["id"].as_str().map(str::len), Some(LETTERS));
        assert!(object["key"].secret && object["key"].is_wholly_known());
        assert_eq!((object["size"].as_i64(), object["told"].as_bool()), (Some(0), Some(true)));
        assert_eq!(object["names"].as_items().map(<[Value]>::len), Some(0));
        assert!(object["anything"].is_null());
        let said = Value::object([("server", "https://s".into())]);
        let way = letters.way("p", &object, &Type::Any, Some(&said));
        let part = |name: &str| way.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        assert_eq!((part("provider"), part("server"), part("id").len()), ("p".to_owned(), "https://s".to_owned(), LETTERS));
        let again = Letters::new("seed".into());
        assert_eq!((again.next(), again.next() == again.next()), (object["id"].as_str().unwrap_or_default().to_owned(), false));
    }
}
