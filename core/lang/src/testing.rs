//! Files that test a configuration (`*.kftest.hcl`, `*.kftest.json`): what they say, and what of it is to be evaluated. Knows nothing of running them.

mod judge;
mod mocks;
mod overrides;
mod read;
mod runs;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Address, Diagnostics, Object, Span};

pub use judge::Judged;
pub use overrides::Override;
pub use read::read_tests;

use crate::config::Condition;
use crate::given::VariableInputs;
use crate::syntax::Attribute;

/// The name that stands for what earlier runs gave.
const RUN: &str = "run";

/// What stands in one file.
#[derive(Clone, Debug, Default)]
pub struct TestFile {
    /// Its runs, in their order.
    pub runs: Vec<Run>,
    /// Providers that are not to be asked, by name.
    pub mocks: BTreeMap<String, Mock>,
    /// What is said of single things, for all runs.
    pub overrides: Vec<Override>,
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
    /// What is said of single things, before what the file says of them.
    pub overrides: Vec<Override>,
    /// What is wrong with it and leaves other files and runs alone.
    pub wrong: Diagnostics,
    variables: Vec<Attribute>,
    asserts: Vec<Condition>,
    /// The names of the runs above it.
    earlier: BTreeSet<String>,
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
    /// Resource types whose values are known to a plan.
    pub at_plan: BTreeSet<String>,
    /// All other resource types are like that.
    pub all_at_plan: bool,
    /// What is said of single things of this provider, behind what files and runs say of them.
    pub overrides: Vec<Override>,
}

impl Mock {
    /// True if what only the provider could tell of resources of this type is known to a plan.
    pub fn is_at_plan(&self, kind: &str) -> bool {
        self.at_plan.contains(kind) || self.all_at_plan && !self.resources.contains_key(kind)
    }
}

impl TestFile {
    /// Adds what is said of modules for a run.
    pub fn modules(&self, run: &Run, inputs: &mut VariableInputs) {
        for one in self.overrides.iter().chain(&run.overrides).filter(|o| o.target.is_module()) {
            inputs.module(one.target.clone(), one.values.clone());
        }
    }
}
