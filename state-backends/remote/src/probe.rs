//! Does a store do what it says? Some take conditional headers and pass over them, others honour them one at a time only.

use futures::future::join_all;
use karmaform_model::{Item, StateStore, StoreError, Version};

/// So many write at once; a store that is not atomic lets more than one win nearly always.
const WRITERS: usize = 8;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// Of all conditional writes exactly one won, each time.
    Good,
    /// It is no place for a state that more than one person or pipeline works on. Why, in one sentence.
    Bad(String),
}

/// Tries a store with scratch items, whose names begin with `name` and are gone afterwards: creates, swaps, and `rounds` races of both.
/// `name` is of letters, digits and `-`, and new each time.
///
/// # Errors
/// If the store can't be reached, or refuses.
pub async fn probe(store: &dyn StateStore, name: &str, rounds: usize) -> Result<Probed, StoreError> {
    let first = Item::Scratch(format!("{name}-0"));
    let mut found = one_by_one(store, &first).await;
    clean(store, &first).await;
    for round in 1..=rounds {
        if found != Ok(Probed::Good) {
            break;
        }
        let item = Item::Scratch(format!("{name}-{round}"));
        found = race(store, &item).await;
        clean(store, &item).await;
    }
    found
}

async fn one_by_one(store: &dyn StateStore, item: &Item) -> Result<Probed, StoreError> {
    let bad = |why: &str| Ok(Probed::Bad(why.to_owned()));
    let one = store.put(item, b"one".to_vec(), None).await?;
    match store.put(item, b"again".to_vec(), None).await {
        Err(StoreError::Changed) => {}
        Ok(_) => return bad("it lets an object be created that is there already, so two runs could both hold the lock"),
        Err(error) => return Err(error),
    }
    let two = match store.put(item, b"two".to_vec(), Some(&one)).await {
        Ok(two) => two,
        // Its reply may have been lost, so that a second try met the first.
        Err(StoreError::Changed) => match store.get(item).await? {
            Some(found) if found.bytes == b"two" => found.version,
            _ => return bad("it refuses to write over an object that nobody else changed (If-Match)"),
        },
        Err(error) => return Err(error),
    };
    match store.put(item, b"late".to_vec(), Some(&one)).await {
        Err(StoreError::Changed) => {}
        Ok(_) => {
            return bad(
                "it lets an object be written over that somebody else changed meanwhile, so the state of another run could be lost",
            );
        }
        Err(error) => return Err(error),
    }
    match store.get(item).await? {
        Some(found) if found.bytes == b"two" && found.version == two => Ok(Probed::Good),
        _ => bad("what was written is not what is read right afterwards"),
    }
}

async fn race(store: &dyn StateStore, item: &Item) -> Result<Probed, StoreError> {
    let mut over: Option<Version> = None;
    for what in ["creates of one object", "writes over one object"] {
        let tries = (0..WRITERS).map(|i| store.put(item, format!("{what} {i}").into_bytes(), over.as_ref()));
        let mut won = Vec::new();
        for tried in join_all(tries).await {
            match tried {
                Ok(version) => won.push(version),
                Err(StoreError::Changed) => {}
                Err(error) => return Err(error),
            }
        }
        if won.is_empty() {
            // The winner's reply was lost; had it refused all, nothing of this race would be there.
            let found = store.get(item).await?.filter(|f| f.bytes.starts_with(what.as_bytes()));
            won.extend(found.map(|f| f.version));
        }
        if won.len() != 1 {
            return Ok(Probed::Bad(format!("of {WRITERS} conditional {what} at once {} were let through, and it must be one", won.len())));
        }
        over = won.pop();
    }
    Ok(Probed::Good)
}

/// What can't be removed stays; it does no harm and is not worth an error.
async fn clean(store: &dyn StateStore, item: &Item) {
    if let Ok(Some(found)) = store.get(item).await {
        let _ = store.delete(item, &found.version).await;
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
