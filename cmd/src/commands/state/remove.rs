//! `state rm`: forget resources; what they describe stays as it is.

use super::not_there;
use crate::app::{App, Ended, Stop};
use crate::flags::{LockFlags, PlaceFlags, boolean};
use crate::planning::addresses;
use crate::reading::current_backend;
use crate::session::Session;

/// Arguments of `state rm`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Resources, with their instances and all that is below them
    #[arg(value_name = "ADDRESS", required = true)]
    addresses: Vec<String>,
    /// Only say what would be forgotten
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    dry_run: bool,
    #[command(flatten)]
    lock: LockFlags,
    #[command(flatten)]
    state: PlaceFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let open = current_backend(app, &args.state)?;
    let mut session = Session::exclusive(app, open, "state-rm", &args.lock)?;
    let removed = remove(app, &mut session, args);
    session.close(app);
    removed?;
    Ok(0)
}

fn remove(app: &mut App, session: &mut Session, args: &Args) -> Result<(), Stop> {
    let wanted = addresses("ADDRESS", &args.addresses)?;
    let is_there = |address: &karmaform_model::Address| session.snapshot.resources.keys().any(|a| a.is_within(address));
    if args.dry_run && !wanted.iter().any(is_there) {
        app.output.print("Would remove nothing\n");
        return Ok(());
    }
    if let Some(address) = wanted.iter().find(|address| !is_there(address)) {
        return Err(not_there(address, &session.snapshot).into());
    }
    let is_wanted = |a: &karmaform_model::Address| wanted.iter().any(|w| a.is_within(w));
    let gone: Vec<_> = session.snapshot.resources.keys().filter(|a| is_wanted(a)).cloned().collect();
    let verb = if args.dry_run { "Would remove" } else { "Removed" };
    let lines: String = gone.iter().map(|a| format!("{verb} {a}\n")).collect();
    if !args.dry_run {
        let mut snapshot = session.snapshot.clone();
        let needs = snapshot.resources.iter().filter(|(a, _)| is_wanted(a)).map(|(a, r)| (a.clone(), r.dependencies.clone()));
        let needs = needs.collect();
        snapshot.resources.retain(|a, _| !is_wanted(a));
        snapshot.deposed.retain(|(a, _), _| !is_wanted(a));
        snapshot.inherit(&needs);
        session.replace(app, snapshot)?;
    }
    app.output.print(&lines);
    if !args.dry_run {
        app.output.print(&format!("Successfully removed {} resource instance(s).\n", gone.len()));
        app.say("What they describe was not touched: destroy it by hand, or take it in again.\n");
    }
    Ok(())
}
