//! `refresh`: `apply -refresh-only -auto-approve`.

use super::apply::{Command, How, from_configuration};
use crate::app::{App, Ended};
use crate::flags::{LockFlags, OverrideFlags, ParallelismFlags, PlanningFlags, StateFlags, VariableFlags, ViewFlags};
use crate::profile::{ProfileFlags, profiled};

/// Arguments of `refresh`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Only this resource and what it needs. May be repeated
    #[arg(long, value_name = "ADDRESS", action = clap::ArgAction::Append)]
    target: Vec<String>,
    #[command(flatten)]
    policies: OverrideFlags,
    #[command(flatten)]
    parallelism: ParallelismFlags,
    #[command(flatten)]
    variables: VariableFlags,
    #[command(flatten)]
    state: StateFlags,
    #[command(flatten)]
    lock: LockFlags,
    #[command(flatten)]
    view: ViewFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let how = How {
        auto_approve: true,
        confirm: Vec::new(),
        variables: args.variables.clone(),
        state: args.state.clone(),
        lock: args.lock.clone(),
        view: args.view.clone(),
        profile: ProfileFlags::default(),
        command: Command::Refresh,
    };
    app.view(&how.view)?;
    let planning = PlanningFlags {
        destroy: false,
        refresh_only: true,
        refresh: true,
        target: args.target.clone(),
        exclude: Vec::new(),
        replace: Vec::new(),
        policies: args.policies.clone(),
        parallelism: args.parallelism,
    };
    profiled(app, &how.profile, "refresh", |app| from_configuration(app, &planning, &how, false))
}
