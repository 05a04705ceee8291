//! `init`: prepare a directory. Providers are linked in, so there is little to do; scripts expect it all the same.

use karmaform_model::Diagnostic;

use crate::app::{App, Ended, Stop};
use crate::disk::reason;
use crate::flags::{LockFlags, VariableFlags, boolean};
use crate::project::load_if_any;
use crate::reading::without_missing_variables;
use crate::session::{open_backend, read_state};
use crate::ui::style::Tone;
use crate::wiring::WORKING_DIRECTORY;

/// Arguments of `init`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Look at the backend
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    backend: bool,
    /// Taken for the sake of scripts: nothing is asked
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    input: bool,
    /// Taken for the sake of scripts: there is nothing to upgrade
    #[arg(long)]
    upgrade: bool,
    /// Taken for the sake of scripts: the backend is read from the configuration each time
    #[arg(long)]
    reconfigure: bool,
    #[command(flatten)]
    lock: LockFlags,
    #[command(flatten)]
    variables: VariableFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let project = load_if_any(app, &args.variables, false)?;
    if project.configuration_files == 0 {
        app.say("karmaform initialized in an empty directory!\n\nThe directory has no configuration files (*.kf.hcl). Write one, then run plan.\n");
        return Ok(0);
    }
    let found = without_missing_variables(&project);
    if found.has_errors() {
        return Err(found.into());
    }
    let open = open_backend(app, project.config.settings.backend.as_ref(), None)?;
    if args.backend {
        app.say("\nInitializing the backend...\n");
        let state = read_state(app, &open)?;
        let what = match state {
            Some(state) => format!("The state is in {} ({} resources, serial {}).\n", open.place, state.resources.len(), state.serial),
            None => format!("The state will be kept in {}.\n", open.place),
        };
        app.say(&what);
    }
    let path = app.directory.join(WORKING_DIRECTORY);
    std::fs::create_dir_all(&path).map_err(|e| {
        Stop::from(Diagnostic::error("Can't make the working directory", format!("{WORKING_DIRECTORY} can't be made: {}.", reason(&e))))
    })?;
    app.show_warnings(&found);
    let done = app.theme.strong(Tone::Add, &format!("{} has been successfully initialized!", app.theme.product));
    app.say(&format!("\n{done}\n"));
    if !app.in_automation() {
        app.say("\nProviders are part of the tool; nothing had to be fetched. Run plan to see what apply would do.\n");
    }
    Ok(0)
}
