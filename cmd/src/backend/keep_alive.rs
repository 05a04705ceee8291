//! Signs of life for a lock with a lease, as long as a run holds it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use karmaform_model::{BackendError, Diagnostic, LockId, StateBackend};

use crate::app::App;
use crate::runtime::Interrupt;

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
        let work = renew(Arc::clone(backend), id.clone(), lease, app.interrupt.clone(), Arc::clone(&lost));
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

async fn renew(backend: Arc<dyn StateBackend>, id: LockId, lease: Duration, interrupt: Interrupt, lost: Arc<Mutex<Option<String>>>) {
    let mut last = Instant::now();
    let why = loop {
        tokio::time::sleep(lease / SIGNS).await;
        match backend.renew(&id, &crate::ui::json::timestamp(now())).await {
            Ok(()) => last = Instant::now(),
            Err(error @ BackendError::LockLost(_)) => break format!("Somebody else works on this state, or may: {error}."),
            // Another may take it for dead from now on.
            Err(error) if last.elapsed() >= lease => break format!("For {} seconds it could not be renewed: {error}.", lease.as_secs()),
            Err(_) => {}
        }
    };
    *lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    interrupt.set();
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
