//! Where a backup is made: a folder that goes, and what is written there.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use karmaform_model::Diagnostic;

use super::shelf::disk;

/// A folder that nobody else works in: of a cluster that is full the lock in etcd keeps nobody apart.
pub(super) struct Work {
    pub(super) path: PathBuf,
    _alone: File,
}

impl Work {
    /// `.work-NAME` in a directory, which is made if need be. What an earlier run has left in it that did not come to its end goes first.
    ///
    /// # Errors
    /// It can't be written, or another one works in it.
    pub(super) fn make(directory: &Path, name: &str) -> Result<Self, Diagnostic> {
        let path = directory.join(format!(".work-{name}"));
        let unusable = |e: std::io::Error| disk(&path, &e);
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(unusable)?;
        let alone = File::open(&path).map_err(unusable)?;
        // Some file systems have no locks on folders; then there is the one in etcd alone.
        if matches!(alone.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(Diagnostic::error("No backup can be begun", format!("Another one works in {}.", path.display())));
        }
        for left in std::fs::read_dir(&path).map_err(unusable)? {
            let left = left.map_err(unusable)?.path();
            if left.is_dir() { std::fs::remove_dir_all(&left) } else { std::fs::remove_file(&left) }.map_err(unusable)?;
        }
        Ok(Self { path, _alone: alone })
    }

    /// A new file in it, for nobody else.
    ///
    /// # Errors
    /// It can't be written.
    pub(super) fn file(&self, name: &str, text: &str) -> Result<PathBuf, Diagnostic> {
        let path = self.path.join(name);
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| disk(&path, &e))?;
        Ok(path)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // The next run removes what could not be removed now.
        drop(std::fs::remove_dir_all(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("b");
        let work = Work::make(&directory, "m").unwrap();
        let file = work.file("x", "text").unwrap();
        assert!(work.file("x", "text").is_err_and(|d| d.summary == "The directory of backups can't be used"));
        assert!(Work::make(&directory, "m").is_err_and(|d| d.summary == "No backup can be begun") && file.exists());
        let other = Work::make(&directory, "n").unwrap();
        drop((work, other));
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        // What was left by one that was killed.
        std::fs::create_dir_all(directory.join(".work-m/drill/data")).unwrap();
        std::fs::write(directory.join(".work-m/snapshot.db"), "x").unwrap();
        let work = Work::make(&directory, "m").unwrap();
        assert_eq!(std::fs::read_dir(&work.path).unwrap().count(), 0);
    }
}
