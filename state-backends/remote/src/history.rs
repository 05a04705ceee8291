//! Generations: the state as each run left it, and a list of who, when and what for. The list is one item, so that looking at it does not
//! read every state.

use karmaform_model::{BackendError, Generation, Item, Serial, StateStore, StoreError};

/// So many are kept.
pub(crate) const KEPT: usize = 30;
/// So often the list is tried to be written where somebody else writes it too: runs without a lock.
const TRIES: usize = 5;

/// Keeps a state, and lets the oldest go.
///
/// # Errors
/// If the store refuses; then the list may lack it.
pub(crate) async fn keep(store: &dyn StateStore, generation: &Generation, state: Vec<u8>) -> Result<(), BackendError> {
    let failed = |source| BackendError::Store { what: "writing the history of", place: store.place(), source };
    match store.put(&Item::Generation(generation.serial), state, None).await {
        // It is there: a try whose reply was lost, or a run without a lock. A serial is written once, so it is this one.
        Ok(_) | Err(StoreError::Changed) => {}
        Err(error) => return Err(failed(error)),
    }
    for _ in 0..TRIES {
        let found = store.get(&Item::History).await.map_err(failed)?;
        let mut all = found.as_ref().map(|f| parse(&f.bytes)).unwrap_or_default();
        all.retain(|g| g.serial != generation.serial);
        all.push(generation.clone());
        all.sort_by_key(|g| g.serial);
        let gone: Vec<_> = all.drain(..all.len().saturating_sub(KEPT)).collect();
        let text = serde_json::to_vec_pretty(&all).unwrap_or_default();
        match store.put(&Item::History, text, found.as_ref().map(|f| &f.version)).await {
            Ok(_) => {
                for old in gone {
                    forget(store, old.serial).await;
                }
                return Ok(());
            }
            Err(StoreError::Changed) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(failed(StoreError::Changed))
}

/// What can't be removed stays; it does no harm and is not worth an error.
async fn forget(store: &dyn StateStore, serial: Serial) {
    let item = Item::Generation(serial);
    if let Ok(Some(found)) = store.get(&item).await {
        let _ = store.delete(&item, &found.version).await;
    }
}

/// All that are kept, oldest first.
///
/// # Errors
/// If the store refuses.
pub(crate) async fn list(store: &dyn StateStore) -> Result<Vec<Generation>, BackendError> {
    let failed = |source| BackendError::Store { what: "reading the history of", place: store.place(), source };
    let found = store.get(&Item::History).await.map_err(failed)?;
    let mut all = found.map(|f| parse(&f.bytes)).unwrap_or_default();
    // The list may have been lost, or not have been written: what is kept counts.
    let kept = store.generations().await.map_err(failed)?;
    all.retain(|g| kept.contains(&g.serial));
    for serial in kept {
        if !all.iter().any(|g| g.serial == serial) {
            all.push(unknown(serial));
        }
    }
    all.sort_by_key(|g| g.serial);
    Ok(all)
}

fn parse(bytes: &[u8]) -> Vec<Generation> {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn unknown(serial: Serial) -> Generation {
    let nothing = String::new;
    Generation {
        serial,
        created: nothing(),
        who: nothing(),
        operation: nothing(),
        version: nothing(),
        configuration: nothing(),
        resources: 0,
    }
}
