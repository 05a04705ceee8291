//! Speed of the parts: loading, planning and applying 10,000 layered `terraform_data`, with the real backend and journal on disk; and planning
//! 1,000 members of a Karmada, in a world in memory; and 500 modules. And what is written for that: bytes, which are the same on every machine.
//! Whole processes, memory and growth are measured by `bench/run.sh`; `make bench` runs both.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use criterion::{BatchSize, Criterion, Throughput};
use karmaform::Wiring;
use karmaform_engine::{ApplyOptions, Graph, Options, Pool, Runtime, World, apply, graph, observe, plan};
use karmaform_lang::{Config, Context, Files, SourceFile, Sources, VariableInputs, load};
use karmaform_local::{FileJournal, LocalBackend};
use karmaform_memory::Memory;
use karmaform_model::{
    BackendError, BoxFuture, Driver, Journal, JournalRecord, LockId, LockInfo, Plan, Registry, Serial, Snapshot, StateBackend,
};

const COUNT: usize = 10_000;
const PER_LAYER: usize = 100;

const MEMBERS: usize = 1_000;

/// A fleet from one block. What it is reached by is written down, so that nothing is asked for it.
fn fleet(count: usize) -> String {
    format!(
        r#"
locals {{
  plane = {{ provider = "kubernetes", id = "p1", server = "https://karmada.example:5443", server_ca = "ca" }}
}}
resource "karmada_member" "fleet" {{
  for_each      = toset([for n in range({count}) : format("m%04d", n)])
  control_plane = local.plane
  cluster       = {{ provider = "kubernetes", id = each.key, server = "https://${{each.key}}.example:6443", kubeconfig = "k" }}
  region        = "eu"
}}
"#
    )
}

/// The same as `tests/bench/layered.sh` writes; the last `changed` have another name.
fn layered(count: usize, changed: usize) -> String {
    let mut text = String::new();
    for i in 0..count {
        let (layer, column) = (i / PER_LAYER, i % PER_LAYER);
        let name = if i < count - changed { "node" } else { "other" };
        text += &format!(
            "resource \"terraform_data\" \"n{i}\" {{\n  input = {{\n    name  = \"{name} {column} of layer {layer}\"\n    layer = {layer}\n"
        );
        if layer > 0 {
            let below = (layer - 1) * PER_LAYER;
            let right = below + (column + 1) % PER_LAYER;
            text += &format!("    left  = terraform_data.n{}.id\n    right = terraform_data.n{right}.id\n", below + column);
        }
        text += "  }\n}\n";
    }
    text
}

/// Calls of one module with many variables, as generated configurations have them.
const MODULES: usize = 500;
const VARIABLES: usize = 60;

/// One file in memory: the module.
struct OneModule(String);

impl Files for OneModule {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if path == "m/main.kf.hcl" { Ok(self.0.clone().into_bytes()) } else { Err(format!("there is no {path}")) }
    }

    fn exists(&self, path: &str) -> Result<bool, String> {
        Ok(path == "m/main.kf.hcl")
    }

    fn list(&self, _: &str) -> Result<Vec<String>, String> {
        Ok(vec!["main.kf.hcl".to_owned()])
    }
}

/// The root module, and the one that it calls.
fn modules(count: usize, variables: usize) -> (String, String) {
    let names = || (0..variables).map(|v| format!("v{v}"));
    let mut root = String::new();
    for i in 0..count {
        let before = if i > 0 { format!("module.m{}.sum", i - 1) } else { "\"none\"".to_owned() };
        let values: String = names().map(|v| format!("  {v} = \"{v} of {i}\"\n")).collect();
        root += &format!("module \"m{i}\" {{\n  source = \"./m\"\n  before = {before}\n{values}}}\n");
    }
    let declared: String = names().map(|v| format!("variable \"{v}\" {{\n  type = string\n}}\n")).collect();
    let used: String = names().map(|v| format!("    {v} = var.{v}\n")).collect();
    let module = format!(
        "variable \"before\" {{}}\n{declared}resource \"terraform_data\" \"t\" {{\n  input = {{\n    before = var.before\n{used}  }}\n}}\n\
         output \"sum\" {{ value = terraform_data.t.id }}\n"
    );
    (root, module)
}

struct Clock;

impl Runtime for Clock {
    fn now(&self) -> u64 {
        SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(0))
    }

    fn sleep(&self, milliseconds: u64) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(milliseconds)))
    }
}

struct Bench {
    registry: Arc<Registry>,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("threads");
        Self { registry: Wiring::real().registry, runtime }
    }

    /// With a world in memory.
    fn in_memory() -> Self {
        let (real, world) = (Wiring::real().registry, karmaform_memory::World::new());
        let over = |d: &Arc<dyn Driver>| if d.name() == "tls" { Arc::clone(d) } else { Memory::over(Arc::clone(d), Arc::clone(&world)) };
        let drivers = real.drivers().map(over).collect();
        Self { registry: Arc::new(Registry::new(drivers, real.composites().cloned().collect())), ..Self::new() }
    }

    fn load(&self, text: &str) -> Config {
        self.load_in(text, &Context::alone())
    }

    fn load_in(&self, text: &str, context: &Context) -> Config {
        let mut sources = Sources::default();
        sources.add(SourceFile { path: "main.kf.hcl".into(), text: text.to_owned() });
        let (config, diagnostics) = load(&sources, &VariableInputs::default(), context, &self.registry);
        assert!(!diagnostics.has_errors(), "{diagnostics:?}");
        config
    }

    fn plan(&self, config: &Config, state: &Snapshot) -> (Plan, Graph) {
        let pool = Pool::new(Arc::clone(self.registry.catalog()), config.providers.clone());
        let options = Options { tool_version: "0.1.0".into(), ..Options::default() };
        let (graph, _) = graph(config, state, &self.registry);
        let world = World { config, registry: &self.registry, state, pool: &pool, runtime: &Clock, hands: Some(&self.registry) };
        let (observed, _) = self.runtime.block_on(observe(&graph, &world, &options));
        let (plan, diagnostics) = plan(&graph, &world.inputs(), &observed, &options);
        assert!(!diagnostics.has_errors(), "{diagnostics:?}");
        (plan, graph)
    }

    /// With backend and journal in `place`.
    fn apply(&self, config: &Config, plan: &Plan, graph: &Graph, place: &std::path::Path) -> Snapshot {
        let pool = Pool::new(Arc::clone(self.registry.catalog()), config.providers.clone());
        let state = Snapshot { lineage: "l".into(), ..Snapshot::default() };
        let world = World { config, registry: &self.registry, state: &state, pool: &pool, runtime: &Clock, hands: Some(&self.registry) };
        let backend = LocalBackend::new(place.join("karmaform.tfstate"));
        let mut journal = FileJournal::open(place.join("journal")).expect("a journal");
        let options = ApplyOptions::default();
        let mut on_event = |_| {};
        let run = apply(plan, graph, &world, &backend, &mut journal, &options, &mut on_event);
        let outcome = self.runtime.block_on(run);
        assert!(outcome.is_success(), "{:?}", outcome.diagnostics);
        self.runtime.block_on(backend.read()).expect("a state").expect("a state")
    }
}

/// A backend that counts what it writes.
struct CountingBackend {
    inner: LocalBackend,
    writes: AtomicU64,
    bytes: AtomicU64,
}

impl StateBackend for CountingBackend {
    fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        self.inner.read()
    }

    fn write<'a>(&'a self, expected: Option<Serial>, next: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.bytes.fetch_add(next.to_text().len() as u64, Ordering::SeqCst);
        self.inner.write(expected, next)
    }

    fn lock<'a>(&'a self, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        self.inner.lock(who)
    }

    fn unlock<'a>(&'a self, id: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>> {
        self.inner.unlock(id)
    }

    // As a remote one does, with the write before the work.
    fn is_shared(&self) -> bool {
        true
    }
}

/// A journal that counts what it writes.
struct CountingJournal {
    inner: FileJournal,
    path: PathBuf,
    appends: u64,
    bytes: u64,
}

impl CountingJournal {
    fn length(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |m| m.len())
    }
}

impl Journal for CountingJournal {
    fn append(&mut self, records: &[JournalRecord]) -> Result<(), BackendError> {
        let before = self.length();
        self.inner.append(records)?;
        self.appends += 1;
        self.bytes += self.length() - before;
        Ok(())
    }

    fn read(&self) -> Result<Vec<JournalRecord>, BackendError> {
        self.inner.read()
    }

    fn clear(&mut self) -> Result<(), BackendError> {
        self.inner.clear()
    }
}

/// Bytes for changes of a few and of many out of 10,000, beside what it would be if the state were written after each step.
#[expect(clippy::print_stdout, reason = "this is what the benchmark is for")]
fn written(bench: &Bench) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let config = bench.load(&layered(COUNT, 0));
    let (first, graph) = bench.plan(&config, &Snapshot::default());
    let state = bench.apply(&config, &first, &graph, place.path());
    println!("\nwritten by an apply over a state of {COUNT} resources, {} bytes:", state.to_text().len());
    for changed in [1, 100, COUNT] {
        let config = bench.load(&layered(COUNT, changed));
        let (plan, graph) = bench.plan(&config, &state);
        let pool = Pool::new(Arc::clone(bench.registry.catalog()), config.providers.clone());
        let world =
            World { config: &config, registry: &bench.registry, state: &state, pool: &pool, runtime: &Clock, hands: Some(&bench.registry) };
        let place = tempfile::tempdir().expect("a temporary directory");
        let inner = LocalBackend::new(place.path().join("karmaform.tfstate"));
        bench.runtime.block_on(inner.write(None, &state)).expect("written");
        let backend = CountingBackend { inner, writes: AtomicU64::new(0), bytes: AtomicU64::new(0) };
        let path = place.path().join("journal");
        let mut journal = CountingJournal { inner: FileJournal::open(&path).expect("a journal"), path, appends: 0, bytes: 0 };
        let options = ApplyOptions { stored: Some(state.serial), ..ApplyOptions::default() };
        let mut on_event = |_| {};
        let outcome = bench.runtime.block_on(apply(&plan, &graph, &world, &backend, &mut journal, &options, &mut on_event));
        assert!(outcome.is_success(), "{:?}", outcome.diagnostics);
        let (steps, bytes) = (plan.steps.len() as u64, backend.bytes.load(Ordering::SeqCst));
        let naive = steps * state.to_text().len() as u64;
        println!(
            "  {changed:>6} changed: backend {} writes, {bytes} bytes; journal {} appends, {} bytes, {} a step; the state after each step would be {:.1} times as much",
            backend.writes.load(Ordering::SeqCst),
            journal.appends,
            journal.bytes,
            journal.bytes / steps.max(1),
            naive as f64 / (bytes + journal.bytes) as f64
        );
    }
}

fn ten_thousand(criterion: &mut Criterion) {
    let bench = Bench::new();
    let text = layered(COUNT, 0);
    let config = bench.load(&text);
    let (first, graph) = bench.plan(&config, &Snapshot::default());
    assert_eq!(first.counts(), (COUNT, 0, 0));
    let place = tempfile::tempdir().expect("a temporary directory");
    let state = bench.apply(&config, &first, &graph, place.path());

    let mut group = criterion.benchmark_group("10,000 terraform_data");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5));
    group.throughput(Throughput::Elements(COUNT as u64));
    group.bench_function("load", |b| b.iter(|| black_box(bench.load(&text))));
    group.bench_function("plan from nothing", |b| b.iter(|| black_box(bench.plan(&config, &Snapshot::default()))));
    group.bench_function("plan without changes", |b| {
        b.iter(|| {
            let (plan, _) = bench.plan(&config, &state);
            assert!(plan.is_empty());
        });
    });
    group.bench_function("apply, journal and state on disk", |b| {
        b.iter_batched(
            || tempfile::tempdir().expect("a temporary directory"),
            |place| drop(black_box(bench.apply(&config, &first, &graph, place.path()))),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("state to text and back", |b| b.iter(|| black_box(Snapshot::from_text(&state.to_text()))));
    group.finish();
}

fn thousand_members(criterion: &mut Criterion) {
    let bench = Bench::in_memory();
    let text = fleet(MEMBERS);
    let config = bench.load(&text);
    let (first, graph) = bench.plan(&config, &Snapshot::default());
    let place = tempfile::tempdir().expect("a temporary directory");
    let state = bench.apply(&config, &first, &graph, place.path());

    let mut group = criterion.benchmark_group("1,000 karmada_member");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(10));
    group.throughput(Throughput::Elements(MEMBERS as u64));
    group.bench_function("plan from nothing", |b| b.iter(|| black_box(bench.plan(&config, &Snapshot::default()))));
    // As a process has it: just read, with nothing of it looked at yet.
    let stored = state.to_text();
    group.bench_function("plan without changes", |b| {
        b.iter_batched(
            || Snapshot::from_text(&stored).expect("a state"),
            |state| {
                let (plan, _) = bench.plan(&config, &state);
                assert!(plan.is_empty());
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn five_hundred_modules(criterion: &mut Criterion) {
    let bench = Bench::new();
    let (root, module) = modules(MODULES, VARIABLES);
    let context = Context { files: Arc::new(OneModule(module)), ..Context::alone() };
    let mut group = criterion.benchmark_group("500 modules of 60 variables");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5));
    group.throughput(Throughput::Elements(MODULES as u64));
    group.bench_function("load and plan", |b| {
        b.iter(|| {
            let config = bench.load_in(&root, &context);
            let (plan, _) = bench.plan(&config, &Snapshot::default());
            assert_eq!(plan.counts(), (MODULES, 0, 0));
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    ten_thousand(&mut criterion);
    thousand_members(&mut criterion);
    five_hundred_modules(&mut criterion);
    written(&Bench::new());
    criterion.final_summary();
}
