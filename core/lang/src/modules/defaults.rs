//! `provider` blocks in modules: what data sources that give connections take for granted there, and in the modules that are called
//! there. What such a data source does not say itself is as if it were written in it, so that the connection carries it wherever it goes.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Attribute, Connection, Diagnostic, Diagnostics, Looking, Mode, Object, Schema, Value};

use super::{Name, Sort, names_in_body};
use crate::attributes::body_object;
use crate::config::{Config, ResourceBlock};
use crate::ephemeral;
use crate::eval::Errors;
use crate::evaluator::Evaluator;
use crate::scope::{Scope, Site};
use crate::settings::{provider_blocks, provider_body};
use crate::syntax::{Block, Body};

const OF_ALL: &str =
    "What a provider block says is for all that is in its module, so it can't be made of resources, data sources and modules there.";

/// A `provider` block of a module.
#[derive(Clone)]
pub(crate) struct Defaults {
    body: Body,
    /// What its arguments need.
    pub(super) names: Vec<Name>,
}

impl Config {
    /// The providers that this module has a `provider` block of its own for; of the root module none, as its blocks hold for all.
    pub fn defaults(&self) -> impl Iterator<Item = &str> {
        self.defaults.keys().map(String::as_str)
    }
}

/// The `provider` blocks of a module, by the provider's name. What has a mistake is left out.
pub(super) fn read(config: &Config, blocks: &[Block], diagnostics: &mut Diagnostics) -> BTreeMap<String, Defaults> {
    let mut all = BTreeMap::new();
    for (name, block) in provider_blocks(config, &blocks.iter().collect::<Vec<_>>(), diagnostics) {
        let Some(driver) = config.registry.provider(name) else { continue };
        let mut found = Diagnostics::new();
        let body = provider_body(config, block, driver.schema(), OF_ALL, &mut found);
        of_root(&**driver, &body, &mut found);
        let failed = found.has_errors();
        diagnostics.extend(found);
        if !failed {
            let mut names = BTreeSet::new();
            names_in_body(&body, &mut names);
            all.insert(name.to_owned(), Defaults { body, names: names.into_iter().collect() });
        }
    }
    all
}

/// Refuses what no connection carries, and so can't differ by module.
fn of_root(driver: &dyn Looking, body: &Body, diagnostics: &mut Diagnostics) {
    let data = driver.data_schemas();
    let carries = |schema: &Schema, name: &str| {
        schema.connection == Connection::Arguments && schema.attribute(name).is_some_and(Attribute::is_configurable)
    };
    let is_carried = |name: &str| data.iter().any(|(_, schema)| carries(schema, name));
    for attribute in body.attributes.iter().filter(|a| driver.schema().attribute(&a.name).is_some() && !is_carried(&a.name)) {
        let detail = format!("\"{}\" is no part of a connection: it holds for the whole configuration.", attribute.name);
        let error = Diagnostic::error("Argument of the root module", detail).with_span(Some(attribute.name_span));
        diagnostics.push(error.with_hint(format!("Move it to the block provider \"{}\" of the root module.", driver.name())));
    }
}

/// What the block of an instance of a module says; null where it says nothing.
pub(super) fn value(evaluator: &Evaluator<'_>, module: usize, provider: &str, errors: &mut Errors) -> Option<Object> {
    let defaults = evaluator.config.home(module).defaults.get(provider)?;
    // What is not said here may be said by a module around.
    let mut schema = evaluator.config.registry.provider(provider)?.schema().clone();
    schema.attributes.iter_mut().for_each(|a| a.default = None);
    let site = Site { of_run: true, ..Site::in_module(module) };
    let mut object = body_object(evaluator, &schema, &defaults.body, &Scope::new(&site), errors);
    for attribute in &defaults.body.attributes {
        let Some(value) = object.get_mut(&attribute.name).filter(|v| v.contains_ephemeral()) else { continue };
        errors.push(ephemeral::default_of_module(&attribute.name, attribute.expr.span));
        *value = Value::unknown(value.ty()).secret_if(value.contains_secret());
    }
    schema.mark(&mut object);
    Some(object)
}

/// Gives a data source what it does not say itself: of each argument what the nearest module around it says.
pub(crate) fn give_defaults(evaluator: &Evaluator<'_>, block: &ResourceBlock, object: &mut Object) {
    let Some(provider) = taken_from(evaluator.config, block) else { return };
    for module in around(evaluator.config, block.module) {
        let Some(said) = evaluator.named(module, Sort::Provider, provider) else { continue };
        for (name, default) in said.as_entries().into_iter().flatten() {
            if let Some(value) = object.get_mut(name).filter(|v| v.is_null()) {
                *value = default.clone().marked(value.marks());
            }
        }
    }
}

/// What a block needs because of what it is given: names, by the instance of a module that they are in.
pub(super) fn needs<'c>(config: &'c Config, block: &ResourceBlock) -> Vec<(usize, &'c [Name])> {
    let Some(provider) = taken_from(config, block) else { return Vec::new() };
    let said = |module| Some((module, config.home(module).defaults.get(provider)?.names.as_slice()));
    around(config, block.module).filter_map(said).collect()
}

/// The provider whose defaults a block takes from the modules around it: a data source that gives a connection.
fn taken_from(config: &Config, block: &ResourceBlock) -> Option<&'static str> {
    if block.module == 0 || block.address.mode != Mode::Data {
        return None;
    }
    let entry = config.registry.data_source(&block.address.kind)?;
    (entry.schema.connection == Connection::Arguments).then(|| entry.driver.name())
}

/// An instance of a module and those around it, the nearest first, without the root: what that says is known to the provider itself.
fn around(config: &Config, module: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(module), |m| config.modules.get(*m).map(|i| i.parent)).take_while(|m| *m > 0)
}
