//! Locks that are taken only to look, of which none is left, and one that is held while another one is waited for.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use karmaform_model::{BackendError, BoxFuture, Clear, Journal, JournalRecord, LockId, LockInfo, Serial, Snapshot, StateBackend};
use tokio::signal::unix::SignalKind;

use super::Place;
use crate::app::App;
use crate::commands::init::move_one;
use crate::flags::LockFlags;
use crate::output::Output;
use crate::runtime::{Interrupt, Meaning};
use crate::session::{NoJournal, Session};
use crate::wiring::{DEFAULT_WORKSPACE, OpenBackend, OpenJournal};

/// A backend as a session finds it open.
fn opened(kind: &'static str, backend: Arc<dyn StateBackend>, journal: OpenJournal) -> OpenBackend {
    OpenBackend {
        kind,
        backend,
        store: None,
        place: "state".to_owned(),
        workspace: DEFAULT_WORKSPACE.to_owned(),
        unlocked: None,
        journal,
        seal: Arc::new(Clear),
        record: None,
    }
}

/// A backend that locks, and can't be read. Remembers what it was asked.
#[derive(Default)]
struct Unreadable {
    asked: Mutex<Vec<&'static str>>,
    /// Signals come while the lock is released.
    signalled: Option<Interrupt>,
}

impl Unreadable {
    fn note(&self, what: &'static str) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn open(self: &Arc<Self>) -> OpenBackend {
        opened("http", Arc::<Self>::clone(self), Box::new(|| Ok(Box::new(Left) as Box<dyn Journal>)))
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
        // This process would end here, and with it the test.
        let signals = [SignalKind::terminate(), SignalKind::terminate(), SignalKind::hangup()];
        self.signalled.iter().for_each(|interrupt| signals.iter().for_each(|kind| interrupt.on_signal(*kind)));
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
    assert!(Session::shared(&mut app, backend.open()).is_err());
    assert_eq!(*backend.asked.lock().unwrap(), ["lock", "read", "unlock"]);
}

#[test]
fn a_signal_does_not_end_the_release_of_a_lock_in_the_middle() {
    let place = Place::new("");
    let (output, _) = Output::captured("");
    let mut app = App::new(place.wiring(), output).unwrap();
    let backend = Arc::new(Unreadable { signalled: Some(app.interrupt.clone()), ..Unreadable::default() });
    let flags = LockFlags { lock: true, lock_timeout: 0 };
    assert!(Session::unsettled(&mut app, backend.open(), "state-push", &flags).is_err());
    assert_eq!(*backend.asked.lock().unwrap(), ["lock", "read", "unlock"]);
    assert!(app.interrupt.is_set());
}

/// A backend without a state, whose lock has a short lease. Remembers what it was asked of its lock.
struct Leased {
    asked: Mutex<Vec<&'static str>>,
    /// So often somebody else has the lock.
    taken: Mutex<usize>,
}

impl Leased {
    fn new(taken: usize) -> Arc<Self> {
        Arc::new(Self { asked: Mutex::default(), taken: Mutex::new(taken) })
    }

    fn note(&self, what: &'static str) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn open(self: &Arc<Self>) -> OpenBackend {
        opened("s3", Arc::<Self>::clone(self), Box::new(|| Ok(Box::new(NoJournal) as Box<dyn Journal>)))
    }
}

impl StateBackend for Leased {
    fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        Box::pin(async { Ok(None) })
    }

    fn write<'a>(&'a self, _: Option<Serial>, _: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async { Ok(()) })
    }

    fn lock<'a>(&'a self, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = *taken == 0;
        *taken = taken.saturating_sub(1);
        self.note("lock");
        let id = LockId(who.id.clone());
        Box::pin(async move { if is_free { Ok(id) } else { Err(BackendError::Locked(None)) } })
    }

    fn unlock<'a>(&'a self, _: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>> {
        self.note("unlock");
        Box::pin(async { Ok(()) })
    }

    fn lease(&self) -> Option<Duration> {
        Some(Duration::from_millis(400))
    }

    fn renew<'a>(&'a self, _: &'a LockId, _: &'a str) -> BoxFuture<'a, Result<(), BackendError>> {
        self.note("renew");
        Box::pin(async { Ok(()) })
    }
}

#[test]
fn a_lock_is_kept_while_the_one_of_the_new_place_is_waited_for() {
    let place = Place::new("");
    let (output, _) = Output::captured("");
    let mut app = App::new(place.wiring(), output).unwrap();
    let (from, to) = (Leased::new(0), Leased::new(1));
    move_one(&mut app, &from.open(), &to.open(), (60_000, false)).unwrap();
    let asked = from.asked.lock().unwrap().clone();
    // The second try for the other one comes after a second.
    assert!(asked.first() == Some(&"lock") && asked.last() == Some(&"unlock") && asked.contains(&"renew"), "{asked:?}");
    let asked = to.asked.lock().unwrap().clone();
    assert!(asked.starts_with(&["lock", "lock"]) && asked.last() == Some(&"unlock"), "{asked:?}");
}

/// A backend to which a signal comes while its lock is asked for.
struct Signalled {
    asked: Mutex<Vec<&'static str>>,
    interrupt: Interrupt,
    /// Told once the signal would end everything.
    over: mpsc::Sender<String>,
    is_free: bool,
}

impl StateBackend for Signalled {
    fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        self.asked.lock().unwrap().push("read");
        Box::pin(async { Ok(None) })
    }

    fn write<'a>(&'a self, _: Option<Serial>, _: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        self.asked.lock().unwrap().push("write");
        Box::pin(async { Ok(()) })
    }

    fn lock<'a>(&'a self, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        self.asked.lock().unwrap().push("lock");
        Box::pin(async move {
            let Meaning::EndAfter(give_back) = self.interrupt.meaning(SignalKind::interrupt()) else {
                panic!("nobody waits for the answer")
            };
            let over = self.over.clone();
            tokio::spawn(async move { over.send(give_back.await) });
            tokio::time::sleep(Duration::from_millis(50)).await;
            if self.is_free { Ok(LockId(who.id.clone())) } else { Err(BackendError::Locked(None)) }
        })
    }

    fn unlock<'a>(&'a self, _: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>> {
        self.asked.lock().unwrap().push("unlock");
        Box::pin(async { Ok(()) })
    }
}

/// What is asked of a backend where a signal comes while its lock is on its way, and what is said at the end.
fn signalled(is_free: bool, work: fn(&mut App, OpenBackend)) -> (Vec<&'static str>, String) {
    let place = Place::new("");
    let (over, ended) = mpsc::channel();
    let interrupt = Interrupt::default();
    let backend = Arc::new(Signalled { asked: Mutex::default(), interrupt: interrupt.clone(), over, is_free });
    let (wiring, asked) = (place.wiring(), Arc::clone(&backend));
    // It never goes on, as all has ended by then.
    std::thread::spawn(move || {
        let (output, _) = Output::captured("");
        let mut app = App::new(wiring, output).unwrap();
        app.interrupt = interrupt;
        work(&mut app, opened("http", backend, Box::new(|| Ok(Box::new(Left) as Box<dyn Journal>))));
    });
    let said = ended.recv_timeout(Duration::from_secs(60)).unwrap();
    let asked = asked.asked.lock().unwrap().clone();
    (asked, said)
}

#[test]
fn a_signal_while_a_lock_is_asked_for_releases_what_comes() {
    fn state(app: &mut App, open: OpenBackend) {
        drop(Session::unsettled(app, open, "state-push", &LockFlags { lock: true, lock_timeout: 60_000 }));
    }
    fn look(app: &mut App, open: OpenBackend) {
        drop(Session::shared(app, open));
    }
    fn init(app: &mut App, open: OpenBackend) {
        drop(move_one(app, &open, &Leased::new(0).open(), (60_000, false)));
    }
    let works: [fn(&mut App, OpenBackend); 3] = [state, look, init];
    for work in works {
        assert_eq!(signalled(true, work), (vec!["lock", "unlock"], String::new()));
        assert_eq!(signalled(false, work), (vec!["lock"], String::new()), "somebody else's is not released");
    }
}
