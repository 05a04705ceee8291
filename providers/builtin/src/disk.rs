//! Files of this machine: whole reads, atomic writes, modes.
//!
//! Knows nothing of: schemas, values, plans.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// A file as it is.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) content: Vec<u8>,
    /// Permission bits, without the file's kind.
    pub(crate) mode: u32,
}

/// Reads a regular file; `None` if there is none. Anything else in its place is an error: a named pipe would block for ever.
pub(crate) fn read(path: &Path) -> io::Result<Option<Found>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a directory is in its place" } else { "something that is no regular file is in its place" };
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    match fs::read(path) {
        Ok(content) => Ok(Some(Found { content, mode: metadata.permissions().mode() & 0o7777 })),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the file whole or not at all: to a temporary name in the same directory, then renamed. Missing directories are made.
pub(crate) fn write(path: &Path, content: &[u8], mode: u32, directory_mode: u32) -> io::Result<()> {
    let directory = parent(path);
    make_directories(&directory, directory_mode)?;
    if fs::symlink_metadata(path).is_ok_and(|m| m.is_dir()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a directory is in its place"));
    }
    let temporary = directory.join(format!(".karmaform-{}.tmp", Uuid::new_v4()));
    let written = write_new(&temporary, content, mode).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    File::open(&directory)?.sync_all()
}

/// Removes the file; one that is not there is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Private until it is complete, so that nobody reads a half-written secret.
fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

fn make_directories(directory: &Path, mode: u32) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    make_directories(&parent(directory), mode)?;
    match DirBuilder::new().mode(mode).create(directory) {
        // Said again because the process's umask took bits away.
        Ok(()) => fs::set_permissions(directory, Permissions::from_mode(mode)),
        Err(_) if directory.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A path below something that is no directory names nothing either.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_is_written_with_its_modes_and_leaves_no_temporary_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c.txt");
        write(&path, b"one", 0o640, 0o750).unwrap();
        write(&path, b"two", 0o666, 0o700).unwrap();
        assert_eq!((mode(&path), mode(&folder.path().join("a")), mode(&folder.path().join("a/b"))), (0o666, 0o750, 0o750));
        assert_eq!(read(&path).unwrap().unwrap().content, b"two");
        assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1);
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(read(&path).unwrap().is_none());
    }

    #[test]
    fn what_is_in_the_way_is_an_error_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::create_dir(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("directory"));
        assert!(write(&path, b"", 0o644, 0o755).unwrap_err().to_string().contains("directory"));
        fs::write(folder.path().join("f"), "").unwrap();
        let below = folder.path().join("f/x");
        assert!(read(&below).unwrap().is_none());
        assert!(write(&below, b"", 0o644, 0o755).is_err());
        remove(&below).unwrap();
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    #[test]
    fn a_link_is_replaced_and_its_target_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, b"new", 0o644, 0o755).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
        assert_eq!(fs::read_to_string(&link).unwrap(), "new");
    }
}
