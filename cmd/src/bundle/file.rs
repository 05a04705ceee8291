//! What a bundle is: a tar archive of files that are named by their SHA-256 sums, with a table of contents at its end, so that half of one
//! is none.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use karmaform_model::{Supplied, Supply};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::disk::{Summing, hexadecimal, sha256};

/// The format that this version writes, and the only one that it reads.
pub(super) const FORMAT: u32 = 1;
/// The table of contents.
pub(super) const CONTENTS: &str = "contents.json";
/// What the names of files begin with.
const FILES: &str = "files/";

/// The table of contents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// [`FORMAT`]
    pub(crate) format: u32,
    /// The version that made it.
    pub(crate) made_by: String,
    /// What hosts it was made for: `amd64`.
    pub(crate) architectures: Vec<String>,
    /// Its files.
    pub(crate) files: Vec<FileNote>,
    /// Images that clusters get from their registry, which must have them.
    pub(crate) images: Vec<ImageNote>,
    /// Packages that hosts get from their distribution.
    pub(crate) packages: Vec<String>,
}

/// One file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FileNote {
    /// What it is asked for by: the sum of all that was asked, as addresses may hold passwords.
    pub(crate) key: String,
    /// Where it came from, without credentials; "(sensitive)" if that is not to be shown.
    pub(crate) source: String,
    /// What of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) member: Option<String>,
    /// For what it is to run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<String>,
    /// Of its bytes, in lower-case hexadecimal digits.
    pub(crate) sha256: String,
    /// Bytes.
    pub(crate) size: u64,
}

/// One image.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ImageNote {
    /// Its name, as it is in manifests.
    pub(crate) image: String,
    /// `sha256:...`: what that name meant when the bundle was made; null if its registry could not be asked.
    pub(crate) digest: Option<String>,
}

/// What a file is asked for by.
pub(super) fn key(supply: &Supply) -> String {
    sha256(serde_json::to_string(supply).unwrap_or_default().as_bytes())
}

/// Where a file of this sum is in the archive.
pub(super) fn place(sum: &str) -> String {
    format!("{FILES}{sum}")
}

/// A bundle that is being written: beside its place, and there only when it is whole.
pub(crate) struct Writer {
    archive: tar::Builder<Summing<tempfile::NamedTempFile>>,
    files: Vec<FileNote>,
}

/// Sums what is read.
struct Checked<R> {
    inner: R,
    sum: Sha256,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.sum.update(&buffer[..n]);
        Ok(n)
    }
}

impl Writer {
    /// That will be at `path`.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(".karmaform-bundle-").tempfile_in(directory)?;
        Ok(Self { archive: tar::Builder::new(Summing::new(file)), files: Vec::new() })
    }

    /// Puts a file into it, with where it came from as it may be shown. The same bytes are in it once.
    pub(crate) fn add(&mut self, supply: &Supply, shown: String, supplied: Supplied) -> io::Result<()> {
        let Supplied { content, size, sha256 } = supplied;
        if !self.files.iter().any(|f| f.sha256 == sha256) {
            let mut content = Checked { inner: content.take(size), sum: Sha256::new() };
            self.archive.append_data(&mut header(size), place(&sha256), &mut content)?;
            if hexadecimal(content.sum) != sha256 {
                return Err(io::Error::other("it changed while it was read"));
            }
        }
        self.files.push(FileNote {
            key: key(supply),
            source: shown,
            member: supply.member.clone(),
            platform: supply.platform.clone(),
            sha256,
            size,
        });
        Ok(())
    }

    /// Ends it. Gives its table of contents, its size in bytes and its SHA-256 sum.
    pub(crate) fn finish(mut self, path: &Path, contents: Contents) -> io::Result<(Contents, u64, String)> {
        let contents = Contents { files: self.files, ..contents };
        let table = serde_json::to_vec_pretty(&contents)?;
        self.archive.append_data(&mut header(table.len() as u64), CONTENTS, table.as_slice())?;
        let written = self.archive.into_inner()?;
        written.inner.as_file().sync_all()?;
        let file = written.inner.persist(path).map_err(|e| e.error)?;
        readable(&file)?;
        Ok((contents, written.size, hexadecimal(written.sum)))
    }
}

/// It holds no secret: as readable as any file that somebody makes.
fn readable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    header
}

impl Contents {
    /// Of this version, with nothing in it.
    pub(crate) fn new(made_by: &str, architectures: Vec<String>) -> Self {
        Self { format: FORMAT, made_by: made_by.to_owned(), architectures, files: Vec::new(), images: Vec::new(), packages: Vec::new() }
    }
}
