//! Encrypting a backup.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use karmaform_encryption::AgeFiles;
use karmaform_model::Diagnostic;
use serde_json::{Value as Json, json};

use super::shelf::{SEALED, disk};
use crate::disk::{Summing, hexadecimal};

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
    let mut to = Summing::new(BufWriter::with_capacity(1 << 20, to));
    AgeFiles::new(&recipients, None)?.seal(&mut from, &mut to)?;
    to.flush().map_err(unusable)?;
    let sealed = json!({ "by": "age", "size": to.size, "sha256": hexadecimal(to.sum) });
    Ok((path, sealed))
}
