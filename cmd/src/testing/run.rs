//! One run of a test file: its configuration with its values, a plan, an apply if it wants one, and what is asserted of that.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_engine::{CHECK_FAILED, CHECK_UNKNOWN, Options};
use karmaform_lang::{Config, Run, SourceFile, TestFile};
use karmaform_model::{Deferred, Diagnostic, Diagnostics, Mode, ModeOfPlan, Object, Plan};

use super::expected::{Expected, Known};
use super::file::Suite;
use super::mock::{Seeds, mocked};
use super::place::{Last, Place};
use super::stages::{Stage, applied, expand, planned, pool};
use super::stand_ins::overridden;
use super::values::{Instances, outputs};
use super::{Ended, Shown, Status};
use crate::app::{App, Stop, VERSION};
use crate::planning::{Planned, go_on, halted, never_known};
use crate::policies::{Overrides, judge};
use crate::project::{HERE, Loading, Project, load_sources, texts};
use crate::ui::json::testing::{drawn_plan, drawn_state};
use crate::ui::plan::{PlanOptions, plan_text};
use crate::ui::state::state_text;

/// What the runs of a file share.
pub(super) struct Scene<'a> {
    pub(super) source: &'a SourceFile,
    pub(super) tests: &'a TestFile,
    pub(super) suite: &'a Suite,
    /// The configuration under test with the values that the file gives.
    pub(super) base: Config,
    /// What is given to variables from outside of the file.
    pub(super) given: Object,
    /// States by the directory of their configuration.
    pub(super) places: BTreeMap<String, Place>,
    /// What is made up is made of this.
    pub(super) seed: String,
    /// Outputs of earlier runs.
    pub(super) ran: Object,
}

/// Does all of it.
pub(super) fn run(app: &mut App, scene: &mut Scene<'_>, run: &Run) -> Ended {
    let mut said = Diagnostics::new();
    let mut shown = Shown::Nothing;
    let mut summary = String::new();
    let status = match attempt(app, scene, run, &mut said, (&mut shown, &mut summary)) {
        Ok(status) => status,
        Err(Stop::Because(diagnostics)) => {
            said.extend(diagnostics);
            Status::Errored
        }
        Err(Stop::Code(_)) => Status::Errored,
    };
    Ended { status, summary, diagnostics: said, shown }
}

fn attempt(
    app: &mut App,
    scene: &mut Scene<'_>,
    run: &Run,
    said: &mut Diagnostics,
    (shown, summary): (&mut Shown, &mut String),
) -> Result<Status, Stop> {
    let directory = directory_of(run);
    let mut project = load(app, scene, run, &directory)?;
    said.extend(scene.tests.overrides_of_nothing(run, &project.config));
    let (mut expected, wrong) = Expected::new(run, &project.config);
    said.extend(wrong);
    let (left, taken) = expected.take(project.diagnostics.clone(), &Known { config: &project.config, checks: &[], is_last: false });
    said.extend(left);
    if said.has_errors() {
        if run.is_plan && !project.config.is_incomplete() {
            said.extend(expected.missing());
        }
        return Ok(Status::Errored);
    }
    if taken.has_errors() {
        // A value that is refused, as was expected: there is nothing to plan.
        said.extend(if run.is_plan { expected.missing() } else { Expected::too_early(&taken) });
        return Ok(if said.has_errors() { Status::Errored } else { Status::Passed });
    }
    let mut options = options(app, run, scene.suite.parallelism);
    let seed = (app.wiring.ids)();
    let seeds = Seeds { file: &scene.seed, run: &seed };
    let registry = mocked(&app.wiring.registry, &scene.tests.mocks, &project.config.providers, seeds);
    let registry = Arc::new(overridden(registry, scene.tests, run, &project.config.providers, seeds));
    let pool = pool(app, &project, &registry, &options)?;
    let used = scene.places.values().map(|p| p.used).max().unwrap_or_default() + 1;
    let place = scene.places.entry(directory).or_insert_with(|| Place::new((app.wiring.ids)()));
    place.used = used;
    let mut before: Option<Vec<Deferred>> = None;
    let mut is_early = false;
    let planned = loop {
        if let Err(wrong) = expand(app, &mut project, &registry, &pool, &place.state, &options) {
            said.extend(wrong);
            break None;
        }
        let stage = Stage { project: &project, registry: &registry, pool: &pool, may_halt: true };
        let (planned, mut met) = planned(app, &stage, &place.state, &options);
        let Some(mut planned) = planned else {
            said.extend(expected.take(met, &Known { config: &project.config, checks: &[], is_last: false }).0);
            break None;
        };
        met.extend(judge(&project.config, &mut planned.plan, &Overrides::new(), options.now));
        met.extend(std::mem::take(&mut planned.plan.warnings));
        let judges_again = !run.is_plan && !is_idle(&planned.plan);
        let known = Known { config: &project.config, checks: &planned.plan.checks, is_last: !judges_again };
        let is_judged_again =
            |d: &Diagnostic| judges_again && ([CHECK_FAILED, CHECK_UNKNOWN].contains(&d.summary.as_str()) || known.is_of_check(d));
        let (left, taken) = expected.take(met.into_iter().filter(|d| !is_judged_again(d)).collect(), &known);
        said.extend(left);
        if !run.is_plan && before.is_none() && !said.has_errors() {
            let early = Expected::too_early(&taken);
            is_early = early.has_errors();
            said.extend(early);
        }
        // What was expected to fail could only do so once something was applied.
        if before.is_some() && taken.has_errors() {
            break Some(planned);
        }
        if said.has_errors() {
            break None;
        }
        if !run.is_plan {
            apply(app, &stage, &planned, place, &mut expected, scene.suite.parallelism, said);
        }
        // What an apply run asserts is about all of it, so it goes on until nothing is put off.
        let is_refresh = options.mode == ModeOfPlan::RefreshOnly;
        if run.is_plan || is_refresh || said.has_errors() || planned.plan.deferred.is_empty() {
            break Some(planned);
        }
        if is_idle(&planned.plan) || before.as_ref() == Some(&planned.plan.deferred) {
            said.push(never_known(&planned.plan));
            break Some(planned);
        }
        go_on(&mut options, &planned.plan);
        before = Some(planned.plan.deferred);
    };
    let Some(planned) = planned else {
        // What was made before it failed is taken away again all the same.
        if before.is_some() {
            place.last = Some(Last { run: run.name.clone(), project, registry, sources: app.sources.clone() });
        }
        if !is_early && !app.interrupt.is_set() && (run.is_plan || before.is_some()) {
            said.extend(expected.missing());
        }
        return Ok(Status::Errored);
    };
    said.extend(expected.missing());
    if scene.suite.verbose {
        *shown = match (run.is_plan, app.lines.only) {
            (true, true) => Shown::Plan(drawn_plan(&planned.plan, &project.config, &place.state, &registry)),
            (true, false) => Shown::Text(plan_text(&planned.plan, &registry, &app.theme, PlanOptions { verbose: false })),
            (false, true) => Shown::State(drawn_state(&place.state, &registry)),
            (false, false) => Shown::Text(state_text(&place.state, &registry, &app.theme)),
        };
    }
    let status = if said.has_errors() {
        Status::Errored
    } else {
        let (status, line) = asserts(scene, run, &project, &planned, &registry, said);
        *summary = line;
        status
    };
    if !run.is_plan
        && let Some(place) = scene.places.get_mut(&directory_of(run))
    {
        place.last = Some(Last { run: run.name.clone(), project, registry, sources: app.sources.clone() });
    }
    Ok(status)
}

/// Where its configuration stands.
pub(super) fn directory_of(run: &Run) -> String {
    run.module.as_ref().map_or_else(|| HERE.to_owned(), |(source, _)| plain(source))
}

/// A path as it is compared: `./a/` is `a`.
fn plain(source: &str) -> String {
    let plain = source.trim_start_matches("./").trim_end_matches('/');
    if plain.is_empty() { HERE.to_owned() } else { plain.to_owned() }
}

/// What is said of a run whose configuration is nowhere.
pub(super) fn no_directory(app: &App, run: &Run) -> Option<Diagnostic> {
    let (source, span) = run.module.as_ref().filter(|_| !app.directory.join(directory_of(run)).is_dir())?;
    let error = Diagnostic::error("Module can't be read", format!("There is no directory \"{source}\"."));
    let hint = "The path is relative to the directory of the configuration, also in a test that stands below it.";
    Some(error.with_span(Some(*span)).with_hint(hint))
}

/// The configuration with all values that are given to it.
fn load(app: &mut App, scene: &Scene<'_>, run: &Run, directory: &str) -> Result<Project, Stop> {
    let missing = no_directory(app, run);
    if run.wrong.has_errors() || missing.is_some() {
        return Err(run.wrong.iter().cloned().chain(missing).collect::<Diagnostics>().into());
    }
    let now = app.now_seconds();
    let (sources, mut inputs) = texts(app, directory, scene.source, &scene.suite.variables)?;
    let mut wrong = scene.tests.variables(&mut inputs, &scene.base, &scene.given, Some(run));
    if !wrong.has_errors() {
        let names = scene.tests.names(&scene.base, &scene.given);
        wrong.extend(run.variables(&mut inputs, &scene.base, &names, &scene.ran));
    }
    scene.tests.modules(run, &mut inputs);
    if wrong.has_errors() {
        return Err(wrong.into());
    }
    let files = sources.files.len();
    if directory != HERE {
        inputs = inputs.for_another();
    }
    load_sources(app, sources, files, inputs, Loading { ask: false, now, directory })
}

fn options(app: &App, run: &Run, parallelism: usize) -> Options {
    Options {
        mode: if run.options.refresh_only { ModeOfPlan::RefreshOnly } else { ModeOfPlan::Normal },
        targets: run.options.targets.clone(),
        replace: run.options.replace.clone(),
        refresh: run.options.refresh,
        parallelism,
        now: app.now_seconds(),
        tool_version: VERSION.to_owned(),
        ..Options::default()
    }
}

/// True if an apply of this does nothing at all, and judges nothing anew.
fn is_idle(plan: &Plan) -> bool {
    plan.steps.is_empty() && plan.outputs.is_empty() && plan.moved.is_empty() && plan.mode != ModeOfPlan::RefreshOnly
}

fn apply(
    app: &App,
    stage: &Stage<'_>,
    planned: &Planned,
    place: &mut Place,
    expected: &mut Expected,
    parallelism: usize,
    said: &mut Diagnostics,
) {
    let changes = planned.plan.resources.iter().filter(|r| r.address.mode == Mode::Managed && r.change.after().is_some());
    app.interrupt.leaves(changes.map(|r| r.address.to_string()));
    let outcome = applied(app, stage, planned, &place.state, parallelism);
    let is_success = outcome.is_success();
    place.state = outcome.snapshot;
    let known = Known { config: &stage.project.config, checks: &place.state.checks, is_last: true };
    let (left, taken) = expected.take(outcome.diagnostics, &known);
    said.extend(left);
    if outcome.interrupted {
        said.push(halted());
    } else if !is_success && !said.has_errors() && !taken.has_errors() {
        said.push(Diagnostic::error("Not everything was applied", "Some steps were not carried out."));
    }
}

/// How many asserts do not hold, and what the first of them says.
fn in_one_line(messages: &[String], all: usize) -> String {
    let Some(first) = messages.first() else { return String::new() };
    let word = if messages.len() > 1 { ", including" } else { "" };
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} of {all} assertions failed{word}: {first}", messages.len())
}

/// What is asserted of what is there now, and in one line what of that does not hold. What this run gives to later ones is kept.
fn asserts(
    scene: &mut Scene<'_>,
    run: &Run,
    project: &Project,
    planned: &Planned,
    registry: &karmaform_model::Registry,
    said: &mut Diagnostics,
) -> (Status, String) {
    let Some(place) = scene.places.get(&directory_of(run)) else { return (Status::Errored, String::new()) };
    let instances = Instances::new(&planned.plan, &place.state, registry, !run.is_plan);
    let given = run.names(&scene.base, scene.tests.names(&scene.base, &scene.given), &scene.ran);
    let outputs = outputs(&project.config, &instances, &planned.plan);
    let judged = run.judge(&project.config, &instances, &outputs, &given, &scene.ran);
    let status = match (judged.wrong.has_errors(), judged.failed.has_errors()) {
        (true, _) => Status::Errored,
        (false, true) => Status::Failed,
        (false, false) => Status::Passed,
    };
    said.extend(judged.wrong);
    said.extend(judged.failed);
    scene.ran.insert(run.name.clone(), outputs.into());
    (status, in_one_line(&judged.messages, run.asserts_count()))
}
