//! Reads `override_resource`, `override_data` and `override_module`: what a test says of single things, so that nobody is asked about them.

use karmaform_model::{Address, Diagnostic, Diagnostics, Mode, Object, ResourceEntry, Schema, Span};

use super::runs::{address, keyword};
use super::{Run, TestFile};
use crate::config::Config;
use crate::decode::{self, Shape, check_shape};
use crate::suggest;
use crate::syntax::{Block, Body};
use crate::variables;

pub(super) const RESOURCE: &str = "override_resource";
pub(super) const DATA: &str = "override_data";
pub(super) const MODULE: &str = "override_module";
/// Who is known when: `plan` or `apply`.
pub(super) const DURING: &str = "override_during";

/// What a test says of a resource, a data source or a module.
#[derive(Clone, Debug)]
pub struct Override {
    /// What it is about; without a key, all instances that nothing else is said of.
    pub target: Address,
    /// Where that is written.
    pub span: Span,
    /// What it gives.
    pub values: Object,
    /// A plan knows that already.
    pub at_plan: bool,
}

/// Reads one; `at_plan` is what holds where it says nothing of that itself.
pub(super) fn read(config: &Config, block: &Block, at_plan: bool, all: &mut Vec<Override>, diagnostics: &mut Diagnostics) {
    decode::labels(block, [], diagnostics);
    let values = if block.kind == MODULE { "outputs" } else { "values" };
    let what = format!("an \"{}\" block", block.kind);
    check_shape(&block.body, &Shape { what: &what, attributes: &["target", values, DURING], blocks: &[] }, diagnostics);
    let at_plan = during(&block.body, diagnostics).unwrap_or(at_plan);
    let target = target(config, block, diagnostics);
    let values = entries(config, &block.body, values, diagnostics);
    let Some((target, span)) = target else { return };
    if all.iter().any(|o| o.target == target) {
        let error = Diagnostic::error("Overridden twice", format!("{target} is overridden here already."));
        diagnostics.push(error.with_span(Some(span)).with_hint("Write all of it in one block."));
        return;
    }
    if let Some(schema) = schema(config, &target) {
        warn_of_others(schema, &values, span, diagnostics);
    }
    all.push(Override { target, span, values, at_plan });
}

/// True if values are known to a plan, if that is said.
pub(super) fn during(body: &Body, diagnostics: &mut Diagnostics) -> Option<bool> {
    let attribute = body.attribute(DURING)?;
    keyword(&attribute.expr, DURING, ["plan", "apply"], diagnostics).map(|word| word == "plan")
}

fn target(config: &Config, block: &Block, diagnostics: &mut Diagnostics) -> Option<(Address, Span)> {
    let expr = decode::required(block, "target", diagnostics)?;
    let (form, what) = match block.kind.as_str() {
        RESOURCE => ("TYPE.NAME", "a resource"),
        DATA => ("data.TYPE.NAME", "a data source"),
        _ => ("module.NAME", "a module"),
    };
    let mut wrong = |detail: String| {
        let hint = format!("Write target = {form}, or what leads there through modules, without quotes; an instance with its key.");
        diagnostics.push(Diagnostic::error("Wrong target", detail).with_span(Some(expr.span)).with_hint(hint));
    };
    let Some(address) = address(&expr).filter(|a| a.kind != "var") else {
        wrong(format!("\"target\" is the name of {what}."));
        return None;
    };
    let fits = match block.kind.as_str() {
        MODULE => address.is_module(),
        DATA => !address.is_module() && address.mode == Mode::Data,
        _ => !address.is_module() && address.mode == Mode::Managed,
    };
    if !fits {
        wrong(format!("\"{}\" is about {what}, and {address} is none.", block.kind));
        return None;
    }
    if let (Mode::Managed, Some(ResourceEntry::Composite(_))) = (address.mode, config.registry.resource(&address.kind)) {
        let detail = format!("\"{}\" is made of resources of several providers, and what it gives is made of theirs.", address.kind);
        let error = Diagnostic::error("Composite can't be overridden", detail).with_span(Some(expr.span));
        diagnostics.push(error.with_hint("Mock the providers of its parts: mock_provider \"ssh\" {}, \"kubernetes\", \"etcd\"."));
        return None;
    }
    Some((address, expr.span))
}

/// An object of constants.
fn entries(config: &Config, body: &Body, name: &str, diagnostics: &mut Diagnostics) -> Object {
    let Some(attribute) = body.attribute(name) else { return Object::new() };
    let (value, found) = variables::constant(config, &attribute.expr);
    let failed = found.has_errors();
    diagnostics.extend(found);
    match value.as_entries() {
        _ if failed => Object::new(),
        Some(entries) => entries.clone(),
        None => {
            let error = Diagnostic::error("Invalid values", format!("\"{name}\" must be an object: values by their names."));
            diagnostics.push(error.with_span(Some(attribute.expr.span)).with_hint(format!("Write {name} = {{ NAME = VALUE }}.")));
            Object::new()
        }
    }
}

fn schema<'c>(config: &'c Config, target: &Address) -> Option<&'c Schema> {
    match target.mode {
        _ if target.is_module() => None,
        Mode::Data => config.registry.data_source(&target.kind).map(|d| d.schema),
        Mode::Managed => config.registry.resource(&target.kind).map(|r| r.schema()),
    }
}

/// What nobody but the configuration gives, and what is not there at all, has no effect.
pub(super) fn warn_of_others(schema: &Schema, values: &Object, span: Span, diagnostics: &mut Diagnostics) {
    let computed: Vec<_> = schema.attributes.iter().filter(|a| a.is_computed()).map(|a| a.name).collect();
    for name in values.keys().filter(|n| !computed.contains(&n.as_str())) {
        let warning = |detail: String| Diagnostic::warning("Value without effect", detail).with_span(Some(span));
        diagnostics.push(if schema.type_of(name).is_some() {
            warning(format!("\"{name}\" is given by the configuration, never by the provider."))
                .with_hint("Take it out; set a variable to change what the configuration gives.")
        } else {
            let hint = suggest::hint(name, computed.iter().copied());
            warning(format!("There is no attribute \"{name}\"."))
                .with_hint(hint.unwrap_or_else(|| format!("The provider gives {}.", suggest::listed(computed.iter().copied()))))
        });
    }
}

impl TestFile {
    /// What is overridden for a run and is not there. `config` is the configuration that it runs; what holds for the whole file is only
    /// about that under test.
    pub fn overrides_of_nothing(&self, run: &Run, config: &Config) -> Diagnostics {
        let of_file = self.overrides.iter().chain(self.mocks.values().flat_map(|m| &m.overrides));
        let of_file = of_file.filter(|_| run.module.is_none());
        let missing = run.overrides.iter().chain(of_file).filter(|o| !config.is_incomplete() && !is_there(config, &o.target));
        let told = |o: &Override| {
            let detail = format!("{} does not stand in the configuration that this runs, so it is overridden to no effect.", o.target);
            Diagnostic::warning("Override of nothing", detail).with_span(Some(o.span))
        };
        missing.map(told).collect()
    }
}

/// True if there is such a thing, however often.
fn is_there(config: &Config, target: &Address) -> bool {
    let mut home = config;
    for step in &target.module {
        match home.calls.get(&step.name).and_then(|call| call.unit()) {
            Some(unit) => home = unit,
            None => return false,
        }
    }
    target.is_module() || home.blocks.contains_key(&target.outside_of_modules().block())
}
