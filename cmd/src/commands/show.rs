//! `show`: the state, a state file, or a saved plan.

use std::sync::Arc;

use karmaform_model::{Clear, Diagnostic, Snapshot, is_sealed};

use crate::app::{App, Ended, Stop};
use crate::backend::{open_backend, seal_of_directory};
use crate::disk::reason;
use crate::flags::{PlaceFlags, VariableFlags, boolean};
use crate::reading::current_state;
use crate::report::plan::PlanReports;
use crate::saved::{self, SavedPlan};
use crate::session::read_state;
use crate::ui::json::{line, plan, state};
use crate::ui::plan::{PlanOptions, plan_text};
use crate::ui::state::state_text;

/// Arguments of `show`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// A saved plan or a state file
    #[arg(value_name = "FILE")]
    file: Option<String>,
    /// As JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    json: bool,
    /// Show every part of every composite in full
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    verbose: bool,
    #[command(flatten)]
    variables: VariableFlags,
    #[command(flatten)]
    reports: PlanReports,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let snapshot = match &args.file {
        None => {
            let place = PlaceFlags { variables: args.variables.clone(), ..PlaceFlags::default() };
            current_state(app, &place)?
        }
        Some(file) => match saved::read(app, file, &args.variables)? {
            Some(saved) => return show_plan(app, &saved, args),
            None => Some(state_file(app, file, &args.variables)?),
        },
    };
    if args.reports.are_wanted() {
        return Err(Diagnostic::error("Reports are of plans", "What is shown is a state, and -report writes what a saved plan says.")
            .with_hint("Name the file that plan -out wrote.")
            .into());
    }
    if args.json {
        let json = state::state(snapshot.as_ref(), &app.wiring.registry);
        app.output.print(&line(&json));
    } else {
        let text = match &snapshot {
            None => "No state.\n".to_owned(),
            Some(snapshot) => state_text(snapshot, &app.wiring.registry, &app.theme),
        };
        app.output.print(&text);
    }
    Ok(0)
}

fn state_file(app: &mut App, file: &str, variables: &VariableFlags) -> Result<Snapshot, Stop> {
    let failed = |why: &str| {
        let detail = format!("The file \"{file}\" is neither a saved plan nor a state: {why}.");
        let hint = "Name a file that plan -out or state pull wrote, or none for the state as it is.";
        Stop::from(Diagnostic::error("Failed to read the given file as a state or plan file", detail).with_hint(hint))
    };
    let bytes = std::fs::read(app.directory.join(file)).map_err(|e| failed(&reason(&e)))?;
    let seal = if is_sealed(&bytes) { seal_of_directory(app, variables)? } else { Arc::new(Clear) };
    Snapshot::from_stored(&bytes, &*seal).map_err(|e| failed(&e.to_string()))
}

fn show_plan(app: &mut App, saved: &SavedPlan, args: &Args) -> Ended {
    if args.json || args.reports.are_wanted() {
        // What is shown of the configuration does not depend on what is secret in it.
        let project = saved::load(app, saved, &args.variables)?;
        let prior = open_backend(app, &project.config.settings, saved.state.as_deref())
            .and_then(|open| read_state(app, &open))
            .ok()
            .flatten()
            .filter(|s| s.serial == saved.plan.serial);
        args.reports.write(app, &saved.plan, &project.config, prior.as_ref())?;
        if args.json {
            let json = plan::plan(&saved.plan, &project.config, prior.as_ref(), &app.wiring.registry);
            app.output.print(&line(&json));
            return Ok(0);
        }
    }
    let text = plan_text(&saved.plan, &app.wiring.registry, &app.theme, PlanOptions { verbose: args.verbose });
    app.output.print(&text);
    Ok(0)
}
