//! Carries out a plan and shows how it goes: live on a terminal, as lines elsewhere, as JSON on request.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use karmaform_engine::{ApplyOptions, Outcome, Pool, World, apply};
use karmaform_model::{Catalog, Event, EventKind, Plan, StepKind};

use crate::app::App;
use crate::lines::Lines;
use crate::output::Output;
use crate::planning::Planned;
use crate::policies::broken_of;
use crate::profile::Profile;
use crate::project::Project;
use crate::runtime::pause;
use crate::session::Session;
use crate::ui::json::stream::Stream;
use crate::ui::live::Live;
use crate::ui::progress::{Narrator, subject};
use crate::ui::style::Theme;

/// How often a terminal is redrawn, in milliseconds.
const FRAME: u64 = 120;
/// How often the engine says that a step still runs, in milliseconds.
const HEARTBEAT: u64 = 10_000;
/// So many steps that were not started are named.
const MOST_NAMES: usize = 5;
/// Milliseconds between two writes of the state.
const CHECKPOINT: u64 = 10_000;

/// Everything that shows an event.
struct Screen<'a> {
    output: &'a mut Output,
    theme: &'a Theme,
    narrator: Narrator,
    /// The same for programs, who get no colours.
    recorder: Narrator,
    live: Option<Live>,
    lines: &'a mut Lines,
    profile: &'a mut Profile,
    catalog: &'a Catalog,
    skipped: Vec<String>,
    plan: &'a Plan,
}

impl Screen<'_> {
    fn event(&mut self, event: &Event, now: u64) {
        self.profile.event(event, self.plan, self.catalog, now);
        let line = self.narrator.line(event, self.theme);
        if matches!(event.kind, EventKind::Skipped(_)) {
            self.skipped.push(subject(event));
        }
        if self.lines.are_wanted() {
            let planned = match self.plan.steps.get(event.step).map(|s| &s.kind) {
                Some(StepKind::Change { resource, .. } | StepKind::Finish { resource }) => self.plan.resources.get(*resource),
                _ => None,
            };
            let resource_type = planned.map_or(event.address.kind.as_str(), |r| r.resource_type.as_str());
            let message = self.recorder.line(event, &Theme { color: false, ..self.theme.clone() });
            if let Some(line) = (Stream { now }).event(event, resource_type, message) {
                self.lines.write(self.output, &line);
            }
        }
        if self.lines.only {
            return;
        }
        match &mut self.live {
            None => {
                if let Some(line) = line {
                    self.output.print(&format!("{line}\n"));
                }
            }
            Some(live) => {
                live.event(event, now);
                // What runs is in the live part; above it stands what came to an end.
                let is_end = !matches!(event.kind, EventKind::Started | EventKind::Waiting(_));
                let above = line.filter(|_| is_end).map(|l| format!("{l}\n")).unwrap_or_default();
                if is_end {
                    let text = live.draw(&above, now, self.theme);
                    self.output.print(&text);
                }
            }
        }
    }

    fn tick(&mut self, now: u64) {
        if let Some(live) = &mut self.live {
            let text = live.draw("", now, self.theme);
            self.output.print(&text);
        }
    }

    fn say(&mut self, text: &str, now: u64) {
        if self.lines.are_wanted() {
            self.lines.write(self.output, &(Stream { now }).log(text.trim()));
        }
        if !self.lines.only {
            let above = self.live.as_mut().map(Live::erase).unwrap_or_default();
            self.output.print(&format!("{above}{text}"));
        }
    }
}

/// Carries out the plan. Everything finished is in the state when this returns, whatever went wrong.
pub(crate) fn carry_out(
    app: &mut App,
    project: &Project,
    planned: &Planned,
    session: &mut Session,
    pool: &Arc<Pool>,
    parallelism: usize,
) -> Outcome {
    let began = app.now();
    let registry = Arc::clone(&app.wiring.registry);
    let clock = Arc::clone(&app.wiring.clock);
    let interrupt = app.interrupt.clone();
    let _asking = interrupt.ask_first();
    let options = ApplyOptions {
        parallelism,
        interrupt: interrupt.flag(),
        stored: session.stored,
        checkpoint: CHECKPOINT,
        seed: (app.wiring.ids)(),
        heartbeat: HEARTBEAT,
    };
    let is_live = app.output.terminal.stdout && app.theme.color && !app.lines.only;
    let screen = Mutex::new(Screen {
        theme: &app.theme,
        narrator: Narrator::default(),
        recorder: Narrator::default(),
        live: is_live.then(|| Live::new(visible_steps(&planned.plan))),
        lines: &mut app.lines,
        profile: &mut app.profile,
        catalog: registry.catalog(),
        skipped: Vec::new(),
        plan: &planned.plan,
        output: &mut app.output,
    });
    let with_screen = |act: &mut dyn FnMut(&mut Screen<'_>)| act(&mut screen.lock().unwrap_or_else(PoisonError::into_inner));
    let Session { open, journal, snapshot, .. } = session;
    let world =
        World { config: &project.config, registry: &registry, state: snapshot, pool, runtime: clock.as_ref(), hands: Some(&registry) };
    let mut on_event = |event: Event| {
        with_screen(&mut |s| s.event(&event, clock.now()));
    };
    let work = apply(&planned.plan, &planned.graph, &world, open.backend.as_ref(), journal.as_mut(), &options, &mut on_event);
    let redraw = async || -> Infallible {
        loop {
            pause(FRAME).await;
            with_screen(&mut |s| s.tick(clock.now()));
        }
    };
    let notice = async {
        interrupt.wait().await;
        let text = "\nInterrupt received. Ending after the running steps; press again to stop at once.\n\n";
        with_screen(&mut |s| s.say(text, clock.now()));
        std::future::pending::<Infallible>().await
    };
    let outcome = app.executor.block_on(async {
        tokio::select! {
            outcome = work => outcome,
            never = redraw() => match never {},
            never = notice => match never {},
        }
    });
    with_screen(&mut |s| {
        let rest = s.live.as_mut().map(Live::erase).unwrap_or_default();
        s.output.print(&rest);
        if !s.lines.only {
            let text = not_started(&s.skipped);
            s.output.print(&text);
        }
    });
    app.profile.connect(&planned.plan.steps);
    app.profile.phase("apply", began, app.now());
    if !outcome.unsaved && outcome.snapshot.serial != session.snapshot.serial {
        session.stored = Some(outcome.snapshot.serial);
    }
    session.snapshot = outcome.snapshot.clone();
    if outcome.succeeded + outcome.failed > 0 {
        session.overrides.extend(broken_of(&planned.plan));
    }
    outcome
}

/// What was not started, with the first few by name.
fn not_started(skipped: &[String]) -> String {
    let Some((last, _)) = skipped.split_last() else { return String::new() };
    let names = match skipped.len() {
        1 => last.clone(),
        n if n <= MOST_NAMES => skipped.join(", "),
        n => format!("{} and {} more", skipped[..MOST_NAMES].join(", "), n - MOST_NAMES),
    };
    let verb = if skipped.len() == 1 { "step was" } else { "steps were" };
    format!("\n{} {verb} not started: {names}.\nEverything that was done is in the state; plan again to see what is left.\n", skipped.len())
}

fn visible_steps(plan: &Plan) -> usize {
    plan.steps.iter().filter(|s| matches!(s.kind, StepKind::Change { .. } | StepKind::Gate { .. })).count()
}
