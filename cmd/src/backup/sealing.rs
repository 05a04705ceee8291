//! Encrypting a backup.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use karmaform_encryption::AgeFiles;
use karmaform_model::Diagnostic;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::shelf::{SEALED, disk};
use crate::disk::hexadecimal;

/// The file beside it that is encrypted for these, and what the manifest says of that: by what, its length in bytes, its SHA-256 sum.
///
/// # Errors
/// One of them is no recipient, or the disk refuses.
pub(super) fn seal(recipients: &[String], file: &Path) -> Result<(PathBuf, Json), Diagnostic> {
    let mut name = file.as_os_str().to_owned();
    name.push(SEALED);
    let path = PathBuf::from(name);
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    let unusable = |e: std::io::Error| disk(&path, &e);
    let mut from = BufReader::with_capacity(1 << 20, File::open(file).map_err(unusable)?);
    let to = File::options().write(true).create_new(true).mode(0o600).open(&path).map_err(unusable)?;
    let mut to = BufWriter::with_capacity(1 << 20, to);
    AgeFiles::new(&recipients, None)?.seal(&mut from, &mut to)?;
    to.flush().map_err(unusable)?;
    let (size, sha256) = sum(&path).map_err(unusable)?;
    Ok((path, json!({ "by": "age", "size": size, "sha256": sha256 })))
}

/// The length of a file, in bytes, and its SHA-256 sum.
fn sum(path: &Path) -> std::io::Result<(u64, String)> {
    let (mut file, mut digest, mut size) = (File::open(path)?, Sha256::new(), 0);
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            n => {
                digest.update(&piece[..n]);
                size += n as u64;
            }
        }
    }
    Ok((size, hexadecimal(digest)))
}
