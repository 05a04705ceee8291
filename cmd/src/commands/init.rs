//! `init`: prepare a directory. Providers are linked in; what there is to do is to settle where the state is, and to take it along.

use karmaform_lang::Settings;
use karmaform_model::{BackendError, Diagnostic, Severity, Snapshot};

use crate::app::{App, Ended, Stop};
use crate::backend::{Chosen, KeepAlive, Record, changed, local_record, place_before, seal_of, unfit};
use crate::disk::reason_to_write;
use crate::flags::{LockFlags, VariableFlags, boolean};
use crate::locking::{ask, lock, release};
use crate::project::load_unjudged;
use crate::reading::without_missing_variables;
use crate::session::{backend_failed, information, read_state, sentence};
use crate::ui::style::Tone;
use crate::wiring::{DEFAULT_WORKSPACE, OpenBackend, WORKING_DIRECTORY};

/// Rounds of the races that a store is tried with.
const ROUNDS: usize = 2;

/// Arguments of `init`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Look at the backend
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    backend: bool,
    /// An argument of the backend, or a file of them, that the configuration leaves open. May be repeated
    #[arg(long, value_name = "NAME=VALUE|FILE", action = clap::ArgAction::Append)]
    backend_config: Vec<String>,
    /// Copy the state from where it was to where the configuration now says
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true, conflicts_with = "reconfigure")]
    migrate_state: bool,
    /// With -migrate-state: write over what is there
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    force_copy: bool,
    /// Work with the backend that the configuration says, and leave the state where it was
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    reconfigure: bool,
    /// Taken for the sake of scripts: nothing is asked
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    input: bool,
    /// Taken for the sake of scripts: there is nothing to upgrade
    #[arg(long)]
    upgrade: bool,
    #[command(flatten)]
    lock: LockFlags,
    #[command(flatten)]
    variables: VariableFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let project = load_unjudged(app, &args.variables)?;
    if project.configuration_files == 0 {
        app.say("karmaform initialized in an empty directory!\n\nThe directory has no configuration files (*.kf.hcl). Write one, then run plan.\n");
        return Ok(0);
    }
    let found = without_missing_variables(&project);
    if found.has_errors() {
        return Err(found.into());
    }
    let path = app.directory.join(WORKING_DIRECTORY);
    std::fs::create_dir_all(&path).map_err(|e| {
        let error =
            Diagnostic::error("Can't make the working directory", format!("{WORKING_DIRECTORY} can't be made: {}.", reason_to_write(&e)));
        Stop::from(match e.kind() {
            std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotADirectory => error.with_hint("Remove what is in its place."),
            _ => error,
        })
    })?;
    if args.backend {
        backend(app, &project.config.settings, args)?;
    }
    app.show_warnings(&found);
    let done = app.theme.strong(Tone::Add, &format!("{} has been successfully initialized!", app.theme.product));
    app.say(&format!("\n{done}\n"));
    if !app.in_automation() {
        app.say("\nProviders are part of the tool; nothing had to be fetched. Run plan to see what apply would do.\n");
    }
    Ok(0)
}

/// Settles where the state is.
fn backend(app: &mut App, settings: &Settings, args: &Args) -> Result<(), Stop> {
    let seal = seal_of(app, settings)?;
    let block = settings.backend.as_ref();
    app.say("\nInitializing the backend...\n");
    // What can't be read is written anew when that is asked for.
    let record = match Record::read(&app.directory) {
        Err(_) if args.reconfigure => None,
        read => read?,
    };
    let mut chosen = Chosen::of(app, block, record.as_ref())?;
    if !args.backend_config.is_empty() || args.reconfigure {
        chosen = chosen.with_flags(app, &args.backend_config)?;
    }
    let open = chosen.open(app, DEFAULT_WORKSPACE, None, &seal)?;
    let before = if args.reconfigure { None } else { place_before(app, record.as_ref(), &open) };
    if let Some(before) = &before
        && !args.migrate_state
    {
        return Err(changed(before, &open.place).with_span(block.map(|b| b.span)).into());
    }
    let now = chosen.record(&open);
    let is_new = record.as_ref() != Some(&now);
    if is_new {
        try_store(app, &open)?;
    }
    if before.is_some() {
        let old = record.unwrap_or_else(local_record);
        migrate(app, &old, &chosen, &open, args)?;
    }
    now.write(&app.directory)?;
    let what = match read_state(app, &open)? {
        Some(state) => format!("The state is in {} ({} resources, serial {}).\n", open.place, state.resources.len(), state.serial),
        None => format!("The state will be kept in {}.\n", open.place),
    };
    app.say(&what);
    match open.unlocked.clone() {
        Some(unlocked) => app.show(&unlocked.into()),
        None if is_new && open.store.is_none() => try_lock(app, &open),
        None => {}
    }
    Ok(())
}

/// A store that doesn't do what it says is no place for a state.
fn try_store(app: &mut App, open: &OpenBackend) -> Result<(), Stop> {
    let Some(store) = &open.store else { return Ok(()) };
    let name = (app.wiring.ids)();
    match app.executor.block_on(karmaform_remote::probe(store.as_ref(), &name, ROUNDS)) {
        Ok(karmaform_remote::Probed::Good) => Ok(()),
        Ok(karmaform_remote::Probed::Bad(why)) => Err(unfit(&open.place, &why).into()),
        Err(error) => Err(Diagnostic::error("Backend can't be used", sentence(&error.to_string())).into()),
    }
}

/// What can't be locked is no place to write a state; who only reads it needs no lock, so this is a warning and no more.
fn try_lock(app: &mut App, open: &OpenBackend) {
    if !open.backend.is_shared() {
        return;
    }
    let who = information(app, open, "init");
    let tried = match ask(app, open, &who, None) {
        Ok(id) => release(app, &*open.backend, &id).map_err(|e| ("unlock", e)),
        Err(BackendError::Locked(_)) => Ok(()),
        Err(error) => Err(("lock", error)),
    };
    if let Err((verb, error)) = tried {
        let wrong = backend_failed(verb, &open.place, &error);
        app.show(&Diagnostic { severity: Severity::Warning, ..wrong }.into());
    }
}

/// Copies the states of all workspaces.
fn migrate(app: &mut App, old: &Record, new: &Chosen, to: &OpenBackend, args: &Args) -> Result<(), Stop> {
    let Some(before) = Chosen::before(app, old) else {
        return Err(Diagnostic::error("Backend can't be used", format!("There is no backend \"{}\" in this version.", old.kind))
            .with_hint("Copy the state with a version that has it, or leave it where it is: karmaform init -reconfigure")
            .into());
    };
    let from = before.open(app, DEFAULT_WORKSPACE, None, &to.seal).map_err(|stop| former(stop, &old.place))?;
    if from.place != old.place {
        // What the environment said of the former place, it says of another one now.
        let detail = format!("The state was at {}, and what is known of that place now leads to {}.", old.place, from.place);
        return Err(Diagnostic::error("State not copied", detail)
            .with_hint("Write the new place in the block, and let the environment name the former one until the state is copied.")
            .into());
    }
    let others = app.executor.block_on(from.backend.workspaces()).map_err(|e| backend_failed("read", &from.place, &e))?;
    let others = others.unwrap_or_default();
    let has_workspaces = |name: &String| new.open(app, name, None, &to.seal).map(drop);
    // Before anything is copied.
    others.iter().try_for_each(has_workspaces)?;
    let how = (args.lock.lock_timeout, args.force_copy);
    move_one(app, &from, to, how)?;
    for name in &others {
        let from = before.open(app, name, None, &to.seal)?;
        let to = new.open(app, name, None, &to.seal)?;
        move_one(app, &from, &to, how)?;
    }
    Ok(())
}

/// Copies one state, with both places locked: how long a lock is waited for, in milliseconds, and whether another state may be written over.
pub(crate) fn move_one(app: &mut App, from: &OpenBackend, to: &OpenBackend, (timeout, force): (u64, bool)) -> Result<(), Stop> {
    let held_from = lock(app, from, "init", timeout)?;
    let alive_from = KeepAlive::start(app, &from.backend, &held_from);
    let copied = match lock(app, to, "init", timeout) {
        Ok(held_to) => {
            let alive_to = KeepAlive::start(app, &to.backend, &held_to);
            let copied = match alive_from.as_ref().and_then(KeepAlive::lost) {
                // The second one was waited for, and meanwhile somebody else may have begun to write what is to be copied.
                Some(lost) => Err(lost.into()),
                None => copy(app, from, to, force),
            };
            drop(alive_to);
            let _ = release(app, &*to.backend, &held_to);
            copied
        }
        Err(stop) => Err(stop),
    };
    drop(alive_from);
    let _ = release(app, &*from.backend, &held_from);
    if let Some((state, has_history)) = copied? {
        let workspace = if to.workspace == DEFAULT_WORKSPACE { String::new() } else { format!(" of the workspace \"{}\"", to.workspace) };
        let text = format!(
            "The state{workspace} ({} resources) was copied from {} to {}{}. The old one is still there: remove it once you trust the new one.\n",
            state.resources.len(),
            from.place,
            to.place,
            if has_history { " with its history" } else { "" }
        );
        app.say(&text);
    }
    Ok(())
}

/// What keeps the former backend from being opened is told as that.
fn former(stop: Stop, place: &str) -> Stop {
    let Stop::Because(diagnostics) = stop else { return stop };
    let hint = format!(
        "This is about the state's former place, {place}. Secrets of the former block are not remembered: give them by the environment."
    );
    Stop::Because(diagnostics.into_iter().map(|d| d.with_span(None).with_hint(hint.clone())).collect())
}

/// Copies a state and its history. Gives the state, and whether there was a history; nothing if there is nothing to copy.
fn copy(app: &mut App, from: &OpenBackend, to: &OpenBackend, force: bool) -> Result<Option<(Snapshot, bool)>, Stop> {
    let left = (from.journal)().and_then(|j| j.read()).map_err(|e| backend_failed("read", &from.place, &e))?;
    if !left.is_empty() {
        let detail = format!("An earlier run on the state at {} ended early, and its journal is not in the state yet.", from.place);
        return Err(Diagnostic::error("State not copied", detail)
            .with_hint("Change the configuration back, run apply (or apply -refresh-only), and then init -migrate-state again.")
            .into());
    }
    let Some(mut state) = read_state(app, from)? else { return Ok(None) };
    let there = read_state(app, to)?;
    if let Some(there) = &there
        && !there.resources.is_empty()
        && !force
    {
        if there.lineage == state.lineage && there.serial >= state.serial {
            // Copied before, and worked with since.
            return Ok(None);
        }
        let detail = format!("There is a state at {} already, with {} resources.", to.place, there.resources.len());
        return Err(Diagnostic::error("State not copied", detail)
            .with_hint("To write over it: karmaform init -migrate-state -force-copy")
            .with_hint("To work with it and leave the old one: karmaform init -reconfigure")
            .into());
    }
    let expected = there.as_ref().map(|s| s.serial);
    state.serial = state.serial.max(expected.unwrap_or(0)).saturating_add(1);
    let written = app.executor.block_on(to.backend.write(expected, &state));
    written.map_err(|e| Stop::from(backend_failed("write", &to.place, &e)))?;
    let has_history = app.executor.block_on(copy_history(from, to)).unwrap_or_else(|error| {
        let detail = format!("The state was copied, but not all that earlier runs left: {error}.");
        let warning = Diagnostic::warning("Generations not copied", detail).with_hint(format!("They are still at {}.", from.place));
        app.show(&warning.into());
        false
    });
    Ok(Some((state, has_history)))
}

/// Copies what earlier runs left, oldest first; true if there was any. Nothing where the new place keeps none.
async fn copy_history(from: &OpenBackend, to: &OpenBackend) -> Result<bool, BackendError> {
    let (Some(all), Some(_)) = (from.backend.history().await?, to.backend.history().await?) else { return Ok(false) };
    let (mut copied, mut unreadable) = (false, None);
    for about in all {
        match from.backend.generation(about.serial).await {
            Ok(Some(state)) => {
                to.backend.take_in(&about, &state).await?;
                copied = true;
            }
            Ok(None) => {}
            // Sealed with a key of another time, for one: the others come along all the same.
            Err(error) => unreadable = Some(error),
        }
    }
    unreadable.map_or(Ok(copied), Err)
}
