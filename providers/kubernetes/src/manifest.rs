//! What a manifest says by itself: which object it is, what is wrong with it, what of it is secret, and how it goes to the server.

use std::fmt;

use karmaform_model::{Diagnostic, Kind, Path, PathStep, Type, Value, implied_from_json, to_json};
use serde_json::{Map, Value as Json};

use crate::client::MANAGER;
use crate::fields::content;
use crate::values::{decode, encode};

/// What names an object in a cluster, whatever version it is read in: `Deployment.apps/namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    /// `Deployment`
    pub(crate) kind: String,
    /// `apps`; empty for the core group.
    pub(crate) group: String,
    /// Empty if the manifest has none.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

impl Name {
    /// From what `Display` writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '/');
        let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        let owned = |s: &str| s.to_owned();
        (!kind.is_empty() && !name.is_empty()).then(|| Self {
            kind: owned(kind),
            group: owned(group),
            namespace: owned(namespace),
            name: owned(name),
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{}/{}/{}", self.kind, self.group, self.namespace, self.name)
    }
}

enum Part<'a> {
    Text(&'a str),
    Missing,
    Later,
}

fn part<'a>(manifest: &'a Value, path: &[&str]) -> Part<'a> {
    let mut here = manifest;
    for step in path {
        if here.is_unknown() {
            return Part::Later;
        }
        match here.get(step) {
            Some(next) => here = next,
            None => return Part::Missing,
        }
    }
    match &here.kind {
        Kind::Unknown(_) => Part::Later,
        Kind::String(text) if !text.is_empty() => Part::Text(text),
        _ => Part::Missing,
    }
}

/// Which object it is.
pub(crate) enum Named {
    /// This one.
    Known(Name),
    /// Known after apply.
    Later,
    /// It does not say; [`problems`] says what is missing.
    Wrong,
}

/// Which object a manifest is of.
pub(crate) fn named(manifest: &Value) -> Named {
    let parts = [&["apiVersion"][..], &["kind"], &["metadata", "name"], &["metadata", "namespace"]].map(|p| part(manifest, p));
    if matches!(parts, [Part::Missing, ..] | [_, Part::Missing, ..] | [_, _, Part::Missing, _]) {
        return Named::Wrong;
    }
    match parts {
        [Part::Text(api_version), Part::Text(kind), Part::Text(name), namespace @ (Part::Text(_) | Part::Missing)] => {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            let namespace = if let Part::Text(text) = namespace { text } else { "" };
            let owned = |s: &str| s.to_owned();
            Named::Known(Name { kind: owned(kind), group: owned(group), namespace: owned(namespace), name: owned(name) })
        }
        _ => Named::Later,
    }
}

/// The name as it is in `object`: unknown as long as the manifest does not say it, null if it never will.
pub(crate) fn called(manifest: &Value) -> Value {
    match named(manifest) {
        Named::Known(name) => name.to_string().into(),
        Named::Later => Value::unknown(Type::String),
        Named::Wrong => Value::null(Type::String),
    }
}

/// The version it is written in: `apps/v1`.
pub(crate) fn api_version(manifest: &Value) -> Option<&str> {
    manifest.get("apiVersion").and_then(Value::as_str)
}

/// What makes it no manifest of one object, one diagnostic each.
pub(crate) fn problems(manifest: &Value) -> Vec<Diagnostic> {
    if manifest.is_unknown() {
        return Vec::new();
    }
    let wrong = |detail: &str, hint: &str| Diagnostic::error("Manifest is not of one object", detail).with_hint(hint);
    if manifest.as_entries().is_none() {
        return vec![wrong("`manifest` is no object.", "Write an object, or `yamldecode(...)` of one YAML document.")];
    }
    let missing = |path: &[&str]| matches!(part(manifest, path), Part::Missing);
    let has = |name: &str| manifest.get(name).is_some_and(|v| !v.is_null());
    let mut found = Vec::new();
    if missing(&["apiVersion"]) {
        found.push(wrong("It has no `apiVersion`.", "Write, for one, `apiVersion = \"apps/v1\"`."));
    }
    if missing(&["kind"]) {
        found.push(wrong("It has no `kind`.", "Write, for one, `kind = \"Deployment\"`."));
    }
    if has("items") && manifest.get("kind").and_then(Value::as_str).is_some_and(|k| k.ends_with("List")) {
        found.push(wrong("It is a list of objects.", "Make one resource of each, with `for_each`."));
    } else if manifest.get("metadata").and_then(|m| m.get("generateName")).is_some_and(|v| !v.is_null()) {
        found.push(wrong("It has a `generateName`, so that every apply would make another object.", "Give it a `metadata.name`."));
    } else if missing(&["metadata", "name"]) {
        found.push(wrong("It has no `metadata.name`.", "Give it a name."));
    }
    if has("status") {
        found.push(wrong("It has a `status`, which is for controllers to write.", "Leave `status` out."));
    }
    found
}

/// With the secret marks that its kind demands.
pub(crate) fn marked(mut manifest: Value) -> Value {
    if manifest.get("kind").and_then(Value::as_str) == Some("Secret") && api_version(&manifest) == Some("v1") {
        for name in ["data", "stringData"] {
            if manifest.get(name).is_some_and(|v| !v.is_null()) {
                manifest.mark_secret(&[PathStep::Name(name.to_owned())]);
            }
        }
    }
    manifest
}

/// As it goes to the server: nulls are what was not written, and a Secret's `stringData` is `data` already, as the server keeps it.
pub(crate) fn request(manifest: &Value) -> Json {
    let mut json = to_json(manifest);
    prune(&mut json);
    if is_secret(&json)
        && let Some(Json::Object(texts)) = json.as_object_mut().and_then(|o| o.remove("stringData"))
    {
        for (name, text) in texts {
            if let Json::String(text) = text {
                json["data"][name] = encode(text.as_bytes()).into();
            }
        }
    }
    for port in ports(&mut json) {
        port.entry("protocol").or_insert_with(|| PROTOCOL.into());
    }
    if is_bare(&content(&json)) {
        json["metadata"]["labels"][MANAGED_BY] = MANAGER.into();
    }
    json
}

/// Says whose an object is that has nothing but a name: servers keep account of fields, and it has none.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// True if nothing in it is a field that somebody can own.
fn is_bare(content: &Json) -> bool {
    match content {
        Json::Object(entries) => entries.values().all(is_bare),
        Json::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The default protocol of a Service's port. Servers of 1.20 don't know it when they merge, and refuse a port without one.
const PROTOCOL: &str = "TCP";

fn ports(json: &mut Json) -> impl Iterator<Item = &mut Map<String, Json>> {
    let is_service = json["kind"] == "Service" && json["apiVersion"] == "v1";
    let ports = json.pointer_mut("/spec/ports").filter(|_| is_service).and_then(Json::as_array_mut);
    ports.into_iter().flatten().filter_map(Json::as_object_mut)
}

fn prune(json: &mut Json) {
    match json {
        Json::Object(entries) => {
            entries.retain(|_, v| !v.is_null());
            entries.values_mut().for_each(prune);
        }
        Json::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

fn is_secret(json: &Json) -> bool {
    json["kind"] == "Secret" && json["apiVersion"] == "v1"
}

/// What the server has, in the spelling of `like`: as a value with its secret marks, and with `stringData` where that has it.
pub(crate) fn shown(mut json: Json, like: &[&Value]) -> Value {
    let texts = like.first().and_then(|v| v.get("stringData")).and_then(Value::as_entries);
    if let Some(texts) = texts.filter(|_| is_secret(&json)) {
        let mut taken = Map::new();
        if let Some(Json::Object(data)) = json.get_mut("data") {
            for name in texts.keys() {
                if let Some(text) = data.get(name).and_then(Json::as_str).and_then(decode) {
                    taken.insert(name.clone(), text.into());
                    data.remove(name);
                }
            }
        }
        if json["data"].as_object().is_some_and(Map::is_empty) && like[0].get("data").is_none() {
            json.as_object_mut().map(|o| o.remove("data"));
        }
        json["stringData"] = taken.into();
    }
    if let Some(like) = like.first() {
        let mut spelled = to_json(like);
        if ports(&mut spelled).all(|p| !p.contains_key("protocol")) {
            ports(&mut json).filter(|p| p.get("protocol").is_some_and(|v| v == PROTOCOL)).for_each(|p| drop(p.remove("protocol")));
        }
        with_nulls(&mut json, &spelled);
    }
    let mut value = marked(implied_from_json(&json));
    for path in like.iter().flat_map(|v| v.secret_paths()) {
        value.mark_secret(&until_list(&path).0);
    }
    value
}

/// What is written as null and is not there is spelled so again.
fn with_nulls(json: &mut Json, like: &Json) {
    let (Json::Object(entries), Json::Object(like)) = (json, like) else { return };
    for (name, below) in like {
        match entries.get_mut(name) {
            Some(entry) => with_nulls(entry, below),
            None if below.is_null() => drop(entries.insert(name.clone(), Json::Null)),
            None => {}
        }
    }
}

/// Lists may have changed their order: all of one with a secret in it is secret.
fn until_list(path: &Path) -> Path {
    Path(path.0.iter().take_while(|s| matches!(s, PathStep::Name(_))).cloned().collect())
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
