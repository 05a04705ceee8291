//! State in any store that compares and swaps: every write is conditional, locks have a lease, and a store that is not what it says is found
//! out before it is trusted.
//!
//! Knows nothing of: any particular store, clocks of other machines, files, what is in a state.

mod history;
mod lock;
mod probe;
mod state;

pub use probe::{Probed, probe};
pub use state::RemoteState;

#[cfg(test)]
mod memory;

use karmaform_model::{BackendError, StateStore, StoreError};

/// Makes errors of a store into those of a backend, about `what` was tried.
fn failed(store: &dyn StateStore, what: &'static str) -> impl Fn(StoreError) -> BackendError + use<> {
    let place = store.place();
    move |source| BackendError::Store { what, place: place.clone(), source }
}
