//! `.karmaform/backend.json`: which backend this directory works with, so that another one in the configuration is noticed before an empty
//! state is taken for the truth.

use std::path::{Path, PathBuf};

use karmaform_model::Diagnostic;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::disk::{reason, write_private};
use crate::wiring::WORKING_DIRECTORY;

/// What is remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    format: u32,
    /// The label of its block.
    pub(crate) kind: String,
    /// Where the state is, as shown. Another place is another state.
    pub(crate) place: String,
    /// What `-backend-config` gave.
    pub(crate) given: Map<String, Json>,
    /// All its arguments without secrets, so that the state can be fetched from there later.
    pub(crate) arguments: Map<String, Json>,
}

const FORMAT: u32 = 1;

impl Record {
    /// Of this backend.
    pub(crate) fn new(kind: &str, place: &str, given: Map<String, Json>, arguments: Map<String, Json>) -> Self {
        Self { format: FORMAT, kind: kind.to_owned(), place: place.to_owned(), given, arguments }
    }

    /// What the directory remembers, if anything.
    ///
    /// # Errors
    /// If the file is there and can't be used.
    pub(crate) fn read(directory: &Path) -> Result<Option<Self>, Diagnostic> {
        let text = match std::fs::read_to_string(path(directory)) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed("read", &reason(&e))),
        };
        let record: Self = serde_json::from_str(&text).map_err(|_| damaged())?;
        if record.format == FORMAT { Ok(Some(record)) } else { Err(damaged()) }
    }

    /// Remembers it. The file is readable by its owner alone: what `-backend-config` gave may be a secret.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), Diagnostic> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        std::fs::create_dir_all(directory.join(WORKING_DIRECTORY)).map_err(|e| failed("written", &reason(&e)))?;
        write_private(&path(directory), text.as_bytes()).map_err(|e| failed("written", &reason(&e)))
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join(WORKING_DIRECTORY).join("backend.json")
}

fn failed(verb: &str, why: &str) -> Diagnostic {
    Diagnostic::error("Can't remember the backend", format!("{WORKING_DIRECTORY}/backend.json can't be {verb}: {why}."))
        .with_hint(format!("See to it that {WORKING_DIRECTORY} is a folder that can be written, then run init."))
}

fn damaged() -> Diagnostic {
    Diagnostic::error(
        "Can't remember the backend",
        format!("{WORKING_DIRECTORY}/backend.json is damaged or was written by another version."),
    )
    .with_hint("Run init -reconfigure: it writes the file anew and moves no state.")
}
