//! `state`: look into the state, and change it without touching the world.

mod history;
mod mv;
mod rebuild;
mod remove;
mod transfer;

use karmaform_model::{Address, Diagnostic, Serial, Snapshot};

use crate::app::{App, Ended, Stop};
use crate::flags::PlaceFlags;
use crate::planning::addresses;
use crate::reading::current_state;
use crate::ui::state::resource_text;

/// Arguments of `state`.
#[derive(clap::Args, Debug)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do with it.
#[derive(clap::Subcommand, Debug)]
enum Command {
    /// List the resources
    List {
        /// Only these, their instances and what is below them
        #[arg(value_name = "ADDRESS")]
        addresses: Vec<String>,
        /// Only what has this id
        #[arg(long, value_name = "ID")]
        id: Option<String>,
        #[command(flatten)]
        state: PlaceFlags,
    },
    /// Show one resource; secrets are masked
    Show {
        /// Which one
        #[arg(value_name = "ADDRESS")]
        address: String,
        /// As the run left it that wrote this serial
        #[arg(long, value_name = "SERIAL")]
        generation: Option<Serial>,
        #[command(flatten)]
        state: PlaceFlags,
    },
    /// Write the state to standard output, secrets and all
    Pull {
        /// As the run left it that wrote this serial
        #[arg(long, value_name = "SERIAL")]
        generation: Option<Serial>,
        #[command(flatten)]
        state: PlaceFlags,
    },
    /// Put a state file in the place of the state
    Push(transfer::PushArgs),
    /// Give a resource another address
    Mv(mv::Args),
    /// Forget resources without destroying them
    Rm(remove::Args),
    /// List the states that earlier runs left
    History(history::HistoryArgs),
    /// Put the state that an earlier run left in the place of the state
    Restore(history::RestoreArgs),
    /// Make a state that was lost anew, from the configuration and what is there
    Rebuild(rebuild::Args),
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    match &args.command {
        Command::List { addresses, id, state } => list(app, addresses, id.as_deref(), state),
        Command::Show { address, generation, state } => show(app, address, *generation, state),
        Command::Pull { generation, state } => transfer::pull(app, *generation, state),
        Command::Push(args) => transfer::push(app, args),
        Command::Mv(args) => mv::run(app, args),
        Command::Rm(args) => remove::run(app, args),
        Command::History(args) => history::history(app, args),
        Command::Restore(args) => history::restore(app, args),
        Command::Rebuild(args) => rebuild::run(app, args),
    }
}

fn read(app: &mut App, state: &PlaceFlags) -> Result<Snapshot, Stop> {
    current_state(app, state)?.ok_or_else(|| {
        Diagnostic::error("No state file was found", "There is no state yet, so there is nothing in it.")
            .with_hint("Run apply first.")
            .into()
    })
}

fn list(app: &mut App, wanted: &[String], id: Option<&str>, state: &PlaceFlags) -> Ended {
    let wanted = addresses("ADDRESS", wanted)?;
    let snapshot = read(app, state)?;
    for address in &wanted {
        if !snapshot.resources.keys().any(|a| a.is_within(address)) {
            return Err(not_there(address, &snapshot).into());
        }
    }
    let has_id = |r: &karmaform_model::ResourceState| id.is_none_or(|id| r.attributes.get("id").and_then(|v| v.as_str()) == Some(id));
    let mut listed: Vec<&Address> = snapshot.resources.iter().filter(|(_, r)| has_id(r)).map(|(a, _)| a).collect();
    listed.sort_by(|a, b| a.list_order().cmp(&b.list_order()));
    // As in Terraform: one after the other as they were asked for, and each as often as it was.
    if !wanted.is_empty() {
        listed = wanted.iter().flat_map(|w| listed.iter().copied().filter(|a| a.is_within(w)).collect::<Vec<_>>()).collect();
    }
    let lines: String = listed.into_iter().map(|a| format!("{a}\n")).collect();
    app.output.print(&lines);
    Ok(0)
}

fn show(app: &mut App, address: &str, generation: Option<Serial>, state: &PlaceFlags) -> Ended {
    let address = addresses("ADDRESS", &[address.to_owned()])?.remove(0);
    let snapshot = match generation {
        Some(serial) => history::state_of(app, serial, state)?,
        None => read(app, state)?,
    };
    let Some(resource) = snapshot.resources.get(&address) else {
        return Err(not_there(&address, &snapshot).into());
    };
    let text = resource_text(&address, None, resource, &app.wiring.registry, &app.theme);
    app.output.print(&text);
    Ok(0)
}

fn not_there(address: &Address, snapshot: &Snapshot) -> Diagnostic {
    let diagnostic = Diagnostic::error("No such resource in the state", format!("The state holds nothing at {address}."));
    let alike: Vec<_> = snapshot.resources.keys().filter(|a| a.block() == address.block()).take(3).map(ToString::to_string).collect();
    if alike.is_empty() {
        diagnostic.with_hint("Run state list to see what there is.")
    } else {
        diagnostic.with_hint(format!("There is {}.", alike.join(", ")))
    }
}
