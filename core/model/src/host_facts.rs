//! What is known of a host, as composites read it that put something there: an object with `disks` (free bytes by mount point or directory),
//! `concerns` (what servers suffer from there, in plain words) and `firewall` (what keeps others out). What is not known is passed over.

use std::collections::BTreeMap;

use crate::Value;

/// What a firewall may be. Anything else is none that can be spoken of.
const FIREWALLS: [&str; 4] = ["firewalld", "ufw", "nftables", "iptables"];

/// Free bytes where a path is, or will be: those of the longest mount point or directory above it. `None`: not known.
pub fn free_bytes(host: &Value, path: &str) -> Option<i64> {
    let disks = host.get("disks")?.as_entries()?;
    let holds = |mount: &str| mount == "/" || path == mount || path.strip_prefix(mount).is_some_and(|rest| rest.starts_with('/'));
    disks.iter().filter(|(mount, _)| holds(mount)).max_by_key(|(mount, _)| mount.len())?.1.as_i64()
}

/// What servers suffer from on these hosts, each concern once with the names of the hosts: `on a, b: swap is on`.
pub fn concerns<'a>(hosts: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Vec<String> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, host) in hosts {
        for concern in host.get("concerns").and_then(Value::as_items).unwrap_or_default().iter().filter_map(Value::as_str) {
            found.entry(concern).or_default().push(name);
        }
    }
    found.into_iter().map(|(concern, names)| format!("on {}: {concern}", names.join(", "))).collect()
}

/// The hosts that keep others out, with what does it: `a (ufw), b (firewalld)`. `None` if there are none.
pub fn firewalls<'a>(hosts: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Option<String> {
    let guard = |host: &'a Value| host.get("firewall")?.as_str().filter(|f| FIREWALLS.contains(f));
    let guarded: Vec<_> = hosts.into_iter().filter_map(|(name, host)| Some(format!("{name} ({})", guard(host)?))).collect();
    (!guarded.is_empty()).then(|| guarded.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Type;

    #[test]
    fn room_is_that_of_the_nearest_mount() {
        let disks = [("/", 10i64), ("/var", 20), ("/var/lib/etcd", 30)].map(|(m, n)| (m.to_owned(), n.into()));
        let host = Value::object([("disks", Value::map(Type::Number, disks.into()))]);
        let check = |path: &str, expected: i64| assert_eq!(free_bytes(&host, path), Some(expected), "{path}");
        check("/opt/etcd", 10);
        check("/var/lib/etcdx", 20);
        check("/var/lib/etcd/main", 30);
        check("/var/lib/etcd", 30);
    }

    #[test]
    fn what_is_said_of_several_hosts_is_said_once() {
        let host = |concerns: &[&str], firewall: Value| Value::object([("concerns", Value::strings(concerns)), ("firewall", firewall)]);
        let (a, b) = (host(&["swap is on"], Value::null(Type::String)), host(&["a clock", "swap is on"], "ufw".into()));
        assert_eq!(concerns([("a", &a), ("b", &b)]), ["on b: a clock", "on a, b: swap is on"]);
        assert_eq!(firewalls([("a", &a), ("b", &b)]).as_deref(), Some("b (ufw)"));
        assert_eq!(firewalls([("a", &a)]), None);
    }
}
