//! Clocks of hosts that are off. A certificate is valid from shortly before it is made, by the clock of who makes it, and each member judges those of all
//! others by its own. Raft goes by no clock, and what was made before is as good as it was: whatever makes no certificate may go on.

use karmaform_model::{Action, ChildChange, Diagnostic, Scene, Value};

use super::arguments::Arguments;
use super::authorities::is_reissued;
use super::condition::is_formed;

/// The largest error of a host's clock, in seconds. Certificates are made to be valid some minutes ago, and a clock that nobody keeps goes on losing.
const LIMIT: f64 = 60.0;

/// The members on whose hosts the clock is off, with the seconds.
fn wrong(wanted: &Arguments) -> impl Iterator<Item = (&str, f64)> {
    wanted.members.iter().filter_map(|(name, host)| {
        let offset = host.facts.get("clock_offset").and_then(Value::as_number)?.to_string().parse::<f64>().ok()?;
        (offset.abs() > LIMIT).then_some((name.as_str(), offset.abs()))
    })
}

/// Why no certificates are made for clocks that would not take them.
pub(super) fn check(scene: &Scene<'_>, wanted: &Arguments) -> Vec<Diagnostic> {
    let is_made = |c: &ChildChange<'_>| c.resource_type.starts_with("tls_") && c.change.action() != Action::Delete && is_reissued(c);
    // Of a cluster that is only being formed nobody knows yet whether the certificates that it has will do.
    if is_formed(scene) && !scene.children.values().any(is_made) {
        return Vec::new();
    }
    wrong(wanted).map(|(name, off)| refused(name, off)).collect()
}

fn refused(name: &str, off: f64) -> Diagnostic {
    Diagnostic::error(
        "A host's clock is wrong",
        format!(
            "The clock of the host of member \"{name}\" is {off:.0} s off; at most {LIMIT:.0} s are allowed where certificates are made. They would \
             not be valid there yet, or end early."
        ),
    )
    .with_hint("Set up time synchronisation on that host (`chrony` or `systemd-timesyncd`), then plan again.")
}

/// What else is done though clocks are off, with a word on them.
pub(super) fn line(wanted: &Arguments) -> Option<String> {
    let off: Vec<String> = wrong(wanted).map(|(name, off)| format!("{name} by {off:.0} s")).collect();
    (!off.is_empty())
        .then(|| format!("clocks of hosts are off, {}: plans that make certificates are refused until they are right", off.join(", ")))
}
