//! `etcd member list`: the members as the cluster's own list has them, which is what counts. Only looks.

use karmaform_etcd::{Listed, survey};
use karmaform_model::Diagnostic;
use serde_json::json;

use super::reach::{Target, look};
use crate::app::{App, Ended};
use crate::planning::looking;
use crate::ui::style::Tone;
use crate::ui::table::table;

/// Arguments of `etcd member`.
#[derive(clap::Args, Debug)]
#[command(disable_help_subcommand = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// List the members
    List {
        #[command(flatten)]
        target: Target,
    },
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let Command::List { target } = &args.command;
    let reached = look(app, target)?;
    let seen = looking(app, survey(&reached.cluster))?;
    if seen.list.is_empty() {
        let why = seen.troubles().join("; ");
        return Err(Diagnostic::error("No list of members", format!("No member could be asked who is in the cluster: {why}.")).into());
    }
    if target.json {
        let one = |m: &Listed| {
            json!({ "id": format!("{:x}", m.id), "name": m.name, "learner": m.learner, "started": !m.client_urls.is_empty(),
                    "peer_urls": m.peer_urls, "client_urls": m.client_urls })
        };
        let all = json!({ "format_version": "1.0", "members": seen.list.iter().map(one).collect::<Vec<_>>() });
        app.output.print(&format!("{all:#}\n"));
        return Ok(0);
    }
    let header = ["id", "name", "state", "votes", "peers", "clients"].map(str::to_owned);
    let row = |m: &Listed| {
        let state = if m.client_urls.is_empty() { ("never started", Tone::Remove) } else { ("started", Tone::Plain) };
        let votes = if m.learner { ("no", Tone::Change) } else { ("yes", Tone::Plain) };
        let plain = |text: String| (text, Tone::Plain);
        let word = |(text, tone): (&str, Tone)| (text.to_owned(), tone);
        vec![
            plain(format!("{:x}", m.id)),
            (m.name.clone(), Tone::Bold),
            word(state),
            word(votes),
            plain(m.peer_urls.join(", ")),
            plain(m.client_urls.join(", ")),
        ]
    };
    let rows: Vec<_> = seen.list.iter().map(row).collect();
    let text = table(&header, &rows, &app.theme);
    app.output.print(&text);
    Ok(0)
}
