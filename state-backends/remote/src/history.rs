//! Generations in a store: each is an item, and so is the list of them, so that looking at it does not read every state.

use karmaform_model::{BackendError, Generation, History, Item, Serial, StateStore, StoreError};

use crate::failed;

/// So often the list is tried to be written where somebody else writes it too: runs without a lock.
const TRIES: usize = 5;

/// Keeps a state, and lets the oldest go.
///
/// # Errors
/// If the store refuses; then the list may lack it.
pub(crate) async fn keep(store: &dyn StateStore, generation: &Generation, state: Vec<u8>) -> Result<(), BackendError> {
    let failed = failed(store, "writing the history of");
    put(store, &Item::Generation(generation.serial), &state).await.map_err(&failed)?;
    for _ in 0..TRIES {
        let found = store.get(&Item::History).await.map_err(&failed)?;
        let mut history = found.as_ref().map(|f| History::from_bytes(&f.bytes)).unwrap_or_default();
        let gone = history.add(generation.clone());
        match store.put(&Item::History, history.to_bytes(), found.as_ref().map(|f| &f.version)).await {
            Ok(_) => {
                for serial in gone {
                    forget(store, serial).await;
                }
                return Ok(());
            }
            Err(StoreError::Changed) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(failed(StoreError::Changed))
}

/// Whatever is there: a try whose reply was lost, or what a state left that was given up, and another began anew with serial 1.
async fn put(store: &dyn StateStore, item: &Item, state: &[u8]) -> Result<(), StoreError> {
    let mut over = None;
    for _ in 0..TRIES {
        match store.put(item, state.to_vec(), over.as_ref()).await {
            Ok(_) => return Ok(()),
            Err(StoreError::Changed) => {}
            Err(error) => return Err(error),
        }
        over = match store.get(item).await? {
            Some(found) if found.bytes == state => return Ok(()),
            found => found.map(|f| f.version),
        };
    }
    Err(StoreError::Changed)
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
    let failed = failed(store, "reading the history of");
    let found = store.get(&Item::History).await.map_err(&failed)?;
    let history = found.map(|f| History::from_bytes(&f.bytes)).unwrap_or_default();
    Ok(history.of(store.generations().await.map_err(&failed)?))
}
