//! Values that are larger than a request may be: the key then holds where the chunks are, and their digest.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Bytes in a chunk. etcd takes requests of 1.5 MiB unless it is told otherwise (`--max-request-bytes`).
pub(crate) const CHUNK: usize = 1024 * 1024;

/// What stands in the key of a large value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// How many chunks there are; the key says what this is.
    karmaform_chunks: usize,
    /// What their keys have in common; new for each writing.
    pub(crate) id: String,
    /// Of all bytes, in hexadecimal digits.
    sha256: String,
}

impl Manifest {
    pub(crate) fn of(bytes: &[u8], id: String) -> Self {
        Self { karmaform_chunks: bytes.len().div_ceil(CHUNK), id, sha256: digest(bytes) }
    }

    /// The manifest in a value; `None` if the value is the thing itself.
    pub(crate) fn in_value(value: &[u8]) -> Option<Self> {
        // A state has no key by that name, and is never this short when it is large.
        if value.len() > 1024 { None } else { serde_json::from_slice(value).ok() }
    }

    pub(crate) fn to_value(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The keys of the chunks, in order.
    pub(crate) fn keys(&self, key: &str) -> Vec<String> {
        (0..self.karmaform_chunks).map(|i| format!("{}{i:06}", chunks(key, &self.id))).collect()
    }

    /// True if these are the bytes.
    pub(crate) fn fits(&self, bytes: &[u8]) -> bool {
        self.sha256 == digest(bytes)
    }
}

/// What the keys of the chunks of one writing begin with.
pub(crate) fn chunks(key: &str, id: &str) -> String {
    format!("{key}/chunks/{id}/")
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_told_from_a_state() {
        let bytes = vec![7; 2 * CHUNK + 1];
        let manifest = Manifest::of(&bytes, "x".into());
        assert_eq!(manifest.keys("k"), ["k/chunks/x/000000", "k/chunks/x/000001", "k/chunks/x/000002"]);
        assert_eq!(Manifest::in_value(&manifest.to_value()), Some(manifest.clone()));
        assert!(manifest.fits(&bytes) && !manifest.fits(&bytes[1..]));
        assert_eq!(Manifest::in_value(br#"{"version": 4}"#), None);
        assert_eq!(Manifest::in_value(b""), None);
    }
}
