//! Taking the lock, waiting for it, taking it over from the dead, releasing it whatever comes in between, and telling who holds it and how to break
//! it safely.

use std::sync::Arc;
use std::time::Duration;

use karmaform_model::{BackendError, Diagnostic, LockId, LockInfo, StateBackend};
use tokio::sync::oneshot;

use crate::app::{App, Stop};
use crate::runtime::GiveBack;
use crate::session::{backend_failed, information};
use crate::wiring::OpenBackend;

/// The longest pause between two tries, in milliseconds.
const LONGEST_PAUSE: u64 = 4_000;
/// So long a run that a signal ends waits until its lock is released, or until it is told whether it has got one.
const RELEASE: Duration = Duration::from_secs(10);

/// Takes the lock, trying for so many milliseconds. A holder that gave no sign of life for its whole lease while we looked on is dead: its
/// lock is taken over. Only time that was waited here counts: clocks of other machines may be wrong, and this one's may be set meanwhile. What was
/// taken goes back by [`release`], or by a signal that ends everything at once.
///
/// # Errors
/// Says who holds it.
pub(crate) fn lock(app: &mut App, open: &OpenBackend, operation: &str, timeout: u64) -> Result<LockId, Stop> {
    let who = information(app, open, operation);
    let started = app.wiring.clock.monotonic();
    let mut delay = 1_000;
    let mut seen: Seen = None;
    loop {
        let mut tried = ask(app, open, &who, None);
        let dead = if let Err(BackendError::Locked(Some(holder))) = &tried { holder_gone(holder, &seen) } else { None };
        if let Some(dead) = dead {
            tried = ask(app, open, &who, Some(&dead));
            if tried.is_ok() {
                app.show(&taken_over(&dead).into());
            }
        }
        match tried {
            Ok(id) => return Ok(id),
            Err(BackendError::Locked(holder)) => {
                let waited = app.wiring.clock.monotonic().saturating_sub(started);
                if waited >= timeout {
                    return Err(refused(holder.as_deref(), &open.place).into());
                }
                if seen.is_none() {
                    let by = holder.as_ref().map(|h| format!(" It is held by {} since {}.", h.who, h.created)).unwrap_or_default();
                    app.say(&format!("Acquiring state lock. This may take a few moments...{by}\n"));
                }
                let delay_now = delay.min(timeout - waited).max(1);
                app.executor.block_on(app.wiring.clock.sleep(delay_now));
                seen = match seen {
                    Some((before, watched)) if before == holder => Some((before, watched + delay_now)),
                    _ => Some((holder, delay_now)),
                };
                delay = (delay * 2).min(LONGEST_PAUSE);
            }
            Err(error) => return Err(backend_failed("lock", &open.place, &error).into()),
        }
    }
}

/// Tries once to take the lock; from somebody who is dead, if one is given. A signal that comes while the request is on its way waits for the answer,
/// and releases what it brought: whoever comes next would have to wait until its lease is over, or to remove it by hand where it has none.
///
/// # Errors
/// As the backend says it.
pub(crate) fn ask(app: &App, open: &OpenBackend, who: &LockInfo, dead: Option<&LockInfo>) -> Result<LockId, BackendError> {
    let (tell, told) = oneshot::channel();
    heed(app, app.interrupt.hold(&who.id, when_told(open, LockId(who.id.clone()), told)));
    let tried = app.executor.block_on(async {
        match dead {
            Some(dead) => open.backend.take_over(dead, who).await,
            None => open.backend.lock(who).await,
        }
    });
    // Whoever listens does so because of a signal.
    let _ = tell.send(tried.is_ok());
    let goes_on = match &tried {
        Ok(id) => app.interrupt.hold(&who.id, given_back(open, id.clone())),
        Err(_) => app.interrupt.let_go(&who.id),
    };
    heed(app, goes_on);
    tried
}

/// Releases a lock that was taken here. A signal does not end that in the middle.
///
/// # Errors
/// As the backend says it.
pub(crate) fn release(app: &App, backend: &dyn StateBackend, id: &LockId) -> Result<(), BackendError> {
    let _asking = app.interrupt.ask_first();
    let_go(app, id);
    app.executor.block_on(backend.unlock(id))
}

/// A lock is about to be released as it should be, or is nobody's to release any more.
pub(crate) fn let_go(app: &App, id: &LockId) {
    heed(app, app.interrupt.let_go(&id.0));
}

/// Where a signal ends everything already, nothing more is done here.
fn heed(app: &App, goes_on: bool) {
    if !goes_on {
        app.executor.block_on(std::future::pending::<()>());
    }
}

/// What a signal does with a lock that is asked for.
fn when_told(open: &OpenBackend, id: LockId, told: oneshot::Receiver<bool>) -> GiveBack {
    let (place, name, release) = (open.place.clone(), id.0.clone(), given_back(open, id));
    Box::pin(async move {
        match tokio::time::timeout(RELEASE, told).await {
            Ok(Ok(true)) => release.await,
            Ok(_) => String::new(),
            Err(_) => format!(
                " The lock of the state at {place} was asked for, and there was no answer in time. If it is held now, remove it with: karmaform \
                 force-unlock {name}"
            ),
        }
    })
}

/// What a signal does with a lock that is held.
fn given_back(open: &OpenBackend, id: LockId) -> GiveBack {
    let (backend, place) = (Arc::clone(&open.backend), open.place.clone());
    Box::pin(async move {
        match tokio::time::timeout(RELEASE, backend.unlock(&id)).await {
            Ok(Ok(())) => String::new(),
            Ok(Err(error)) => format!(" {}", not_released(&place, &error.to_string())),
            Err(_) => format!(" {}", not_released(&place, "there was no answer in time")),
        }
    })
}

/// A lock stays.
pub(crate) fn not_released(place: &str, why: &str) -> String {
    format!("The lock of the state at {place} could not be released: {why}.")
}

/// A holder, or the little that is known of it, and for how many milliseconds it was watched and did not change.
type Seen = Option<(Option<Box<LockInfo>>, u64)>;

/// The holder, if it was seen without a change for as long as its lease is.
fn holder_gone(holder: &LockInfo, seen: &Seen) -> Option<LockInfo> {
    let (Some(before), watched) = seen.as_ref()? else { return None };
    let is_over = holder.lease.is_some_and(|lease| *watched >= lease.saturating_mul(1_000));
    (is_over && holder == before.as_ref()).then(|| holder.clone())
}

fn taken_over(dead: &LockInfo) -> Diagnostic {
    let detail = format!(
        "{} held the lock of the state since {} ({}) and gave no sign of life for {} seconds, so it was taken over. Should that run still \
         live, it can't write the state any more.",
        dead.who,
        dead.created,
        dead.operation,
        dead.lease.unwrap_or_default()
    );
    Diagnostic::warning("State lock taken over", detail)
}

/// The lock is held by somebody else.
pub(crate) fn refused(holder: Option<&LockInfo>, place: &str) -> Diagnostic {
    let mut detail = format!("Another run holds the lock of the state at {place}, so this one did nothing.");
    if let Some(holder) = holder {
        detail.push_str(&format!(
            "\n\nLock Info:\n  ID:        {}\n  Path:      {}\n  Operation: {}\n  Who:       {}\n  Version:   {}\n  Created:   {}\n  Info:      {}",
            holder.id, holder.path, holder.operation, holder.who, holder.version, holder.created, holder.info
        ));
        if let (Some(lease), Some(renewed)) = (holder.lease, &holder.renewed) {
            detail.push_str(&format!("\n  Lease:     {lease} seconds, last sign of life at {renewed}"));
        }
    }
    let unlock = match holder {
        Some(holder) => format!(
            "If that run is dead (ask {}, look for its process), remove its lock with: karmaform force-unlock {}",
            holder.who, holder.id
        ),
        None => "If that run is dead, remove its lock with: karmaform force-unlock LOCK_ID".to_owned(),
    };
    let wait = match holder.and_then(|h| h.lease) {
        Some(lease) => format!(
            "Let this run wait for it with -lock-timeout=5m. If the other is dead, its lock is taken over after {lease} seconds without a \
             sign of life."
        ),
        None => "Wait until it ends, or let this run wait for it with -lock-timeout=5m.".to_owned(),
    };
    Diagnostic::error("Error acquiring the state lock", detail).with_hint(wait).with_hint(unlock)
}
