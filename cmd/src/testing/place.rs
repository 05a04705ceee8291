//! The state of a configuration while a file is tested: in memory, and undone at the end.

use std::sync::Arc;

use karmaform_engine::Options;
use karmaform_lang::Sources;
use karmaform_model::{Address, Diagnostic, Diagnostics, Mode, ModeOfPlan, Registry, Snapshot};

use super::stages::{Stage, applied, planned, pool};
use crate::app::{App, VERSION};
use crate::project::Project;

/// What was applied last.
pub(super) struct Last {
    /// By this run.
    pub(super) run: String,
    pub(super) project: Project,
    pub(super) registry: Arc<Registry>,
    /// What diagnostics of it point into.
    pub(super) sources: Sources,
}

/// A state, and what it was made by.
pub(super) struct Place {
    pub(super) state: Snapshot,
    pub(super) last: Option<Last>,
    /// When it was used, among all others.
    pub(super) used: usize,
}

impl Place {
    pub(super) fn new(lineage: String) -> Self {
        Self { state: Snapshot { lineage, ..Snapshot::default() }, last: None, used: 0 }
    }

    /// True if there is something to take away.
    pub(super) fn holds_something(&self) -> bool {
        self.last.is_some() && !(self.state.resources.is_empty() && self.state.deposed.is_empty())
    }

    /// Destroys all that is in it. What is left is told, by its address.
    pub(super) fn destroy(&mut self, app: &mut App, parallelism: usize) -> Diagnostics {
        if !self.holds_something() {
            return Diagnostics::new();
        }
        let Some(Last { mut project, registry, .. }) = self.last.take() else { return Diagnostics::new() };
        // What a test makes is its own to take away.
        project.config.blocks.values_mut().for_each(|block| block.lifecycle.allow_destroy());
        self.state.resources.values_mut().for_each(|stored| stored.protected = false);
        let options = Options {
            mode: ModeOfPlan::Destroy,
            parallelism,
            now: app.now_seconds(),
            tool_version: VERSION.to_owned(),
            ..Options::default()
        };
        let mut said = Diagnostics::new();
        match pool(app, &project, &registry, &options) {
            Err(wrong) => said.extend(wrong),
            Ok(pool) => {
                let stage = Stage { project: &project, registry: &registry, pool: &pool, may_halt: false };
                let (planned, wrong) = planned(app, &stage, &self.state, &options);
                let may_go_on = !wrong.has_errors();
                said.extend(wrong.into_iter().filter(Diagnostic::is_error));
                if let Some(planned) = planned.filter(|_| may_go_on) {
                    let outcome = applied(app, &stage, &planned, &self.state, parallelism);
                    self.state = outcome.snapshot;
                    said.extend(outcome.diagnostics.into_iter().filter(Diagnostic::is_error));
                }
            }
        }
        let deposed = self.state.deposed.keys().map(|(address, key)| format!("{address} (deposed object {key})"));
        let current = self.state.resources.keys().filter(|a| a.mode == Mode::Managed).map(Address::to_string);
        let left: Vec<String> = current.chain(deposed).collect();
        if !left.is_empty() {
            let listed: String = left.iter().map(|l| format!("\n  - {l}")).collect();
            let detail = format!("What the test made is not all gone, and no state knows of it any more. Left are:{listed}");
            said.push(Diagnostic::error("Something is left of a test", detail).with_hint("Remove it by hand."));
        }
        said
    }
}
