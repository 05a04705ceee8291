//! Encryption on the client: what leaves the process is sealed, wherever it is kept.
//!
//! A key comes from a passphrase, a file, age identities, a key service or a command. Each thing that is written gets a key of its own,
//! derived from that key and random bytes, and is sealed with AES-256-GCM in an envelope that says how the key is had again. The envelope is
//! authenticated as a whole: kind, lineage and serial can be read and can't be changed.
//!
//! Whole files that others than karmaform may have to read are encrypted as age does it ([`AgeFiles`]).
//!
//! Knows nothing of: states, stores, plans.

mod age_keys;
mod arguments;
mod command;
mod envelope;
mod files;
mod key;
mod passphrase;
mod sealing;

pub use arguments::schema;
pub use files::AgeFiles;
pub use sealing::{Encryption, OpenKms};
