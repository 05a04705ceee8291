//! Encryption of what is kept: the door between what is to be written and the bytes that are.

use crate::{BoxFuture, Serial};

/// The key that every envelope has, and no state; its value is the version of the envelope's format.
pub const SEALED: &str = "karmaform_encrypted";

/// What is sealed. An envelope is bound to it: one of a state is not taken for one of a plan, nor for one of another serial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A state.
    State {
        /// Its lineage.
        lineage: String,
        /// Its serial.
        serial: Serial,
    },
    /// A saved plan.
    Plan,
    /// Records of a journal.
    Journal,
}

impl Content {
    /// What it is called in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::State { .. } => "state",
            Self::Plan => "plan",
            Self::Journal => "journal",
        }
    }
}

/// Why something could not be sealed or opened. Each is a sentence about "it", without a full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It is encrypted, and nothing says with what.
    #[error("it is encrypted, and the configuration has no encryption block")]
    NoKey,
    /// It is not encrypted, and must be.
    #[error("it is not encrypted, and the encryption block does not allow that")]
    Plain,
    /// None of the keys is the one it was encrypted with.
    #[error("it was encrypted with {with}, and {given}")]
    OtherKey {
        /// What it was encrypted with: `a passphrase`, `the key file 1a2b3c4d`.
        with: String,
        /// What was tried: `the passphrase that is given is another one`.
        given: String,
    },
    /// The key is right and the bytes are not.
    #[error("it is damaged, or somebody changed it: it is not what was encrypted")]
    Damaged,
    /// It is from something newer.
    #[error("it was encrypted in format {0}, which this version does not know")]
    Version(u64),
    /// Whoever keeps the key did not do their part.
    #[error("{0}")]
    Failed(String),
}

impl SealError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoKey => "Add the encryption block that it was written with to the karmaform block.",
            Self::Plain => "To take it in and encrypt it from now on, add to the encryption block: fallback { unencrypted = true }",
            Self::OtherKey { .. } => {
                "Give the key that it was encrypted with; while keys are changed, the new one in the encryption block and the old one in its fallback."
            }
            Self::Damaged => "Restore it: karmaform state history lists the states that earlier runs left.",
            Self::Version(_) => "Use a newer karmaform.",
            Self::Failed(_) => "Once that works, run it again. Nothing was changed.",
        }
    }
}

/// Seals what is written and opens what is read.
pub trait Seal: Send + Sync {
    /// What to write instead of `plain`.
    ///
    /// # Errors
    /// If the key can't be had.
    fn seal(&self, content: &Content, plain: Vec<u8>) -> Result<Vec<u8>, SealError>;

    /// What was sealed. Of a state, `content` is not known before; only its kind counts. What is not sealed is given back as it is, if that
    /// is allowed.
    ///
    /// # Errors
    /// If it can't be opened, or is something else.
    fn open(&self, content: &Content, stored: &[u8]) -> Result<Vec<u8>, SealError>;

    /// False if what is written lies in clear.
    fn encrypts(&self) -> bool;
}

/// Seals nothing, and knows what is sealed when it sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clear;

impl Seal for Clear {
    fn seal(&self, _: &Content, plain: Vec<u8>) -> Result<Vec<u8>, SealError> {
        Ok(plain)
    }

    fn open(&self, _: &Content, stored: &[u8]) -> Result<Vec<u8>, SealError> {
        if is_sealed(stored) { Err(SealError::NoKey) } else { Ok(stored.to_vec()) }
    }

    fn encrypts(&self) -> bool {
        false
    }
}

/// True for an envelope, of whatever version, damaged or not. Looks at its beginning alone.
pub fn is_sealed(stored: &[u8]) -> bool {
    let start = format!("{{\"{SEALED}\":");
    stored.iter().filter(|b| !b.is_ascii_whitespace()).take(start.len()).eq(start.as_bytes())
}

/// Keeps a key that never leaves it, and wraps others with that.
pub trait KeyService: Send + Sync {
    /// A key as it can be stored, in text.
    fn wrap<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<String, SealError>>;
    /// The key that was wrapped.
    fn unwrap<'a>(&'a self, wrapped: &'a str) -> BoxFuture<'a, Result<Vec<u8>, SealError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_known_and_nothing_else_is_one() {
        for (text, expected) in [
            ("{\"karmaform_encrypted\":1,\"data\":\"\"}", true),
            (" {\n  \"karmaform_encrypted\": 9}", true),
            ("{\"version\":4,\"outputs\":{\"karmaform_encrypted\":{}}}", false),
            ("{\"karmaform_encrypted_not\":1}", false),
            ("", false),
        ] {
            assert_eq!(is_sealed(text.as_bytes()), expected, "{text}");
            assert_eq!(Clear.open(&Content::Plan, text.as_bytes()).is_err(), expected, "{text}");
        }
    }
}
