//! What a plan leaves to a later one, since nobody can tell yet what is to be done.

use serde::{Deserialize, Serialize};

use crate::Address;

/// Why something is put off; the words are those of Terraform's `deferred_changes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeferredReason {
    /// How often it stands is known only after apply.
    InstanceCountUnknown,
    /// It needs something that is put off.
    DeferredPrereq,
}

/// Something of which a plan decides nothing. What the state has of it stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferred {
    /// An instance; or a block or a module, without its own key, whose instances are not known.
    pub address: Address,
    /// Why.
    pub reason: DeferredReason,
    /// What it waits for directly, as far as that has an address. Sorted.
    pub because: Vec<Address>,
    /// How many instances the state has of it.
    pub stored: usize,
}

impl Deferred {
    /// True for what stands for all instances of a block or a module.
    pub fn is_open(&self) -> bool {
        self.reason == DeferredReason::InstanceCountUnknown
    }
}
