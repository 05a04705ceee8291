//! Clocks of hosts that are off. A certificate is valid from shortly before it is made, by the clock of who makes it, and each member judges those of all
//! others by its own. Raft goes by no clock, and what was made before is as good as it was: whatever makes no certificate may go on.

use karmaform_model::{Action, ChildChange, Diagnostic, Scene, Value};

use super::arguments::Arguments;
use super::authorities::is_reissued;
use super::condition::is_formed;

/// The largest error of a host's clock, in seconds. Certificates are made to be valid some minutes ago, and a clock that nobody keeps goes on losing.
const LIMIT: f64 = 60.0;

/// Clocks of hosts that are off by seconds that differ no more than this are off alike.
const ALIKE: f64 = 10.0;

/// How far the clock of each member's host is before this machine's, in seconds.
fn offsets(wanted: &Arguments) -> impl Iterator<Item = (&str, f64)> {
    wanted.members.iter().filter_map(|(name, host)| {
        let offset = host.facts.get("clock_offset").and_then(Value::as_number)?.to_string().parse::<f64>().ok()?;
        Some((name.as_str(), offset))
    })
}

/// The members on whose hosts the clock is off, with the seconds.
fn wrong(wanted: &Arguments) -> impl Iterator<Item = (&str, f64)> {
    offsets(wanted).map(|(name, offset)| (name, offset.abs())).filter(|(_, off)| *off > LIMIT)
}

/// Several hosts are off, all of them by the same: then it is this machine's clock that is, which they are compared with.
fn is_ours(wanted: &Arguments) -> bool {
    let all: Vec<f64> = offsets(wanted).map(|(_, offset)| offset).collect();
    let (least, most) =
        all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), offset| (least.min(*offset), most.max(*offset)));
    all.len() > 1 && most - least <= ALIKE && all.iter().all(|offset| offset.abs() > LIMIT)
}

/// Why no certificates are made for clocks that would not take them.
pub(super) fn check(scene: &Scene<'_>, wanted: &Arguments) -> Vec<Diagnostic> {
    let is_made = |c: &ChildChange<'_>| c.resource_type.starts_with("tls_") && c.change.action() != Action::Delete && is_reissued(c);
    // Of a cluster that is only being formed nobody knows yet whether the certificates that it has will do.
    if is_formed(scene) && !scene.children.values().any(is_made) {
        return Vec::new();
    }
    let is_ours = is_ours(wanted);
    wrong(wanted).map(|(name, off)| refused(name, off, is_ours)).collect()
}

fn refused(name: &str, off: f64, is_ours: bool) -> Diagnostic {
    let error = Diagnostic::error(
        "A host's clock is wrong",
        format!(
            "The clock of the host of member \"{name}\" is {off:.0} s off; at most {LIMIT:.0} s are allowed where certificates are made. They would \
             not be valid there yet, or end early."
        ),
    );
    error.with_hint(if is_ours {
        "All hosts are off alike, so probably it is the clock of this machine that is wrong: set it (`timedatectl`), then plan again."
    } else {
        "Set up time synchronisation on that host (`chrony` or `systemd-timesyncd`), then plan again."
    })
}

/// What else is done though clocks are off, with a word on them.
pub(super) fn line(wanted: &Arguments) -> Option<String> {
    let off: Vec<String> = wrong(wanted).map(|(name, off)| format!("{name} by {off:.0} s")).collect();
    (!off.is_empty())
        .then(|| format!("clocks of hosts are off, {}: plans that make certificates are refused until they are right", off.join(", ")))
}
