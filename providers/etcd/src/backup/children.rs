//! What an `etcd_backup` stands for: on each host programs, credentials, a script and a timer; once the first backup; and the record in etcd.

use karmaform_model::{Arg, Child, ChildStep, Expansion, Object, Type, Value};

use super::arguments::Arguments;
use crate::cluster::{self, SANDBOX};

/// The script is the same for all: everything that differs is in its unit's environment.
const SCRIPT: &str = include_str!("backup.sh");
/// How long a backup with its proof may take, in seconds.
const LIMIT: i64 = 3_600;

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

fn child<const N: usize>(path: Vec<ChildStep>, resource_type: &str, arguments: [(&str, Arg); N], after: &[Vec<ChildStep>]) -> Child {
    Child { after: after.to_vec(), ..cluster::child(path, resource_type, arguments) }
}

/// The children; there are no outputs.
pub(super) fn expand(backup: &Arguments) -> Expansion {
    let mut children = Vec::new();
    for (rank, (host, connection)) in backup.hosts.iter().enumerate() {
        on_host(backup, rank, host, connection, &mut children);
    }
    if let Some((host, connection)) = backup.hosts.iter().next() {
        children.push(first(backup, host, connection));
    }
    let ways = backup.hosts.values().map(|c| c.clone().into()).collect();
    let cluster = Arg::object([
        ("provider", "etcd".into()),
        ("id", backup.address.to_string().into()),
        ("endpoints", backup.client("endpoints").into()),
        ("ca_certificate", backup.client("ca_certificate").into()),
        ("certificate", backup.client("certificate").into()),
        ("private_key", backup.client("private_key").into()),
        ("via", Arg::object([("provider", "ssh".into()), ("any_of", Arg::List(ways))])),
    ]);
    let arguments = [("cluster", cluster), ("name", backup.name.as_str().into()), ("max_age_hours", backup.max_age_hours.into())];
    children.push(child(vec![ChildStep::new("record")], "etcd_backup_record", arguments, &[vec![ChildStep::new("first")]]));
    Expansion { children, outputs: [].into() }
}

fn on_host(backup: &Arguments, rank: usize, host: &str, connection: &Value, children: &mut Vec<Child>) {
    let places = Places::of(backup);
    let at = |mut child: Child| {
        child.arguments.insert("host".to_owned(), connection.clone().into());
        child
    };
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
    for program in programs(backup) {
        let arguments = [
            ("source", backup.source.clone().into()),
            ("sha256", backup.source_sha256.clone().into()),
            ("member", (*program).into()),
            ("path", format!("{}/{program}", places.programs).into()),
            ("owner", "root".into()),
            ("group", "root".into()),
            ("mode", "0755".into()),
        ];
        children.push(at(child(part_of(host, "program", program), "ssh_artifact", arguments, &[directory("programs")])));
    }
    for (name, content, mode) in [
        ("ca.crt", backup.client("ca_certificate").into(), "0600"),
        ("client.crt", backup.client("certificate").into(), "0600"),
        ("client.key", backup.client("private_key").into(), "0600"),
        ("settings", settings(backup, rank, host, &places), "0600"),
        ("backup", SCRIPT.into(), "0700"),
    ] {
        let made = file(part_of(host, "file", name), format!("{}/{name}", places.config), content, mode, &[directory("config")]);
        children.push(at(made));
    }
    let unit = format!("/etc/systemd/system/{}.service", places.unit);
    children.push(at(file(part(host, "service"), unit, service(backup, &places).into(), "0644", &[])));
    let mut after = vec![part(host, "service")];
    after.extend(programs(backup).iter().map(|p| part_of(host, "program", p)));
    after.extend(["ca.crt", "client.crt", "client.key", "settings", "backup"].map(|f| part_of(host, "file", f)));
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
fn first(backup: &Arguments, host: &str, connection: &Value) -> Child {
    let unit = Places::of(backup).unit;
    let command = format!("systemctl start {unit}.service || {{ journalctl -q --no-pager -o cat -n 20 -u {unit}.service >&2; exit 1; }}");
    let sum = |path: Vec<ChildStep>, attribute: &str| Arg::child(&path, attribute);
    let triggers = Arg::object([
        ("settings", sum(part_of(host, "file", "settings"), "sha256")),
        ("script", sum(part_of(host, "file", "backup"), "sha256")),
        ("program", sum(part_of(host, "program", "etcd"), "content_sha256")),
    ]);
    let arguments = [
        ("host", connection.clone().into()),
        ("command", command.into()),
        ("triggers", triggers),
        ("environment", Value::map(Type::String, Object::new()).into()),
        ("timeout", LIMIT.into()),
    ];
    let after: Vec<_> = backup.hosts.keys().map(|h| part(h, "timer")).collect();
    child(vec![ChildStep::new("first")], "ssh_command", arguments, &after)
}

fn file(path: Vec<ChildStep>, at: String, content: Arg, mode: &str, after: &[Vec<ChildStep>]) -> Child {
    Child { after: after.to_vec(), ..cluster::file(path, at, content, "root", "root", mode) }
}

/// The environment of the script.
fn settings(backup: &Arguments, rank: usize, host: &str, places: &Places) -> Arg {
    let [hourly, daily, weekly] = backup.keep;
    let restore = if programs(backup).contains(&"etcdutl") { "etcdutl" } else { "etcdctl" };
    // What stands in JSON on the host must not end its texts.
    let address = backup.address.to_string().replace(['"', '\\', '$', '`'], "_");
    let plain = format!(
        "# {address} on host {host}. Written by karmaform; it undoes changes made here.\nNAME={}\nADDRESS={address}\nHOST={host}\nRANK={rank}\n\
         DIRECTORY={}\nPROGRAMS={}\nRESTORE={restore}\nKEEP_HOURLY={hourly}\nKEEP_DAILY={daily}\nKEEP_WEEKLY={weekly}\n\
         ETCDCTL_CACERT={config}/ca.crt\nETCDCTL_CERT={config}/client.crt\nETCDCTL_KEY={config}/client.key\nENDPOINTS=",
        backup.name,
        backup.directory,
        places.programs,
        config = places.config,
    );
    Arg::Text(vec![plain.into(), backup.endpoints().into(), "\n".into()])
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
EnvironmentFile={config}/settings
ExecStart={config}/backup
TimeoutStartSec={LIMIT}
UMask=0077
Nice=10
IOSchedulingClass=idle
NoNewPrivileges=true
CapabilityBoundingSet=
# The script makes the directory of the backups itself: it outlives what is made here.
ProtectSystem=full
{SANDBOX}",
        config = places.config,
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
