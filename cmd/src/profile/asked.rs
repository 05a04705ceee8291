//! Who wants to know what took how long: files that a flag names (`-profile`), and a collector of traces that the environment names.

use karmaform_model::Diagnostics;

use super::collector::{Collector, wants_traces};
use super::otlp::Parent;
use super::variables::resource;
use super::{chrome, otlp, page};
use crate::app::{App, Ended, Stop, VERSION};
use crate::report::{Format, Wanted, wanted, write};

/// `-profile`
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ProfileFlags {
    /// Write what took how long: html (a page), chrome (trace events, for Perfetto) or otlp (OpenTelemetry, as JSON). May be repeated
    #[arg(long = "profile", value_name = "FORMAT=FILE", action = clap::ArgAction::Append,
          value_parser = wanted(&[Format::Html, Format::Chrome, Format::Otlp]))]
    pub(crate) wanted: Vec<Wanted>,
}

/// Runs a command, and writes what is wanted of its run. Also of one that failed it is told what took how long. Nothing that was done is undone by a
/// file that can't be written. What a collector is to have is kept for [`send`].
pub(crate) fn profiled(app: &mut App, flags: &ProfileFlags, command: &'static str, run: impl FnOnce(&mut App) -> Ended) -> Ended {
    let began = app.now();
    let ended = run(app);
    let now = app.now();
    app.profile.over(command, began, now, &ended);
    match (write_profiles(app, flags), ended) {
        (Err(Stop::Because(why)), Err(Stop::Because(mut others))) => {
            others.extend(why);
            Err(Stop::Because(others))
        }
        (Err(stop), Ok(_)) => Err(stop),
        (_, ended) => ended,
    }
}

fn write_profiles(app: &mut App, flags: &ProfileFlags) -> Result<(), Stop> {
    let parent = app.wiring.environment.get("TRACEPARENT").and_then(|text| Parent::parse(text));
    // Who began the trace has decided whether anybody keeps it.
    let is_sent = wants_traces(&app.wiring.environment) && parent.as_ref().is_none_or(Parent::is_kept);
    if !is_sent && flags.wanted.is_empty() {
        return Ok(());
    }
    let (resource, wrong) = resource(&app.wiring.environment, VERSION);
    app.remark(&wrong);
    let trace = format!("{}\n", otlp::spans(&app.profile, &resource, parent.as_ref(), &(app.wiring.ids)(), VERSION));
    app.trace = is_sent.then(|| trace.clone());
    write(app, &flags.wanted, |format| match format {
        Format::Chrome => format!("{}\n", chrome::trace(&app.profile)),
        Format::Otlp => trace.clone(),
        _ => page::page(&app.profile).html(),
    })
}

/// Sends the trace of the run, if there is one to send. Comes when everything else is said and done: nobody waits for a collector to learn how a run
/// ended, and whatever becomes of the trace is worth a warning at most.
pub(crate) fn send(app: &mut App) {
    let Some(trace) = app.trace.take() else { return };
    let mut said = Diagnostics::new();
    let collector = Collector::read(&app.wiring.environment, &app.directory, &mut said);
    if let Err(why) = collector.and_then(|collector| app.executor.block_on(collector.send(trace))) {
        said.push(why);
    }
    app.remark(&said);
}
