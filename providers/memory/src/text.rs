//! A world as sorted text lines, to be printed and preset by tests: `ssh_file a:22 /etc/motd = {"content":"hi"}`.
//!
//! What names the thing stands left and is left out of the JSON, and so are nulls and the connection.

use karmaform_model::{Object, Schema, convert, implied_from_json, to_json};
use serde_json::{Map, Value as Json};

use crate::Place;

/// Stands where there is no connection or no identity.
pub(crate) const NONE: &str = "-";

/// A parsed line.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    Thing(Place, Object),
    /// A data source: its type, the arguments it answers to, and its results.
    Data(String, Object, Object),
}

pub(crate) fn print(place: &Place, object: &Object, schema: Option<&Schema>) -> String {
    let hidden = |name: &str| schema.and_then(|s| s.attribute(name)).is_some_and(|a| a.identity);
    let attributes = object.iter().filter(|(n, v)| !v.is_null() && !hidden(n)).map(|(n, v)| (n.clone(), to_json(v)));
    format!("{place} = {}", Json::Object(attributes.collect()))
}

/// Parses a line; `None` for an empty one or a comment.
pub(crate) fn parse(line: &str) -> Result<Option<Line>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let wrong = |what: &str| Err(format!("{what} in the world's line: {line}"));
    let Some((name, json)) = line.split_once(" = {") else { return wrong("no \" = {\"") };
    let Some(object) = object(&format!("{{{json}")) else { return wrong("bad JSON on the right side") };
    let mut words = name.splitn(3, ' ');
    Ok(Some(match (words.next(), words.next(), words.next()) {
        (Some("data"), Some(kind), Some(arguments)) => match self::object(arguments) {
            Some(arguments) => Line::Data(kind.to_owned(), arguments, object),
            None => return wrong("bad JSON on the left side"),
        },
        (Some(kind), Some(connection), Some(identity)) => Line::Thing(Place::new(kind, connection, identity), object),
        _ => return wrong("no TYPE CONNECTION IDENTITY"),
    }))
}

fn object(json: &str) -> Option<Object> {
    let map: Map<String, Json> = serde_json::from_str(json).ok()?;
    Some(map.iter().map(|(n, v)| (n.clone(), implied_from_json(v))).collect())
}

/// The object with its values in the types of the schema, and nothing that the schema does not know.
pub(crate) fn conform(schema: &Schema, object: &Object) -> Result<Object, String> {
    let mut out = Object::new();
    for (name, value) in object {
        let Some(ty) = schema.type_of(name) else { return Err(format!("there is no attribute \"{name}\"")) };
        out.insert(name.clone(), convert(value, &ty).map_err(|e| format!("attribute \"{name}\": {e}"))?);
    }
    Ok(out)
}

/// The same, with what names the thing taken from its place if that is one attribute.
pub(crate) fn complete(schema: &Schema, place: &Place, object: &Object) -> Result<Object, String> {
    let mut object = object.clone();
    let mut names = schema.attributes.iter().filter(|a| a.identity);
    if let (Some(only), None) = (names.next(), names.next()) {
        object.get_or_insert_with(only.name, || place.identity.as_str().into());
    }
    conform(schema, &object)
}

/// What names a thing, in one word or several joined by slashes; `-` if nothing does.
pub(crate) fn identity(schema: &Schema, object: &Object) -> String {
    let names = schema.identity(object);
    let words: Vec<_> = schema.attributes.iter().filter_map(|a| names.get(a.name)).map(word).collect();
    if words.is_empty() { NONE.to_owned() } else { words.join("/") }
}

fn word(value: &karmaform_model::Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => to_json(value).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_print_and_parse_back() {
        for text in [r#"ssh_file a:22 /etc/motd = {"content":"a = {b}","mode":"0644"}"#, r#"memory_thing - a b = {"value":[1,{"x":null}]}"#]
        {
            let Some(Line::Thing(place, object)) = parse(text).unwrap() else { panic!("{text}") };
            assert_eq!(print(&place, &object, None), text);
        }
        let data = parse(r#"data ssh_host {"address":"a"} = {"hostname":"x"}"#).unwrap();
        assert!(matches!(data, Some(Line::Data(kind, arguments, _)) if kind == "ssh_host" && arguments["address"] == "a".into()));
        assert_eq!(parse(" # a comment").unwrap(), None);
        for text in ["x", "a b = {}", "a b c = {x}", "data a b = {}", "a b c = 5"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
