//! Taking the lock, waiting for it, and telling who holds it and how to break it safely.

use karmaform_model::{BackendError, Diagnostic, LockId, LockInfo};

use crate::app::{App, Stop};
use crate::session::{backend_failed, information};
use crate::wiring::OpenBackend;

/// The longest pause between two tries, in milliseconds.
const LONGEST_PAUSE: u64 = 4_000;

/// Takes the lock, trying for so many milliseconds.
///
/// # Errors
/// Says who holds it.
pub(crate) fn lock(app: &mut App, open: &OpenBackend, operation: &str, timeout: u64) -> Result<LockId, Stop> {
    let who = information(app, open, operation);
    let started = app.now();
    let mut delay = 1_000;
    let mut has_told = false;
    loop {
        match app.executor.block_on(open.backend.lock(&who)) {
            Ok(id) => return Ok(id),
            Err(BackendError::Locked(holder)) => {
                let waited = app.now().saturating_sub(started);
                if waited >= timeout {
                    return Err(refused(holder.as_deref(), &open.place).into());
                }
                if !has_told {
                    let by = holder.map(|h| format!(" It is held by {} since {}.", h.who, h.created)).unwrap_or_default();
                    app.say(&format!("Acquiring state lock. This may take a few moments...{by}\n"));
                    has_told = true;
                }
                let delay_now = delay.min(timeout - waited).max(1);
                app.executor.block_on(app.wiring.clock.sleep(delay_now));
                delay = (delay * 2).min(LONGEST_PAUSE);
            }
            Err(error) => return Err(backend_failed("lock", &open.place, &error).into()),
        }
    }
}

/// The lock is held by somebody else.
pub(crate) fn refused(holder: Option<&LockInfo>, place: &str) -> Diagnostic {
    let mut detail = format!("Another run holds the lock of the state at {place}, so this one did nothing.");
    if let Some(holder) = holder {
        detail.push_str(&format!(
            "\n\nLock Info:\n  ID:        {}\n  Path:      {}\n  Operation: {}\n  Who:       {}\n  Version:   {}\n  Created:   {}\n  Info:      {}",
            holder.id, holder.path, holder.operation, holder.who, holder.version, holder.created, holder.info
        ));
    }
    let unlock = match holder {
        Some(holder) => format!(
            "If that run is dead (ask {}, look for its process), remove its lock with: karmaform force-unlock {}",
            holder.who, holder.id
        ),
        None => "If that run is dead, remove its lock with: karmaform force-unlock LOCK_ID".to_owned(),
    };
    Diagnostic::error("Error acquiring the state lock", detail)
        .with_hint("Wait until it ends, or let this run wait for it with -lock-timeout=5m.")
        .with_hint(unlock)
}
