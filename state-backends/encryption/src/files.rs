//! Whole files for recipients of age, so that who writes them need not be able to read them, and `age -d` reads them anywhere. By streams:
//! they may be larger than the memory.

use std::io::{Read, Write, copy};
use std::path::Path;

use karmaform_model::Diagnostic;

use crate::age_keys::Age;

/// Who a file is for, or what it is read with.
pub struct AgeFiles(Age);

impl AgeFiles {
    /// For these recipients (`age1...`), and with the identities of a file as `age-keygen` writes it.
    ///
    /// # Errors
    /// One of them is none, or the file can't be read.
    pub fn new(recipients: &[&str], identities: Option<&Path>) -> Result<Self, Diagnostic> {
        Age::read(recipients, identities).map(Self)
    }

    /// Encrypts a stream.
    ///
    /// # Errors
    /// There are no recipients, or a stream fails.
    pub fn seal(&self, from: &mut dyn Read, to: &mut dyn Write) -> Result<(), Diagnostic> {
        let failed = |why: &dyn std::fmt::Display| Diagnostic::error("Encryption failed", format!("It could not be encrypted: {why}."));
        let recipients = self.0.recipients.iter().map(|r| r as &dyn age::Recipient);
        let encryptor = age::Encryptor::with_recipients(recipients).map_err(|e| failed(&e))?;
        let mut writer = encryptor.wrap_output(to).map_err(|e| failed(&e))?;
        copy(from, &mut writer).map_err(|e| failed(&e))?;
        writer.finish().map(drop).map_err(|e| failed(&e))
    }

    /// Decrypts a stream. What was written before an error is not to be used.
    ///
    /// # Errors
    /// It is for others, is damaged, or a stream fails.
    pub fn open(&self, from: &mut dyn Read, to: &mut dyn Write) -> Result<(), Diagnostic> {
        let failed = |why: &dyn std::fmt::Display| {
            Diagnostic::error("Can't be decrypted", format!("It is damaged or can't be read: {why}."))
                .with_hint("Get it again, or take another one.")
        };
        let decryptor = age::Decryptor::new(from).map_err(|e| failed(&e))?;
        let mut reader = match decryptor.decrypt(self.0.identities.iter().map(|i| i as &dyn age::Identity)) {
            Ok(reader) => reader,
            Err(age::DecryptError::NoMatchingKeys) => {
                return Err(Diagnostic::error("Can't be decrypted", "None of the identities is one that it was encrypted for.")
                    .with_hint("Name the file of another identity."));
            }
            Err(why) => return Err(failed(&why)),
        };
        copy(&mut reader, to).map(drop).map_err(|e| failed(&e))
    }
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret as _;

    use super::*;

    fn identity(folder: &Path, name: &str) -> (String, std::path::PathBuf) {
        let identity = age::x25519::Identity::generate();
        let file = folder.join(name);
        std::fs::write(&file, format!("# {name}\n{}\n", identity.to_string().expose_secret())).unwrap();
        (identity.to_public().to_string(), file)
    }

    #[test]
    fn who_it_is_for_reads_it_and_damage_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (first, first_file) = identity(folder.path(), "first");
        let (second, second_file) = identity(folder.path(), "second");
        let (_, other_file) = identity(folder.path(), "other");
        let content = vec![7_u8; 200_000];
        let mut sealed = Vec::new();
        AgeFiles::new(&[&first, &second], None).unwrap().seal(&mut content.as_slice(), &mut sealed).unwrap();
        let open = |file: &Path, bytes: &[u8]| {
            let mut opened = Vec::new();
            AgeFiles::new(&[], Some(file)).unwrap().open(&mut &bytes[..], &mut opened).map(|()| opened)
        };
        assert!(open(&first_file, &sealed).unwrap() == content && open(&second_file, &sealed).unwrap() == content);
        let foreign = open(&other_file, &sealed).unwrap_err();
        assert!(foreign.detail.contains("None of the identities") && foreign.hints[0].contains("another identity"), "{foreign:?}");
        let mut changed = sealed.clone();
        changed[150_000] ^= 1;
        for damaged in [&sealed[..sealed.len() - 1], b"x", &changed] {
            let why = open(&first_file, damaged).unwrap_err();
            assert_eq!(why.summary, "Can't be decrypted");
            assert!(why.detail.starts_with("It is damaged or can't be read: ") && why.hints[0].contains("another one"), "{why:?}");
        }
        assert!(AgeFiles::new(&["age1x"], None).is_err());
        assert!(AgeFiles::new(&[], None).unwrap().seal(&mut content.as_slice(), &mut Vec::new()).is_err());
    }
}
