//! `data "ssh_host"`: what a host is like, and the connection to it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use karmaform_model::{Attribute, BoxFuture, DataSource, Diagnostic, Number, Object, Schema, Type, Value};

use crate::client::{Act, Client};
use crate::connection::{self, Options};
use crate::failure;

const SCRIPT: &str = include_str!("script/facts.sh");

/// The data source.
pub(crate) struct HostFacts {
    schema: Schema,
    /// What is said of a host that is away.
    unknown: Object,
}

impl HostFacts {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let mut attributes = vec![Attribute::required("address", Type::String, "Name or IP address of the host.")];
        attributes.extend(connection::attributes());
        attributes.push(connection::required());
        attributes.push(Attribute::computed(
            "connection",
            Type::Any,
            "Connection to the host, for the attribute `host` of the resources of this provider and for others.",
        ));
        attributes.push(Attribute::computed(
            "reachable",
            Type::Bool,
            "False for a host that did not answer and need not; nothing else is known of it then.",
        ));
        let facts: [(&'static str, Type, &'static str); 19] = [
            ("hostname", Type::String, "Its own name."),
            ("os", Type::String, "Distribution, as in /etc/os-release: \"debian\"."),
            ("os_version", Type::String, "Version of the distribution: \"12\"."),
            ("architecture", Type::String, "Processor architecture as releases name it: \"amd64\", \"arm64\"."),
            ("kernel", Type::String, "Version of the kernel."),
            ("systemd_version", Type::Number, "Version of systemd; null if it is not the init."),
            ("machine_id", Type::String, "Machine id."),
            ("clock_offset", Type::Number, "Seconds that its clock is ahead of this machine's; negative if it is behind."),
            (
                "addresses",
                Type::list(Type::String),
                "Its IP addresses, without those of loopback and links, deprecated ones, and those that karmaform lets go from host to host.",
            ),
            ("interfaces", Type::map(Type::String), "The network interface that each of these addresses is on."),
            ("listening_ports", Type::list(Type::Number), "TCP ports that something listens on, on whatever address."),
            ("memory_bytes", Type::Number, "Memory."),
            ("disk_free_bytes", Type::Number, "Free space on the file system of /var/lib."),
            ("cpus", Type::Number, "Processors."),
            (
                "disks",
                Type::map(Type::Number),
                "Free bytes by mount point of the local file systems, and of /, /etc, /opt, /usr/local, /var and /var/lib.",
            ),
            ("swap_bytes", Type::Number, "Swap space."),
            ("clock_kept", Type::Bool, "Whether something keeps its clock in time (NTP); null if it can't be told."),
            (
                "firewall",
                Type::String,
                "What keeps others out unless they are let in: \"firewalld\", \"ufw\", \"nftables\" or \"iptables\"; null if nothing does, or if \
                 the user may not see it.",
            ),
            (
                "concerns",
                Type::list(Type::String),
                "What servers suffer from there, in plain words: swap, a clock that nobody keeps, low limits, a cloud-init that writes /etc/hosts anew.",
            ),
        ];
        let unknown = facts.iter().map(|(name, ty, _)| ((*name).to_owned(), Value::unknown(ty.clone()))).collect();
        attributes.extend(facts.map(|(name, ty, doc)| Attribute::computed(name, ty, doc)));
        let mut schema = Schema::new("A Linux host that is reached over SSH.", attributes);
        schema.connection = karmaform_model::Connection::Arguments;
        Self { schema, unknown }
    }
}

impl HostFacts {
    /// What is said of a host of this architecture that nobody can reach from here.
    pub(crate) fn unseen(&self, options: &Options, arguments: &Object, architecture: &str) -> Object {
        let mut object = arguments.clone();
        object.extend(self.unknown.clone());
        object.insert("connection".to_owned(), options.value(arguments));
        // What is made there is what is needed.
        object.insert("reachable".to_owned(), true.into());
        object.insert("architecture".to_owned(), architecture.into());
        object
    }
}

impl DataSource<Client> for HostFacts {
    fn name(&self) -> &'static str {
        "ssh_host"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async move {
            let mut object = arguments.clone();
            object.insert("connection".to_owned(), client.options().value(arguments));
            object.insert("reachable".to_owned(), client.host().is_ok().into());
            if client.host().is_err() {
                object.extend(self.unknown.clone());
                return Ok(object);
            }
            let start = now();
            let output = client.run(Act::new("Reading facts", SCRIPT)).await?;
            let middle = f64::midpoint(start.as_secs_f64(), now().as_secs_f64());
            if output.status != 0 {
                return Err(failure::failed(&format!("Reading facts on {}", client.place()), &output, &[]));
            }
            object.extend(facts(&String::from_utf8_lossy(&output.stdout), middle));
            Ok(object)
        })
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// From the script's `name=value` lines.
fn facts(text: &str, middle: f64) -> Object {
    let values: BTreeMap<_, _> = text.lines().filter_map(|l| l.split_once('=')).collect();
    let value = |name: &str| values.get(name).copied().filter(|v| !v.is_empty());
    let string = |name: &str| value(name).map_or_else(|| Value::null(Type::String), Value::from);
    let number = |name: &str| value(name).and_then(|v| v.parse::<i64>().ok()).map_or_else(|| Value::null(Type::Number), Value::from);
    let seconds = |name: &str| value(name).and_then(|v| v.parse::<f64>().ok());
    // the host's clock at the middle of the script against ours at the middle of the exchange
    let offset = seconds("begin").zip(seconds("end")).map(|(begin, end)| f64::midpoint(begin, end) - middle);
    let offset = offset.and_then(|o| Number::from_f64((o * 1000.0).round() / 1000.0));
    let mut addresses: Vec<&str> = value("addresses").unwrap_or_default().split_whitespace().filter(|a| is_reachable(a)).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let mut object: Object = ["hostname", "os", "os_version", "kernel", "machine_id"].map(|n| (n.to_owned(), string(n))).into();
    object.extend(["systemd_version", "memory_bytes", "disk_free_bytes", "cpus"].map(|n| (n.to_owned(), number(n))));
    object.insert("firewall".to_owned(), string("firewall"));
    object.insert("swap_bytes".to_owned(), number("swap_bytes"));
    let kept = value("clock_kept").map(|v| v == "true");
    object.insert("clock_kept".to_owned(), kept.map_or_else(|| Value::null(Type::Bool), Value::from));
    let disks = value("disks").unwrap_or_default().split_whitespace().filter_map(|d| d.rsplit_once('='));
    let disks = disks.filter_map(|(mount, free)| Some((mount.to_owned(), free.parse::<i64>().ok()?.into()))).collect();
    object.insert("disks".to_owned(), Value::map(Type::Number, disks));
    let limit = |name: &str| value(name).and_then(|v| v.parse::<i64>().ok());
    object.insert("concerns".to_owned(), Value::strings(concerns(limit, kept, value("hosts_rewritten").is_some())));
    object.insert("architecture".to_owned(), value("machine").map_or_else(|| Value::null(Type::String), |m| architecture(m).into()));
    object.insert("clock_offset".to_owned(), offset.map_or_else(|| Value::null(Type::Number), Value::from));
    object.insert("addresses".to_owned(), Value::strings(addresses));
    let interfaces = value("interfaces").unwrap_or_default().split_whitespace().filter_map(|pair| pair.split_once('='));
    let interfaces = interfaces.filter(|(a, _)| is_reachable(a)).map(|(a, name)| (a.to_owned(), name.into())).collect();
    object.insert("interfaces".to_owned(), Value::map(Type::String, interfaces));
    let mut ports: Vec<i64> = value("listening").unwrap_or_default().split_whitespace().filter_map(port).collect();
    ports.sort_unstable();
    ports.dedup();
    object.insert("listening_ports".to_owned(), Value::list(Type::Number, ports.into_iter().map(Value::from).collect()));
    object
}

/// What servers suffer from on a host. Source of the inotify limits: Karmada's own troubleshooting, where webhooks and etcd run out of them.
fn concerns(number: impl Fn(&str) -> Option<i64>, clock_is_kept: Option<bool>, hosts_are_rewritten: bool) -> Vec<String> {
    const LIMITS: [(&str, i64); 2] = [("instances", 128), ("watches", 8_192)];
    let mut found = Vec::new();
    if number("swap_bytes").is_some_and(|n| n > 0) {
        found.push("swap is on: what is swapped out answers late".to_owned());
    }
    if clock_is_kept == Some(false) {
        found.push("nothing keeps the clock in time: certificates and leases go by it".to_owned());
    }
    if hosts_are_rewritten {
        found.push(
            "cloud-init writes /etc/hosts anew at each boot (`manage_etc_hosts`): names that are added there are gone then".to_owned(),
        );
    }
    for (name, least) in LIMITS {
        if let Some(now) = number(&format!("inotify_{name}")).filter(|n| *n < least) {
            found.push(format!("fs.inotify.max_user_{name} is {now}: servers run out of it, {least} is little"));
        }
    }
    found
}

/// The port in `0100007F:0050`, as /proc/net/tcp has it.
fn port(address: &str) -> Option<i64> {
    i64::from_str_radix(address.rsplit_once(':')?.1, 16).ok()
}

fn is_reachable(address: &str) -> bool {
    !address.starts_with("127.") && address != "::1" && !address.starts_with("fe80:") && !address.starts_with("169.254.")
}

/// `uname -m` in the words of release archives.
fn architecture(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "armv7l" | "armv6l" => "arm",
        "i386" | "i686" => "386",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read() {
        let text = "begin=100.000000000\nhostname=h1\nos=debian\nmachine=x86_64\nsystemd_version=252\n\
                    addresses=fe80::1 10.0.0.2 127.0.0.1 10.0.0.1 10.0.0.2\n\
                    interfaces= 127.0.0.1=lo 10.0.0.2=eth0\nlistening= 0100007F:0050 00000000:0016 00000000000000000000000000000000:0016\nmemory_bytes=1024\n\
                    swap_bytes=4096\nclock_kept=false\nfirewall=ufw\ndisks= /=1024 /var=2048\ninotify_instances=16\ninotify_watches=65536\nend=101.000000000\nos_version=\nnoise";
        let found = facts(text, 98.25);
        assert_eq!(found["clock_offset"], Number::from_f64(2.25).unwrap().into());
        assert_eq!(found["addresses"], Value::strings(["10.0.0.1", "10.0.0.2"]));
        assert_eq!(found["interfaces"], Value::map(Type::String, [("10.0.0.2".to_owned(), "eth0".into())].into()));
        assert_eq!(found["listening_ports"], Value::list(Type::Number, vec![22i64.into(), 80i64.into()]));
        assert_eq!(found["architecture"], "amd64".into());
        assert_eq!(found["memory_bytes"], 1024i64.into());
        assert!(found["os_version"].is_null() && found["disk_free_bytes"].is_null());
        assert_eq!(
            found["disks"],
            Value::map(Type::Number, [("/".to_owned(), 1024i64.into()), ("/var".to_owned(), 2048i64.into())].into())
        );
        assert_eq!((&found["firewall"], &found["clock_kept"]), (&"ufw".into(), &false.into()));
        let concerns: Vec<_> = found["concerns"].as_items().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
        assert!(
            matches!(concerns[..], [swap, clock, limit] if swap.starts_with("swap") && clock.contains("clock") && limit.contains("is 16"))
        );
        let cloud = facts("hosts_rewritten=true\n", 0.0);
        assert!(
            matches!(cloud["concerns"].as_items().unwrap(), [only] if only.as_str().unwrap().starts_with("cloud-init writes /etc/hosts"))
        );
        let quiet = facts("swap_bytes=0\nclock_kept=\nfirewall=\n", 0.0);
        assert!(quiet["concerns"].as_items().unwrap().is_empty() && quiet["firewall"].is_null() && quiet["clock_kept"].is_null());
    }
}
