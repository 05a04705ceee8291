//! `workspace`: several states for one configuration. What is printed is Terraform's, for the tools that read it.

use std::sync::Arc;

use karmaform_model::{Diagnostic, Snapshot, is_sealed};

use crate::app::{App, Ended, Stop, VERSION};
use crate::backend::open_workspace;
use crate::disk::reason;
use crate::flags::{LockFlags, VariableFlags, boolean};
use crate::locking::{lock, release};
use crate::reading::settings_of_directory;
use crate::session::{backend_failed, read_state};
use crate::ui::resource::resources;
use crate::ui::style::Tone;
use crate::wiring::{DEFAULT_WORKSPACE, OpenBackend};
use crate::workspace::{VARIABLE, check, current, missing, of_environment, select};

/// Arguments of `workspace`.
#[derive(clap::Args, Debug)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(clap::Subcommand, Debug)]
enum Command {
    /// List the workspaces; a star marks the one that is selected
    List(VariableFlags),
    /// Print the name of the one that is selected
    Show,
    /// Make one, with an empty state, and select it
    New(NewArgs),
    /// Select another one
    Select(SelectArgs),
    /// Remove one with its state
    Delete(DeleteArgs),
}

/// Arguments of `workspace new`.
#[derive(clap::Args, Debug)]
struct NewArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    /// Begin with a copy of this state file
    #[arg(long, value_name = "FILE")]
    state: Option<String>,
    #[command(flatten)]
    lock: LockFlags,
    #[command(flatten)]
    variables: VariableFlags,
}

/// Arguments of `workspace select`.
#[derive(clap::Args, Debug)]
struct SelectArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    /// Make it if it is not there
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    or_create: bool,
    #[command(flatten)]
    variables: VariableFlags,
}

/// Arguments of `workspace delete`.
#[derive(clap::Args, Debug)]
struct DeleteArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    /// Even if there are resources in its state: they are forgotten, and left as they are
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    force: bool,
    #[command(flatten)]
    lock: LockFlags,
    #[command(flatten)]
    variables: VariableFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    match &args.command {
        Command::List(variables) => list(app, variables),
        Command::Show => {
            let name = current(app)?;
            app.output.print(&format!("{name}\n"));
            Ok(0)
        }
        Command::New(args) => {
            overridden(app)?;
            make(app, args)
        }
        Command::Select(args) => choose(app, args),
        Command::Delete(args) => delete(app, args),
    }
}

fn list(app: &mut App, variables: &VariableFlags) -> Ended {
    let here = current(app)?;
    let others = others(app, variables)?;
    let line = |name: &str| format!("{} {name}\n", if name == here { "*" } else { " " });
    let text: String = std::iter::once(DEFAULT_WORKSPACE).chain(others.iter().map(String::as_str)).map(line).collect();
    app.output.print(&format!("{text}\n"));
    if of_environment(app).is_some() {
        app.say(&format!("{VARIABLE} chooses the workspace, whatever is selected.\n"));
    }
    Ok(0)
}

/// The state of a workspace in the place that the configuration says.
fn open(app: &mut App, name: &str, variables: &VariableFlags) -> Result<OpenBackend, Stop> {
    let settings = settings_of_directory(app, variables)?;
    open_workspace(app, &settings, name)
}

fn others(app: &mut App, variables: &VariableFlags) -> Result<Vec<String>, Stop> {
    let open = open(app, DEFAULT_WORKSPACE, variables)?;
    let found = app.executor.block_on(open.backend.workspaces()).map_err(|e| backend_failed("read", &open.place, &e))?;
    found.ok_or_else(|| Diagnostic::error("No workspaces here", format!("The backend \"{}\" has no workspaces.", open.kind)).into())
}

/// Nothing can be selected while the environment does.
fn overridden(app: &App) -> Result<(), Stop> {
    match of_environment(app) {
        None => Ok(()),
        Some(name) => {
            Err(Diagnostic::error("Workspace is overridden", format!("{VARIABLE} chooses the workspace \"{name}\" for every run."))
                .with_hint(format!("Unset {VARIABLE}, or set it to the one that you want."))
                .into())
        }
    }
}

fn choose(app: &mut App, args: &SelectArgs) -> Ended {
    check(&args.name)?;
    overridden(app)?;
    // A selection that can't be one is what this is to mend.
    let here = current(app).unwrap_or_default();
    if args.name != DEFAULT_WORKSPACE && !others(app, &args.variables)?.contains(&args.name) {
        if args.or_create {
            let lock = LockFlags { lock: true, lock_timeout: 0 };
            return begin(app, &NewArgs { name: args.name.clone(), state: None, lock, variables: args.variables.clone() });
        }
        return Err(missing(&args.name).into());
    }
    select(app, &args.name)?;
    if here != args.name {
        let text = app.theme.strong(Tone::Add, &format!("Switched to workspace \"{}\".", args.name));
        app.say(&format!("{text}\n"));
    }
    Ok(0)
}

fn make(app: &mut App, args: &NewArgs) -> Ended {
    let name = &args.name;
    check(name)?;
    if name == DEFAULT_WORKSPACE || others(app, &args.variables)?.iter().any(|other| other == name) {
        return Err(Diagnostic::error("Workspace exists already", format!("Workspace \"{name}\" already exists."))
            .with_hint(format!("To select it: karmaform workspace select {name}"))
            .into());
    }
    begin(app, args)
}

/// Makes one that is not there, and selects it.
fn begin(app: &mut App, args: &NewArgs) -> Ended {
    let name = &args.name;
    let open = open(app, name, &args.variables)?;
    let mut first = match &args.state {
        Some(file) => given(app, &open, file)?,
        None => Snapshot::default(),
    };
    first.serial = first.serial.saturating_add(1);
    VERSION.clone_into(&mut first.tool_version);
    if first.lineage.is_empty() {
        first.lineage = (app.wiring.ids)();
    }
    with_lock(app, &open, "workspace-new", &args.lock, |app, open| {
        let written = app.executor.block_on(open.backend.write(None, &first));
        written.map_err(|e| backend_failed("write", &open.place, &e).into())
    })?;
    select(app, name)?;
    let made = app.theme.strong(Tone::Add, &format!("Created and switched to workspace \"{name}\"!"));
    app.say(&format!(
        "{made}\n\nIts state is its own: plan here does not see what other workspaces have made, and apply does not touch it.\n"
    ));
    Ok(0)
}

fn given(app: &App, open: &OpenBackend, file: &str) -> Result<Snapshot, Stop> {
    let failed =
        |why: String| Stop::from(Diagnostic::error("Can't use the state file", format!("The file \"{file}\" can't be used: {why}.")));
    let bytes = std::fs::read(app.directory.join(file)).map_err(|e| failed(reason(&e)))?;
    let seal = if is_sealed(&bytes) { Arc::clone(&open.seal) } else { Arc::new(karmaform_model::Clear) };
    Snapshot::from_stored(&bytes, &*seal).map_err(|e| failed(e.to_string()))
}

fn delete(app: &mut App, args: &DeleteArgs) -> Ended {
    check(&args.name)?;
    let refused = |detail: String, hint: &str| Stop::from(Diagnostic::error("Workspace not deleted", detail).with_hint(hint));
    if args.name == DEFAULT_WORKSPACE {
        return Err(refused("The workspace \"default\" is always there.".to_owned(), "To empty it: karmaform destroy"));
    }
    if current(app)? == args.name {
        return Err(refused(
            format!("Workspace \"{}\" is the one that is selected.", args.name),
            "Select another one first: karmaform workspace select default",
        ));
    }
    if !others(app, &args.variables)?.contains(&args.name) {
        return Err(missing(&args.name).into());
    }
    let open = open(app, &args.name, &args.variables)?;
    let forgotten = with_lock(app, &open, "workspace-delete", &args.lock, |app, open| {
        let count = read_state(app, open)?.map_or(0, |state| state.resources.len());
        if count > 0 && !args.force {
            return Err(refused(
                format!("Workspace \"{}\" holds {}, which nobody would know of any more.", args.name, resources(count)),
                "Destroy them in it first, or leave them as they are with -force.",
            ));
        }
        app.executor.block_on(open.backend.remove()).map_err(|e| Stop::from(backend_failed("remove", &open.place, &e)))?;
        Ok(count)
    })?;
    let text = app.theme.strong(Tone::Add, &format!("Deleted workspace \"{}\"!", args.name));
    app.say(&format!("{text}\n"));
    if forgotten > 0 {
        let were = if forgotten == 1 { "was" } else { "were" };
        app.say(&format!("{} {were} forgotten and left as {}.\n", resources(forgotten), if forgotten == 1 { "it is" } else { "they are" }));
    }
    Ok(0)
}

/// Does something while holding the lock of a state.
fn with_lock<T>(
    app: &mut App,
    open: &OpenBackend,
    operation: &str,
    flags: &LockFlags,
    work: impl FnOnce(&mut App, &OpenBackend) -> Result<T, Stop>,
) -> Result<T, Stop> {
    let held = if flags.lock { Some(lock(app, open, operation, flags.lock_timeout)?) } else { None };
    let done = work(app, open);
    if let Some(id) = held {
        let _ = release(app, &*open.backend, &id);
    }
    done
}
