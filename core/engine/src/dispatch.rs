//! Owns the course of an apply: which steps wait, run, ended; starts what may start, books what ended. Decides no change.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use karmaform_model::{
    Action, Address, Diagnostic, Diagnostics, Event, EventKind, JournalRecord, Object, Plan, PlannedResource, ResourceState, Severity,
    StepKind,
};

use crate::fill::Filler;
use crate::judge::Open;
use crate::ledger::Ledger;
use crate::options::{ApplyOptions, World};
use crate::worker::{Job, Note};

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    Running,
    Succeeded,
    Failed,
    Skipped,
}

/// A step that is about to run.
pub(crate) struct Started {
    pub(crate) step: usize,
    pub(crate) job: Job,
}

/// What is known of a running step.
pub(crate) struct Running {
    since: u64,
    noticed: u64,
    waits_for: Option<String>,
    /// What was sent to the provider.
    pub(crate) sent: Object,
    /// The state before the step.
    pub(crate) prior: Option<ResourceState>,
    is_outside: bool,
}

/// The end of an apply.
pub(crate) struct End<'a> {
    pub(crate) ledger: Ledger<'a>,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) interrupted: bool,
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
    pub(crate) unchanged: usize,
}

/// The course of one apply.
pub(crate) struct Dispatcher<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) ledger: Ledger<'a>,
    pub(crate) filler: Filler<'a>,
    pub(crate) open: Open,
    world: &'a World<'a>,
    options: &'a ApplyOptions,
    on_event: &'a mut dyn FnMut(Event),
    stages: Vec<Stage>,
    /// By step: how many others it still waits for, and which wait for it.
    missing: Vec<usize>,
    dependents: Vec<Vec<usize>>,
    /// Steps that may start: those that work outside, of which only so many run at once, and all others.
    ready_outside: BTreeSet<(Reverse<usize>, usize)>,
    /// By step: how many more come one after the other behind it. Where not all that may start can, what most wait for goes first.
    behind: Vec<usize>,
    ready: BTreeSet<usize>,
    pub(crate) running: BTreeMap<usize, Running>,
    outside: usize,
    pub(crate) diagnostics: Diagnostics,
    /// Data sources of `check` blocks that could not be read, and why.
    pub(crate) unread: BTreeMap<Address, String>,
    /// Updates that turned out to be none.
    pub(crate) unchanged: usize,
    stopped: bool,
    pub(crate) interrupted: bool,
}

/// By step: how many steps come one after the other behind it, the longest way. A step has a higher number than what it waits for.
fn behind(plan: &Plan) -> Vec<usize> {
    let mut behind = vec![0; plan.steps.len()];
    for (id, step) in plan.steps.iter().enumerate().rev() {
        for &earlier in &step.after {
            behind[earlier] = behind[earlier].max(behind[id] + 1);
        }
    }
    behind
}

impl<'a> Dispatcher<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        ledger: Ledger<'a>,
        filler: Filler<'a>,
        open: Open,
        world: &'a World<'a>,
        options: &'a ApplyOptions,
        on_event: &'a mut dyn FnMut(Event),
    ) -> Self {
        let mut dependents = vec![Vec::new(); plan.steps.len()];
        for (id, step) in plan.steps.iter().enumerate() {
            for &earlier in &step.after {
                dependents[earlier].push(id);
            }
        }
        let mut dispatcher = Self {
            plan,
            ledger,
            filler,
            open,
            world,
            options,
            on_event,
            stages: vec![Stage::Waiting; plan.steps.len()],
            missing: plan.steps.iter().map(|s| s.after.len()).collect(),
            dependents,
            ready_outside: BTreeSet::new(),
            behind: behind(plan),
            ready: BTreeSet::new(),
            running: BTreeMap::new(),
            outside: 0,
            diagnostics: Diagnostics::new(),
            unread: BTreeMap::new(),
            unchanged: 0,
            stopped: false,
            interrupted: false,
        };
        for step in 0..plan.steps.len() {
            if dispatcher.missing[step] == 0 {
                dispatcher.make_ready(step);
            }
        }
        dispatcher
    }

    fn make_ready(&mut self, step: usize) {
        if self.is_outside(step) {
            self.ready_outside.insert((Reverse(self.behind[step]), step))
        } else {
            self.ready.insert(step)
        };
    }

    /// True if the step works on the outside world. What lives in the state alone, and waiting, takes nobody's place.
    fn is_outside(&self, step: usize) -> bool {
        match &self.plan.steps[step].kind {
            StepKind::Change { part: Action::Forget, .. } => false,
            StepKind::Change { resource, .. } => {
                let planned = &self.plan.resources[*resource];
                planned.provider.is_some() && self.ledger.schema(planned).is_none_or(|s| !s.state_only)
            }
            _ => false,
        }
    }

    /// Nothing more is started; what runs may end.
    pub(crate) fn give_up(&mut self, error: Diagnostic) {
        self.diagnostics.push(error);
        self.stopped = true;
    }

    /// True if there is nothing that could be started.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_stopped() || (self.ready.is_empty() && self.ready_outside.is_empty())
    }

    fn is_stopped(&self) -> bool {
        self.stopped || self.options.interrupt.load(Ordering::Relaxed)
    }

    pub(crate) fn take_records(&mut self) -> Vec<JournalRecord> {
        std::mem::take(&mut self.ledger.records)
    }

    /// Gets everything going that may go: what needs nobody is done at once, for the rest there is a job.
    pub(crate) fn start_ready(&mut self) -> Vec<Started> {
        let mut started = Vec::new();
        while !self.is_stopped() {
            let room = self.outside < self.options.parallelism.max(1);
            let next = self.ready.pop_first().or_else(|| if room { self.ready_outside.pop_first().map(|(_, step)| step) } else { None });
            let Some(step) = next else { break };
            if let Some(because) = self.held_up_by(step) {
                self.stages[step] = Stage::Skipped;
                self.event(step, EventKind::Skipped(Some(because.clone())));
                self.skip_behind(step, Some(because));
                continue;
            }
            match self.start(step) {
                Ok(Some(job)) => started.push(Started { step, job }),
                Ok(None) => {}
                Err(errors) => self.refuse(step, errors),
            }
        }
        started
    }

    pub(crate) fn run(&mut self, step: usize, sent: Object, prior: Option<ResourceState>) {
        let now = self.world.runtime.monotonic();
        let is_outside = self.is_outside(step);
        self.outside += usize::from(is_outside);
        self.stages[step] = Stage::Running;
        self.running.insert(step, Running { since: now, noticed: now, waits_for: None, sent, prior, is_outside });
    }

    /// Says that a step starts, now that the journal knows.
    pub(crate) fn announce(&mut self, step: usize) {
        self.event(step, EventKind::Started);
    }

    /// The journal refused: what was about to start is not started.
    pub(crate) fn cancel(&mut self, started: Vec<Started>, error: Diagnostic) {
        for Started { step, .. } in started {
            if let Some(running) = self.running.remove(&step) {
                self.outside -= usize::from(running.is_outside);
                self.stages[step] = Stage::Waiting;
                if let StepKind::Change { resource, part } = &self.plan.steps[step].kind
                    && !matches!(part, Action::Read)
                {
                    self.ledger.failed(*resource, *part, false, running.prior);
                }
            }
        }
        self.give_up(error);
    }

    /// A running step says what it waits for.
    pub(crate) fn note(&mut self, note: Note) {
        let now = self.world.runtime.monotonic();
        if let Some(running) = self.running.get_mut(&note.step) {
            running.waits_for = Some(note.text.clone());
            running.noticed = now;
            self.event(note.step, EventKind::Waiting(Some(note.text)));
        }
    }

    /// Says of everything that runs for long that it still does.
    pub(crate) fn heartbeat(&mut self) {
        if self.options.heartbeat == 0 {
            return;
        }
        let now = self.world.runtime.monotonic();
        let mut due = Vec::new();
        for (step, running) in &mut self.running {
            if now.saturating_sub(running.noticed) >= self.options.heartbeat {
                running.noticed = now;
                due.push((*step, running.waits_for.clone()));
            }
        }
        for (step, waits_for) in due {
            self.event(step, EventKind::Waiting(waits_for));
        }
    }

    pub(crate) fn succeed(&mut self, step: usize) {
        self.leave(step, Stage::Succeeded);
        for next in self.dependents[step].clone() {
            self.missing[next] -= 1;
            if self.missing[next] == 0 && self.stages[next] == Stage::Waiting {
                self.make_ready(next);
            }
        }
    }

    fn leave(&mut self, step: usize, stage: Stage) {
        self.stages[step] = stage;
        if let Some(running) = self.running.remove(&step) {
            self.outside -= usize::from(running.is_outside);
        }
    }

    /// Ends a step that went wrong.
    pub(crate) fn fail(&mut self, step: usize, errors: Diagnostics) {
        if let Some(first) = errors.iter().find(|d| d.is_error()).or_else(|| errors.iter().next()) {
            self.event(step, EventKind::Failed(Box::new(first.clone())));
        }
        self.refuse(step, errors);
    }

    /// The same of one that was not begun, or that did its work, but not as a condition wants it: there is no failure of it to be told.
    pub(crate) fn refuse(&mut self, step: usize, errors: Diagnostics) {
        let address = self.address(step);
        let at = |d: Diagnostic| match &address {
            Some(address) => d.at(address).with_span(self.world.config.block(address).map(|b| b.span)),
            None => d,
        };
        let named: Vec<Diagnostic> = errors.into_iter().map(at).collect();
        // What only a check looks at holds up nothing.
        if let Some(address) = address.as_ref().filter(|a| self.world.config.check_of(a).is_some()) {
            let why = named.iter().find(|d| d.is_error()).map(|d| d.detail.clone());
            self.unread.insert(address.clone(), why.unwrap_or_default());
            self.diagnostics.extend(named.into_iter().map(|d| Diagnostic { severity: Severity::Warning, ..d }));
            return self.succeed(step);
        }
        self.diagnostics.extend(named);
        self.leave(step, Stage::Failed);
        self.skip_behind(step, address);
    }

    fn skip_behind(&mut self, step: usize, because: Option<Address>) {
        let mut open = self.dependents[step].clone();
        let mut skipped = BTreeSet::new();
        while let Some(next) = open.pop() {
            if self.stages[next] == Stage::Waiting {
                self.stages[next] = Stage::Skipped;
                skipped.insert(next);
                open.extend(&self.dependents[next]);
            }
        }
        for next in skipped {
            self.event(next, EventKind::Skipped(because.clone()));
        }
    }

    fn address(&self, step: usize) -> Option<Address> {
        match &self.plan.steps[step].kind {
            StepKind::Change { resource, .. } | StepKind::Finish { resource } => Some(self.plan.resources[*resource].address.clone()),
            StepKind::Gate { composite, .. } => Some(composite.clone()),
            StepKind::Join => None,
        }
    }

    pub(crate) fn event(&mut self, step: usize, kind: EventKind) {
        let Some(address) = self.address(step) else { return };
        let (gate, action) = match &self.plan.steps[step].kind {
            StepKind::Gate { gate, .. } => (Some(gate.name.clone()), None),
            StepKind::Change { part, .. } => (None, Some(*part)),
            StepKind::Finish { resource } => (None, Some(self.plan.resources[*resource].change.action())),
            StepKind::Join => return,
        };
        let (deposed, id, importing) = match &self.plan.steps[step].kind {
            StepKind::Change { resource, part } => self.object_of(*resource, *part),
            _ => (None, None, false),
        };
        let elapsed = self.running.get(&step).map_or(0, |r| self.world.runtime.monotonic().saturating_sub(r.since));
        (self.on_event)(Event { step, address, gate, action, deposed, id, importing, elapsed, kind });
    }

    /// Which object a step is about: its key if it was set aside, its id, and whether it is only taken over.
    fn object_of(&self, resource: usize, part: Action) -> (Option<String>, Option<String>, bool) {
        let planned = &self.plan.resources[resource];
        let deposed = self.ledger.key_of_deposed(resource).filter(|_| matches!(part, Action::Delete | Action::Forget)).cloned();
        let importing = planned.is_import_alone();
        let id = match part {
            _ if importing => planned.importing.clone(),
            Action::Update | Action::Delete => self.id_before(planned),
            _ => None,
        };
        (deposed, id, importing)
    }

    /// The `id` of what is there before a change, if it may be told.
    fn id_before(&self, planned: &PlannedResource) -> Option<String> {
        let id = planned.change.before()?.get("id")?;
        let by_schema = self.ledger.schema(planned).and_then(|s| s.attribute("id")).is_some_and(|a| a.secret);
        let is_secret = by_schema || id.contains_secret() || planned.secret_paths.iter().any(|p| p.root() == Some("id"));
        id.as_str().filter(|_| !is_secret).map(str::to_owned)
    }

    /// What never started is skipped; outputs that were reached are stored.
    pub(crate) fn finish(&mut self, graph: &crate::graph::Graph) {
        for step in 0..self.stages.len() {
            if self.stages[step] == Stage::Waiting {
                self.stages[step] = Stage::Skipped;
                self.event(step, EventKind::Skipped(None));
                self.interrupted |= self.options.interrupt.load(Ordering::Relaxed);
            }
        }
        self.ledger.inherit();
        crate::outputs::store(self, graph);
        self.judge_rest();
        crate::checks::applied(self);
    }

    /// Addresses of which a step did not end well.
    pub(crate) fn unreached(&self) -> BTreeSet<Address> {
        let bad = |step: &usize| matches!(self.stages[*step], Stage::Failed | Stage::Skipped);
        (0..self.stages.len()).filter(bad).filter_map(|step| self.address(step)).collect()
    }

    pub(crate) fn world(&self) -> &'a World<'a> {
        self.world
    }

    pub(crate) fn end(self) -> End<'a> {
        let is_seen = |step: &usize| !matches!(self.plan.steps[*step].kind, StepKind::Join);
        let count = |stage: Stage| (0..self.stages.len()).filter(is_seen).filter(|s| self.stages[*s] == stage).count();
        let (succeeded, failed, skipped) = (count(Stage::Succeeded), count(Stage::Failed), count(Stage::Skipped));
        let Self { ledger, diagnostics, interrupted, unchanged, .. } = self;
        End { ledger, diagnostics, interrupted, succeeded, failed, skipped, unchanged }
    }
}
