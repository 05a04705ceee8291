//! The lock: an object that is there, with Terraform's lock content in it, so that both keep each other out. Ours also says how long it holds.

use karmaform_model::{BackendError, Found, Item, LockId, LockInfo, StateStore, StoreError, Version};

/// So often a lock that vanishes before it can be looked at is tried again.
const TRIES: usize = 5;

/// A lock that is ours.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// As it is in the store.
    pub(crate) info: LockInfo,
    version: Version,
}

/// Takes the lock.
///
/// # Errors
/// [`BackendError::Locked`] with who holds it.
pub(crate) async fn lock(store: &dyn StateStore, who: &LockInfo) -> Result<Held, BackendError> {
    for _ in 0..TRIES {
        match store.put(&Item::Lock, text(who), None).await {
            Ok(version) => return Ok(Held { info: who.clone(), version }),
            Err(StoreError::Changed) => {}
            Err(error) => return Err(failed(store, error)),
        }
        let Some(found) = get(store).await? else { continue };
        let holder = parse(&found);
        // The reply to a try of ours was lost, and the next try met it.
        if holder.as_ref().is_some_and(|h| h.id == who.id) {
            return Ok(Held { info: who.clone(), version: found.version });
        }
        return Err(BackendError::Locked(holder.map(Box::new)));
    }
    Err(BackendError::Locked(None))
}

/// Releases the lock with this id, whoever took it.
///
/// # Errors
/// If there is none, or another one.
pub(crate) async fn unlock(store: &dyn StateStore, id: &LockId) -> Result<(), BackendError> {
    for _ in 0..TRIES {
        let found = get(store).await?.ok_or(BackendError::NotLocked)?;
        let held = parse(&found).map(|h| h.id).unwrap_or_default();
        if held != id.0 {
            return Err(BackendError::OtherLock { given: id.0.clone(), held });
        }
        match store.delete(&Item::Lock, &found.version).await {
            Ok(()) => return Ok(()),
            // A last sign of life of ours got in between.
            Err(StoreError::Changed) => {}
            Err(error) => return Err(failed(store, error)),
        }
    }
    Err(failed(store, StoreError::Changed))
}

/// Gives a sign of life.
///
/// # Errors
/// [`BackendError::LockLost`] if it is not ours any more; another one if it still is, and others did not see the sign.
pub(crate) async fn renew(store: &dyn StateStore, held: &Held, now: &str) -> Result<Held, BackendError> {
    let info = LockInfo { renewed: Some(now.to_owned()), ..held.info.clone() };
    let mut version = held.version.clone();
    for _ in 0..TRIES {
        match store.put(&Item::Lock, text(&info), Some(&version)).await {
            Ok(version) => return Ok(Held { info, version }),
            Err(StoreError::Changed) => {}
            Err(error) => return Err(failed(store, error)),
        }
        let found = get(store).await?;
        match found.as_ref().map(|f| (parse(f), f)) {
            // It is this very one, and its reply was lost.
            Some((Some(holder), found)) if holder == info => return Ok(Held { info, version: found.version.clone() }),
            // An earlier one of ours whose reply was lost: this one goes over it.
            Some((Some(holder), found)) if holder.id == info.id => version = found.version.clone(),
            found => return Err(BackendError::LockLost(found.and_then(|(holder, _)| holder).map(Box::new))),
        }
    }
    // Nobody has seen it, so it was no sign of life.
    Err(failed(store, StoreError::Changed))
}

/// Takes the lock from a holder that is dead.
///
/// # Errors
/// [`BackendError::Locked`] if the lock is not as it was seen.
pub(crate) async fn take_over(store: &dyn StateStore, dead: &LockInfo, who: &LockInfo) -> Result<Held, BackendError> {
    let Some(found) = get(store).await? else { return lock(store, who).await };
    let holder = parse(&found);
    if holder.as_ref() != Some(dead) || dead.lease.is_none() {
        return Err(BackendError::Locked(holder.map(Box::new)));
    }
    match store.put(&Item::Lock, text(who), Some(&found.version)).await {
        Ok(version) => Ok(Held { info: who.clone(), version }),
        // Somebody was quicker; or it was us, and the reply was lost.
        Err(StoreError::Changed) => lock(store, who).await,
        Err(error) => Err(failed(store, error)),
    }
}

async fn get(store: &dyn StateStore) -> Result<Option<Found>, BackendError> {
    store.get(&Item::Lock).await.map_err(|e| failed(store, e))
}

fn failed(store: &dyn StateStore, source: StoreError) -> BackendError {
    crate::failed(store, "locking")(source)
}

fn text(info: &LockInfo) -> Vec<u8> {
    serde_json::to_vec(info).unwrap_or_default()
}

fn parse(found: &Found) -> Option<LockInfo> {
    serde_json::from_slice(&found.bytes).ok()
}
