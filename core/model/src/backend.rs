//! Where state is kept, and the journal that bridges a crash.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Address, BoxFuture, Diagnostic, Generation, Object, OutputState, Refused, ResourceState, Snapshot, StateError, StoreError};

/// A snapshot's counter.
pub type Serial = u64;

/// Names a held lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockId(pub String);

/// Who holds a lock, since when, for what. The same keys as Terraform's, and two of ours that it passes over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LockInfo {
    /// A random id.
    #[serde(rename = "ID")]
    pub id: String,
    /// `OperationTypeApply`
    pub operation: String,
    /// Anything else.
    pub info: String,
    /// `user@host`
    pub who: String,
    /// The tool's version.
    pub version: String,
    /// RFC 3339.
    pub created: String,
    /// What is locked.
    pub path: String,
    /// Seconds after which the lock of a holder that gave no sign of life may be taken over. `None`: it never may, as with Terraform's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<u64>,
    /// The holder's last sign of life, RFC 3339 by its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<String>,
}

/// What a backend could not do.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// Somebody else holds the lock.
    #[error("the state is locked")]
    Locked(Option<Box<LockInfo>>),
    /// The lock to be released is another one.
    #[error("the lock has the id \"{held}\", not \"{given}\"")]
    OtherLock {
        /// The id given.
        given: String,
        /// The id found.
        held: String,
    },
    /// There is no lock.
    #[error("the state is not locked")]
    NotLocked,
    /// The lock that this run held is not its own any more.
    #[error("the lock was lost: {}", .0.as_ref().map_or("it was removed".to_owned(), |h| format!("{} took it at {}", h.who, h.created)))]
    LockLost(Option<Box<LockInfo>>),
    /// Somebody else wrote meanwhile.
    #[error("the state has serial {found} now, expected was {expected}: somebody else wrote it meanwhile")]
    Conflict {
        /// The serial that was read before.
        expected: Serial,
        /// The serial found.
        found: Serial,
    },
    /// What is stored is no state.
    #[error("{place}: {source}")]
    Damaged {
        /// Which file or object.
        place: String,
        /// What is wrong with it.
        source: StateError,
    },
    /// A store could not do it.
    #[error("{what} {place}: {source}")]
    Store {
        /// `reading`, `writing`, `locking`
        what: &'static str,
        /// Which object.
        place: String,
        /// The cause.
        source: StoreError,
    },
    /// Reading or writing failed.
    #[error("{what} {place}: {source}")]
    Io {
        /// `reading`, `writing`
        what: &'static str,
        /// Which file or object.
        place: String,
        /// The cause.
        source: std::io::Error,
    },
}

impl BackendError {
    /// What to say of a lost race before anything was done; `None` for any other error.
    pub fn conflict(&self) -> Option<Diagnostic> {
        matches!(self, Self::Conflict { .. }).then(|| {
            Diagnostic::error("The state was changed meanwhile", format!("Nothing was done: {self}."))
                .with_hint("Run it again: it starts from the state as it is now.")
        })
    }
}

/// Keeps one state.
pub trait StateBackend: Send + Sync {
    /// The current snapshot; `None` if there is none yet.
    fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>>;
    /// Writes `next` if the stored serial still is `expected` (`None`: nothing stored); a lost race is [`BackendError::Conflict`].
    fn write<'a>(&'a self, expected: Option<Serial>, next: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>>;
    /// Takes the lock, or says who holds it.
    fn lock<'a>(&'a self, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>>;
    /// Releases the lock with this id; also one of a process that is gone.
    fn unlock<'a>(&'a self, id: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>>;

    /// How long a lock is respected without a sign of life. `None`: the lock ends with the process that holds it, or never.
    fn lease(&self) -> Option<Duration> {
        None
    }

    /// True if runs on other machines may write it too. Then it is written once before anything is done: a state that was read stale, or that
    /// somebody wrote without a lock, shows before the work and not after it.
    fn is_shared(&self) -> bool {
        self.lease().is_some()
    }

    /// Gives a sign of life, `now` in RFC 3339. [`BackendError::LockLost`] if somebody else holds the lock, or nobody.
    fn renew<'a>(&'a self, id: &'a LockId, now: &'a str) -> BoxFuture<'a, Result<(), BackendError>> {
        let _ = (id, now);
        Box::pin(async { Ok(()) })
    }

    /// Keeps a state that an earlier run left in another place as a generation, as it was. Nothing where the backend keeps none.
    fn take_in<'a>(&'a self, about: &'a Generation, state: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        let _ = (about, state);
        Box::pin(async { Ok(()) })
    }

    /// Keeps the state that this run wrote last as a generation, and lets the oldest go where there are many. Nothing where the run wrote
    /// nothing, and where the backend keeps none. `about` says who and what for; serial and resources are filled in.
    fn keep<'a>(&'a self, about: &'a Generation) -> BoxFuture<'a, Result<(), BackendError>> {
        let _ = about;
        Box::pin(async { Ok(()) })
    }

    /// The generations that are kept, oldest first; `None` if this backend keeps none.
    fn history(&self) -> BoxFuture<'_, Result<Option<Vec<Generation>>, BackendError>> {
        Box::pin(async { Ok(None) })
    }

    /// A generation's state; `None` if it is not kept.
    fn generation(&self, serial: Serial) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        let _ = serial;
        Box::pin(async { Ok(None) })
    }

    /// The workspaces that have a state in this place, in order, without `default`; `None` if this backend has no workspaces.
    fn workspaces(&self) -> BoxFuture<'_, Result<Option<Vec<String>>, BackendError>> {
        Box::pin(async { Ok(None) })
    }

    /// Removes the state as it was read last, and all that is kept of it. Only whoever holds the lock may ask.
    fn remove(&self) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async {
            let source = StoreError::Refused("this backend removes no states".to_owned());
            Err(BackendError::Store { what: "removing", place: String::new(), source })
        })
    }

    /// Takes the lock from a holder that is dead, if it still is as it was seen. Only whoever saw it unchanged for a whole lease may ask.
    fn take_over<'a>(&'a self, dead: &'a LockInfo, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        let _ = who;
        Box::pin(async { Err(BackendError::Locked(Some(Box::new(dead.clone())))) })
    }
}

/// Which state of another configuration.
#[derive(Clone, Copy, Debug)]
pub struct OtherState<'a> {
    /// Kind of its backend.
    pub backend: &'a str,
    /// Arguments of its backend.
    pub config: &'a Object,
    /// Its workspace.
    pub workspace: &'a str,
    /// What its `encryption` block says, if it has one.
    pub encryption: Option<&'a Object>,
}

/// The states of other configurations.
pub trait States: Send + Sync {
    /// What is wrong with the kind of a backend (`backend`), or with its arguments (`config`), without reaching for it.
    fn refused(&self, backend: &str, config: &Object) -> Refused;

    /// Reads one; `None` if there is none.
    fn read<'a>(&'a self, wanted: OtherState<'a>) -> BoxFuture<'a, Result<Option<Snapshot>, Diagnostic>>;
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalRecord {
    /// A run begins, from this state.
    Begin {
        /// The state's lineage.
        lineage: String,
        /// Its serial.
        serial: Serial,
        /// Version of the tool.
        version: String,
    },
    /// A step that touches the world is about to start. `planned` is what may be there if nothing else is heard of it.
    Started {
        /// The resource.
        address: Address,
        /// The instance as planned, [`crate::Status::Unfinished`]; `None` for a delete.
        planned: Option<ResourceState>,
    },
    /// A step ended; this is the instance now, `None` if it is gone.
    Ended {
        /// The resource.
        address: Address,
        /// The instance now.
        state: Option<ResourceState>,
    },
    /// An object that a `create_before_destroy` replacement set aside; `None` if it is gone.
    Deposed {
        /// The resource.
        address: Address,
        /// The object's key, 8 hexadecimal digits.
        key: String,
        /// The object.
        state: Option<ResourceState>,
    },
    /// The root outputs now.
    Outputs(std::collections::BTreeMap<String, OutputState>),
    /// All before this line is in the backend, with this serial.
    Written {
        /// The serial written.
        serial: Serial,
    },
}

/// An append-only local file. Appending costs the same however large the state is.
pub trait Journal: Send {
    /// Appends and makes durable before it returns.
    ///
    /// # Errors
    /// If the disk refuses.
    fn append(&mut self, records: &[JournalRecord]) -> Result<(), BackendError>;
    /// What an earlier run left. A torn last line is dropped.
    ///
    /// # Errors
    /// If it can't be read.
    fn read(&self) -> Result<Vec<JournalRecord>, BackendError>;
    /// Empties it; everything is in the backend.
    ///
    /// # Errors
    /// If the disk refuses.
    fn clear(&mut self) -> Result<(), BackendError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_race_says_which_state_is_there_now_and_what_to_do() {
        let lost = BackendError::Conflict { expected: 3, found: 5 }.conflict().expect("told");
        assert_eq!(
            (lost.summary.as_str(), lost.detail.as_str()),
            (
                "The state was changed meanwhile",
                "Nothing was done: the state has serial 5 now, expected was 3: somebody else wrote it meanwhile."
            )
        );
        assert_eq!(lost.hints, ["Run it again: it starts from the state as it is now."]);
        for (error, said) in [
            (BackendError::Locked(None), "the state is locked"),
            (
                BackendError::Store { what: "writing", place: "s3://b/k".into(), source: StoreError::Changed },
                "writing s3://b/k: somebody else wrote it meanwhile",
            ),
        ] {
            assert_eq!(error.to_string(), said);
            assert!(error.conflict().is_none());
        }
    }
}
