//! `schema`: what blocks may hold, for editors and other programs, in the format of Terraform's `providers schema -json`.

use karmaform_model::Diagnostic;

use crate::app::{App, Ended};
use crate::flags::boolean;
use crate::ui::json::line;
use crate::ui::json::schema::schemas;

/// Arguments of `schema`.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Args {
    /// As JSON; there is no other form
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    json: bool,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    if !args.json {
        return Err(Diagnostic::error("Missing flag", "Schemas are for programs, and there is no form of them for people.")
            .with_hint("Add -json, or read the reference in docs/reference.")
            .into());
    }
    let answer = schemas(&app.wiring.registry);
    app.output.print(&line(&answer));
    Ok(0)
}
