//! Reads `mock_provider` blocks: which providers are not asked, and what is said in their place.

use std::collections::BTreeMap;

use karmaform_model::{Catalog, Diagnostic, Diagnostics, Object, ResourceEntry, Schema, convert};

use super::{Mock, overrides};
use crate::config::Config;
use crate::decode::{self, Shape, check_shape};
use crate::suggest;
use crate::syntax::{Block, Body};
use crate::variables;

pub(super) fn read(config: &Config, block: &Block, all: &mut BTreeMap<String, Mock>, diagnostics: &mut Diagnostics) {
    let Some([label]) = decode::labels(block, ["NAME"], diagnostics) else { return };
    let name = label.text.as_str();
    if config.registry.provider(name).is_none() {
        let error = Diagnostic::error("Unknown provider", format!("There is no provider \"{name}\" in this version."));
        let names: Vec<_> = config.registry.providers().map(|p| p.name()).collect();
        let hint = suggest::hint(name, names.iter().copied()).unwrap_or_else(|| format!("There are {}.", suggest::listed(names)));
        diagnostics.push(error.with_span(Some(label.span)).with_hint(hint));
        return;
    }
    if all.contains_key(name) {
        let error = Diagnostic::error("Provider mocked twice", format!("The provider \"{name}\" is mocked in this file already."));
        diagnostics.push(error.with_span(Some(block.span)).with_hint("Write all of it in one block."));
        return;
    }
    let mut body = block.body.clone();
    take_unsupported(&mut body, "A mocked provider", diagnostics, |name| match name {
        "alias" => Some("There are no aliases: hosts and clusters are reached through connections, which are values. Leave it out."),
        "source" => Some("Write the mocked types into this block."),
        _ => None,
    });
    let blocks = &["mock_resource", "mock_data", overrides::RESOURCE, overrides::DATA];
    check_shape(&body, &Shape { what: "a \"mock_provider\" block", attributes: &[overrides::DURING], blocks }, diagnostics);
    let mut mock = Mock { all_at_plan: overrides::during(&body, diagnostics).unwrap_or(false), ..Mock::default() };
    for nested in &body.blocks {
        let (of, is_data) = match nested.kind.as_str() {
            overrides::RESOURCE | overrides::DATA => {
                overrides::read(config, nested, mock.all_at_plan, &mut mock.overrides, diagnostics);
                continue;
            }
            "mock_resource" => (&mut mock.resources, false),
            "mock_data" => (&mut mock.data, true),
            _ => continue,
        };
        let Some([label]) = decode::labels(nested, ["TYPE"], diagnostics) else { continue };
        let kind = label.text.as_str();
        let schema = match schema(&config.registry, name, kind, is_data) {
            Ok(schema) => schema,
            Err(error) => {
                diagnostics.push(error.with_span(Some(label.span)));
                continue;
            }
        };
        if of.contains_key(kind) {
            let error = Diagnostic::error("Type mocked twice", format!("\"{kind}\" is mocked in this block already."));
            diagnostics.push(error.with_span(Some(nested.span)).with_hint("Write all of it in one block."));
            continue;
        }
        of.insert(kind.to_owned(), defaults(config, nested, schema, diagnostics));
        let at_plan = overrides::during(&nested.body, diagnostics).unwrap_or(mock.all_at_plan);
        if at_plan && !is_data {
            mock.at_plan.insert(kind.to_owned());
        }
    }
    all.insert(name.to_owned(), mock);
}

/// Takes out arguments that Terraform has there and karmaform does not, and says so by a `hint`.
pub(super) fn take_unsupported(body: &mut Body, who: &str, diagnostics: &mut Diagnostics, hint: impl Fn(&str) -> Option<&'static str>) {
    body.attributes.retain(|attribute| {
        let Some(hint) = hint(&attribute.name) else { return true };
        let error = Diagnostic::error("Argument not supported", format!("{who} has no \"{}\" here.", attribute.name));
        diagnostics.push(error.with_span(Some(attribute.name_span)).with_hint(hint));
        false
    });
}

/// The schema of a type that must be this provider's.
fn schema<'a>(registry: &'a Catalog, provider: &str, kind: &str, is_data: bool) -> Result<&'a Schema, Diagnostic> {
    let what = if is_data { "data source" } else { "resource type" };
    let found = if is_data {
        registry.data_source(kind).map(|d| (d.driver.name(), d.schema))
    } else {
        match registry.resource(kind) {
            Some(ResourceEntry::Type(driver, spec)) => Some((driver.name(), spec.schema())),
            Some(ResourceEntry::Composite(_)) => {
                let detail = format!("\"{kind}\" is made of resources of several providers, and what it gives is made of theirs.");
                return Err(Diagnostic::error("Composite can't be mocked", detail)
                    .with_hint("Mock the providers of its parts: mock_provider \"ssh\" {}, \"kubernetes\", \"etcd\"."));
            }
            None => None,
        }
    };
    match found {
        Some((of, schema)) if of == provider => Ok(schema),
        Some((of, _)) => Err(Diagnostic::error("Type of another provider", format!("The {what} \"{kind}\" is of the provider \"{of}\"."))
            .with_hint(format!("Write it in mock_provider \"{of}\" {{ ... }}."))),
        None => {
            let names = if is_data { registry.data_names() } else { registry.resource_names() };
            let error = Diagnostic::error(format!("Unknown {what}"), format!("There is no {what} \"{kind}\"."));
            Err(match suggest::hint(kind, names) {
                Some(hint) => error.with_hint(hint),
                None => error.with_hint("See the reference for what there is."),
            })
        }
    }
}

fn defaults(config: &Config, block: &Block, schema: &Schema, diagnostics: &mut Diagnostics) -> Object {
    let what = format!("a \"{}\" block", block.kind);
    check_shape(&block.body, &Shape { what: &what, attributes: &["defaults", overrides::DURING], blocks: &[] }, diagnostics);
    let Some(attribute) = block.body.attribute("defaults") else { return Object::new() };
    let (value, found) = variables::constant(config, &attribute.expr);
    let failed = found.has_errors();
    diagnostics.extend(found);
    if failed {
        return Object::new();
    }
    let span = Some(attribute.expr.span);
    let Some(entries) = value.as_entries() else {
        let error = Diagnostic::error("Invalid defaults", "\"defaults\" must be an object: values by the name of an attribute.");
        diagnostics.push(error.with_span(span).with_hint("Write defaults = { NAME = VALUE }."));
        return Object::new();
    };
    overrides::warn_of_others(schema, entries, attribute.expr.span, diagnostics);
    let mut all = Object::new();
    for (name, value) in entries {
        let Some(attribute) = schema.attributes.iter().find(|a| a.is_computed() && a.name == name) else { continue };
        match convert(value, &attribute.ty) {
            Ok(value) => drop(all.insert(name.clone(), value)),
            Err(error) => {
                let detail = format!("\"{name}\" does not fit its type {}: {error}.", attribute.ty);
                diagnostics.push(Diagnostic::error("Invalid defaults", detail).with_span(span));
            }
        }
    }
    all
}
