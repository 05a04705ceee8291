//! `state history` and `state restore`: the state as earlier runs left it.

use karmaform_model::{Diagnostic, Generation, Serial, Snapshot};

use crate::app::{App, Ended, Stop};
use crate::flags::{LockFlags, PlaceFlags, boolean};
use crate::reading::current_backend;
use crate::session::{Session, backend_failed};
use crate::ui::style::Tone;
use crate::ui::table::table;
use crate::wiring::OpenBackend;

/// So many digits of a configuration's digest are shown; enough to tell two apart.
const DIGITS: usize = 12;

/// Arguments of `state history`.
#[derive(clap::Args, Debug)]
pub(crate) struct HistoryArgs {
    /// JSON instead of a table
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    json: bool,
    #[command(flatten)]
    state: PlaceFlags,
}

/// Arguments of `state restore`.
#[derive(clap::Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The serial of a generation, as state history shows it
    #[arg(value_name = "SERIAL")]
    serial: Serial,
    #[command(flatten)]
    lock: LockFlags,
    #[command(flatten)]
    state: PlaceFlags,
}

/// Lists the generations, the latest last.
pub(crate) fn history(app: &mut App, args: &HistoryArgs) -> Ended {
    let open = open(app, &args.state)?;
    let all = generations(app, &open)?;
    if args.json {
        let text = serde_json::to_string_pretty(&all).unwrap_or_default();
        app.output.print(&format!("{text}\n"));
        return Ok(0);
    }
    if all.is_empty() {
        app.say("No run has left a generation yet.\n");
        return Ok(0);
    }
    let header = ["serial", "when", "who", "operation", "resources", "configuration"].map(str::to_owned);
    let or_unknown = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
    let row = |g: &Generation| {
        let digest = g.configuration.get(..DIGITS).unwrap_or(&g.configuration);
        let resources = if g.who.is_empty() { String::new() } else { g.resources.to_string() };
        let without: String = g.overrides.iter().map(|(name, reason)| format!(", without {name}: {reason}")).collect();
        let operation = format!("{}{without}", g.operation);
        let cells = [g.serial.to_string(), g.created.clone(), g.who.clone(), operation, resources, digest.to_owned()];
        cells.map(|cell| (or_unknown(&cell), Tone::Plain)).to_vec()
    };
    let text = table(&header, &all.iter().map(row).collect::<Vec<_>>(), &app.theme);
    app.output.print(&text);
    Ok(0)
}

/// Puts a generation in the place of the state. The world is not touched: the next plan shows what differs from it.
pub(crate) fn restore(app: &mut App, args: &RestoreArgs) -> Ended {
    let open = open(app, &args.state)?;
    let mut session = Session::exclusive(app, open, "state-restore", &args.lock)?;
    let restored = generation(app, &session.open, args.serial).and_then(|state| {
        let count = state.resources.len();
        session.replace(app, state).map(|serial| (count, serial))
    });
    session.close(app);
    let (count, serial) = restored?;
    let text = format!("The state is as serial {} left it: {count} resources. It has serial {serial} now.\n", args.serial);
    app.say(&text);
    app.say("Nothing else was touched. Run plan to see what differs from it.\n");
    Ok(0)
}

/// One generation's state, of the backend that the configuration says, or of the file that a flag names.
///
/// # Errors
/// If it is not kept.
pub(crate) fn state_of(app: &mut App, serial: Serial, state: &PlaceFlags) -> Result<Snapshot, Stop> {
    let open = open(app, state)?;
    generation(app, &open, serial)
}

fn open(app: &mut App, state: &PlaceFlags) -> Result<OpenBackend, Stop> {
    current_backend(app, state)
}

fn generations(app: &App, open: &OpenBackend) -> Result<Vec<Generation>, Stop> {
    let all = app.executor.block_on(open.backend.history()).map_err(|e| backend_failed("read", &open.place, &e))?;
    all.ok_or_else(|| {
        let detail = format!("The backend \"{}\" keeps no generations.", open.kind);
        Diagnostic::error("No history", detail)
            .with_hint("What it keeps the state in may have earlier versions of it: fetch one there, and give it to state push.")
            .into()
    })
}

fn generation(app: &App, open: &OpenBackend, serial: Serial) -> Result<Snapshot, Stop> {
    let found = app.executor.block_on(open.backend.generation(serial)).map_err(|e| backend_failed("read", &open.place, &e))?;
    if let Some(state) = found {
        return Ok(state);
    }
    let kept: Vec<_> = generations(app, open)?.iter().map(|g| g.serial.to_string()).collect();
    let hint = if kept.is_empty() { "No run has left one yet.".to_owned() } else { format!("Kept are {}.", kept.join(", ")) };
    Err(Diagnostic::error("No such generation", format!("The state with serial {serial} is not kept.")).with_hint(hint).into())
}
