//! Backups on hosts: on each of them programs, credentials, settings and a timer; and once the first backup.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, ChildStep, Diagnostic, Diagnostics, Object, Type, Value, source_on};

use super::arguments::{Arguments, given, not_known, text};
use super::children::{FIRST, RECORD, child, files, limit};
use crate::cluster::{self, SANDBOX, is_path};
use crate::versions::VERSION;

/// Where the unit's sandbox hides what is there, gives it files of its own, or lets nobody write.
const NO_PLACES: &[&str] =
    &["/tmp", "/var/tmp", "/home", "/root", "/run", "/usr", "/etc", "/boot", "/efi", "/dev", "/proc", "/sys", "/bin", "/sbin", "/lib"];
/// The program that runs now, as Linux names it.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// What that is called on hosts.
const PROGRAM: &str = "karmaform";

/// The hosts of a block.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    by_name: BTreeMap<String, Host>,
    source: Value,
    source_sha256: Value,
    program: Value,
    program_sha256: Value,
    /// Where backups lie or are made.
    directory: String,
}

/// One of them.
#[derive(Clone, Debug)]
struct Host {
    /// How it is managed.
    connection: Value,
    /// As releases name it; null or unknown where it is not known.
    architecture: Value,
}

impl Hosts {
    /// Reads them. What is wrong goes to `found`.
    pub(super) fn read(name: &str, object: &Object, schedule: &str, found: &mut Diagnostics) -> Self {
        let directory = text(object, "directory", &format!("/var/backups/etcd/{name}"), found);
        check_directory(&directory, found);
        if schedule.trim().is_empty() || !schedule.bytes().all(|b| b.is_ascii_alphanumeric() || b" *-:/,.~".contains(&b)) {
            found.push(
                Diagnostic::error("A schedule that systemd does not take", "`schedule` must be one calendar expression of systemd.")
                    .with_hint("Try it on a host: systemd-analyze calendar 'EXPRESSION'."),
            );
        }
        let source = given(object, "source").unwrap_or_else(|| Value::null(Type::String));
        if source.is_null() {
            found.push(
                Diagnostic::error("No programs of etcd", "`source` must say where the release archive of etcd is.")
                    .with_hint("Take the variable that the etcd_cluster has it from."),
            );
        }
        Self {
            by_name: by_name(object, found),
            source,
            source_sha256: given(object, "source_sha256").unwrap_or_else(|| Value::null(Type::String)),
            program: given(object, "program").unwrap_or_else(|| OWN_PROGRAM.into()),
            program_sha256: given(object, "program_sha256").unwrap_or_else(|| Value::null(Type::String)),
            directory,
        }
    }

    /// The program and its sum. Of the one that runs that is known, and so another one is seen to be another.
    fn program(&self, own_sum: fn() -> Option<String>) -> (Value, Value) {
        let is_own = self.program.as_str() == Some(OWN_PROGRAM) && self.program_sha256.is_null();
        let sum = if is_own { own_sum().map(Value::from) } else { None };
        (self.program.clone(), sum.unwrap_or_else(|| self.program_sha256.clone()))
    }

    /// The ways to all of them.
    pub(super) fn ways(&self) -> Vec<Arg> {
        self.by_name.values().map(|host| host.connection.clone().into()).collect()
    }
}

fn check_directory(directory: &str, found: &mut Diagnostics) {
    if !is_path(directory) {
        let detail =
            "`directory` must be an absolute path of at least two parts, of letters, digits, \".\", \"_\" and \"-\", without \"..\".";
        found.push(Diagnostic::error("A directory that can't be used", detail));
    }
    if let Some(place) = NO_PLACES.iter().find(|place| directory == **place || directory.starts_with(&format!("{place}/"))) {
        let detail = format!("`directory` is below {place}, where the unit has no lasting files or may not write.");
        found.push(
            Diagnostic::error("A directory that can't be used", detail)
                .with_hint("Take one below /var/backups or on a file system of its own."),
        );
    }
}

fn by_name(object: &Object, found: &mut Diagnostics) -> BTreeMap<String, Host> {
    let Some(hosts) = object.get("hosts").and_then(Value::as_entries).filter(|h| !h.is_empty()) else {
        let is_unknown = object.get("hosts").is_some_and(Value::is_unknown);
        found.push(if is_unknown {
            not_known("hosts")
        } else {
            Diagnostic::error(
                "Nobody to make backups",
                "`hosts` must be a map of `ssh_host` objects by name, or there must be a block `kubernetes`.",
            )
            .with_hint("Write `hosts = data.ssh_host.NAME`, where that block has `for_each`.")
        });
        return BTreeMap::new();
    };
    let mut hosts_by_name = BTreeMap::new();
    for (name, host) in hosts {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
            let detail = format!("The key \"{name}\" of `hosts` must be of letters, digits, \".\", \"_\" and \"-\".");
            found.push(Diagnostic::error("Not a name of a host", detail));
        }
        let architecture = host.get("architecture").cloned().unwrap_or_else(|| Value::null(Type::String));
        match cluster::connection(name, host) {
            Ok(connection) => drop(hosts_by_name.insert(name.clone(), Host { connection, architecture })),
            Err(diagnostic) => found.push(diagnostic),
        }
    }
    hosts_by_name
}

struct Places {
    config: String,
    programs: String,
    unit: String,
}

impl Places {
    fn of(backup: &Arguments) -> Self {
        Self {
            config: format!("/etc/karmaform/etcd-backup-{}", backup.name),
            programs: format!("/opt/karmaform/etcd-backup-{}", backup.name),
            unit: format!("etcd-backup-{}", backup.name),
        }
    }
}

/// Programs of the release; until 3.4 etcdctl restores.
fn programs(backup: &Arguments) -> &'static [&'static str] {
    if backup.version.minor >= 5 { &["etcd", "etcdctl", "etcdutl"] } else { &["etcd", "etcdctl"] }
}

fn part(host: &str, name: &str) -> Vec<ChildStep> {
    vec![ChildStep::keyed("host", host), ChildStep::new(name)]
}

fn part_of(host: &str, name: &str, key: &str) -> Vec<ChildStep> {
    vec![ChildStep::keyed("host", host), ChildStep::keyed(name, key)]
}

/// All that is on hosts.
pub(super) fn expand(backup: &Arguments, hosts: &Hosts, program_sum: fn() -> Option<String>, children: &mut Vec<Child>) {
    let program = hosts.program(program_sum);
    for (rank, (name, host)) in hosts.by_name.iter().enumerate() {
        on_host(backup, hosts, (rank, name), (host, &program), children);
    }
    if let Some((name, host)) = hosts.by_name.iter().next() {
        children.push(first(backup, hosts, name, &host.connection));
    }
}

fn on_host(
    backup: &Arguments,
    hosts: &Hosts,
    (rank, host): (usize, &str),
    (at_it, program): (&Host, &(Value, Value)),
    children: &mut Vec<Child>,
) {
    let places = Places::of(backup);
    let at = |mut child: Child| {
        child.arguments.insert("host".to_owned(), at_it.connection.clone().into());
        child
    };
    let on = |text: &Value| source_on(text, &[(VERSION, &backup.version.text)], at_it.architecture.as_str());
    let directory = |key: &str| part_of(host, "directory", key);
    for (key, path, mode) in [("config", &places.config, "0700"), ("programs", &places.programs, "0755")] {
        let arguments = [
            ("path", path.as_str().into()),
            ("owner", "root".into()),
            ("group", "root".into()),
            ("mode", mode.into()),
            ("purge", false.into()),
        ];
        children.push(at(child(directory(key), "ssh_directory", arguments, &[])));
    }
    let mut after = vec![part(host, "service"), vec![ChildStep::new(RECORD)]];
    let etcd = programs(backup).iter().map(|p| (*p, on(&hosts.source), on(&hosts.source_sha256), Value::from(*p)));
    let own = (PROGRAM, on(&program.0), on(&program.1), Value::null(Type::String));
    for (name, source, sha256, member) in etcd.chain([own]) {
        let arguments = [
            ("source", source.into()),
            ("sha256", sha256.into()),
            ("member", member.into()),
            ("path", format!("{}/{name}", places.programs).into()),
            ("owner", "root".into()),
            ("group", "root".into()),
            ("mode", "0755".into()),
        ];
        after.push(part_of(host, "program", name));
        children.push(at(child(part_of(host, "program", name), "ssh_artifact", arguments, &[directory("programs")])));
    }
    for (name, content) in files(backup, host, rank, (&hosts.directory, &places.programs)) {
        after.push(part_of(host, "file", name));
        let path = format!("{}/{name}", places.config);
        children.push(at(file(part_of(host, "file", name), path, content, "0600", &[directory("config")])));
    }
    let unit = format!("/etc/systemd/system/{}.service", places.unit);
    children.push(at(file(part(host, "service"), unit, service(backup, &places).into(), "0644", &[])));
    let arguments = [
        ("name", format!("{}.timer", places.unit).into()),
        ("content", timer(backup).into()),
        ("enabled", true.into()),
        ("active", true.into()),
        // systemd reads the service anew with it.
        ("restart_triggers", Arg::object([("service", Arg::child(&part(host, "service"), "sha256"))])),
        ("drop_ins", Arg::List(Vec::new())),
    ];
    children.push(at(child(part(host, "timer"), "ssh_systemd_unit", arguments, &after)));
}

/// The first backup is made at once, and again when what makes it has changed: what can't work is found in the apply that made it so.
fn first(backup: &Arguments, hosts: &Hosts, host: &str, connection: &Value) -> Child {
    let unit = Places::of(backup).unit;
    // One that is under way began by the settings of before, and another start would only wait for it.
    let command = format!(
        "while [ \"$(systemctl show --property=ActiveState {unit}.service)\" = ActiveState=activating ]; do sleep 2; done\n\
         systemctl start {unit}.service || {{ journalctl -q --no-pager -o cat -n 20 -u {unit}.service >&2; exit 1; }}"
    );
    let sum = |path: Vec<ChildStep>, attribute: &str| Arg::child(&path, attribute);
    let mut triggers = Arg::object([
        ("settings", sum(part_of(host, "file", "settings"), "sha256")),
        ("program", sum(part_of(host, "program", "etcd"), "content_sha256")),
        ("karmaform", sum(part_of(host, "program", PROGRAM), "content_sha256")),
    ]);
    if backup.bucket.as_ref().is_some_and(|b| given(b, "secret_key").is_some()) {
        triggers.set(&["credentials"], sum(part_of(host, "file", "s3-secret-key"), "sha256"));
    }
    let arguments = [
        ("host", connection.clone().into()),
        ("command", command.into()),
        ("triggers", triggers),
        ("environment", Value::map(Type::String, Object::new()).into()),
        ("timeout", (2 * limit(backup)).into()),
    ];
    let after: Vec<_> = hosts.by_name.keys().map(|h| part(h, "timer")).collect();
    child(vec![ChildStep::new(FIRST)], "ssh_command", arguments, &after)
}

fn file(path: Vec<ChildStep>, at: String, content: Arg, mode: &str, after: &[Vec<ChildStep>]) -> Child {
    Child { after: after.to_vec(), ..cluster::file(path, at, content, "root", "root", mode) }
}

fn service(backup: &Arguments, places: &Places) -> String {
    let address = backup.address.to_string().replace('%', "%%");
    format!(
        "# Written by karmaform; it undoes changes made here.
[Unit]
Description=Backup of {address}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
ExecStart={programs}/{PROGRAM} etcd backup run {config}
# Homes are hidden from it.
Environment=KF_IN_AUTOMATION=1 HOME={config}
TimeoutStartSec={limit}
UMask=0077
Nice=10
IOSchedulingClass=idle
NoNewPrivileges=true
CapabilityBoundingSet=
# It makes the directory of the backups itself: that outlives what is made here.
ProtectSystem=full
{SANDBOX}",
        programs = places.programs,
        config = places.config,
        limit = limit(backup),
    )
}

fn timer(backup: &Arguments) -> String {
    let address = backup.address.to_string().replace('%', "%%");
    format!(
        "# Written by karmaform; it undoes changes made here.
[Unit]
Description=Backups of {address}

[Timer]
OnCalendar={}
AccuracySec=1s
Persistent=true

[Install]
WantedBy=timers.target
",
        backup.schedule
    )
}
