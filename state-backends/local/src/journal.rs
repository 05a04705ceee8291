//! The journal: an append-only file of JSON lines.
//!
//! One line is one append: `kf1`, a checksum, and the records as a JSON array; `kf2` where that is sealed. A crash can only damage the end of the file, so only the
//! last line may be torn; it was never acknowledged and is dropped. A damaged line before it means that something else went wrong with
//! the file, and is an error: nothing that was once durable is forgotten silently.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karmaform_model::{BackendError, Clear, Content, Journal, JournalRecord, Seal, StateError, is_sealed};
use rustix::io::Errno;

use crate::disk;
use crate::held::Held;

/// The line format; changed when an older tool could not read the lines of a newer one.
const FORMAT: &str = "kf1 ";
/// The format of lines that are sealed.
const SEALED: &str = "kf2 ";

/// A journal in one file, readable by its owner alone because it holds what the state holds.
pub struct FileJournal {
    path: PathBuf,
    seal: Arc<dyn Seal>,
    file: Option<Held>,
    /// Bytes that are whole lines, if `clean`.
    length: u64,
    /// Nothing else is in the file.
    clean: bool,
}

impl FileJournal {
    /// Over this file. It and its directory are made by the first append.
    ///
    /// # Errors
    /// If it is there and can't be read.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, BackendError> {
        Self::open_sealed(path, Arc::new(Clear))
    }

    /// The same with each line sealed.
    ///
    /// # Errors
    /// If it is there and can't be read.
    pub fn open_sealed(path: impl Into<PathBuf>, seal: Arc<dyn Seal>) -> Result<Self, BackendError> {
        let journal = Self { path: path.into(), seal, file: None, length: 0, clean: false };
        journal.contents()?;
        Ok(journal)
    }

    fn contents(&self) -> Result<Vec<u8>, BackendError> {
        Ok(disk::read(&self.path)?.unwrap_or_default())
    }

    /// The file, made if need be.
    fn file(&mut self) -> Result<&Held, BackendError> {
        let file = match self.file.take() {
            Some(file) => file,
            None => open(&self.path)?,
        };
        Ok(self.file.insert(file))
    }

    /// The records as a line.
    fn line(&self, records: &[JournalRecord]) -> Result<Vec<u8>, BackendError> {
        let json = serde_json::to_vec(records).map_err(|e| disk::failed("writing", &self.path, io::Error::from(e)))?;
        let sealed = self.seal.seal(&Content::Journal, json).map_err(|source| damaged(&self.path, source.into()))?;
        let content = sealed.trim_ascii_end();
        let format = if self.seal.encrypts() { SEALED } else { FORMAT };
        Ok([format!("{format}{:08x} ", checksum(content)).as_bytes(), content, b"\n"].concat())
    }

    /// Cuts off what is no whole line: another line behind it would be lost with it.
    fn clean(&mut self) -> Result<(), BackendError> {
        if !self.clean {
            let length = whole(&self.path, &self.contents()?)?.1;
            self.file()?.set_len(length).map_err(|e| disk::failed("writing", &self.path, e))?;
            (self.length, self.clean) = (length, true);
        }
        Ok(())
    }
}

fn open(path: &Path) -> Result<Held, BackendError> {
    disk::make_directory(path)?;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.and_then(|f| f.set_permissions(Permissions::from_mode(0o600)).map(|()| f));
    let file = Held::new(file.map_err(|e| disk::failed("writing", path, e))?);
    disk::sync_directory(path)?;
    // Runs that were told not to lock the state must not mix their records all the same. Held as long as the file is open.
    if let Err(Errno::WOULDBLOCK) = file.lock() {
        let cause = io::Error::new(io::ErrorKind::ResourceBusy, "another run is writing it");
        return Err(disk::failed("writing", path, cause));
    }
    Ok(file)
}

impl Journal for FileJournal {
    fn append(&mut self, records: &[JournalRecord]) -> Result<(), BackendError> {
        if records.is_empty() {
            return Ok(());
        }
        let line = self.line(records)?;
        self.clean()?;
        let at = self.length;
        let file = self.file()?;
        if let Err(error) = file.write_all_at(&line, at).and_then(|()| file.sync_data()) {
            // Part of the line may be there; the next append cuts it off.
            self.clean = false;
            return Err(disk::failed("writing", &self.path, error));
        }
        self.length = at + line.len() as u64;
        Ok(())
    }

    fn read(&self) -> Result<Vec<JournalRecord>, BackendError> {
        let contents = self.contents()?;
        let mut records = Vec::new();
        for (number, line) in (1..).zip(whole(&self.path, &contents)?.0) {
            let part = |what: String| damaged(&self.path, StateError::Part(format!("line {number} of the journal {what}")));
            let json = self.seal.open(&Content::Journal, line.as_bytes()).map_err(|source| damaged(&self.path, source.into()))?;
            let found: Vec<JournalRecord> = serde_json::from_slice(&json).map_err(|_| part(FOREIGN.to_owned()))?;
            records.extend(found);
        }
        Ok(records)
    }

    fn clear(&mut self) -> Result<(), BackendError> {
        if self.file.is_none() && !self.path.exists() {
            return Ok(());
        }
        // Emptied and not removed, so that the directory need not change.
        let file = self.file()?;
        file.set_len(0).and_then(|()| file.sync_all()).map_err(|e| disk::failed("writing", &self.path, e))?;
        (self.length, self.clean) = (0, true);
        Ok(())
    }
}

/// What is said of a line that somebody else wrote.
const FOREIGN: &str = "was written by another version";

fn damaged(path: &Path, source: StateError) -> BackendError {
    BackendError::Damaged { place: path.display().to_string(), source }
}

/// What stands in all whole lines, sealed or not, and how many bytes the lines are.
fn whole<'a>(path: &Path, bytes: &'a [u8]) -> Result<(Vec<&'a str>, u64), BackendError> {
    let mut lines = Vec::new();
    let mut whole = 0;
    for (number, line) in (1..).zip(bytes.split_inclusive(|b| *b == b'\n')) {
        match parse_line(line) {
            Ok(found) => lines.push(found),
            Err(Flaw::Torn) if whole + line.len() == bytes.len() && !hides_a_line(line) => break,
            Err(flaw) => {
                let what = if flaw == Flaw::Torn { "is damaged, and it is not the last one" } else { FOREIGN };
                return Err(damaged(path, StateError::Part(format!("line {number} of the journal {what}"))));
            }
        }
        whole += line.len();
    }
    Ok((lines, whole as u64))
}

/// True if a whole line is in it behind something: then a line end was damaged, and this is more than the last line.
fn hides_a_line(line: &[u8]) -> bool {
    let starts = line.windows(FORMAT.len()).enumerate().filter(|(_, w)| *w == FORMAT.as_bytes() || *w == SEALED.as_bytes());
    starts.skip_while(|(at, _)| *at == 0).any(|(at, _)| parse_line(&line[at..]).is_ok())
}

#[derive(PartialEq)]
enum Flaw {
    Torn,
    Foreign,
}

fn parse_line(line: &[u8]) -> Result<&str, Flaw> {
    let line = line.strip_suffix(b"\n").and_then(|l| std::str::from_utf8(l).ok()).ok_or(Flaw::Torn)?;
    let (sealed, rest) = match (line.strip_prefix(FORMAT), line.strip_prefix(SEALED)) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => {
            let other = line.strip_prefix("kf").and_then(|l| l.split_once(' ')).is_some_and(|(version, _)| version.parse::<u32>().is_ok());
            return Err(if other { Flaw::Foreign } else { Flaw::Torn });
        }
    };
    let (sum, content) = rest.split_once(' ').ok_or(Flaw::Torn)?;
    if u32::from_str_radix(sum, 16) != Ok(checksum(content.as_bytes())) {
        return Err(Flaw::Torn);
    }
    if sealed && !is_sealed(content.as_bytes()) { Err(Flaw::Foreign) } else { Ok(content) }
}

/// CRC-32, as of Ethernet and gzip.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, byte| TABLE[usize::from(sum.to_le_bytes()[0] ^ byte)] ^ (sum >> 8))
}

const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut i = 0u32;
    while i < 256 {
        let mut value = i;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[i as usize] = value;
        i += 1;
    }
    table
};

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
