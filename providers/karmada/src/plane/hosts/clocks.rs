//! Clocks of hosts that are off. A certificate is valid from shortly before it is made, by the clock of who makes it, and each host judges those of all
//! others by its own. What was made before is as good as it was, and who holds a lease is judged by how long it was not renewed, which any clock can tell:
//! whatever makes no certificate may go on.

use karmaform_model::{Action, ChildChange, Diagnostic, Scene, Value, same};

use super::Hosts;

/// The largest error of a host's clock, in seconds. Certificates are made to be valid some minutes ago, and a clock that nobody keeps goes on losing.
const LIMIT: f64 = 60.0;

/// The hosts on which the clock is off, with the seconds.
fn wrong(hosts: &Hosts) -> impl Iterator<Item = (&str, f64)> {
    hosts.all.iter().filter_map(|(name, host)| {
        let offset = host.facts.get("clock_offset").and_then(Value::as_number)?.to_string().parse::<f64>().ok()?;
        (offset.abs() > LIMIT).then_some((name.as_str(), offset.abs()))
    })
}

/// Why no certificates are made for clocks that would not take them.
pub(super) fn check(scene: &Scene<'_>, hosts: &Hosts) -> Vec<Diagnostic> {
    // Of a control plane that is only being made nobody knows yet whether the certificates that it has will do.
    if scene.before.is_some() && !scene.children.values().any(is_issued) {
        return Vec::new();
    }
    wrong(hosts).map(|(name, off)| refused(name, off).at(scene.address)).collect()
}

/// It gets another certificate, or its first.
fn is_issued(child: &ChildChange<'_>) -> bool {
    let before = child.change.before().and_then(|object| object.get("certificate"));
    let after = child.change.after().and_then(|object| object.get("certificate"));
    let stays = matches!(child.change.action(), Action::NoOp | Action::Delete | Action::Forget);
    child.resource_type.starts_with("tls_") && !stays && !same(before, after)
}

fn refused(name: &str, off: f64) -> Diagnostic {
    Diagnostic::error(
        "A host's clock is wrong",
        format!(
            "The clock of the host \"{name}\" is {off:.0} s off; at most {LIMIT:.0} s are allowed where certificates are made. They would not be valid \
             there yet, or end early."
        ),
    )
    .with_hint("Set up time synchronisation on that host (`chrony` or `systemd-timesyncd`), then plan again.")
}

/// What else is done though clocks are off, with a word on them.
pub(super) fn line(hosts: &Hosts) -> Option<String> {
    let off: Vec<String> = wrong(hosts).map(|(name, off)| format!("{name} by {off:.0} s")).collect();
    (!off.is_empty())
        .then(|| format!("clocks of hosts are off, {}: plans that make certificates are refused until they are right", off.join(", ")))
}
