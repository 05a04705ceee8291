//! What a unit that runs is in need of.

use crate::look::{PathSeen, UnitSeen};

/// A unit that systemd has started again so often ends again and again; fewer times it may have waited for something that came up later.
const OFTEN: u64 = 5;
/// If it was so many seconds ago that it did so for the last time. What has run for longer has found what it needs.
const RECENTLY: u64 = 600;
/// So many seconds after its start it may still be on its way to being well.
const SETTLED: u64 = 60;

/// What a unit that runs just now is in need of. One that waited for something when it was started, or ended once long ago, is well.
pub(super) fn care(unit: &UnitSeen, is_cut_off: bool) -> Vec<String> {
    let restarts = unit.restarts;
    let mut care: Vec<String> = unit.for_many.iter().map(|file| format!("it is changed by {file}, as all units that begin so")).collect();
    if let Some(ago) = unit.started_ago.filter(|ago| restarts >= OFTEN && *ago < RECENTLY) {
        care.push(format!("it ends again and again: systemd has started it again {restarts} times, the last time {ago} seconds ago"));
    }
    let since = [
        (is_cut_off, "a change to it was cut off before it was restarted: it may run as it was before"),
        (unit.is_older, "it runs with other arguments than its file says: that was changed, and it was not restarted since"),
        (unit.is_replaced, "it runs with another program than the one that is there now: it was not restarted since"),
    ];
    care.extend(since.iter().filter(|(is_so, _)| *is_so).map(|(_, why)| (*why).to_owned()));
    match unit.health.filter(|_| unit.started_ago.is_none_or(|ago| ago >= SETTLED)) {
        Some(0) => care.push("it runs, and does not answer when it is asked how it is".to_owned()),
        Some(status) if status >= 500 => care.push(format!("it says that it is not well (HTTP {status})")),
        _ => {}
    }
    care
}

/// Owner, group and mode of a unit's file, as scripts of this type make it: what anybody else may write there root runs.
pub(super) const PERMISSIONS: &str = "root:root 0644";

/// What they are, where others than root may write. Who lets fewer read it, as rules for hardened hosts do, gives nothing away.
pub(super) fn permissions(file: &PathSeen) -> Option<String> {
    let others_write = file.mode & 0o002 != 0 || (file.mode & 0o020 != 0 && file.gid != "0");
    (file.uid != "0" || others_write).then(|| format!("{}:{} {:04o}", file.owner, file.group, file.mode))
}
