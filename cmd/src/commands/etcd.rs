//! `etcd`: look closely at one etcd cluster of the state, and do to it by hand what no plan does.
//!
//! What only looks takes no lock. What acts takes the state's lock, so that no apply restarts a member meanwhile, and asks first.

mod alarm;
mod backup;
mod defrag;
mod hashkv;
mod member;
mod move_leader;
mod reach;
mod restore;
mod snapshot;
mod status;
mod verify;

use crate::app::{App, Ended};

/// Arguments of `etcd`.
#[derive(clap::Args, Debug)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do with it.
#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Show each member closely: versions, leader, lag, sizes, alarms, whether all have the same data
    Status(status::Args),
    /// The members as the cluster's own list has them
    Member(member::Args),
    /// Compare the data of all members
    Hashkv(hashkv::Args),
    /// Save the cluster into a file
    Snapshot(snapshot::Args),
    /// Backups on a schedule: list them, and get one back
    Backup(backup::Args),
    /// What the helper of a member in a pod does when its cluster is restored
    #[command(hide = true)]
    Restore(restore::Args),
    /// Check a saved file, and prove it by a restore
    Verify(verify::Args),
    /// Give free pages back to the disk, one member at a time
    Defrag(defrag::Args),
    /// Show alarms, or make room and end them
    Alarm(alarm::Args),
    /// Let another member lead
    MoveLeader(move_leader::Args),
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    match &args.command {
        Command::Status(args) => status::run(app, args),
        Command::Member(args) => member::run(app, args),
        Command::Hashkv(args) => hashkv::run(app, args),
        Command::Snapshot(args) => snapshot::run(app, args),
        Command::Backup(args) => backup::run(app, args),
        Command::Restore(args) => restore::run(app, args),
        Command::Verify(args) => verify::run(app, args),
        Command::Defrag(args) => defrag::run(app, args),
        Command::Alarm(args) => alarm::run(app, args),
        Command::MoveLeader(args) => move_leader::run(app, args),
    }
}
