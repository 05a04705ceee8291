//! From a configuration and a state to a plan: what plan, apply, destroy, refresh and status share.

use std::convert::Infallible;
use std::sync::Arc;

use karmaform_engine::{
    CHECK_FAILED, Graph, Options, Pool, Relocated, World, graph, observe_again, plan as decide, relocate, without_deferred,
};
use karmaform_lang::{MISSING_VARIABLE, OUTPUT_PRECONDITION};
use karmaform_model::{Address, Diagnostic, Diagnostics, Mode, ModeOfPlan, Plan, Registry, Snapshot};

use crate::app::{App, Stop, VERSION};
use crate::bundle::{Use, use_bundle};
use crate::distinct::distinct;
use crate::flags::{PlanningFlags, VariableFlags};
use crate::project::{Project, load_for_any_values};
use crate::runtime::pause;
use crate::trust::use_trust;
use crate::ui::deferred::{name, open, reason};
use crate::ui::live::{NO_SPINNER, spinner};
use crate::ui::plan::{PlanOptions, plan_text, refreshed_text};

/// How often a terminal is redrawn, in milliseconds.
const FRAME: u64 = 120;
/// So many frames pass before anything is said: most looks are over sooner.
const PATIENCE: u64 = 4;

/// A plan with what applying it needs.
pub(crate) struct Planned {
    /// The plan; its warnings are all that were met on the way.
    pub(crate) plan: Plan,
    /// What kept it from its end, if anything did: it is then to be shown only.
    pub(crate) wrong: Diagnostics,
    /// What depends on what.
    pub(crate) graph: Graph,
}

impl Planned {
    /// Itself, if nothing kept it from its end.
    ///
    /// # Errors
    /// What did, with the warnings that were met.
    pub(crate) fn whole(self) -> Result<Self, Stop> {
        if self.wrong.is_empty() {
            return Ok(self);
        }
        let mut all = self.plan.warnings;
        all.extend(self.wrong);
        Err(all.into())
    }
}

/// Shows a plan, to people and to programs.
pub(crate) fn show_plan(app: &mut App, planned: &Planned, verbose: bool) {
    app.tell(|stream| stream.plan(&planned.plan));
    if !app.lines.only {
        let text = plan_text(&planned.plan, &app.wiring.registry, &app.theme, PlanOptions { verbose });
        app.say(&text);
    }
    app.show_warnings(&planned.plan.warnings);
}

/// Shows what `refresh` finds, to people and to programs. What a `check` says is told at its end.
pub(crate) fn show_refreshed(app: &mut App, planned: &Planned) {
    let plan = &planned.plan;
    app.tell(|stream| stream.refreshed(plan));
    if !app.lines.only {
        let text = refreshed_text(plan, &app.wiring.registry, &app.theme);
        app.say(&text);
    }
    let has_end = planned.wrong.is_empty();
    let told = plan.warnings.iter().filter(|w| !has_end || w.summary != CHECK_FAILED).cloned().collect();
    app.show_warnings(&told);
}

/// The options that the flags say.
///
/// # Errors
/// For flags that don't go together, and addresses that are none.
pub(crate) fn options(app: &App, flags: &PlanningFlags) -> Result<Options, Stop> {
    let mode = match (flags.destroy, flags.refresh_only) {
        (true, true) => {
            return Err(Diagnostic::error("Flags that don't go together", "-destroy and -refresh-only ask for different plans.").into());
        }
        (true, false) => ModeOfPlan::Destroy,
        (false, true) => ModeOfPlan::RefreshOnly,
        (false, false) => ModeOfPlan::Normal,
    };
    if flags.refresh_only && !flags.refresh {
        return Err(
            Diagnostic::error("Flags that don't go together", "-refresh-only is all about looking, which -refresh=false forbids.").into()
        );
    }
    if mode != ModeOfPlan::Normal && !flags.replace.is_empty() {
        return Err(Diagnostic::error("Flags that don't go together", "-replace is for plans that make something.").into());
    }
    if !flags.target.is_empty() && !flags.exclude.is_empty() {
        let why = "-target says what a plan is about, and -exclude what it is not about.";
        return Err(Diagnostic::error("Flags that don't go together", why).with_hint("Give one of the two.").into());
    }
    Ok(Options {
        strict: false,
        tries: true,
        takes_along: true,
        lenient: false,
        mode,
        targets: addresses("-target", &flags.target)?,
        excludes: addresses("-exclude", &flags.exclude)?,
        replace: resources("-replace", &flags.replace)?,
        refresh: flags.refresh,
        parallelism: usize::from(flags.parallelism.most),
        now: app.now_seconds(),
        tool_version: VERSION.to_owned(),
    })
}

/// Addresses as given with a flag.
///
/// # Errors
/// All that are none.
pub(crate) fn addresses(flag: &str, texts: &[String]) -> Result<Vec<Address>, Stop> {
    let mut found = Vec::new();
    let mut wrong = Diagnostics::new();
    for text in texts {
        match without_blanks(text).parse::<Address>() {
            Ok(address) => match address.reserved_word() {
                Some(word) => {
                    let detail = format!("The value of {flag}: \"{text}\" is not a resource address: \"{word}\" is a reserved word.");
                    wrong.push(Diagnostic::error("Invalid address", detail).with_hint("Give a resource, a part of a composite, or a module."));
                }
                None => found.push(address),
            },
            Err(error) => wrong.push(
                Diagnostic::error("Invalid address", format!("The value of {flag}: {error}."))
                    .with_hint("Addresses look like ssh_file.motd, ssh_file.motd[\"a\"], etcd_cluster.main/member[\"a\"]/unit or module.site[\"a\"]. Quote them for the shell."),
            ),
        }
    }
    if wrong.is_empty() { Ok(found) } else { Err(wrong.into()) }
}

/// An address without the blanks that may stand around what is in it, as in ` a.b[ 0 ] `.
fn without_blanks(text: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut tight = String::with_capacity(text.len());
    let (mut is_quoted, mut is_escaped, mut is_apart) = (false, false, false);
    for c in text.chars() {
        if !is_quoted && matches!(c, ' ' | '\t') {
            is_apart = true;
            continue;
        }
        // Two names stay two.
        if is_apart && is_name(c) && tight.ends_with(is_name) {
            tight.push(' ');
        }
        is_apart = false;
        is_quoted = if c == '"' && !is_escaped { !is_quoted } else { is_quoted };
        is_escaped = is_quoted && c == '\\' && !is_escaped;
        tight.push(c);
    }
    tight
}

/// The same where a whole module, or a data source, is none that will do.
///
/// # Errors
/// All that are none.
fn resources(flag: &str, texts: &[String]) -> Result<Vec<Address>, Stop> {
    let found = addresses(flag, texts)?;
    let modules = found.iter().filter(|a| a.is_module()).map(|module| {
        Diagnostic::error("Invalid address", format!("The value of {flag} is a whole module, {module}, and should be one resource."))
            .with_hint(format!("Give each resource by itself: {flag}='{module}.TYPE.NAME'."))
    });
    let data = found.iter().filter(|a| a.mode == Mode::Data).map(|source| {
        Diagnostic::error("Invalid address", format!("The value of {flag} is a data source, {source}, and should be a resource."))
            .with_hint("A data source is read with each plan, and there is nothing to be made anew.")
    });
    let wrong: Diagnostics = modules.chain(data).collect();
    if wrong.is_empty() { Ok(found) } else { Err(wrong.into()) }
}

/// How much a plan of this mode needs the bundle.
pub(crate) fn bundle_for(mode: ModeOfPlan) -> Use {
    if mode == ModeOfPlan::Normal { Use::Certain } else { Use::Perhaps }
}

/// Open connections for a configuration, whose bundle and authorities are in use from then on.
///
/// # Errors
/// If the bundle or the authorities can't be read, and are needed for certain.
pub(crate) fn pool(app: &App, project: &Project, bundle: Use) -> Result<Arc<Pool>, Stop> {
    use_trust(app, project, bundle)?;
    use_bundle(app, project, bundle)?;
    Ok(Pool::new(Arc::clone(app.wiring.registry.catalog()), project.config.providers.clone()))
}

/// Looks at the world and decides, once more for a plan that was told of before.
///
/// # Errors
/// Everything that keeps a plan from being made.
pub(crate) fn plan(app: &mut App, project: &Project, state: &Snapshot, pool: &Arc<Pool>, options: &Options) -> Result<Planned, Stop> {
    let registry = Arc::clone(&app.wiring.registry);
    plan_as_far(app, project, &registry, state, pool, options, false)?.whole()
}

/// How a plan that could not be made whole is shown.
pub(crate) type Show<'a> = dyn Fn(&mut App, &Planned) + 'a;

/// A plan that is to be shown: where it can't be made whole, the part that could be is shown, as `show` does it, and given up. As in Terraform
/// that is not shown where something is wrong as it is written.
///
/// # Errors
/// Everything that keeps a plan from being made. `keep` is given the part all the same, and whether that is wrong as it is written.
pub(crate) fn plan_or_show(
    app: &mut App,
    project: &Project,
    state: &Snapshot,
    pool: &Arc<Pool>,
    (options, variables, show): (&Options, &VariableFlags, &Show<'_>),
    keep: impl FnOnce(&mut App, &Plan, bool) -> Result<(), Stop>,
) -> Result<Planned, Stop> {
    let registry = Arc::clone(&app.wiring.registry);
    let planned = plan_as_far(app, project, &registry, state, pool, options, true)?;
    if planned.wrong.is_empty() {
        return Ok(planned);
    }
    let as_written = is_wrong_as_written(app, variables);
    if as_written {
        app.show_warnings(&planned.plan.warnings);
    } else {
        show(app, &planned);
    }
    let mut wrong = planned.wrong;
    if let Err(Stop::Because(more)) = keep(app, &planned.plan, as_written) {
        wrong.extend(more);
    }
    Err(wrong.into())
}

/// True if what is written is wrong whatever the values of variables are. As in Terraform there is no plan then, not even one that failed.
fn is_wrong_as_written(app: &mut App, flags: &VariableFlags) -> bool {
    // What is said of the plan that failed points into the texts that it was made from.
    let sources = app.sources.clone();
    let project = load_for_any_values(app, flags);
    app.sources = sources;
    let Ok(project) = project else { return false };
    let found = karmaform_lang::validate(&project.config);
    let all = project.diagnostics.into_iter().chain(found);
    // What does not hold is for who plans, as is a value that is asked for.
    all.filter(|d| d.summary != MISSING_VARIABLE && d.summary != OUTPUT_PRECONDITION).any(|d| d.is_error())
}

/// The plan as far as it goes, by these providers: with what kept it from its end. `tells`: programs are told what is looked at.
///
/// # Errors
/// Everything that keeps it from beginning.
pub(crate) fn plan_as_far(
    app: &mut App,
    project: &Project,
    registry: &Registry,
    state: &Snapshot,
    pool: &Arc<Pool>,
    options: &Options,
    tells: bool,
) -> Result<Planned, Stop> {
    let clock = Arc::clone(&app.wiring.clock);
    let mut met = Diagnostics::new();
    met.extend(project.diagnostics.clone());
    let (Relocated { state, moved }, wrong) = relocate(&project.config, state);
    met.extend(wrong);
    let (graph, wrong) = graph(&project.config, &state, registry);
    let graph = graph.with_moved(moved);
    met.extend(without_deferred(&graph, options, wrong));
    if met.has_errors() {
        return Err(met.into());
    }
    let world = World { config: &project.config, registry, state: &state, pool, runtime: clock.as_ref(), hands: Some(registry) };
    let began = app.now();
    let (observed, wrong) = looking(app, observe_again(&graph, &world, options, project.observed.clone()))?;
    let seen = app.now();
    app.profile.phase("look", began, seen);
    app.profile.ask(observed.asked());
    if tells {
        app.tell(|stream| stream.glances(&observed.glances(&graph, &world.inputs(), options)));
    }
    // What does not depend on what could not be looked at can be planned all the same.
    met.extend(wrong);
    let (mut plan, wrong) = decide(&graph, &world.inputs(), &observed, options);
    app.profile.phase("decide", seen, app.now());
    met.extend(wrong);
    let (wrong, mut warnings): (Vec<_>, Vec<_>) = met.into_iter().partition(Diagnostic::is_error);
    warnings.extend(std::mem::take(&mut plan.warnings));
    plan.warnings = distinct(warnings.into_iter().collect());
    Ok(Planned { plan, wrong: wrong.into_iter().collect(), graph })
}

/// Waits for what only reads, and shows a terminal that it does. The first Ctrl-C ends it: nothing is changed yet.
///
/// # Errors
/// If it was interrupted.
pub(crate) fn looking<T>(app: &mut App, reads: impl Future<Output = T>) -> Result<T, Stop> {
    let interrupt = app.interrupt.clone();
    let looked = async {
        tokio::select! {
            looked = reads => Some(looked),
            () = interrupt.wait() => None,
        }
    };
    waiting(app, looked).ok_or_else(|| halted().into())
}

/// The same for what hears a Ctrl-C itself, and ends with what it has by then.
pub(crate) fn waiting<T>(app: &mut App, ends: impl Future<Output = T>) -> T {
    let is_live = app.output.terminal.stdout && app.theme.color && !app.lines.only;
    let (output, theme) = (&mut app.output, &app.theme);
    let mut show = async || -> Infallible {
        for frame in 0u64.. {
            pause(FRAME).await;
            if is_live && frame >= PATIENCE {
                output.print(&spinner("Looking at what is there", usize::try_from(frame).unwrap_or(0), frame * FRAME, theme));
            }
        }
        std::future::pending().await
    };
    let ended = {
        let _asking = app.interrupt.ask_first();
        app.executor.block_on(async {
            tokio::select! {
                ended = ends => ended,
                never = show() => match never {},
            }
        })
    };
    if is_live {
        app.output.print(NO_SPINNER);
    }
    ended
}

/// Makes ready for the plan after this one: what it replaces need not be replaced again, and what it put off has its turn.
pub(crate) fn go_on(options: &mut Options, plan: &Plan) {
    options.replace.retain(|address| !plan.resources.iter().any(|r| r.address == *address));
}

/// Something stays put off although nothing is left to do.
pub(crate) fn never_known(plan: &Plan) -> Diagnostic {
    let first = plan
        .deferred
        .iter()
        .find(|d| d.is_whole())
        .or(plan.deferred.first())
        .map(|d| format!(": {}, since {}", name(d), reason(d, &open(plan))))
        .unwrap_or_default();
    let detail = format!("No apply brings anything nearer that is still deferred{first}.");
    Diagnostic::error("Nothing more comes to be known", detail)
        .with_hint("Make count and for_each of what stays as it is once it is there; timestamp() and uuid() are never known to a plan.")
}

/// The run was interrupted before it changed anything, or while it did.
pub(crate) fn halted() -> Diagnostic {
    Diagnostic::error("execution halted", "The run was interrupted.")
}

#[cfg(test)]
mod tests {
    use super::without_blanks;

    #[test]
    fn blanks_in_an_address_mean_nothing_outside_of_quotes() {
        for (text, tight) in [
            (" a.b[ 0 ] ", "a.b[0]"),
            ("module . m.a.b [\t\" x \\\" y\" ]", "module.m.a.b[\" x \\\" y\"]"),
            ("a.b c", "a.b c"),
            ("a.b[0]", "a.b[0]"),
        ] {
            assert_eq!(without_blanks(text), tight);
        }
    }
}
