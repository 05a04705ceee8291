//! Files that test a configuration (`*.kftest.hcl`): what they say, and what of it is to be evaluated. Knows nothing of running them.

mod judge;
mod mocks;
mod read;
mod runs;

use std::collections::BTreeMap;

use karmaform_model::{Address, Diagnostic, Diagnostics, Object, Span, Value};

pub use judge::Judged;
pub use read::read_tests;

use crate::config::{Condition, Config};
use crate::eval::Errors;
use crate::evaluator::{Evaluator, NothingKnown};
use crate::given::VariableInputs;
use crate::scope::{Scope, Site};
use crate::statics::{self, Place};
use crate::syntax::Attribute;
use crate::variables;

/// The name that stands for what earlier runs gave.
const RUN: &str = "run";
const NO_BLOCKS: &str = "Values of variables are needed before anything is planned: they may be made of var.NAME and run.NAME.OUTPUT.";

/// What stands in one file.
#[derive(Clone, Debug, Default)]
pub struct TestFile {
    /// Its runs, in their order.
    pub runs: Vec<Run>,
    /// Providers that are not to be asked, by name.
    pub mocks: BTreeMap<String, Mock>,
    variables: Vec<Attribute>,
}

/// A `run` block.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its label.
    pub name: String,
    /// Where its header stands.
    pub span: Span,
    /// It plans, and applies nothing.
    pub is_plan: bool,
    /// The directory of another configuration that it runs, and where that is written.
    pub module: Option<(String, Span)>,
    /// What is expected to fail, each where it is written.
    pub expected: Vec<(Address, Span)>,
    /// How to plan.
    pub options: RunOptions,
    variables: Vec<Attribute>,
    asserts: Vec<Condition>,
}

/// `plan_options` of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// `mode = refresh-only`
    pub refresh_only: bool,
    /// Look at what is there.
    pub refresh: bool,
    /// Only these.
    pub targets: Vec<Address>,
    /// To be made anew.
    pub replace: Vec<Address>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { refresh_only: false, refresh: true, targets: Vec::new(), replace: Vec::new() }
    }
}

/// A `mock_provider` block: values of what only the provider could tell, by type.
#[derive(Clone, Debug, Default)]
pub struct Mock {
    /// Of resources.
    pub resources: BTreeMap<String, Object>,
    /// Of data sources.
    pub data: BTreeMap<String, Object>,
}

impl TestFile {
    /// Adds the values that hold for all runs of the file. `config` is the configuration under test.
    pub fn variables(&self, inputs: &mut VariableInputs, config: &Config) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        for attribute in &self.variables {
            let (value, found) = variables::constant(config, &attribute.expr);
            let failed = found.has_errors();
            diagnostics.extend(hidden(config, &attribute.name, found));
            if !failed {
                inputs.value(&attribute.name, value, attribute.expr.span, false);
            }
        }
        diagnostics
    }
}

impl Run {
    /// Adds the values that hold for this run. `config` is the configuration under test with the values of the file, `ran` the outputs of earlier
    /// runs by the name of the run.
    pub fn variables(&self, inputs: &mut VariableInputs, config: &Config, ran: &Object) -> Diagnostics {
        let bound = [RUN.to_owned()];
        let evaluator = Evaluator::new(config, &NothingKnown);
        let site = Site::default();
        let mut diagnostics = Diagnostics::new();
        for attribute in &self.variables {
            let place = Place { no_blocks: Some(NO_BLOCKS), bound: &bound, ..Place::default() };
            let mut found = statics::check(config, &attribute.expr, place, &mut Vec::new());
            if found.has_errors() {
                diagnostics.extend(found);
                continue;
            }
            let mut errors = Errors::default();
            let names = [(RUN, Value::from(ran.clone()))];
            let value = Scope::new(&site).bind(&names, |scope| evaluator.eval(&attribute.expr, scope, &mut errors));
            found.extend(evaluator.finish(errors));
            if !found.has_errors() && !value.is_wholly_known() {
                let detail = format!("The value of \"{}\" is not known when the run \"{}\" begins.", attribute.name, self.name);
                let error = Diagnostic::error("Value not known yet", detail).with_span(Some(attribute.expr.span));
                found.push(error.with_hint("What only an apply can tell is not known after a run that plans: write command = apply there. A variable without a value needs one."));
            }
            if !found.has_errors() {
                inputs.value(&attribute.name, value, attribute.expr.span, true);
            }
            diagnostics.extend(hidden(config, &attribute.name, found));
        }
        diagnostics
    }
}

/// What is wrong with the value of a variable; of a secret one its line must not be drawn.
fn hidden(config: &Config, name: &str, found: Diagnostics) -> Diagnostics {
    if !found.has_errors() || config.variables.get(name).is_none_or(|v| !v.sensitive) {
        return found;
    }
    let detail = format!("The value of \"{name}\" in the test can't be evaluated; it is secret, so no more is said.");
    Diagnostic::error("Invalid value for a variable", detail).into()
}
