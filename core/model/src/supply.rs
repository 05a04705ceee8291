//! What a configuration needs from elsewhere, so that it can be brought along to a place without any way out.

use std::io::Read;

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, Diagnostic};

/// A file from elsewhere, as a resource asks for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Supply {
    /// A path, a `file:` or `http(s)` URL, or an image.
    pub source: String,
    /// What the SHA-256 sum of the source must be, or the path or URL of a file that says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What to take out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Of an image, for what it is to run on: `linux/amd64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
}

/// What is there of one.
pub struct Supplied {
    /// Its bytes.
    pub content: Box<dyn Read + Send>,
    /// How many there are.
    pub size: u64,
    /// Their SHA-256 sum, in lower-case hexadecimal digits. Whoever reads them checks it.
    pub sha256: String,
}

/// What a resource needs from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A file.
    File {
        /// As it is asked for.
        supply: Supply,
        /// Where it comes from is not to be shown.
        is_secret: bool,
    },
    /// An image that a cluster runs: `registry.example/karmada/karmada-scheduler:v1.19.0`. A cluster gets it from its registry.
    Image(String),
    /// A package that a host gets from its distribution: `keepalived`.
    Package(String),
    /// Something, of which it is not known yet where it comes from.
    Later,
}

/// What was brought along. Nothing is fetched from elsewhere then.
pub trait Stock: Send + Sync {
    /// Where it is, for messages.
    fn name(&self) -> String;

    /// Whether there is something of this.
    fn has(&self, supply: &Supply) -> bool;

    /// What there is of this; `None` if there is nothing.
    ///
    /// # Errors
    /// It can't be read.
    fn find(&self, supply: &Supply) -> Result<Option<Supplied>, Diagnostic>;
}

/// The registries that images of containers come from.
pub trait Registries: Send + Sync {
    /// True if the registry of `image`, named as in a pod, says that it has no such image. Who does not answer within seconds, or does not let
    /// us see it, has not said so.
    fn lacks<'a>(&'a self, image: &'a str) -> BoxFuture<'a, bool>;
}

/// A backup of etcd on a shelf that providers don't know, as the manifest beside it tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shelved {
    /// Which one it is: `s3://BUCKET/PREFIX/NAME-20260102T030405Z.db.age`.
    pub place: String,
    /// When it was made, RFC 3339.
    pub created: String,
    /// The length of the snapshot, in bytes, as it is when it is not encrypted.
    pub size: u64,
    /// The SHA-256 sum of that, in lower-case hexadecimal digits.
    pub sha256: String,
    /// The newest revision that is surely in it.
    pub revision: i64,
    /// The version of etcd that it was saved from.
    pub version: String,
    /// It lies there encrypted.
    pub is_encrypted: bool,
}

/// The shelves that backups lie on: who knows the stores and the keys lends them.
pub trait Shelves: Send + Sync {
    /// The backup that `from` names, or the newest of that name; with `before` the newest of that time or before (RFC 3339). Reads only, and of what
    /// lies there manifests alone.
    fn choose<'a>(&'a self, from: &'a str, before: Option<&'a str>) -> BoxFuture<'a, Result<Shelved, Diagnostic>>;

    /// The snapshot in a place that [`choose`](Self::choose) gave: decrypted, and the one that its manifest tells of. Got once in a run. Waits for the network:
    /// call it in a thread of a runtime where waiting is allowed.
    ///
    /// # Errors
    /// It is not there, is damaged, or can't be decrypted.
    fn take(&self, place: &str) -> Result<Supplied, Diagnostic>;
}

/// True if such shelves have it, and nobody else.
pub fn is_shelved(source: &str) -> bool {
    source.starts_with("s3://")
}

/// True of the place of one backup there, by its name: `s3://BUCKET/PREFIX/NAME-20260102T030405Z.db`, or with `.age` after it.
pub fn names_backup(source: &str) -> bool {
    let is_time = |stamp: &[u8]| {
        let is_right = |(at, byte): (usize, &u8)| match at {
            0 => *byte == b'-',
            9 => *byte == b'T',
            16 => *byte == b'Z',
            _ => byte.is_ascii_digit(),
        };
        stamp.iter().enumerate().all(is_right)
    };
    let parts = source.strip_prefix("s3://").and_then(|rest| rest.split_once('/')?.1.rsplit_once('/'));
    let stem = parts.and_then(|(_, file)| file.strip_suffix(".db").or_else(|| file.strip_suffix(".db.age")));
    stem.and_then(|stem| stem.as_bytes().split_last_chunk::<17>()).is_some_and(|(name, stamp)| !name.is_empty() && is_time(stamp))
}

/// Whom this machine trusts to say who a server is that programs, images and archives come from.
pub trait Trust: Send + Sync {
    /// The certificates of these authorities, in DER. If there are none, nobody said whom to trust, and those that are built in stand.
    ///
    /// # Errors
    /// What somebody wrote down can't be read.
    fn authorities(&self) -> Result<Vec<Vec<u8>>, Diagnostic>;
}

/// A server whose certificate is signed by nobody who is trusted. `summary` is what can't be done, `what` was to be fetched, without credentials.
pub fn untrusted(summary: &str, what: &str) -> Diagnostic {
    let detail = format!("{what}: the certificate of the server is signed by no authority that is trusted here.");
    Diagnostic::error(summary, detail).with_hint(
        "If the server is yours, write the file with its authority (PEM) as \"ca_file\" into the karmaform block, set SSL_CERT_FILE to a file with all \
         that are to be trusted, or add it to what this machine trusts.",
    )
}

/// A server that shows the certificate of an authority as its own. The arguments are those of [`untrusted`].
pub fn shows_authority(summary: &str, what: &str) -> Diagnostic {
    let detail = format!("{what}: what the server shows is the certificate of an authority, which may sign others and is nobody's own.");
    Diagnostic::error(summary, detail).with_hint(
        "Give the server a certificate of its own: one with \"basicConstraints = CA:FALSE\", signed by that authority. \
         \"openssl req -x509\" makes authorities unless told otherwise.",
    )
}

/// What was brought along is not what it was. `source` without credentials.
pub fn damaged(stock: &dyn Stock, source: &str) -> Diagnostic {
    Diagnostic::error("Bundle is damaged", format!("{source} in {} has another SHA-256 sum than it had. It was not used.", stock.name()))
        .with_hint("Bring the bundle along again, and compare its sum with the one that \"karmaform bundle\" printed.")
}

/// What is wanted and was not brought along. `source` without credentials.
pub fn not_in_stock(stock: &dyn Stock, source: &str) -> Diagnostic {
    Diagnostic::error(
        "Not in the bundle",
        format!("{source} is not in {}, and with a bundle nothing is fetched from elsewhere.", stock.name()),
    )
    .with_hint("Make the bundle anew for this configuration (\"karmaform bundle\"), where there is a way to the source.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_backup_is_told_from_several() {
        for (source, expected) in [
            ("s3://b/p/main-20260102T030405Z.db", true),
            ("s3://b/p/q/main-2-20260102T030405Z.db.age", true),
            ("s3://b/p/main-20260102T030405Z", false),
            ("s3://b/p/-20260102T030405Z.db", false),
            ("s3://b/p/main-20260102T0304050.db", false),
            ("s3://b/main-20260102T030405Z.db", false),
            ("s3://b/p/main", false),
            ("backups/main-20260102T030405Z.db", false),
        ] {
            assert_eq!(names_backup(source), expected, "{source}");
        }
    }
}
