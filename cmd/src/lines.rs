//! Lines of JSON that tell what happens: instead of the text for people (`-json`), or beside it in a file (`-json-into`).

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use karmaform_model::Diagnostic;

use crate::disk::reason_to_write;
use crate::output::Output;

/// Where they go.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// To standard output, which has nothing else then.
    pub(crate) only: bool,
    /// To this file as well.
    beside: Option<File>,
}

impl Lines {
    /// Also to this file, which is made anew; a pipe is written to.
    ///
    /// # Errors
    /// If it can't be written.
    pub(crate) fn beside(&mut self, directory: &Path, file: &str) -> Result<(), Diagnostic> {
        let opened = File::create(directory.join(file));
        self.beside = Some(opened.map_err(|e| {
            Diagnostic::error("Events can't be written", format!("The file \"{file}\" can't be written: {}.", reason_to_write(&e)))
        })?);
        Ok(())
    }

    /// True if somebody reads them.
    pub(crate) fn are_wanted(&self) -> bool {
        self.only || self.beside.is_some()
    }

    /// Writes whole lines. A reader that went away, or a full disk, is no reason to stop an apply.
    pub(crate) fn write(&mut self, output: &mut Output, lines: &str) {
        if self.only {
            output.print(lines);
        }
        if let Some(file) = &mut self.beside {
            let _ = file.write_all(lines.as_bytes());
        }
    }
}
