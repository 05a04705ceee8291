//! One instance in the text of a state: what Terraform keeps of it in its own places, and in `private` what it has no place for.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::{ResourceState, Status, needs};
use crate::{Address, Key, Path, PathStep};

/// What Terraform has no place for; travels in `private`, which it keeps.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Private {
    /// What is needed directly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dependencies: Vec<Address>,
    /// What stood in the list for Terraform, as one number: if it made another list, that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    listed: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unfinished: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    protected: bool,
}

/// Writes it. `blocks`: what it depends on, as Terraform lists it.
pub(super) fn write(key: Option<&Key>, deposed: Option<&String>, resource: &ResourceState, blocks: &[&str]) -> Json {
    // Terraform refuses the file if an address here does not parse, so what it could not read goes to `private`.
    let exact = blocks.len() == resource.dependencies.len() && resource.dependencies.iter().all(|a| *a == a.configuration());
    let private = Private {
        dependencies: if exact { Vec::new() } else { resource.dependencies.clone() },
        listed: (!exact).then(|| needs::number_of(blocks.iter().copied())),
        unfinished: resource.status == Status::Unfinished,
        protected: resource.protected,
    };
    let mut out = Map::new();
    match key {
        Some(Key::Index(i)) => drop(out.insert("index_key".into(), json!(i))),
        Some(Key::Name(n)) => drop(out.insert("index_key".into(), json!(n))),
        None => {}
    }
    if resource.status == Status::Tainted {
        out.insert("status".into(), json!("tainted"));
    }
    if let Some(deposed) = deposed {
        out.insert("deposed".into(), json!(deposed));
    }
    out.insert("schema_version".into(), json!(resource.schema_version));
    out.insert("attributes".into(), Json::Object((*resource.attributes).clone()));
    out.insert("sensitive_attributes".into(), Json::Array(resource.secret_paths.iter().map(write_path).collect()));
    if private != Private::default() {
        out.insert("private".into(), json!(STANDARD.encode(serde_json::to_vec(&private).unwrap_or_default())));
    }
    if !blocks.is_empty() {
        out.insert("dependencies".into(), json!(blocks));
    }
    if resource.create_before_destroy {
        out.insert("create_before_destroy".into(), json!(true));
    }
    Json::Object(out)
}

/// Reads it.
///
/// # Errors
/// Says what of it is not as it should be.
pub(super) fn read(kind: &str, provider: &str, instance: &Json) -> Result<ResourceState, String> {
    if !instance.is_object() {
        return Err("it is no object".to_owned());
    }
    let private: Private = match optional(instance, "private", Json::as_str)? {
        None => Private::default(),
        Some(text) => {
            let bytes = STANDARD.decode(text).map_err(|_| "its \"private\" is not base64".to_owned())?;
            serde_json::from_slice(&bytes).unwrap_or_default()
        }
    };
    let status = match optional(instance, "status", Json::as_str)? {
        Some("tainted") => Status::Tainted,
        Some(other) => return Err(format!("it has the unknown status \"{other}\"")),
        None if private.unfinished => Status::Unfinished,
        None => Status::Ready,
    };
    let address = |d: &Json| {
        let text = d.as_str().ok_or_else(|| "\"dependencies\" holds something that is no address".to_owned())?;
        text.parse::<Address>().map_err(|e| format!("{e}"))
    };
    let listed = list(instance, "dependencies")?;
    let is_as_written = private.listed.is_some_and(|number| number == needs::number_of(listed.iter().filter_map(Json::as_str)));
    let mut dependencies = if is_as_written {
        private.dependencies
    } else {
        let listed = listed.iter().map(address).collect::<Result<Vec<_>, _>>()?;
        // Before there was such a number, what is kept here counted as long as it went with the list.
        let is_kept = private.listed.is_none() && !private.dependencies.is_empty();
        let goes_with = is_kept && private.dependencies.iter().all(|direct| listed.contains(&direct.configuration()));
        if goes_with { private.dependencies } else { listed }
    };
    // Texts have another order than addresses, and plans have that of addresses: the same needs must be equal.
    dependencies.sort_unstable();
    dependencies.dedup();
    Ok(ResourceState {
        resource_type: kind.to_owned(),
        provider: provider.to_owned(),
        schema_version: optional(instance, "schema_version", Json::as_u64)?.unwrap_or(0),
        attributes: optional(instance, "attributes", Json::as_object)?.cloned().unwrap_or_default().into(),
        secret_paths: list(instance, "sensitive_attributes")?
            .iter()
            .map(|path| read_path(path).ok_or_else(|| "\"sensitive_attributes\" holds something that is no path".to_owned()))
            .collect::<Result<_, _>>()?,
        dependencies,
        create_before_destroy: optional(instance, "create_before_destroy", Json::as_bool)?.unwrap_or(false),
        protected: private.protected,
        status,
    })
}

fn write_path(path: &Path) -> Json {
    let step = |s: &PathStep| match s {
        PathStep::Name(n) => json!({ "type": "get_attr", "value": n }),
        PathStep::Index(i) => json!({ "type": "index", "value": { "value": i, "type": "number" } }),
    };
    Json::Array(path.0.iter().map(step).collect())
}

fn read_path(json: &Json) -> Option<Path> {
    let step = |s: &Json| {
        let value = s.get("value")?;
        let value = value.get("value").unwrap_or(value);
        value
            .as_str()
            .map(|n| PathStep::Name(n.to_owned()))
            .or_else(|| value.as_u64().and_then(|i| usize::try_from(i).ok()).map(PathStep::Index))
    };
    json.as_array()?.iter().map(step).collect::<Option<_>>().map(Path)
}

/// What may be left out or null; anything else that is not as expected is an error and never taken for nothing: a state that is half
/// understood loses resources, and marks of secrets.
pub(super) fn optional<'a, T>(holder: &'a Json, name: &str, read: impl Fn(&'a Json) -> Option<T>) -> Result<Option<T>, String> {
    match holder.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(found) => read(found).map(Some).ok_or_else(|| format!("\"{name}\" is not what it should be")),
    }
}

pub(super) fn list<'a>(holder: &'a Json, name: &str) -> Result<&'a [Json], String> {
    Ok(optional(holder, name, Json::as_array)?.map_or(&[], Vec::as_slice))
}
