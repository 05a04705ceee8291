//! `etcd restore`: what the helpers of members in pods run when their cluster is restored (`providers/etcd/src/cluster/restore/pods.rs`). It is for them
//! alone: whoever restores writes a block `restore`.

use std::path::PathBuf;

use clap::ArgAction;
use karmaform_etcd::{Beginning, restore};
use karmaform_model::Diagnostic;

use crate::app::{App, Ended};
use crate::flags::boolean;
use crate::restoring::{Asked, Input, Volume};

/// Arguments of `etcd restore`.
#[derive(clap::Args, Debug)]
#[command(disable_help_subcommand = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Do nothing until told to end
    Wait,
    /// Make what is restored ready beside the data
    Prepare(Prepare),
    /// Put that in the place of the data
    Switch(Of),
    /// Remove what is left of restorations
    Tidy(Tidy),
}

#[derive(clap::Args, Debug)]
struct Of {
    /// The data directory
    #[arg(value_name = "DIR")]
    data: PathBuf,
    /// What names the restoration
    #[arg(long)]
    token: String,
}

#[derive(clap::Args, Debug)]
struct Prepare {
    #[command(flatten)]
    of: Of,
    /// The sum of the snapshot that comes by standard input
    #[arg(long)]
    sha256: String,
    /// The member
    #[arg(long)]
    member: String,
    /// All members
    #[arg(long)]
    members: String,
    /// Its address for them
    #[arg(long)]
    url: String,
    /// By how much the revision is raised
    #[arg(long, default_value_t = 0)]
    bump_revision: u64,
    /// The largest database that the cluster takes, in bytes; below zero: any
    #[arg(long, allow_hyphen_values = true, default_value_t = -1)]
    quota: i64,
}

#[derive(clap::Args, Debug)]
struct Tidy {
    /// The data directory
    #[arg(value_name = "DIR")]
    data: PathBuf,
    /// But what was there before them
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = ArgAction::Set, value_parser = boolean)]
    keep_before: bool,
}

/// Runs it. Whoever runs it hears the last line that it says.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let (code, said) = match work(app, &args.command) {
        Ok(said) => (0, said),
        Err(why) => (1, [vec![why.detail], why.hints].concat().join(" ")),
    };
    app.output.print(&format!("{}\n", said.replace('\n', " ")));
    Ok(code)
}

fn work(app: &mut App, command: &Command) -> Result<String, Diagnostic> {
    match command {
        Command::Wait => {
            app.executor.block_on(app.interrupt.wait());
            Ok("told to end".to_owned())
        }
        Command::Prepare(args) => {
            let beginning =
                Beginning { name: &args.member, url: &args.url, members: &args.members, token: &args.of.token, bump: args.bump_revision };
            let asked = Asked { sha256: &args.sha256, quota: u64::try_from(args.quota).ok().filter(|quota| *quota > 0), beginning };
            let output = std::cell::RefCell::new(&mut app.output);
            let ask = |what: &str| output.borrow_mut().print(&format!("{what}\n"));
            Volume::of(&args.of.data)?.prepare(&asked, &mut Input { from: &mut std::io::stdin().lock(), ask: &ask }, &restore)
        }
        Command::Switch(args) => Volume::of(&args.data)?.switch(&args.token),
        Command::Tidy(args) => Volume::of(&args.data)?.tidy(args.keep_before),
    }
}
