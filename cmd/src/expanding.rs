//! How often things stand, where the text alone does not say it: the engine asks the world, and the texts are read again with what it knows.

use std::sync::Arc;

use karmaform_engine::{Expanded, Known, Options, Pool, World};
use karmaform_lang::{Context, Sources, VariableInputs, load_with};
use karmaform_model::{ModeOfPlan, Snapshot};

use crate::app::{App, Stop};
use crate::planning::looking;
use crate::project::Project;

/// What a configuration was read from.
#[derive(Clone)]
pub(crate) struct Texts {
    pub(crate) sources: Sources,
    pub(crate) inputs: VariableInputs,
    pub(crate) context: Context,
}

/// Decides how often things stand by what is there. What can be told only after apply stays open, and is put off by the plan.
///
/// # Errors
/// If it was interrupted, or what is known by now is wrong.
pub(crate) fn expand(app: &mut App, project: &mut Project, state: &Snapshot, pool: &Arc<Pool>, options: &Options) -> Result<(), Stop> {
    let Some(texts) = project.texts.as_deref() else { return Ok(()) };
    let (registry, clock) = (Arc::clone(&app.wiring.registry), Arc::clone(&app.wiring.clock));
    let world = World { config: &project.config, registry: &registry, state, pool, runtime: clock.as_ref(), hands: Some(&registry) };
    let began = app.now();
    let expanded = looking(app, expanded(&world, texts, options))?;
    app.profile.phase("expand", began, app.now());
    app.profile.ask(expanded.observed.asked());
    // What is to go goes by what is there, so nobody needs to know how often it would stand.
    if options.mode == ModeOfPlan::Destroy && expanded.wrong.has_errors() {
        return Ok(());
    }
    Ok(project.take(expanded)?)
}

/// Goes through the rounds.
pub(crate) async fn expanded(world: &World<'_>, texts: &Texts, options: &Options) -> Expanded {
    let read = |known: &Known| load_with(&texts.sources, &texts.inputs, &texts.context, world.registry, known);
    karmaform_engine::expand(world, options, &read).await
}
