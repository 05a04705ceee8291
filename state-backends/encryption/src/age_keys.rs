//! Keys that are encrypted to recipients of age. <https://age-encryption.org/v1>

use std::path::Path;

use age::x25519;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{Diagnostic, SealError};

use crate::arguments::wrong;
use crate::key::{Key, Origin};

/// Who can read, and with what this run reads.
pub(crate) struct Age {
    pub(crate) recipients: Vec<x25519::Recipient>,
    pub(crate) identities: Vec<x25519::Identity>,
}

impl Age {
    /// Reads them; `file` has lines as `age-keygen` writes them.
    pub(crate) fn read(recipients: &[&str], file: Option<&Path>) -> Result<Self, Diagnostic> {
        let recipient = |text: &&str| {
            text.parse::<x25519::Recipient>().map_err(|_| {
                wrong("One of \"age_recipients\" is no recipient.")
                    .with_hint("Write it like \"age1...\", as age-keygen prints it behind \"Public key\".")
            })
        };
        let recipients: Vec<_> = recipients.iter().map(recipient).collect::<Result<_, _>>()?;
        let mut identities = Vec::new();
        if let Some(file) = file {
            let text = std::fs::read_to_string(file).map_err(|e| {
                wrong(&format!("The file that \"age_identity_file\" names can't be read: {}.", e.kind()))
                    .with_hint("Correct the path, or put the file there.")
            })?;
            for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
                let identity = line.parse::<x25519::Identity>().map_err(|_| {
                    wrong("The file that \"age_identity_file\" names has a line that is no identity.")
                        .with_hint("Each line is a comment or begins with AGE-SECRET-KEY-1, as age-keygen writes it.")
                })?;
                identities.push(identity);
            }
        }
        Ok(Self { recipients, identities })
    }

    /// The key, encrypted to all recipients.
    pub(crate) fn wrap(&self, key: &Key) -> Result<Origin, SealError> {
        let failed = |_| SealError::Failed("age could not encrypt the key".to_owned());
        let encryptor = age::Encryptor::with_recipients(self.recipients.iter().map(|r| r as &dyn age::Recipient))
            .map_err(|_| SealError::Failed("nothing can be encrypted: \"age_recipients\" names nobody".to_owned()))?;
        let mut wrapped = Vec::new();
        let mut writer = encryptor.wrap_output(&mut wrapped).map_err(failed)?;
        std::io::Write::write_all(&mut writer, key.bytes()).map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(Origin::Age { wrapped: STANDARD.encode(wrapped) })
    }

    /// The key, if one of the identities is among its recipients.
    pub(crate) fn unwrap(&self, wrapped: &str) -> Result<Option<Key>, SealError> {
        let wrapped = STANDARD.decode(wrapped).map_err(|_| SealError::Damaged)?;
        let decryptor = age::Decryptor::new_buffered(wrapped.as_slice()).map_err(|_| SealError::Damaged)?;
        let mut reader = match decryptor.decrypt(self.identities.iter().map(|i| i as &dyn age::Identity)) {
            Ok(reader) => reader,
            Err(age::DecryptError::NoMatchingKeys) => return Ok(None),
            Err(_) => return Err(SealError::Damaged),
        };
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut bytes).map_err(|_| SealError::Damaged)?;
        Key::new(&bytes).map(Some).ok_or(SealError::Damaged)
    }
}
