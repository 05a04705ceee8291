//! The configuration as `show -json` of a plan gives it: which blocks, outputs, variables and modules there are, and what stands in them. Policies
//! ask here what refers to what, which no value tells. No secret: what an argument may not show is left out.

use std::collections::BTreeMap;

use karmaform_lang::{Config, ModuleCall, Output, Said, Variable, Written};
use karmaform_model::{Address, Catalog, Mode, ResourceEntry, ResourceSpec, Schema};
use serde_json::{Map, Value as Json, json};

use super::plan::COMPOSITES;
use super::{known, naming, provider_name};
use crate::ui::resource::schema_of;

/// The whole of it.
pub(super) fn configuration(config: &Config, registry: &Catalog) -> Json {
    let mut providers = Map::new();
    let root = module(config, registry, &Place::default(), &mut providers);
    let mut out = json!({ "root_module": root });
    if !providers.is_empty() {
        out["provider_config"] = Json::Object(providers);
    }
    out
}

/// Where a module stands, and the keys of the providers that what calls it uses: a module takes these over, as in Terraform.
#[derive(Default)]
struct Place {
    path: String,
    keys: BTreeMap<String, String>,
}

impl Place {
    /// The key of a provider here; told of in `all` if it is the first that uses it.
    fn key(&self, provider: &str, all: &mut Map<String, Json>) -> String {
        self.keys.get(provider).cloned().unwrap_or_else(|| self.own_key(provider, all))
    }

    /// The key of a provider that is used here first, or has a block here.
    fn own_key(&self, provider: &str, all: &mut Map<String, Json>) -> String {
        let mut entry = json!({ "name": provider, "full_name": provider_name(provider) });
        let key = if self.path.is_empty() { provider.to_owned() } else { format!("{}:{provider}", self.path) };
        if !self.path.is_empty() {
            entry["module_address"] = json!(self.path);
        }
        all.insert(key.clone(), entry);
        key
    }
}

/// What stands in one directory, and what it calls.
fn module(config: &Config, registry: &Catalog, place: &Place, providers: &mut Map<String, Json>) -> Json {
    let mut keys: BTreeMap<String, String> = config.defaults().map(|p| (p.to_owned(), place.own_key(p, providers))).collect();
    let provider = |a: &Address| match a.mode {
        Mode::Data => registry.data_source(&a.kind).map(|e| e.driver.name()),
        Mode::Managed => match registry.resource(&a.kind) {
            Some(ResourceEntry::Type(driver, _)) => Some(driver.name()),
            _ => None,
        },
    };
    let resources: Vec<Json> = config
        .blocks
        .values()
        .filter(|block| block.address.module.is_empty())
        .map(|block| {
            let mut out = naming(&block.address, &block.address.kind);
            let provider = provider(&block.address).unwrap_or(COMPOSITES);
            let key = keys.entry(provider.to_owned()).or_insert_with(|| place.key(provider, providers));
            out.insert("provider_config_key".into(), json!(key));
            let schema = schema_of(registry, block.address.mode, &block.address.kind);
            let mut written = block.written(config);
            if let Some(ResourceEntry::Type(_, spec)) =
                registry.resource(&block.address.kind).filter(|_| block.address.mode == Mode::Managed)
            {
                mark(&mut written, spec);
            }
            let expressions = expressions(&written, schema);
            if !expressions.is_empty() {
                out.insert("expressions".into(), Json::Object(expressions));
            }
            out.insert("schema_version".into(), json!(schema.map_or(0, |s| s.version)));
            repeats(&mut out, block.written_repeats(config));
            depends_on(&mut out, &block.written_needs());
            Json::Object(out)
        })
        .collect();
    let outputs: Map<_, _> = config.outputs.iter().map(|(n, o)| (n.clone(), output(o, config))).collect();
    let variables: Map<_, _> = config.variables.iter().map(|(n, v)| (n.clone(), variable(v))).collect();
    let mut called = Map::new();
    for (name, call) in &config.calls {
        let path = format!("{}{}module.{name}", place.path, if place.path.is_empty() { "" } else { "." });
        let inside = Place { path, keys: keys.clone() };
        called.insert(name.clone(), module_call(call, config, registry, &inside, providers));
    }
    let mut out = json!({});
    for (key, all) in [("outputs", outputs), ("module_calls", called), ("variables", variables)] {
        if !all.is_empty() {
            out[key] = Json::Object(all);
        }
    }
    if !resources.is_empty() {
        out["resources"] = Json::Array(resources);
    }
    out
}

fn output(output: &Output, config: &Config) -> Json {
    let mut out = Map::new();
    if output.sensitive {
        out.insert("sensitive".into(), json!(true));
    }
    out.insert("expression".into(), expression(&output.written(config), output.sensitive));
    depends_on(&mut out, output.written_needs());
    if let Some(text) = &output.description {
        out.insert("description".into(), json!(text));
    }
    Json::Object(out)
}

fn variable(variable: &Variable) -> Json {
    let mut out = Map::new();
    if let Some(default) = variable.default.as_ref().filter(|_| !variable.sensitive) {
        out.insert("default".into(), json!(known(default)));
    }
    if let Some(text) = &variable.description {
        out.insert("description".into(), json!(text));
    }
    if variable.sensitive {
        out.insert("sensitive".into(), json!(true));
    }
    Json::Object(out)
}

fn depends_on(out: &mut Map<String, Json>, needs: &[String]) {
    if !needs.is_empty() {
        out.insert("depends_on".into(), json!(needs));
    }
}

/// Marks what is secret by what it is: the data of a manifest, for one, if that is of a Secret.
fn mark(written: &mut Written, spec: &dyn ResourceSpec) {
    let constant = |(name, said): (&String, &Said)| match said {
        Said::Constant(value) => Some((name.clone(), value.clone())),
        Said::Made(_) => None,
    };
    let derived = spec.derived(written.arguments.iter().filter_map(constant).collect());
    for (name, said) in &mut written.arguments {
        if let (Said::Constant(value), Some(marked)) = (said, derived.get(name)) {
            *value = marked.clone();
        }
    }
}

fn module_call(call: &ModuleCall, config: &Config, registry: &Catalog, inside: &Place, providers: &mut Map<String, Json>) -> Json {
    let is_hidden = |name: &str| call.unit().and_then(|u| u.variables.get(name)).is_none_or(|v| v.sensitive);
    let given: Map<_, _> = call.written(config).iter().map(|(n, said)| (n.clone(), expression(said, is_hidden(n)))).collect();
    let mut out = Map::new();
    out.insert("source".into(), json!(call.source));
    if !given.is_empty() {
        out.insert("expressions".into(), Json::Object(given));
    }
    repeats(&mut out, call.written_repeats(config));
    depends_on(&mut out, call.written_needs());
    if let Some(unit) = call.unit() {
        out.insert("module".into(), module(unit, registry, inside, providers));
    }
    Json::Object(out)
}

fn repeats(out: &mut Map<String, Json>, (count, for_each): (Option<Said>, Option<Said>)) {
    for (key, said) in [("count_expression", count), ("for_each_expression", for_each)] {
        let said = said.map(|s| expression(&s, false)).filter(|e| e.as_object().is_none_or(|e| !e.is_empty()));
        if let Some(said) = said {
            out.insert(key.into(), said);
        }
    }
}

/// Arguments and nested blocks, the latter as lists.
fn expressions(written: &Written, schema: Option<&Schema>) -> Map<String, Json> {
    let is_hidden = |name: &str| schema.is_none_or(|s| s.attribute(name).is_none_or(|a| a.secret || a.write_only));
    let arguments = written.arguments.iter().map(|(name, said)| (name.clone(), expression(said, is_hidden(name))));
    let of = |(name, blocks): (&String, &Vec<Written>)| {
        let schema = schema.and_then(|s| s.block(name)).map(|b| &b.schema);
        let all: Vec<Json> = blocks.iter().map(|b| Json::Object(expressions(b, schema))).collect();
        (name.clone(), Json::Array(all))
    };
    let blocks: BTreeMap<_, _> = written.blocks.iter().map(of).collect();
    arguments.chain(blocks).collect()
}

/// One expression: a constant, unless it is hidden, or what it is made of.
fn expression(said: &Said, is_hidden: bool) -> Json {
    match said {
        Said::Constant(value) if !is_hidden => json!({ "constant_value": known(value) }),
        Said::Made(references) if !references.is_empty() => json!({ "references": references }),
        Said::Constant(_) | Said::Made(_) => json!({}),
    }
}
