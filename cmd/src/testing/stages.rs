//! Planning and applying for a test: nothing is asked, shown or written, and what is wrong is said to the caller.

use std::sync::Arc;

use karmaform_engine::{
    ApplyOptions, Options, Outcome, Pool, Relocated, World, apply, graph, observe_again, plan, relocate, without_deferred,
};
use karmaform_model::{Diagnostics, Registry, Snapshot};

use super::memory::InMemory;
use crate::app::{App, Stop};
use crate::bundle::use_bundle;
use crate::distinct::distinct;
use crate::expanding::expanded;
use crate::planning::{Planned, bundle_for, halted};
use crate::project::Project;
use crate::session::NoJournal;
use crate::trust::use_trust;

/// What a stage works with.
pub(super) struct Stage<'a> {
    pub(super) project: &'a Project,
    pub(super) registry: &'a Registry,
    pub(super) pool: &'a Arc<Pool>,
    /// A signal ends it; otherwise it is what comes after one.
    pub(super) may_halt: bool,
}

/// Connections for a configuration and these providers.
///
/// # Errors
/// If the bundle or the authorities can't be read, and are needed for certain.
pub(super) fn pool(app: &App, project: &Project, registry: &Registry, options: &Options) -> Result<Arc<Pool>, Diagnostics> {
    let needed = bundle_for(options.mode);
    let used = use_trust(app, project, needed).and_then(|()| use_bundle(app, project, needed));
    match used {
        Err(Stop::Because(diagnostics)) => Err(diagnostics),
        _ => Ok(Pool::new(Arc::clone(registry.catalog()), project.config.providers.clone())),
    }
}

/// Decides how often things stand by what is there, as a run has made it.
///
/// # Errors
/// If what is known by now is wrong.
pub(super) fn expand(
    app: &App,
    project: &mut Project,
    registry: &Registry,
    pool: &Arc<Pool>,
    state: &Snapshot,
    options: &Options,
) -> Result<(), Diagnostics> {
    let Some(texts) = project.texts.as_deref() else { return Ok(()) };
    let clock = Arc::clone(&app.wiring.clock);
    let world = World { config: &project.config, registry, state, pool, runtime: clock.as_ref(), hands: Some(registry) };
    let stage = Stage { project, registry, pool, may_halt: true };
    let expanded = wait(app, &stage, expanded(&world, texts, options)).ok_or_else(|| Diagnostics::from(halted()))?;
    project.take(expanded)
}

/// The plan, as far as one can be made, with all that was met on the way.
pub(super) fn planned(app: &App, stage: &Stage<'_>, state: &Snapshot, options: &Options) -> (Option<Planned>, Diagnostics) {
    let Stage { project, registry, pool, .. } = stage;
    let clock = Arc::clone(&app.wiring.clock);
    let (Relocated { state, moved }, mut met) = relocate(&project.config, state);
    let (graph, wrong) = graph(&project.config, &state, registry);
    let graph = graph.with_moved(moved);
    met.extend(without_deferred(&graph, options, wrong));
    if met.has_errors() {
        return (None, met);
    }
    let world = World { config: &project.config, registry, state: &state, pool, runtime: clock.as_ref(), hands: Some(registry) };
    let Some((observed, wrong)) = wait(app, stage, observe_again(&graph, &world, options, project.observed.clone())) else {
        return (None, halted().into());
    };
    met.extend(wrong);
    if met.has_errors() {
        return (None, met);
    }
    let (mut plan, wrong) = plan(&graph, &world.inputs(), &observed, options);
    met.extend(wrong);
    met.extend(std::mem::take(&mut plan.warnings));
    (Some(Planned { plan, wrong: Diagnostics::new(), graph }), distinct(met))
}

/// Does what a plan says. What is done is in the state that comes with the outcome.
pub(super) fn applied(app: &App, stage: &Stage<'_>, planned: &Planned, state: &Snapshot, parallelism: usize) -> Outcome {
    let Stage { project, registry, pool, .. } = stage;
    let clock = Arc::clone(&app.wiring.clock);
    let _asking = app.interrupt.ask_first();
    let options = ApplyOptions {
        parallelism,
        interrupt: if stage.may_halt { app.interrupt.flag() } else { Arc::default() },
        seed: (app.wiring.ids)(),
        ..ApplyOptions::default()
    };
    let world = World { config: &project.config, registry, state, pool, runtime: clock.as_ref(), hands: Some(registry) };
    let mut journal = NoJournal;
    app.executor.block_on(apply(&planned.plan, &planned.graph, &world, &InMemory, &mut journal, &options, &mut |_| {}))
}

/// What only reads may be left where it is.
fn wait<T>(app: &App, stage: &Stage<'_>, reads: impl Future<Output = T>) -> Option<T> {
    let _asking = app.interrupt.ask_first();
    if !stage.may_halt {
        return Some(app.executor.block_on(reads));
    }
    let interrupt = app.interrupt.clone();
    app.executor.block_on(async {
        tokio::select! {
            read = reads => Some(read),
            () = interrupt.wait() => None,
        }
    })
}
