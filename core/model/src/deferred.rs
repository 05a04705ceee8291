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
    /// The way to it leads over something else, and this plan goes there.
    AbsentPrereq,
}

/// Something of which a plan decides nothing, and what the state has of it stays as it is; or of which it decides only the first part of the way.
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
    /// What is left of it, in a few words, where this plan decides all else of it ([`crate::Leg`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
}

impl Deferred {
    /// True for what stands for all instances of a block or a module.
    pub fn is_open(&self) -> bool {
        self.reason == DeferredReason::InstanceCountUnknown
    }

    /// True for what this plan decides nothing of.
    pub fn is_whole(&self) -> bool {
        self.rest.is_none()
    }
}
