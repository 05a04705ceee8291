//! Loading: texts and variable values to a [`Config`], in stages that each go on after errors.

use std::collections::BTreeMap;

use karmaform_model::{Address, Catalog, Diagnostic, Diagnostics, Mode};

use crate::blocks::{check_body, check_references};
use crate::config::{Config, Output, Reference, Repeat, Repetition, ResourceBlock, Settings};
use crate::context::Context;
use crate::decode::{self, Shape, check_shape, literal_bool, literal_text};
use crate::given::{self, VariableInputs};
use crate::locals::{Locals, push_new};
use crate::source::Sources;
use crate::statics::{self, Place};
use crate::syntax::{Block, Body, parse_body};
use crate::{expand, lifecycle, policies, removed, settings, suggest, variables};

/// Loads a configuration. It comes with everything that could be read, so that one run shows many mistakes; if there are errors, it must
/// not be planned.
pub fn load(sources: &Sources, inputs: &VariableInputs, context: &Context, registry: &Catalog) -> (Config, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let variable_files: Vec<_> = inputs.files().collect();
    let mut bodies = Vec::new();
    let mut incomplete = false;
    for id in sources.ids().filter(|id| !variable_files.contains(id)) {
        let parsed = parse_body(id, &sources.get(id).text);
        incomplete |= parsed.broken;
        diagnostics.extend(parsed.diagnostics);
        bodies.push(parsed.body);
    }
    let mut config = Config {
        settings: Settings::default(),
        variables: BTreeMap::new(),
        outputs: BTreeMap::new(),
        providers: BTreeMap::new(),
        blocks: BTreeMap::new(),
        removed: BTreeMap::new(),
        policies: BTreeMap::new(),
        missing_variables: Vec::new(),
        locals: Locals::default(),
        context: context.clone(),
        registry: registry.clone(),
        incomplete,
    };
    let blocks = sort_out(bodies, &mut diagnostics);

    let declared = declare_variables(&config, &blocks.variables, &mut diagnostics);
    let given = given::collect(sources, inputs, &declared, incomplete, &mut diagnostics);
    let (variables, missing) = variables::assign(&config, &declared, &given, &mut diagnostics);
    config.variables = variables;
    config.missing_variables = missing;

    config.locals = read_locals(&blocks.locals, &mut diagnostics);
    diagnostics.extend(config.locals.connect());
    let mut resources = BTreeMap::new();
    for block in blocks.resources {
        read_resource(&config, block, &mut resources, &mut diagnostics);
    }
    config.blocks = resources;
    config.removed = removed::read(&config, &blocks.removed, &mut diagnostics);

    diagnostics.extend(variables::validate(&config, &declared, &given));
    check_locals(&config, &mut diagnostics);
    config.settings = settings::settings(&config, &blocks.settings.iter().collect::<Vec<_>>(), &mut diagnostics);
    config.providers = settings::providers(&config, &blocks.providers.iter().collect::<Vec<_>>(), &mut diagnostics);
    connect_resources(&mut config, &mut diagnostics);
    config.outputs = read_outputs(&config, &blocks.outputs, &mut diagnostics);
    config.policies = policies::read(&config, &blocks.policies, &mut diagnostics);
    // As a reader goes through the texts, whatever stage found it.
    let mut sorted: Vec<_> = diagnostics.into_iter().collect();
    sorted.sort_by_key(|d| d.span.map(|s| (s.file, s.start)));
    (config, sorted.into_iter().collect())
}

/// The top-level blocks by kind.
#[derive(Default)]
struct TopLevel {
    settings: Vec<Block>,
    variables: Vec<Block>,
    locals: Vec<Block>,
    outputs: Vec<Block>,
    providers: Vec<Block>,
    resources: Vec<Block>,
    removed: Vec<Block>,
    policies: Vec<Block>,
}

const KNOWN: [&str; 9] = ["karmaform", "variable", "locals", "output", "data", "resource", "provider", "removed", "policy"];

fn sort_out(bodies: Vec<Body>, diagnostics: &mut Diagnostics) -> TopLevel {
    let mut all = TopLevel::default();
    for body in bodies {
        for attribute in &body.attributes {
            let error = Diagnostic::error("Argument outside of a block", format!("\"{}\" stands in no block.", attribute.name));
            diagnostics.push(
                error
                    .with_span(Some(attribute.name_span))
                    .with_hint("For a value of your own use locals { ... }; values of variables go into a variables file (*.kfvars.hcl)."),
            );
        }
        for block in body.blocks {
            let list = match block.kind.as_str() {
                "karmaform" => &mut all.settings,
                "variable" => &mut all.variables,
                "locals" => &mut all.locals,
                "output" => &mut all.outputs,
                "provider" => &mut all.providers,
                "resource" | "data" => &mut all.resources,
                "removed" => &mut all.removed,
                "policy" => &mut all.policies,
                _ => {
                    diagnostics.push(unknown_block(&block));
                    continue;
                }
            };
            list.push(block);
        }
    }
    all
}

fn unknown_block(block: &Block) -> Diagnostic {
    let name = block.kind.as_str();
    let error = match name {
        "terraform" => Diagnostic::error("Block of another tool", "Settings stand in a block \"karmaform\" here.").with_hint(
            "Write karmaform { required_version = ..., backend ... }. Providers are built in: required_providers is not needed.",
        ),
        "module" | "moved" | "import" | "check" | "ephemeral" | "action" => {
            Diagnostic::error("Block not supported", format!("This version does not know the block \"{name}\"."))
        }
        _ => {
            let error = Diagnostic::error("Unknown block", format!("There is no top-level block \"{name}\"."));
            error.with_hint(suggest::hint(name, KNOWN).unwrap_or_else(|| format!("There are {}.", suggest::listed(KNOWN))))
        }
    };
    error.with_span(Some(block.kind_span))
}

fn declare_variables(config: &Config, blocks: &[Block], diagnostics: &mut Diagnostics) -> BTreeMap<String, variables::Declaration> {
    let mut declared: BTreeMap<String, variables::Declaration> = BTreeMap::new();
    for block in blocks {
        let Some((name, declaration)) = variables::declare(config, block, diagnostics) else { continue };
        match declared.get(&name) {
            Some(first) => diagnostics.push(decode::double(&format!("the variable \"{name}\""), declaration.span, first.span)),
            None => drop(declared.insert(name, declaration)),
        }
    }
    declared
}

fn read_locals(blocks: &[Block], diagnostics: &mut Diagnostics) -> Locals {
    let mut locals = Locals::default();
    for block in blocks {
        decode::labels(block, [], diagnostics);
        for nested in &block.body.blocks {
            let error = Diagnostic::error("Block in locals", "A \"locals\" block holds only NAME = VALUE lines.");
            diagnostics.push(error.with_span(Some(nested.span)).with_hint("For an object write NAME = { ... } with the equals sign."));
        }
        for attribute in &block.body.attributes {
            if let Some(first) = locals.add(attribute.name.clone(), attribute.name_span, attribute.expr.clone()) {
                diagnostics.push(decode::double(&format!("the local \"{}\"", attribute.name), attribute.name_span, first));
            }
        }
    }
    locals
}

fn check_locals(config: &Config, diagnostics: &mut Diagnostics) {
    for (_, local) in config.locals.iter() {
        diagnostics.extend(statics::check(config, &local.expr, Place::default(), &mut Vec::new()));
    }
}

fn read_resource(config: &Config, block: Block, resources: &mut BTreeMap<Address, ResourceBlock>, diagnostics: &mut Diagnostics) {
    let Some([kind, name]) = decode::labels(&block, ["TYPE", "NAME"], diagnostics) else { return };
    let (Some(kind_name), Some(name)) = (decode::name(kind, diagnostics), decode::name(name, diagnostics)) else { return };
    let address = match block.kind.as_str() {
        "data" => Address::data(kind_name, name),
        _ => Address::managed(kind_name, name),
    };
    if let Some(first) = resources.get(&address) {
        diagnostics.push(decode::double(&address.to_string(), block.span, first.span));
        return;
    }
    let mut found = Diagnostics::new();
    let schema = config.schema(&address);
    match schema {
        Some(schema) => check_body(schema, &block.body, &address.to_string(), &block, true, &mut found),
        None => found.push(unknown_type(&config.registry, &address).with_span(Some(kind.span))),
    }
    let (lifecycle, preconditions) = lifecycle::read(&block.body, schema, address.mode, &mut found);
    let count = block.body.attribute("count").map(|a| a.expr.clone());
    let for_each = block.body.attribute("for_each").map(|a| a.expr.clone());
    let repeat = match (count, for_each) {
        (None, None) => Repeat::None,
        (Some(count), None) => Repeat::Count(count),
        (None, Some(for_each)) => Repeat::ForEach(for_each),
        (Some(count), Some(for_each)) => {
            let error = Diagnostic::error("count and for_each", "A block has either \"count\" or \"for_each\".");
            found.push(error.with_span(Some(count.span)).with_label(for_each.span, "and this").with_hint("Remove one of the two."));
            Repeat::Wrong
        }
    };
    diagnostics.extend(found.into_iter().map(|d| d.at(&address)));
    resources.insert(
        address.clone(),
        ResourceBlock {
            address,
            span: block.span,
            repetition: Repetition::Single,
            lifecycle,
            references: Vec::new(),
            body: block.body,
            repeat,
            preconditions,
        },
    );
}

/// A resource type or data source that no provider has.
pub(crate) fn unknown_type(registry: &Catalog, address: &Address) -> Diagnostic {
    let kind = address.kind.as_str();
    let (what, names, other) = match address.mode {
        Mode::Managed => ("resource type", registry.resource_names(), registry.data_source(kind).is_some()),
        Mode::Data => ("data source", registry.data_names(), registry.resource(kind).is_some()),
    };
    let error = Diagnostic::error(format!("Unknown {what}"), format!("There is no {what} \"{kind}\"."));
    if other {
        let word = if address.mode == Mode::Managed { "data" } else { "resource" };
        return error.with_hint(format!("Did you mean {word} \"{kind}\"?"));
    }
    match suggest::hint(kind, names) {
        Some(hint) => error.with_hint(hint),
        None => error.with_hint("See the reference for what there is."),
    }
}

/// References between blocks; then, as these are known, the instances.
fn connect_resources(config: &mut Config, diagnostics: &mut Diagnostics) {
    let mut needs = BTreeMap::new();
    let mut all: BTreeMap<Address, (Vec<Reference>, Vec<Reference>)> = BTreeMap::new();
    for (address, block) in &config.blocks {
        let mut found = Diagnostics::new();
        let mut references = Vec::new();
        if let Repeat::Count(expr) | Repeat::ForEach(expr) = &block.repeat {
            let mut needed = Vec::new();
            found.extend(expand::needs(config, address, expr, &mut needed));
            references.extend(needed.iter().cloned());
            // An expression with a mistake is not evaluated.
            if !found.has_errors() {
                needs.insert(address.clone(), needed);
            }
        }
        let (each, count) =
            (matches!(block.repeat, Repeat::ForEach(_) | Repeat::Wrong), matches!(block.repeat, Repeat::Count(_) | Repeat::Wrong));
        let place = Place { own: Some(address), each, count, ..Place::default() };
        found.extend(inside(config, block, &block.body, place, &mut references));
        let (triggers, more) = lifecycle::replace_triggered_by(config, block, place);
        found.extend(more);
        for trigger in &triggers {
            push_new(&mut references, trigger.clone());
        }
        diagnostics.extend(found.into_iter().map(|d| d.at(address)));
        all.insert(address.clone(), (references, triggers));
    }
    for (address, (references, triggers)) in all {
        if let Some(block) = config.blocks.get_mut(&address) {
            block.references = references;
            block.lifecycle.replace_triggered_by = triggers;
            if !matches!(block.repeat, Repeat::None) && !needs.contains_key(&address) {
                block.repeat = Repeat::Wrong;
            }
        }
    }
    let failed = diagnostics.has_errors();
    diagnostics.extend(expand::expand(config, &needs, failed));
}

/// What a block refers to, but for how many instances it has.
fn inside(config: &Config, block: &ResourceBlock, body: &Body, place: Place<'_>, references: &mut Vec<Reference>) -> Diagnostics {
    let mut found = check_references(config, body, place, true, references);
    for condition in &block.preconditions {
        for expr in [&condition.condition, &condition.message] {
            found.extend(statics::check(config, expr, place, references));
        }
    }
    if let Some(attribute) = body.attribute("depends_on") {
        found.extend(lifecycle::depends_on(config, &attribute.expr, place, references));
    }
    found
}

/// What a block refers to without these attributes. It has been checked.
pub(crate) fn references_without(config: &Config, block: &ResourceBlock, attributes: &[&str]) -> Vec<Reference> {
    let mut references = Vec::new();
    if let Repeat::Count(expr) | Repeat::ForEach(expr) = &block.repeat {
        let _ = expand::needs(config, &block.address, expr, &mut references);
    }
    let mut body = block.body.clone();
    body.attributes.retain(|a| !attributes.contains(&a.name.as_str()));
    let place = Place { own: Some(&block.address), each: true, count: true, ..Place::default() };
    let _ = inside(config, block, &body, place, &mut references);
    for trigger in &block.lifecycle.replace_triggered_by {
        push_new(&mut references, trigger.clone());
    }
    references
}

fn read_outputs(config: &Config, blocks: &[Block], diagnostics: &mut Diagnostics) -> BTreeMap<String, Output> {
    let mut outputs: BTreeMap<String, Output> = BTreeMap::new();
    for block in blocks {
        let Some(name) = decode::labels(block, ["NAME"], diagnostics).and_then(|[label]| decode::name(label, diagnostics)) else {
            continue;
        };
        let attributes = &["value", "description", "sensitive", "depends_on"];
        check_shape(&block.body, &Shape { what: "an \"output\" block", attributes, blocks: &["precondition"] }, diagnostics);
        let Some(value) = decode::required(block, "value", diagnostics) else { continue };
        let preconditions: Vec<_> = block.body.blocks("precondition").filter_map(|b| decode::condition(b, diagnostics)).collect();
        let mut references = Vec::new();
        let checked = preconditions.iter().flat_map(|c| [&c.condition, &c.message]).chain([&value]);
        for expr in checked {
            diagnostics.extend(statics::check(config, expr, Place::default(), &mut references));
        }
        if let Some(attribute) = block.body.attribute("depends_on") {
            diagnostics.extend(lifecycle::depends_on(config, &attribute.expr, Place::default(), &mut references));
        }
        let output = Output {
            sensitive: literal_bool(&block.body, "sensitive", diagnostics).unwrap_or_default(),
            description: literal_text(&block.body, "description", diagnostics),
            span: block.span,
            value,
            references,
            preconditions,
        };
        match outputs.get(name) {
            Some(first) => diagnostics.push(decode::double(&format!("the output \"{name}\""), output.span, first.span)),
            None => drop(outputs.insert(name.to_owned(), output)),
        }
    }
    outputs
}
