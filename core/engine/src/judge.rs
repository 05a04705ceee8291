//! When conditions of blocks and outputs are asked. What is known by then is judged with the plan; the rest during apply, as soon as it can
//! be told: before a step what must hold for it, after it what must hold then, and before the steps that need it what is said of a thing
//! that does not change.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::{Evaluator, OUTPUT_PRECONDITION, PRECONDITION};
use karmaform_model::{
    Action, Address, CheckKind, CheckStatus, Diagnostic, Diagnostics, Mode, ModeOfPlan, Plan, ResourceEntry, Severity, StepKind,
};

use crate::dispatch::Dispatcher;
use crate::graph::Graph;
use crate::values::unknown_object;
use crate::walk::Pass;

/// Preconditions that do not hold keep nothing from being looked at: where nothing is made they mostly warn (`only_warns`).
pub(crate) fn of_looking(found: Diagnostics, only_warns: bool) -> Diagnostics {
    let softened = |d: Diagnostic| match d.summary.as_str() {
        PRECONDITION | OUTPUT_PRECONDITION if only_warns => Diagnostic { severity: Severity::Warning, ..d },
        _ => d,
    };
    found.into_iter().map(softened).collect()
}

impl Pass<'_> {
    /// Asks the postconditions of an instance, when no answer can change it any more. What needs one that is not as it must be knows nothing
    /// of it, so nothing is looked at or decided by it. Where nothing is made they mostly warn, and nothing is decided anyway.
    pub(crate) fn judge(&mut self, number: usize, evaluator: &Evaluator<'_>) {
        let graph = self.graph;
        let address = &graph.nodes[number].address;
        let flags = self.visits[number].flags;
        if self.options.mode == ModeOfPlan::Destroy || !flags.settled || flags.failed {
            return;
        }
        let found = evaluator.postconditions(address);
        if !found.has_errors() {
            return;
        }
        // A data source of a check holds up nothing.
        let of_check = self.inputs.config.check_of(address).is_some();
        let only_warns = of_check || self.options.only_warns();
        let softened = |d: Diagnostic| if only_warns { Diagnostic { severity: Severity::Warning, ..d } } else { d };
        self.diagnostics.extend(found.into_iter().map(softened));
        if self.options.mode == ModeOfPlan::RefreshOnly {
            return;
        }
        let schema = match address.mode {
            Mode::Data => self.inputs.registry.data_source(&address.kind).map(|d| d.schema),
            Mode::Managed => self.entries[number].map(|entry: ResourceEntry<'_>| entry.schema()),
        };
        if let Some(schema) = schema.filter(|_| !of_check) {
            let judged = evaluator.conditions_of(address);
            self.values.set(number, unknown_object(schema).into());
            self.visits[number].flags.failed = true;
            self.visits[number].judged = judged;
        }
    }
}

/// What a plan could not judge yet.
pub(crate) struct Open {
    /// Things, outputs and variables with conditions that were not known.
    all: BTreeSet<(CheckKind, Address)>,
    /// Those of them that do not change, and by node what needs them.
    still: Vec<Address>,
    needed: BTreeMap<usize, BTreeSet<usize>>,
    /// What was said of one that does not change: `true`, it does not hold.
    said: BTreeMap<usize, bool>,
}

impl Open {
    pub(crate) fn new(plan: &Plan, graph: &Graph) -> Self {
        let is_judged = plan.mode != ModeOfPlan::Destroy;
        let unknown = plan.checks.iter().filter(|c| is_judged && c.status == CheckStatus::Unknown && c.kind != CheckKind::Check);
        let all: BTreeSet<_> = unknown.map(|c| (c.kind, c.address.clone())).collect();
        let unchanged: BTreeSet<&Address> = plan.resources.iter().filter(|r| r.change.is_no_op()).map(|r| &r.address).collect();
        let is_still = |(kind, address): &&(CheckKind, Address)| *kind == CheckKind::Resource && unchanged.contains(address);
        let still: Vec<Address> = all.iter().filter(is_still).map(|(_, a)| a.clone()).collect();
        let mut needed: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (place, address) in still.iter().enumerate() {
            if let Some(&number) = graph.instances.get(address) {
                needed.entry(number).or_default().insert(place);
            }
        }
        if !needed.is_empty() {
            for &number in &graph.order {
                let more: BTreeSet<usize> = graph.nodes[number].wanted.iter().filter_map(|n| needed.get(n)).flatten().copied().collect();
                if !more.is_empty() {
                    needed.entry(number).or_default().extend(more);
                }
            }
        }
        Self { all, still, needed, said: BTreeMap::new() }
    }

    /// True if something was not known of a resource or data source, or of the composite that it is a part of.
    pub(crate) fn has(&self, address: &Address) -> bool {
        let is_open = |a: &Address| self.all.contains(&(CheckKind::Resource, a.clone()));
        !self.all.is_empty() && (is_open(address) || address.composite().is_some_and(|c| is_open(&c)))
    }

    /// True if something was not known of an output of the root module.
    pub(crate) fn has_output(&self, name: &str) -> bool {
        self.outputs().any(|output| output.module.is_empty() && output.name == name)
    }

    /// True if something was not known of a value that goes into a module, or out of one.
    fn has_values(&self) -> bool {
        self.all.iter().any(|(kind, _)| matches!(kind, CheckKind::Output | CheckKind::Variable))
    }

    /// Outputs of all modules of which something was not known.
    fn outputs(&self) -> impl Iterator<Item = &Address> {
        self.all.iter().filter(|(kind, _)| *kind == CheckKind::Output).map(|(_, address)| address)
    }
}

impl Dispatcher<'_> {
    /// What must hold before a step, and was not known when it was planned.
    pub(crate) fn before_step(&self, address: &Address) -> Result<(), Diagnostics> {
        if !self.open.has(address) {
            return Ok(());
        }
        let evaluator = Evaluator::new(self.world().config, &self.ledger).at(&self.filler.moment);
        let own = address.whole();
        let found = evaluator.preconditions(&own);
        if found.has_errors() { Err(found) } else { Ok(()) }
    }

    /// What must hold of what a step has made or read.
    pub(crate) fn after_step(&self, address: &Address, part: Action) -> Diagnostics {
        if address.is_child() || matches!(part, Action::Delete | Action::Forget) {
            return Diagnostics::new();
        }
        let found = Evaluator::new(self.world().config, &self.ledger).at(&self.filler.moment).postconditions(address);
        let is_read = part == Action::Read;
        let told = |d: Diagnostic| {
            if is_read {
                return d.with_hint("Nothing that needs what was read was started.");
            }
            d.with_hint(
                "What was made is in the state, and nothing that needs it was started. Repair what is asked for, then plan and apply.",
            )
        };
        found.into_iter().map(told).collect()
    }

    /// The thing without a change of its own that keeps a step from being started, because a condition of it does not hold. Told once.
    pub(crate) fn held_up_by(&mut self, step: usize) -> Option<Address> {
        if self.open.needed.is_empty() {
            return None;
        }
        let resource = match &self.plan.steps[step].kind {
            StepKind::Change { part: Action::Delete | Action::Forget, .. } | StepKind::Join => return None,
            StepKind::Change { resource, .. } | StepKind::Finish { resource } => &self.plan.resources[*resource].address,
            StepKind::Gate { composite, .. } => composite,
        };
        let number = self.filler.number(resource)?;
        let needed: Vec<usize> = self.open.needed.get(&number).into_iter().flatten().copied().collect();
        needed.into_iter().find(|place| self.is_broken(*place)).map(|place| self.open.still[place].clone())
    }

    fn is_broken(&mut self, place: usize) -> bool {
        if let Some(said) = self.open.said.get(&place) {
            return *said;
        }
        let address = self.open.still[place].clone();
        let mut found = Diagnostics::new();
        {
            let evaluator = Evaluator::new(self.world().config, &self.ledger).at(&self.filler.moment);
            found.extend(evaluator.preconditions(&address));
            found.extend(evaluator.postconditions(&address));
        }
        // A data source of a check holds up nothing.
        let of_check = self.world().config.check_of(&address).is_some();
        let is_broken = found.has_errors() && !of_check;
        let softened = |d: Diagnostic| if of_check { Diagnostic { severity: Severity::Warning, ..d } } else { d };
        self.diagnostics.extend(found.into_iter().map(softened));
        self.open.said.insert(place, is_broken);
        is_broken
    }

    /// At the end, what nothing has waited for: things that do not change, and outputs. What was not reached is not judged.
    pub(crate) fn judge_rest(&mut self) {
        if self.open.all.is_empty() {
            return;
        }
        let unreached = self.unreached();
        for place in 0..self.open.still.len() {
            let number = self.filler.number(&self.open.still[place]);
            if number.is_some_and(|n| self.filler.is_reached(&[n], &|address| !unreached.contains(address))) {
                self.is_broken(place);
            }
        }
        if !unreached.is_empty() || !self.open.has_values() {
            return;
        }
        let evaluator = Evaluator::new(self.world().config, &self.ledger).at(&self.filler.moment);
        let is_whole = !self.plan.is_of_a_part();
        let mut found: Vec<Diagnostic> = evaluator.check_modules(false, is_whole).into_iter().collect();
        for output in self.open.outputs().filter(|o| o.module.is_empty()) {
            found.extend(evaluator.output(&output.name).1);
        }
        let is_same = |a: &Diagnostic, b: &Diagnostic| a.span == b.span && a.summary == b.summary && a.detail == b.detail;
        let fresh: Vec<_> = found.into_iter().filter(|d| !self.diagnostics.iter().any(|o| is_same(o, d))).collect();
        self.diagnostics.extend(fresh);
    }
}
