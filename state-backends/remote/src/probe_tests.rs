use futures::executor::block_on;

use super::*;
use crate::memory::{Fault, Memory};

fn probed(store: &Memory) -> Result<Probed, StoreError> {
    block_on(probe(store, "x", 3))
}

#[test]
fn a_store_that_keeps_its_word_is_good_and_left_as_it_was() {
    let store = Memory::default();
    assert_eq!(probed(&store), Ok(Probed::Good));
    assert_eq!(store.count(), 0);
}

#[test]
fn a_store_that_passes_over_conditions_is_bad_and_left_as_it_was() {
    let store = Memory::default();
    store.always(Fault::Unconditional);
    assert!(matches!(probed(&store), Ok(Probed::Bad(why)) if why.contains("created that is there already")));
    assert_eq!(store.count(), 0);
    let store = Memory::default();
    store.fail(&[Fault::None, Fault::None, Fault::None, Fault::Unconditional]);
    assert!(matches!(probed(&store), Ok(Probed::Bad(why)) if why.contains("written over that somebody else changed")));
}

#[test]
fn a_store_that_is_not_atomic_is_bad() {
    let one_by_one = [Fault::None; 4];
    let store = Memory::default();
    store.fail(&one_by_one);
    store.fail(&[Fault::None, Fault::None, Fault::Unconditional]);
    assert!(
        matches!(probed(&store), Ok(Probed::Bad(why)) if why.contains("of 8 conditional creates of one object at once 2 were let through"))
    );
    let store = Memory::default();
    store.fail(&one_by_one);
    store.fail(&[Fault::None; 8]);
    store.fail(&[Fault::None, Fault::Unconditional, Fault::Unconditional]);
    assert!(
        matches!(probed(&store), Ok(Probed::Bad(why)) if why.contains("of 8 conditional writes over one object at once 3 were let through"))
    );
}

#[test]
fn a_reply_that_is_lost_is_held_against_nobody() {
    let store = Memory::default();
    store.fail(&[Fault::None, Fault::None, Fault::Met, Fault::None, Fault::Met]);
    assert_eq!(probed(&store), Ok(Probed::Good));
    let store = Memory::default();
    store.always(Fault::Down);
    assert!(matches!(probed(&store), Err(StoreError::Unreachable(_))));
}
