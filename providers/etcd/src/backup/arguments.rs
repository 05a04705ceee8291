//! The arguments of an `etcd_backup`, checked once. What decides names, paths and the number of hosts must be known.

use karmaform_model::{Address, Diagnostic, Diagnostics, Object, Type, Value};

use super::hosts::Hosts;
use super::pods::Pods;
use super::schema::{KEEP, LONGEST, MAX_AGE_HOURS, SCHEDULE, TIMEOUT, WORDS};
use crate::cluster::cluster_name;
use crate::versions::Version;

/// Where backups are made.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Hosts(Hosts),
    Pods(Pods),
}

/// Backups as they are wanted, or as they were.
#[derive(Clone, Debug)]
pub(super) struct Arguments {
    pub(super) address: Address,
    /// What it is called on hosts and in etcd.
    pub(super) name: String,
    pub(super) version: Version,
    pub(super) place: Place,
    /// The client's connection to the cluster, perhaps not known yet.
    pub(super) cluster: Value,
    pub(super) schedule: String,
    /// A list of strings, perhaps not known yet; null for nobody.
    pub(super) recipients: Value,
    /// The block `s3`, if there is one.
    pub(super) bucket: Option<Object>,
    /// Hourly, daily, weekly.
    pub(super) keep: [i64; 3],
    pub(super) keep_all: bool,
    pub(super) max_age_hours: i64,
    /// Seconds.
    pub(super) timeout: i64,
}

impl Arguments {
    /// Reads and checks them.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(super) fn read(address: &Address, object: &Object) -> Result<Self, Diagnostics> {
        let mut found = Diagnostics::new();
        let name = cluster_name(address);
        let version = text(object, "version", "", &mut found);
        let schedule = text(object, "schedule", SCHEDULE, &mut found);
        let mut number = |attribute: &str, default: i64, (least, most): (i64, i64)| match object.get(attribute).filter(|v| !v.is_null()) {
            None => default,
            Some(value) => value.as_i64().filter(|n| (least..=most).contains(n)).unwrap_or_else(|| {
                let detail = format!("`{attribute}` must be a whole number from {least} to {most}, known when planning.");
                found.push(Diagnostic::error("A number that can't be used", detail));
                default
            }),
        };
        let keep = KEEP.map(|(attribute, default)| number(attribute, default, (0, 10_000)));
        let usual = WORDS.iter().find(|(word, _)| *word == schedule).map_or(MAX_AGE_HOURS, |(_, hours)| *hours);
        let max_age_hours = number("max_age_hours", usual, (1, 10_000));
        let timeout = number("timeout", TIMEOUT, (60, LONGEST));
        let keep_all = object.get("keep_all").and_then(Value::as_bool) == Some(true);
        // Of one that is not known, that was said.
        let is_known = object.get("version").is_some_and(|v| v.as_str().is_some());
        let parsed = if is_known { Version::parse(&version).map_err(Some) } else { Err(None) };
        let version = parsed.map_err(|why| found.extend(why.map(|w| Diagnostic::error("An etcd version that can't be used", w)))).ok();
        let bucket = object.get("s3").and_then(Value::as_entries).cloned();
        if let Some(bucket) = &bucket {
            check_bucket(bucket, &mut found);
        }
        let recipients = object.get("age_recipients").cloned().unwrap_or_else(|| Value::null(Type::list(Type::String)));
        check_recipients(&recipients, &mut found);
        let place = match object.get("kubernetes").and_then(Value::as_entries) {
            Some(block) => {
                no_hosts(object, &mut found);
                Place::Pods(Pods::read(&name, block, version.as_ref(), &schedule, bucket.is_some(), &mut found))
            }
            None => Place::Hosts(Hosts::read(&name, object, &schedule, &mut found)),
        };
        match version {
            Some(version) if !found.has_errors() => Ok(Self {
                address: address.clone(),
                name,
                version,
                place,
                cluster: object.get("cluster").cloned().unwrap_or_else(|| Value::unknown(Type::Any)),
                schedule,
                recipients,
                bucket,
                keep,
                keep_all,
                max_age_hours,
                timeout,
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
        joined(self.cluster.get("endpoints"), ",")
    }

    /// Who can read the backups, with spaces between; empty: whoever has the file.
    pub(super) fn readers(&self) -> Value {
        if self.recipients.is_null() { "".into() } else { joined(Some(&self.recipients), " ") }
    }
}

fn joined(list: Option<&Value>, between: &str) -> Value {
    let items = list.and_then(Value::as_items);
    let known: Option<Vec<&str>> = items.and_then(|items| items.iter().map(Value::as_str).collect());
    known.map_or_else(|| Value::unknown_not_null(Type::String), |texts| texts.join(between).into())
}

/// A text that must be known.
pub(super) fn text(object: &Object, attribute: &str, default: &str, found: &mut Diagnostics) -> String {
    match object.get(attribute).filter(|v| !v.is_null()) {
        None => default.to_owned(),
        Some(value) => value.as_str().map(str::to_owned).unwrap_or_else(|| {
            found.push(not_known(attribute));
            default.to_owned()
        }),
    }
}

/// A value that was written.
pub(super) fn given(object: &Object, name: &str) -> Option<Value> {
    object.get(name).filter(|v| !v.is_null()).cloned()
}

pub(super) fn not_known(name: &str) -> Diagnostic {
    let detail = format!("`{name}` decides what is put on hosts and where, so it can't be known only after apply.");
    Diagnostic::error("A value that must be known when planning", detail)
        .with_hint("Take it from a variable or a local, or apply what it comes from first with `-target`.")
}

fn no_hosts(object: &Object, found: &mut Diagnostics) {
    for name in ["hosts", "source", "source_sha256", "program", "program_sha256", "directory"] {
        if given(object, name).is_some() {
            found.push(
                Diagnostic::error(
                    "Hosts and pods",
                    format!("`{name}` is for backups on hosts, and these are made by pods (`kubernetes`)."),
                )
                .with_hint(format!("Remove `{name}`, or the block `kubernetes`.")),
            );
        }
    }
}

fn check_bucket(bucket: &Object, found: &mut Diagnostics) {
    // Lines of settings are made of them.
    for name in ["bucket", "prefix", "region", "endpoint"] {
        if let Some(text) = bucket.get(name).and_then(Value::as_str)
            && (text.chars().any(char::is_control) || text.trim() != text || text.is_empty())
        {
            found.push(Diagnostic::error(
                "A bucket that can't be used",
                format!("`s3.{name}` is empty, or has spaces or line ends around or in it."),
            ));
        }
    }
    if let Some(prefix) = bucket.get("prefix").and_then(Value::as_str)
        && prefix.split('/').any(|part| matches!(part, "" | "." | ".."))
    {
        let detail = "`s3.prefix` has a slash at one end, or parts that are empty, \".\" or \"..\".";
        found.push(Diagnostic::error("A prefix that can't be used", detail).with_hint("Write it like \"prod/etcd\"."));
    }
    if let Some(endpoint) = bucket.get("endpoint").and_then(Value::as_str)
        && !(endpoint.starts_with("https://") || endpoint.starts_with("http://"))
    {
        found.push(Diagnostic::error(
            "An endpoint that can't be used",
            format!("`s3.endpoint` is \"{endpoint}\", without http:// or https://."),
        ));
    }
    if given(bucket, "access_key").is_some() != given(bucket, "secret_key").is_some() {
        found.push(Diagnostic::error("Half of the credentials", "`s3.access_key` and `s3.secret_key` belong together."));
    }
}

/// An identity in their place would be written where everybody looks.
fn check_recipients(recipients: &Value, found: &mut Diagnostics) {
    let items = recipients.as_items().unwrap_or_default();
    if !recipients.is_null() && !recipients.is_unknown() && items.is_empty() {
        found.push(
            Diagnostic::error("Encrypted for nobody", "`age_recipients` names nobody, so nobody could read the backups.")
                .with_hint("Name somebody, or remove it: then backups are not encrypted."),
        );
    }
    for recipient in items.iter().filter_map(Value::as_str) {
        if !(recipient.starts_with("age1") && recipient.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())) {
            let found_identity = recipient.starts_with("AGE-SECRET-KEY-");
            let detail = if found_identity {
                "One of `age_recipients` is an identity, which is secret."
            } else {
                "One of `age_recipients` is none."
            };
            found.push(
                Diagnostic::error("Not a recipient of age", detail)
                    .with_hint("Write it as age-keygen prints it behind \"public key\": age1..."),
            );
        }
    }
}
