//! The hosts of an `etcd_cluster`: which members there are, and where members and clients reach them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use karmaform_model::{Diagnostic, Diagnostics, Object, Type, Value};

use super::arguments::not_known;

/// Fewest and most members.
const MEMBERS: std::ops::RangeInclusive<usize> = 1..=7;
/// What etcd is released for.
const ARCHITECTURES: [&str; 4] = ["amd64", "arm64", "ppc64le", "s390x"];

/// Where a member runs.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// How the host is managed.
    pub(crate) connection: Value,
    /// The IP address that members and clients use; a string, perhaps not known yet.
    pub(crate) address: Value,
    /// What is known of the host.
    pub(crate) facts: Value,
}

impl Host {
    /// `amd64` or `arm64`, as releases name it. `None`: not known.
    pub(crate) fn architecture(&self) -> Option<&str> {
        self.facts.get("architecture")?.as_str()
    }
}

/// The members by name. What is wrong goes to `found`.
pub(super) fn members(object: &Object, found: &mut Diagnostics) -> BTreeMap<String, Host> {
    let mut members = BTreeMap::new();
    let Some(hosts) = object.get("hosts").and_then(Value::as_entries) else {
        let is_unknown = object.get("hosts").is_some_and(Value::is_unknown);
        found.push(if is_unknown {
            not_known("hosts").with_hint("The values may be known later, but not the keys: they are the member names.")
        } else {
            Diagnostic::error("No hosts", "`hosts` must be a map of `ssh_host` objects by member name.")
                .with_hint("Write `hosts = data.ssh_host.NAME`, where that block has `for_each`.")
        });
        return members;
    };
    if !MEMBERS.contains(&hosts.len()) {
        found.push(
            Diagnostic::error(
                "A number of members that etcd is not made for",
                format!(
                    "`hosts` has {} entries. An etcd cluster has one to seven members; with more of them every write gets slower.",
                    hosts.len()
                ),
            )
            .with_hint("Take three members, or five if one may fail while another is restarted."),
        );
    }
    let addresses = object.get("addresses").filter(|v| !v.is_null());
    for extra in addresses.and_then(Value::as_entries).into_iter().flat_map(|a| a.keys()).filter(|n| !hosts.contains_key(n)) {
        found.push(Diagnostic::error("An address of no member", format!("`addresses` has an entry \"{extra}\", but `hosts` has none.")));
    }
    let (mut seen, mut placed): (BTreeMap<String, &str>, BTreeMap<String, &str>) = (BTreeMap::new(), BTreeMap::new());
    for (name, host) in hosts {
        check_member_name(name, found);
        let id = host.get("connection").and_then(|c| c.get("id")).and_then(Value::as_str);
        let twin = id.and_then(|id| seen.insert(id.to_owned(), name));
        if let Some(other) = twin {
            found.push(Diagnostic::error(
                "Two members on one host",
                format!("The members \"{other}\" and \"{name}\" are on the same host. They would fail together and share their files."),
            ));
        }
        match member_address(addresses, name, host) {
            Ok(address) => {
                let neighbour = address.as_str().and_then(|address| placed.insert(address.to_owned(), name));
                found.extend(neighbour.filter(|_| twin.is_none()).map(|other| at_one_address(other, name, &address)));
                match connection(name, host) {
                    Ok(connection) => drop(members.insert(name.clone(), Host { connection, address, facts: host.clone() })),
                    Err(diagnostic) => found.push(diagnostic),
                }
            }
            Err(diagnostic) => found.push(diagnostic),
        }
    }
    members
}

/// How a host of `hosts` is managed.
///
/// # Errors
/// It does not say that.
pub(crate) fn connection(name: &str, host: &Value) -> Result<Value, Diagnostic> {
    match host.get("connection") {
        Some(connection) => Ok(connection.clone()),
        None if host.is_unknown() => Ok(Value::unknown(Type::Any)),
        None => Err(Diagnostic::error(
            "A host without a connection",
            format!("`hosts[\"{name}\"]` has no `connection`. It must be what a `data \"ssh_host\"` gives."),
        )),
    }
}

/// Two ways lead there, and it is one place all the same.
fn at_one_address(one: &str, other: &str, address: &Value) -> Diagnostic {
    let address = address.as_str().unwrap_or_default();
    Diagnostic::error(
        "Two members at one address",
        format!("The members \"{one}\" and \"{other}\" would both be at {address}. Others could not tell them apart."),
    )
    .with_hint("If it is one host under two names, take one of them out of `hosts`; else write where each is reached into `addresses`.")
}

/// A name goes into etcd's member list, into paths and into messages.
fn check_member_name(name: &str, found: &mut Diagnostics) {
    let good = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= 63
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if !good {
        found.push(Diagnostic::error(
            "Not a member name",
            format!("The key \"{name}\" of `hosts` is to be a member's name: letters, digits, \".\", \"_\" and \"-\", at most 63."),
        ));
    }
}

/// The address that members and clients use: the one written, else the one the host is managed by, else the host's first.
fn member_address(addresses: Option<&Value>, name: &str, host: &Value) -> Result<Value, Diagnostic> {
    let unknown = || Ok(Value::unknown_not_null(Type::String));
    if addresses.is_some_and(Value::is_unknown) {
        return unknown();
    }
    if let Some(written) = addresses.and_then(|a| a.get(name)).filter(|v| !v.is_null()) {
        return match written.as_str() {
            Some(text) if is_ip(text) => Ok(text.into()),
            None if written.is_unknown() => unknown(),
            _ => Err(Diagnostic::error("Not an IP address", format!("`addresses[\"{name}\"]` must be an IP address: etcd listens on it."))),
        };
    }
    let connection = host.get("connection");
    let managed = connection.and_then(|c| c.get("address")).filter(|v| !v.is_unknown()).or_else(|| host.get("address"));
    if let Some(text) = managed.and_then(Value::as_str).filter(|t| is_ip(t)) {
        return Ok(text.into());
    }
    // A host that is managed by its name: the first address that it has itself.
    if host.is_unknown() || (managed.is_none() && connection.is_some_and(Value::is_unknown)) || managed.is_some_and(Value::is_unknown) {
        return unknown();
    }
    match host.get("addresses") {
        Some(list) if list.is_unknown() => unknown(),
        Some(list) => match list.as_items().and_then(<[Value]>::first) {
            Some(first) if first.is_unknown() => unknown(),
            Some(first) if first.as_str().is_some_and(is_ip) => Ok(Value::from(first.as_str().unwrap_or_default())),
            _ => Err(no_address(name)),
        },
        None => Err(no_address(name)),
    }
}

fn no_address(name: &str) -> Diagnostic {
    Diagnostic::error(
        "A member without an address",
        format!("The host of member \"{name}\" is not managed by an IP address and shows none of its own."),
    )
    .with_hint("Write the address into `addresses`.")
}

fn is_ip(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// A SHA-256 sum itself, and not a place where it is.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// One archive, or one sum, for hosts that need different ones.
pub(super) fn one_for_several(members: &BTreeMap<String, Host>, source: &Value, sum: &Value) -> Option<Diagnostic> {
    let mut by_architecture: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, host) in members {
        // What a test has made up for a host is none.
        if let Some(architecture) = host.architecture().filter(|a| ARCHITECTURES.contains(a)) {
            by_architecture.entry(architecture).or_default().push(name);
        }
    }
    let is_one = |text: &Value| text.as_str().is_some_and(|text| !text.contains("{arch}"));
    let is_sum = sum.as_str().is_some_and(is_sha256);
    if by_architecture.len() < 2 || !is_one(source) && !is_sum {
        return None;
    }
    let who: Vec<String> = by_architecture.iter().map(|(architecture, names)| format!("{} ({architecture})", names.join(", "))).collect();
    let (what, hint) = match is_one(source) {
        true => ("`source` is one archive", "Write `{arch}` into it where the architecture stands: `etcd-v{version}-linux-{arch}.tar.gz`."),
        false => (
            "`source_sha256` is the sum of one archive",
            "Write the path or the URL of a file that has the sums of all of them: `SHA256SUMS`.",
        ),
    };
    let detail = format!("The hosts are of several architectures, {}, and {what}.", who.join(" and "));
    Some(Diagnostic::error("One archive for several architectures", detail).with_hint(hint))
}
