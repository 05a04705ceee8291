//! The nouns and traits of karmaform.
//!
//! Everything else is written against these: a configuration evaluates to [`Value`]s, a provider describes itself by [`Schema`]s, the
//! engine turns differences into [`Change`]s, a [`Plan`] orders them into steps, and [`Snapshot`] is what is remembered.
//!
//! Knows nothing of: HCL, files, networks, clocks, terminals.

mod address;
mod backend;
mod cause;
mod change;
mod checked;
mod composite;
mod convert;
mod deferred;
mod diagnostic;
mod diff;
mod driver;
mod encoded;
mod event;
mod filled;
mod generation;
mod host_facts;
mod json;
mod leg;
mod looking;
mod marks;
mod misfit;
mod nearness;
mod number;
mod object;
mod path;
mod plan;
mod program_source;
mod provider;
mod redact;
mod registry;
mod schema;
mod seal;
mod stand_in;
mod state;
mod state_store;
mod stray;
mod supply;
mod types;
mod unify;
mod value;
mod withheld;
mod written_path;

pub use address::{Address, AddressError, ChildStep, Key, Mode, ModuleStep};
pub use backend::{BackendError, Journal, JournalRecord, LockId, LockInfo, OtherState, Serial, StateBackend, States};
pub use cause::innermost;
pub use change::{Action, Change, ReplaceOrder};
pub use checked::{CheckKind, CheckStatus, Checked};
pub use composite::{
    Arg, Caveat, Child, ChildChange, Choreography, Composite, Expansion, GateSpec, Margin, Point, Renewed, Risk, Scene, Told, Upkeep,
};
pub use convert::{ConvertError, convert, fits};
pub use deferred::{Deferred, DeferredReason};
pub use diagnostic::{Diagnostic, Diagnostics, FileId, Severity, Span};
pub use diff::{default_plan, same, same_and_alike};
pub use driver::{Adapter, AnyClient, Driver};
pub use encoded::Encoded;
pub use event::{Event, EventKind};
pub use generation::{Generation, History};
pub use host_facts::{concerns, firewalls, free_bytes};
pub use json::{escape_json, from_json, has_too_long_number, implied_from_json, to_json, to_json_signed};
pub use leg::{Leg, LegHint};
pub use looking::Looking;
pub use marks::Marks;
pub use nearness::{listed, nearest};
pub use number::{Float, Number, TOO_LONG};
pub use object::{Entries, Object};
pub use path::{Path, PathStep};
pub use plan::{
    DriftedResource, Judgement, ModeOfPlan, OutputChange, Plan, PlannedResource, Reason, Step, StepKind, VariableValue, previous_address,
};
pub use program_source::source_on;
pub use provider::{
    Ask, BoxFuture, Connections, DataSource, Gate, GateAnswer, Operation, PlanContext, Provider, Refused, ResourceSpec, ResourceType,
};
pub use redact::{redact, secret_leaves, without_credentials};
pub use registry::{Catalog, DataEntry, Registry, ResourceEntry};
pub use schema::{Attribute, Block, Connection, Nesting, Presence, Schema};
pub use seal::{Clear, Content, KeyService, SEALED, Seal, SealError, is_sealed};
pub use stand_in::StandIns;
pub use state::{OutputState, ResourceState, Snapshot, StateError, Status};
pub use state_store::{Found, Item, StateStore, StoreError, Version};
pub use stray::{Known, Stray, Strays, Unlisted};
pub use supply::{
    Need, Registries, Shelved, Shelves, Stock, Supplied, Supply, Trust, damaged, is_shelved, names_backup, not_in_stock, shows_authority,
    untrusted,
};
pub use types::{ObjectAttribute, Type};
pub use unify::unify;
pub use value::{Kind, Unknown, Value};
pub use written_path::written_path;
