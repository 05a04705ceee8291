//! `etcd defrag`: free pages back to the disk, one member at a time, the leader last and after it has handed over.

use karmaform_etcd::{Defragmented, Defragmenting, defragment};
use serde_json::{Value as Json, json};

use super::reach::{Acting, Target, act};
use crate::app::{App, Ended};
use crate::flags::boolean;

/// Arguments of `etcd defrag`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// Also members with few free pages, and also where a member is away
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    force: bool,
    #[command(flatten)]
    acting: Acting,
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let mut question =
        "Do you want to defragment the members?\n  One at a time, followers first. Each answers nobody while it does that: seconds \
                        for each GiB. The leader hands over before its turn."
            .to_owned();
    if args.force {
        question.push_str("\n  With -force also where a member is away: then writes may wait meanwhile.");
    }
    let how = Defragmenting { force: args.force };
    let done = act(app, (&args.target, &args.acting), ("etcd-defrag", &question), async |c, tell| defragment(c, how, tell).await)?;
    if args.target.json {
        let told = json!({ "format_version": "1.0", "defragmented": to_json(&done) });
        app.output.print(&format!("{told:#}\n"));
    } else if done.is_empty() {
        app.output.print("Nothing to do: no member has more free pages than used ones in more than 100 MiB. With -force all are done.\n");
    } else {
        app.output.print(&format!("Defragmented: {} members.\n", done.len()));
    }
    Ok(0)
}

/// For programs.
pub(super) fn to_json(done: &[Defragmented]) -> Json {
    done.iter().map(|d| json!({ "member": d.member, "size_before_bytes": d.before, "size_after_bytes": d.after })).collect()
}
