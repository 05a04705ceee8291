//! Keeps journal and backend up to date: the journal with every tick, the backend on a clock and at the end. Knows no step.

use karmaform_model::{BackendError, Diagnostic, Diagnostics, Journal, JournalRecord, Serial, StateBackend};

use crate::ledger::Ledger;
use crate::options::{ApplyOptions, Runtime};

/// Where an apply writes.
pub(crate) struct Store<'a> {
    backend: &'a dyn StateBackend,
    journal: &'a mut dyn Journal,
    runtime: &'a dyn Runtime,
    stored: Option<Serial>,
    every: u64,
    written: u64,
    warned: bool,
    /// Somebody else has written it, or holds its lock.
    lost: bool,
    wrote: bool,
}

impl<'a> Store<'a> {
    pub(crate) fn new(
        backend: &'a dyn StateBackend,
        journal: &'a mut dyn Journal,
        runtime: &'a dyn Runtime,
        options: &ApplyOptions,
    ) -> Self {
        let (stored, every) = (options.stored, options.checkpoint);
        Self { backend, journal, runtime, stored, every, written: runtime.monotonic(), warned: false, lost: false, wrote: false }
    }

    /// Where others may write too, writes the state once before anything is done: if it was read stale, or somebody wrote it without a lock,
    /// that shows now and not after the work; and whoever read it before can't write any more. `must`: wherever it is.
    ///
    /// # Errors
    /// If it can't be written; then nothing may start.
    pub(crate) async fn claim(&mut self, ledger: &mut Ledger<'_>, must: bool) -> Result<(), Diagnostic> {
        if !must && !self.backend.is_shared() {
            return Ok(());
        }
        self.put(ledger).await.map_err(|error| {
            error.conflict().unwrap_or_else(|| {
                Diagnostic::error("State can't be written", format!("Nothing was done, since it could not be remembered: {error}."))
                    .with_hint("Repair the backend and run it again.")
            })
        })
    }

    /// The serial that the backend holds, as far as is known; `None`: it holds nothing.
    pub(crate) fn stored(&self) -> Option<Serial> {
        self.stored
    }

    /// Makes records durable, all in one write.
    ///
    /// # Errors
    /// If the disk refuses; then nothing may start, since nobody would know.
    pub(crate) fn record(&mut self, records: Vec<JournalRecord>) -> Result<(), Diagnostic> {
        if records.is_empty() {
            return Ok(());
        }
        self.journal.append(&records).map_err(|error| {
            Diagnostic::error(
                "Journal could not be written",
                format!("What is done could not be recorded, so nothing more was started: {error}."),
            )
            .with_hint("Make room on the disk and plan again.")
        })
    }

    /// Writes the state if it is time. A failure is no error yet: the journal has it all, and the end is another chance.
    ///
    /// # Errors
    /// If somebody else works on this state by now; then nothing more may start. That is told once.
    pub(crate) async fn checkpoint(&mut self, ledger: &mut Ledger<'_>, diagnostics: &mut Diagnostics) -> Result<(), Diagnostic> {
        let now = self.runtime.monotonic();
        if self.lost || !ledger.dirty || now.saturating_sub(self.written) < self.every {
            return Ok(());
        }
        self.written = now;
        let Err(error) = self.write(ledger).await else { return Ok(()) };
        self.lost = matches!(error, BackendError::LockLost(_) | BackendError::Conflict { .. });
        if self.lost {
            let detail = format!("Somebody else works on this state, or did, so nothing more was started: {error}.");
            return Err(Diagnostic::error("The state is not this run's any more", detail)
                .with_hint("Run plan once nobody else works on it, and see what is left to do."));
        }
        if !std::mem::replace(&mut self.warned, true) {
            let detail = format!("While the run went on, the state could not be written: {error}. It will be tried again.");
            diagnostics.push(Diagnostic::warning("State not written meanwhile", detail));
        }
        Ok(())
    }

    /// Writes the state at the end, if it changed, and empties the journal. False if it could not be written.
    pub(crate) async fn save(&mut self, ledger: &mut Ledger<'_>, diagnostics: &mut Diagnostics) -> bool {
        if ledger.dirty
            && let Err(error) = self.write(ledger).await
        {
            diagnostics.push(
                Diagnostic::error(
                    "State could not be written",
                    format!("What was done is not in the state: {error}. The journal has it, and was kept."),
                )
                .with_hint("Repair the backend and run plan in this directory: it takes the journal in before anything else."),
            );
            return false;
        }
        if !self.wrote {
            // What an earlier run left in the journal may not be known elsewhere.
            return true;
        }
        if let Err(error) = self.journal.clear() {
            // Replaying what is in the state already changes nothing.
            let detail = format!("The state was written, but the journal could not be emptied: {error}. It does no harm.");
            diagnostics.push(Diagnostic::warning("Journal not emptied", detail));
        }
        true
    }

    async fn write(&mut self, ledger: &mut Ledger<'_>) -> Result<(), BackendError> {
        self.put(ledger).await?;
        ledger.dirty = false;
        self.wrote = true;
        // If this record is lost, replaying all of them on the written state changes nothing.
        let _ = self.journal.append(&[JournalRecord::Written { serial: ledger.snapshot.serial }]);
        Ok(())
    }

    /// Hands the state to the backend under the next serial.
    async fn put(&mut self, ledger: &mut Ledger<'_>) -> Result<(), BackendError> {
        let next = ledger.snapshot.serial.max(self.stored.unwrap_or(0)).saturating_add(1);
        let earlier = std::mem::replace(&mut ledger.snapshot.serial, next);
        if let Err(error) = self.backend.write(self.stored, &ledger.snapshot).await {
            ledger.snapshot.serial = earlier;
            return Err(error);
        }
        self.stored = Some(next);
        Ok(())
    }
}
