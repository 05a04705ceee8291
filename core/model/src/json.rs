//! Values as plain JSON, as states, outputs and `jsonencode` write them.

use serde_json::Value as Json;

use crate::number::TOO_LONG;
use crate::{ConvertError, Kind, Number, Object, Type, Value, convert};

/// Plain JSON: sets and tuples are arrays, unknown parts and infinities are null, marks are lost. A zero has no sign, as in Terraform's states.
pub fn to_json(value: &Value) -> Json {
    written(value, false)
}

/// The same with the sign of a negative zero, as Terraform's `jsonencode` has it.
pub fn to_json_signed(value: &Value) -> Json {
    written(value, true)
}

fn written(value: &Value, signed: bool) -> Json {
    match &value.kind {
        Kind::Null(_) | Kind::Unknown(_) => Json::Null,
        Kind::Bool(b) => Json::Bool(*b),
        Kind::Number(n) => number_to_json(n, signed),
        Kind::String(s) => Json::String(s.clone()),
        Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) => Json::Array(items.iter().map(|v| written(v, signed)).collect()),
        Kind::Map(_, e) | Kind::Object(e) => Json::Object(e.iter().map(|(n, v)| (n.clone(), written(v, signed))).collect()),
    }
}

fn number_to_json(number: &Number, signed: bool) -> Json {
    match number {
        Number::Int(i) => Json::from(*i),
        Number::NegativeZero if !signed => Json::from(0),
        Number::Float(_) | Number::NegativeZero => serde_json::from_str(&number.to_string()).unwrap_or(Json::Null),
        Number::PositiveInfinity | Number::NegativeInfinity => Json::Null,
    }
}

/// JSON text that is safe to put into HTML and scripts, as Terraform writes it. These characters only occur inside of strings.
pub fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out
}

/// The value with the type that the JSON itself shows: arrays are tuples, objects are objects.
pub fn implied_from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::null(Type::Any),
        Json::Bool(b) => (*b).into(),
        Json::Number(n) => Number::kept(&n.to_string()).map_or_else(|()| Value::null(Type::Number), Value::from),
        Json::String(s) => s.as_str().into(),
        Json::Array(items) => Value::tuple(items.iter().map(implied_from_json).collect()),
        Json::Object(o) => o.iter().map(|(n, v)| (n.clone(), implied_from_json(v))).collect::<Object>().into(),
    }
}

/// True if there is a number in it with more digits than one may be written with.
pub fn has_too_long_number(json: &Json) -> bool {
    has_number(json, &|text| Number::is_too_long(text))
}

fn has_number(json: &Json, is: &dyn Fn(&str) -> bool) -> bool {
    match json {
        Json::Number(n) => !n.is_i64() && is(&n.to_string()),
        Json::Array(items) => items.iter().any(|item| has_number(item, is)),
        Json::Object(o) => o.values().any(|value| has_number(value, is)),
        Json::Null | Json::Bool(_) | Json::String(_) => false,
    }
}

/// The value of this type. [`Type::Any`] takes what the JSON shows.
///
/// # Errors
/// If the JSON does not fit the type.
pub fn from_json(json: &Json, ty: &Type) -> Result<Value, ConvertError> {
    if has_number(json, &|text| Number::is_too_long_to_keep(text)) {
        return Err(ConvertError::Wrong { wanted: ty.to_string(), found: TOO_LONG.to_owned() });
    }
    convert(&implied_from_json(json), ty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trips_through_a_type() {
        let json: Json = serde_json::from_str(r#"{"a":[1,2.50,12345678901234567890123],"b":null}"#).unwrap();
        let ty = Type::object([("a", Type::list(Type::Number)), ("b", Type::String)]);
        let value = from_json(&json, &ty).unwrap();
        assert_eq!(value.ty(), ty);
        assert_eq!(to_json(&value).to_string(), r#"{"a":[1,2.5,12345678901234567890123],"b":null}"#);
        assert!(from_json(&json, &Type::String).is_err());
        let long: Json = serde_json::from_str(r#"{"a":[1e99999999]}"#).unwrap();
        let error = from_json(&long, &Type::Any).unwrap_err().to_string();
        assert_eq!(error, "any required, but have a number of more than 4096 digits");
    }
}
