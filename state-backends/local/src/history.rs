//! Generations beside the state file: `<file>.generations/` with a file for each and the list of them, named as they are on S3.

use std::path::{Path, PathBuf};
use std::{fs, io};

use karmaform_model::{BackendError, Generation, History, Serial};

use crate::disk;

/// How many digits a serial has in a name, so that names sort as numbers do.
const DIGITS: usize = 20;

fn directory(state: &Path) -> PathBuf {
    disk::beside(state, "", ".generations")
}

fn list_of(state: &Path) -> PathBuf {
    directory(state).join("history.json")
}

/// The file of a generation.
pub(crate) fn file(state: &Path, serial: Serial) -> PathBuf {
    directory(state).join(format!("{serial:0DIGITS$}.tfstate"))
}

/// Keeps a state, and lets the oldest go.
///
/// # Errors
/// If the disk refuses; then the list may lack it.
pub(crate) fn keep(state: &Path, generation: &Generation, text: &[u8]) -> Result<(), BackendError> {
    let list = list_of(state);
    disk::make_private_directory(&directory(state))?;
    // Runs without a lock write it too.
    let _guard = disk::guard(&list)?;
    disk::replace(&file(state, generation.serial), text)?;
    let mut history = read(&list)?;
    let gone = history.add(generation.clone());
    disk::replace(&list, &history.to_bytes())?;
    for serial in gone {
        // What can't be removed stays; it does no harm and is not worth an error.
        let _ = disk::remove(&file(state, serial));
    }
    Ok(())
}

/// Removes them all, and the list.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn remove(state: &Path) -> Result<(), BackendError> {
    let directory = directory(state);
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(disk::failed("removing", &directory, error)),
        _ => Ok(()),
    }
}

/// All that are kept, oldest first.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn list(state: &Path) -> Result<Vec<Generation>, BackendError> {
    let directory = directory(state);
    let failed = |e| disk::failed("reading", &directory, e);
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut kept = Vec::new();
    for entry in entries {
        kept.extend(entry.map_err(failed)?.file_name().to_str().and_then(serial));
    }
    Ok(read(&list_of(state))?.of(kept))
}

fn read(list: &Path) -> Result<History, BackendError> {
    Ok(disk::read(list)?.map(|bytes| History::from_bytes(&bytes)).unwrap_or_default())
}

/// The serial in the name of a generation's file; `None` for anything else that lies there.
fn serial(name: &str) -> Option<Serial> {
    let digits = name.strip_suffix(".tfstate")?;
    (digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}
