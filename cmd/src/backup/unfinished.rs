//! Where a backup is until it is whole: a directory that goes with who works in it, and if that one is killed, with the next one who works there. What is decrypted
//! in it has all secrets in plain text.
//!
//! Knows nothing of backups.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

/// How the names of such directories begin.
const PREFIX: &str = ".karmaform-get-";
/// How often a folder that somebody else has locked is asked for, and how long between two times.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// A directory that is locked as long as somebody works in it, and is gone after that.
pub(super) struct Unfinished {
    directory: TempDir,
    /// Let go of after the directory is gone.
    _lock: File,
}

impl Unfinished {
    /// In this folder, from which what others left who were killed is removed.
    ///
    /// # Errors
    /// Nothing can be made there.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        // One after the other, so that none is found that is made and not locked yet. There are disks without locks; nothing is removed there.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let turn = File::open(folder).ok().filter(is_ours);
        if turn.is_some() {
            clear(folder);
        }
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder)?;
        let lock = File::open(directory.path())?;
        let _ = lock.try_lock();
        Ok(Self { directory, _lock: lock })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// True once it is locked. Others lock folders for reasons of their own, and who does that for long is not waited for: what was left is removed another time.
fn is_ours(folder: &File) -> bool {
    (0..TRIES).any(|n| {
        if n > 0 {
            std::thread::sleep(PAUSE);
        }
        folder.try_lock().is_ok()
    })
}

/// Removes those that nobody works in.
fn clear(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_one = entry.file_name().to_string_lossy().starts_with(PREFIX) && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_one && File::open(entry.path()).is_ok_and(|directory| directory.try_lock().is_ok()) {
            // What can't be removed now is tried by the next one.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_goes_and_what_is_worked_in_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (left, others) = (folder.path().join(".karmaform-get-abc"), folder.path().join(".karmaform-def"));
        for directory in [&left, &others] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("whole.db"), "secret").unwrap();
        }
        let first = Unfinished::new(folder.path()).unwrap();
        fs::write(first.path().join("got.db"), "secret").unwrap();
        assert!(!left.exists() && others.exists());
        let second = Unfinished::new(folder.path()).unwrap();
        assert!(first.path().join("got.db").exists() && second.path() != first.path());
        // Who works in one may have another made below it, and within it, too.
        let below = first.path().join("below");
        fs::create_dir(&below).unwrap();
        assert!(Unfinished::new(&below).unwrap().path().starts_with(&below));
        assert!(Unfinished::new(first.path()).unwrap().path().starts_with(first.path()));
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists() && second.path().exists());
    }
}
