//! The state backend over one file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use karmaform_model::{
    BackendError, BoxFuture, Clear, Generation, LockId, LockInfo, Seal, SealError, Serial, Snapshot, StateBackend, is_sealed,
};
use serde::Deserialize;

use crate::lock::{self, Held};
use crate::{disk, history};

/// State in a file, `karmaform.tfstate` unless told otherwise.
///
/// A write goes to a temporary file that is then renamed, so a reader sees the old state or the new one. The state that was there before
/// the first write of a run is kept in `<file>.backup`, and what runs left in `<file>.generations`. All are readable by their owner alone,
/// because states hold secrets.
pub struct LocalBackend {
    path: PathBuf,
    seal: Arc<dyn Seal>,
    /// The folder that has a folder for each workspace, and the name of the file in it.
    workspaces: Option<(PathBuf, String)>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    lock: Option<Held>,
    backed_up: bool,
    /// The state was removed by this run.
    removed: bool,
    /// What this run wrote last, with how many resources are in it.
    wrote: Option<(Serial, usize, Vec<u8>)>,
}

/// What of a state tells whether it is the expected one; the rest is skipped, so that a checkpoint need not understand all of the old state.
#[derive(Deserialize)]
struct Head {
    /// Of an encrypted one, the version of its envelope.
    #[serde(alias = "karmaform_encrypted")]
    version: u64,
    #[serde(default)]
    serial: Serial,
}

impl LocalBackend {
    /// Over this file. Touches nothing yet; missing directories are made by the first lock or write.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), seal: Arc::new(Clear), workspaces: None, memory: Mutex::default() }
    }

    /// The same with the states of workspaces in `<folder>/<workspace>/<name>`.
    #[must_use]
    pub fn with_workspaces(mut self, folder: PathBuf, name: &str) -> Self {
        self.workspaces = Some((folder, name.to_owned()));
        self
    }

    /// The same with what is in the file sealed.
    #[must_use]
    pub fn sealed(mut self, seal: Arc<dyn Seal>) -> Self {
        self.seal = seal;
        self
    }

    /// The file that a link leads to, so that a write does not put a file in the place of the link.
    fn file(&self) -> PathBuf {
        fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_now(&self) -> Result<Option<Snapshot>, BackendError> {
        let file = self.file();
        stored(&file)?.map(|bytes| self.parse(&file, &bytes)).transpose()
    }

    fn write_now(&self, expected: Option<Serial>, next: &Snapshot) -> Result<(), BackendError> {
        let file = self.file();
        let bytes = self.stored(next)?;
        disk::make_directory(&file)?;
        let mut memory = self.memory();
        let _guard = disk::guard(&file)?;
        let current = stored(&file)?;
        let found = current.as_deref().map(|bytes| self.serial(&file, bytes)).transpose()?;
        if found != expected {
            return Err(BackendError::Conflict { expected: expected.unwrap_or(0), found: found.unwrap_or(0) });
        }
        if current.as_ref() == Some(&bytes) {
            return Ok(());
        }
        if !memory.backed_up {
            if let Some(current) = &current {
                disk::replace(&disk::beside(&file, "", ".backup"), current)?;
            }
            memory.backed_up = true;
        }
        disk::replace(&file, &bytes)?;
        memory.wrote = Some((next.serial, next.resources.len(), bytes));
        Ok(())
    }

    /// The bytes of a state, as the file has them.
    fn stored(&self, state: &Snapshot) -> Result<Vec<u8>, BackendError> {
        let sealed = |source: SealError| BackendError::Damaged { place: self.file().display().to_string(), source: source.into() };
        state.to_stored(&*self.seal).map_err(sealed)
    }

    fn keep_now(&self, about: &Generation) -> Result<(), BackendError> {
        let Some((serial, resources, bytes)) = self.memory().wrote.take() else { return Ok(()) };
        history::keep(&self.file(), &Generation { serial, resources, ..about.clone() }, &bytes)
    }

    fn generation_now(&self, serial: Serial) -> Result<Option<Snapshot>, BackendError> {
        let file = history::file(&self.file(), serial);
        disk::read(&file)?.map(|bytes| self.parse(&file, &bytes)).transpose()
    }

    fn parse(&self, file: &Path, bytes: &[u8]) -> Result<Snapshot, BackendError> {
        Snapshot::from_stored(bytes, &*self.seal).map_err(|source| BackendError::Damaged { place: file.display().to_string(), source })
    }

    fn serial(&self, file: &Path, bytes: &[u8]) -> Result<Serial, BackendError> {
        match serde_json::from_slice(bytes) {
            Ok(Head { version: 4, serial }) => Ok(serial),
            Ok(Head { serial, .. }) if is_sealed(bytes) => Ok(serial),
            // Says what is wrong with it; what can't be read is never overwritten.
            _ => self.parse(file, bytes).map(|s| s.serial),
        }
    }

    fn workspaces_now(&self) -> Result<Option<Vec<String>>, BackendError> {
        let Some((folder, name)) = &self.workspaces else { return Ok(None) };
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Some(Vec::new())),
            entries => entries.map_err(|e| disk::failed("reading", folder, e))?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| disk::failed("reading", folder, e))?;
            found.extend(entry.file_name().into_string().ok().filter(|_| entry.path().join(name).is_file()));
        }
        found.sort_unstable();
        Ok(Some(found))
    }

    fn remove_now(&self) -> Result<(), BackendError> {
        let file = self.file();
        let mut memory = self.memory();
        let _guard = disk::guard(&file)?;
        history::remove(&file)?;
        disk::remove(&disk::beside(&file, "", ".backup"))?;
        disk::remove(&file)?;
        memory.removed = true;
        Ok(())
    }

    fn lock_now(&self, who: &LockInfo) -> Result<LockId, BackendError> {
        let held = lock::lock(&self.file(), who)?;
        let id = held.id().clone();
        self.memory().lock = Some(held);
        Ok(id)
    }

    fn unlock_now(&self, id: &LockId) -> Result<(), BackendError> {
        let mut memory = self.memory();
        match memory.lock.take() {
            Some(held) if held.id() == id => {
                let released = held.release();
                if memory.removed {
                    // Only if nothing else is in it.
                    let _ = fs::remove_dir(disk::parent(&self.file()));
                }
                released
            }
            Some(held) => {
                let error = BackendError::OtherLock { given: id.0.clone(), held: held.id().0.clone() };
                memory.lock = Some(held);
                Err(error)
            }
            None => lock::force_unlock(&self.file(), id),
        }
    }
}

/// An empty file is what Terraform leaves while it holds a lock: no state.
fn stored(file: &Path) -> Result<Option<Vec<u8>>, BackendError> {
    Ok(disk::read(file)?.filter(|bytes| !bytes.is_empty()))
}

impl StateBackend for LocalBackend {
    fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        Box::pin(async move { self.read_now() })
    }

    fn write<'a>(&'a self, expected: Option<Serial>, next: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move { self.write_now(expected, next) })
    }

    fn lock<'a>(&'a self, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        Box::pin(async move { self.lock_now(who) })
    }

    fn unlock<'a>(&'a self, id: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move { self.unlock_now(id) })
    }

    fn workspaces(&self) -> BoxFuture<'_, Result<Option<Vec<String>>, BackendError>> {
        Box::pin(async move { self.workspaces_now() })
    }

    fn remove(&self) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move { self.remove_now() })
    }

    fn take_in<'a>(&'a self, about: &'a Generation, state: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move { history::keep(&self.file(), about, &self.stored(state)?) })
    }

    fn keep<'a>(&'a self, about: &'a Generation) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move { self.keep_now(about) })
    }

    fn history(&self) -> BoxFuture<'_, Result<Option<Vec<Generation>>, BackendError>> {
        Box::pin(async move { history::list(&self.file()).map(Some) })
    }

    fn generation(&self, serial: Serial) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        Box::pin(async move { self.generation_now(serial) })
    }
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;
