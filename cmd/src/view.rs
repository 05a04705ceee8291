//! The state for who only looks: there is no way from here to its lock, or to writing it.

use std::sync::Arc;

use karmaform_engine::recover;
use karmaform_model::{Diagnostic, Diagnostics, Snapshot, StateBackend};

use crate::app::{App, Stop};
use crate::session::{backend_failed, journal_failed};
use crate::wiring::{DEFAULT_WORKSPACE, OpenBackend, OpenJournal};
use crate::workspace;

/// A state that can be read.
pub(crate) struct StateView {
    backend: Arc<dyn StateBackend>,
    journal: OpenJournal,
    place: String,
    workspace: String,
}

impl StateView {
    /// Of this backend, which nobody can do anything else with from then on.
    pub(crate) fn of(open: OpenBackend) -> Self {
        Self { backend: open.backend, journal: open.journal, place: open.place, workspace: open.workspace }
    }

    /// The state, brought up to what the journal beside it knows of a run that is at work, or died; and what is to be said of that.
    ///
    /// # Errors
    /// If the state can't be read, or its workspace is not there.
    pub(crate) fn read(&self, app: &App) -> Result<(Snapshot, Diagnostics), Stop> {
        let records = (self.journal)().and_then(|j| j.read()).map_err(|e| Stop::from(journal_failed(&e)))?;
        let stored = app.executor.block_on(self.backend.read()).map_err(|e| Stop::from(backend_failed("read", &self.place, &e)))?;
        if stored.is_none() && self.workspace != DEFAULT_WORKSPACE {
            return Err(workspace::missing(&self.workspace).into());
        }
        let mut state = stored.unwrap_or_default();
        if records.is_empty() {
            return Ok((state, Diagnostics::new()));
        }
        recover(&mut state, &records);
        let detail = "A run is at work on it, or one ended before its end was written. What is told of it may be of a moment in between.";
        let hint = "Look again when no run is at work; if none is, plan takes in what the last one left.";
        Ok((state, Diagnostic::warning("The state is being changed", detail).with_hint(hint).into()))
    }
}
