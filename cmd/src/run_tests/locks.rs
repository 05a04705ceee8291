//! Locks that are taken only to look: none is left.

use std::sync::{Arc, Mutex, PoisonError};

use karmaform_model::{BackendError, BoxFuture, Clear, Journal, JournalRecord, LockId, LockInfo, Serial, Snapshot, StateBackend};

use super::Place;
use crate::app::App;
use crate::output::Output;
use crate::session::Session;
use crate::wiring::{DEFAULT_WORKSPACE, OpenBackend};

/// A backend that locks, and can't be read. Remembers what it was asked.
#[derive(Default)]
struct Unreadable(Mutex<Vec<&'static str>>);

impl Unreadable {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

impl StateBackend for Unreadable {
    fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        self.note("read");
        Box::pin(async { Err(BackendError::NotLocked) })
    }

    fn write<'a>(&'a self, _: Option<Serial>, _: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        self.note("write");
        Box::pin(async { Ok(()) })
    }

    fn lock<'a>(&'a self, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        self.note("lock");
        Box::pin(async { Ok(LockId(who.id.clone())) })
    }

    fn unlock<'a>(&'a self, _: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>> {
        self.note("unlock");
        Box::pin(async { Ok(()) })
    }
}

/// What a dead run left.
struct Left;

impl Journal for Left {
    fn append(&mut self, _: &[JournalRecord]) -> Result<(), BackendError> {
        Ok(())
    }

    fn read(&self) -> Result<Vec<JournalRecord>, BackendError> {
        Ok(vec![JournalRecord::Begin { lineage: "l".into(), serial: 1, version: "0.1.0".into() }])
    }

    fn clear(&mut self) -> Result<(), BackendError> {
        Ok(())
    }
}

#[test]
fn a_state_that_cannot_be_read_is_not_left_locked() {
    let place = Place::new("");
    let (output, _) = Output::captured("");
    let mut app = App::new(place.wiring(), output).unwrap();
    let backend = Arc::new(Unreadable::default());
    let open = OpenBackend {
        kind: "http",
        backend: Arc::<Unreadable>::clone(&backend),
        store: None,
        place: "state".to_owned(),
        workspace: DEFAULT_WORKSPACE.to_owned(),
        unlocked: None,
        journal: Box::new(|| Ok(Box::new(Left) as Box<dyn Journal>)),
        seal: Arc::new(Clear),
        record: None,
    };
    assert!(Session::shared(&mut app, open).is_err());
    assert_eq!(*backend.0.lock().unwrap(), ["lock", "read", "unlock"]);
}
