//! Runs one step: opens its connection, tries, tries again, or waits at a gate. Knows nothing of the other steps and of the state.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::channel::mpsc::UnboundedSender;
use karmaform_model::{Address, Change, Diagnostic, GateAnswer, GateSpec, Object};

use crate::again::{PAUSE, again};
use crate::observe::read_data;
use crate::options::World;
use crate::pool::way;

/// The pauses between two looks at a gate, in milliseconds. Short at first, since most gates pass at once.
const GATE_PAUSES: (u64, u64) = (100, 1_000);

/// What one step does outside.
pub(crate) enum Job {
    /// A change through a provider.
    Change { address: Address, provider: String, connection: Object, resource_type: String, change: Change },
    /// Reading a data source.
    Read { address: Address, arguments: Object },
    /// Waiting.
    Gate { composite: Address, gate: GateSpec, arguments: Object },
}

/// How it went well.
pub(crate) enum Success {
    Changed(Option<Object>),
    Read(Object),
    Passed(String),
}

/// The end of a step.
pub(crate) struct Done {
    pub(crate) step: usize,
    /// Something may have been done outside.
    pub(crate) touched: bool,
    pub(crate) result: Result<Success, Diagnostic>,
    /// It ended because the run is to stop.
    pub(crate) interrupted: bool,
}

/// What a step waits for, while it waits.
pub(crate) struct Note {
    pub(crate) step: usize,
    pub(crate) text: String,
}

/// What a worker is given besides its job.
#[derive(Clone)]
pub(crate) struct Surroundings<'a> {
    pub(crate) world: &'a World<'a>,
    pub(crate) notes: UnboundedSender<Note>,
    pub(crate) interrupt: Arc<AtomicBool>,
}

impl Surroundings<'_> {
    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Waits, but not for who wants to stop.
    async fn pause(&self, milliseconds: u64) {
        let mut left = milliseconds;
        while left > 0 && !self.is_interrupted() {
            let slice = left.min(PAUSE);
            self.world.runtime.sleep(slice).await;
            left -= slice;
        }
    }

    fn note(&self, step: usize, text: String) {
        // Nobody listens any more only when the run is over, and then nobody cares.
        let _ = self.notes.unbounded_send(Note { step, text });
    }
}

/// Runs one step to its end.
pub(crate) async fn run(around: Surroundings<'_>, step: usize, job: Job) -> Done {
    let mut touched = false;
    let mut tries = 0;
    loop {
        tries += 1;
        let result = match &job {
            Job::Gate { composite, gate, arguments } => {
                let result = wait(&around, step, gate, arguments).await;
                let interrupted = result.is_err() && around.is_interrupted();
                return Done { step, touched: false, result: result.map_err(|d| d.at(composite)), interrupted };
            }
            Job::Read { address, arguments } => read_data(around.world, address, arguments, true).await.map(Success::Read),
            Job::Change { address, provider, connection, resource_type, change } => match stood_in(around.world, address, change) {
                Some(result) => result.map(Success::Changed),
                None => attempt(&around, provider, connection, resource_type, change, &mut touched).await.map(Success::Changed),
            },
        };
        match result.as_ref().err().and_then(|error| again(error, tries)).filter(|_| !around.is_interrupted()) {
            Some(next) => {
                around.note(step, next.note);
                around.pause(next.pause).await;
            }
            None => return Done { step, touched, result, interrupted: false },
        }
    }
}

/// What comes of a change of something that another thing stands in for; `None`: nothing does.
fn stood_in(world: &World<'_>, address: &Address, change: &Change) -> Option<Result<Option<Object>, Diagnostic>> {
    let stand_ins = world.registry.stand_ins()?;
    stand_ins.spec(address)?;
    Some(change.after().map(|after| stand_ins.made(address, after)).transpose())
}

async fn attempt(
    around: &Surroundings<'_>,
    provider: &str,
    connection: &Object,
    resource_type: &str,
    change: &Change,
    touched: &mut bool,
) -> Result<Option<Object>, Diagnostic> {
    let driver = around.world.hands.and_then(|h| h.driver(provider)).ok_or_else(|| crate::pool::unknown_provider(provider))?;
    let client = around.world.pool.reopen(provider, connection).await?;
    *touched = true;
    driver.apply(&client, resource_type, change).await
}

async fn wait(around: &Surroundings<'_>, step: usize, gate: &GateSpec, arguments: &Object) -> Result<Success, Diagnostic> {
    let entry = around
        .world
        .registry
        .gate(&gate.gate)
        .ok_or_else(|| Diagnostic::error("Unknown gate", format!("There is no gate \"{}\" in this version.", gate.gate)))?;
    let connection = way(entry.schema, arguments);
    let runtime = around.world.runtime;
    let deadline = runtime.monotonic().saturating_add(gate.limit.saturating_mul(1_000));
    let (mut pause, longest) = GATE_PAUSES;
    let mut last = String::new();
    loop {
        let answer = match around.world.pool.reopen(entry.driver.name(), &connection).await {
            Ok(client) if gate.acts => match around.world.hands.and_then(|h| h.driver(entry.driver.name())) {
                Some(driver) => driver.operate(&client, &gate.gate, arguments).await,
                None => return Err(crate::pool::unknown_provider(entry.driver.name())),
            },
            Ok(client) => entry.driver.check(&client, &gate.gate, arguments).await,
            Err(error) => Err(error),
        };
        let seen = match answer {
            Ok(GateAnswer::Passed(seen)) => return Ok(Success::Passed(seen)),
            Ok(GateAnswer::Waiting(seen)) => seen,
            Err(error) if error.retryable => error.summary,
            Err(error) => return Err(error),
        };
        if seen != last {
            around.note(step, seen.clone());
            last = seen;
        }
        let now = runtime.monotonic();
        if around.is_interrupted() {
            return Err(Diagnostic::error(
                "Interrupted",
                format!("The wait for \"{}\" was given up because the run is to stop.", gate.name),
            ));
        }
        if now >= deadline {
            return Err(Diagnostic::error(
                "Waited too long",
                format!("\"{}\" was waited for during {} s. What was seen last: {last}.", gate.name, gate.limit),
            )
            .with_hint("Look at what it waits for; when that is repaired, plan and apply go on from here."));
        }
        runtime.sleep(pause.min(deadline - now)).await;
        pause = (pause * 2).min(longest);
    }
}
