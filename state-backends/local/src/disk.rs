//! Writing files so that a crash leaves the old one or the new one and never half of one.
//!
//! Knows nothing of: what is written.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use karmaform_model::BackendError;
use rustix::io::Errno;

use crate::held::Held;

/// Who writes holds the guard for milliseconds; longer means that something is badly wrong.
const GUARD_LIMIT: Duration = Duration::from_secs(10);

/// An error about one file.
pub(crate) fn failed(what: &'static str, place: &Path, source: impl Into<io::Error>) -> BackendError {
    BackendError::Io { what, place: place.display().to_string(), source: source.into() }
}

/// Refuses what is there and no regular file: reading a pipe would wait for ever, and a rename would put a file in the place of a device.
fn check(what: &'static str, path: &Path) -> Result<(), BackendError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let kind = if found.is_dir() { "it is a directory" } else { "it is no regular file" };
            Err(failed(what, path, io::Error::new(io::ErrorKind::InvalidInput, kind)))
        }
        _ => Ok(()),
    }
}

/// The whole file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, BackendError> {
    check("reading", path)?;
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("reading", path, error)),
    }
}

/// Removes a file; one that is not there is fine.
pub(crate) fn remove(path: &Path) -> Result<(), BackendError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("removing", path, error)),
        _ => Ok(()),
    }
}

/// Puts `content` in the place of `path`, readable by its owner alone, durable when this returns.
///
/// The temporary name is always the same, so that what a crash left is used up by the next write and never piles up. Two writers at once
/// are kept apart by the caller; should that fail, `create_new` makes the second one fail and not mix its bytes with the first one's.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), BackendError> {
    check("writing", path)?;
    let temporary = beside(path, ".", ".new");
    remove(&temporary)?;
    let written = write_new(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(failed("writing", path, error));
    }
    sync_directory(path)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Makes a new or renamed directory entry durable.
pub(crate) fn sync_directory(of: &Path) -> Result<(), BackendError> {
    match File::open(parent(of)).and_then(|d| d.sync_all()) {
        // Some file systems can't sync a directory and need not.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(failed("writing", of, error)),
        _ => Ok(()),
    }
}

/// Makes the directory that `path` is in.
pub(crate) fn make_directory(path: &Path) -> Result<(), BackendError> {
    let directory = parent(path);
    DirBuilder::new().recursive(true).mode(0o755).create(&directory).map_err(|e| failed("making the directory", &directory, e))
}

/// Makes a directory that only its owner can look into, if it is not there.
pub(crate) fn make_private_directory(directory: &Path) -> Result<(), BackendError> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => sync_directory(directory),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed("making the directory", directory, error)),
    }
}

/// Keeps other writers out of the directory of `path` while it lives, also those of this process.
///
/// It is not the state's lock: it only makes "compare the serial, then rename" one move, for callers that run without the lock. `None` if
/// the file system has no such locks.
pub(crate) fn guard(path: &Path) -> Result<Option<Held>, BackendError> {
    let directory = Held::new(File::open(parent(path)).map_err(|e| failed("writing", path, e))?);
    let start = Instant::now();
    loop {
        match directory.lock() {
            Ok(()) => return Ok(Some(directory)),
            Err(Errno::WOULDBLOCK | Errno::INTR) if start.elapsed() < GUARD_LIMIT => std::thread::sleep(Duration::from_millis(2)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                let cause = io::Error::new(io::ErrorKind::TimedOut, "another process has been writing in this directory for 10 seconds");
                return Err(failed("writing", path, cause));
            }
            Err(_) => return Ok(None),
        }
    }
}

/// The directory of `path`; `.` for a bare name.
pub(crate) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A name next to `path`: `before` + its name + `after`. A leading dot of the name is not doubled.
pub(crate) fn beside(path: &Path, before: &str, after: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = if before == "." { name.trim_start_matches('.') } else { &name };
    let mut full = OsString::from(before);
    full.push(name);
    full.push(after);
    parent(path).join(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_next_to_a_state() {
        for (path, before, after, expected) in [
            ("karmaform.tfstate", ".", ".lock.info", "./.karmaform.tfstate.lock.info"),
            ("a/.hidden", ".", ".lock", "a/.hidden.lock"),
            ("/x/s", "", ".backup", "/x/s.backup"),
        ] {
            assert_eq!(beside(Path::new(path), before, after), Path::new(expected));
        }
    }

    #[test]
    fn what_is_no_regular_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        for path in [pipe.as_path(), folder.path()] {
            assert!(read(path).is_err() && replace(path, b"x").is_err(), "{}", path.display());
        }
        assert!(!fs::metadata(&pipe).unwrap().is_file());
    }

    #[test]
    fn a_guard_keeps_others_out_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let first = guard(&path).unwrap().unwrap();
        let (through, came) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            let _second = guard(&path).unwrap().unwrap();
            through.send(()).unwrap();
        });
        assert!(came.recv_timeout(Duration::from_millis(50)).is_err(), "both are in");
        drop(first);
        other.join().unwrap();
        came.recv().unwrap();
    }
}
