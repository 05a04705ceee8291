//! Which workspace this directory works with: several states for one configuration, each under a name.

use karmaform_model::Diagnostic;

use crate::app::App;
use crate::disk::{reason, reason_to_write, write_private};
use crate::wiring::{DEFAULT_WORKSPACE, WORKING_DIRECTORY};

/// Chooses a workspace for a run, whatever was selected.
pub(crate) const VARIABLE: &str = "KF_WORKSPACE";
/// The file that remembers the selection; Terraform's name for it.
const SELECTED: &str = "environment";
/// Longer ones don't fit into every store.
const LONGEST: usize = 90;

/// The workspace of this run: the variable's, the selected one, or `default`.
///
/// # Errors
/// For a name that can't be one, and if the file can't be read.
pub(crate) fn current(app: &App) -> Result<String, Diagnostic> {
    if let Some(name) = of_environment(app) {
        check_from(&name, VARIABLE).map_err(|d| d.with_hint(format!("Unset {VARIABLE}, or set it to a name like \"staging\".")))?;
        return Ok(name);
    }
    let path = app.directory.join(WORKING_DIRECTORY).join(SELECTED);
    let name = match std::fs::read_to_string(path) {
        Ok(text) => text.trim().to_owned(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(failed("read", &reason(&e))),
    };
    if name.is_empty() {
        return Ok(DEFAULT_WORKSPACE.to_owned());
    }
    let file = format!("the file {WORKING_DIRECTORY}/{SELECTED}");
    check_from(&name, &file).map_err(|d| d.with_hint("To select one: karmaform workspace select default"))?;
    Ok(name)
}

/// What the environment chooses; an empty variable chooses nothing.
pub(crate) fn of_environment(app: &App) -> Option<String> {
    app.wiring.environment.get(VARIABLE).filter(|name| !name.is_empty()).cloned()
}

/// Remembers the selection.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn select(app: &App, name: &str) -> Result<(), Diagnostic> {
    let directory = app.directory.join(WORKING_DIRECTORY);
    std::fs::create_dir_all(&directory).map_err(|e| failed("written", &reason_to_write(&e)))?;
    write_private(&directory.join(SELECTED), name.as_bytes()).map_err(|e| failed("written", &reason_to_write(&e)))
}

/// A name stands in paths and in addresses, as it is.
///
/// # Errors
/// If it can't.
pub(crate) fn check(name: &str) -> Result<(), Diagnostic> {
    if is_name(name) {
        return Ok(());
    }
    Err(Diagnostic::error("Invalid workspace name", rule()).with_hint("Choose a name like \"staging\"."))
}

/// The same of a name that something says, which is told along.
fn check_from(name: &str, place: &str) -> Result<(), Diagnostic> {
    if is_name(name) {
        return Ok(());
    }
    Err(Diagnostic::error("Invalid workspace name", format!("\"{}\" is what {place} says. {}", name.escape_debug(), rule())))
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.~$&+=:@".contains(c);
    let length = name.chars().count();
    (1..=LONGEST).contains(&length) && name.chars().all(fits) && !matches!(name, "." | "..")
}

fn rule() -> String {
    format!(
        "The name of a workspace has 1 to {LONGEST} characters that can stand in a path of a URL as they are: letters, digits, - and _ above all."
    )
}

/// It was never made, or is gone.
pub(crate) fn missing(name: &str) -> Diagnostic {
    Diagnostic::error("No such workspace", format!("Workspace \"{name}\" doesn't exist."))
        .with_hint(format!("To make it: karmaform workspace new {name}"))
        .with_hint("To see which there are: karmaform workspace list")
}

fn failed(verb: &str, why: &str) -> Diagnostic {
    Diagnostic::error("Can't remember the workspace", format!("{WORKING_DIRECTORY}/{SELECTED} can't be {verb}: {why}."))
        .with_hint("It says which workspace is selected. To select one anew: karmaform workspace select default")
        .with_hint(format!("If that fails, see to it that {WORKING_DIRECTORY} is a folder, and that no other one is in the file's place."))
}
