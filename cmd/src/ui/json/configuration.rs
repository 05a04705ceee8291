//! The configuration as `show -json` of a plan gives it: which blocks, outputs, variables and modules there are, and what stands in them. Policies
//! ask here what refers to what, which no value tells. No secret: what an argument may not show is left out.

use std::collections::BTreeMap;

use karmaform_lang::{Config, ModuleCall, Said, Written};
use karmaform_model::{Address, Catalog, Mode, ResourceEntry, ResourceSpec, Schema};
use serde_json::{Map, Value as Json, json};

use super::plan::COMPOSITES;
use super::{known, naming, provider_name};
use crate::ui::resource::schema_of;

/// The whole of it.
pub(super) fn configuration(config: &Config, registry: &Catalog) -> Json {
    let providers: Map<_, _> = config.providers.keys().map(|n| (n.clone(), json!({ "name": n, "full_name": provider_name(n) }))).collect();
    json!({ "provider_config": providers, "root_module": module(config, registry) })
}

/// What stands in one directory, and what it calls.
fn module(config: &Config, registry: &Catalog) -> Json {
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
            out.insert("provider_config_key".into(), json!(provider(&block.address).unwrap_or(COMPOSITES)));
            let schema = schema_of(registry, block.address.mode, &block.address.kind);
            let mut written = block.written();
            if let Some(ResourceEntry::Type(_, spec)) =
                registry.resource(&block.address.kind).filter(|_| block.address.mode == Mode::Managed)
            {
                mark(&mut written, spec);
            }
            out.insert("expressions".into(), Json::Object(expressions(&written, schema)));
            out.insert("schema_version".into(), json!(schema.map_or(0, |s| s.version)));
            repeats(&mut out, block.written_repeats());
            let mut needs: Vec<_> = block.references.iter().map(|r| r.address.configuration().to_string()).collect();
            needs.sort();
            needs.dedup();
            if !needs.is_empty() {
                out.insert("depends_on".into(), json!(needs));
            }
            Json::Object(out)
        })
        .collect();
    let output = |o: &karmaform_lang::Output| json!({ "sensitive": o.sensitive, "expression": expression(&o.written(), o.sensitive) });
    let outputs: Map<_, _> = config.outputs.iter().map(|(n, o)| (n.clone(), output(o))).collect();
    let variables: Map<_, _> = config.variables.iter().map(|(n, v)| (n.clone(), json!({ "sensitive": v.sensitive }))).collect();
    let mut out = json!({ "outputs": outputs, "resources": resources, "variables": variables });
    if !config.calls.is_empty() {
        let called = config.calls.iter().map(|(name, call)| (name.clone(), module_call(call, registry)));
        out["module_calls"] = called.collect::<Map<_, _>>().into();
    }
    out
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

fn module_call(call: &ModuleCall, registry: &Catalog) -> Json {
    let is_hidden = |name: &str| call.unit().and_then(|u| u.variables.get(name)).is_none_or(|v| v.sensitive);
    let given: Map<_, _> = call.written().iter().map(|(n, said)| (n.clone(), expression(said, is_hidden(n)))).collect();
    let mut out = Map::new();
    out.insert("source".into(), json!(call.source));
    out.insert("expressions".into(), Json::Object(given));
    repeats(&mut out, call.written_repeats());
    if let Some(unit) = call.unit() {
        out.insert("module".into(), module(unit, registry));
    }
    Json::Object(out)
}

fn repeats(out: &mut Map<String, Json>, (count, for_each): (Option<Said>, Option<Said>)) {
    for (key, said) in [("count_expression", count), ("for_each_expression", for_each)] {
        if let Some(said) = said {
            out.insert(key.into(), expression(&said, false));
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
