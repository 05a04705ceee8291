//! A store in memory that fails as told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use karmaform_model::{BoxFuture, Found, Item, Serial, StateStore, StoreError, Version};

/// What happens to one call of `put`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing is done, and nobody knows.
    Down,
    /// It is done, and nobody knows.
    Lost,
    /// It is done, the reply is lost, and the client's second try meets the first.
    Met,
    /// Nothing is done, and the answer is that the condition does not hold.
    Deaf,
    /// Done whatever the condition says.
    Unconditional,
    /// As it should be.
    None,
}

#[derive(Default)]
struct Inside {
    items: BTreeMap<Item, (u64, Vec<u8>)>,
    writes: u64,
    faults: VecDeque<Fault>,
    always: Option<Fault>,
    /// Answers to the next reads of the state.
    stale: VecDeque<Vec<u8>>,
    /// The next read of an item is not answered.
    silent: bool,
    /// Written right before the next removal.
    late: Option<Vec<u8>>,
}

/// Handles of one store share it.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Inside>>);

impl Memory {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next calls of `put` fail so, one each.
    pub(crate) fn fail(&self, faults: &[Fault]) {
        self.inside().faults.extend(faults);
    }

    /// All calls of `put` fail so.
    pub(crate) fn always(&self, fault: Fault) {
        self.inside().always = Some(fault);
    }

    /// The next read of the state gives this, with the version it then has.
    pub(crate) fn stale(&self, bytes: Vec<u8>) {
        self.inside().stale.push_back(bytes);
    }

    /// The next read of an item is not answered.
    pub(crate) fn silence(&self) {
        self.inside().silent = true;
    }

    /// Right before the next removal of an item somebody writes this to it.
    pub(crate) fn late(&self, bytes: Vec<u8>) {
        self.inside().late = Some(bytes);
    }

    pub(crate) fn bytes(&self, item: &Item) -> Option<Vec<u8>> {
        self.inside().items.get(item).map(|(_, bytes)| bytes.clone())
    }

    /// Writes past everything.
    pub(crate) fn set(&self, item: &Item, bytes: &[u8]) {
        let mut inside = self.inside();
        inside.writes += 1;
        let writes = inside.writes;
        inside.items.insert(item.clone(), (writes, bytes.to_vec()));
    }

    pub(crate) fn remove(&self, item: &Item) {
        self.inside().items.remove(item);
    }

    pub(crate) fn count(&self) -> usize {
        self.inside().items.len()
    }

    fn try_put(&self, item: &Item, bytes: Vec<u8>, expected: Option<&Version>) -> Result<Version, StoreError> {
        let mut inside = self.inside();
        let next = inside.faults.pop_front();
        let fault = next.or(inside.always).unwrap_or(Fault::None);
        if fault == Fault::Down {
            return Err(StoreError::Unreachable("the store did not answer".into()));
        }
        if fault == Fault::Deaf {
            return Err(StoreError::Changed);
        }
        let found = inside.items.get(item).map(|(n, _)| Version(n.to_string()));
        if found.as_ref() != expected && fault != Fault::Unconditional {
            return Err(StoreError::Changed);
        }
        inside.writes += 1;
        let writes = inside.writes;
        inside.items.insert(item.clone(), (writes, bytes));
        match fault {
            Fault::Lost => Err(StoreError::Unreachable("the reply was lost".into())),
            Fault::Met => Err(StoreError::Changed),
            _ => Ok(Version(writes.to_string())),
        }
    }
}

impl StateStore for Memory {
    fn place(&self) -> String {
        "memory://state".into()
    }

    fn get<'a>(&'a self, item: &'a Item) -> BoxFuture<'a, Result<Option<Found>, StoreError>> {
        Box::pin(async move {
            let mut inside = self.inside();
            if std::mem::take(&mut inside.silent) {
                return Err(StoreError::Unreachable("the store did not answer".into()));
            }
            if *item == Item::State
                && let Some(bytes) = inside.stale.pop_front()
            {
                return Ok(Some(Found { bytes, version: Version("stale".into()) }));
            }
            let found = inside.items.get(item);
            Ok(found.map(|(n, bytes)| Found { bytes: bytes.clone(), version: Version(n.to_string()) }))
        })
    }

    fn put<'a>(&'a self, item: &'a Item, bytes: Vec<u8>, expected: Option<&'a Version>) -> BoxFuture<'a, Result<Version, StoreError>> {
        Box::pin(async move { self.try_put(item, bytes, expected) })
    }

    fn delete<'a>(&'a self, item: &'a Item, expected: &'a Version) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut inside = self.inside();
            if let Some(late) = inside.late.take() {
                inside.writes += 1;
                let writes = inside.writes;
                inside.items.insert(item.clone(), (writes, late));
            }
            if inside.items.get(item).is_some_and(|(n, _)| n.to_string() != expected.0) {
                return Err(StoreError::Changed);
            }
            inside.items.remove(item);
            Ok(())
        })
    }

    fn generations(&self) -> BoxFuture<'_, Result<Vec<Serial>, StoreError>> {
        Box::pin(async move {
            let of = |item: &Item| if let Item::Generation(serial) = item { Some(*serial) } else { None };
            Ok(self.inside().items.keys().filter_map(of).collect())
        })
    }

    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
