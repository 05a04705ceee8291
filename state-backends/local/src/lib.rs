//! State in a local file, with its lock, its backup, its history, and the journal that bridges a crash.
//!
//! Knows nothing of: configurations, plans, providers, terminals. It does not make lock ids or times: they come in with [`LockInfo`].
//!
//! [`LockInfo`]: karmaform_model::LockInfo

mod backend;
mod disk;
mod held;
mod history;
mod journal;
mod lock;

pub use backend::LocalBackend;
pub use journal::FileJournal;
