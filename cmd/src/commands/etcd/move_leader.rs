//! `etcd move-leader`: let another member lead, before something is done to the one that does.

use karmaform_etcd::move_leader;
use serde_json::json;

use super::reach::{Acting, Target, act};
use crate::app::{App, Ended};

/// Arguments of `etcd move-leader`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// To this member; else to the voter that lags least
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    #[command(flatten)]
    acting: Acting,
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let question = "Do you want to move the leader?\n  Writes wait a moment, a quarter of a second at most where all is well.";
    let to = args.to.as_deref();
    let (old, new) = act(app, (&args.target, &args.acting), ("etcd-move-leader", question), async |c, _| move_leader(c, to).await)?;
    if args.target.json {
        let told = json!({ "format_version": "1.0", "from": old, "to": new });
        app.output.print(&format!("{told:#}\n"));
    } else if old == new {
        app.output.print(&format!("Nothing to do: {new} leads already.\n"));
    } else {
        app.output.print(&format!("The leader moved from {old} to {new}.\n"));
    }
    Ok(0)
}
