//! What a change does to the unit that runs.

use karmaform_model::{Change, Object, Value, same};

use crate::values::boolean;

/// What becomes of the running unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It runs and goes on running, or it does not and stays so.
    Nothing,
    /// It is started if it does not run.
    Start,
    /// It is stopped, if it runs, and started.
    Restart,
    /// It is stopped.
    Stop,
}

/// What a change means for the running unit. A repeated create must not restart what already runs, so it only starts; the script
/// restarts it if the file is another than the running one's.
pub(super) fn turn(change: &Change) -> Turn {
    let active = |o: &Object| boolean(o, "active").unwrap_or(true);
    match change {
        Change::Create { after } if active(after) => Turn::Start,
        Change::Create { .. } => Turn::Stop,
        Change::Update { before, after } => {
            let interrupted = boolean(before, "interrupted") == Some(true);
            let newer = interrupted
                || !strangers(before, after).is_empty()
                || ["content", "restart_triggers", "sha256"].iter().any(|n| !same(before.get(n), after.get(n)));
            match (active(before), active(after)) {
                (true, true) if newer => Turn::Restart,
                (true, true) | (false, false) => Turn::Nothing,
                (false, true) => Turn::Start,
                (true, false) => Turn::Stop,
            }
        }
        Change::Delete { before } | Change::Replace { before, .. } if active(before) => Turn::Stop,
        _ => Turn::Nothing,
    }
}

/// Files that may not change it.
pub(super) fn strangers(before: &Object, wanted: &Object) -> Vec<String> {
    let Some(allowed) = wanted.get("drop_ins").and_then(Value::as_items) else { return Vec::new() };
    let there = ["drop_ins", "unlisted_drop_ins"].iter().filter_map(|name| before.get(name)?.as_items()).flatten();
    there.filter(|file| !allowed.contains(file)).filter_map(|file| file.as_str().map(str::to_owned)).collect()
}
