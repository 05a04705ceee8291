//! The state for who only looks: there is no way from here to its lock, or to writing it.

use karmaform_engine::recover;
use karmaform_model::{Diagnostic, Diagnostics, Snapshot};

use crate::app::{App, Stop};
use crate::planning::halted;
use crate::session::{backend_failed, journal_failed, there};
use crate::wiring::OpenBackend;

/// A state that can be read.
pub(crate) struct StateView(OpenBackend);

impl StateView {
    /// Of this backend, which nobody can do anything else with from then on.
    pub(crate) fn of(open: OpenBackend) -> Self {
        Self(open)
    }

    /// The state, brought up to what the journal beside it knows of a run that is at work, or died; and what is to be said of that.
    ///
    /// # Errors
    /// If the state can't be read, its workspace is not there, or a signal came first.
    pub(crate) fn read(&self, app: &App) -> Result<(Snapshot, Diagnostics), Stop> {
        let records = (self.0.journal)().and_then(|j| j.read()).map_err(|e| Stop::from(journal_failed(&e)))?;
        let (backend, place) = (&self.0.backend, &self.0.place);
        let read = app.executor.block_on(async {
            tokio::select! {
                read = backend.read() => read.map_err(|e| backend_failed("read", place, &e)),
                () = app.interrupt.wait() => Err(halted()),
            }
        });
        let mut state = there(&self.0, read?)?.unwrap_or_default();
        if records.is_empty() {
            return Ok((state, Diagnostics::new()));
        }
        recover(&mut state, &records);
        let detail = "A run is at work on it, or one ended before its end was written. What is told of it may be of a moment in between.";
        let hint = "Look again when no run is at work; if none is, plan takes in what the last one left.";
        Ok((state, Diagnostic::warning("The state is being changed", detail).with_hint(hint).into()))
    }
}
