//! `drift`: what is not as it should be. Only looks: takes no lock, writes nothing but the reports that are asked for, asks nobody.
//!
//! Exit codes: 0 all is as it should be, 2 drift, 3 nothing but decay, 1 an error, a signal, or something could not be looked at.

use std::sync::Arc;

use karmaform_engine::{World, relocate};
use karmaform_model::{ModeOfPlan, Snapshot};

use crate::app::{App, Ended, Stop};
use crate::backend::open_backend;
use crate::bundle::{Use, use_bundle};
use crate::disk::in_work_tree;
use crate::distinct::distinct;
use crate::drift::report::{Around, OFFERED, report, text};
use crate::drift::{Cut, Looked, Past, Rule, Sight, Told, apply_rules, findings, look, look_for, news, noted, past, rules_of};
use crate::expanding::expanded;
use crate::flags::{ParallelismFlags, StateFlags, VariableFlags, boolean};
use crate::planning::{addresses, halted, looking, waiting};
use crate::profile::{ProfileFlags, profiled};
use crate::project::load_directory;
use crate::report::{Format, Reads, Wanted, reads, wanted, write};
use crate::runtime::UntilSignal;
use crate::trust::use_trust;
use crate::view::StateView;

/// Arguments of `drift`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Write a report: human, json, junit, sarif, markdown, prometheus, html, slack or alertmanager. May be repeated
    #[arg(long, value_name = "FORMAT=FILE", action = clap::ArgAction::Append, value_parser = wanted(OFFERED))]
    report: Vec<Wanted>,
    /// The JSON report of an earlier run: what is not in it is new. It may be written anew by -report=json=FILE; if there is none, all is new
    #[arg(long, value_name = "FILE")]
    previous: Option<String>,
    /// What does not matter: ADDRESS, with all below it, or ADDRESS::ATTRIBUTE, with * for any text. May be repeated
    #[arg(long, value_name = "PATTERN", action = clap::ArgAction::Append)]
    ignore: Vec<String>,
    /// As JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    json: bool,
    /// Only this resource and what it needs. May be repeated
    #[arg(long, value_name = "ADDRESS", action = clap::ArgAction::Append)]
    target: Vec<String>,
    /// Nobody is ever asked; taken for the sake of scripts
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    input: bool,
    #[command(flatten)]
    parallelism: ParallelismFlags,
    #[command(flatten)]
    variables: VariableFlags,
    #[command(flatten)]
    state: StateFlags,
    #[command(flatten)]
    profile: ProfileFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    profiled(app, &args.profile, "drift", |app| told(app, args))
}

fn told(app: &mut App, args: &Args) -> Ended {
    // The first signal ends the look, and what was seen by then is told.
    let _asking = app.interrupt.ask_first();
    // A wrong file is told before anybody is asked anything.
    let past = args.previous.as_ref().map(|file| past(&app.directory.join(file), file)).transpose();
    let (past, seen) = match past {
        Ok(past) => (past, seen(app, args)),
        Err(wrong) => (None, Err(wrong.into())),
    };
    match seen {
        Ok((mut told, reads)) => {
            if let Some(past) = past {
                news(&mut told, past);
            }
            let folder = in_work_tree(&app.directory);
            let around = Around { reads: &reads, sources: &app.sources, folder: &folder };
            write(app, &args.report, |format| report(format, &told, &around))?;
            let shown = if args.json { report(Format::Json, &told, &around) } else { text(&told, &app.sources, &app.theme) };
            app.output.print(&shown);
            Ok(told.code())
        }
        Err(stop) => Err(unseen(app, args, past, stop)),
    }
}

/// An error, or a signal, came before anything was looked at: the reports say that, or else the last ones would be taken for how things are.
fn unseen(app: &mut App, args: &Args, past: Option<Vec<Past>>, stop: Stop) -> Stop {
    let Stop::Because(mut why) = stop else { return stop };
    let real = |file: &String| {
        let path = app.directory.join(file);
        std::fs::canonicalize(&path).unwrap_or(path)
    };
    // What could not be read as what was told last may still be that.
    let kept = args.previous.as_ref().filter(|_| past.is_none()).map(real);
    let written: Vec<Wanted> = args.report.iter().filter(|w| Some(real(&w.file)) != kept).cloned().collect();
    let told = Told::blind(why.clone(), past, app.now_seconds());
    let report = |format| report(format, &told, &Around { reads: &Reads::new(), sources: &app.sources, folder: "" });
    if let Err(Stop::Because(more)) = write(app, &written, report) {
        why.extend(more);
    }
    if args.json {
        let shown = report(Format::Json);
        app.output.print(&shown);
    }
    Stop::Because(why)
}

/// What is not as it should be, and which blocks read which data sources.
fn seen(app: &mut App, args: &Args) -> Result<(Told, Reads), Stop> {
    let options = karmaform_engine::Options {
        mode: ModeOfPlan::Normal,
        targets: addresses("-target", &args.target)?,
        parallelism: usize::from(args.parallelism.most),
        now: app.now_seconds(),
        tool_version: crate::app::VERSION.to_owned(),
        ..karmaform_engine::Options::default()
    };
    let mut project = load_directory(app, &args.variables, false)?.readable()?;
    let open = open_backend(app, &project.config.settings, args.state.state.as_deref())?;
    use_trust(app, &project, Use::Perhaps)?;
    use_bundle(app, &project, Use::Perhaps)?;
    let view = StateView::of(open);
    let (state, mut notes) = view.read(app)?;
    let catalog = Arc::clone(app.wiring.registry.catalog());
    let clock = Arc::clone(&app.wiring.clock);
    if let Some(texts) = project.texts.take() {
        // With nothing in hand that could change anything, as all that drift does.
        let pool = karmaform_engine::Pool::only_looking(Arc::clone(&catalog), project.config.providers.clone());
        let options = karmaform_engine::Options { tries: false, lenient: true, ..options.clone() };
        let world = World { config: &project.config, registry: &catalog, state: &state, pool: &pool, runtime: clock.as_ref(), hands: None };
        let began = app.now();
        let expanded = looking(app, expanded(&world, &texts, &options))?;
        app.profile.phase("expand", began, app.now());
        app.profile.ask(expanded.observed.asked());
        project.take(expanded)?;
    }
    let (state, wrong) = relocate(&project.config, &state);
    notes.extend(wrong);
    let now = options.now;
    if app.interrupt.is_set() {
        return Err(halted().into());
    }
    let clock = Arc::new(UntilSignal { clock, interrupt: app.interrupt.clone() });
    let sight = Sight { catalog: Arc::clone(&catalog), config: &project.config, state: &state, clock, options };
    let mut looked = waiting(app, look(&sight))?;
    app.profile.phases.append(&mut looked.phases);
    for_backups(app, &sight, &state.state, &mut looked);
    app.profile.ask(&looked.asked);
    let mut told = findings(&catalog, &project.config, &state.state, looked, now);
    let rules: Vec<Rule> = args.ignore.iter().map(|text| Rule::from_flag(text)).chain(rules_of(&project.config)).collect();
    apply_rules(&mut told.findings, &rules);
    notes.extend(project.diagnostics.clone());
    notes.extend(std::mem::take(&mut told.notes));
    told.notes = distinct(notes);
    Ok((told, reads(&project.config)))
}

/// Whether backups are where they were put. A signal ends this as well.
fn for_backups(app: &mut App, sight: &Sight<'_>, state: &Snapshot, looked: &mut Looked) {
    let noted = noted(looked, state, &sight.catalog);
    if noted.is_empty() || looked.cut.is_some() {
        return;
    }
    let began = app.now();
    let (environment, home) = (app.wiring.environment.clone(), app.wiring.home.clone());
    let (now, clock) = (app.now_seconds(), Arc::clone(&sight.clock));
    let is_cut = waiting(app, async {
        tokio::select! {
            () = look_for(noted, looked, (&environment, home.as_deref()), now) => false,
            () = clock.enough() => true,
        }
    });
    looked.cut = is_cut.then_some(Cut::Backups);
    app.profile.phase("look for backups", began, app.now());
}
