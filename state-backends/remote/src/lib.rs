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
