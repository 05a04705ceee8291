//! `validate`: check the configuration and its tests, without state and without the world.

use karmaform_engine::{DEPENDENCY_CYCLE, graph};
use karmaform_model::{Diagnostics, Snapshot};

use crate::app::{App, Ended, Stop};
use crate::backend::open_backend;
use crate::distinct::in_order;
use crate::flags::{VariableFlags, boolean};
use crate::project::load_for_any_values;
use crate::reading::without_missing_variables;
use crate::testing::validate_tests;
use crate::ui::json::diagnostics::validation;
use crate::ui::json::indented;
use crate::ui::style::Tone;

/// Arguments of `validate`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// As JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    json: bool,
    /// Leave the test files aside
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    no_tests: bool,
    /// The folder for tests, beside the configuration
    #[arg(long, value_name = "DIR", default_value = "tests")]
    test_directory: String,
    #[command(flatten)]
    variables: VariableFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let found = match check(app, args) {
        Ok(found) | Err(Stop::Because(found)) => found,
        Err(stop) => return Err(stop),
    };
    let code = i32::from(found.has_errors());
    if args.json {
        let answer = validation(&found, &app.sources);
        app.output.print(&indented(&answer));
        return Ok(code);
    }
    app.show(&found);
    if code == 0 {
        let but = if found.is_empty() { "" } else { ", but there were some validation warnings as shown above" };
        app.say(&format!("{} The configuration is valid{but}.\n\n", app.theme.strong(Tone::Add, "Success!")));
    }
    Ok(code)
}

fn check(app: &mut App, args: &Args) -> Result<Diagnostics, Stop> {
    let project = load_for_any_values(app, &args.variables)?;
    let mut found = without_missing_variables(&project);
    let deeper = karmaform_lang::validate_beside(&project.config, &found);
    let can_go_on = !found.has_errors();
    found.extend(deeper.into_iter().filter(|d| d.summary != karmaform_lang::MISSING_VARIABLE));
    if can_go_on {
        // What else the graph would say has been said, or is for who plans.
        let (_, wrong) = graph(&project.config, &Snapshot::default(), &app.wiring.registry);
        found.extend(wrong.into_iter().filter(|d| d.summary == DEPENDENCY_CYCLE));
        if let Err(Stop::Because(wrong)) = open_backend(app, &project.config.settings, None) {
            found.extend(wrong);
        }
    }
    if !args.no_tests {
        found.extend(validate_tests(app, &args.test_directory, &project)?);
    }
    Ok(in_order(found))
}
