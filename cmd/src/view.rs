//! The state for who only looks: there is no way from here to its lock, or to writing it.

use std::io;
use std::thread;

use karmaform_engine::recover;
use karmaform_model::{BackendError, Diagnostic, Diagnostics, Snapshot};
use tokio::sync::oneshot;

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

    /// The state, brought up to what the journal beside it knows of a run that is at work, or died; and what is to be said of that. Nobody who
    /// does not answer holds up a signal: nothing is held meanwhile.
    ///
    /// # Errors
    /// If the state can't be read, its workspace is not there, or a signal came first.
    pub(crate) fn read(self, app: &App) -> Result<(Snapshot, Diagnostics), Stop> {
        let OpenBackend { journal, backend, place, workspace, .. } = self.0;
        let (tell, told) = oneshot::channel();
        // Apart from what waits for a signal: what is sealed may take a key that somebody else has, on a disk that is somewhere else.
        drop(thread::Builder::new().spawn(move || drop(tell.send(journal().and_then(|j| j.read())))));
        let records = unless_halted(app, told)?.unwrap_or_else(|_| Err(cut_short("the journal")));
        let records = records.map_err(|e| Stop::from(journal_failed(&e)))?;
        let read = unless_halted(app, async { tokio::spawn(async move { backend.read().await }).await })?;
        let read = read.unwrap_or_else(|_| Err(cut_short(&place))).map_err(|e| Stop::from(backend_failed("read", &place, &e)))?;
        let mut state = there(&workspace, read)?.unwrap_or_default();
        if records.is_empty() {
            return Ok((state, Diagnostics::new()));
        }
        recover(&mut state, &records);
        let detail = "A run is at work on it, or one ended before its end was written. What is told of it may be of a moment in between.";
        let hint = "Look again when no run is at work; if none is, plan takes in what the last one left.";
        Ok((state, Diagnostic::warning("The state is being changed", detail).with_hint(hint).into()))
    }
}

/// The answer, unless a signal comes first.
fn unless_halted<T>(app: &App, answer: impl Future<Output = T>) -> Result<T, Stop> {
    app.executor.block_on(async {
        tokio::select! {
            told = answer => Ok(told),
            () = app.interrupt.wait() => Err(halted().into()),
        }
    })
}

/// Whoever was to answer has ended without.
fn cut_short(place: &str) -> BackendError {
    BackendError::Io { what: "reading", place: place.to_owned(), source: io::Error::other("it ended before there was an answer") }
}
