//! A place for bytes that can compare and swap: what a remote state backend is made of, and all that one kind differs in from another.

use crate::{BoxFuture, Serial};

/// What of a state is kept in a store. Each store names them as Terraform does, so that both find each other's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// The state.
    State,
    /// The lock.
    Lock,
    /// The state as an earlier run left it.
    Generation(Serial),
    /// What is known of the generations: who, when, what for.
    History,
    /// A scratch item with this name, for trying what the store can do. Names are of letters, digits and `-`.
    Scratch(String),
}

/// Which writing of an item this is: an ETag, a revision. Equal versions are equal bytes; a later writing may have the same version again
/// if it has the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(pub String);

/// An item as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Which writing of it.
    pub version: Version,
}

/// What a store could not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The item is not what was expected, so nothing was written. Or: it was written, and the reply was lost, and a second try met the first.
    #[error("somebody else wrote it meanwhile")]
    Changed,
    /// It is not known whether it was done: the store did not answer, or not in time, after all retries.
    #[error("{0}")]
    Unreachable(String),
    /// The store said no, and would say so again.
    #[error("{0}")]
    Refused(String),
}

/// A store, opened for one state. Each call has its own time limit and retries by itself where that is safe; whoever calls bears that a
/// try that was repeated may meet itself.
pub trait StateStore: Send + Sync {
    /// Where the state is, as people name it: `s3://bucket/key`.
    fn place(&self) -> String;

    /// Reads an item; `None` if there is none.
    fn get<'a>(&'a self, item: &'a Item) -> BoxFuture<'a, Result<Option<Found>, StoreError>>;

    /// Writes an item if it still has this version (`None`: if it is not there). [`StoreError::Changed`] if not.
    fn put<'a>(&'a self, item: &'a Item, bytes: Vec<u8>, expected: Option<&'a Version>) -> BoxFuture<'a, Result<Version, StoreError>>;

    /// Removes an item, if it has this version as far as the store can tell; [`StoreError::Changed`] if it has another. One that is not
    /// there is no error.
    fn delete<'a>(&'a self, item: &'a Item, expected: &'a Version) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The generations that are kept, in order.
    fn generations(&self) -> BoxFuture<'_, Result<Vec<Serial>, StoreError>>;

    /// The workspaces that have a state here, in order. `default` is not among them: it is always there.
    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;
}
