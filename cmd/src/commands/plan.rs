//! `plan`: show what apply would do.

use karmaform_model::{ModeOfPlan, Plan};

use crate::app::{App, Ended};
use crate::backend::open_backend;
use crate::expanding::expand;
use crate::flags::{LockFlags, PlanningFlags, StateFlags, VariableFlags, ViewFlags, boolean};
use crate::planning::{Planned, bundle_for, options, plan_or_show, pool, show_plan};
use crate::policies::judge;
use crate::profile::{ProfileFlags, profiled};
use crate::project::{load_directory, load_if_any};
use crate::redact::holders_of_secrets;
use crate::report::plan::PlanReports;
use crate::saved;
use crate::session::Session;
use crate::ui::plan::{has_news, in_clear, trailer};

/// There are changes, with `-detailed-exitcode`.
const CHANGES: i32 = 2;

/// Arguments of `plan`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    planning: PlanningFlags,
    /// Save the plan to this file, for apply
    #[arg(long, value_name = "FILE")]
    out: Option<String>,
    /// Exit code 2 if there are changes
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    detailed_exitcode: bool,
    #[command(flatten)]
    variables: VariableFlags,
    #[command(flatten)]
    state: StateFlags,
    /// Planning only reads, so there is nothing to lock; taken for the sake of scripts
    #[command(flatten)]
    lock: LockFlags,
    #[command(flatten)]
    view: ViewFlags,
    #[command(flatten)]
    reports: PlanReports,
    #[command(flatten)]
    profile: ProfileFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    app.view(&args.view)?;
    profiled(app, &args.profile, "plan", |app| planned(app, args))
}

fn planned(app: &mut App, args: &Args) -> Ended {
    args.reports.make_room(app)?;
    // A script may have no name to give: then no file is meant, as in Terraform.
    let out = args.out.as_deref().filter(|path| !path.is_empty());
    if let Some(path) = out {
        saved::make_room(app, path, &args.variables)?;
    }
    let options = options(app, &args.planning)?;
    let ask = app.wants_input(args.view.input) && !args.view.json;
    let load = if options.mode == ModeOfPlan::Destroy { load_if_any } else { load_directory };
    let mut project = load(app, &args.variables, ask)?.plannable(&app.wiring.registry)?;
    let open = open_backend(app, &project.config.settings, args.state.state.as_deref())?;
    let session = Session::shared(app, open)?;
    let notes = session.notes().clone();
    app.show(&notes);
    let pool = pool(app, &project, bundle_for(options.mode))?;
    expand(app, &mut project, &session.snapshot, &pool, &options)?;
    let from = saved::From { project: &project, session: &session, state: args.state.state.as_deref() };
    let report = |app: &App, plan: &Plan| args.reports.write(app, plan, &project.config, Some(&session.snapshot));
    let keep = |app: &mut App, plan: &Plan, is_wrong_as_written: bool| {
        report(app, plan)?;
        match out {
            Some(path) if !is_wrong_as_written => saved::write(app, path, plan, &from),
            _ => Ok(()),
        }
    };
    let show = |app: &mut App, planned: &Planned| show_plan(app, planned, args.view.verbose);
    let mut planned = plan_or_show(app, &project, &session.snapshot, &pool, (&options, &args.variables, &show), keep)?;
    let forbidden = judge(&project.config, &mut planned.plan, &args.planning.policies.all(), options.now);
    show(app, &planned);
    report(app, &planned.plan)?;
    // Nobody should take it for one that may be applied.
    if forbidden.has_errors() {
        return Err(forbidden.into());
    }
    if let Some(path) = out {
        saved::write(app, path, &planned.plan, &from)?;
    }
    let is_worth_applying = has_news(&planned.plan);
    if is_worth_applying && !session.open.seal.encrypts() {
        let holders = holders_of_secrets(&planned.plan, &app.wiring.registry);
        app.say(&in_clear(&holders, &app.theme.clone()));
    }
    if !app.in_automation() && is_worth_applying {
        app.say(&trailer(out, &app.theme.clone()));
    }
    let has_changes = match planned.plan.mode {
        ModeOfPlan::RefreshOnly => has_news(&planned.plan),
        _ => !planned.plan.is_empty() || !planned.plan.deferred.is_empty(),
    };
    Ok(if args.detailed_exitcode && has_changes { CHANGES } else { 0 })
}
