//! Looks at the world: passes over the graph find the questions, batches of them are asked, until nothing new can be asked.
//! Reads only, but for what is there to be tried (`Schema::tries`), and decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use futures::future::{Either, select};
use karmaform_lang::Evaluator;
use karmaform_model::{Address, AnyClient, Ask, Diagnostic, Diagnostics, ModeOfPlan, Object, Severity, Status, Value};

use crate::alike::alike;
use crate::graph::Graph;
use crate::observed::{Answer, Asked, LastPass, Observed, Reading, Seen};
use crate::options::{Options, World};
use crate::pool::{connection_key, unknown_data_source, way};
use crate::question::{Look, Read, entries};
use crate::walk::{Flags, Pass, values, walk};
use crate::wanted::may_fail;

/// Asks for everything that can be asked for. Each round asks all connections at once, each connection for all its things in one batch.
/// What could not be looked at is an error; everything else is looked at all the same.
pub async fn observe(graph: &Graph, world: &World<'_>, options: &Options) -> (Observed, Diagnostics) {
    look_at_all(graph, world, options, true, Observed::default()).await
}

/// The same a moment after a look at the same world, by a graph that had less in it: nothing that was seen is asked again.
pub async fn observe_again(graph: &Graph, world: &World<'_>, options: &Options, earlier: Observed) -> (Observed, Diagnostics) {
    look_at_all(graph, world, options, true, earlier.kept()).await
}

/// The same; `excuses` says whether a connection may fail that leads to what is still to be made.
pub(crate) async fn look_at_all(
    graph: &Graph,
    world: &World<'_>,
    options: &Options,
    excuses: bool,
    mut observed: Observed,
) -> (Observed, Diagnostics) {
    loop {
        observed.passes += 1;
        let (looks, reads, flags, hints, learned) = {
            let values = values(graph);
            let evaluator = Evaluator::new(world.config, &values);
            let mut pass = walk(graph, world.inputs(), &observed, options, &values, &evaluator);
            let flags: Vec<Flags> = if observed.resources.values().any(|s| s.broken.is_some()) {
                (0..graph.nodes.len()).map(|n| pass.inherited(n)).collect()
            } else {
                Vec::new()
            };
            let hints = hints(&pass, &observed);
            let (looks, reads) = (std::mem::take(&mut pass.looks), std::mem::take(&mut pass.reads));
            // What the evaluator has said once it does not say again, and it does not outlive its pass.
            let is_of_use = looks.is_empty() && reads.is_empty() && pass.diagnostics.is_empty();
            (looks, reads, flags, hints, is_of_use.then(|| pass.learned()))
        };
        if looks.is_empty() && reads.is_empty() {
            let excused = excuses && excuse(graph, world, options, &flags, &mut observed);
            let diagnostics = failures(world, options, &hints, &mut observed);
            // What was excused counts as not asked, which that pass did not know.
            observed.last = learned.filter(|_| !excused).map(LastPass::of).unwrap_or_default();
            return (observed, diagnostics);
        }
        ask(graph, world, options, looks, reads, &mut observed).await;
    }
}

enum Job {
    Batch(Vec<Look>),
    Read(Read),
}

enum Answers {
    Batch(Vec<(Look, Answer, Option<String>)>),
    Read(Box<(Read, Result<Object, Diagnostic>, u64)>),
}

/// Who was not asked to the end, as the look was over before.
fn unasked() -> Diagnostic {
    Diagnostic::error("Not looked at", "The look was over before there was an answer.")
}

/// What it gives; nothing if the look is over before.
async fn before_enough<T>(world: &World<'_>, asking: impl Future<Output = T>) -> Option<T> {
    match select(world.runtime.enough(), std::pin::pin!(asking)).await {
        Either::Left(_) => None,
        Either::Right((answer, _)) => Some(answer),
    }
}

async fn ask(graph: &Graph, world: &World<'_>, options: &Options, looks: Vec<Look>, reads: Vec<Read>, observed: &mut Observed) {
    let mut batches: BTreeMap<String, Vec<Look>> = BTreeMap::new();
    for look in looks {
        batches.entry(look.client.clone()).or_default().push(look);
    }
    let jobs = reads.into_iter().map(Job::Read).chain(batches.into_values().map(Job::Batch));
    let answers = futures::stream::iter(jobs.map(|job| run(graph, world, job))).buffer_unordered(options.parallelism.max(1));
    for (answer, asked, is_cut) in answers.collect::<Vec<_>>().await {
        observed.asked.extend(asked);
        match answer {
            Answers::Read(answer) => {
                let (read, result, took) = *answer;
                let address = graph.nodes[read.node].address.clone();
                observed.cut.extend(is_cut.then(|| address.clone()));
                let result = result.map_err(|d| d.at(&address));
                observed.data.insert(address, Reading { arguments: read.arguments, result, took });
            }
            Answers::Batch(answers) => {
                for (look, answer, broken) in answers {
                    let Look { node, provider, connection, key, ask, .. } = look;
                    let Ask { resource_type, identity, .. } = ask;
                    observed.cut.extend(is_cut.then(|| graph.nodes[node].address.clone()));
                    let seen = Seen { key, identity, provider, resource_type, connection, answer, broken };
                    observed.resources.insert(graph.nodes[node].address.clone(), seen);
                }
            }
        }
    }
}

/// What was answered, who was asked, and whether the look was over before there was an answer.
async fn run(graph: &Graph, world: &World<'_>, job: Job) -> (Answers, Option<Asked>, bool) {
    let begin = world.runtime.now();
    let asked = |provider: &str, whom: String, things, failed| {
        let provider = provider.to_owned();
        Asked { begin, end: world.runtime.now().max(begin), provider, whom, things, failed }
    };
    match job {
        Job::Read(read) => {
            let address = &graph.nodes[read.node].address;
            let result = before_enough(world, read_data(world, address, &read.arguments, false)).await;
            let is_cut = result.is_none();
            let result = result.unwrap_or_else(|| Err(unasked()));
            let entry = world.registry.data_source(&address.kind);
            let asked = entry.map(|e| asked(e.driver.name(), address.to_string(), 1, result.is_err()));
            let took = world.runtime.now().saturating_sub(begin);
            (Answers::Read(Box::new((read, result, took))), asked, is_cut)
        }
        Job::Batch(looks) => {
            let whom = looks.first().and_then(|look| connection_id(look.connection.as_ref().map(|(_, v)| v)));
            let answers = before_enough(world, look(world, &looks)).await;
            let is_cut = answers.is_none();
            let answers = answers.unwrap_or_else(|| looks.iter().map(|_| (Answer::Failed(Box::new(unasked())), None)).collect());
            let failed = answers.iter().all(|(answer, _)| matches!(answer, Answer::Failed(_)));
            let asked = whom.zip(looks.first()).map(|(whom, look)| asked(&look.provider, whom, looks.len(), failed));
            let heard = looks.into_iter().zip(answers).map(|(look, (answer, broken))| (look, answer, broken)).collect();
            (Answers::Batch(heard), asked, is_cut)
        }
    }
}

/// The one part of a connection that may be shown.
fn connection_id(connection: Option<&Value>) -> Option<String> {
    entries(connection).get("id").and_then(Value::as_str).map(str::to_owned)
}

/// Reads one data source.
pub(crate) async fn read_data(world: &World<'_>, address: &Address, arguments: &Object, again: bool) -> Result<Object, Diagnostic> {
    let entry = world.registry.data_source(&address.kind).ok_or_else(|| unknown_data_source(&address.kind))?;
    if let Some(said) = world.registry.stand_ins().and_then(|s| s.read(address, arguments)) {
        return said;
    }
    let client = open(world, entry.driver.name(), &way(entry.schema, arguments), again).await?;
    entry.driver.read(&client, &address.kind, arguments).await
}

async fn open(world: &World<'_>, provider: &str, connection: &Object, again: bool) -> Result<AnyClient, Diagnostic> {
    if again { world.pool.reopen(provider, connection).await } else { world.pool.open(provider, connection).await }
}

/// An answer to each, and which connection has failed if that is why there is none.
async fn look(world: &World<'_>, looks: &[Look]) -> Vec<(Answer, Option<String>)> {
    let Some(first) = looks.first() else { return Vec::new() };
    let provider = first.provider.clone();
    let connection = entries(first.connection.as_ref().map(|(_, v)| v));
    let client = match world.pool.open(&provider, &connection).await {
        Ok(client) => client,
        Err(error) => {
            let name = connection_key(&provider, &connection);
            return looks.iter().map(|_| (Answer::Failed(Box::new(error.clone())), Some(name.clone()))).collect();
        }
    };
    let asks: Vec<_> = looks.iter().map(|l| l.ask.clone()).collect();
    let answers = match (world.hands.and_then(|h| h.driver(&provider)), world.registry.provider(&provider)) {
        (Some(driver), _) => driver.rehearse(&client, &asks).await,
        (None, Some(looking)) => looking.observe(&client, &asks).await,
        (None, None) => Vec::new(),
    };
    let mut answers = answers.into_iter();
    let missing = || {
        Diagnostic::error(
            "Question left unanswered",
            format!("The provider \"{provider}\" gave fewer answers than it was asked for. This is a bug."),
        )
    };
    let heard = looks.iter().map(|_| match answers.next().unwrap_or_else(|| Err(missing())) {
        Ok(Some(object)) => (Answer::Present(object), None),
        Ok(None) => (Answer::Absent, None),
        Err(error) => (Answer::Failed(Box::new(error)), None),
    });
    heard.collect()
}

/// What is not in the state, and behind something that is still to be made, can't be there yet: that nobody answers there is no error.
/// True if there was such a thing.
fn excuse(graph: &Graph, world: &World<'_>, options: &Options, flags: &[Flags], observed: &mut Observed) -> bool {
    let mut excused = false;
    if options.mode != ModeOfPlan::Normal {
        return excused;
    }
    for (address, seen) in observed.resources.iter_mut().filter(|(_, s)| s.broken.is_some()) {
        let is_trusted = world.state.resources.get(address).is_some_and(|r| r.status != Status::Unfinished);
        let is_behind = graph.instances.get(address).and_then(|n| flags.get(*n)).is_some_and(|f| f.unready);
        if !is_trusted && is_behind {
            seen.answer = Answer::NotAsked;
            seen.broken = None;
            excused = true;
        }
    }
    excused
}

/// What to do about what failed by itself, where a composite on its way knows it.
fn hints(pass: &Pass<'_>, observed: &Observed) -> BTreeMap<Address, String> {
    let failed = observed.resources.iter().filter(|(_, seen)| matches!(seen.answer, Answer::Failed(_)) && seen.broken.is_none());
    failed.filter_map(|(address, _)| Some((address.clone(), pass.hint(*pass.graph.instances.get(address)?)?.to_owned()))).collect()
}

/// What could not be looked at, noted, and told unless the look was over before.
fn failures(world: &World<'_>, options: &Options, hints: &BTreeMap<Address, String>, observed: &mut Observed) -> Diagnostics {
    let (mut errors, mut blind) = (Vec::new(), BTreeSet::new());
    for (address, reading) in &observed.data {
        if let Err(error) = &reading.result {
            let mut error = error.clone().at(address).with_span(world.config.block(address).map(|b| b.span));
            if options.mode == ModeOfPlan::Destroy || world.config.check_of(address).is_some() {
                error.severity = Severity::Warning;
            }
            blind.extend(error.is_error().then(|| address.clone()));
            errors.extend((!observed.cut.contains(address)).then_some(error));
        }
    }
    let mut broken: BTreeMap<&str, (Diagnostic, Vec<&Address>)> = BTreeMap::new();
    for (address, seen) in &observed.resources {
        match (&seen.answer, &seen.broken) {
            (Answer::Failed(error), Some(name)) => {
                let told = || {
                    let mut error = (**error).clone();
                    if seen.connection.as_ref().is_some_and(|(_, way)| may_fail(way)) {
                        error.severity = Severity::Warning;
                    }
                    (error, Vec::new())
                };
                broken.entry(name).or_insert_with(told).1.push(address);
            }
            (Answer::Failed(error), None) => {
                blind.extend(error.is_error().then(|| address.clone()));
                if !observed.cut.contains(address) {
                    let mut error = (**error).clone().at(address).with_span(world.config.block(address).map(|b| b.span));
                    error.hints.extend(hints.get(address).cloned());
                    errors.push(error);
                }
            }
            _ => {}
        }
    }
    let mut diagnostics: Diagnostics = alike(errors).into_iter().collect();
    for (mut error, addresses) in broken.into_values() {
        let affected = match addresses[..] {
            [only] => {
                error = error.at(only);
                "1 resource".to_owned()
            }
            _ => format!("{} resources", addresses.len()),
        };
        error.detail = format!("{} Because of this, {affected} behind this connection could not be looked at.", error.detail);
        // The rest can be destroyed all the same; what can't be reached then fails by itself and stays in the state.
        if options.mode == ModeOfPlan::Destroy {
            error.severity = Severity::Warning;
            error = error
                .with_hint("All else is destroyed. What can't be deleted stays in the state; run destroy again when it can be reached.");
        }
        if error.is_error() {
            blind.extend(addresses.into_iter().cloned());
        }
        diagnostics.push(error);
    }
    observed.blind = blind;
    diagnostics
}
