//! The state: what is remembered between runs. On disk it is Terraform's version-4 JSON, so that its tools read ours.

mod gone;
mod instance;
mod needs;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use crate::{Address, Checked, Content, Encoded, Key, Mode, ModuleStep, Path, Seal, SealError, Type, Value, from_json, to_json};
use instance::{list, optional};
use needs::Needs;

/// Whether an instance can be trusted to be as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Yes.
    #[default]
    Ready,
    /// A run started to make or change it and was not heard of again: look before you trust.
    Unfinished,
    /// It is damaged and is to be replaced.
    Tainted,
}

/// One resource instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceState {
    /// Its resource type; of a child not the composite's.
    pub resource_type: String,
    /// Its provider; a composite's own record has `karmaform`.
    pub provider: String,
    /// The schema version of `attributes`.
    pub schema_version: u64,
    /// As [`crate::Schema::encode`] gives them.
    pub attributes: Encoded,
    /// Paths whose secrecy comes from the configuration.
    pub secret_paths: Vec<Path>,
    /// What it depends on directly; orders deletes of what is not in the configuration any more.
    pub dependencies: Vec<Address>,
    /// `create_before_destroy` was in effect.
    pub create_before_destroy: bool,
    /// `prevent_destroy` was in effect: it holds even when the block is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// Whether to trust it.
    pub status: Status,
}

/// A root output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputState {
    /// Its value; secret if `sensitive`.
    pub value: Value,
    /// Marked `sensitive`.
    pub sensitive: bool,
}

/// A state at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Version of the tool that wrote it.
    pub tool_version: String,
    /// Identity of the state's history.
    pub lineage: String,
    /// Counts writes.
    pub serial: u64,
    /// Root outputs.
    pub outputs: BTreeMap<String, OutputState>,
    /// Instances by address; a deposed one has its key in `deposed`.
    pub resources: BTreeMap<Address, ResourceState>,
    /// Objects left over from a `create_before_destroy` replacement: address and 8 hexadecimal digits.
    pub deposed: BTreeMap<(Address, String), ResourceState>,
    /// What conditions said when it was written.
    pub checks: Vec<Checked>,
}

/// Far more writes than there will ever be, and far from where adding one overflows.
const HIGHEST_SERIAL: u64 = u64::MAX >> 2;

/// Why a text is no state.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum StateError {
    /// Not JSON.
    #[error("not a state file: {0}")]
    NotJson(String),
    /// Another version of the format.
    #[error("state format version {0} is not supported, only 4 is")]
    Version(String),
    /// A part that does not fit.
    #[error("{0}")]
    Part(String),
    /// It is encrypted and can't be read, or is not and should be.
    #[error(transparent)]
    Sealed(#[from] SealError),
}

/// What is stored together: module, mode, type and name.
type Group<'a> = (&'a [ModuleStep], Mode, String, String);

impl Snapshot {
    /// As version-4 JSON: two spaces, fixed order, one newline at the end. Equal states are equal bytes.
    pub fn to_text(&self) -> String {
        let mut groups: BTreeMap<Group<'_>, (String, Vec<Json>)> = BTreeMap::new();
        let all = self.resources.iter().map(|(a, r)| (a, None, r));
        let deposed = self.deposed.iter().map(|((a, d), r)| (a, Some(d), r));
        let mut lists: BTreeMap<Address, Vec<&str>> = BTreeMap::new();
        let needs = Needs::new(self.resources.iter().chain(self.deposed.iter().map(|((a, _), r)| (a, r))));
        for (address, deposed, resource) in all.chain(deposed) {
            let (name, key) = stored_name(address);
            let group = (address.module.as_slice(), address.mode, resource.resource_type.clone(), name);
            let provider = format!("provider[\"karmaform.io/karmaform/{}\"]", resource.provider);
            let provider =
                if resource.provider == "terraform" { "provider[\"terraform.io/builtin/terraform\"]".to_owned() } else { provider };
            groups.entry(group).or_insert_with(|| (provider, Vec::new())).1.push(instance::write(
                key,
                deposed,
                resource,
                lists.entry(address.configuration()).or_insert_with(|| needs.of(address)),
            ));
        }
        let resources: Vec<_> = groups
            .into_iter()
            .map(|((module, mode, kind, name), (provider, instances))| {
                let module = (!module.is_empty()).then(|| Address::of_module(module.to_vec()).to_string());
                let mut all: Vec<_> = module.map(|m| ("module", json!(m))).into_iter().collect();
                all.extend([("mode", json!(mode)), ("type", json!(kind)), ("name", json!(name)), ("provider", json!(provider))]);
                all.push(("instances", Json::Array(instances)));
                Ordered(all)
            })
            .collect();
        let outputs: Map<_, _> = self
            .outputs
            .iter()
            .map(|(name, o)| {
                let mut output = json!({ "value": to_json(&o.value), "type": o.value.ty().to_json() });
                if o.sensitive {
                    output["sensitive"] = json!(true);
                }
                (name.clone(), output)
            })
            .collect();
        #[derive(Serialize)]
        struct File<'a> {
            version: u32,
            terraform_version: &'a str,
            serial: u64,
            lineage: &'a str,
            outputs: Map<String, Json>,
            resources: Vec<Ordered>,
            check_results: Json,
        }
        let file = File {
            version: 4,
            terraform_version: &self.tool_version,
            serial: self.serial,
            lineage: &self.lineage,
            outputs,
            resources,
            check_results: crate::checked::to_stored(&self.checks),
        };
        let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
        text.push('\n');
        text
    }

    /// What is kept of it where this seals.
    ///
    /// # Errors
    /// If it can't be sealed.
    pub fn to_stored(&self, seal: &dyn Seal) -> Result<Vec<u8>, SealError> {
        seal.seal(&Content::State { lineage: self.lineage.clone(), serial: self.serial }, self.to_text().into_bytes())
    }

    /// Reads what was kept where this seals.
    ///
    /// # Errors
    /// If it can't be opened, or is no state.
    pub fn from_stored(bytes: &[u8], seal: &dyn Seal) -> Result<Self, StateError> {
        let plain = seal.open(&Content::State { lineage: String::new(), serial: 0 }, bytes)?;
        let text = std::str::from_utf8(&plain).map_err(|_| StateError::NotJson("it is not UTF-8 text".to_owned()))?;
        Self::from_text(text)
    }

    /// Reads [`Snapshot::to_text`], and what Terraform wrote.
    ///
    /// # Errors
    /// Says what is wrong and where; nothing is guessed.
    pub fn from_text(text: &str) -> Result<Self, StateError> {
        let file: Json = serde_json::from_str(text).map_err(|e| StateError::NotJson(e.to_string()))?;
        match file.get("version") {
            Some(v) if v.as_u64() == Some(4) => {}
            Some(v) => return Err(StateError::Version(v.to_string())),
            None => return Err(StateError::NotJson("it has no \"version\"".to_owned())),
        }
        let text_of = |name: &str| match file.get(name) {
            None | Some(Json::Null) => Ok(String::new()),
            Some(text) => text.as_str().map(str::to_owned).ok_or_else(|| StateError::Part(format!("\"{name}\" is no text"))),
        };
        let serial = match file.get("serial") {
            None | Some(Json::Null) => 0,
            Some(s) => {
                let serial = s.as_u64().ok_or_else(|| StateError::Part("\"serial\" is not a whole number".into()))?;
                // Every write adds one to it.
                if serial > HIGHEST_SERIAL {
                    return Err(StateError::Part(format!("\"serial\" is {serial}, which no state ever reaches")));
                }
                serial
            }
        };
        let mut snapshot = Self { tool_version: text_of("terraform_version")?, lineage: text_of("lineage")?, serial, ..Self::default() };
        match file.get("outputs") {
            None | Some(Json::Null) => {}
            Some(Json::Object(outputs)) => {
                for (name, output) in outputs {
                    // As in Terraform a null output is none; earlier versions stored it.
                    let output = read_output(name, output)?;
                    if !output.value.is_null() {
                        snapshot.outputs.insert(name.clone(), output);
                    }
                }
            }
            Some(_) => return Err(StateError::Part("\"outputs\" is no object".into())),
        }
        snapshot.checks = crate::checked::from_stored(file.get("check_results"));
        for resource in list(&file, "resources").map_err(StateError::Part)? {
            snapshot.read_resource(resource)?;
        }
        Ok(snapshot)
    }

    fn read_resource(&mut self, resource: &Json) -> Result<(), StateError> {
        let part = |what: &str| StateError::Part(format!("a resource has a wrong {what}"));
        let text = |name: &str| resource.get(name).and_then(Json::as_str).ok_or_else(|| part(&format!("\"{name}\"")));
        let mode = match text("mode")? {
            "managed" => Mode::Managed,
            "data" => Mode::Data,
            _ => return Err(part("\"mode\"")),
        };
        let module = match optional(resource, "module", Json::as_str).map_err(StateError::Part)? {
            None => Vec::new(),
            Some(text) => match text.parse::<Address>() {
                Ok(address) if address.is_module() => address.module,
                _ => return Err(part("\"module\"")),
            },
        };
        let (kind, name) = (text("type")?, text("name")?);
        let base = if name.contains('/') || name.contains('.') {
            let inside: Address = name.parse().map_err(|e: crate::AddressError| StateError::Part(e.to_string()))?;
            if inside.is_module() {
                return Err(part("\"name\""));
            }
            inside.in_module(&module)
        } else {
            Address { module, mode, ..Address::managed(kind, name) }
        };
        let provider = optional(resource, "provider", Json::as_str).map_err(StateError::Part)?.unwrap_or_default();
        let provider = provider.trim_end_matches("\"]").rsplit('/').next().unwrap_or_default().to_owned();
        if !resource.get("instances").is_some_and(Json::is_array) {
            return Err(part("\"instances\""));
        }
        for instance in list(resource, "instances").map_err(StateError::Part)? {
            let key = match instance.get("index_key") {
                None | Some(Json::Null) => base.key.clone(),
                Some(Json::String(s)) => Some(Key::Name(s.clone())),
                Some(n) => Some(Key::Index(n.as_u64().ok_or_else(|| part("\"index_key\""))?)),
            };
            let address = Address { key, ..base.clone() };
            let state = instance::read(kind, &provider, instance).map_err(|what| StateError::Part(format!("{address}: {what}")))?;
            let deposed = optional(instance, "deposed", Json::as_str);
            let double = match deposed.map_err(|what| StateError::Part(format!("{address}: {what}")))? {
                Some(deposed) => self.deposed.insert((address.clone(), deposed.to_owned()), state),
                None => self.resources.insert(address.clone(), state),
            };
            if double.is_some() {
                return Err(StateError::Part(format!("{address} is there twice")));
            }
        }
        Ok(())
    }
}

/// A child is stored under its own type, with its whole address as the name; which module that is in stands beside it.
fn stored_name(address: &Address) -> (String, Option<&Key>) {
    if address.is_child() { (address.outside_of_modules().to_string(), None) } else { (address.name.clone(), address.key.as_ref()) }
}

fn read_output(name: &str, output: &Json) -> Result<OutputState, StateError> {
    let ty = output.get("type").and_then(Type::from_json);
    let ty = ty.ok_or_else(|| StateError::Part(format!("output \"{name}\" has no valid type")))?;
    let value = from_json(output.get("value").unwrap_or(&Json::Null), &ty);
    let value = value.map_err(|e| StateError::Part(format!("output \"{name}\": {e}")))?;
    let sensitive = optional(output, "sensitive", Json::as_bool);
    let sensitive = sensitive.map_err(|what| StateError::Part(format!("output \"{name}\": {what}")))?.unwrap_or(false);
    Ok(OutputState { value: value.secret_if(sensitive), sensitive })
}

/// A JSON object that keeps the order it was made in.
struct Ordered(Vec<(&'static str, Json)>);

impl Serialize for Ordered {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(n, v)| (n, v)))
    }
}

#[cfg(test)]
mod tests;
