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
    /// Of an apply that has done nothing: this state, and nothing to tell.
    pub fn of(snapshot: Snapshot) -> Self {
        let diagnostics = Diagnostics::new();
        Self { snapshot, diagnostics, interrupted: false, unsaved: false, succeeded: 0, failed: 0, skipped: 0, unchanged: 0 }
    }

    /// Everything was done and saved.
    pub fn is_success(&self) -> bool {
        !self.interrupted && !self.unsaved && self.failed == 0 && self.skipped == 0 && !self.diagnostics.has_errors()
    }
}
