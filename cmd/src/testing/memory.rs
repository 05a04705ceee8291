//! A state that lives as long as a run of tests: nothing is written or locked anywhere.

use karmaform_model::{BackendError, BoxFuture, LockId, LockInfo, Serial, Snapshot, StateBackend};

/// Keeps nothing: whoever applies has the state in hand.
pub(super) struct InMemory;

impl StateBackend for InMemory {
    fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        Box::pin(async { Ok(None) })
    }

    fn write<'a>(&'a self, _: Option<Serial>, _: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async { Ok(()) })
    }

    fn lock<'a>(&'a self, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        Box::pin(async { Ok(LockId(who.id.clone())) })
    }

    fn unlock<'a>(&'a self, _: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async { Ok(()) })
    }
}
