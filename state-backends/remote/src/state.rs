//! The state backend over a store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use karmaform_model::{
    BackendError, BoxFuture, Clear, Generation, Item, LockId, LockInfo, Seal, SealError, Serial, Snapshot, StateBackend, StateStore,
    StoreError, Version,
};
use sha2::{Digest as _, Sha256};

use crate::history;
use crate::lock::{self, Held};

/// A state in a store.
///
/// A write goes through only over the very bytes that were read or written last. So a run that lost its lock can't overwrite what others
/// wrote, and a read that was stale is found out at the first write.
pub struct RemoteState {
    store: Arc<dyn StateStore>,
    lease: Duration,
    seal: Arc<dyn Seal>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// The state as it was read or written last; `Some(None)`: there was none.
    last: Option<Option<(Serial, Version)>>,
    /// Digests of what was sent since then: nobody knows whether it arrived.
    pending: Vec<[u8; 32]>,
    lock: Option<Held>,
    /// What this run wrote last, with how many resources are in it.
    wrote: Option<(Serial, usize, Vec<u8>)>,
}

impl RemoteState {
    /// In this store. A holder of the lock that gives no sign of life for a `lease` may be taken for dead. Touches nothing yet.
    pub fn new(store: Arc<dyn StateStore>, lease: Duration) -> Self {
        Self { store, lease, seal: Arc::new(Clear), memory: Mutex::default() }
    }

    /// The same with the state sealed, and its generations. Locks and the list of generations stay as they are.
    #[must_use]
    pub fn sealed(mut self, seal: Arc<dyn Seal>) -> Self {
        self.seal = seal;
        self
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, what: &'static str) -> impl Fn(StoreError) -> BackendError + use<> {
        crate::failed(&*self.store, what)
    }

    fn parse(&self, bytes: &[u8]) -> Result<Snapshot, BackendError> {
        Snapshot::from_stored(bytes, &*self.seal).map_err(|source| BackendError::Damaged { place: self.store.place(), source })
    }

    async fn read_now(&self) -> Result<Option<Snapshot>, BackendError> {
        let found = self.store.get(&Item::State).await.map_err(self.failed("reading"))?;
        // An empty object is what others leave where there is no state yet.
        let Some(found) = found.filter(|f| !f.bytes.is_empty()) else {
            self.memory().last = Some(None);
            return Ok(None);
        };
        let snapshot = self.parse(&found.bytes)?;
        self.memory().last = Some(Some((snapshot.serial, found.version)));
        Ok(Some(snapshot))
    }

    async fn write_now(&self, expected: Option<Serial>, next: &Snapshot) -> Result<(), BackendError> {
        let conflict = |found: Option<Serial>| BackendError::Conflict { expected: expected.unwrap_or(0), found: found.unwrap_or(0) };
        let known = self.memory().last.clone();
        let known = match known {
            Some(known) if known.as_ref().map(|(serial, _)| *serial) == expected => known,
            _ => {
                let found = self.read_now().await?.map(|s| s.serial);
                if found != expected {
                    return Err(conflict(found));
                }
                self.memory().last.clone().flatten()
            }
        };
        let text = self.stored(next)?;
        let mut over = match known {
            Some((_, version)) => Some(version),
            None => self.empty_object().await?,
        };
        // A try whose reply was lost may have been done; then it is what the next one is written over. Each is met once at most.
        let tries = {
            let mut memory = self.memory();
            memory.pending.push(Sha256::digest(&text).into());
            memory.pending.len()
        };
        for _ in 0..tries {
            match self.store.put(&Item::State, text.clone(), over.as_ref()).await {
                Ok(version) => {
                    self.wrote(next, text, version);
                    return Ok(());
                }
                Err(StoreError::Changed) => {}
                Err(error) => return Err(self.failed("writing")(error)),
            }
            let found = self.store.get(&Item::State).await.map_err(self.failed("reading"))?;
            match found {
                Some(found) if found.bytes == text => {
                    self.wrote(next, text, found.version);
                    return Ok(());
                }
                Some(found) if self.memory().pending.contains(&Sha256::digest(&found.bytes).into()) => over = Some(found.version),
                found => {
                    let serial = found.filter(|f| !f.bytes.is_empty()).map(|f| self.parse(&f.bytes)).transpose()?.map(|s| s.serial);
                    return Err(conflict(serial));
                }
            }
        }
        Err(conflict(None))
    }

    /// The version of an object without a state in it, to be written over; `None` if there is no object.
    async fn empty_object(&self) -> Result<Option<Version>, BackendError> {
        let found = self.store.get(&Item::State).await.map_err(self.failed("reading"))?;
        Ok(found.filter(|f| f.bytes.is_empty()).map(|f| f.version))
    }

    fn wrote(&self, next: &Snapshot, text: Vec<u8>, version: Version) {
        let mut memory = self.memory();
        memory.last = Some(Some((next.serial, version)));
        memory.pending.clear();
        memory.wrote = Some((next.serial, next.resources.len(), text));
    }

    /// The bytes of a state, as the store is given them.
    fn stored(&self, state: &Snapshot) -> Result<Vec<u8>, BackendError> {
        let sealed = |source: SealError| BackendError::Damaged { place: self.store.place(), source: source.into() };
        state.to_stored(&*self.seal).map_err(sealed)
    }

    async fn keep_now(&self, about: &Generation) -> Result<(), BackendError> {
        let wrote = self.memory().wrote.take();
        let Some((serial, resources, text)) = wrote else { return Ok(()) };
        history::keep(&*self.store, &Generation { serial, resources, ..about.clone() }, text).await
    }

    async fn generation_now(&self, serial: Serial) -> Result<Option<Snapshot>, BackendError> {
        let found = self.store.get(&Item::Generation(serial)).await.map_err(self.failed("reading"))?;
        found.map(|f| self.parse(&f.bytes)).transpose()
    }

    /// The list of generations goes before them, and the state at last: until then it is a state, and can be removed again.
    async fn remove_now(&self) -> Result<(), BackendError> {
        let is_known = self.memory().last.is_some();
        if !is_known {
            self.read_now().await?;
        }
        let known = self.memory().last.clone().flatten();
        let serials = self.store.generations().await.map_err(self.failed("removing"))?;
        for item in std::iter::once(Item::History).chain(serials.into_iter().map(Item::Generation)) {
            if let Some(found) = self.store.get(&item).await.map_err(self.failed("removing"))? {
                self.store.delete(&item, &found.version).await.map_err(self.failed("removing"))?;
            }
        }
        if let Some((_, version)) = known {
            self.store.delete(&Item::State, &version).await.map_err(self.failed("removing"))?;
        }
        let mut memory = self.memory();
        memory.last = Some(None);
        memory.wrote = None;
        Ok(())
    }

    /// Writes the state anew with the next serial, so that whoever read it before can't write any more.
    async fn fence(&self) -> Result<(), BackendError> {
        let current = self.read_now().await?;
        let expected = current.as_ref().map(|s| s.serial);
        let mut next = current.unwrap_or_default();
        next.serial = next.serial.saturating_add(1);
        self.write_now(expected, &next).await
    }

    async fn lock_now(&self, who: &LockInfo) -> Result<LockId, BackendError> {
        let held = lock::lock(&*self.store, &self.with_lease(who)).await?;
        self.memory().lock = Some(held);
        Ok(LockId(who.id.clone()))
    }

    fn with_lease(&self, who: &LockInfo) -> LockInfo {
        LockInfo { lease: Some(self.lease.as_secs().max(1)), renewed: Some(who.created.clone()), ..who.clone() }
    }

    async fn unlock_now(&self, id: &LockId) -> Result<(), BackendError> {
        let is_mine = |m: &mut MutexGuard<'_, Memory>| m.lock.as_ref().is_some_and(|h| h.info.id == id.0);
        lock::unlock(&*self.store, id).await?;
        let mut memory = self.memory();
        if is_mine(&mut memory) {
            memory.lock = None;
        }
        Ok(())
    }

    async fn renew_now(&self, id: &LockId, now: &str) -> Result<(), BackendError> {
        let held = self.memory().lock.clone().filter(|h| h.info.id == id.0);
        let held = held.ok_or(BackendError::LockLost(None))?;
        let renewed = lock::renew(&*self.store, &held, now).await?;
        let mut memory = self.memory();
        // Released meanwhile: then it must not come back.
        if memory.lock.as_ref().is_some_and(|h| h.info.id == id.0) {
            memory.lock = Some(renewed);
        }
        Ok(())
    }

    async fn take_over_now(&self, dead: &LockInfo, who: &LockInfo) -> Result<LockId, BackendError> {
        let held = lock::take_over(&*self.store, dead, &self.with_lease(who)).await?;
        self.memory().lock = Some(held);
        // Only now: while the other could still renew, it could also still write.
        self.fence().await?;
        Ok(LockId(who.id.clone()))
    }
}

impl StateBackend for RemoteState {
    fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        Box::pin(self.read_now())
    }

    fn write<'a>(&'a self, expected: Option<Serial>, next: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.write_now(expected, next))
    }

    fn lock<'a>(&'a self, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        Box::pin(self.lock_now(who))
    }

    fn unlock<'a>(&'a self, id: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.unlock_now(id))
    }

    fn lease(&self) -> Option<Duration> {
        Some(self.lease)
    }

    fn renew<'a>(&'a self, id: &'a LockId, now: &'a str) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.renew_now(id, now))
    }

    fn take_in<'a>(&'a self, about: &'a Generation, state: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move { history::keep(&*self.store, about, self.stored(state)?).await })
    }

    fn keep<'a>(&'a self, about: &'a Generation) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.keep_now(about))
    }

    fn history(&self) -> BoxFuture<'_, Result<Option<Vec<Generation>>, BackendError>> {
        Box::pin(async move { history::list(&*self.store).await.map(Some) })
    }

    fn generation(&self, serial: Serial) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        Box::pin(self.generation_now(serial))
    }

    fn workspaces(&self) -> BoxFuture<'_, Result<Option<Vec<String>>, BackendError>> {
        Box::pin(async move { self.store.workspaces().await.map(Some).map_err(self.failed("listing the workspaces of")) })
    }

    fn remove(&self) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(self.remove_now())
    }

    fn take_over<'a>(&'a self, dead: &'a LockInfo, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        Box::pin(self.take_over_now(dead, who))
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
