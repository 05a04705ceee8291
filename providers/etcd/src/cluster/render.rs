//! The texts on a member's host: the environment that configures etcd, the unit that runs it, and the guard that says whether it may start.
//!
//! etcd is configured by its environment alone. With a configuration file it would ignore every variable, and then the one variable that
//! differs between the first start and all later ones could not be given from outside that file.

use karmaform_model::{Arg, ChildStep, Value};

use super::arguments::Arguments;
use super::hosts::Host;
use super::places::Places;

/// In the environment of a first start: the member joins a cluster that was formed. Its value is the id of the member whose place it takes, or
pub(crate) const JOINS: &str = "KARMAFORM_JOINS";
/// that nobody was there before.
pub(crate) const JOINS_EMPTY: &str = "empty";

/// The end of a [Service] section, of what etcd and its backups never need.
pub(crate) const SANDBOX: &str = "ProtectHome=true
PrivateTmp=true
PrivateDevices=true
ProtectKernelTunables=true
ProtectKernelModules=true
ProtectKernelLogs=true
ProtectControlGroups=true
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
LockPersonality=true
SystemCallArchitectures=native
";

/// A text made of parts that may not be known yet.
#[derive(Default)]
struct Text {
    parts: Vec<Arg>,
    open: String,
}

impl Text {
    fn push(&mut self, text: &str) -> &mut Self {
        self.open.push_str(text);
        self
    }

    fn value(&mut self, value: &Value) -> &mut Self {
        match value.as_str() {
            Some(text) if !value.contains_secret() => self.push(text),
            _ => self.arg(value.clone().into()),
        }
    }

    fn values<'a>(&mut self, values: impl IntoIterator<Item = &'a Value>) -> &mut Self {
        for value in values {
            self.value(value);
        }
        self
    }

    fn arg(&mut self, arg: Arg) -> &mut Self {
        self.close();
        self.parts.push(arg);
        self
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.parts.push(std::mem::take(&mut self.open).into());
        }
    }

    fn finish(mut self) -> Arg {
        self.close();
        Arg::Text(self.parts)
    }
}

/// The environment file of a member. `token` is the sibling whose id names the formation.
pub(crate) fn environment(cluster: &Arguments, name: &str, member: &Host, token: &[ChildStep]) -> Arg {
    let places = Places::of(cluster);
    let (peer, client) = (cluster.url(member, cluster.peer_port), cluster.url(member, cluster.client_port));
    let mut text = Text::default();
    text.push(&format!("# etcd member {name} of {}. Written by karmaform; it undoes changes made here.\n", cluster.address));
    text.push(&format!("ETCD_NAME={name}\nETCD_DATA_DIR={}\n", places.data));
    text.push("ETCD_LISTEN_PEER_URLS=").values(&peer).push("\n");
    text.push("ETCD_INITIAL_ADVERTISE_PEER_URLS=").values(&peer).push("\n");
    text.push("ETCD_LISTEN_CLIENT_URLS=").values(&client);
    // etcd can't listen twice on one address.
    if !matches!(member.address.as_str(), Some("127.0.0.1")) {
        text.push(&format!(",https://127.0.0.1:{}", cluster.client_port));
    }
    text.push("\nETCD_ADVERTISE_CLIENT_URLS=").values(&client).push("\n");
    text.push("ETCD_INITIAL_CLUSTER_TOKEN=").arg(Arg::child(token, "id"));
    // "new" is given for one start only, from outside. A member that lost its data must never find it here: it would form an empty cluster.
    text.push("\nETCD_INITIAL_CLUSTER_STATE=existing\n");
    for (variable, file) in [
        ("ETCD_CERT_FILE", "server.crt"),
        ("ETCD_KEY_FILE", "server.key"),
        ("ETCD_TRUSTED_CA_FILE", "client-ca.crt"),
        ("ETCD_PEER_CERT_FILE", "peer.crt"),
        ("ETCD_PEER_KEY_FILE", "peer.key"),
        ("ETCD_PEER_TRUSTED_CA_FILE", "peer-ca.crt"),
    ] {
        text.push(&format!("{variable}={}/{file}\n", places.pki));
    }
    text.push("ETCD_CLIENT_CERT_AUTH=true\nETCD_PEER_CLIENT_CERT_AUTH=true\nETCD_STRICT_RECONFIG_CHECK=true\n");
    if cluster.version.minor == 4 && cluster.settings.as_ref().is_some_and(|s| !s.contains_key("logger")) {
        text.push("ETCD_LOGGER=zap\n");
    }
    match &cluster.settings {
        Some(settings) => {
            for (setting, value) in settings.iter().filter(|(n, v)| !v.is_null() && n.as_str() != "strict-reconfig-check") {
                text.push(&format!("ETCD_{}=", setting.to_ascii_uppercase().replace('-', "_")));
                match value.as_str() {
                    Some(known) => text.value(&Value::from(quoted(known)).secret_if(value.contains_secret())),
                    None => text.value(value),
                };
                text.push("\n");
            }
        }
        None => {
            text.arg(Value::unknown_not_null(karmaform_model::Type::String).into());
        }
    }
    text.finish()
}

/// The list of members. etcd reads it once, when it starts without data; from then on the list is in its data.
pub(crate) fn peers(cluster: &Arguments) -> Arg {
    let mut text = Text::default();
    text.push(&format!("# The members of {}. Written by karmaform; it undoes changes made here.\nETCD_INITIAL_CLUSTER=", cluster.address));
    for (i, (other, host)) in cluster.members.iter().enumerate() {
        text.push(if i == 0 { "" } else { "," }).push(other).push("=").values(&cluster.url(host, cluster.peer_port));
    }
    text.push("\n");
    text.finish()
}

/// A value as an environment file holds it: plain where possible, else in double quotes, where a backslash protects what is special there.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%*[]{}".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    let mut text = String::from("\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
    text
}

/// The script that systemd runs before each start and after each successful one.
///
/// The unit asks it as a condition: a member that must not start is then inactive, and not tried again every few seconds.
pub(crate) fn guard(cluster: &Arguments, name: &str) -> String {
    let places = Places::of(cluster);
    format!(
        r#"#!/bin/sh
# Whether etcd member {name} of {address} may start. Written by karmaform.
#
# A member without data must not start as a part of a cluster that was formed before: if its peers don't answer at that moment, it forms an
# empty cluster with the same id, and the two live side by side with different contents.
set -eu
data={data}
marker={marker}
formation={formation}

case "${{1:-check}}" in
check)
  # While data is moved, what says where it is changes in several files.
  if [ "${{ETCD_DATA_DIR:-$data}}" != "$data" ]; then
    echo "etcd member {name} is to start in $ETCD_DATA_DIR, and this guard looks at $data: data is being moved. Run karmaform apply." >&2
    exit 1
  fi
  # The cluster was told a moment ago that this member comes. If it takes the place of another one, data of that one goes aside, once.
  replaces=${{{JOINS}:-}}
  if [ -n "$replaces" ]; then
    aside=$data.replaced-$replaces
    if [ "$replaces" != {JOINS_EMPTY} ] && [ -e "$data/member" ] && [ ! -e "$aside" ]; then
      # On another file system this is a copy, which may be cut short; only the second name says that it is whole.
      rm -rf "$aside.part"
      mv "$data/member" "$aside.part"
      mv "$aside.part" "$aside"
    fi
    # Whatever is there at the next try is its own.
    if [ -e "$formation" ]; then sed -i 's/^{JOINS}=.*/{JOINS}={JOINS_EMPTY}/' "$formation"; fi
    exit 0
  fi
  for log in "$data"/member/wal/*.wal; do
    if [ -e "$log" ]; then exit 0; fi
  done
  if [ -e "$marker" ]; then
    echo "etcd member {name} was part of a formed cluster and its data in $data is gone. It does not start empty, because that could split the cluster. Replace the member, or put its data back." >&2
    exit 1
  fi
  if [ "${{ETCD_INITIAL_CLUSTER_STATE:-}}" = new ]; then exit 0; fi
  echo "etcd member {name} has no data in $data, and its cluster is not being formed just now. Run karmaform apply." >&2
  exit 1
  ;;
formed)
  rm -f "$formation"
  echo "{address} {name}" > "$marker"
  ;;
*)
  echo "usage: $0 check|formed" >&2
  exit 2
  ;;
esac
"#,
        address = cluster.address.to_string().replace(['"', '\\', '$', '`'], "_"),
        data = places.data,
        marker = places.marker,
        formation = places.formation,
    )
}

/// The command that tells on a host whether the program there is the version that is wanted: what an archive holds its name does not prove, and
/// from a newer version there is no way back. Names of builds may stand behind the version. What was there before is put back, so that nobody
/// else starts the wrong one either.
pub(crate) fn check(cluster: &Arguments) -> String {
    let (Places { program, previous, .. }, version) = (Places::of(cluster), &cluster.version.text);
    format!(
        "seen=$({program} --version 2>&1 | sed -n 's/^etcd Version: //p')
case $seen in
{version} | {version}[!0-9]*) ;;
*)
  if [ -x {previous}/etcd ]; then cp -p {previous}/etcd {program}.back && mv {program}.back {program}; fi
  echo \"the program from \\`source\\` is etcd ${{seen:-of no version}}, and \\`version\\` says {version}\" >&2
  exit 1
  ;;
esac"
    )
}

/// The unit of a member.
pub(crate) fn unit(cluster: &Arguments, name: &str) -> String {
    let places = Places::of(cluster);
    let Places { data, environment, peers, formation, guard, program, .. } = &places;
    format!(
        "# Written by karmaform; it undoes changes made here.
[Unit]
Description=etcd member {name} of {address}
Documentation=https://etcd.io/docs/v3.{minor}/
Wants=network-online.target
After=network-online.target time-sync.target
RequiresMountsFor={data}

[Service]
# etcd says that it is ready once the cluster has a leader and knows this member.
Type=notify
User={user}
Group={user}
EnvironmentFile={environment}
EnvironmentFile={peers}
EnvironmentFile=-{formation}
ExecCondition=+/bin/sh {guard} check
ExecStart={program}
ExecStartPost=+/bin/sh {guard} formed
Restart=on-failure
RestartSec=5
# The first members of a new cluster wait for the others, however long that takes.
TimeoutStartSec=infinity
TimeoutStopSec=60
LimitNOFILE=65536
UMask=0077
NoNewPrivileges=true
CapabilityBoundingSet=
ProtectSystem=strict
ReadWritePaths={data}
{SANDBOX}
[Install]
WantedBy=multi-user.target
",
        address = cluster.address.to_string().replace('%', "%%"),
        minor = cluster.version.minor,
        user = cluster.user,
    )
}
