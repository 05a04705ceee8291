//! A file, locked so that it is let go of at the moment it is dropped.
//!
//! Knows nothing of: what is in the file, and who waits for it.

use std::fs::File;
use std::ops::Deref;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// An open file that may be locked. A lock is the open file's and not the descriptor's (`flock(2)`): a process that is being started has copies of
/// all descriptors until it becomes another program, and a lock that only ends with the last copy would be held by it for that long.
pub(crate) struct Held(File);

impl Held {
    /// Not locked yet.
    pub(crate) fn new(file: File) -> Self {
        Self(file)
    }

    /// Locks it for this one alone, without waiting.
    ///
    /// # Errors
    /// `WOULDBLOCK` if somebody else has it; another one if the file system has no locks.
    pub(crate) fn lock(&self) -> Result<(), Errno> {
        flock(&self.0, FlockOperation::NonBlockingLockExclusive)
    }
}

impl Deref for Held {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || Held::new(file.reopen().unwrap());
        let first = open();
        first.lock().unwrap();
        // What a process has that is being started at this moment.
        let copy = first.try_clone().unwrap();
        assert_eq!(open().lock(), Err(Errno::WOULDBLOCK));
        drop(first);
        assert_eq!(open().lock(), Ok(()));
        drop(copy);
    }
}
