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
/// Experimental settings of leases: that members are told how long one has still to live, and that they keep it.
const TOLD: &str = "experimental-enable-lease-checkpoint";
const KEPT: &str = "experimental-enable-lease-checkpoint-persist";
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
    check_leases(settings, version.minor, found);
    check_tls(settings, found);
    check_timing(settings, found);
}

fn refused(name: &str, detail: &str) -> Diagnostic {
    Diagnostic::error("An etcd setting that can't be used", format!("The setting \"{name}\": {detail}"))
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || (name != "listen-metrics-urls" && RESERVED_STARTS.iter().any(|start| name.starts_with(start)))
}

/// A version that knows features by both of their names ends at its start where one is written both ways, the new one anywhere in the text, or with all others.
fn check_names(settings: &Object, minor: u32, found: &mut Diagnostics) {
    let gates = settings.get(versions::GATES).and_then(Value::as_str);
    let Some(gates) = gates.filter(|_| versions::refuses(versions::GATES, minor).is_none()) else { return };
    for name in settings.keys().filter(|name| versions::refuses(name, minor).is_none()) {
        let is_named = |gate: &&str| gates.contains(*gate) || versions::turns(gates, versions::all_with(gate)).is_some();
        if let Some(gate) = versions::gate_of(name).filter(is_named) {
            let both = format!("etcd 3.{minor} takes it or `{}`, and not both for {gate}.", versions::GATES);
            found.push(refused(name, &both).with_hint(format!("Write it as `{gate}=true` or `{gate}=false` there alone.")));
        }
    }
}

/// A member ends at its start where it is to keep what nobody tells it.
fn check_leases(settings: &Object, minor: u32, found: &mut Diagnostics) {
    let given = |name: &str| settings.get(name).filter(|_| versions::refuses(name, minor).is_none());
    let values = [versions::GATES, TOLD, KEPT].map(given);
    // Not known yet.
    if values.into_iter().flatten().any(|value| value.as_str().is_none()) {
        return;
    }
    let [gates, told, kept] = values.map(|value| value.and_then(Value::as_str));
    let gates = gates.unwrap_or_default();
    let is_on = |gate: &str, old: Option<&str>| {
        let said = versions::turns(gates, gate).or(old.map(versions::is_true));
        said.or(versions::turns(gates, versions::all_with(gate))).unwrap_or(false)
    };
    if is_on("LeaseCheckpointPersist", kept) && !is_on("LeaseCheckpoint", told) {
        let (name, hint) = match kept {
            Some(_) if versions::turns(gates, "LeaseCheckpoint").is_none() => (KEPT, format!("Write `{TOLD} = \"true\"`, too.")),
            _ => (versions::GATES, "Write `LeaseCheckpoint=true`, or `LeaseCheckpointPersist=false`.".to_owned()),
        };
        found.push(refused(name, "checkpoints of leases are kept only where they are made.").with_hint(hint));
    }
}

/// Versions of TLS of which one is above the other, and ciphers of a version that has none to choose from.
fn check_tls(settings: &Object, found: &mut Diagnostics) {
    let is = |name: &str, version: &str| settings.get(name).and_then(Value::as_str) == Some(version);
    if !is("tls-min-version", "TLS1.3") {
        return;
    }
    if is("tls-max-version", "TLS1.2") {
        found.push(refused("tls-min-version", "it is above `tls-max-version`."));
    } else if settings.get("cipher-suites").is_some_and(|suites| !suites.is_null()) {
        found.push(
            refused("cipher-suites", "of TLS 1.3, the only version by `tls-min-version`, none can be chosen.").with_hint("Leave it out."),
        );
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
        check_one("3.6.8", "cors", "info\ndebug", "line break");
        check_one("3.4.23", "log-level", "INFO", "it is one of `debug`");
        check_one("3.5.33", "snapshot-count", "many", "it is a whole number");
        check_one("3.6.8", "election-timeout", "400", "at least five heartbeats");
        check_one("3.6.8", "election-timeout", "60000", "at most 50000 ms");
        check_one("3.6.8", "feature-gates", "FastLeaseKeepAlive=false", "etcd 3.6 does not know the feature");
        check_one("3.7.1", "feature-gates", "FastLeaseKeepAlive=false", "");
    }

    /// What is said of these.
    fn said(version: &str, given: &[(&str, Value)]) -> String {
        let mut found = Diagnostics::new();
        let settings: Object = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        check(&settings, &Version::parse(version).unwrap(), &mut found);
        found.iter().map(|d| format!("{} {}", d.detail, d.hints.join(" "))).collect()
    }

    #[test]
    fn checkpoints_of_leases_are_kept_where_they_are_made() {
        let gates = |text: &str| (versions::GATES, Value::from(text));
        let (told, kept) = ((TOLD, Value::from("true")), (KEPT, Value::from("true")));
        let by_gates = "Write `LeaseCheckpoint=true`, or `LeaseCheckpointPersist=false`.";
        let by_name = "Write `experimental-enable-lease-checkpoint = \"true\"`, too.";
        for (given, expected) in [
            (vec![gates("LeaseCheckpointPersist=true")], by_gates),
            (vec![gates("LeaseCheckpoint=0,LeaseCheckpointPersist=T")], by_gates),
            (vec![gates("LeaseCheckpoint=true,LeaseCheckpoint=false,LeaseCheckpointPersist=true")], by_gates),
            (vec![gates("AllAlpha=true,LeaseCheckpoint=false")], by_gates),
            (vec![gates("AllAlpha=false,LeaseCheckpointPersist=true")], by_gates),
            (vec![gates("AllBeta=true,LeaseCheckpointPersist=true")], by_gates),
            (vec![gates("LeaseCheckpoint=true,LeaseCheckpointPersist=true")], ""),
            (vec![gates("LeaseCheckpointPersist=false")], ""),
            (vec![gates("AllAlpha=true,LeaseCheckpointPersist=true")], ""),
            (vec![gates("AllAlpha=true")], ""),
            (vec![gates("LeaseCheckpoint=true"), kept.clone()], ""),
            (vec![gates("CompactHashCheck=true"), kept.clone()], by_name),
            (vec![kept.clone()], by_name),
            (vec![(TOLD, Value::from("false")), (KEPT, Value::from("T"))], by_name),
            (vec![told.clone(), kept.clone()], ""),
            (vec![(TOLD, Value::unknown(karmaform_model::Type::String)), kept.clone()], ""),
        ] {
            let got = said("3.6.8", &given);
            assert!(got.ends_with(expected) && got.is_empty() == expected.is_empty(), "{given:?}: {got}");
        }
        for version in ["3.4.23", "3.5.33"] {
            assert!(said(version, std::slice::from_ref(&kept)).contains("checkpoints of leases are kept only where they are made."));
            assert_eq!(said(version, &[told.clone(), kept.clone()]), "");
        }
        assert!(said("3.7.1", &[gates("LeaseCheckpointPersist=true")]).ends_with(by_gates));
        assert_eq!(said("3.7.1", &[gates("AllAlpha=true")]), "");
    }

    #[test]
    fn versions_of_tls_go_together() {
        let of = |name: &'static str, value: &str| (name, Value::from(value));
        let (min, max) = (|v: &str| of("tls-min-version", v), |v: &str| of("tls-max-version", v));
        assert!(said("3.6.8", &[min("TLS1.3"), max("TLS1.2")]).contains("\"tls-min-version\": it is above `tls-max-version`."));
        assert!(
            said("3.5.33", &[min("TLS1.3"), of("cipher-suites", "TLS_AES_128_GCM_SHA256")]).contains("none can be chosen. Leave it out.")
        );
        for good in [
            vec![min("TLS1.3"), max("TLS1.3")],
            vec![min("TLS1.2"), of("cipher-suites", "X")],
            vec![max("TLS1.3"), of("cipher-suites", "X")],
        ] {
            assert_eq!(said("3.6.8", &good), "");
        }
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
        // They are turned on or off with others as well.
        for gates in ["AllAlpha=true", "AllAlpha=false,CompactHashCheck=true"] {
            assert_eq!(said("3.6.8", old, gates).len(), 1, "{gates}");
        }
        assert!(said("3.6.8", old, "AllBeta=true").is_empty());
        assert_eq!(said("3.6.8", "experimental-txn-mode-write-with-shared-buffer", "AllBeta=true").len(), 1);
        assert!(said("3.6.8", "experimental-txn-mode-write-with-shared-buffer", "AllAlpha=true").is_empty());
        // What the version does not know is said once.
        assert_eq!(said("3.7.1", old, "InitialCorruptCheck=true").len(), 1);
        assert_eq!(said("3.5.33", old, "InitialCorruptCheck=true").len(), 1);
    }
}
