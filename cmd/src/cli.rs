//! The command line: commands, global flags, and what is said about a wrong one.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};
use karmaform_model::Diagnostic;

use crate::arguments::{normalised, with_one_dash};
use crate::commands;

/// Karmada from HCL to running: plan, apply, drift.
#[derive(Parser, Debug)]
#[command(
    name = "karmaform",
    disable_version_flag = true,
    disable_help_subcommand = true,
    // As in Terraform the last one counts: scripts, and `KF_CLI_ARGS`, give flags that somebody has given already.
    args_override_self = true,
    max_term_width = 100,
    subcommand_help_heading = "Commands"
)]
pub(crate) struct Cli {
    /// Work in this directory
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) chdir: Option<PathBuf>,
    /// Show the version
    #[arg(long, short = 'v')]
    pub(crate) version: bool,
    /// Never use colours
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// All commands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Prepare this directory
    Init(commands::init::Args),
    /// Check the configuration without looking at anything outside
    Validate(commands::validate::Args),
    /// Show what apply would do
    Plan(commands::plan::Args),
    /// Make the world like the configuration
    Apply(commands::apply::Args),
    /// Destroy everything in the state
    Destroy(commands::destroy::Args),
    /// Put configuration files into their usual form
    Fmt(commands::fmt::Args),
    /// Show the state or a saved plan
    Show(commands::show::Args),
    /// Show outputs
    Output(commands::output::Args),
    /// Show the health of what is running
    Status(commands::status::Args),
    /// Show what is not as it should be; only looks
    Drift(commands::drift::Args),
    /// Open a way to a Karmada API, for yourself or for one command
    Connect(commands::connect::Args),
    /// Look closely at an etcd cluster, save it, and care for it by hand
    Etcd(commands::etcd::Args),
    /// Take one thing that is there into the state, as it is
    Import(commands::import::Args),
    /// Look into the state
    State(commands::state::Args),
    /// Work with several states of one configuration
    Workspace(commands::workspace::Args),
    /// Write a file with everything the configuration needs from elsewhere
    Bundle(commands::bundle::Args),
    /// Run the tests of the configuration
    Test(commands::test::Args),
    /// Draw what depends on what
    Graph(commands::graph::Args),
    /// Try expressions
    Console(commands::console::Args),
    /// Take what is seen into the state
    Refresh(commands::refresh::Args),
    /// Remove the lock that a dead run left
    ForceUnlock(commands::force_unlock::Args),
    /// Check that the place of the state is fit for it
    Doctor(commands::doctor::Args),
    /// Show what blocks may hold, for programs
    Schema(commands::schema::Args),
    /// Show the version
    Version(commands::version::Args),
    /// Write a completion script for a shell
    Completion(commands::completion::Args),
}

/// What the arguments mean.
pub(crate) enum Parsed {
    /// A command to run.
    Run(Box<Cli>),
    /// A text that was asked for.
    Text(String),
    /// What a command takes that was given nothing.
    Usage(String),
    /// A wrong command line.
    Wrong(Box<Diagnostic>),
}

/// Reads the arguments; the first one is the program's name.
pub(crate) fn parse(arguments: Vec<OsString>) -> Parsed {
    match Cli::try_parse_from(normalised(arguments)) {
        Ok(cli) => Parsed::Run(Box::new(cli)),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => Parsed::Text(with_one_dash(&error.render().to_string())),
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Parsed::Usage(with_one_dash(&error.render().to_string()))
        }
        Err(error) => Parsed::Wrong(Box::new(explained(&error))),
    }
}

/// The help of the whole tool.
pub(crate) fn help() -> String {
    with_one_dash(&Cli::command().render_long_help().to_string())
}

fn explained(error: &clap::Error) -> Diagnostic {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(s)) => Some(with_one_dash(s)),
        Some(ContextValue::Strings(all)) => all.first().map(|s| with_one_dash(s)),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    let name = argument.split([' ', '=', '[']).next().unwrap_or_default().to_owned();
    let group = group(error);
    // Of what is not there, with what it stands behind: `etcd get` is no `get`.
    let unknown = text(ContextKind::InvalidSubcommand).map(|command| within(&group, &command));
    let diagnostic = match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            Diagnostic::error("Unknown flag", format!("This command has no flag {name}."))
        }
        ErrorKind::UnknownArgument => Diagnostic::error("Too many arguments", "This command takes no further argument."),
        ErrorKind::InvalidSubcommand => {
            let command = unknown.as_deref().unwrap_or_default();
            Diagnostic::error("Unknown command", format!("There is no command \"{command}\"."))
        }
        ErrorKind::MissingRequiredArgument => Diagnostic::error("Missing argument", format!("This command needs {argument}.")),
        ErrorKind::MissingSubcommand => Diagnostic::error("Missing command", "This command needs another command behind it."),
        ErrorKind::ArgumentConflict => {
            Diagnostic::error("Flags that don't go together", format!("{name} can't be used with what else was given."))
        }
        ErrorKind::InvalidValue if text(ContextKind::InvalidValue).is_some_and(|v| v.is_empty()) => {
            Diagnostic::error("Missing value of a flag", format!("{name} needs a value."))
        }
        // The value is not repeated: it may be a secret.
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let why = std::error::Error::source(error).map_or_else(|| "that is none of its values".to_owned(), ToString::to_string);
            Diagnostic::error("Invalid value of a flag", format!("The value of {name} can't be used: {why}."))
        }
        ErrorKind::NoEquals => {
            Diagnostic::error("Invalid flag", format!("The value of {name} must follow directly behind an equals sign."))
        }
        ErrorKind::TooManyValues => Diagnostic::error("Flag without a value", format!("{name} takes no value.")),
        _ => Diagnostic::error("Invalid command line", format!("{name} can't be used like this.")),
    };
    if let Some(instead) = unknown.as_deref().and_then(instead_of) {
        return diagnostic.with_hint(instead);
    }
    let suggested = text(ContextKind::SuggestedArg).or_else(|| match error.get(ContextKind::SuggestedSubcommand) {
        // The most similar one comes last.
        Some(ContextValue::Strings(all)) => all.last().map(|command| within(&group, command)),
        _ => None,
    });
    let commands = if unknown.is_some() { commands_of(&group) } else { Vec::new() };
    let diagnostic = match (suggested, error.get(ContextKind::ValidValue)) {
        (Some(name), _) => diagnostic.with_hint(format!("Did you mean {name}?")),
        (None, Some(ContextValue::Strings(values))) if !values.is_empty() => {
            diagnostic.with_hint(format!("It may be {}.", values.join(", ")))
        }
        _ if !commands.is_empty() => diagnostic.with_hint(format!("It may be {}.", commands.join(", "))),
        _ => diagnostic,
    };
    diagnostic.with_hint("Run the command with -help to see what it takes.")
}

/// The commands that the wrong word stands behind, `etcd backup` of `karmaform etcd backup frobnicate`, as the usage of these begins with
/// them. Empty where it should be a command of the tool itself.
fn group(error: &clap::Error) -> String {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    // "Usage:" and the name of the program.
    let words = usage.split_whitespace().skip(2).take_while(|word| !word.starts_with(['[', '<']));
    words.collect::<Vec<_>>().join(" ")
}

fn within(group: &str, command: &str) -> String {
    format!("{group} {command}").trim_start().to_owned()
}

/// The names of the commands behind another one, but for those that only programs call. None of the tool itself, which has too many.
fn commands_of(group: &str) -> Vec<String> {
    let all = Cli::command();
    let found = group.split(' ').try_fold(&all, |command, name| command.find_subcommand(name));
    let commands = found.into_iter().flat_map(|command| command.get_subcommands()).filter(|command| !command.is_hide_set());
    commands.map(|command| command.get_name().to_owned()).collect()
}

/// What to do instead of a command of Terraform's that is not here.
fn instead_of(command: &str) -> Option<&'static str> {
    let instead = match command {
        "taint" => "What is to be made anew is named with -replace=ADDRESS of plan and apply.",
        "untaint" => "Only what could not be made whole is marked, until an apply has made it anew.",
        "get" => "Modules are directories of the project, so nothing has to be fetched.",
        "providers" => "Providers are built in; schema -json shows what their resources take.",
        "state replace-provider" => "Providers are built in, and none takes the place of another.",
        "login" | "logout" => "Providers are built in and modules are directories of the project, so no registry is asked.",
        "env" => "Did you mean workspace?",
        _ => return None,
    };
    Some(instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(arguments: &[&str]) -> Diagnostic {
        match parse(std::iter::once(&"karmaform").chain(arguments).map(OsString::from).collect()) {
            Parsed::Wrong(diagnostic) => *diagnostic,
            _ => Diagnostic::error("parsed", ""),
        }
    }

    #[test]
    fn a_wrong_command_line_is_explained() {
        let check = |arguments: &[&str], summary: &str, hint: &str| {
            let diagnostic = wrong(arguments);
            assert_eq!(diagnostic.summary, summary, "{arguments:?}");
            assert_eq!(diagnostic.hints[0], hint, "{arguments:?}");
        };
        check(&["plann"], "Unknown command", "Did you mean plan?");
        check(&["workspace", "selct"], "Unknown command", "Did you mean workspace select?");
        check(&["workspace", "foo"], "Unknown command", "It may be list, show, new, select, delete.");
        check(&["etcd", "backup", "lst"], "Unknown command", "Did you mean etcd backup list?");
        check(&["frobnicate"], "Unknown command", "Run the command with -help to see what it takes.");
        check(&["plan", "-detailed-exit-code"], "Unknown flag", "Did you mean -detailed-exitcode?");
        check(&["plan", "-refresh=maybe"], "Invalid value of a flag", "Run the command with -help to see what it takes.");
        let diagnostic = wrong(&["plan", "-var", "hunter2"]);
        assert!(!format!("{diagnostic:?}").contains("hunter2"));
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
        assert!(help().contains("-chdir"));
        assert!(!help().contains("--chdir"));
    }
}
