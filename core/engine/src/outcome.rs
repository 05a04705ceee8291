//! What an apply leaves behind.

use karmaform_model::{Diagnostics, Snapshot};

/// The end of an apply. What finished is in `snapshot`, whatever else went wrong.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The state now.
    pub snapshot: Snapshot,
    /// What went wrong.
    pub diagnostics: Diagnostics,
    /// It was asked to stop, and something was left undone.
    pub interrupted: bool,
    /// `snapshot` holds changes that could not be written to the backend; the journal was kept.
    pub unsaved: bool,
    /// Steps that ended well.
    pub succeeded: usize,
    /// Steps that failed.
    pub failed: usize,
    /// Steps that were not started.
    pub skipped: usize,
    /// Updates among the steps that ended well that changed nothing, once all was known.
    pub unchanged: usize,
}

impl Outcome {
    /// Everything was done and saved.
    pub fn is_success(&self) -> bool {
        !self.interrupted && !self.unsaved && self.failed == 0 && self.skipped == 0 && !self.diagnostics.has_errors()
    }
}
