//! The lock of a state file: a POSIX write lock on a file of its own, with a second file beside it that says who holds it.
//!
//! The lock is the kernel's, so it ends with the process that holds it, however that ends. The information file alone locks nothing; one
//! that a dead process left is overwritten. The state file itself can't carry the lock, because every write puts another file in its place.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use karmaform_model::{BackendError, LockId, LockInfo};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, fcntl_getlk};

use crate::disk;

/// How often it is looked for the one who holds a lock, and the pause between: half a second in all, far longer than it takes to write it
/// down and to sync.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// The lock files that this process holds.
///
/// POSIX locks belong to a process: a second one on the same file would be granted to it, and closing any handle of the file would drop
/// the first. So a lock file in this list is never opened again, and files are opened and closed only while the list is held.
static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A held lock; released when dropped.
pub(crate) struct Held {
    id: LockId,
    path: PathBuf,
    information: PathBuf,
    file: Option<File>,
}

/// What came of trying.
enum Attempt {
    Locked(File),
    /// By this process (`None`) or another one on this machine, or by a machine that shares the disk (0).
    Busy(Option<i32>),
}

/// The lock files that belong to a state.
fn names(state: &Path) -> (PathBuf, PathBuf) {
    (disk::beside(state, ".", ".lock"), disk::beside(state, ".", ".lock.info"))
}

/// Takes the lock and writes down who has it.
pub(crate) fn lock(state: &Path, who: &LockInfo) -> Result<Held, BackendError> {
    let (path, information) = names(state);
    disk::make_directory(&path)?;
    match attempt(&path)? {
        Attempt::Busy(_) => Err(BackendError::Locked(holder(&information).map(Box::new))),
        Attempt::Locked(file) => {
            let held = Held { id: LockId(who.id.clone()), path, information, file: Some(file) };
            let mut who = who.clone();
            if who.path.is_empty() {
                who.path = state.display().to_string();
            }
            let text = serde_json::to_vec(&who).map_err(|e| disk::failed("locking", state, io::Error::from(e)))?;
            disk::replace(&held.information, &text)?;
            Ok(held)
        }
    }
}

/// Removes the lock that another process left. Refused while the one that holds it is alive: it would go on writing.
pub(crate) fn force_unlock(state: &Path, id: &LockId) -> Result<(), BackendError> {
    let (path, information) = names(state);
    let who = read(&information);
    if let Some(who) = &who
        && who.id != id.0
    {
        return Err(BackendError::OtherLock { given: id.0.clone(), held: who.id.clone() });
    }
    if who.is_none() && !information.exists() && !path.exists() {
        return Err(BackendError::NotLocked);
    }
    match attempt(&path)? {
        Attempt::Locked(file) => {
            Held { id: id.clone(), path, information, file: Some(file) }.release()?;
            if who.is_none() { Err(BackendError::NotLocked) } else { Ok(()) }
        }
        Attempt::Busy(process) => {
            let whose = match process {
                None => "this very process".to_owned(),
                Some(0) => "a process on another machine".to_owned(),
                Some(id) => format!("the process {id}"),
            };
            let cause = format!("{whose} is still running and holds the lock; end it, and the lock is free without any unlocking");
            Err(disk::failed("unlocking", state, io::Error::new(io::ErrorKind::ResourceBusy, cause)))
        }
    }
}

impl Held {
    /// Its id.
    pub(crate) fn id(&self) -> &LockId {
        &self.id
    }

    /// Gives the lock back; the files go first, so that nobody finds them without a lock on them.
    pub(crate) fn release(mut self) -> Result<(), BackendError> {
        self.remove_files()
    }

    fn remove_files(&mut self) -> Result<(), BackendError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let mut held = list();
        let removed = disk::remove(&self.information).and(disk::remove(&self.path));
        held.remove(&key(&self.path));
        drop(file);
        removed
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Nobody is left to tell; a lock information that stays says nothing once the lock is gone.
        let _ = self.remove_files();
    }
}

fn list() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same for every way to write the path.
fn key(path: &Path) -> PathBuf {
    let directory = disk::parent(path);
    fs::canonicalize(&directory).unwrap_or(directory).join(path.file_name().unwrap_or_default())
}

fn attempt(path: &Path) -> Result<Attempt, BackendError> {
    let mut held = list();
    let key = key(path);
    if held.contains(&key) {
        return Ok(Attempt::Busy(None));
    }
    let attempt = lock_file(path).map_err(|e| disk::failed("locking", path, e))?;
    if matches!(attempt, Attempt::Locked(_)) {
        held.insert(key);
    }
    Ok(attempt)
}

fn lock_file(path: &Path) -> io::Result<Attempt> {
    loop {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if is_at(&file, path)? => return Ok(Attempt::Locked(file)),
            // The last holder removed the file after it was opened here: this is a lock on something that nobody else can find.
            Ok(()) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::ACCESS) => {
                let holder = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok().flatten();
                return Ok(Attempt::Busy(Some(holder.and_then(|h| h.pid).map_or(0, |p| p.as_raw_nonzero().get()))));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Who holds a lock that is held. Whoever just got it is about to write that down.
fn holder(information: &Path) -> Option<LockInfo> {
    for _ in 0..TRIES {
        if let Some(who) = read(information) {
            return Some(who);
        }
        std::thread::sleep(PAUSE);
    }
    None
}

/// Who holds the lock, as far as it can be told.
fn read(information: &Path) -> Option<LockInfo> {
    serde_json::from_slice(&fs::read(information).ok()?).ok()
}
