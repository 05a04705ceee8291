//! `completion`: a script for a shell.

use clap::CommandFactory as _;

use crate::app::{App, Ended};
use crate::cli::Cli;

/// Arguments of `completion`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: clap_complete::Shell,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "karmaform", &mut script);
    app.output.print(&String::from_utf8_lossy(&script));
    Ok(0)
}
