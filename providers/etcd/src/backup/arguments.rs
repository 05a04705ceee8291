//! The arguments of an `etcd_backup`, checked once. What decides names, paths and the number of hosts must be known.

use std::collections::BTreeMap;

use karmaform_model::{Address, Diagnostic, Diagnostics, Object, Type, Value};

use super::schema::{KEEP, MAX_AGE_HOURS, SCHEDULE};
use crate::cluster::{cluster_name, is_path};
use crate::versions::Version;

/// Where the unit's sandbox hides what is there, gives it files of its own, or lets nobody write.
const NO_PLACES: &[&str] =
    &["/tmp", "/var/tmp", "/home", "/root", "/run", "/usr", "/etc", "/boot", "/efi", "/dev", "/proc", "/sys", "/bin", "/sbin", "/lib"];

/// Backups as they are wanted, or as they were.
#[derive(Clone, Debug)]
pub(super) struct Arguments {
    pub(super) address: Address,
    /// What it is called on hosts and in etcd.
    pub(super) name: String,
    pub(super) version: Version,
    /// How they are managed, by name.
    pub(super) hosts: BTreeMap<String, Value>,
    /// The client's connection to the cluster, perhaps not known yet.
    pub(super) cluster: Value,
    pub(super) source: Value,
    pub(super) source_sha256: Value,
    pub(super) schedule: String,
    pub(super) directory: String,
    /// Hourly, daily, weekly.
    pub(super) keep: [i64; 3],
    pub(super) max_age_hours: i64,
}

impl Arguments {
    /// Reads and checks them.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(super) fn read(address: &Address, object: &Object) -> Result<Self, Diagnostics> {
        let mut found = Diagnostics::new();
        let name = cluster_name(address);
        let mut text = |attribute: &str, default: &str| match object.get(attribute).filter(|v| !v.is_null()) {
            None => default.to_owned(),
            Some(value) => value.as_str().map(str::to_owned).unwrap_or_else(|| {
                found.push(not_known(attribute));
                default.to_owned()
            }),
        };
        let version = text("version", "");
        let schedule = text("schedule", SCHEDULE);
        let directory = text("directory", &format!("/var/backups/etcd/{name}"));
        let mut number = |attribute: &str, default: i64, least: i64| match object.get(attribute).filter(|v| !v.is_null()) {
            None => default,
            Some(value) => value.as_i64().filter(|n| (least..=10_000).contains(n)).unwrap_or_else(|| {
                let detail = format!("`{attribute}` must be a whole number from {least} to 10000, known when planning.");
                found.push(Diagnostic::error("A number that can't be used", detail));
                default
            }),
        };
        let keep = KEEP.map(|(attribute, default)| number(attribute, default, 0));
        let max_age_hours = number("max_age_hours", MAX_AGE_HOURS, 1);
        if schedule.trim().is_empty() || !schedule.bytes().all(|b| b.is_ascii_alphanumeric() || b" *-:/,.~".contains(&b)) {
            found.push(
                Diagnostic::error("A schedule that systemd does not take", "`schedule` must be one calendar expression of systemd.")
                    .with_hint("Try it on a host: systemd-analyze calendar 'EXPRESSION'."),
            );
        }
        if !is_path(&directory) {
            let detail =
                "`directory` must be an absolute path of at least two parts, of letters, digits, \".\", \"_\" and \"-\", without \"..\".";
            found.push(Diagnostic::error("A directory that can't be used", detail));
        }
        if let Some(place) = NO_PLACES.iter().find(|place| directory == **place || directory.starts_with(&format!("{place}/"))) {
            let detail = format!("`directory` is below {place}, where the script has no lasting files or may not write.");
            found.push(
                Diagnostic::error("A directory that can't be used", detail)
                    .with_hint("Take one below /var/backups or on a file system of its own."),
            );
        }
        // Of one that is not known, that was said.
        let is_known = object.get("version").is_some_and(|v| v.as_str().is_some());
        let parsed = if is_known { Version::parse(&version).map_err(Some) } else { Err(None) };
        let version = parsed.map_err(|why| found.extend(why.map(|w| Diagnostic::error("An etcd version that can't be used", w)))).ok();
        let hosts = hosts(object, &mut found);
        match version {
            Some(version) if !found.has_errors() => Ok(Self {
                address: address.clone(),
                name,
                version,
                hosts,
                cluster: object.get("cluster").cloned().unwrap_or_else(|| Value::unknown(Type::Any)),
                source: object.get("source").cloned().unwrap_or_else(|| Value::null(Type::String)),
                source_sha256: object.get("source_sha256").cloned().unwrap_or_else(|| Value::null(Type::String)),
                schedule,
                directory,
                keep,
                max_age_hours,
            }),
            _ => Err(found),
        }
    }

    /// A part of the client's connection; not known while that is not.
    pub(super) fn client(&self, part: &str) -> Value {
        self.cluster.get(part).cloned().unwrap_or_else(|| Value::unknown_not_null(Type::String))
    }

    /// The cluster's client URLs with commas between.
    pub(super) fn endpoints(&self) -> Value {
        let items = self.cluster.get("endpoints").and_then(Value::as_items);
        let known: Option<Vec<&str>> = items.and_then(|items| items.iter().map(Value::as_str).collect());
        known.map_or_else(|| Value::unknown_not_null(Type::String), |urls| urls.join(",").into())
    }
}

fn hosts(object: &Object, found: &mut Diagnostics) -> BTreeMap<String, Value> {
    let Some(hosts) = object.get("hosts").and_then(Value::as_entries).filter(|h| !h.is_empty()) else {
        let is_unknown = object.get("hosts").is_some_and(Value::is_unknown);
        found.push(if is_unknown {
            not_known("hosts")
        } else {
            Diagnostic::error("No hosts", "`hosts` must be a map of `ssh_host` objects by name.")
                .with_hint("Write `hosts = data.ssh_host.NAME`, where that block has `for_each`.")
        });
        return BTreeMap::new();
    };
    let mut connections = BTreeMap::new();
    for (name, host) in hosts {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
            let detail = format!("The key \"{name}\" of `hosts` must be of letters, digits, \".\", \"_\" and \"-\".");
            found.push(Diagnostic::error("Not a name of a host", detail));
        }
        match host.get("connection") {
            Some(connection) => drop(connections.insert(name.clone(), connection.clone())),
            None if host.is_unknown() => drop(connections.insert(name.clone(), Value::unknown(Type::Any))),
            None => found.push(Diagnostic::error(
                "A host without a connection",
                format!("`hosts[\"{name}\"]` has no `connection`. It must be what a `data \"ssh_host\"` gives."),
            )),
        }
    }
    connections
}

fn not_known(name: &str) -> Diagnostic {
    let detail = format!("`{name}` decides what is put on hosts and where, so it can't be known only after apply.");
    Diagnostic::error("A value that must be known when planning", detail)
        .with_hint("Take it from a variable or a local, or apply what it comes from first with `-target`.")
}
