//! `state pull` and `state push`: the whole state as a file, out and in.

use karmaform_model::{Clear, Diagnostic, Seal, Serial, Snapshot, is_sealed};

use crate::app::{App, Ended, Stop};
use crate::disk::reason;
use crate::flags::{LockFlags, PlaceFlags, boolean};
use crate::reading::{current_backend, current_state};
use crate::session::Session;

/// Arguments of `state push`.
#[derive(clap::Args, Debug)]
pub(crate) struct PushArgs {
    /// The file; - is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Push a state of another lineage, or an older one, all the same
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    force: bool,
    #[command(flatten)]
    lock: LockFlags,
    #[command(flatten)]
    state: PlaceFlags,
}

/// Writes the state as it is stored.
pub(crate) fn pull(app: &mut App, generation: Option<Serial>, state: &PlaceFlags) -> Ended {
    let found = match generation {
        Some(serial) => Some(super::history::state_of(app, serial, state)?),
        None => current_state(app, state)?,
    };
    if let Some(snapshot) = found {
        app.output.print(&snapshot.to_text());
    }
    Ok(0)
}

/// Puts a file in the place of the state.
pub(crate) fn push(app: &mut App, args: &PushArgs) -> Ended {
    let open = current_backend(app, &args.state)?;
    let next = given(app, &args.file, &*open.seal)?;
    let mut session = Session::unsettled(app, open, "state-push", &args.lock)?;
    let count = next.resources.len();
    let pushed = over(&session, &next, args.force).and_then(|()| session.replace(app, next));
    session.close(app);
    let serial = pushed?;
    app.say(&format!("The state was pushed: {count} resources, serial {serial}.\n"));
    Ok(0)
}

fn given(app: &mut App, file: &str, seal: &dyn Seal) -> Result<Snapshot, Stop> {
    let failed = |why: String| Stop::from(Diagnostic::error("Can't push the state", format!("The file \"{file}\" can't be used: {why}.")));
    let bytes = match file {
        "-" => app.output.read_all().map_err(|e| failed(reason(&e)))?.into_bytes(),
        _ => std::fs::read(app.directory.join(file)).map_err(|e| failed(reason(&e)))?,
    };
    // What errored.tfstate holds is sealed as the state is; what comes from elsewhere may lie in clear.
    let sealed = if is_sealed(&bytes) { seal } else { &Clear };
    Snapshot::from_stored(&bytes, sealed).map_err(|e| failed(e.to_string()))
}

/// The same rules as Terraform's: an older state, or one of another history, only by force.
fn over(session: &Session, next: &Snapshot, force: bool) -> Result<(), Stop> {
    let there = &session.snapshot;
    let is_empty = session.stored.is_none() || (there.resources.is_empty() && there.outputs.is_empty() && there.lineage.is_empty());
    if !is_empty && !force {
        let refused = |detail: String, hint: &str| Stop::from(Diagnostic::error("State not pushed", detail).with_hint(hint));
        if !there.lineage.is_empty() && !next.lineage.is_empty() && there.lineage != next.lineage {
            let detail =
                format!("The file has the lineage \"{}\" and the state \"{}\": they are not of one history.", next.lineage, there.lineage);
            return Err(refused(detail, "If the file is right all the same, give -force."));
        }
        if next.serial < there.serial {
            let detail = format!("The file has serial {} and the state {}: the state is newer.", next.serial, there.serial);
            return Err(refused(detail, "Compare both (state pull). If the file is right all the same, give -force."));
        }
        if next.serial == there.serial && next.to_text() != there.to_text() {
            let detail = format!("Both have serial {}, and they differ.", there.serial);
            return Err(refused(detail, "Compare both (state pull). If the file is right, give -force."));
        }
    }
    Ok(())
}
