//! `apply`: plan, ask, and do it; or do what a saved plan says.

use std::sync::Arc;

use karmaform_engine::{CHECK_FAILED, Options, restore};
use karmaform_model::{Checked, Diagnostic, ModeOfPlan, Plan, Reason, Seal, Snapshot};

use crate::app::{App, Ended, Stop, VERSION};
use crate::applying::carry_out;
use crate::backend::open_backend;
use crate::confirming::confirm;
use crate::disk::{reason, write_private};
use crate::expanding::expand;
use crate::flags::{LockFlags, PlanningFlags, StateFlags, VariableFlags, ViewFlags, boolean};
use crate::planning::{Planned, bundle_for, go_on, halted, never_known, options, plan, plan_or_show, pool, show_plan, show_refreshed};
use crate::policies::{Overrides, advice, judge, overrides_of};
use crate::profile::{APPROVAL, ProfileFlags, profiled};
use crate::project::{Project, load_directory, load_if_any};
use crate::saved::{self, SavedPlan};
use crate::session::Session;
use crate::ui::deferred::count;
use crate::ui::plan::{Counts, counts, has_news};
use crate::ui::state::outputs_text;
use crate::ui::style::Tone;
use crate::wiring::DEFAULT_WORKSPACE;

/// Where a state goes that its backend would not take; Terraform's name for it.
const ERRORED: &str = "errored.tfstate";

/// Arguments of `apply`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// A saved plan
    #[arg(value_name = "PLANFILE")]
    pub(crate) file: Option<String>,
    #[command(flatten)]
    pub(crate) planning: PlanningFlags,
    /// Plan and apply again, showing each plan, until nothing is deferred
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(crate) until_done: bool,
    #[command(flatten)]
    pub(crate) how: How,
}

/// What apply, destroy and refresh share.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct How {
    /// Don't ask for approval
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(crate) auto_approve: bool,
    /// Confirm by its address what approval alone is not enough for, as restoring etcd; more than once for more
    #[arg(long, value_name = "ADDRESS", require_equals = true)]
    pub(crate) confirm: Vec<String>,
    #[command(flatten)]
    pub(crate) variables: VariableFlags,
    #[command(flatten)]
    pub(crate) state: StateFlags,
    #[command(flatten)]
    pub(crate) lock: LockFlags,
    #[command(flatten)]
    pub(crate) view: ViewFlags,
    #[command(flatten)]
    pub(crate) profile: ProfileFlags,
    /// Which of them it is
    #[arg(skip)]
    pub(crate) command: Command,
}

/// The command that was run: it ends in other words than another one that comes to the same plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Command {
    #[default]
    Apply,
    Destroy,
    Refresh,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    app.view(&args.how.view)?;
    profiled(app, &args.how.profile, "apply", |app| match &args.file {
        None => from_configuration(app, &args.planning, &args.how, args.until_done),
        Some(file) => from_file(app, file, args),
    })
}

/// Plans, asks, does; with `until_done` again and again, until nothing is deferred.
pub(crate) fn from_configuration(app: &mut App, planning: &PlanningFlags, how: &How, until_done: bool) -> Ended {
    if !how.auto_approve && how.view.json {
        return Err(not_approved("the answer is to be JSON"));
    }
    // As in Terraform: what does not hold keeps `refresh` from writing anything; `apply -refresh-only` warns.
    let options = Options { strict: how.command == Command::Refresh, ..options(app, planning)? };
    let ask = app.wants_input(how.view.input) && !app.lines.only;
    let load = if options.mode == ModeOfPlan::Destroy { load_if_any } else { load_directory };
    let mut project = load(app, &how.variables, ask)?.plannable(&app.wiring.registry)?;
    let open = open_backend(app, &project.config.settings, how.state.state.as_deref())?;
    let operation = if planning.refresh_only { "OperationTypeRefresh" } else { "OperationTypeApply" };
    let mut session = Session::exclusive(app, open, operation, &how.lock)?;
    let notes = session.notes().clone();
    app.show(&notes);
    let overrides = planning.policies.all();
    let ended = match until_done {
        false => planned_here(app, &mut project, &mut session, (&options, &overrides), how).map(|round| left(app, &round)),
        true => rounds(app, &mut project, &mut session, (options, &overrides), how),
    };
    session.close(app);
    ended
}

/// What a plan and its apply came to.
struct Round {
    code: i32,
    plan: Plan,
}

/// Says what is left to the next plan; gives the exit code.
fn left(app: &mut App, round: &Round) -> i32 {
    if let Some(count) = count(&round.plan).filter(|_| round.code == 0) {
        app.say(&format!("\n{count}: plan again to see what is left.\n"));
    }
    round.code
}

/// One plan after the other, until nothing is deferred. Each is made with what the one before has made, and each is asked about.
fn rounds(
    app: &mut App,
    project: &mut Project,
    session: &mut Session,
    (mut options, overrides): (Options, &Overrides),
    how: &How,
) -> Ended {
    let mut before = None;
    loop {
        let Round { code, plan } = planned_here(app, project, session, (&options, overrides), how)?;
        if code != 0 || plan.deferred.is_empty() {
            return Ok(code);
        }
        // What changes with every plan is no step on the way.
        if before.as_ref() == Some(&plan.deferred) || !has_news(&plan) {
            return Err(never_known(&plan).into());
        }
        go_on(&mut options, &plan);
        before = Some(plan.deferred);
        // The next plan is of another time.
        options.now = app.now_seconds();
        if let Some(texts) = &mut project.texts {
            Arc::make_mut(texts).context.now = options.now;
        }
        app.say("\nPlanning again, for what was deferred.\n");
    }
}

fn planned_here(
    app: &mut App,
    project: &mut Project,
    session: &mut Session,
    (options, overrides): (&Options, &Overrides),
    how: &How,
) -> Result<Round, Stop> {
    let pool = pool(app, project, bundle_for(options.mode))?;
    expand(app, project, &session.snapshot, &pool, options)?;
    let show = |app: &mut App, planned: &Planned| match how.command {
        Command::Refresh => show_refreshed(app, planned),
        Command::Apply | Command::Destroy => show_plan(app, planned, how.view.verbose),
    };
    let mut planned = plan_or_show(app, project, &session.snapshot, &pool, (options, &how.variables, &show), |_, _, _| Ok(()))?;
    let forbidden = judge(&project.config, &mut planned.plan, overrides, options.now);
    show(app, &planned);
    if forbidden.has_errors() {
        return Err(forbidden.into());
    }
    if has_news(&planned.plan) && !how.auto_approve {
        if !app.wants_input(how.view.input) {
            return Err(not_approved("input is off"));
        }
        let asked = app.now();
        let approved = approve(app, options.mode, &session.open.workspace);
        app.profile.phase(APPROVAL, asked, app.now());
        approved?;
        confirm(app, &planned.plan, &how.confirm, true)?;
        // Whoever was asked may have taken his time.
        let forbidden = judge(&project.config, &mut planned.plan, overrides, app.now_seconds());
        if forbidden.has_errors() {
            return Err(forbidden.into());
        }
    } else {
        confirm(app, &planned.plan, &how.confirm, false)?;
    }
    let code = execute(app, project, &planned, session, &pool, (options.parallelism, how.command))?;
    Ok(Round { code, plan: planned.plan })
}

fn not_approved(why: &str) -> Stop {
    Diagnostic::error("Plan not approved", format!("Nobody can be asked for approval here: {why}."))
        .with_hint("Give -auto-approve, or save a plan with plan -out=FILE, have it looked at, and apply the file.")
        .into()
}

fn from_file(app: &mut App, file: &str, args: &Args) -> Ended {
    if args.planning.were_given() {
        return Err(Diagnostic::error(
            "Can't set planning options when applying a saved plan",
            "A saved plan says what is done. -destroy, -refresh-only, -refresh, -target, -exclude and -replace belong to the command that plans.",
        )
        .into());
    }
    if args.until_done {
        let why = "A saved plan is applied as it is; what it puts off is for the next one.";
        return Err(Diagnostic::error("Flags that don't go together", why).with_hint("Run apply -until-done without a file.").into());
    }
    let Some(saved) = saved::read(app, file, &args.how.variables)? else {
        return Err(Diagnostic::error("Not a saved plan", format!("The file \"{file}\" was not written by plan -out."))
            .with_hint("To choose another directory use -chdir=DIR before the command; apply takes no directory.")
            .into());
    };
    if saved.plan.errored {
        let why = "Errors were met when it was made, so it is not whole.";
        return Err(Diagnostic::error("Cannot apply incomplete plan", why).with_hint("Plan again, once what it says is mended.").into());
    }
    let mut project = saved::load(app, &saved, &args.how.variables)?.readable()?;
    saved::check_given(&saved.plan, &project.config)?;
    let state = args.how.state.state.clone().or_else(|| saved.state.clone());
    let open = open_backend(app, &project.config.settings, state.as_deref())?;
    let mut session = Session::exclusive(app, open, "OperationTypeApply", &args.how.lock)?;
    let ended = planned_before(app, &mut project, &mut session, saved, args);
    session.close(app);
    ended
}

fn planned_before(app: &mut App, project: &mut Project, session: &mut Session, saved: SavedPlan, args: &Args) -> Ended {
    let flags = &args.planning;
    let (parallelism, overrides) = (usize::from(flags.parallelism.most), flags.policies.all());
    let notes = session.notes().clone();
    app.show(&notes);
    saved::check_fresh(&saved.plan, &session.snapshot.lineage, session.found)?;
    let pool = pool(app, project, bundle_for(saved.plan.mode))?;
    let mut saved = saved.plan;
    let replaced = saved.resources.iter().filter(|r| r.reason == Some(Reason::ReplaceByRequest)).map(|r| r.address.clone());
    let options = Options {
        strict: false,
        tries: true,
        takes_along: true,
        lenient: false,
        mode: saved.mode,
        targets: saved.targets.clone(),
        excludes: saved.excludes.clone(),
        replace: replaced.collect(),
        refresh: true,
        parallelism,
        now: saved.created,
        tool_version: VERSION.to_owned(),
    };
    expand(app, project, &session.snapshot, &pool, &options)?;
    let fresh = plan(app, project, &session.snapshot, &pool, &options)?;
    let mut wrong = restore(&mut saved, &fresh.plan);
    // It was judged when it was made; a window may have closed since, and a member may be down.
    saved.risks.clone_from(&fresh.plan.risks);
    let mut said = overrides_of(&saved);
    said.extend(overrides);
    wrong.extend(judge(&project.config, &mut saved, &said, app.now_seconds()));
    wrong.extend(advice(&saved).cloned());
    if !has_news(&saved) && Checked::are_alike(&saved.checks, &session.snapshot.checks) {
        // An apply that does nothing judges nothing, and what does not hold is told by it, too.
        wrong.extend(fresh.plan.warnings.iter().filter(|w| w.summary == CHECK_FAILED).cloned());
    }
    if wrong.has_errors() {
        return Err(wrong.into());
    }
    app.show_warnings(&wrong);
    confirm(app, &saved, &args.how.confirm, false)?;
    // What a dead run left was written to the state just now; the plan was made with it in mind.
    (saved.lineage, saved.serial) = (fresh.plan.lineage.clone(), fresh.plan.serial);
    // Who reads events has not seen the plan.
    app.tell(|stream| stream.changes(&saved, false));
    let planned = Planned { plan: saved, wrong: fresh.wrong, graph: fresh.graph };
    let code = execute(app, project, &planned, session, &pool, (parallelism, Command::Apply))?;
    Ok(left(app, &Round { code, plan: planned.plan }))
}

fn execute(
    app: &mut App,
    project: &Project,
    planned: &Planned,
    session: &mut Session,
    pool: &std::sync::Arc<karmaform_engine::Pool>,
    (parallelism, command): (usize, Command),
) -> Ended {
    session.begin(app)?;
    if command != Command::Refresh {
        app.say("\n");
    }
    let mut outcome = carry_out(app, project, planned, session, pool, parallelism);
    // What a refresh was about its plan has said.
    if command != Command::Refresh {
        outcome.diagnostics.extend(of_a_part(&planned.plan));
    }
    app.show(&outcome.diagnostics);
    if outcome.unsaved {
        keep(app, &outcome.snapshot, &*session.open.seal);
    }
    if outcome.interrupted {
        return Err(halted().into());
    }
    if !outcome.is_success() {
        return Ok(1);
    }
    let mut counts = counts(&planned.plan);
    counts.change = counts.change.saturating_sub(outcome.unchanged);
    let Counts { import, add, change, destroy, forget } = counts;
    let imported = if import > 0 { format!("{import} imported, ") } else { String::new() };
    let forgotten = if forget > 0 { format!(", {forget} forgotten") } else { String::new() };
    // As Terraform: by the command, and not by what the plan does. Tools look for the line that goes with the command they ran.
    let (message, operation) = if command == Command::Destroy {
        (format!("Destroy complete! Resources: {destroy} destroyed{forgotten}."), "destroy")
    } else {
        (format!("Apply complete! Resources: {imported}{add} added, {change} changed, {destroy} destroyed{forgotten}."), "apply")
    };
    app.tell(|stream| {
        // As Terraform: `refresh` does not count, here and below, and `destroy` has no outputs to tell.
        let summary = if command == Command::Refresh { String::new() } else { stream.summary(&message, counts, operation) };
        let outputs = if command == Command::Destroy { String::new() } else { stream.outputs(&session.snapshot.outputs) };
        summary + &outputs
    });
    if command != Command::Refresh {
        app.say(&format!("\n{}\n", app.theme.strong(Tone::Add, &message)));
    }
    if !session.snapshot.outputs.is_empty() && command != Command::Destroy {
        let outputs = outputs_text(&session.snapshot.outputs, &app.theme);
        app.say(&format!("\n{}\n\n{outputs}", app.theme.strong(Tone::Add, "Outputs:")));
    }
    Ok(0)
}

/// What is said after an apply of a part of everything.
fn of_a_part(plan: &Plan) -> Option<Diagnostic> {
    let option = match (plan.targets.is_empty(), plan.excludes.is_empty()) {
        (false, _) => "-target",
        (_, false) => "-exclude",
        _ => return None,
    };
    let detail = format!("The plan was made with {option}, so other changes may have been left out, and outputs may be those of before.");
    let warning = Diagnostic::warning("Applied changes may be incomplete", detail);
    Some(warning.with_hint("Run plan without it to see what else is to be done."))
}

/// Keeps a state that its backend would not take. The journal has it too, but a pipeline's directory may be gone before anybody looks.
fn keep(app: &mut App, state: &Snapshot, seal: &dyn Seal) {
    let mut state = state.clone();
    state.serial = state.serial.saturating_add(1);
    VERSION.clone_into(&mut state.tool_version);
    let how = if seal.encrypts() { "encrypted as it always is" } else { "secrets and all" };
    let written = state.to_stored(seal).map_err(|e| e.to_string());
    let kept = match written.and_then(|bytes| write_private(&app.directory.join(ERRORED), &bytes).map_err(|e| reason(&e))) {
        Ok(()) => Diagnostic::warning("State kept in a file", format!("The state as it is now is in {ERRORED}, {how}.")).with_hint(
            format!("In this directory the next run takes it from the journal. From anywhere else: karmaform state push {ERRORED}"),
        ),
        Err(e) => Diagnostic::warning("State not kept in a file", format!("{ERRORED} can't be written: {e}."))
            .with_hint("The journal in this directory has it: run plan here."),
    };
    app.show(&kept.into());
}

/// Only `yes` will do.
fn approve(app: &mut App, mode: ModeOfPlan, workspace: &str) -> Result<(), Stop> {
    let product = app.theme.product;
    let place = if workspace == DEFAULT_WORKSPACE { String::new() } else { format!(" in workspace \"{workspace}\"") };
    let (question, explanation, refusal) = match mode {
        ModeOfPlan::Normal => (
            format!("Do you want to perform these actions{place}?"),
            format!("  {product} will perform the actions described above.\n  Only 'yes' will be accepted to approve."),
            "Apply cancelled.",
        ),
        ModeOfPlan::Destroy => (
            format!("Do you really want to destroy all resources{place}?"),
            format!(
                "  {product} will destroy all your managed infrastructure, as shown above.\n  There is no undo. Only 'yes' will be accepted to confirm."
            ),
            "Destroy cancelled.",
        ),
        ModeOfPlan::RefreshOnly => (
            format!("Would you like to update the state{place} to reflect these detected changes?"),
            format!(
                "  {product} will write these changes to the state without modifying any real infrastructure.\n  There is no undo. Only 'yes' will be accepted to confirm."
            ),
            "Apply cancelled.",
        ),
    };
    if app.answer(&question, &explanation).as_deref() == Some("yes") {
        return Ok(());
    }
    app.output.print(&format!("\n{refusal}\n"));
    Err(Stop::Code(1))
}
