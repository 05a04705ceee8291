//! A value as a Secret: packed with gzip, and cut into parts where it is too large for one.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

/// Bytes in one Secret; Kubernetes takes 1 MiB (`MaxSecretSize`).
pub(crate) const CHUNK: usize = 1_000_000;
/// Where the further parts are: their id and how many there are.
const PARTS: &str = "karmaform.io/parts";
/// Of the packed whole, in hexadecimal digits.
const DIGEST: &str = "karmaform.io/sha256";
/// The key in the Secret.
const KEY: &str = "tfstate";

/// Further parts of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) id: String,
    pub(crate) count: usize,
}

/// A value, packed.
pub(crate) struct Packed {
    bytes: Vec<u8>,
    pub(crate) parts: Option<Parts>,
}

impl Packed {
    pub(crate) fn of(bytes: &[u8], id: String) -> std::io::Result<Self> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes)?;
        let bytes = encoder.finish()?;
        let count = bytes.len().saturating_sub(1) / CHUNK;
        Ok(Self { parts: (count > 0).then_some(Parts { id, count }), bytes })
    }

    /// The data of a part; 0 is the Secret itself.
    pub(crate) fn data(&self, number: usize) -> Json {
        let part = self.bytes.chunks(CHUNK).nth(number).unwrap_or_default();
        json!({ KEY: BASE64_STANDARD.encode(part) })
    }

    /// What the Secret itself says of the value.
    pub(crate) fn annotations(&self) -> Json {
        let mut annotations = json!({ "encoding": "gzip" });
        if let Some(parts) = &self.parts {
            annotations[PARTS] = json!(format!("{} {}", parts.id, parts.count));
            annotations[DIGEST] = json!(digest(&self.bytes));
        }
        annotations
    }
}

/// The further parts that a Secret names.
pub(crate) fn parts(secret: &Json) -> Option<Parts> {
    let (id, count) = secret["metadata"]["annotations"][PARTS].as_str()?.split_once(' ')?;
    Some(Parts { id: id.to_owned(), count: count.parse().ok()? })
}

/// The bytes of one Secret, packed.
pub(crate) fn piece(secret: &Json) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(secret["data"][KEY].as_str()?).ok()
}

/// The value, out of all pieces of it. `None`: they don't fit together, or it is no value.
pub(crate) fn unpacked(secret: &Json, pieces: &[u8]) -> Option<Vec<u8>> {
    let expected = secret["metadata"]["annotations"][DIGEST].as_str();
    if expected.is_some_and(|e| e != digest(pieces)) {
        return None;
    }
    let mut bytes = Vec::new();
    GzDecoder::new(pieces).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Labels as Terraform's, and more. What is no state of its own must not be listed as one.
pub(crate) fn labels(workspace: &str, suffix: &str, is_state: bool, more: &BTreeMap<String, String>) -> Json {
    let mut labels = json!(more);
    labels["app.kubernetes.io/managed-by"] = json!(if is_state { "terraform" } else { "karmaform" });
    labels["tfstateSecretSuffix"] = json!(suffix);
    labels["tfstateWorkspace"] = json!(workspace);
    if is_state {
        labels["tfstate"] = json!("true");
    }
    labels
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}
