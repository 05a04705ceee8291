//! karmaform, the command: arguments in, exit code out.
//!
//! The only part that prints, reads the environment, asks the clock and exits. [`run`] takes all of that as values, so that tests drive
//! commands in-process with a fake world.

mod app;
mod applying;
mod arguments;
mod backend;
mod backup;
mod bundle;
mod cli;
mod commands;
mod confirming;
mod disk;
mod distinct;
mod drift;
mod expanding;
mod flags;
mod hidden;
mod lines;
mod locking;
mod output;
mod page;
mod planning;
mod policies;
mod profile;
mod project;
mod reading;
mod redact;
mod report;
mod restoring;
#[cfg(test)]
mod run_tests;
mod runtime;
mod saved;
mod session;
mod testing;
mod trust;
mod ui;
mod view;
mod wiring;
mod workspace;

use std::ffi::OsString;

pub use output::{Captured, Output, Terminal};
pub use runtime::leave;
pub use wiring::{BackendKind, BackendRequest, OpenBackend, OpenJournal, Wiring};

use app::{App, Ended, VERSION};
use arguments::Reader;
use cli::{Cli, Command, Parsed};
use karmaform_model::Diagnostic;
use ui::json::diagnostics::validation;
use ui::json::indented;

/// A plan is made of millions of small pieces, and taking and giving back memory for them is half of its work: `docs/decisions/0008`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Help was shown because nothing else was asked for.
const NOTHING_ASKED: i32 = 127;
/// The same of a command that only has others below it.
const NO_SUBCOMMAND: i32 = 1;

/// Runs one command. `args` begins with the program's name. Gives the exit code.
pub fn run(args: Vec<OsString>, wiring: Wiring, output: Output) -> i32 {
    let mut output = output;
    let is_bare = args.len() <= 1;
    let args = arguments::with_environment(args, |name| wiring.environment.get(name).cloned());
    let reader = arguments::reader(&args);
    let cli = match cli::parse(args) {
        Parsed::Text(text) => {
            output.print(&text);
            return 0;
        }
        _ if is_bare => {
            output.print(&cli::help());
            return NOTHING_ASKED;
        }
        Parsed::Usage(text) => {
            output.print(&text);
            return NO_SUBCOMMAND;
        }
        Parsed::Run(cli) => Ok(cli),
        Parsed::Wrong(diagnostic) => Err(diagnostic),
    };
    let mut app = match App::new(wiring, output) {
        Ok(app) => app,
        // Nothing can be drawn or run without threads.
        Err(_) => return 1,
    };
    let ended = match cli {
        Ok(cli) => start(&mut app, *cli),
        Err(diagnostic) => refuse(&mut app, *diagnostic, reader),
    };
    let code = app.end(ended);
    profile::send(&mut app);
    app.executor.close();
    code
}

/// Says what is wrong with the command line to who asked.
fn refuse(app: &mut App, wrong: Diagnostic, reader: Reader) -> Ended {
    match reader {
        Reader::Human => {}
        Reader::Lines => {
            app.lines.only = true;
            app.tell(|stream| stream.version(VERSION));
        }
        Reader::Document => {
            let answer = validation(&wrong.into(), &app.sources);
            app.output.print(&indented(&answer));
            return Ok(1);
        }
    }
    Err(wrong.into())
}

fn start(app: &mut App, cli: Cli) -> Ended {
    if cli.no_color {
        app.without_color();
    }
    if let Some(directory) = cli.chdir {
        let name = directory.display().to_string();
        let directory = app.directory.join(directory);
        let entered = if directory.is_dir() { (app.wiring.enter)(&directory) } else { Err(std::io::ErrorKind::NotFound.into()) };
        entered.map_err(|e| {
            Diagnostic::error(
                "Can't change the directory",
                match e.kind() {
                    std::io::ErrorKind::NotFound => format!("There is no directory \"{name}\", which -chdir names."),
                    _ => format!("The directory \"{name}\", which -chdir names, can't be entered: {}.", disk::reason(&e)),
                },
            )
        })?;
        app.directory = directory;
    }
    if cli.version {
        return commands::version::run(app, &commands::version::Args::default());
    }
    let Some(command) = cli.command else {
        app.output.print(&cli::help());
        return Ok(NOTHING_ASKED);
    };
    match command {
        Command::Init(args) => commands::init::run(app, &args),
        Command::Validate(args) => commands::validate::run(app, &args),
        Command::Plan(args) => commands::plan::run(app, &args),
        Command::Apply(args) => commands::apply::run(app, &args),
        Command::Destroy(args) => commands::destroy::run(app, &args),
        Command::Fmt(args) => commands::fmt::run(app, &args),
        Command::Show(args) => commands::show::run(app, &args),
        Command::Output(args) => commands::output::run(app, &args),
        Command::Status(args) => commands::status::run(app, &args),
        Command::Drift(args) => commands::drift::run(app, &args),
        Command::Connect(args) => commands::connect::run(app, &args),
        Command::Etcd(args) => commands::etcd::run(app, &args),
        Command::State(args) => commands::state::run(app, &args),
        Command::Workspace(args) => commands::workspace::run(app, &args),
        Command::Bundle(args) => commands::bundle::run(app, &args),
        Command::Test(args) => commands::test::run(app, &args),
        Command::Graph(args) => commands::graph::run(app, &args),
        Command::Console(args) => commands::console::run(app, &args),
        Command::Import(args) => commands::import::run(app, &args),
        Command::Refresh(args) => commands::refresh::run(app, &args),
        Command::Doctor(args) => commands::doctor::run(app, &args),
        Command::ForceUnlock(args) => commands::force_unlock::run(app, &args),
        Command::Version(args) => commands::version::run(app, &args),
        Command::Schema(args) => commands::schema::run(app, &args),
        Command::Completion(args) => commands::completion::run(app, &args),
    }
}
