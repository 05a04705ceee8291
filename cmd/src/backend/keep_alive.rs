//! Signs of life for a lock with a lease, as long as a run holds it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use karmaform_engine::Runtime;
use karmaform_model::{BackendError, Diagnostic, LockId, StateBackend};

use crate::app::App;
use crate::runtime::{Interrupt, seconds};
use crate::ui::json::timestamp;

/// So many signs of life fit into a lease; the holder bears that some are lost.
const SIGNS: u32 = 4;

/// Renews a lock in the background until it is dropped. If the lock is lost, the run is asked to end after the running steps.
pub(crate) struct KeepAlive {
    task: tokio::task::AbortHandle,
    lost: Arc<Mutex<Option<String>>>,
}

impl KeepAlive {
    /// For this lock; `None` if it needs no signs of life.
    pub(crate) fn start(app: &App, backend: &Arc<dyn StateBackend>, id: &LockId) -> Option<Self> {
        let lease = backend.lease()?;
        let lost = Arc::new(Mutex::new(None));
        let (clock, interrupt) = (Arc::clone(&app.wiring.clock), app.interrupt.clone());
        let work = renew(Renewal { backend: Arc::clone(backend), id: id.clone(), lease, clock }, interrupt, Arc::clone(&lost));
        Some(Self { task: app.executor.spawn(work), lost })
    }

    /// Why the lock was lost, if it was.
    pub(crate) fn lost(&self) -> Option<Diagnostic> {
        let why = self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(
            Diagnostic::error("The lock of the state was lost", format!("{why} This run ended as soon as it could."))
                .with_hint("Run plan: it shows what is left to do, once nobody else works on this state."),
        )
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is renewed, and by which clock it says so.
struct Renewal {
    backend: Arc<dyn StateBackend>,
    id: LockId,
    lease: Duration,
    clock: Arc<dyn Runtime>,
}

async fn renew(what: Renewal, interrupt: Interrupt, lost: Arc<Mutex<Option<String>>>) {
    let Renewal { backend, id, lease, clock } = what;
    let mut last = Instant::now();
    let late = |why: &str| format!("For {} seconds it could not be renewed: {why}.", lease.as_secs());
    let why = loop {
        tokio::time::sleep(lease / SIGNS).await;
        // From when it is sent: others may see it before we hear that it is there.
        let sent = Instant::now();
        let now = timestamp(seconds(&*clock));
        // Who was stopped for longer may find that nobody has taken it.
        let left = lease.saturating_sub(last.elapsed()).max(lease / SIGNS);
        match tokio::time::timeout(left, backend.renew(&id, &now)).await {
            Ok(Ok(())) => last = sent,
            Ok(Err(error @ BackendError::LockLost(_))) => break format!("Somebody else works on this state, or may: {error}."),
            // Another may take it for dead from now on.
            Ok(Err(error)) if last.elapsed() >= lease => break late(&error.to_string()),
            Ok(Err(_)) => {}
            Err(_) => break late("there was no answer in time"),
        }
    };
    *lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    interrupt.set();
}

#[cfg(test)]
mod tests {
    use karmaform_model::{BoxFuture, LockInfo, Serial, Snapshot};

    use super::*;
    use crate::runtime::{Executor, SystemClock};

    /// A store that never answers.
    struct Silent;

    impl StateBackend for Silent {
        fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
            Box::pin(std::future::pending())
        }

        fn write<'a>(&'a self, _: Option<Serial>, _: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
            Box::pin(std::future::pending())
        }

        fn lock<'a>(&'a self, _: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
            Box::pin(std::future::pending())
        }

        fn unlock<'a>(&'a self, _: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>> {
            Box::pin(std::future::pending())
        }

        fn renew<'a>(&'a self, _: &'a LockId, _: &'a str) -> BoxFuture<'a, Result<(), BackendError>> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn who_gets_no_answer_has_lost_the_lock_when_its_lease_is_over() {
        let (interrupt, lost) = (Interrupt::default(), Arc::new(Mutex::new(None)));
        let what =
            Renewal { backend: Arc::new(Silent), id: LockId("a".into()), lease: Duration::from_millis(200), clock: Arc::new(SystemClock) };
        Executor::new().unwrap().block_on(async {
            tokio::time::timeout(Duration::from_secs(60), renew(what, interrupt.clone(), Arc::clone(&lost))).await.unwrap();
        });
        assert!(interrupt.is_set());
        assert_eq!(lost.lock().unwrap().as_deref(), Some("For 0 seconds it could not be renewed: there was no answer in time."));
    }
}
