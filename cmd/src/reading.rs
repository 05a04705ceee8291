//! What commands share that only read a state: finding it, whatever the configuration lacks, and reading it.

use karmaform_model::{Diagnostics, Snapshot};

use crate::app::{App, Stop};
use crate::flags::VariableFlags;
use crate::project::{CONFIGURATION, Project, load_directory};
use crate::session::{open_backend, read_state};

/// What the loader says of a variable without a value; it does not matter to who only reads.
pub(crate) const MISSING_VARIABLE: &str = "No value for a required variable";

/// The diagnostics that matter even if nobody gives values to variables.
pub(crate) fn without_missing_variables(project: &Project) -> Diagnostics {
    project.diagnostics.iter().filter(|d| d.summary != MISSING_VARIABLE).cloned().collect()
}

/// The state, wherever the configuration keeps it. A directory without configuration has its state in the usual place.
///
/// # Errors
/// If the configuration does not say where, or the state can't be read.
pub(crate) fn current_state(app: &mut App, state: Option<&str>) -> Result<Option<Snapshot>, Stop> {
    let open = if has_configuration(app) {
        let project = load_directory(app, &VariableFlags::default(), false)?;
        if project.config.settings.backend.is_none() {
            let wrong = without_missing_variables(&project);
            if wrong.has_errors() {
                return Err(wrong.into());
            }
        }
        open_backend(app, project.config.settings.backend.as_ref(), state)?
    } else {
        open_backend(app, None, state)?
    };
    read_state(app, &open)
}

/// True if there is something to load.
pub(crate) fn has_configuration(app: &App) -> bool {
    let entries = std::fs::read_dir(&app.directory).into_iter().flatten().flatten();
    entries.map(|e| e.file_name()).any(|n| n.to_string_lossy().ends_with(CONFIGURATION))
}
