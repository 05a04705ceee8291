//! How often things stand, where the text alone does not say it: what is known of other things is asked of the world first, and the
//! configuration is read again with that, until nothing more comes of it.

use std::sync::Arc;

use karmaform_engine::{Graph, Observed, Options, Pool, Relocated, Runtime, World, graph, is_needed, known, observe_again, relocate};
use karmaform_lang::{Config, Context, Sources, VariableInputs, load_with};
use karmaform_model::{Catalog, Diagnostic, Diagnostics, ModeOfPlan, Registry, Snapshot};

use crate::app::{App, Stop};
use crate::planning::looking;
use crate::project::Project;

/// More rounds come of no configuration: each knows what depends on one thing more.
const MOST: usize = 64;

/// What a configuration was read from.
pub(crate) struct Texts {
    pub(crate) sources: Sources,
    pub(crate) inputs: VariableInputs,
    pub(crate) context: Context,
}

/// What it is expanded with.
pub(crate) struct Around<'a> {
    pub(crate) registry: &'a Catalog,
    /// As it was read.
    pub(crate) state: &'a Snapshot,
    pub(crate) pool: &'a Arc<Pool>,
    pub(crate) clock: &'a dyn Runtime,
    /// `None`: it is only looked.
    pub(crate) hands: Option<&'a Registry>,
    pub(crate) options: &'a Options,
}

/// Decides how often things stand by what is there. What can be told only after apply stays open, and is refused by the plan.
///
/// # Errors
/// If it was interrupted, or what is known by now is wrong.
pub(crate) fn expand(app: &mut App, project: &mut Project, state: &Snapshot, pool: &Arc<Pool>, options: &Options) -> Result<(), Stop> {
    let Some(texts) = project.texts.as_deref() else { return Ok(()) };
    let (registry, clock) = (Arc::clone(&app.wiring.registry), Arc::clone(&app.wiring.clock));
    let around = Around { registry: &registry, state, pool, clock: clock.as_ref(), hands: Some(&registry), options };
    let began = app.now();
    let Expanded { config, observed, unseen, wrong } = looking(app, expanded(&project.config, texts, &around))?;
    app.profile.phase("expand", began, app.now());
    if wrong.has_errors() {
        return Err(wrong.into());
    }
    (project.config, project.diagnostics, project.observed, project.unseen) = (config, wrong, observed, unseen);
    Ok(())
}

/// Why a run can't go on: something that it needs stands so often that nobody can tell. What could not be looked at comes first, since it
/// may be all that is missing. `wrong`: what is wrong with the graph, which may be so because of it.
pub(crate) fn refusal(project: &Project, graph: &Graph, wrong: &Diagnostics, options: &Options) -> Diagnostics {
    let open: Diagnostics = project.config.open.iter().filter(|d| is_needed(graph, options, d)).cloned().collect();
    let is_behind = !open.is_empty() || wrong.has_errors() && !project.config.open.is_empty();
    if is_behind && project.unseen.has_errors() { project.unseen.clone() } else { open }
}

/// What is wrong with a graph, but for composites that are to go: what they are made of need not be known for that, and may be open.
pub(crate) fn without_open(project: &Project, registry: &Catalog, wrong: Diagnostics, options: &Options) -> Diagnostics {
    if options.mode != ModeOfPlan::Destroy || project.config.open.is_empty() {
        return wrong;
    }
    let is_composite = |d: &Diagnostic| d.address.as_ref().is_some_and(|a| registry.composite(&a.kind).is_some());
    wrong.into_iter().filter(|d| !is_composite(d)).collect()
}

/// What came of it.
pub(crate) struct Expanded {
    /// With all instances that can be told.
    pub(crate) config: Config,
    /// What was seen on the way.
    pub(crate) observed: Observed,
    /// What could not be looked at.
    pub(crate) unseen: Diagnostics,
    /// What is wrong with the configuration.
    pub(crate) wrong: Diagnostics,
}

/// Goes through the rounds.
pub(crate) async fn expanded(config: &Config, texts: &Texts, around: &Around<'_>) -> Expanded {
    let Around { registry, state, pool, clock, hands, options } = around;
    let (mut config, mut observed) = (config.clone(), Observed::default());
    let (mut unseen, mut wrong) = (Diagnostics::new(), Diagnostics::new());
    for _ in 0..MOST {
        // What is wrong in here may be so because something is open; who plans with the result hears of it.
        let Relocated { state, moved } = relocate(&config, state).0;
        let graph = graph(&config, &state, registry).0.with_moved(moved);
        let world = World { config: &config, registry, state: &state, pool, runtime: *clock, hands: *hands };
        (observed, unseen) = observe_again(&graph, &world, options, observed).await;
        let known = known(&graph, &world.inputs(), &observed, options);
        let next;
        (next, wrong) = load_with(&texts.sources, &texts.inputs, &texts.context, registry, &known);
        let is_settled = next.is_expanded_like(&config);
        config = next;
        if is_settled || wrong.has_errors() {
            break;
        }
    }
    let unseen = unseen.into_iter().filter(Diagnostic::is_error).collect();
    Expanded { config, observed, unseen, wrong }
}
