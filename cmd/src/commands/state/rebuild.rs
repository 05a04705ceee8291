//! `state rebuild`: a state that was lost, made anew from the configuration and what is there. Nothing but the state is written.

use std::sync::Arc;

use karmaform_engine::{Graph, Options, Pool, Rebuilt, World, graph, rebuild};
use karmaform_model::{Diagnostic, Diagnostics, Severity, Snapshot};

use crate::app::{App, Ended, Stop, VERSION};
use crate::backend::open_backend;
use crate::bundle::Use;
use crate::distinct::distinct;
use crate::flags::{WritingFlags, boolean};
use crate::planning::{looking, plan, pool};
use crate::project::{Project, load_directory};
use crate::session::Session;
use crate::ui::plan::{PlanOptions, plan_text};

/// Arguments of `state rebuild`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Replace a state without asking
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    auto_approve: bool,
    /// Also if a state is there: it is replaced
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    force: bool,
    #[command(flatten)]
    with: WritingFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let ask = app.wants_input(args.with.input);
    if args.force && !args.auto_approve && !ask {
        return Err(Diagnostic::error("State not approved", "Nobody can be asked here whether a state may be replaced: input is off.")
            .with_hint("Give -auto-approve: nothing but the state is written.")
            .into());
    }
    let project = load_directory(app, &args.with.variables, ask)?.checked()?;
    let open = open_backend(app, &project.config.settings, args.with.state.state.as_deref())?;
    let mut session = Session::exclusive(app, open, "state-rebuild", &args.with.lock)?;
    let written = write(app, args, &project, &mut session);
    session.close(app);
    written?;
    Ok(0)
}

fn write(app: &mut App, args: &Args, project: &Project, session: &mut Session) -> Result<(), Stop> {
    let notes = session.notes().clone();
    app.show(&notes);
    let count = session.snapshot.resources.len();
    if count > 0 && !args.force {
        let detail = format!("The state at {} is there, with {count} resources in it.", session.open.place);
        return Err(Diagnostic::error("State is not lost", detail)
            .with_hint("To see what differs from it, run plan.")
            .with_hint("If it is of no use any more, give -force: it is replaced.")
            .into());
    }
    let options = Options {
        tries: false,
        parallelism: usize::from(args.with.parallelism.most),
        now: app.now_seconds(),
        tool_version: VERSION.to_owned(),
        ..Options::default()
    };
    let pool = pool(app, project, Use::Perhaps)?;
    let Rebuilt { mut snapshot, lost, believed } = look(app, project, &pool, &options)?;
    snapshot.lineage.clone_from(&session.snapshot.lineage);
    if snapshot.lineage.is_empty() {
        snapshot.lineage = (app.wiring.ids)();
    }
    snapshot.serial = session.snapshot.serial;
    let found = snapshot.resources.len();
    app.say(&format!("Of this configuration, {found} resources are there.\n"));
    if !believed.is_empty() {
        let lines: String = believed.iter().map(|a| format!("  {a}\n")).collect();
        app.say(&format!("\nNothing in the world tells of these; they are taken for done:\n{lines}"));
    }
    if !lost.is_empty() {
        let lines: Vec<_> = lost.iter().map(|(a, name)| format!("{name} of {a}")).collect();
        let detail = format!("They were in the state alone, and are in no place where they could be found: {}.", lines.join(", "));
        let warning = Diagnostic::warning("Secrets are lost", detail)
            .with_hint("What is there runs on. What needs them again (an authority, to sign a new certificate) must be replaced before.");
        app.show(&warning.into());
    }
    // Where there was none, nothing can be lost.
    let asks = count > 0 && !args.auto_approve;
    if asks {
        next_plan(app, project, &snapshot, &pool, &options);
        let question = format!(
            "\nDo you want to replace the state?\n  It is written to {}; nothing else is touched.\n  Only 'yes' will be accepted to approve.",
            session.open.place
        );
        app.confirm(&question, "state rebuild")?;
    }
    let serial = session.replace(app, snapshot)?;
    app.say(&format!("The state was written: {found} resources, serial {serial}.\n"));
    if !asks {
        let snapshot = session.snapshot.clone();
        next_plan(app, project, &snapshot, &pool, &options);
    }
    Ok(())
}

/// Makes the state. Everything that was met is shown, or returned where there is an error among it.
fn look(app: &mut App, project: &Project, pool: &Arc<Pool>, options: &Options) -> Result<Rebuilt, Stop> {
    let registry = Arc::clone(&app.wiring.registry);
    let clock = Arc::clone(&app.wiring.clock);
    let empty = Snapshot::default();
    let mut met: Diagnostics = project.diagnostics.clone();
    let (graph, wrong): (Graph, _) = graph(&project.config, &empty, &registry);
    met.extend(wrong);
    if met.has_errors() {
        return Err(met.into());
    }
    let world =
        World { config: &project.config, registry: &registry, state: &empty, pool, runtime: clock.as_ref(), hands: Some(&registry) };
    let (rebuilt, wrong) = looking(app, rebuild(&graph, &world, options))?;
    met.extend(wrong);
    let met = distinct(met);
    if met.has_errors() {
        return Err(met.into());
    }
    app.show_warnings(&met);
    if rebuilt.snapshot.resources.len() == rebuilt.believed.len() {
        return Err(Diagnostic::error(
            "Nothing to make a state of",
            "Nothing of this configuration is there, so there is no state to write.",
        )
        .with_hint("Check that the configuration and its variables lead to where things are. If nothing was made yet, run apply.")
        .into());
    }
    Ok(rebuilt)
}

/// Shows what the next plan would be. That it can't be made keeps nobody from having the state back.
fn next_plan(app: &mut App, project: &Project, snapshot: &Snapshot, pool: &Arc<Pool>, options: &Options) {
    match plan(app, project, snapshot, pool, options) {
        Ok(planned) => {
            app.say("\nWith this state, the next plan is:\n");
            let text = plan_text(&planned.plan, &app.wiring.registry, &app.theme, PlanOptions::default());
            app.say(&text);
            app.show_warnings(&planned.plan.warnings);
        }
        Err(Stop::Because(problems)) => {
            let lowered = problems.into_iter().map(|mut d| {
                d.severity = Severity::Warning;
                d
            });
            app.say("\nWith this state, the next plan can't be made:\n");
            app.show_warnings(&lowered.collect());
        }
        Err(Stop::Code(_)) => {}
    }
}
