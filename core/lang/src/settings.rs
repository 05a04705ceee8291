//! The `karmaform` block and the `provider` blocks: what is needed before anything is planned.

use std::collections::BTreeMap;

use karmaform_model::{Diagnostic, Diagnostics, Object, Presence, Schema, Span, Value};

use crate::attributes::body_object;
use crate::blocks::check_body;
use crate::config::{Config, Reference, Settings, SettingsBlock};
use crate::decode::{self, Shape, check_shape, literal_text};
use crate::eval::Errors;
use crate::evaluator::{Evaluator, NothingKnown};
use crate::scope::{Scope, Site};
use crate::statics::{self, Place};
use crate::suggest;
use crate::syntax::{Attribute, Block, Body, ExprKind};
use crate::version;

const BEFORE_PLAN: &str = "This is needed before anything is read or planned, so resources and data sources can't be referred to.";

/// The provider that is built into Terraform, and whose one resource type is here as well.
const BUILT_IN: &str = "terraform.io/builtin/terraform";

/// What is said of a configuration that wants another version of the tool.
pub const OTHER_VERSION: &str = "Other version required";

/// What is said of a place for the state in a block of Terraform's: whoever goes on with another place looks at nothing, or makes it twice.
pub const OTHER_BACKEND: &str = "Backend of another tool";

/// Reads the `karmaform` blocks.
pub(crate) fn settings(config: &Config, blocks: &[&Block], diagnostics: &mut Diagnostics) -> Settings {
    let mut settings = Settings::default();
    for block in blocks {
        settings.spans.push(block.span);
        decode::labels(block, [], diagnostics);
        let shape = Shape {
            what: "the \"karmaform\" block",
            attributes: &["required_version", "bundle", "ca_file"],
            blocks: &["backend", "encryption"],
        };
        let old = Shape { blocks: &["backend", "encryption", "required_providers", "cloud"], ..shape };
        check_shape(&block.body, &old, diagnostics);
        if let Some(text) = literal_text(&block.body, "required_version", diagnostics) {
            check_version(config, block, &text, diagnostics);
            settings.required_version = Some(text);
        }
        for (name, slot) in [("bundle", &mut settings.bundle), ("ca_file", &mut settings.ca_file)] {
            let Some(attribute) = block.body.attribute(name) else { continue };
            let span = attribute.expr.span;
            if let Some((_, first)) = slot {
                diagnostics.push(decode::second(&format!("\"{name}\""), span, *first));
            }
            *slot = early_text(config, attribute, diagnostics).map(|path| (path, span));
        }
        for nested in &block.body.blocks {
            match nested.kind.as_str() {
                "backend" => {
                    if let Some([kind]) = decode::labels(nested, ["KIND"], diagnostics) {
                        keep(&mut settings.backend, free_form(config, nested, &kind.text, diagnostics), diagnostics);
                    }
                }
                "encryption" => {
                    decode::labels(nested, [], diagnostics);
                    keep(&mut settings.encryption, free_form(config, nested, "", diagnostics), diagnostics);
                }
                "required_providers" | "cloud" => diagnostics.push(
                    Diagnostic::error("Block without use here", format!("There is no \"{}\": providers are built in.", nested.kind))
                        .with_span(Some(nested.kind_span))
                        .with_hint("Remove the block."),
                ),
                _ => {}
            }
        }
    }
    settings
}

/// Checks the `terraform` blocks, which a configuration for both may have: the version that they want is the one whose language this is, and of providers
/// they may want the one that is built into both. All else stands in a block of our own. What a module says of a place for the state means nothing to either.
pub(crate) fn of_terraform(blocks: &[Block], in_module: bool, diagnostics: &mut Diagnostics) {
    for block in blocks {
        one_of_terraform(block, in_module, diagnostics);
    }
}

fn one_of_terraform(block: &Block, in_module: bool, diagnostics: &mut Diagnostics) {
    let wrong = |span: Span, name: &str| {
        Diagnostic::error("Block of another tool", format!("\"{name}\" of a block \"terraform\" means something to Terraform alone."))
            .with_span(Some(span))
            .with_hint("Remove it, or write in a block \"karmaform\" what that can hold. Providers are built in: none has to be required.")
    };
    decode::labels(block, [], diagnostics);
    for attribute in block.body.attributes.iter().filter(|a| a.name != "required_version") {
        diagnostics.push(wrong(attribute.name_span, &attribute.name));
    }
    if let Some(text) = literal_text(&block.body, "required_version", diagnostics) {
        let span = block.body.attribute("required_version").map(|a| a.expr.span);
        check_against(version::TERRAFORM, "Terraform's language as of version", &text, span, diagnostics);
    }
    for nested in &block.body.blocks {
        let kind = nested.kind.as_str();
        let is_built_in = |a: &Attribute| match &a.expr.kind {
            ExprKind::Object(items) => {
                items.iter().any(|(_, value)| matches!(&value.kind, ExprKind::Literal(source) if source.as_str() == Some(BUILT_IN)))
            }
            _ => false,
        };
        match kind {
            "required_providers" if nested.body.attributes.iter().all(is_built_in) => {}
            "backend" | "cloud" => diagnostics.push(elsewhere(kind, in_module).with_span(Some(nested.kind_span))),
            _ => diagnostics.push(wrong(nested.kind_span, kind)),
        }
    }
}

fn elsewhere(kind: &str, in_module: bool) -> Diagnostic {
    let detail = format!("\"{kind}\" of a block \"terraform\" says where Terraform keeps its state.");
    if in_module {
        return Diagnostic::warning(OTHER_BACKEND, format!("{detail} In a module it says nothing: the root of the configuration does."))
            .with_hint("Remove it.");
    }
    Diagnostic::error(OTHER_BACKEND, detail)
        .with_hint("Remove it, and write karmaform { backend \"KIND\" { ... } } for the state of karmaform, at a place of its own.")
}

/// Checks the `karmaform` blocks of a module: only the version that it wants is its business.
pub(crate) fn version_of_module(config: &Config, blocks: &[Block], diagnostics: &mut Diagnostics) {
    for block in blocks {
        decode::labels(block, [], diagnostics);
        let shape = Shape { what: "the \"karmaform\" block of a module", attributes: &["required_version"], blocks: &[] };
        check_shape(&block.body, &shape, diagnostics);
        if let Some(text) = literal_text(&block.body, "required_version", diagnostics) {
            check_version(config, block, &text, diagnostics);
        }
    }
}

fn keep(slot: &mut Option<SettingsBlock>, block: SettingsBlock, diagnostics: &mut Diagnostics) {
    match slot {
        Some(first) => diagnostics.push(decode::second("this block", block.span, first.span)),
        None => *slot = Some(block),
    }
}

fn check_version(config: &Config, block: &Block, constraint: &str, diagnostics: &mut Diagnostics) {
    let span = block.body.attribute("required_version").map(|a| a.expr.span);
    check_against(&config.context.tool_version, "version", constraint, span, diagnostics);
}

fn check_against(version: &str, what: &str, constraint: &str, span: Option<Span>, diagnostics: &mut Diagnostics) {
    match version::satisfies(version, constraint) {
        Ok(true) => {}
        Ok(false) => diagnostics.push(
            Diagnostic::error(OTHER_VERSION, format!("This is {what} {version}, but the configuration wants {constraint}."))
                .with_span(span)
                .with_hint("Use a version that satisfies the constraint, or change required_version after a look at the changelog."),
        ),
        Err(problem) => diagnostics.push(
            Diagnostic::error("Invalid version constraint", format!("The constraint can't be read: {problem}."))
                .with_span(span)
                .with_hint("Write it as \">= 0.1, < 2\" or \"~> 1.2\"."),
        ),
    }
}

/// The arguments of a block whose schema somebody else knows.
fn free_form(config: &Config, block: &Block, kind: &str, diagnostics: &mut Diagnostics) -> SettingsBlock {
    let place = Place { no_blocks: Some(BEFORE_PLAN), ..Place::default() };
    let evaluator = Evaluator::new(config, &NothingKnown);
    let arguments = free_body(&evaluator, &block.body, place, diagnostics);
    let spans = block.body.attributes.iter().map(|a| (a.name.clone(), a.expr.span));
    let spans: BTreeMap<_, _> = spans.chain(block.body.blocks.iter().map(|b| (b.kind.clone(), b.span))).collect();
    SettingsBlock { kind: kind.to_owned(), arguments, spans, span: block.span }
}

/// A text that is needed before anything is read or planned. Null is none.
fn early_text(config: &Config, attribute: &Attribute, diagnostics: &mut Diagnostics) -> Option<String> {
    let place = Place { no_blocks: Some(BEFORE_PLAN), ..Place::default() };
    let alone = Body { attributes: vec![attribute.clone()], ..Body::default() };
    let value = free_body(&Evaluator::new(config, &NothingKnown), &alone, place, diagnostics).get(&attribute.name).cloned()?;
    if value.as_str().is_none() && !value.is_null() && !value.is_unknown() {
        let detail = format!("\"{}\" is the path of a file, as text.", attribute.name);
        diagnostics.push(Diagnostic::error("Invalid value", detail).with_span(Some(attribute.expr.span)));
    }
    value.as_str().map(str::to_owned)
}

fn free_body(evaluator: &Evaluator<'_>, body: &Body, place: Place<'_>, diagnostics: &mut Diagnostics) -> Object {
    let mut object = Object::new();
    let site = Site::default();
    for attribute in &body.attributes {
        let found = statics::check(evaluator.config, &attribute.expr, place, &mut Vec::new());
        let failed = found.has_errors();
        diagnostics.extend(found);
        let mut errors = Errors::default();
        let value = if failed { crate::eval::unknown() } else { evaluator.eval(&attribute.expr, &Scope::new(&site), &mut errors) };
        diagnostics.extend(evaluator.finish(errors));
        object.insert(attribute.name.clone(), value);
    }
    for block in &body.blocks {
        let inside = Value::from(free_body(evaluator, &block.body, place, diagnostics));
        if object.insert(block.kind.clone(), inside).is_some() {
            let what = format!("\"{}\"", block.kind);
            let first = body.blocks.iter().find(|b| b.kind == block.kind).map(|b| b.span);
            let first = first.or(body.attributes.iter().find(|a| a.name == block.kind).map(|a| a.expr.span)).filter(|s| *s != block.span);
            diagnostics.push(decode::second(&what, block.span, first.unwrap_or(block.span)));
        }
    }
    object
}

/// The arguments of all providers: what their blocks say, or their defaults.
pub(crate) fn providers(config: &Config, blocks: &[&Block], diagnostics: &mut Diagnostics) -> BTreeMap<String, Object> {
    let written = provider_blocks(config, blocks, diagnostics);
    let mut providers = BTreeMap::new();
    for driver in config.registry.providers() {
        let schema = driver.schema();
        let mut object = match written.get(driver.name()) {
            Some(block) => provider(config, block, schema, diagnostics),
            None => {
                let evaluator = Evaluator::new(config, &NothingKnown);
                body_object(&evaluator, schema, &Body::default(), &Scope::new(&Site::default()), &mut Errors::silent())
            }
        };
        object.retain(|name, _| schema.attribute(name).is_none_or(|a| a.presence != Presence::Computed));
        schema.mark(&mut object);
        providers.insert(driver.name().to_owned(), object);
    }
    providers
}

/// The `provider` blocks of a module by the provider's name, of which each stands there once.
pub(crate) fn provider_blocks<'b>(config: &Config, blocks: &[&'b Block], diagnostics: &mut Diagnostics) -> BTreeMap<&'b str, &'b Block> {
    let mut written: BTreeMap<&str, &Block> = BTreeMap::new();
    for &block in blocks {
        let Some([name]) = decode::labels(block, ["NAME"], diagnostics) else { continue };
        let names: Vec<_> = config.registry.providers().map(|d| d.name()).collect();
        if !names.contains(&name.text.as_str()) {
            let hint = suggest::hint(&name.text, names.iter().copied()).unwrap_or_else(|| format!("There are {}.", suggest::listed(names)));
            let error = Diagnostic::error("Unknown provider", format!("There is no provider \"{}\".", name.text));
            diagnostics.push(error.with_span(Some(name.span)).with_hint(hint));
            continue;
        }
        match written.get(name.text.as_str()) {
            Some(first) => diagnostics.push(
                decode::second(&format!("the provider \"{}\"", name.text), block.span, first.span)
                    .with_hint("There are no aliases: connections are values, given by data sources."),
            ),
            None => drop(written.insert(&name.text, block)),
        }
    }
    written
}

fn provider(config: &Config, block: &Block, schema: &Schema, diagnostics: &mut Diagnostics) -> Object {
    let mut found = Diagnostics::new();
    let body = provider_body(config, block, schema, BEFORE_PLAN, &mut found);
    let failed = found.has_errors();
    diagnostics.extend(found);
    let evaluator = Evaluator::new(config, &NothingKnown);
    let mut errors = if failed { Errors::silent() } else { Errors::default() };
    let object = body_object(&evaluator, schema, &body, &Scope::new(&Site { of_run: true, ..Site::default() }), &mut errors);
    if !failed {
        diagnostics.extend(evaluator.finish(errors));
    }
    object
}

/// The body of a `provider` block, checked. `no_blocks`: why it can't be made of resources.
pub(crate) fn provider_body(
    config: &Config,
    block: &Block,
    schema: &Schema,
    no_blocks: &'static str,
    diagnostics: &mut Diagnostics,
) -> Body {
    for name in ["alias", "version"] {
        if let (Some(attribute), None) = (block.body.attribute(name), schema.attribute(name)) {
            diagnostics.push(
                Diagnostic::error("Argument without use here", format!("Providers are built in and have no \"{name}\"."))
                    .with_span(Some(attribute.name_span))
                    .with_hint("Remove it; different targets are different connection values."),
            );
        }
    }
    let known = |name: &str| !["alias", "version"].contains(&name) || schema.attribute(name).is_some();
    let mut body = block.body.clone();
    body.attributes.retain(|a| known(&a.name));
    check_body(schema, &body, &format!("the provider \"{}\"", block.labels[0].text), block, false, diagnostics);
    let place = Place { no_blocks: Some(no_blocks), ..Place::default() };
    diagnostics.extend(crate::blocks::check_references(config, &body, place, false, &mut Vec::<Reference>::new()));
    body
}
