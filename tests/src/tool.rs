//! karmaform without its command: language and engine over a world in memory, a state in memory and a journal in memory. It can be killed
//! in the middle of an apply: then nothing of it is left but world, state and journal, as with a process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karmaform_engine::{
    ApplyOptions, Options, Outcome, Pool, World as Doors, apply, check, graph, observe, plan, rebuild, recover, relocate,
};
use karmaform_lang::{Config, Context, Files, SourceFile, Sources, VariableInputs, load, validate};
use karmaform_memory::World;
use karmaform_model::{
    BackendError, BoxFuture, Diagnostics, Event, Journal, JournalRecord, LockId, LockInfo, ModeOfPlan, Plan, Registry, Serial, Snapshot,
    StateBackend,
};

use tokio::sync::Notify;

use crate::golden::context;
use crate::parts::{START_SECONDS, TestClock, block_on, memory_registry};

/// A world, its state and its journal.
pub(crate) struct Tool {
    pub(crate) world: Arc<World>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) backend: MemoryBackend,
    journal: MemoryJournal,
    /// What plans take for the time, in seconds since 1970.
    pub(crate) now: i64,
    /// Told by a provider that will never answer.
    pub(crate) hung: Arc<Notify>,
}

/// How an apply ended.
pub(crate) enum Ended {
    /// It came to its end, well or not.
    Well(Box<Outcome>),
    /// It hung, and was killed.
    Killed,
}

/// An apply in a world that answers at once either ends in this time or hangs. On a slow machine one that does neither is killed at another
/// moment than was meant, which is just as good.
const HANGS: Duration = Duration::from_millis(60);
/// Where nothing is to hang.
const LIMIT: Duration = Duration::from_secs(60);

/// The files of modules, by path.
struct Modules(BTreeMap<String, String>);

impl Files for Modules {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).map(|text| text.clone().into_bytes()).ok_or_else(|| "there is no such file".to_owned())
    }

    fn exists(&self, path: &str) -> Result<bool, String> {
        Ok(self.0.contains_key(path))
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, String> {
        Ok(self.0.keys().filter_map(|p| p.strip_prefix(directory)?.strip_prefix('/')).map(str::to_owned).collect())
    }
}

/// What `data "memory_host"` answers.
const HOSTS: &str = r#"
data memory_host {"address":"one"} = {"connection":{"provider":"memory","id":"one:22"},"hostname":"one"}
data memory_host {"address":"two"} = {"connection":{"provider":"memory","id":"two:22"},"hostname":"two"}
"#;

impl Tool {
    pub(crate) fn new() -> Self {
        let world = World::new();
        let registry = memory_registry(&world);
        world.preset(HOSTS).expect("two hosts");
        Self { world, ..Self::over(registry) }
    }

    /// With providers that have another world.
    pub(crate) fn over(registry: Arc<Registry>) -> Self {
        Self {
            world: World::new(),
            registry,
            backend: MemoryBackend::default(),
            journal: MemoryJournal::default(),
            now: START_SECONDS,
            hung: Arc::default(),
        }
    }

    /// Loads a configuration that has no errors. `%%%% PATH` starts a file of a module.
    #[track_caller]
    pub(crate) fn config(&self, text: &str) -> Config {
        let mut sources = Sources::default();
        let mut files = text.split("%%%% ");
        sources.add(SourceFile { path: "main.kf.hcl".into(), text: files.next().unwrap_or_default().to_owned() });
        let modules = files.filter_map(|f| f.split_once('\n')).map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
        let context = Context { files: Arc::new(Modules(modules)), ..context() };
        let (config, mut diagnostics) = load(&sources, &VariableInputs::default(), &context, &self.registry);
        diagnostics.extend(validate(&config));
        assert!(!diagnostics.has_errors(), "{diagnostics:#?}\n{text}");
        config
    }

    /// The state as a new run finds it: what is stored, and what the journal adds.
    pub(crate) fn state(&self) -> (Snapshot, Option<Serial>) {
        let stored = block_on(self.backend.read()).expect("a state in memory");
        let serial = stored.as_ref().map(|s| s.serial);
        let mut snapshot = stored.unwrap_or_else(|| Snapshot { lineage: "lineage".into(), ..Snapshot::default() });
        recover(&mut snapshot, &self.journal.read().expect("a journal in memory"));
        (snapshot, serial)
    }

    /// Observes and plans; the plan must be sound.
    #[track_caller]
    pub(crate) fn plan(&self, config: &Config, mode: ModeOfPlan) -> (Plan, Diagnostics) {
        let (state, _) = self.state();
        let (plan, diagnostics) = block_on(self.plan_from(config, &state, mode));
        assert_eq!(check(&plan), Vec::<String>::new(), "the plan is not sound");
        (plan, diagnostics)
    }

    async fn plan_from(&self, config: &Config, state: &Snapshot, mode: ModeOfPlan) -> (Plan, Diagnostics) {
        let options = Options { mode, now: self.now, tool_version: "0.1.0".into(), ..Options::default() };
        let pool = Pool::new(Arc::clone(self.registry.catalog()), config.providers.clone());
        let clock = TestClock::default();
        let (relocated, mut diagnostics) = relocate(config, state);
        let (graph, wrong) = graph(config, &relocated.state, &self.registry);
        let (graph, state) = (graph.with_moved(relocated.moved), &*relocated.state);
        diagnostics.extend(wrong);
        let doors = Doors { config, registry: &self.registry, state, pool: &pool, runtime: &clock, hands: Some(&self.registry) };
        let (observed, wrong) = observe(&graph, &doors, &options).await;
        diagnostics.extend(wrong);
        let (plan, wrong) = plan(&graph, &doors.inputs(), &observed, &options);
        diagnostics.extend(wrong);
        (plan, diagnostics)
    }

    /// Loses the state, and has it made anew.
    #[track_caller]
    pub(crate) fn rebuild(&self, config: &Config) {
        let (lost, serial) = self.state();
        let (empty, clock) = (Snapshot::default(), TestClock::default());
        let options = Options { now: self.now, tool_version: "0.1.0".into(), ..Options::default() };
        let pool = Pool::new(Arc::clone(self.registry.catalog()), config.providers.clone());
        let (graph, _) = graph(config, &empty, &self.registry);
        let doors = Doors { config, registry: &self.registry, state: &empty, pool: &pool, runtime: &clock, hands: Some(&self.registry) };
        let (rebuilt, diagnostics) = block_on(rebuild(&graph, &doors, &options));
        assert!(!diagnostics.has_errors(), "{diagnostics:#?}");
        let next = Snapshot { lineage: lost.lineage, serial: lost.serial + 1, ..rebuilt.snapshot };
        block_on(self.backend.write(serial, &next)).expect("a state in memory");
    }

    /// Plans and applies, as one run does. An apply that hangs is killed.
    #[track_caller]
    pub(crate) fn apply(&self, config: &Config, mode: ModeOfPlan) -> Ended {
        self.apply_within(config, mode, HANGS)
    }

    /// The same where a provider tells when it hangs.
    #[track_caller]
    pub(crate) fn apply_patiently(&self, config: &Config, mode: ModeOfPlan) -> Ended {
        self.apply_within(config, mode, LIMIT)
    }

    #[track_caller]
    fn apply_within(&self, config: &Config, mode: ModeOfPlan, limit: Duration) -> Ended {
        let (mut state, mut stored) = self.state();
        let recovered = !self.journal.read().expect("a journal in memory").is_empty();
        block_on(async {
            if recovered {
                state.serial += 1;
                self.backend.write(stored, &state).await.expect("a state in memory");
                stored = Some(state.serial);
                self.journal.clone().clear().expect("a journal in memory");
            }
            let (plan, diagnostics) = self.plan_from(config, &state, mode).await;
            assert_eq!(check(&plan), Vec::<String>::new(), "the plan is not sound");
            if diagnostics.has_errors() {
                let outcome = Outcome { diagnostics, ..Outcome::of(state) };
                return Ended::Well(Box::new(outcome));
            }
            let (relocated, _) = relocate(config, &state);
            let (graph, _) = graph(config, &relocated.state, &self.registry);
            let pool = Pool::new(Arc::clone(self.registry.catalog()), config.providers.clone());
            let clock = TestClock::default();
            let doors =
                Doors { config, registry: &self.registry, state: &state, pool: &pool, runtime: &clock, hands: Some(&self.registry) };
            let options = ApplyOptions { stored, ..ApplyOptions::default() };
            let mut journal = self.journal.clone();
            let mut events = Vec::new();
            let mut on_event = |event: Event| events.push(event);
            let run = apply(&plan, &graph, &doors, &self.backend, &mut journal, &options, &mut on_event);
            let ended = tokio::select! {
                outcome = run => Some(outcome),
                () = tokio::time::sleep(limit) => None,
                () = self.hung.notified() => None,
            };
            match ended {
                Some(outcome) => {
                    crate::events::legal(&plan, &events);
                    Ended::Well(Box::new(outcome))
                }
                None => Ended::Killed,
            }
        })
    }

    /// Applies; it must succeed, and leave nothing to do.
    #[track_caller]
    pub(crate) fn converge(&self, config: &Config, mode: ModeOfPlan) {
        match self.apply_patiently(config, mode) {
            Ended::Well(outcome) => assert!(outcome.is_success(), "{:#?}\n{}", outcome.diagnostics, self.world.log().join("\n")),
            Ended::Killed => panic!("the apply hangs:\n{}", self.world.log().join("\n")),
        }
        let (plan, diagnostics) = self.plan(config, mode);
        assert!(!diagnostics.has_errors(), "{diagnostics:#?}");
        let left: Vec<_> = plan.resources.iter().filter(|r| !r.change.is_no_op()).map(|r| (&r.address, &r.change)).collect();
        assert!(plan.is_empty(), "after apply the plan is not empty: {left:#?}\n{:#?}", plan.outputs);
    }

    /// The world's things, with made-up values as if each thing had been made once.
    pub(crate) fn things(&self) -> String {
        let text = self.world.text();
        let mut parts = text.split("computed-");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + "computed" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
    }
}

/// A state in memory.
#[derive(Default)]
pub(crate) struct MemoryBackend {
    state: Mutex<Option<String>>,
    lock: Mutex<Option<LockInfo>>,
}

impl StateBackend for MemoryBackend {
    fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        Box::pin(async move {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(state.as_deref().map(|text| Snapshot::from_text(text).expect("what was written")))
        })
    }

    fn write<'a>(&'a self, expected: Option<Serial>, next: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let found = state.as_deref().map(|text| Snapshot::from_text(text).expect("what was written").serial);
            if found != expected {
                return Err(BackendError::Conflict { expected: expected.unwrap_or(0), found: found.unwrap_or(0) });
            }
            *state = Some(next.to_text());
            Ok(())
        })
    }

    fn lock<'a>(&'a self, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        Box::pin(async move {
            let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            match &*lock {
                Some(holder) => Err(BackendError::Locked(Some(Box::new(holder.clone())))),
                None => Ok(LockId(lock.insert(who.clone()).id.clone())),
            }
        })
    }

    fn unlock<'a>(&'a self, id: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move {
            let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            match &*lock {
                None => Err(BackendError::NotLocked),
                Some(holder) if holder.id != id.0 => Err(BackendError::OtherLock { given: id.0.clone(), held: holder.id.clone() }),
                Some(_) => {
                    *lock = None;
                    Ok(())
                }
            }
        })
    }
}

/// A journal in memory; clones are the same journal.
#[derive(Clone, Default)]
pub(crate) struct MemoryJournal(Arc<Mutex<Vec<JournalRecord>>>);

impl Journal for MemoryJournal {
    fn append(&mut self, records: &[JournalRecord]) -> Result<(), BackendError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(records);
        Ok(())
    }

    fn read(&self) -> Result<Vec<JournalRecord>, BackendError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn clear(&mut self) -> Result<(), BackendError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }
}
