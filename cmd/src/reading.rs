//! What commands share that only read a state: finding it, whatever the configuration lacks, and reading it.

use karmaform_lang::{MISSING_VARIABLE, OTHER_BACKEND, OTHER_VERSION, Settings};
use karmaform_model::{Diagnostic, Diagnostics, Snapshot};

use crate::app::{App, Stop};
use crate::backend::open_backend;
use crate::flags::{PlaceFlags, VariableFlags};
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
    let file = place.file.state.as_deref();
    let settings = settings(app, &place.variables, file.is_some())?;
    open_backend(app, &settings, file)
}

/// What the configuration in the directory says of where its state is and how it is encrypted; without a configuration, the usual.
///
/// # Errors
/// If it does not say that. What is wrong with the rest of it does not matter.
pub(crate) fn settings_of_directory(app: &mut App, flags: &VariableFlags) -> Result<Settings, Stop> {
    settings(app, flags, false)
}

/// The same. `is_named`: the place of the state is said elsewhere, so that none that is said wrongly matters.
fn settings(app: &mut App, flags: &VariableFlags, is_named: bool) -> Result<Settings, Stop> {
    let project = load_if_any(app, flags, false)?;
    let matters = |d: &Diagnostic| !(is_named && d.summary == OTHER_BACKEND);
    let wrong: Diagnostics = about_settings(&project).into_iter().filter(matters).collect();
    if wrong.has_errors() { Err(wrong.into()) } else { Ok(project.config.settings) }
}

/// What keeps the settings from being known: text that did not parse, errors inside of the `karmaform` blocks, and a place that is said in a block
/// of another tool. That another version is wanted keeps nobody from looking.
fn about_settings(project: &Project) -> Diagnostics {
    let settings = &project.config.settings;
    let inside =
        |d: &Diagnostic| d.span.is_some_and(|s| settings.spans.iter().any(|b| b.file == s.file && b.start <= s.start && s.end <= b.end));
    // Of a module it is a warning.
    let is_about_them = |d: &Diagnostic| project.config.is_incomplete() || d.summary == OTHER_BACKEND || inside(d);
    let matters = |d: &&Diagnostic| d.is_error() && d.summary != OTHER_VERSION && is_about_them(d);
    without_missing_variables(project).iter().filter(matters).cloned().collect()
}
