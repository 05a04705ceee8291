//! An estimator on a host: a systemd unit under a user of its own, which exists only while it runs.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use karmaform_model::{Arg, Child, ChildStep, Type, Value};

use super::arguments::Arguments;
use super::children::after;
use super::estimator::{self, Content, PROGRAM};
use super::pods::{arguments, extra_args};
use crate::plane::{child, part, part_of};
use crate::read::Reader;
use crate::systemd::{SANDBOX, awaits, escape};

/// How long starting it may take, in seconds.
const START_TIMEOUT: i64 = 90;
/// How often it is looked whether it listens, each a tenth of a second after the last.
const LOOKS: i64 = 100;
/// The oldest systemd that hands files to whoever it runs (`LoadCredential`). Source: NEWS of systemd, 247.
const OLDEST_SYSTEMD: i64 = 247;
/// Above the folders of its files, and of its program: /usr may be there to be read alone.
const FILES: &str = "/etc/";
const PROGRAMS: &str = "/opt/karmaform/";
/// What is for pods alone.
const OF_PODS: [&str; 16] = [
    "inside",
    "cluster",
    "namespace",
    "node_port",
    "version",
    "image",
    "image_pull_policy",
    "image_pull_secrets",
    "replicas",
    "resources",
    "node_selector",
    "tolerations",
    "annotations",
    "labels",
    "priority_class",
    "run_as_user",
];

/// What is written of it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    connection: Value,
    /// The host's own, if it has one that is known.
    pub(crate) address: Option<Value>,
    source: Value,
    sha256: Value,
    extra_args: BTreeMap<String, Value>,
}

impl Settings {
    /// Reads what the block has for a host.
    pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        for name in OF_PODS {
            if reader.value(name).is_some() {
                reader.wrong::<()>(name, "is for an estimator in pods, and there is a `host`");
            }
        }
        let host = reader.given("host");
        let connection = host.get("connection").cloned().unwrap_or_else(|| host.clone());
        if !(connection.is_unknown() || connection.get("provider").is_some_and(|p| p.is_unknown() || p.as_str() == Some("ssh"))) {
            return reader.wrong("host", "is no host: it must be a `data \"ssh_host\"`, or its attribute `connection`");
        }
        if let Some(found) = host.get("systemd_version").and_then(Value::as_i64).filter(|v| *v < OLDEST_SYSTEMD) {
            reader.wrong::<()>("host", &format!("has systemd {found}; the unit needs {OLDEST_SYSTEMD} or newer, which hands it its keys"));
        }
        let source = reader.value("source").cloned();
        if source.is_none() {
            reader.wrong::<()>("source", "is missing: on a host the program comes from a file or a URL");
        }
        // Which of several addresses of its own others reach nobody can tell.
        let is_ip = |value: &&Value| value.is_unknown() || value.as_str().is_some_and(|a| a.parse::<Ipv4Addr>().is_ok());
        let managed = connection.get("address").or_else(|| host.get("address")).filter(is_ip);
        let is_later = host.is_unknown() || connection.is_unknown();
        Some(Self {
            address: managed.cloned().or_else(|| is_later.then(|| Value::unknown_not_null(Type::String))),
            connection,
            source: source?,
            sha256: reader.given("source_sha256"),
            extra_args: extra_args(reader),
        })
    }
}

/// Its folders, its program, its files and its unit.
pub(crate) fn children(member: &Arguments, whole: &estimator::Settings, settings: &Settings) -> Vec<Child> {
    // With the mark of the control plane: others may have an estimator for the same member on this host.
    let name: Arg = match &member.mark {
        Some(mark) => format!("{PROGRAM}-{}-{mark}", member.name).into(),
        None => Value::unknown_not_null(Type::String).into(),
    };
    let below = |folder: &str, rest: &str| Arg::Text(vec![folder.into(), name.clone(), rest.into()]);
    let at = |mut made: Child, first: &[Vec<ChildStep>]| {
        made.arguments.insert("host".to_owned(), settings.connection.clone().into());
        after(made, first)
    };
    let directory = |key: &str, path: Arg, mode: &str| {
        let made = child(part_of("estimator_directory", key), "ssh_directory", [("path", path), ("mode", mode.into())]);
        at(made, &[])
    };
    let [of_files, of_program] = ["files", "program"].map(|key| part_of("estimator_directory", key));
    let mut children = vec![directory("files", below(FILES, ""), "0700"), directory("program", below(PROGRAMS, ""), "0755")];
    let mut triggers = BTreeMap::new();
    let mut first = Vec::new();
    let mut credentials = Vec::new();
    for (file, content) in estimator::files(member, whole, false) {
        let path = part_of("estimator_file", file);
        let content = match content {
            Content::Plain(plain) => plain,
            Content::Encoded(encoded) => Arg::Decoded(Box::new(encoded)),
        };
        let place = below(FILES, &format!("/{file}"));
        credentials.extend([format!("LoadCredential={file}:").into(), place.clone(), "\n".into()]);
        let arguments = [("path", place), ("content", content), ("mode", "0600".into())];
        children.push(at(child(path.clone(), "ssh_file", arguments), std::slice::from_ref(&of_files)));
        triggers.insert(file.to_owned(), Arg::child(&path, "sha256"));
        first.push(path);
    }
    // Not by the name that it had while it was below /usr: that one goes when nothing runs it any more.
    let program_path = part("estimator_artifact");
    let program = below(PROGRAMS, &format!("/{PROGRAM}"));
    let made = child(
        program_path.clone(),
        "ssh_artifact",
        [
            ("source", settings.source.clone().into()),
            ("sha256", settings.sha256.clone().into()),
            ("path", program.clone()),
            ("mode", "0755".into()),
            ("previous", below(PROGRAMS, "/previous")),
        ],
    );
    children.push(at(made, &[of_program]));
    triggers.insert("program".to_owned(), Arg::child(&program_path, "content_sha256"));
    first.push(program_path);
    let made = child(
        part("estimator"),
        "ssh_systemd_unit",
        [
            ("name", below("", ".service")),
            ("content", unit(member, settings, whole.port(), program, credentials)),
            ("enabled", true.into()),
            ("active", true.into()),
            ("ports", Arg::List(vec![whole.port().into()])),
            ("restart_triggers", Arg::Object(triggers)),
            ("drop_ins", Arg::List(Vec::new())),
            ("start_timeout", START_TIMEOUT.into()),
        ],
    );
    children.push(at(made, &first));
    children
}

/// The unit. Its files are root's; systemd hands them to the user that it makes for the time that it runs.
fn unit(member: &Arguments, settings: &Settings, port: i64, program: Arg, credentials: Vec<Arg>) -> Arg {
    let mut flags = estimator::flags(member, "${CREDENTIALS_DIRECTORY}", port);
    // Several estimators may be on one host, and these ports are the same for all of them.
    for name in ["health-probe-bind-address", "metrics-bind-address"] {
        flags.insert(name.to_owned(), "0".into());
    }
    let mut text = vec![
        format!(
            "# Written by karmaform; it undoes changes made here.
[Unit]
Description=karmada-scheduler-estimator of the member {name}
Documentation=https://karmada.io/docs/userguide/scheduling/cluster-resources/
Wants=network-online.target
After=network-online.target

[Service]
DynamicUser=yes
",
            name = member.name,
        )
        .into(),
    ];
    text.extend(credentials);
    text.extend(["ExecStart=".into(), program]);
    let escaped = |value: &Value| match value.as_str() {
        Some(text) => Value::from(escape(text)).secret_if(value.secret),
        None => value.clone(),
    };
    let extra = settings.extra_args.iter().map(|(name, value)| (name.clone(), escaped(value))).collect();
    for argument in arguments(flags, &extra) {
        text.extend([" \\\n  \"".into(), argument, "\"".into()]);
    }
    text.push(
        format!(
            "
# It listens only when it has seen all of the member, which is waited for, but not for ever: a member may be dead.
{}
Restart=on-failure
RestartSec=5
{SANDBOX}
[Install]
WantedBy=multi-user.target
",
            awaits(port, LOOKS, "exit 0")
        )
        .into(),
    );
    Arg::Text(text)
}
