//! State in etcd.
//!
//! [`EtcdStore`] is a [`StateStore`](karmaform_model::StateStore): each item is a key, written by a transaction that compares its revision.
//! What is larger than etcd takes in one request is written in chunks beforehand, which the transaction then swaps in.
//!
//! Knows nothing of: what is in a state, locks and leases, the clusters that karmaform itself manages.

mod arguments;
mod chunks;
mod store;

pub use arguments::schema;
pub use store::EtcdStore;
