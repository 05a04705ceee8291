//! Everything a run needs, fake, and the shortest way from a text to a plan and to what applying it leaves.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use karmaform_engine::{
    ApplyOptions, Known, Options, Outcome, Pool, Runtime, World as Surroundings, apply, check, expand, graph, observe, plan, recover,
    relocate, strays, without_deferred,
};
use karmaform_lang::{Config, Context, NothingKnown, Resolver, SourceFile, Sources, VariableInputs, load_with};
use karmaform_model::{
    Action, Adapter, BackendError, BoxFuture, Composite, Diagnostics, Driver, Event, EventKind, Journal, JournalRecord, LockId, LockInfo,
    Plan, Registry, Snapshot, StateBackend, StepKind,
};

use crate::fake::{Fake, World};
use crate::fake_cluster::Cluster;

/// A clock that only goes when someone waits.
#[derive(Default)]
pub struct Clock {
    pub waited: AtomicU64,
    /// By how much it is set ahead each time that it is looked at.
    pub jumps: AtomicU64,
    pub ahead: AtomicU64,
}

impl Runtime for Clock {
    fn now(&self) -> u64 {
        let ahead = self.ahead.fetch_add(self.jumps.load(Ordering::Relaxed), Ordering::Relaxed);
        self.waited.load(Ordering::Relaxed) + ahead
    }
    fn monotonic(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }
    fn sleep(&self, milliseconds: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.waited.fetch_add(milliseconds, Ordering::Relaxed);
        })
    }
}

#[derive(Clone, Default)]
pub struct Backend {
    pub stored: Arc<Mutex<Option<Snapshot>>>,
    pub writes: Arc<Mutex<usize>>,
    pub broken: Arc<Mutex<bool>>,
    /// Somebody has removed the lock.
    pub unlocked: Arc<Mutex<bool>>,
}

fn refusal() -> BackendError {
    BackendError::Io { what: "writing", place: "fake".into(), source: std::io::Error::other("no") }
}

impl StateBackend for Backend {
    fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        Box::pin(async { Ok(self.stored.lock().unwrap().clone()) })
    }
    fn write<'a>(&'a self, expected: Option<u64>, next: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move {
            if *self.broken.lock().unwrap() {
                return Err(refusal());
            }
            if *self.unlocked.lock().unwrap() {
                return Err(BackendError::LockLost(None));
            }
            let mut stored = self.stored.lock().unwrap();
            if stored.as_ref().map(|s| s.serial) != expected {
                return Err(BackendError::Conflict { expected: expected.unwrap_or(0), found: stored.as_ref().map_or(0, |s| s.serial) });
            }
            // Through the text, so that what the format can't hold shows.
            *stored = Some(Snapshot::from_text(&next.to_text()).unwrap());
            *self.writes.lock().unwrap() += 1;
            Ok(())
        })
    }
    fn lock<'a>(&'a self, _: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        Box::pin(async { Err(refusal()) })
    }
    fn unlock<'a>(&'a self, _: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async { Err(refusal()) })
    }
}

/// What is in the world at the time of each append.
type Witness = Vec<BTreeMap<String, karmaform_model::Object>>;

#[derive(Clone, Default)]
pub struct Diary {
    pub records: Arc<Mutex<Vec<JournalRecord>>>,
    /// How many records there were after each append, and the world then.
    pub appends: Arc<Mutex<Vec<usize>>>,
    pub witness: Arc<Mutex<Witness>>,
    pub world: Option<World>,
    /// Refuses from this append on.
    pub full_at: Option<usize>,
    /// It can't be emptied.
    pub stuck: bool,
}

impl Journal for Diary {
    fn append(&mut self, records: &[JournalRecord]) -> Result<(), BackendError> {
        if self.full_at.is_some_and(|at| self.appends.lock().unwrap().len() >= at) {
            return Err(refusal());
        }
        // Through the text, as on a disk.
        let text: Vec<_> = records.iter().map(|r| serde_json::to_string(r).unwrap()).collect();
        self.records.lock().unwrap().extend(text.iter().map(|t| serde_json::from_str(t).unwrap()));
        self.appends.lock().unwrap().push(self.records.lock().unwrap().len());
        if let Some(world) = &self.world {
            self.witness.lock().unwrap().push(world.lock().things.clone());
        }
        Ok(())
    }
    fn read(&self) -> Result<Vec<JournalRecord>, BackendError> {
        Ok(self.records.lock().unwrap().clone())
    }
    fn clear(&mut self) -> Result<(), BackendError> {
        if self.stuck {
            return Err(refusal());
        }
        self.records.lock().unwrap().clear();
        Ok(())
    }
}

pub struct Lab {
    pub world: World,
    pub registry: Arc<Registry>,
    pub backend: Backend,
    pub journal: Diary,
    pub clock: Clock,
    pub cluster: Cluster,
    pub events: Vec<Event>,
    pub apply_options: ApplyOptions,
}

pub struct Planned {
    pub config: Config,
    pub state: Snapshot,
    pub plan: Plan,
    pub diagnostics: Diagnostics,
    pub passes: usize,
    pub observed: karmaform_engine::Observed,
}

impl Lab {
    pub fn new() -> Self {
        let world = World::default();
        let cluster = Cluster::default();
        let driver: Arc<dyn Driver> = Arc::new(Adapter(Fake(world.clone())));
        let composite: Arc<dyn Composite> = Arc::new(cluster.clone());
        let registry = Arc::new(Registry::new(vec![driver], vec![composite]));
        let journal = Diary { world: Some(world.clone()), ..Diary::default() };
        let apply_options = ApplyOptions { heartbeat: 0, ..ApplyOptions::default() };
        Self { world, registry, backend: Backend::default(), journal, clock: Clock::default(), cluster, events: Vec::new(), apply_options }
    }

    /// The configuration; the text must be right.
    pub fn load(&self, text: &str) -> Config {
        self.load_with(text, &NothingKnown)
    }

    fn load_with(&self, text: &str, known: &dyn Resolver) -> Config {
        let mut sources = Sources::default();
        sources.add(SourceFile { path: "main.kf.hcl".into(), text: text.into() });
        let context = Context::alone();
        let (config, diagnostics) = load_with(&sources, &VariableInputs::default(), &context, &self.registry, known);
        assert!(!diagnostics.has_errors(), "{diagnostics:?}\n{text}");
        config
    }

    /// The same with all instances that can be told by what is there.
    fn expanded(&self, text: &str, options: &Options, state: &Snapshot) -> Config {
        let config = self.load(text);
        if config.open.is_empty() {
            return config;
        }
        let pool = Pool::new(self.registry.catalog().clone(), config.providers.clone());
        let world = Surroundings {
            config: &config,
            registry: &self.registry,
            state,
            pool: &pool,
            runtime: &self.clock,
            hands: Some(&self.registry),
        };
        let read = |known: &Known| (self.load_with(text, known), Diagnostics::new());
        block_on(expand(&world, options, &read)).config
    }

    pub fn state(&self) -> Snapshot {
        let stored = self.backend.stored.lock().unwrap().clone();
        stored.unwrap_or_else(|| Snapshot { lineage: "history".into(), ..Snapshot::default() })
    }

    pub fn try_plan(&self, text: &str, options: &Options) -> Planned {
        self.plan_from(text, options, self.state())
    }

    pub fn plan_from(&self, text: &str, options: &Options, state: Snapshot) -> Planned {
        let config = self.expanded(text, options, &state);
        let pool = Pool::new(self.registry.catalog().clone(), config.providers.clone());
        let before = state.clone();
        let (relocated, mut diagnostics) = relocate(&config, &before);
        let (state, moved) = (relocated.state.into_owned(), relocated.moved);
        let (graph, wrong) = graph(&config, &state, &self.registry);
        let graph = graph.with_moved(moved);
        diagnostics.extend(without_deferred(&graph, options, wrong));
        let world = Surroundings {
            config: &config,
            registry: &self.registry,
            state: &state,
            pool: &pool,
            runtime: &self.clock,
            hands: Some(&self.registry),
        };
        let (observed, problems) = block_on(observe(&graph, &world, options));
        diagnostics.extend(problems);
        let (plan, problems) = plan(&graph, &world.inputs(), &observed, options);
        // The first one has what the observation learned, this one learns it by itself.
        let (alone, same) = karmaform_engine::plan(&graph, &world.inputs(), &observed, options);
        assert_eq!((&alone, &same), (&plan, &problems), "{text}");
        diagnostics.extend(problems);
        if !diagnostics.has_errors() {
            let wrong = check(&plan);
            assert!(wrong.is_empty(), "{wrong:#?}\n{}\n{text}", show(&plan));
            let again: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
            assert_eq!(again, plan, "a plan survives being saved");
        }
        let passes = observed.passes();
        Planned { config, state: before, plan, diagnostics, passes, observed }
    }

    /// What is told as a stray, and beside which resource, by a run that only looks.
    pub fn strays(&self, text: &str) -> Vec<(String, String)> {
        let (config, state) = (self.load(text), self.state());
        let pool = Pool::only_looking(self.registry.catalog().clone(), config.providers.clone());
        let (graph, _) = graph(&config, &state, &self.registry);
        let world =
            Surroundings { config: &config, registry: &self.registry, state: &state, pool: &pool, runtime: &self.clock, hands: None };
        let (observed, _) = block_on(observe(&graph, &world, &Options { lenient: true, ..Options::default() }));
        let strays = block_on(strays(&world, &observed, 4));
        assert!(strays.wrong.is_empty() && strays.unlisted.is_empty(), "{strays:?}");
        strays.found.into_iter().map(|b| (b.address.to_string(), b.name)).collect()
    }

    /// The plan; there must be no error.
    pub fn plan(&self, text: &str) -> Planned {
        self.plan_with(text, &Options::default())
    }

    pub fn plan_with(&self, text: &str, options: &Options) -> Planned {
        let planned = self.try_plan(text, options);
        assert!(!planned.diagnostics.has_errors(), "{:#?}\n{text}", planned.diagnostics);
        planned
    }

    /// Applies a plan; whatever comes of it.
    pub fn apply_plan(&mut self, planned: &Planned) -> Outcome {
        let pool = Pool::new(self.registry.catalog().clone(), planned.config.providers.clone());
        let (relocated, _) = relocate(&planned.config, &planned.state);
        let (graph, _) = graph(&planned.config, &relocated.state, &self.registry);
        let world = Surroundings {
            config: &planned.config,
            registry: &self.registry,
            state: &planned.state,
            pool: &pool,
            runtime: &self.clock,
            hands: Some(&self.registry),
        };
        let stored = self.backend.stored.lock().unwrap().as_ref().map(|s| s.serial);
        let options = ApplyOptions { stored, ..self.apply_options.clone() };
        self.events.clear();
        let events = &mut self.events;
        let outcome =
            block_on(apply(&planned.plan, &graph, &world, &self.backend, &mut self.journal, &options, &mut |event| events.push(event)));
        legal(&self.events);
        outcome
    }

    /// Plans and applies, as a user would after an earlier run: with the journal taken in first.
    pub fn run(&mut self, text: &str) -> Outcome {
        self.run_with(text, &Options::default())
    }

    pub fn run_with(&mut self, text: &str, options: &Options) -> Outcome {
        let mut state = self.state();
        let recovery = recover(&mut state, &self.journal.read().unwrap());
        if !recovery.changed.is_empty() {
            let expected = self.backend.stored.lock().unwrap().as_ref().map(|s| s.serial);
            state.serial += 1;
            block_on(self.backend.write(expected, &state)).unwrap();
        }
        self.journal.clear().unwrap();
        let planned = self.plan_from(text, options, state);
        assert!(!planned.diagnostics.has_errors(), "{:#?}\n{text}", planned.diagnostics);
        self.apply_plan(&planned)
    }

    /// Plans and applies; it must work, and leave nothing to do.
    pub fn converge(&mut self, text: &str) {
        let outcome = self.run(text);
        assert!(outcome.is_success(), "{:#?}\n{text}", outcome.diagnostics);
        let mut planned = self.plan(text);
        // What waits for what was made comes with the plans that follow.
        while !planned.plan.is_empty() && !self.load(text).open.is_empty() {
            let outcome = self.apply_plan(&planned);
            assert!(outcome.is_success(), "{:#?}\n{text}", outcome.diagnostics);
            planned = self.plan(text);
        }
        assert!(planned.plan.deferred.is_empty(), "something waits for ever:\n{}\n{text}", show(&planned.plan));
        assert!(planned.plan.is_empty(), "there is something left to do:\n{}\n{text}", show(&planned.plan));
        assert_eq!(planned.plan.steps, []);
    }
}

/// Each step's events are in a legal order.
fn legal(events: &[Event]) {
    let mut last: BTreeMap<usize, &EventKind> = BTreeMap::new();
    for event in events {
        let before = last.insert(event.step, &event.kind);
        let runs = matches!(before, Some(EventKind::Started | EventKind::Waiting(_)));
        let fine = match &event.kind {
            EventKind::Started | EventKind::Skipped(_) => before.is_none(),
            EventKind::Waiting(_) | EventKind::Succeeded(_) | EventKind::Failed(_) => runs,
        };
        assert!(fine, "{before:?} then {event:?}");
    }
    assert!(!last.values().any(|k| matches!(k, EventKind::Started | EventKind::Waiting(_))), "{events:?}");
}

/// A plan in short: changes, then steps.
pub fn show(plan: &Plan) -> String {
    let mut lines: Vec<String> = changes(plan).lines().map(str::to_owned).collect();
    for (id, step) in plan.steps.iter().enumerate() {
        let what = match &step.kind {
            StepKind::Change { resource, part } => format!("{part:?} {}", plan.resources[*resource].address),
            StepKind::Gate { composite, gate } => format!("Gate {} {composite}", gate.name),
            StepKind::Finish { resource } => format!("Finish {}", plan.resources[*resource].address),
            StepKind::Join => "Join".into(),
        };
        lines.push(format!("{id}: {what} after {:?}", step.after));
    }
    lines.join("\n")
}

/// The changes of a plan, one a line, with their reason.
pub fn changes(plan: &Plan) -> String {
    let mut lines = Vec::new();
    for resource in &plan.resources {
        let symbol = match resource.change.action() {
            Action::NoOp => continue,
            Action::Read => "<=",
            Action::Create => "+",
            Action::Update => "~",
            Action::DestroyThenCreate => "-/+",
            Action::CreateThenDestroy => "+/-",
            Action::Delete => "-",
            Action::Forget => ".",
        };
        let deposed = resource.deposed.as_ref().map(|_| " (deposed)").unwrap_or_default();
        let reason = resource.reason.as_ref().map(|r| format!(" {r:?}")).unwrap_or_default();
        lines.push(format!("{symbol} {}{deposed}{reason}", resource.address));
    }
    for (name, change) in &plan.outputs {
        lines.push(format!("output {name}: {:?} -> {:?}", change.before, change.after));
    }
    lines.join("\n")
}

/// The steps of a plan, one a word, in an order that respects them.
pub fn steps(plan: &Plan) -> Vec<String> {
    show(plan).lines().filter(|l| l.contains(" after [")).map(str::to_owned).collect()
}
