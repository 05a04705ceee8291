//! Machine-readable forms, with Terraform's keys. No secret leaves in clear: its place holds null and its path is marked.

pub(crate) mod checks;
mod configuration;
pub(crate) mod deferred;
pub(crate) mod diagnostics;
pub(crate) mod plan;
mod prior;
pub(crate) mod schema;
pub(crate) mod state;
pub(crate) mod stream;
pub(crate) mod testing;

use std::collections::BTreeMap;

use crate::redact::is_withheld;
use karmaform_model::{Address, Key, Kind, Mode, ModuleStep, Object, Type, Value, escape_json, to_json};
use serde_json::{Map, Value as Json, json};

/// On a line of its own, with its end; the same signs are escaped as in Terraform.
pub(crate) fn line(json: &Json) -> String {
    escape_json(&format!("{json}\n"))
}

/// The same over several lines.
pub(crate) fn indented(json: &Json) -> String {
    escape_json(&format!("{json:#}\n"))
}

/// The value as far as it is known: what is secret or ephemeral is null, unknown parts are left out of objects and null in arrays.
/// `None`: nothing of it is known.
pub(crate) fn known(value: &Value) -> Option<Json> {
    match &value.kind {
        Kind::Unknown(_) if is_withheld(value) => Some(Json::Null),
        Kind::Unknown(_) => None,
        _ if value.marks().any() => Some(Json::Null),
        Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) => {
            Some(Json::Array(items.iter().map(|v| known(v).unwrap_or(Json::Null)).collect()))
        }
        Kind::Map(_, entries) | Kind::Object(entries) => Some(Json::Object(known_object(entries))),
        _ => Some(to_json(value)),
    }
}

/// All attributes as far as they are known.
pub(crate) fn known_object(object: &Object) -> Map<String, Json> {
    object.iter().filter_map(|(n, v)| Some((n.clone(), known(v)?))).collect()
}

/// `true` where `is` holds, in the shape of the value; objects leave out what would be a lone `false`.
pub(crate) fn shape(value: &Value, is: &dyn Fn(&Value) -> bool) -> Json {
    if is(value) {
        return Json::Bool(true);
    }
    match &value.kind {
        // Behind what is secret or ephemeral nothing more is told.
        _ if value.marks().any() => Json::Bool(false),
        Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) => Json::Array(items.iter().map(|v| shape(v, is)).collect()),
        Kind::Map(_, entries) | Kind::Object(entries) => shape_object(entries, is),
        // Of what is unknown only the type is seen.
        Kind::Unknown(unknown) => match unknown.ty {
            Type::List(_) | Type::Set(_) | Type::Tuple(_) => json!([]),
            Type::Map(_) | Type::Object(_) => json!({}),
            _ => Json::Bool(false),
        },
        _ => Json::Bool(false),
    }
}

/// [`shape`] of all attributes.
pub(crate) fn shape_object(object: &Object, is: &dyn Fn(&Value) -> bool) -> Json {
    Json::Object(object.iter().map(|(n, v)| (n.clone(), shape(v, is))).filter(|(_, j)| *j != Json::Bool(false)).collect())
}

/// True if something is marked in a [`shape`].
fn holds_something(json: &Json) -> bool {
    match json {
        Json::Bool(b) => *b,
        Json::Array(items) => items.iter().any(holds_something),
        Json::Object(entries) => entries.values().any(holds_something),
        _ => false,
    }
}

/// `terraform.io/builtin/terraform`, `karmaform.io/karmaform/ssh`.
pub(crate) fn provider_name(provider: &str) -> String {
    if provider == "terraform" { "terraform.io/builtin/terraform".to_owned() } else { format!("karmaform.io/karmaform/{provider}") }
}

/// The keys that name a resource that changes: those of [`naming`], and `module_address`.
pub(crate) fn naming_of_change(address: &Address, resource_type: &str) -> Map<String, Json> {
    let mut out = naming(address, resource_type);
    if let Some(module) = address.module_address() {
        out.insert("module_address".into(), json!(module.to_string()));
    }
    out
}

/// The keys that name a resource: `address`, `mode`, `type`, `name`, `index`. A child's name is its whole address, as in the state. What
/// is listed in its module does not name that again.
pub(crate) fn naming(address: &Address, resource_type: &str) -> Map<String, Json> {
    let mut out = Map::new();
    out.insert("address".into(), json!(address.to_string()));
    out.insert("mode".into(), json!(if address.mode == Mode::Data { "data" } else { "managed" }));
    out.insert("type".into(), json!(resource_type));
    if address.is_child() {
        out.insert("name".into(), json!(address.to_string()));
    } else {
        out.insert("name".into(), json!(address.name));
        if let Some(key) = &address.key {
            out.insert("index".into(), key_json(key));
        }
    }
    if let Some(composite) = address.composite() {
        out.insert("composite".into(), json!(composite.to_string()));
    }
    out
}

/// Resources as `root_module`, with those in modules below `child_modules`, each in its module. What is in one module comes together.
pub(crate) fn by_module<'a>(resources: impl Iterator<Item = (&'a Address, Json)>) -> Json {
    let mut modules: BTreeMap<&[ModuleStep], Vec<Json>> = BTreeMap::new();
    for (address, json) in resources {
        // Those around it are shown as well, if only for what is in them.
        for depth in 0..address.module.len() {
            modules.entry(&address.module[..depth]).or_default();
        }
        modules.entry(&address.module).or_default().push(json);
    }
    // The innermost first: what is complete goes into what is around it.
    let mut done: BTreeMap<&[ModuleStep], Vec<Json>> = BTreeMap::new();
    let mut root = json!({});
    let mut paths: Vec<&[ModuleStep]> = modules.keys().copied().collect();
    paths.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    for path in paths {
        let mut out = json!({});
        if !path.is_empty() {
            out["address"] = json!(Address::of_module(path.to_vec()).to_string());
        }
        if let Some(own) = modules.remove(path).filter(|own| !own.is_empty()) {
            out["resources"] = Json::Array(own);
        }
        if let Some(mut children) = done.remove(path) {
            // As in Terraform: by what their addresses look like, `m[10]` before `m[2]`.
            children.sort_by(|a, b| a["address"].as_str().cmp(&b["address"].as_str()));
            out["child_modules"] = Json::Array(children);
        }
        match path.split_last() {
            Some((_, around)) => done.entry(around).or_default().push(out),
            None => root = out,
        }
    }
    root
}

/// A number or a string.
pub(crate) fn key_json(key: &Key) -> Json {
    match key {
        Key::Index(i) => json!(i),
        Key::Name(n) => json!(n),
    }
}

/// Seconds since 1970 as RFC 3339.
pub(crate) fn timestamp(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| String::new(), |t| t.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_null_and_unknown_parts_are_left_out() {
        let value = Value::object([
            ("a", 1i64.into()),
            ("b", Value::from("hunter2").secret()),
            ("c", Value::unknown(Type::String)),
            ("s", Value::unknown(Type::String).secret()),
            ("d", Value::tuple(vec![Value::unknown(Type::String), "x".into()])),
        ]);
        assert_eq!(known(&value).unwrap_or_default().to_string(), r#"{"a":1,"b":null,"d":[null,"x"]}"#);
        assert_eq!(shape(&value, &Value::is_unknown).to_string(), r#"{"c":true,"d":[true,false],"s":true}"#);
        assert_eq!(shape(&value, &|v| v.secret).to_string(), r#"{"b":true,"d":[false,false],"s":true}"#);
        let lists = Value::object([("e", Value::tuple(vec![])), ("l", Value::unknown(Type::list(Type::String)))]);
        assert_eq!(shape(&lists, &|v| v.secret).to_string(), r#"{"e":[],"l":[]}"#);
    }

    #[test]
    fn what_means_something_to_html_is_escaped() {
        let json = json!({ "<a>": ["b & c", "\u{2028}\u{2029}"] });
        assert_eq!(line(&json), "{\"\\u003ca\\u003e\":[\"b \\u0026 c\",\"\\u2028\\u2029\"]}\n");
        assert_eq!(indented(&json!({ "a": "<" })), "{\n  \"a\": \"\\u003c\"\n}\n");
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
    }
}
