//! The engine: from a configuration and a state to a plan, and from a plan to the world.
//!
//! `Config -> graph -> observe (reads) -> plan (pure) -> Plan -> apply (writes) -> Outcome`. Stages are explicit values; the only effects
//! are the reads of [`observe()`] and the writes of [`apply()`].
//!
//! Knows nothing of: HCL text, any provider or backend, files, environment, clocks, async runtimes, terminals.

mod again;
mod alike;
mod apply;
mod before;
mod book;
mod check;
mod checks;
mod choreograph;
mod claims;
mod connect;
mod cycle;
mod decide;
mod deferred;
mod dispatch;
mod drift;
mod expand;
mod facts;
mod fill;
mod forget;
mod glance;
mod graph;
mod holes;
mod imports;
mod judge;
mod known;
mod leaving;
mod ledger;
mod lost;
mod moves;
mod observe;
mod observed;
mod options;
mod order;
mod orphan;
mod outcome;
mod outputs;
mod owners;
mod plan;
mod pool;
mod protection;
mod question;
mod rebuild;
mod record;
mod recover;
mod replace;
mod restore;
mod schedule;
mod select;
mod settle;
mod store;
mod strays;
mod values;
mod visit;
mod walk;
mod wanted;
mod worker;

pub use again::{Again, again};
pub use apply::apply;
pub use check::{check, check_steps_of};
pub use checks::{CHECK_FAILED, CHECK_UNKNOWN};
pub use connect::graph;
pub use cycle::DEPENDENCY_CYCLE;
pub use expand::{Expanded, expand};
pub use glance::Glance;
pub use graph::Graph;
pub use imports::taken_over;
pub use known::{Known, known};
pub use moves::{Relocated, relocate, relocated};
pub use observe::{observe, observe_again};
pub use observed::{Answer, Asked, Observed};
pub use options::{ApplyOptions, Inputs, Options, Runtime, World};
pub use outcome::Outcome;
pub use plan::{Doubts, plan, plan_and_doubts};
pub use pool::Pool;
pub use rebuild::{Rebuilt, rebuild};
pub use recover::{Recovery, recover};
pub use restore::restore;
pub use select::{TARGETING, without_deferred};
pub use strays::{Beside, Besides, strays};
