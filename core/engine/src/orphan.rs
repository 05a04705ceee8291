//! How a pass treats what is only in the state: orphans, and in which case what is to go is deleted, forgotten, or left.

use karmaform_lang::Repetition;
use karmaform_model::{Change, Key, ModeOfPlan, Reason, ResourceEntry, ResourceSpec};

use crate::before::Before;
use crate::decide::{Decision, decide_delete, tidy};
use crate::graph::Role;
use crate::question::Circumstances;
use crate::values::with_nulls;
use crate::visit::unchanged;
use crate::walk::{Flags, Pass, Visit};

impl Pass<'_> {
    /// What is only in the state, last, when the configuration has told all ways to it.
    pub(crate) fn visit_orphans(&mut self) {
        for (number, node) in self.graph.nodes.iter().enumerate() {
            let is_orphan = !node.configured && !node.is_junction() && self.selected[number];
            let composite = node.composite.filter(|c| self.graph.nodes[*c].configured && self.selected[*c]);
            if is_orphan && composite.is_none() {
                self.visit_orphan(number);
            }
        }
    }

    pub(crate) fn visit_orphan(&mut self, number: usize) {
        let graph = self.graph;
        let node = &graph.nodes[number];
        let Some(entry) = self.entries[number] else {
            if self.inputs.state.resources.contains_key(&node.address) {
                let detail = format!("The state holds it, but no provider in this version has the type \"{}\".", node.kind);
                self.refuse(number, "Unknown resource type", detail, "Use the version that made it, or remove it from the state.");
            }
            return;
        };
        let Some(mut before) = self.memory(number, entry.schema()) else { return };
        if node.forgotten && self.options.mode != ModeOfPlan::RefreshOnly {
            // Nobody is asked: it makes no difference how it is, and what it is on may be out of reach.
            let decision = before.full.clone().map(|before| {
                let change = tidy(entry.schema(), Change::Forget { before });
                Decision { change, reason: None }
            });
            self.visits[number] = Visit { before, decision, ..Visit::default() };
            return;
        }
        let mut flags = Flags::default();
        let mut decision = None;
        match entry {
            ResourceEntry::Type(driver, spec) => {
                // The configuration may tell a fresher way after the data sources are read.
                let settled = self.reads.is_empty();
                let circumstances = Circumstances { settled, failed: false, importing: false };
                flags.settled = if settled { self.ask(number, spec.schema(), &before, None, circumstances) } else { false };
                self.refresh_way(driver.name(), spec.schema(), &mut before, None);
                if self.options.mode == ModeOfPlan::RefreshOnly {
                    decision = unchanged(spec.schema(), &before);
                } else if before.status.is_some() {
                    decision = self.deletion(number, spec, &before, self.deletion_reason(number));
                }
            }
            ResourceEntry::Composite(_) if self.options.mode == ModeOfPlan::RefreshOnly => decision = unchanged(entry.schema(), &before),
            ResourceEntry::Composite(_) => {
                let reason = self.deletion_reason(number);
                decision = before.full.clone().map(|before| Decision { change: Change::Delete { before }, reason });
            }
        }
        if self.options.mode != ModeOfPlan::Normal || before.full.is_some() {
            self.values.set(number, with_nulls(entry.schema(), &before.full.clone().unwrap_or_default()).into());
        }
        self.visits[number] = Visit { before, decision, flags, ..Visit::default() };
    }

    pub(crate) fn deletion(&mut self, number: usize, spec: &dyn ResourceSpec, before: &Before, reason: Option<Reason>) -> Option<Decision> {
        before.status?;
        match decide_delete(spec, &self.context, before) {
            Ok(change) => Some(Decision { change, reason }),
            Err(errors) => {
                self.report(number, errors);
                None
            }
        }
    }

    /// Why what is only in the state goes. As in Terraform, there is nothing to say of it where all goes.
    fn deletion_reason(&self, number: usize) -> Option<Reason> {
        (self.options.mode != ModeOfPlan::Destroy).then(|| self.reason_of_orphan(number))
    }

    fn reason_of_orphan(&self, number: usize) -> Reason {
        let node = &self.graph.nodes[number];
        if node.role == Role::Child && node.composite.is_some_and(|c| self.graph.nodes[c].configured) {
            return Reason::DeleteBecauseNotInComposite;
        }
        if !self.inputs.config.is_written(&node.address) {
            let was = self.graph.previous(&node.address);
            return was.map_or(Reason::DeleteBecauseNoResourceConfig, Reason::DeleteBecauseNoMoveTarget);
        }
        if let Some(module) = self.inputs.config.missing_module(&node.address.module) {
            return Reason::DeleteBecauseNoModule(module);
        }
        let repetition = self.inputs.config.block(&node.address).map(|b| &b.repetition);
        match (repetition, &node.address.key) {
            (None, _) => Reason::DeleteBecauseNoResourceConfig,
            (Some(Repetition::Count(_)), Some(Key::Index(_))) => Reason::DeleteBecauseCountIndex,
            (Some(Repetition::ForEach(_)), Some(Key::Name(_))) => Reason::DeleteBecauseEachKey,
            _ => Reason::DeleteBecauseWrongRepetition,
        }
    }
}
