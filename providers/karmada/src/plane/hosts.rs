//! The hosts of a control plane: which there are, where they are reached, and what is in front of them.

mod balancer;
mod children;
mod clocks;
mod entries;
mod family;
mod ports;
pub(crate) mod preflight;
mod programs;
mod roll;
mod unit;

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, ChildStep, Diagnostic, Key, Type, Value};

use super::arguments::Arguments;
use super::settings::Settings;
use crate::check::{is_address, is_domain};
use crate::read::Reader;
use crate::versions::Component;

pub(crate) use balancer::{Balancer, care, impact, listeners, taken};
pub(crate) use children::expand;
pub(crate) use family::service_subnet;
pub(crate) use ports::Ports;
pub(crate) use roll::{away, hosts_away, roll, written_until_gone};

/// The most hosts. More API servers than this make an etcd no faster.
const MOST: usize = 9;
/// The oldest systemd that knows the whole sandbox of the units (`ProtectKernelLogs`). Source: NEWS of systemd, 244.
const OLDEST_SYSTEMD: i64 = 244;
/// What Karmada's and Kubernetes' programs are built for.
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// How it is managed.
    pub(crate) connection: Value,
    /// The IP address that others reach it by; perhaps not known yet.
    pub(crate) address: Value,
    /// `amd64` or `arm64`; perhaps not known yet.
    pub(crate) architecture: Value,
    /// The network interface with that address; null if there is none, or not known yet.
    pub(crate) interface: Value,
    /// Ports that something listens on there, as far as it is known.
    pub(crate) listening: Vec<i64>,
    /// All that is known of it.
    pub(crate) facts: Value,
}

impl Host {
    /// Whether others reach it by IPv6; `None` while that is not known.
    pub(crate) fn is_v6(&self) -> Option<bool> {
        self.address.as_str().map(|address| address.contains(':'))
    }
}

/// All of them.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    pub(crate) all: BTreeMap<String, Host>,
    pub(crate) ports: Ports,
    /// A name of the user's that leads to all of them.
    pub(crate) dns_name: Option<String>,
    /// What is in front of the API servers.
    pub(crate) balancer: Option<Balancer>,
    pub(crate) karmada_source: (Value, Value),
    pub(crate) kube_source: (Value, Value),
}

impl Hosts {
    /// Reads them.
    pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Self {
        let all = hosts(reader);
        let ports = Ports::read(reader);
        let dns_name = reader.text("dns_name");
        if dns_name.as_ref().is_some_and(|n| !is_domain(n) || is_address(n)) {
            reader.wrong::<()>("dns_name", "is no DNS name");
        }
        let [karmada_source, kube_source] = ["karmada", "kube"].map(|of| programs::source(reader, of));
        let balancer = Balancer::read(reader, &ports);
        let hosts = Self { all, ports, dns_name, balancer, karmada_source, kube_source };
        family::check(reader, &hosts.all);
        balancer::check(reader, &hosts);
        hosts
    }

    /// The way to what runs on them: through any of them that answers.
    pub(crate) fn way(&self) -> Arg {
        let ways = self.all.values().map(|h| h.connection.clone().into()).collect();
        Arg::object([("provider", "ssh".into()), ("any_of", Arg::List(ways))])
    }

    /// Where people reach the API: what is in front of it, else one of the hosts.
    pub(crate) fn endpoint(&self, runs: impl Fn(&str) -> bool) -> Arg {
        let (host, port) = match &self.balancer {
            Some(balancer) => (balancer.address.clone(), balancer.port),
            None => {
                let first = self.all.iter().find(|(name, _)| runs(name)).or_else(|| self.all.iter().next());
                let address = first.map_or_else(|| Value::unknown_not_null(Type::String), |(_, h)| h.address.clone());
                (address, self.ports.of(Component::ApiServer))
            }
        };
        url(host, port)
    }

    /// The addresses of all API servers, where nothing in front of them chooses one that works.
    pub(crate) fn addresses(&self, plane: &Arguments) -> Option<Arg> {
        let homes = homes(plane, self, Component::ApiServer);
        let is_alone = self.balancer.is_none() && homes.len() > 1;
        is_alone.then(|| Arg::List(homes.into_iter().map(|(_, host)| host.address.clone().into()).collect()))
    }

    /// The addresses that the API is reached by, for its certificate.
    pub(crate) fn names(&self) -> Vec<Arg> {
        let balancer = self.balancer.iter().map(|b| b.address.clone().into());
        self.all.values().map(|h| h.address.clone().into()).chain(balancer).collect()
    }
}

/// `https://HOST:PORT`
pub(crate) fn url(host: Value, port: i64) -> Arg {
    Arg::Text(vec!["https://".into(), Arg::UrlHost(Box::new(host.into())), format!(":{port}").into()])
}

/// A child of a host.
pub(crate) fn on(host: &str, name: &str) -> Vec<ChildStep> {
    vec![ChildStep::keyed("host", host), ChildStep::new(name)]
}

/// A child of a host, one of several of its kind.
pub(crate) fn on_of(host: &str, name: &str, key: &str) -> Vec<ChildStep> {
    vec![ChildStep::keyed("host", host), ChildStep::keyed(name, key)]
}

/// The unit of a component on a host.
pub(crate) fn unit_of(host: &str, component: Component) -> Vec<ChildStep> {
    on_of(host, "unit", component.name())
}

/// The host that a child is on.
fn host_at(path: &[ChildStep]) -> Option<&str> {
    match path {
        [ChildStep { name, key: Some(Key::Name(host)) }, ..] if name == "host" => Some(host),
        _ => None,
    }
}

/// The host and the component of a unit's path.
pub(crate) fn unit_at(path: &[ChildStep]) -> Option<(&str, &str)> {
    match path {
        [ChildStep { name: host, key: Some(Key::Name(at)) }, ChildStep { name: unit, key: Some(Key::Name(of)) }]
            if host == "host" && unit == "unit" =>
        {
            Some((at, of))
        }
        _ => None,
    }
}

/// True for what a component on some host needs besides its unit: its files, and the names.
pub(crate) fn belongs(path: &[ChildStep], component: Component) -> bool {
    match path {
        [host, ChildStep { name, key: Some(Key::Name(key)) }] if host.name == "host" && name == "file" => {
            key.split('/').next() == Some(component.name())
        }
        [host, ChildStep { name, key: None }] => host.name == "host" && name == "names",
        _ => false,
    }
}

/// What is put down before anything runs, by its kind, with keys and certificates for it.
const PUT_DOWN: [&str; 9] = [
    "ssh_artifact",
    "ssh_directory",
    "ssh_file",
    "ssh_hosts_entries",
    "ssh_package",
    "ssh_user",
    "tls_ca",
    "tls_certificate",
    "tls_private_key",
];

/// True for what has nothing to do with etcd: it can be there before etcd is.
pub(crate) fn is_apart(child: &Child) -> bool {
    let is_of_etcd = || match &child.path[..] {
        [_, ChildStep { name, key: Some(Key::Name(key)) }] => name == "file" && key.split('/').any(|part| part.starts_with("etcd")),
        _ => false,
    };
    PUT_DOWN.contains(&child.resource_type.as_str()) && !is_of_etcd()
}

/// The hosts that a component runs on.
pub(crate) fn placed<'a>(hosts: &'a Hosts, settings: &'a Settings) -> impl Iterator<Item = (&'a String, &'a Host)> {
    hosts.all.iter().filter(|(name, _)| settings.hosts.as_ref().is_none_or(|only| only.contains(name)))
}

/// The same by the component.
pub(crate) fn homes<'a>(plane: &'a Arguments, hosts: &'a Hosts, component: Component) -> Vec<(&'a String, &'a Host)> {
    plane.components.iter().filter(|(c, _)| *c == component).flat_map(|(_, settings)| placed(hosts, settings)).collect()
}

fn hosts(reader: &mut Reader<'_, '_>) -> BTreeMap<String, Host> {
    let mut all = BTreeMap::new();
    let Some(entries) = reader.value("hosts").and_then(Value::as_entries) else {
        if reader.value("hosts").is_some_and(Value::is_unknown) {
            reader.later::<()>("hosts");
        } else {
            reader
                .wrong::<()>("hosts", "must be a map of `ssh_host` objects by name: `data.ssh_host.NAME`, where that block has `for_each`");
        }
        return all;
    };
    if entries.is_empty() || entries.len() > MOST {
        reader.wrong::<()>("hosts", &format!("has {} entries, but a control plane is on 1 to {MOST} hosts", entries.len()));
    }
    let addresses = reader.given("addresses");
    for name in addresses.as_entries().into_iter().flatten().map(|(n, _)| n).filter(|n| !entries.contains_key(n)) {
        reader.wrong::<()>("addresses", &format!("has an entry \"{name}\", but `hosts` has none"));
    }
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (name, value) in entries {
        let good = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.len() <= 63
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if !good {
            reader.wrong::<()>("hosts", &format!("has the key \"{name}\"; keys are letters, digits, \".\", \"_\" and \"-\", at most 63"));
        }
        let connection = value.get("connection").cloned().unwrap_or_else(|| value.clone());
        if !(connection.is_unknown() || connection.get("provider").is_some_and(|p| p.is_unknown() || p.as_str() == Some("ssh"))) {
            reader.wrong::<()>("hosts", &format!("has the entry \"{name}\", which is no host: it must be a `data \"ssh_host\"`"));
            continue;
        }
        if let Some(id) = connection.get("id").and_then(Value::as_str)
            && let Some(other) = seen.insert(id.to_owned(), name)
        {
            let detail =
                format!("\"{other}\" and \"{name}\" in `hosts` are the same host. They would fail together and share their files.");
            reader.found.push(Diagnostic::error("One host twice", detail));
        }
        check(reader, name, value);
        let address = family::canonical(&address(reader, name, value, &connection, &addresses));
        if let Some(text) = address.as_str()
            && let Some((other, _)) = all.iter().find(|(_, h): &(&String, &Host)| h.address.as_str() == Some(text))
        {
            let detail = format!("\"{other}\" and \"{name}\" in `hosts` would both be reached at {text}.");
            reader.found.push(Diagnostic::error("One address twice", detail).with_hint("Write the right ones into `addresses`."));
        }
        let interface = interface(value, &address);
        let architecture = value.get("architecture").cloned().unwrap_or_else(|| Value::unknown_not_null(Type::String));
        let ports = value.get("listening_ports").and_then(Value::as_items).unwrap_or_default();
        let listening = ports.iter().filter_map(Value::as_i64).collect();
        let connection = if connection.is_null() { Value::unknown(Type::Any) } else { connection };
        all.insert(name.clone(), Host { connection, address, interface, architecture, listening, facts: value.clone() });
    }
    all
}

/// What a host must be like.
fn check(reader: &mut Reader<'_, '_>, name: &str, host: &Value) {
    let mut refuse = |summary: &str, detail: String, hint: &str| reader.found.push(Diagnostic::error(summary, detail).with_hint(hint));
    // The fact is there, and says that there is none.
    let says_so = host.get("os").is_some_and(|v| !v.is_unknown() && !v.is_null());
    match host.get("systemd_version") {
        Some(version) if says_so && version.is_null() => {
            let detail = format!("The host \"{name}\" does not run systemd, which the components are units of.");
            refuse("A host without systemd", detail, "Take a host that boots with systemd.");
        }
        Some(version) if version.as_i64().is_some_and(|v| v < OLDEST_SYSTEMD) => {
            let found = version.as_i64().unwrap_or_default();
            let detail = format!("The host \"{name}\" has systemd {found}; the units need {OLDEST_SYSTEMD} or newer.");
            refuse("A systemd that is too old", detail, "Take a newer release of its distribution.");
        }
        _ => {}
    }
    if let Some(other) = host.get("architecture").and_then(Value::as_str).filter(|a| !ARCHITECTURES.contains(a)) {
        let detail =
            format!("The host \"{name}\" is of the architecture {other}; Karmada is published for {}.", ARCHITECTURES.join(" and "));
        refuse("An architecture without programs", detail, "Take a host of one of these.");
    }
}

/// The address that others reach it by: the one written, else the one that it is managed by, else the only one of its own.
fn address(reader: &mut Reader<'_, '_>, name: &str, host: &Value, connection: &Value, addresses: &Value) -> Value {
    let later = || Value::unknown_not_null(Type::String);
    if let Some(written) = addresses.get(name).filter(|v| !v.is_null()) {
        if written.as_str().is_some_and(|a| !is_address(a)) {
            reader.wrong::<()>(
                "addresses",
                &format!("has \"{}\" for \"{name}\", which is no IP address", written.as_str().unwrap_or_default()),
            );
        }
        return written.clone();
    }
    let managed = connection.get("address").or_else(|| host.get("address"));
    // What others are told would be unknown, and so would change, as soon as it is away: that is said while it still answers.
    let may_be_away = connection.get("required").and_then(Value::as_bool) == Some(false);
    if may_be_away && managed.is_some_and(|m| m.as_str().is_some_and(|m| !is_address(m))) {
        return no_address(reader, name, "need not answer (`required = false`), so what addresses it has may not be known");
    }
    if addresses.is_unknown() || managed.is_none_or(Value::is_unknown) {
        return later();
    }
    if let Some(address) = managed.filter(|m| m.as_str().is_some_and(is_address)) {
        return address.clone();
    }
    let own = host.get("addresses");
    match own.and_then(Value::as_items) {
        Some([only]) => only.clone(),
        // Which of them the others reach nobody can tell: one may be a bridge's, or one that moves from host to host.
        Some(several) if !several.is_empty() => no_address(reader, name, "has several of its own"),
        None if own.is_some_and(Value::is_unknown) => later(),
        _ => no_address(reader, name, "shows none of its own"),
    }
}

/// The network interface of a host that has an address.
fn interface(host: &Value, address: &Value) -> Value {
    match (host.get("interfaces"), address.as_str()) {
        (Some(all), Some(address)) if !all.is_unknown() => all.get(address).cloned().unwrap_or_else(|| Value::null(Type::String)),
        _ => Value::unknown_not_null(Type::String),
    }
}

fn no_address(reader: &mut Reader<'_, '_>, name: &str, why: &str) -> Value {
    let detail = format!("The host \"{name}\" is not managed by an IP address and {why}.");
    reader.found.push(Diagnostic::error("A host without an address", detail).with_hint("Write the address into `addresses`."));
    Value::unknown_not_null(Type::String)
}
