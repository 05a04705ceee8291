//! Values of computed attributes: made up, but always the same ones for the same calls.

use karmaform_model::{Kind, Object, Schema, Type, Value};

use crate::Place;
use crate::world::FillHook;

/// A computed attribute that wants a value.
#[derive(Clone, Copy, Debug)]
pub struct Blank<'a> {
    /// The resource type or data source.
    pub resource_type: &'a str,
    /// What names the thing.
    pub identity: &'a str,
    /// The attribute.
    pub attribute: &'a str,
    /// Its type.
    pub ty: &'a Type,
    /// All that is known of the thing.
    pub object: &'a Object,
    /// Rises with every creation of the thing and every update that asks for a new value.
    pub round: u64,
}

/// True if a computed attribute is not known.
pub(crate) fn wants_values(schema: &Schema, object: &Object) -> bool {
    schema.attributes.iter().filter(|a| a.is_computed()).any(|a| object.get(a.name).is_some_and(|v| !v.is_wholly_known()))
}

/// Fills the unknown parts of computed attributes: from `kept`, else by the hook, else made up.
pub(crate) fn fill(schema: &Schema, place: &Place, round: u64, kept: Option<&Object>, hook: Option<&FillHook>, object: &mut Object) {
    for attribute in schema.attributes.iter().filter(|a| a.is_computed() && !a.volatile) {
        let Some(value) = object.get(attribute.name).filter(|v| !v.is_wholly_known()) else { continue };
        let kept = kept.and_then(|k| k.get(attribute.name)).filter(|v| !v.is_null());
        let (resource_type, identity) = (place.resource_type.as_str(), place.identity.as_str());
        let blank = Blank { resource_type, identity, attribute: attribute.name, ty: &attribute.ty, object, round };
        let given = kept.cloned().or_else(|| hook.and_then(|hook| hook(&blank)));
        let value = given.unwrap_or_else(|| known(&blank, value)).secret_if(value.secret);
        object.insert(attribute.name.to_owned(), value);
    }
}

/// A value for a blank when nobody knows better: a text that names it, or the zero of its type.
pub(crate) fn made_up(blank: &Blank<'_>, ty: &Type) -> Value {
    match ty {
        Type::String | Type::Any => format!("computed-{}:{}.{}", blank.round, blank.identity, blank.attribute).into(),
        Type::Bool => false.into(),
        Type::Number => 0i64.into(),
        Type::List(element) => Value::list((**element).clone(), Vec::new()),
        Type::Set(element) => Value::set((**element).clone(), Vec::new()),
        Type::Map(element) => Value::map((**element).clone(), Object::new()),
        Type::Tuple(types) => Value::tuple(types.iter().map(|t| made_up(blank, t)).collect()),
        Type::Object(attributes) => {
            let attributes = attributes.iter().map(|(n, a)| (n.clone(), made_up(blank, &a.ty)));
            attributes.collect::<Object>().into()
        }
    }
}

/// The value with every unknown part made up.
fn known(blank: &Blank<'_>, value: &Value) -> Value {
    match &value.kind {
        Kind::Unknown(unknown) => made_up(blank, &unknown.ty).secret_if(value.secret),
        _ => value.map_parts(|_, part| known(blank, part)),
    }
}

/// Names of attributes that only the configuration can give and that are not known though they are needed now.
pub(crate) fn missing(schema: &Schema, object: &Object) -> Vec<&'static str> {
    let attributes = schema.attributes.iter().filter(|a| !a.is_computed()).map(|a| a.name);
    let names = attributes.chain(schema.blocks.iter().map(|b| b.name));
    names.filter(|n| object.get(n).is_some_and(|v| !v.is_wholly_known())).collect()
}
