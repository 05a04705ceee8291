//! What a caller may choose, and what the engine needs from outside. Knows nothing of flags or terminals.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use karmaform_lang::Config;
use karmaform_model::{Address, BoxFuture, Catalog, ModeOfPlan, Registry, Serial, Snapshot, VariableValue};

use crate::pool::Pool;

/// Time, as the engine sees it.
pub trait Runtime: Send + Sync {
    /// Milliseconds since 1970-01-01 UTC.
    fn now(&self) -> u64;
    /// Milliseconds since some moment that stays the same in a run, whoever sets the machine's clock meanwhile: how long something takes is told by these.
    /// A clock that nobody sets needs none of its own.
    fn monotonic(&self) -> u64 {
        self.now()
    }
    /// Waits.
    fn sleep(&self, milliseconds: u64) -> BoxFuture<'_, ()>;
    /// Ends when a look is to be over, whatever was not asked by then; of whom nobody can tell that, never.
    fn enough(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// What planning is a function of, besides what was observed.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// All linked providers and composites.
    pub registry: &'a Catalog,
    /// The state as it was read (and recovered).
    pub state: &'a Snapshot,
}

/// What observing and applying need: the inputs, and the doors to the outside. Without hands nothing can be changed.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// All linked providers and composites.
    pub registry: &'a Catalog,
    /// The state as it was read (and recovered).
    pub state: &'a Snapshot,
    /// Open connections.
    pub pool: &'a Arc<Pool>,
    /// Time.
    pub runtime: &'a dyn Runtime,
    /// What acts; `None` for who only looks.
    pub hands: Option<&'a Registry>,
}

impl<'a> World<'a> {
    /// The pure part.
    pub fn inputs(&self) -> Inputs<'a> {
        Inputs { config: self.config, registry: self.registry, state: self.state }
    }
}

/// How to observe and plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// Normal, destroy or refresh only.
    pub mode: ModeOfPlan,
    /// Only these and what they need; empty: everything.
    pub targets: Vec<Address>,
    /// With targets, also what only the state has of the blocks that these need: what is too many goes.
    pub takes_along: bool,
    /// All but these and what depends on them; not together with targets.
    pub excludes: Vec<Address>,
    /// To be replaced whether they differ or not.
    pub replace: Vec<Address>,
    /// Look at managed resources; `false` trusts the state.
    pub refresh: bool,
    /// Conditions that do not hold are errors where nothing is made, too; `false` warns there.
    pub strict: bool,
    /// Try what is to be tried before it is relied on; `false` only looks.
    pub tries: bool,
    /// Whoever does not answer is passed over, as if nothing said that it must (`required`). What composites
    /// say of what was seen is left to who asks them ([`karmaform_model::Composite::care`]).
    pub lenient: bool,
    /// Most connections asked at once.
    pub parallelism: usize,
    /// Seconds since 1970-01-01 UTC; the only time a plan knows.
    pub now: i64,
    /// Version of the tool, recorded in the plan.
    pub tool_version: String,
}

impl Options {
    /// True if the run is about a part only.
    pub(crate) fn is_partial(&self) -> bool {
        !self.targets.is_empty() || !self.excludes.is_empty()
    }

    /// True if conditions that do not hold only warn.
    pub(crate) fn only_warns(&self) -> bool {
        self.mode == ModeOfPlan::RefreshOnly && !self.strict
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: ModeOfPlan::Normal,
            targets: Vec::new(),
            takes_along: true,
            excludes: Vec::new(),
            replace: Vec::new(),
            refresh: true,
            strict: false,
            tries: true,
            lenient: false,
            parallelism: 10,
            now: 0,
            tool_version: String::new(),
        }
    }
}

/// How to apply.
#[derive(Clone, Debug)]
pub struct ApplyOptions {
    /// Most operations on the outside at once.
    pub parallelism: usize,
    /// Set to true to start nothing more.
    pub interrupt: Arc<AtomicBool>,
    /// The serial that the backend holds now; `None`: it holds nothing.
    pub stored: Option<Serial>,
    /// Milliseconds between two writes of the state.
    pub checkpoint: u64,
    /// What no other apply has: `uuid()` is made of it.
    pub seed: String,
    /// Milliseconds between two notices that a step still runs; 0: none.
    pub heartbeat: u64,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        Self { parallelism: 10, interrupt: Arc::default(), stored: None, checkpoint: 10_000, seed: String::new(), heartbeat: 10_000 }
    }
}

/// The root variables as a plan records them.
pub(crate) fn variables(config: &Config) -> BTreeMap<String, VariableValue> {
    // As Terraform has it: what was given before it was converted; giving that again comes to the same.
    let recorded = |v: &karmaform_lang::Variable| {
        let given = v.given.clone().unwrap_or_else(|| v.value.clone());
        VariableValue { value: Some(given.marked(v.marks())), sensitive: v.sensitive, ephemeral: v.ephemeral, given: v.origin.is_some() }
    };
    config.variables.iter().map(|(name, v)| (name.clone(), recorded(v))).collect()
}
