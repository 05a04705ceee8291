//! Loading: texts and variable values to a [`Config`], in stages that each go on after errors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmaform_model::{Address, Catalog, Diagnostic, Diagnostics, Mode};

use crate::blocks::{check_body, check_references, without_own_provider};
use crate::config::{Config, Lifecycle, Output, Reference, Repeat, Repetition, ResourceBlock};
use crate::context::Context;
use crate::decode::{self, Shape, check_shape, literal_bool, literal_text};
use crate::evaluator::{NothingKnown, Resolver};
use crate::given::{self, VariableInputs};
use crate::locals::{Locals, push_new};
use crate::modules::{self, Loader, Name, names_in_body, names_of};
use crate::source::Sources;
use crate::statics::{self, Place};
use crate::syntax::{Block, Body, parse_file};
use crate::{checks, ephemeral, imports, lifecycle, moved, overrides, policies, protection, removed, settings, suggest, variables};

/// Loads a configuration from its text alone. It comes with everything that could be read, so that one run shows many mistakes; if there
/// are errors, it must not be planned. What stands so often that the text does not say it is an error, and so is an import of what it does not
/// say.
pub fn load(sources: &Sources, inputs: &VariableInputs, context: &Context, registry: &Catalog) -> (Config, Diagnostics) {
    let (config, mut diagnostics) = load_with(sources, inputs, context, registry, &NothingKnown);
    diagnostics.extend(config.open.clone());
    diagnostics.extend(config.open_imports.values().map(|open| open.told.clone()));
    (config, sorted(diagnostics))
}

/// The same with what is known of instances. What stands so often that it is not known even so is no error: it is in [`Config::open`], and
/// the configuration has no instances of it. So it is with imports, which are in [`Config::open_imports`].
pub fn load_with(
    sources: &Sources,
    inputs: &VariableInputs,
    context: &Context,
    registry: &Catalog,
    known: &dyn Resolver,
) -> (Config, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let variable_files: Vec<_> = inputs.files().collect();
    let mut bodies = Vec::new();
    let mut incomplete = false;
    for id in sources.ids().filter(|id| !variable_files.contains(id)) {
        let parsed = parse_file(id, sources.get(id), registry);
        incomplete |= parsed.broken;
        diagnostics.extend(parsed.diagnostics);
        bodies.push((sources.get(id).path.clone(), parsed.body));
    }
    let mut config = Config::empty(context.clone(), registry.clone(), incomplete);
    let blocks = sort_out(overrides::merged(bodies, &mut diagnostics), &mut diagnostics);
    settings::of_terraform(&blocks.of_terraform, false, &mut diagnostics);

    config.overridden.clone_from(&inputs.overridden);
    config.declared = declare_variables(&config, &blocks.variables, &mut diagnostics);
    let given = given::collect(sources, inputs, &config, &mut diagnostics);
    let (variables, missing) = variables::assign(&config, &config.declared, &given, &mut diagnostics);
    config.variables = variables;
    if inputs.for_tests {
        config.undeclared = variables::of_nobody(&config, &given);
    }
    config.missing_variables = missing;

    let mut loader = Loader::new(context, registry, sources.files.len());
    let (settings, providers, policies) = (blocks.settings.clone(), blocks.providers.clone(), blocks.policies.clone());
    let imported = blocks.imports.clone();
    read_blocks(&mut config, blocks, &mut loader, &mut diagnostics);
    diagnostics.extend(config.outputs.iter().filter(|(_, o)| o.ephemeral).map(|(name, o)| ephemeral::root_output(name, o.span)));
    config.module_files = loader.files();

    variables::check_validations(&mut config, &mut diagnostics);
    diagnostics.extend(variables::validate(&config, &config.declared, &given));
    if given.unjudged {
        variables::unknown_where_refused(&mut config);
    }
    config.settings = settings::settings(&config, &settings.iter().collect::<Vec<_>>(), &mut diagnostics);
    config.providers = settings::providers(&config, &providers.iter().collect::<Vec<_>>(), &mut diagnostics);
    config.policies = policies::read(&config, &policies, &mut diagnostics);
    if inputs.is_for_any_values() {
        config.any_values = true;
        variables::all_unknown(&mut config);
    }
    modules::expand(&mut config, known, &mut diagnostics);
    diagnostics.extend(protection::refused(&config));
    let imports = imports::read(&config, known, &imported, &mut diagnostics);
    (config.imports, config.open_imports) = (imports.all, imports.open);
    (config, sorted(diagnostics))
}

/// As a reader goes through the texts, whatever stage found it.
fn sorted(diagnostics: Diagnostics) -> Diagnostics {
    let mut sorted: Vec<_> = diagnostics.into_iter().collect();
    sorted.sort_by_key(|d| d.span.map(|s| (s.file, s.start)));
    sorted.into_iter().collect()
}

/// Reads what the root and the unit of a module have in common. Variables are known by now.
pub(crate) fn read_blocks(config: &mut Config, blocks: TopLevel, loader: &mut Loader<'_>, diagnostics: &mut Diagnostics) {
    config.locals = read_locals(&blocks.locals, diagnostics);
    diagnostics.extend(config.locals.connect());
    config.calls = modules::read(config, &blocks.modules, loader, diagnostics);
    let mut resources = BTreeMap::new();
    for block in blocks.resources {
        read_resource(config, block, None, &mut resources, diagnostics);
    }
    for (name, block) in checks::data_of(&blocks.checks, diagnostics) {
        read_resource(config, block, Some(name), &mut resources, diagnostics);
    }
    config.blocks = resources;
    config.removed = removed::read(config, &blocks.removed, diagnostics);
    config.moved = moved::read(config, &blocks.moved, diagnostics);
    config.checks = checks::read(config, &blocks.checks, diagnostics);
    check_locals(config, diagnostics);
    connect_resources(config, diagnostics);
    config.outputs = read_outputs(config, &blocks.outputs, diagnostics);
    config.calls = modules::connect(config, diagnostics);
}

/// The top-level blocks by kind.
#[derive(Default)]
pub(crate) struct TopLevel {
    pub settings: Vec<Block>,
    /// `terraform`
    pub of_terraform: Vec<Block>,
    pub variables: Vec<Block>,
    pub locals: Vec<Block>,
    pub outputs: Vec<Block>,
    pub providers: Vec<Block>,
    pub resources: Vec<Block>,
    pub modules: Vec<Block>,
    pub removed: Vec<Block>,
    pub moved: Vec<Block>,
    pub policies: Vec<Block>,
    pub imports: Vec<Block>,
    pub checks: Vec<Block>,
}

const KNOWN: [&str; 13] = [
    "karmaform",
    "variable",
    "locals",
    "output",
    "data",
    "resource",
    "module",
    "provider",
    "moved",
    "removed",
    "import",
    "policy",
    "check",
];

pub(crate) fn sort_out(bodies: Vec<Body>, diagnostics: &mut Diagnostics) -> TopLevel {
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
                "terraform" => &mut all.of_terraform,
                "variable" => &mut all.variables,
                "locals" => &mut all.locals,
                "output" => &mut all.outputs,
                "provider" => &mut all.providers,
                "resource" | "data" => &mut all.resources,
                "module" => &mut all.modules,
                "moved" => &mut all.moved,
                "removed" => &mut all.removed,
                "import" => &mut all.imports,
                "policy" => &mut all.policies,
                "check" => &mut all.checks,
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
        "ephemeral" | "action" => Diagnostic::error("Block not supported", format!("This version does not know the block \"{name}\".")),
        _ => {
            let error = Diagnostic::slip("Unknown block", format!("There is no top-level block \"{name}\"."));
            error.with_hint(suggest::hint(name, KNOWN).unwrap_or_else(|| format!("There are {}.", suggest::listed(KNOWN))))
        }
    };
    error.with_span(Some(block.kind_span))
}

pub(crate) fn declare_variables(
    config: &Config,
    blocks: &[Block],
    diagnostics: &mut Diagnostics,
) -> BTreeMap<String, variables::Declaration> {
    let mut declared: BTreeMap<String, variables::Declaration> = BTreeMap::new();
    for block in blocks {
        let Some((name, declaration)) = variables::declare(config, block, diagnostics) else { continue };
        match declared.get_mut(&name) {
            Some(first) => {
                first.is_wrong = true;
                diagnostics.push(decode::double(&format!("the variable \"{name}\""), declaration.span, first.span));
            }
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
            // In JSON any text can stand there.
            if !decode::named(&attribute.name, attribute.name_span, diagnostics) {
                continue;
            }
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

fn read_resource(
    config: &Config,
    block: Block,
    check: Option<String>,
    resources: &mut BTreeMap<Address, ResourceBlock>,
    diagnostics: &mut Diagnostics,
) {
    let block = without_own_provider(block);
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
    let (lifecycle, conditions) = lifecycle::read(&block.body, schema, address.mode, &mut found);
    let repeat = repeat(&block.body, &mut found);
    diagnostics.extend(found.into_iter().map(|d| d.at(&address)));
    resources.insert(
        address.clone(),
        ResourceBlock {
            address,
            span: block.span,
            repetition: Repetition::Single,
            lifecycle,
            references: Vec::new(),
            names: names(&block.body),
            body: Arc::new(block.body),
            repeat,
            preconditions: conditions.before.into(),
            postconditions: conditions.after.into(),
            check,
            module: 0,
        },
    );
}

fn names(body: &Body) -> Arc<[Name]> {
    let mut names = BTreeSet::new();
    names_in_body(body, &mut names);
    names.into_iter().collect()
}

/// What `count` or `for_each` of a body say.
pub(crate) fn repeat(body: &Body, diagnostics: &mut Diagnostics) -> Repeat {
    let expr = |name: &str| body.attribute(name).map(|a| Arc::new(a.expr.clone()));
    match (expr("count"), expr("for_each")) {
        (None, None) => Repeat::None,
        (Some(count), None) => Repeat::Count(count),
        (None, Some(for_each)) => Repeat::ForEach(for_each),
        (Some(count), Some(for_each)) => {
            let error = Diagnostic::error("count and for_each", "A block has either \"count\" or \"for_each\".");
            let second = body.attribute("for_each").map_or(for_each.span, |a| a.name_span);
            diagnostics.push(error.with_span(Some(second)).with_label(count.span, "and this").with_hint("Remove one of the two."));
            Repeat::Wrong
        }
    }
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

/// References between blocks. How often they stand is decided when all modules are known.
fn connect_resources(config: &mut Config, diagnostics: &mut Diagnostics) {
    let mut all: BTreeMap<Address, (Vec<Reference>, Lifecycle, bool)> = BTreeMap::new();
    for (address, block) in &config.blocks {
        let mut found = Diagnostics::new();
        let mut references = Vec::new();
        if let Some(expr) = block.repeat.expr() {
            let place = Place { own: Some(address), ..Place::default() };
            found.extend(statics::check(config, expr, place, &mut references));
        }
        // An expression with a mistake is not evaluated.
        let is_wrong = found.has_errors();
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
        let lifecycle = Lifecycle {
            own_keys: lifecycle::own_keys(config, block),
            trigger_parts: lifecycle::trigger_parts(config, block),
            replace_triggered_by: triggers,
            ..block.lifecycle.clone()
        };
        references.shrink_to_fit();
        all.insert(address.clone(), (references, lifecycle, is_wrong));
    }
    for (address, (references, lifecycle, is_wrong)) in all {
        if let Some(block) = config.blocks.get_mut(&address) {
            block.references = references;
            block.lifecycle = lifecycle;
            if is_wrong {
                block.repeat = Repeat::Wrong;
            }
        }
    }
}

/// What a block refers to, but for how many instances it has.
fn inside(config: &Config, block: &ResourceBlock, body: &Body, place: Place<'_>, references: &mut Vec<Reference>) -> Diagnostics {
    let mut found = check_references(config, body, place, true, references);
    let owned = Place { has_self: true, ..place };
    let conditions = block.preconditions.iter().map(|c| (c, place)).chain(block.postconditions.iter().map(|c| (c, owned)));
    for (condition, place) in conditions {
        for expr in [&condition.condition, &condition.message] {
            found.extend(statics::check(config, expr, place, references));
        }
    }
    if let Some(expr) = &block.lifecycle.prevent_destroy {
        found.extend(statics::check(config, expr, Place { no_blocks: Some(protection::BEFORE), ..place }, references));
    }
    if let Some(attribute) = body.attribute("depends_on") {
        found.extend(lifecycle::depends_on(config, &attribute.expr, place, references));
    }
    found
}

/// What a block refers to without these attributes. It has been checked.
pub(crate) fn references_without(config: &Config, block: &ResourceBlock, attributes: &[&str]) -> Vec<Reference> {
    let mut references = Vec::new();
    if let Some(expr) = block.repeat.expr() {
        let place = Place { own: Some(&block.address), ..Place::default() };
        let _ = statics::check(config, expr, place, &mut references);
    }
    let mut body = Body::clone(&block.body);
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
        let attributes = &["value", "description", "sensitive", "ephemeral", "depends_on"];
        check_shape(&block.body, &Shape { what: "an \"output\" block", attributes, blocks: &["precondition"] }, diagnostics);
        let Some(value) = decode::required(block, "value", diagnostics) else { continue };
        let preconditions: Vec<_> = block.body.blocks("precondition").filter_map(|b| decode::condition(b, diagnostics)).collect();
        let mut references = Vec::new();
        let checked = preconditions.iter().flat_map(|c| [&c.condition, &c.message]).chain([&value]);
        for expr in checked {
            diagnostics.extend(statics::check(config, expr, Place::default(), &mut references));
        }
        let mut needs = Vec::new();
        if let Some(attribute) = block.body.attribute("depends_on") {
            diagnostics.extend(lifecycle::depends_on(config, &attribute.expr, Place::default(), &mut references));
            needs = crate::written::needs(&attribute.expr);
        }
        let names = names_of(preconditions.iter().flat_map(|c| [&c.condition, &c.message]).chain([&value]));
        let output = Output {
            names,
            sensitive: literal_bool(&block.body, "sensitive", diagnostics).unwrap_or_default(),
            ephemeral: literal_bool(&block.body, "ephemeral", diagnostics).unwrap_or_default(),
            description: literal_text(&block.body, "description", diagnostics),
            span: block.span,
            value,
            needs,
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
