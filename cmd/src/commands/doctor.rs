//! `doctor`: is the place where the state is kept fit for it? Tries what no plan ever needs to try.

use karmaform_model::{BackendError, Diagnostic, Diagnostics};
use karmaform_remote::{Probed, probe};

use crate::app::{App, Ended, Stop};
use crate::backend::{open_backend, unfit};
use crate::flags::VariableFlags;
use crate::locking::{ask, release};
use crate::reading::settings_of_directory;
use crate::session::{backend_failed, information, read_state, sentence};

/// Arguments of `doctor`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// So often writers race for one object of the store
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    rounds: u8,
    #[command(flatten)]
    variables: VariableFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let settings = settings_of_directory(app, &args.variables)?;
    let open = open_backend(app, &settings, None)?;
    app.say(&format!("The state at {}\n", open.place));
    let mut wrong = Diagnostics::new();
    match read_state(app, &open) {
        Ok(Some(state)) => app.say(&format!("  ok     it can be read: {} resources, serial {}\n", state.resources.len(), state.serial)),
        Ok(None) => app.say("  ok     it can be read: there is none yet\n"),
        Err(Stop::Because(why)) => wrong.extend(why),
        Err(code) => return Err(code),
    }
    // What can't be read can't be written or locked either, and would only be said again.
    if let Some(unlocked) = open.unlocked.clone().filter(|_| wrong.is_empty()) {
        app.show(&unlocked.into());
    } else if wrong.is_empty() {
        let who = information(app, &open, "doctor");
        match ask(app, &open, &who, None) {
            Ok(id) => match release(app, &*open.backend, &id) {
                Ok(()) => app.say("  ok     it can be locked and unlocked\n"),
                Err(error) => wrong.push(backend_failed("unlock", &open.place, &error)),
            },
            Err(BackendError::Locked(Some(h))) => app.say(&format!("  ok     it is locked just now, by {} since {}\n", h.who, h.created)),
            Err(error) => wrong.push(backend_failed("lock", &open.place, &error)),
        }
    }
    if let Some(store) = open.store.as_ref().filter(|_| wrong.is_empty()) {
        let name = (app.wiring.ids)();
        match app.executor.block_on(probe(store.as_ref(), &name, usize::from(args.rounds))) {
            Ok(Probed::Good) => {
                let rounds = if args.rounds == 1 { "once".to_owned() } else { format!("{} times", args.rounds) };
                app.say(&format!("  ok     of all that created or wrote one object at once exactly one won, {rounds}\n"));
            }
            Ok(Probed::Bad(why)) => wrong.push(unfit(&open.place, &why)),
            Err(error) => wrong.push(Diagnostic::error("Backend can't be used", sentence(&error.to_string()))),
        }
    }
    if wrong.is_empty() { Ok(0) } else { Err(wrong.into()) }
}
