//! `destroy`: `apply -destroy`.

use karmaform_model::Diagnostic;

use super::apply::{Command, How, from_configuration};
use crate::app::{App, Ended};
use crate::flags::PlanningFlags;
use crate::profile::profiled;

/// Arguments of `destroy`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    planning: PlanningFlags,
    #[command(flatten)]
    how: How,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let how = How { command: Command::Destroy, ..args.how.clone() };
    app.view(&how.view)?;
    if args.planning.destroy {
        return Err(Diagnostic::error("Flags that don't go together", "destroy always destroys, and takes no -destroy.").into());
    }
    let planning = PlanningFlags { destroy: true, ..args.planning.clone() };
    profiled(app, &how.profile, "destroy", |app| from_configuration(app, &planning, &how, false))
}
