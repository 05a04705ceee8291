//! What happens during an apply, one event at a time. Terminal, JSON and state writer all read these.

use serde::{Deserialize, Serialize};

use crate::{Action, Address, Diagnostic};

/// One event about one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The step's id in the plan.
    pub step: usize,
    /// The resource, or the gate's composite.
    pub address: Address,
    /// A gate's name.
    pub gate: Option<String>,
    /// What the step does; a gate has none.
    pub action: Option<Action>,
    /// The key of the object that it is about, if that was set aside and is not the instance itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// The `id` of the object that it changes or destroys, or that by which it is taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// It is taken over just as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub importing: bool,
    /// Milliseconds since the step started.
    pub elapsed: u64,
    /// What happened.
    pub kind: EventKind,
}

/// Legal order: Started, any number of Waiting, then one of Succeeded and Failed; or Skipped alone; or nothing, of what could not be begun
/// because a condition does not hold or a value is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// It runs.
    Started,
    /// It waits for something; or it is still running, with `None`.
    Waiting(Option<String>),
    /// Done. What a gate saw; a resource's `id`, if it has one.
    Succeeded(Option<String>),
    /// Not done.
    Failed(Box<Diagnostic>),
    /// Not started, because this one failed, or the run was interrupted (`None`).
    Skipped(Option<Address>),
}
