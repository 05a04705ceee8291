//! Whether a snapshot is still what was saved: its own seal, and its manifest if there is one. Damage of any byte is found. Reads only.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use karmaform_model::Diagnostic;

use super::Manifest;
use super::file::Reading;
use super::snapshot::beside;

/// How much is read at once, in bytes.
const PIECE: usize = 1 << 20;
/// How files begin that are encrypted by age. Source: <https://age-encryption.org/v1>.
const SEALED: &[u8] = b"age-encryption.org/v1";

/// A snapshot that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Its length, in bytes.
    pub size: u64,
    /// SHA-256 of the whole file, in hexadecimal digits.
    pub sha256: String,
    /// What stands beside it; `None`: nothing does, so only its own seal was compared.
    pub manifest: Option<Manifest>,
}

/// Reads a snapshot from beginning to end.
///
/// # Errors
/// It is damaged, is not the one of its manifest, or can't be read.
pub fn verify(path: &Path) -> Result<Verified, Diagnostic> {
    let unreadable = |what: &Path, why: &dyn std::fmt::Display| {
        Diagnostic::error("The snapshot can't be read", format!("{} can't be read: {why}.", what.display()))
    };
    let mut file = File::open(path).map_err(|e| unreadable(path, &e))?;
    let (mut reading, mut piece) = (Reading::default(), vec![0; PIECE]);
    loop {
        match file.read(&mut piece).map_err(|e| unreadable(path, &e))? {
            0 => break,
            n if reading.is_new() && piece[..n].starts_with(SEALED) => return Err(sealed(path)),
            n => reading.push(&piece[..n]),
        }
    }
    let sums = reading.end().map_err(|why| damaged(path, &why))?;
    let manifest_file = beside(path);
    let manifest = match std::fs::read_to_string(&manifest_file) {
        Ok(text) => Some(Manifest::read(&text).map_err(|why| unfit(&manifest_file, &why))?),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) if error.kind() == ErrorKind::InvalidData => return Err(unfit(&manifest_file, "it is no text")),
        Err(error) => return Err(unreadable(&manifest_file, &error)),
    };
    if let Some(manifest) = &manifest
        && (manifest.size, manifest.sha256.as_str()) != (sums.size, sums.sha256.as_str())
    {
        let why = format!("it is a whole snapshot, and not the one that {} tells of", manifest_file.display());
        return Err(damaged(path, &why));
    }
    Ok(Verified { size: sums.size, sha256: sums.sha256, manifest })
}

fn damaged(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("The snapshot is damaged", format!("{}: {why}.", path.display()))
        .with_hint("Use another one; a copy of this one from elsewhere may be whole.")
}

/// The snapshot is whole by its own seal, and what it should be nobody can tell.
fn unfit(manifest: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("The manifest of the snapshot is damaged", format!("{}: {why}.", manifest.display()))
        .with_hint("Use a copy of both from elsewhere; or move the manifest away, and only the snapshot's own sum is compared.")
}

/// What is in it only who has a key can tell.
fn sealed(path: &Path) -> Diagnostic {
    let detail = format!("{} is encrypted by age, so what is in it can't be looked at.", path.display());
    Diagnostic::error("The snapshot is encrypted", detail)
        .with_hint("Decrypt it with `age -d`, and name that file; or get it out of its bucket with `karmaform etcd backup get`, which looks at it, too.")
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::super::manifest::tests::manifest;
    use super::*;

    #[test]
    fn a_snapshot_is_what_its_manifest_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let mut bytes = vec![7; 1024];
        bytes.extend_from_slice(&Sha256::digest(&bytes));
        std::fs::write(&path, &bytes).unwrap();
        let alone = verify(&path).unwrap();
        assert_eq!((alone.size, &alone.manifest), (1056, &None));
        let of = |m: &Manifest| std::fs::write(folder.path().join("s.db.json"), m.to_json().to_string()).unwrap();
        let right = Manifest { sha256: alone.sha256.clone(), ..manifest() };
        of(&right);
        assert_eq!(verify(&path).unwrap().manifest, Some(right));
        of(&manifest());
        let error = verify(&path).unwrap_err();
        assert!(error.detail.contains("not the one that"), "{error:?}");
        std::fs::write(folder.path().join("s.db.json"), "{").unwrap();
        let error = verify(&path).unwrap_err();
        assert_eq!(error.summary, "The manifest of the snapshot is damaged");
        assert!(error.detail.contains("s.db.json: it is no JSON"), "{error:?}");
        std::fs::write(folder.path().join("s.db.json"), b"{\xff}").unwrap();
        assert!(verify(&path).unwrap_err().detail.ends_with("s.db.json: it is no text."));
        bytes[500] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(verify(&path).unwrap_err().summary, "The snapshot is damaged");
        assert_eq!(verify(&folder.path().join("none")).unwrap_err().summary, "The snapshot can't be read");
    }
}
