//! Does what the plan says: one loop owns all truth, workers only report to it. It makes no choices: order and changes are the plan's.
//!
//! After a failure nothing that depends on it is started, everything else goes on, and what was done is in the state.

use std::sync::atomic::Ordering;

use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use karmaform_model::{BoxFuture, Diagnostic, Event, Journal, JournalRecord, ModeOfPlan, Plan, StateBackend};

use crate::alike::alike;
use crate::checks;
use crate::dispatch::{Dispatcher, Started};
use crate::fill::Filler;
use crate::graph::Graph;
use crate::judge::Open;
use crate::ledger::Ledger;
use crate::moves::relocated;
use crate::options::{ApplyOptions, World};
use crate::outcome::Outcome;
use crate::protection;
use crate::store::Store;
use crate::worker::{Done, Note, Surroundings, run};

/// Does what the plan says, tells `on_event` what happens, and keeps journal and state up to date. A plan without changes writes
/// nothing, unless conditions or lifecycles say something else by now, or things need others.
pub async fn apply(
    plan: &Plan,
    graph: &Graph,
    world: &World<'_>,
    backend: &dyn StateBackend,
    journal: &mut dyn Journal,
    options: &ApplyOptions,
    on_event: &mut dyn FnMut(Event),
) -> Outcome {
    let mut outcome = Outcome::of(world.state.clone());
    if let Some(problem) = stale(plan, world) {
        outcome.diagnostics.push(problem);
        return outcome;
    }
    let is_refresh = plan.mode == ModeOfPlan::RefreshOnly;
    let moves = !plan.moved.is_empty();
    let changes = !plan.steps.is_empty() || !plan.outputs.is_empty() || moves || protection::changes(plan, world.state);
    if !changes && !is_refresh && !checks::are_news(plan, world.state) {
        return outcome;
    }
    let moved = moves.then(|| relocated(world.state, &plan.moved));
    let world = &World { state: moved.as_ref().unwrap_or(world.state), ..*world };
    let mut ledger = Ledger::new(plan, world.registry, world.state);
    ledger.dirty |= moves;
    let mut store = Store::new(backend, journal, world.runtime, options);
    // The journal knows things by their new addresses, so the state must know them before the first step.
    if let Err(problem) = store.claim(&mut ledger, moves && !plan.steps.is_empty()).await {
        outcome.diagnostics.push(problem);
        return outcome;
    }
    let mut dispatcher =
        Dispatcher::new(plan, ledger, Filler::new(plan, graph, world, &options.seed), Open::new(plan, graph), world, options, on_event);
    let begin = JournalRecord::Begin {
        lineage: world.state.lineage.clone(),
        serial: store.stored().unwrap_or(world.state.serial),
        version: plan.tool_version.clone(),
    };
    if let Err(error) = store.record(vec![begin]) {
        dispatcher.give_up(error);
    }
    world.hands.into_iter().flat_map(|h| h.drivers()).for_each(|driver| driver.begin(&world.state.lineage));
    let (sender, mut notes) = unbounded();
    let around = Surroundings { world, notes: sender, interrupt: options.interrupt.clone() };
    let mut running: FuturesUnordered<BoxFuture<'_, Done>> = FuturesUnordered::new();
    loop {
        let started = dispatcher.start_ready();
        // What ended is durable, and what starts is announced, before anything starts that depends on it.
        if let Err(error) = store.record(dispatcher.take_records()) {
            dispatcher.cancel(started, error);
        } else {
            for Started { step, job } in started {
                dispatcher.announce(step);
                running.push(run(around.clone(), step, job).boxed());
            }
        }
        if running.is_empty() {
            if dispatcher.is_idle() {
                break;
            }
            continue;
        }
        wait(&mut running, &mut notes, &mut dispatcher, world, options).await;
        if let Err(error) = store.checkpoint(&mut dispatcher.ledger, &mut outcome.diagnostics).await {
            dispatcher.give_up(error);
        }
    }
    dispatcher.finish(graph);
    let leftover = dispatcher.take_records();
    let mut end = dispatcher.end();
    let left = store.record(leftover);
    outcome.diagnostics.extend(alike(end.diagnostics));
    // What it refused before, it refuses again, and that was told.
    if let Err(error) = left
        && !outcome.diagnostics.iter().any(|told| *told == error)
    {
        outcome.diagnostics.push(error);
    }
    outcome.unsaved = !store.save(&mut end.ledger, &mut outcome.diagnostics).await;
    outcome.snapshot = end.ledger.snapshot;
    outcome.interrupted = end.interrupted || (options.interrupt.load(Ordering::Relaxed) && end.skipped > 0);
    (outcome.succeeded, outcome.failed, outcome.skipped) = (end.succeeded, end.failed, end.skipped);
    outcome.unchanged = end.unchanged;
    outcome
}

/// Waits until something happens, and takes note of all that happened.
async fn wait(
    running: &mut FuturesUnordered<BoxFuture<'_, Done>>,
    notes: &mut UnboundedReceiver<Note>,
    dispatcher: &mut Dispatcher<'_>,
    world: &World<'_>,
    options: &ApplyOptions,
) {
    let (mut finished, mut heard) = (Vec::new(), Vec::new());
    {
        let news = select(running.next(), notes.next());
        let news = if options.heartbeat == 0 {
            Some(news.await)
        } else {
            match select(news, world.runtime.sleep(options.heartbeat)).await {
                Either::Left((news, _)) => Some(news),
                Either::Right(_) => None,
            }
        };
        match news {
            Some(Either::Left((done, _))) => finished.extend(done),
            Some(Either::Right((note, _))) => heard.extend(note),
            None => {}
        }
    }
    // Whatever else is ready goes into the same tick, and so into the same write of the journal.
    while let Some(Some(done)) = running.next().now_or_never() {
        finished.push(done);
    }
    while let Ok(note) = notes.try_recv() {
        heard.push(note);
    }
    heard.into_iter().for_each(|note| dispatcher.note(note));
    finished.sort_by_key(|done| done.step);
    finished.into_iter().for_each(|done| dispatcher.ended(done));
    dispatcher.heartbeat();
}

/// A plan is for one state at one moment.
fn stale(plan: &Plan, world: &World<'_>) -> Option<Diagnostic> {
    let is_other = plan.lineage.as_ref().is_some_and(|l| *l != world.state.lineage);
    (is_other || plan.serial != world.state.serial).then(|| {
        Diagnostic::error(
            "Saved plan is stale",
            format!(
                "The plan was made from another state: from serial {}, and the state has serial {} now.",
                plan.serial, world.state.serial
            ),
        )
        .with_hint("Run plan again, review it, and apply the new one.")
    })
}
