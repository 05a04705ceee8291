//! `force-unlock`: remove the lock that a dead run left.

use karmaform_model::{BackendError, Diagnostic, LockId};

use crate::app::{App, Ended};
use crate::flags::{PlaceFlags, boolean};
use crate::reading::current_backend;
use crate::session::backend_failed;

/// Arguments of `force-unlock`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The id of the lock, as the refused run said it
    #[arg(value_name = "LOCK_ID")]
    id: String,
    /// Don't ask
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    force: bool,
    #[command(flatten)]
    state: PlaceFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let open = current_backend(app, &args.state)?;
    if !args.force {
        let question = "Do you really want to force-unlock?\n  The lock is removed from the state. If the run that holds it is alive, both would \
                        write it.\n  Only 'yes' will be accepted to confirm.";
        app.confirm(question, "force-unlock")?;
    }
    match app.executor.block_on(open.backend.unlock(&LockId(args.id.clone()))) {
        Ok(()) => {
            app.output.print("The state has been successfully unlocked. The next run looks at what the dead one left behind.\n");
            Ok(0)
        }
        Err(error @ (BackendError::OtherLock { .. } | BackendError::NotLocked)) => {
            Err(Diagnostic::error("Failed to unlock state", format!("Nothing was unlocked: {error}.")).into())
        }
        Err(error) => Err(backend_failed("unlock", &open.place, &error).into()),
    }
}
