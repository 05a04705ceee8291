//! Keys, and where they come from.

use std::fmt::Write as _;

use aws_lc_rs::hkdf;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A key in bytes.
pub(crate) const LENGTH: usize = 32;

/// A key that things are sealed with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key([u8; LENGTH]);

/// How a key is had again; stands in each envelope that was sealed with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Origin {
    /// Argon2id over a passphrase, version 1.3.
    Passphrase {
        /// In base64.
        salt: String,
        /// KiB of memory.
        memory: u32,
        /// Passes over it.
        passes: u32,
        /// Lanes.
        lanes: u32,
    },
    /// It stands in a file.
    KeyFile {
        /// Which one: the start of a digest of it.
        id: String,
    },
    /// Encrypted to recipients of age, in base64.
    Age {
        /// The whole age file.
        wrapped: String,
    },
    /// Wrapped by a key of AWS KMS.
    AwsKms {
        /// In base64.
        wrapped: String,
    },
    /// Wrapped by a program.
    Command {
        /// What it printed.
        wrapped: String,
    },
}

impl Origin {
    /// What it is called in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Passphrase { .. } => "a passphrase".to_owned(),
            Self::KeyFile { id } => format!("the key file with the id {id}"),
            Self::Age { .. } => "age".to_owned(),
            Self::AwsKms { .. } => "AWS KMS".to_owned(),
            Self::Command { .. } => "a command".to_owned(),
        }
    }
}

impl Key {
    /// Of these bytes, if they are as many as a key has.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// A new one.
    pub(crate) fn random() -> Option<Self> {
        let mut bytes = [0; LENGTH];
        aws_lc_rs::rand::fill(&mut bytes).ok()?;
        Some(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Tells keys apart, and tells nothing else of them: hexadecimal digits.
    pub(crate) fn check(&self) -> String {
        let mut check = [0; LENGTH];
        let material = hkdf::Salt::new(hkdf::HKDF_SHA256, b"karmaform key check").extract(&self.0);
        // Both lengths are those of SHA-256, which always go.
        if let Ok(once) = material.expand(&[b""], hkdf::HKDF_SHA256) {
            let _ = once.fill(&mut check);
        }
        digits(&check)
    }

    /// Names a key in messages.
    pub(crate) fn id(&self) -> String {
        digits(&Sha256::digest([b"karmaform key id".as_slice(), &self.0].concat()))
    }
}

/// The first eight bytes, in hexadecimal digits.
fn digits(bytes: &[u8]) -> String {
    bytes.iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
