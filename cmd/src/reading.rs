//! What commands share that only read a state: finding it, whatever the configuration lacks, and reading it.

use karmaform_lang::{MISSING_VARIABLE, OTHER_VERSION};
use karmaform_model::{Diagnostic, Diagnostics, Snapshot};

use crate::app::{App, Stop};
use crate::backend::open_backend;
use crate::flags::PlaceFlags;
use crate::project::{Project, load_if_any};
use crate::session::Session;
use crate::wiring::OpenBackend;

/// The diagnostics that matter even if nobody gives values to variables: to who only reads, a missing one does not matter.
pub(crate) fn without_missing_variables(project: &Project) -> Diagnostics {
    project.diagnostics.iter().filter(|d| d.summary != MISSING_VARIABLE).cloned().collect()
}

/// The state, wherever the configuration keeps it, with what a dead run left in the journal; nothing is written. A directory without
/// configuration has its state in the usual place. What is wrong with the rest of the configuration does not matter here.
///
/// # Errors
/// If the configuration does not say where, or the state can't be read.
pub(crate) fn current_state(app: &mut App, place: &PlaceFlags) -> Result<Option<Snapshot>, Stop> {
    let open = current_backend(app, place)?;
    let session = Session::shared(app, open)?;
    app.show(session.notes());
    let is_there = session.stored.is_some() || !session.recovery.changed.is_empty();
    Ok(is_there.then_some(session.snapshot))
}

/// The backend that the configuration says, whatever is wrong with the rest of it.
///
/// # Errors
/// If the configuration does not say which.
pub(crate) fn current_backend(app: &mut App, place: &PlaceFlags) -> Result<OpenBackend, Stop> {
    let project = load_if_any(app, &place.variables, false)?;
    let wrong = about_settings(&project);
    if wrong.has_errors() {
        return Err(wrong.into());
    }
    open_backend(app, &project.config.settings, place.file.state.as_deref())
}

/// What keeps the settings from being known: text that did not parse, and errors inside of the `karmaform` blocks. That another version
/// is wanted keeps nobody from looking.
fn about_settings(project: &Project) -> Diagnostics {
    let settings = &project.config.settings;
    let inside =
        |d: &Diagnostic| d.span.is_some_and(|s| settings.spans.iter().any(|b| b.file == s.file && b.start <= s.start && s.end <= b.end));
    let matters = |d: &&Diagnostic| d.is_error() && d.summary != OTHER_VERSION && (project.config.is_incomplete() || inside(d));
    without_missing_variables(project).iter().filter(matters).cloned().collect()
}
