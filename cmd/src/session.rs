//! One look at a state: the backend, its lock, and what a dead run left in the journal.

use std::sync::Arc;

use karmaform_engine::{Recovery, recover};
use karmaform_model::{
    BackendError, Diagnostic, Diagnostics, Generation, Journal, JournalRecord, LockId, LockInfo, Serial, Snapshot, StateError,
};

use crate::app::{App, Stop, VERSION};
use crate::backend::{KeepAlive, unsealable};
use crate::flags::LockFlags;
use crate::locking::{ask, let_go, lock, not_released, refused, release};
use crate::policies::Overrides;
use crate::project::is_configuration;
use crate::wiring::{DEFAULT_WORKSPACE, OpenBackend};
use crate::workspace;

/// A backend that is open, with the state as it was read.
pub(crate) struct Session {
    /// The backend.
    pub(crate) open: OpenBackend,
    /// The journal of this state.
    pub(crate) journal: Box<dyn Journal>,
    /// The state, brought up to what the journal knows; an empty one if there is none.
    pub(crate) snapshot: Snapshot,
    /// The serial that the backend holds; `None`: it holds nothing.
    pub(crate) stored: Option<Serial>,
    /// The serial that the state had when it was read, before a journal was written into it. Saved plans go by this.
    pub(crate) found: Serial,
    /// What the journal held.
    pub(crate) recovery: Recovery,
    /// There was something in it.
    has_records: bool,
    lock: Option<(LockId, Option<KeepAlive>)>,
    /// What the lock was taken for.
    operation: String,
    /// Policies that this run went on without.
    pub(crate) overrides: Overrides,
}

impl Session {
    /// Takes the lock and reads the state. What a dead run left in the journal is written to the backend first.
    ///
    /// # Errors
    /// If the lock is held, or the state can't be read.
    pub(crate) fn exclusive(app: &mut App, open: OpenBackend, operation: &str, flags: &LockFlags) -> Result<Self, Stop> {
        let mut session = Self::locked(app, open, operation, flags, Self::read)?;
        if let Err(stop) = session.settle(app) {
            session.close(app);
            return Err(stop);
        }
        Ok(session)
    }

    /// Takes the lock and reads the state as it is stored, without the journal: for who replaces it as a whole.
    ///
    /// # Errors
    /// If the lock is held, or the state can't be read.
    pub(crate) fn unsettled(app: &mut App, open: OpenBackend, operation: &str, flags: &LockFlags) -> Result<Self, Stop> {
        Self::locked(app, open, operation, flags, Self::without_journal)
    }

    fn locked(
        app: &mut App,
        open: OpenBackend,
        operation: &str,
        flags: &LockFlags,
        read: fn(&mut App, OpenBackend) -> Result<Self, Stop>,
    ) -> Result<Self, Stop> {
        let held = if flags.lock { Some(lock(app, &open, operation, flags.lock_timeout)?) } else { None };
        let backend = Arc::clone(&open.backend);
        let alive = held.as_ref().and_then(|id| KeepAlive::start(app, &backend, id));
        match read(app, open) {
            Ok(mut session) => {
                session.lock = held.map(|id| (id, alive));
                operation.clone_into(&mut session.operation);
                Ok(session)
            }
            Err(stop) => {
                drop(alive);
                if let Some(id) = held {
                    let _ = release(app, &*backend, &id);
                }
                Err(stop)
            }
        }
    }

    /// Reads the state without holding the lock. What a dead run left in the journal counts, but nothing is written.
    ///
    /// # Errors
    /// If the state can't be read.
    pub(crate) fn shared(app: &mut App, open: OpenBackend) -> Result<Self, Stop> {
        let left = (open.journal)().and_then(|j| j.read()).map_err(|e| Stop::from(journal_failed(&e)))?;
        if left.is_empty() {
            return Self::without_journal(app, open);
        }
        // The journal of a run that is alive is none of ours. Only who gets the lock knows that there is none.
        let who = information(app, &open, "OperationTypePlan");
        match ask(app, &open, &who, None) {
            Ok(id) => {
                let backend = Arc::clone(&open.backend);
                let session = Self::read(app, open);
                let _ = release(app, &*backend, &id);
                session
            }
            Err(BackendError::Locked(holder)) => {
                let mut session = Self::without_journal(app, open)?;
                session.recovery.diagnostics.push(being_changed(holder.as_deref()));
                Ok(session)
            }
            // Where nothing can be written nobody else writes either.
            Err(_) => Self::read(app, open),
        }
    }

    fn without_journal(app: &mut App, open: OpenBackend) -> Result<Self, Stop> {
        let stored = stored(app, &open)?;
        Ok(Self {
            journal: Box::new(NoJournal),
            stored: stored.as_ref().map(|s| s.serial),
            found: stored.as_ref().map_or(0, |s| s.serial),
            snapshot: stored.unwrap_or_default(),
            recovery: Recovery::default(),
            has_records: false,
            lock: None,
            operation: String::new(),
            overrides: Overrides::new(),
            open,
        })
    }

    fn read(app: &mut App, open: OpenBackend) -> Result<Self, Stop> {
        let journal = (open.journal)().map_err(|e| Stop::from(journal_failed(&e)))?;
        let records = journal.read().map_err(|e| Stop::from(journal_failed(&e)))?;
        let mut session = Self::without_journal(app, open)?;
        session.recovery = recover(&mut session.snapshot, &records);
        session.has_records = !records.is_empty();
        session.journal = journal;
        Ok(session)
    }

    /// Writes what the journal brought, so that the run that follows starts from a state that is whole.
    fn settle(&mut self, app: &mut App) -> Result<(), Stop> {
        if self.recovery.changed.is_empty() {
            // All of it is in the state. Left there it would be read again after what comes now, and bring back what was moved meanwhile.
            let is_done = self.has_records && self.recovery.diagnostics.is_empty();
            return if is_done { self.journal.clear().map_err(|e| Stop::from(journal_failed(&e))) } else { Ok(()) };
        }
        self.snapshot.serial = self.snapshot.serial.saturating_add(1);
        self.snapshot.tool_version = VERSION.to_owned();
        let written = app.executor.block_on(self.open.backend.write(self.stored, &self.snapshot));
        written.map_err(|e| Stop::from(backend_failed("write", &self.open.place, &e)))?;
        self.stored = Some(self.snapshot.serial);
        self.journal.clear().map_err(|e| Stop::from(journal_failed(&e)))
    }

    /// Before anything is done. A state that is about to be written for the first time gets its lineage.
    ///
    /// # Errors
    /// If the lock was lost while the plan was made.
    pub(crate) fn begin(&mut self, app: &mut App) -> Result<(), Stop> {
        if let Some(lost) = self.lock.as_ref().and_then(|(_, alive)| alive.as_ref()).and_then(KeepAlive::lost) {
            return Err(lost.into());
        }
        if self.snapshot.lineage.is_empty() {
            self.snapshot.lineage = (app.wiring.ids)();
        }
        if let Some(record) = self.open.record.take() {
            record.write(&app.directory)?;
        }
        Ok(())
    }

    /// Writes this state in the place of the one that was read, and empties the journal: what is in it is in the state that was changed.
    ///
    /// # Errors
    /// If the backend or the disk refuses.
    pub(crate) fn replace(&mut self, app: &mut App, mut next: Snapshot) -> Result<Serial, Stop> {
        next.serial = next.serial.max(self.stored.unwrap_or(0)).saturating_add(1);
        VERSION.clone_into(&mut next.tool_version);
        let written = app.executor.block_on(self.open.backend.write(self.stored, &next));
        written.map_err(|e| Stop::from(backend_failed("write", &self.open.place, &e)))?;
        if let Some(record) = self.open.record.take() {
            record.write(&app.directory)?;
        }
        self.journal.clear().map_err(|e| Stop::from(journal_failed(&e)))?;
        self.stored = Some(next.serial);
        self.snapshot = next;
        Ok(self.snapshot.serial)
    }

    /// Warnings about an earlier run.
    pub(crate) fn notes(&self) -> &Diagnostics {
        &self.recovery.diagnostics
    }

    /// Keeps what was written as a generation, where the backend does that. A copy that can't be made is worth a warning and no more.
    fn keep(&mut self, app: &mut App) {
        let about = Generation {
            serial: 0,
            created: crate::ui::json::timestamp(app.now_seconds()),
            who: app.wiring.who.clone(),
            operation: self.operation.clone(),
            version: VERSION.to_owned(),
            configuration: configuration(app),
            resources: 0,
            overrides: self.overrides.clone(),
        };
        if let Err(error) = app.executor.block_on(self.open.backend.keep(&about)) {
            let detail = format!("The state was written, but not kept as a generation: {error}.");
            let hint = "To go back to this state later, keep it: karmaform state pull > FILE";
            app.show(&Diagnostic::warning("Generation not kept", detail).with_hint(hint).into());
        }
    }

    /// Releases the lock. A lock that is gone is worth a warning and no more.
    pub(crate) fn close(&mut self, app: &mut App) {
        // A first signal, or one that is repeated, does not end this in the middle.
        let _asking = app.interrupt.ask_first();
        self.keep(app);
        let Some((id, alive)) = self.lock.take() else { return };
        let lost = alive.as_ref().and_then(KeepAlive::lost);
        drop(alive);
        if let Some(lost) = lost {
            let_go(app, &id);
            app.show(&lost.into());
        } else if let Err(error) = release(app, &*self.open.backend, &id) {
            let detail = not_released(&self.open.place, &error.to_string());
            app.show(&Diagnostic::warning("Error releasing the state lock", detail).into());
        }
    }
}

/// A digest of the files of the configuration, in hexadecimal digits.
fn configuration(app: &App) -> String {
    let files = app.sources.files.iter().filter(|f| is_configuration(&f.path));
    let text: String = files.map(|f| format!("{}\n{}\n", f.path, crate::disk::sha256(f.text.as_bytes()))).collect();
    crate::disk::sha256(text.as_bytes())
}

/// Who this run is, for the lock.
pub(crate) fn information(app: &App, open: &OpenBackend, operation: &str) -> LockInfo {
    LockInfo {
        id: (app.wiring.ids)(),
        operation: operation.to_owned(),
        info: String::new(),
        who: app.wiring.who.clone(),
        version: VERSION.to_owned(),
        created: crate::ui::json::timestamp(app.now_seconds()),
        path: open.place.clone(),
        lease: None,
        renewed: None,
    }
}

/// Reads the state as the backend has it.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn read_state(app: &App, open: &OpenBackend) -> Result<Option<Snapshot>, Stop> {
    app.executor.block_on(open.backend.read()).map_err(|e| backend_failed("read", &open.place, &e).into())
}

/// The same of a workspace that must be there.
///
/// # Errors
/// If it cannot be read, or there is no such workspace.
pub(crate) fn stored(app: &App, open: &OpenBackend) -> Result<Option<Snapshot>, Stop> {
    there(&open.workspace, read_state(app, open)?)
}

/// What was read of a workspace that must be there.
///
/// # Errors
/// If there is no such workspace.
pub(crate) fn there(workspace: &str, stored: Option<Snapshot>) -> Result<Option<Snapshot>, Stop> {
    if stored.is_none() && workspace != DEFAULT_WORKSPACE {
        return Err(workspace::missing(workspace).into());
    }
    Ok(stored)
}

/// The backend could not do its part.
pub(crate) fn backend_failed(verb: &str, place: &str, error: &BackendError) -> Diagnostic {
    if let Some(lost) = error.conflict() {
        return lost;
    }
    match error {
        BackendError::Locked(holder) => refused(holder.as_deref(), place),
        BackendError::Damaged { source: StateError::Version(version), .. } if version.parse::<u64>().is_ok_and(|v| v > 4) => {
            Diagnostic::error("The state can't be read", format!("{error}. Nothing was changed."))
                .with_hint("It was written by something newer. Use a newer karmaform.")
        }
        BackendError::Damaged { place, source: StateError::Sealed(error) } => unsealable(&format!("state at {place}"), error),
        BackendError::Damaged { .. } => Diagnostic::error("The state can't be read", format!("{error}. Nothing was changed."))
            .with_hint("Restore it from its backup (the same name with .backup at the end), and run plan.")
            .with_hint("If there is none: move it away, and make it anew with state rebuild."),
        // The store names its place itself.
        BackendError::Store { source, .. } => Diagnostic::error(format!("Can't {verb} the state"), sentence(&source.to_string())),
        _ => Diagnostic::error(format!("Can't {verb} the state"), format!("The state at {place}: {error}.")),
    }
}

/// With a capital and a full stop, whether it came with them or not.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    letters.next().map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str())).unwrap_or_default()
}

/// The journal could not be used.
pub(crate) fn journal_failed(error: &BackendError) -> Diagnostic {
    if let BackendError::Damaged { place, source: StateError::Sealed(error) } = error {
        return unsealable(&format!("journal of an earlier run at {place}"), error);
    }
    Diagnostic::error("The journal can't be used", format!("{error}. It holds what an earlier run did, so nothing is done without it."))
        .with_hint("Look at the file. If what it holds is not needed, remove it and run plan.")
}

fn being_changed(holder: Option<&LockInfo>) -> Diagnostic {
    let who = holder.map(|h| format!(" {} holds its lock since {} ({}).", h.who, h.created, h.operation)).unwrap_or_default();
    Diagnostic::warning(
        "The state is being changed",
        format!("Another run is working on this state.{who} What is shown may be outdated soon."),
    )
}

/// Where nothing may be written.
pub(crate) struct NoJournal;

impl Journal for NoJournal {
    fn append(&mut self, _: &[JournalRecord]) -> Result<(), BackendError> {
        Ok(())
    }

    fn read(&self) -> Result<Vec<JournalRecord>, BackendError> {
        Ok(Vec::new())
    }

    fn clear(&mut self) -> Result<(), BackendError> {
        Ok(())
    }
}
