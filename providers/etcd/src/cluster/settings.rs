//! Which etcd settings a user may write, by version and by value.

use karmaform_model::{Diagnostic, Diagnostics, Object, Value};

use crate::versions::{self, Version};

/// Settings that the composite sets: they hold the cluster together, and a second hand on them could split it.
const RESERVED: &[&str] = &[
    "name",
    "data-dir",
    "wal-dir",
    "config-file",
    "force-new-cluster",
    "unsafe-no-fsync",
    "version",
    "cert-file",
    "key-file",
    "trusted-ca-file",
    "client-cert-auth",
    "client-cert-file",
    "client-key-file",
    "client-crl-file",
    "auto-tls",
    "self-signed-cert-validity",
    "peer-auto-tls",
    "peer-cert-file",
    "peer-key-file",
    "peer-trusted-ca-file",
    "peer-client-cert-auth",
    "peer-client-cert-file",
    "peer-client-key-file",
    "peer-crl-file",
];
/// The same, by how they start. The one exception is `listen-metrics-urls`.
const RESERVED_STARTS: &[&str] = &["listen-", "advertise-", "initial-", "discovery", "proxy"];
/// The longest election timeout that etcd takes, in milliseconds.
const LONGEST_ELECTION: u64 = 50_000;

/// Why these don't do in pods: what a member says before it ends is how one is known that has lost its data.
pub(crate) fn silent(settings: &Object) -> Option<Diagnostic> {
    let outputs = settings.get("log-outputs")?.as_str()?;
    let is_heard = outputs.split(',').any(|output| ["default", "stderr", "stdout"].contains(&output.trim()));
    let what =
        format!("The setting \"log-outputs\" is \"{outputs}\", and nothing that members say would be seen in the logs of their pods.");
    (!is_heard).then(|| Diagnostic::error("An etcd setting that can't be used", what).with_hint("Add `stderr`."))
}

/// Finds everything that is wrong with the settings. Values that are not known yet are checked when they are.
pub(crate) fn check(settings: &Object, version: &Version, found: &mut Diagnostics) {
    for (name, value) in settings {
        let refuse = |detail: String| refused(name, &detail);
        let by_version =
            || versions::refuses(name, version.minor).or_else(|| versions::refuses_value(name, value.as_str()?, version.minor));
        let plain = name.trim_start_matches('-').replace('_', "-").to_ascii_lowercase();
        if plain != *name {
            let short = plain.strip_prefix("etcd-").unwrap_or(&plain);
            found.push(
                refuse("settings are written by etcd's flag names, in lower case and without leading dashes.".to_owned())
                    .with_hint(format!("Write `{short}`.")),
            );
        } else if name == "strict-reconfig-check" {
            if value.as_str().is_some_and(|v| v != "true") {
                found
                    .push(refuse("without it etcd accepts changes of the membership that end its quorum at once. It stays on.".to_owned()));
            }
        } else if is_reserved(name) {
            found.push(
                refuse("karmaform sets it itself; another value could split the cluster or lock its members out.".to_owned())
                    .with_hint("Addresses, ports, the data directory and certificates have arguments of their own on `etcd_cluster`."),
            );
        } else if let Some((why, hint)) = by_version() {
            let diagnostic = refuse(why);
            found.push(match hint {
                Some(hint) => diagnostic.with_hint(hint),
                None => diagnostic,
            });
        } else if value.as_str().is_some_and(|v| v.chars().any(char::is_control)) {
            found.push(refuse("its value holds a line break or another control character.".to_owned()));
        }
    }
    check_names(settings, version.minor, found);
    check_timing(settings, found);
}

fn refused(name: &str, detail: &str) -> Diagnostic {
    Diagnostic::error("An etcd setting that can't be used", format!("The setting \"{name}\": {detail}"))
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || (name != "listen-metrics-urls" && RESERVED_STARTS.iter().any(|start| name.starts_with(start)))
}

/// A version that knows features by both of their names ends at its start where one is written both ways, the new one anywhere in the text.
fn check_names(settings: &Object, minor: u32, found: &mut Diagnostics) {
    let gates = settings.get(versions::GATES).and_then(Value::as_str);
    let Some(gates) = gates.filter(|_| versions::refuses(versions::GATES, minor).is_none()) else { return };
    for name in settings.keys().filter(|name| versions::refuses(name, minor).is_none()) {
        if let Some(gate) = versions::gate_of(name).filter(|gate| gates.contains(gate)) {
            let both = format!("etcd 3.{minor} takes it or `{}`, and not both for {gate}.", versions::GATES);
            found.push(refused(name, &both).with_hint(format!("Write it as `{gate}=true` or `{gate}=false` there alone.")));
        }
    }
}

/// etcd refuses to start with these, and it would do so on the first member that is restarted.
fn check_timing(settings: &Object, found: &mut Diagnostics) {
    let milliseconds = |name: &str, default: u64| match settings.get(name) {
        None => Some(default),
        Some(value) => value.as_str()?.parse().ok(),
    };
    let (Some(heartbeat), Some(election)) = (milliseconds("heartbeat-interval", 100), milliseconds("election-timeout", 1000)) else {
        return;
    };
    if election > LONGEST_ELECTION || election < heartbeat.saturating_mul(5) {
        found.push(
            Diagnostic::error(
                "Timing that etcd does not take",
                format!(
                    "The election timeout is {election} ms and the heartbeat interval {heartbeat} ms. The election timeout must be at \
                     least five heartbeats and at most {LONGEST_ELECTION} ms."
                ),
            )
            .with_hint("Ten times the longest round trip between members is a good election timeout."),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(version: &str, name: &str, value: &str, expected: &str) {
        let mut found = Diagnostics::new();
        let settings = Object::from([(name.to_owned(), value.into())]);
        check(&settings, &Version::parse(version).unwrap(), &mut found);
        let text: String = found.iter().map(|d| format!("{} {}", d.detail, d.hints.join(" "))).collect();
        assert_eq!(found.is_empty(), expected.is_empty(), "{name}: {text}");
        assert!(text.contains(expected), "{name}: {text}");
    }

    #[test]
    fn settings_are_checked_by_name_version_and_value() {
        check_one("3.6.8", "quota-backend-bytes", "8589934592", "");
        check_one("3.6.8", "listen-metrics-urls", "http://127.0.0.1:2381", "");
        check_one("3.6.8", "strict-reconfig-check", "true", "");
        check_one("3.6.8", "strict-reconfig-check", "false", "It stays on");
        check_one("3.6.8", "--snapshot-count", "1", "Write `snapshot-count`.");
        check_one("3.6.8", "ETCD_SNAPSHOT_COUNT", "1", "Write `snapshot-count`.");
        for reserved in ["name", "data-dir", "listen-peer-urls", "initial-cluster-state", "trusted-ca-file", "force-new-cluster"] {
            check_one("3.6.8", reserved, "x", "karmaform sets it itself");
        }
        check_one("3.7.1", "experimental-initial-corrupt-check", "true", "Write `feature-gates");
        check_one("3.5.33", "feature-gates", "InitialCorruptCheck=true", "came with 3.6");
        check_one("3.6.8", "log-level", "info\ndebug", "line break");
        check_one("3.6.8", "election-timeout", "400", "at least five heartbeats");
        check_one("3.6.8", "election-timeout", "60000", "at most 50000 ms");
        check_one("3.6.8", "feature-gates", "FastLeaseKeepAlive=false", "etcd 3.6 does not know the feature");
        check_one("3.7.1", "feature-gates", "FastLeaseKeepAlive=false", "");
    }

    #[test]
    fn a_feature_has_one_name() {
        let said = |version: &str, old: &str, gates: &str| {
            let mut found = Diagnostics::new();
            let settings = Object::from([(old.to_owned(), "true".into()), ("feature-gates".to_owned(), gates.into())]);
            check(&settings, &Version::parse(version).unwrap(), &mut found);
            found.iter().map(|d| d.detail.clone()).collect::<Vec<_>>()
        };
        let old = "experimental-initial-corrupt-check";
        let both = format!("The setting \"{old}\": etcd 3.6 takes it or `feature-gates`, and not both for InitialCorruptCheck.");
        assert_eq!(said("3.6.8", old, "InitialCorruptCheck=true"), [both]);
        assert!(said("3.6.8", old, "CompactHashCheck=true").is_empty());
        // The one name is in the other.
        assert_eq!(said("3.6.8", "experimental-enable-lease-checkpoint", "LeaseCheckpointPersist=true").len(), 1);
        // What the version does not know is said once.
        assert_eq!(said("3.7.1", old, "InitialCorruptCheck=true").len(), 1);
        assert_eq!(said("3.5.33", old, "InitialCorruptCheck=true").len(), 1);
    }
}
