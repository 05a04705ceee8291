//! `etcd alarm`: which alarms are on, and making room so that they can end.

use karmaform_etcd::{disarm, survey};
use karmaform_model::Diagnostic;
use serde_json::json;

use super::reach::{Acting, Target, act, look};
use super::status::{NOT_WELL, alarms_json};
use crate::app::{App, Ended};
use crate::planning::looking;

/// Arguments of `etcd alarm`.
#[derive(clap::Args, Debug)]
#[command(disable_help_subcommand = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// List the alarms that are on; exit code 2 if there are any
    List {
        #[command(flatten)]
        target: Target,
    },
    /// Drop old history, defragment each member, and end the alarm if there is room then
    Disarm {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        acting: Acting,
    },
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    match &args.command {
        Command::List { target } => list(app, target),
        Command::Disarm { target, acting } => end(app, target, acting),
    }
}

fn list(app: &mut App, target: &Target) -> Ended {
    let reached = look(app, target)?;
    let seen = looking(app, survey(&reached.cluster))?;
    if seen.list.is_empty() {
        let why = seen.troubles().join("; ");
        return Err(Diagnostic::error("Alarms can't be asked for", format!("No member could be asked: {why}.")).into());
    }
    if target.json {
        let told = json!({ "format_version": "1.0", "alarms": alarms_json(&seen) });
        app.output.print(&format!("{told:#}\n"));
    } else if seen.alarms.is_empty() {
        app.output.print("No alarm is on.\n");
    } else {
        let lines: String = seen.alarm_words().iter().map(|w| format!("{w}\n")).collect();
        app.output.print(&lines);
    }
    Ok(if seen.alarms.is_empty() { 0 } else { NOT_WELL })
}

fn end(app: &mut App, target: &Target, acting: &Acting) -> Ended {
    let question = "Do you want to make room and end the alarms?\n  All history is dropped but what is newest; then the members are defragmented, one \
                    at a time, the leader last; the alarm ends if there is room then. Save the cluster before, with etcd snapshot.";
    let done = act(app, (target, acting), ("etcd-alarm-disarm", question), async |c, tell| disarm(c, tell).await)?;
    if target.json {
        let told = json!({
            "format_version": "1.0", "alarms_ended": done.alarms.len(), "compacted": done.compacted,
            "defragmented": super::defrag::to_json(&done.defragmented),
        });
        app.output.print(&format!("{told:#}\n"));
    } else if done.alarms.is_empty() {
        app.output.print("Nothing to do: no alarm is on.\n");
    } else {
        app.output.print(&format!("Alarms ended: {}. The cluster takes writes again.\n", done.alarms.len()));
    }
    Ok(0)
}
