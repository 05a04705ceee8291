//! The envelope: a JSON object that says what is in it, how its key is had, and holds the rest encrypted.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{hkdf, rand};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{Content, SealError, Serial};
use serde::{Deserialize, Serialize};

use crate::key::{Key, Origin};

/// Changed when an older version could not read it.
const FORMAT: u64 = 1;
/// Random bytes from which each envelope gets its key.
const SALT: usize = 32;

/// An envelope. All of it is authenticated, in this order, with `data` empty.
#[derive(Serialize, Deserialize)]
struct File {
    karmaform_encrypted: u64,
    content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lineage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    serial: Option<Serial>,
    key: Origin,
    /// Tells a wrong key from a damaged envelope.
    check: String,
    salt: String,
    data: String,
}

#[derive(Deserialize)]
struct Version {
    karmaform_encrypted: u64,
}

/// An envelope that was read and not opened yet.
pub(crate) struct Envelope(File);

impl Envelope {
    /// Reads one.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, SealError> {
        let Version { karmaform_encrypted: version } = serde_json::from_slice(bytes).map_err(|_| SealError::Damaged)?;
        if version != FORMAT {
            return Err(SealError::Version(version));
        }
        let file: File = serde_json::from_slice(bytes).map_err(|_| SealError::Damaged)?;
        // Whatever was changed in a way that reads the same was changed.
        if text(&file)?.trim_ascii_end() != bytes.trim_ascii_end() { Err(SealError::Damaged) } else { Ok(Self(file)) }
    }

    /// How its key is had.
    pub(crate) fn origin(&self) -> &Origin {
        &self.0.key
    }

    /// True if it was sealed with this key.
    pub(crate) fn fits(&self, key: &Key) -> bool {
        key.check() == self.0.check
    }

    /// What is in it, if it is of the same kind as `content`.
    pub(crate) fn open(self, key: &Key, content: &Content) -> Result<Vec<u8>, SealError> {
        let decoded = |text: &str| STANDARD.decode(text).map_err(|_| SealError::Damaged);
        if self.0.content != content.name() {
            return Err(SealError::Damaged);
        }
        let (salt, mut data) = (decoded(&self.0.salt)?, decoded(&self.0.data)?);
        let aad = text(&File { data: String::new(), ..self.0 })?;
        let opened = cipher(key, &salt)?.open_in_place(nonce(), Aad::from(aad), &mut data);
        let length = opened.map_err(|_| SealError::Damaged)?.len();
        data.truncate(length);
        Ok(data)
    }
}

/// Seals with this key, which comes from `origin`.
pub(crate) fn seal(key: &Key, origin: &Origin, content: &Content, mut plain: Vec<u8>) -> Result<Vec<u8>, SealError> {
    let mut salt = [0; SALT];
    rand::fill(&mut salt).map_err(|_| failed())?;
    let (lineage, serial) = match content {
        Content::State { lineage, serial } => (Some(lineage.clone()), Some(*serial)),
        Content::Plan | Content::Journal => (None, None),
    };
    let file = File {
        karmaform_encrypted: FORMAT,
        content: content.name().to_owned(),
        lineage,
        serial,
        key: origin.clone(),
        check: key.check(),
        salt: STANDARD.encode(salt),
        data: String::new(),
    };
    cipher(key, &salt)?.seal_in_place_append_tag(nonce(), Aad::from(text(&file)?), &mut plain).map_err(|_| failed())?;
    text(&File { data: STANDARD.encode(plain), ..file })
}

/// One line: journals are made of lines.
fn text(file: &File) -> Result<Vec<u8>, SealError> {
    let mut text = serde_json::to_vec(file).map_err(|_| failed())?;
    text.push(b'\n');
    Ok(text)
}

/// A key is used once, so that the nonce need not be anything.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

fn cipher(key: &Key, salt: &[u8]) -> Result<LessSafeKey, SealError> {
    let material = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(key.bytes());
    let once = material.expand(&[b"karmaform envelope"], &AES_256_GCM).map_err(|_| failed())?;
    Ok(LessSafeKey::new(UnboundKey::from(once)))
}

fn failed() -> SealError {
    SealError::Failed("it could not be encrypted".to_owned())
}
