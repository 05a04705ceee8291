//! Checks of names, addresses, usages and algorithms, before anything is made of them.

use std::net::IpAddr;

use karmaform_model::{Diagnostic, Diagnostics, Object, Value};

use crate::issue::ALGORITHMS;

/// The longest common name and organization that X.509 allows.
const LONGEST_NAME: usize = 64;

/// What a leaf may be used for.
pub(crate) const USAGES: [&str; 2] = ["server_auth", "client_auth"];

/// The known strings of a list; unknown ones are left out.
pub(crate) fn strings(object: &Object, name: &str) -> Vec<String> {
    object.get(name).and_then(Value::as_items).unwrap_or_default().iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

/// Checks a common name or an organization, if it is known.
pub(crate) fn check_text(attribute: &str, text: Option<&str>, problems: &mut Diagnostics) {
    let Some(text) = text else { return };
    let what = if text.is_empty() {
        "is empty"
    } else if text.chars().count() > LONGEST_NAME {
        "has more than 64 characters, which is the most that a certificate can hold"
    } else if text.chars().any(char::is_control) {
        "has a control character in it"
    } else {
        return;
    };
    problems.push(Diagnostic::error("Not a name for a certificate", format!("The value of \"{attribute}\" {what}.")));
}

/// Checks the names and addresses of a leaf.
pub(crate) fn check_alternative_names(wanted: &Object, problems: &mut Diagnostics) {
    for name in strings(wanted, "dns_names") {
        if let Err(what) = check_dns(&name) {
            let problem = Diagnostic::error("Not a DNS name", format!("\"dns_names\" has \"{name}\", which {what}."));
            problems.push(if name.parse::<IpAddr>().is_ok() { problem.with_hint("Put it into \"ip_addresses\".") } else { problem });
        }
    }
    for address in strings(wanted, "ip_addresses") {
        if address.parse::<IpAddr>().is_err() {
            let problem =
                Diagnostic::error("Not an IP address", format!("\"ip_addresses\" has \"{address}\", which is no IPv4 or IPv6 address."));
            problems.push(match (address.contains('/'), check_dns(&address)) {
                (true, _) => problem.with_hint("A certificate holds single addresses, no ranges."),
                (false, Ok(())) => problem.with_hint("Put names into \"dns_names\"."),
                _ => problem,
            });
        }
    }
    for name in strings(wanted, "names").iter().filter(|n| n.parse::<IpAddr>().is_err()) {
        if let Err(what) = check_dns(name) {
            let detail = format!("\"names\" has \"{name}\", which is no IPv4 or IPv6 address and, as a DNS name, {what}.");
            problems.push(Diagnostic::error("Neither a DNS name nor an IP address", detail));
        }
    }
}

/// Puts names of either kind where they belong, each once.
pub(crate) fn sort_in(names: Vec<String>, dns_names: &mut Vec<String>, ip_addresses: &mut Vec<String>) {
    for name in names {
        let (address, place) = match name.parse::<IpAddr>() {
            Ok(address) => (Some(address), &mut *ip_addresses),
            Err(_) => (None, &mut *dns_names),
        };
        let is_there = |other: &String| *other == name || (address.is_some() && other.parse().ok() == address);
        if !place.iter().any(is_there) {
            place.push(name);
        }
    }
}

fn check_dns(name: &str) -> Result<(), &'static str> {
    if name.parse::<IpAddr>().is_ok() {
        return Err("is an address");
    }
    if name.is_empty() || name.len() > 253 {
        return Err("has not from 1 to 253 characters");
    }
    if !name.is_ascii() {
        return Err("has characters that need the xn-- form");
    }
    if name.ends_with('.') {
        return Err("ends in a dot: certificates leave it out");
    }
    let rest = name.strip_prefix("*.").unwrap_or(name);
    for label in rest.split('.') {
        if label.is_empty() || label.len() > 63 {
            return Err("has a part that has not from 1 to 63 characters");
        }
        if !label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') || label.starts_with('-') || label.ends_with('-') {
            return Err("has a part with something else than letters, digits and inner hyphens; \"*\" may only be the whole first part");
        }
    }
    Ok(())
}

/// Checks usages against the ones there are.
pub(crate) fn check_usages(wanted: &Object, problems: &mut Diagnostics) {
    for usage in strings(wanted, "usages").iter().filter(|u| !USAGES.contains(&u.as_str())) {
        let detail = format!("\"usages\" has \"{usage}\", which is none of: {}.", USAGES.join(", "));
        problems.push(Diagnostic::error("Unknown usage", detail));
    }
}

/// Checks the algorithm against the ones there are, if it is known.
pub(crate) fn check_algorithm(wanted: &Object, problems: &mut Diagnostics) {
    if let Some(algorithm) = wanted.get("algorithm").and_then(Value::as_str)
        && !ALGORITHMS.contains(&algorithm)
    {
        let detail = format!("The value of \"algorithm\" is \"{algorithm}\", which is none of: {}.", ALGORITHMS.join(", "));
        problems.push(Diagnostic::error("Unknown algorithm", detail));
    }
}

/// True if the two lists stand for the same: order and doubles don't matter, nor how an address is written; null is an empty one.
pub(crate) fn same_set(a: &Value, b: &Value) -> bool {
    let set = |v: &Value| -> Option<Vec<String>> {
        let canonical = |s: &str| s.parse::<IpAddr>().map_or_else(|_| s.to_owned(), |ip| ip.to_string());
        let items = if v.is_null() { &[] } else { v.as_items()? };
        let mut items: Vec<_> = items.iter().map(|v| v.as_str().map(canonical)).collect::<Option<_>>()?;
        items.sort();
        items.dedup();
        Some(items)
    };
    set(a).is_some_and(|a| Some(a) == set(b))
}

#[cfg(test)]
mod tests {
    use karmaform_model::Type;

    use super::*;

    fn check(attribute: &str, value: &str, expected: &str) {
        let mut problems = Diagnostics::new();
        check_alternative_names(&[(attribute.to_owned(), Value::strings([value]))].into(), &mut problems);
        let found = problems.iter().map(|p| [&[p.detail.clone()][..], &p.hints].concat().join(" ")).collect::<String>();
        assert!(if expected.is_empty() { found.is_empty() } else { found.contains(expected) }, "{value}: {found}");
    }

    #[test]
    fn names_and_addresses_are_told_apart() {
        for good in ["a", "localhost", "etcd-0.etcd.svc", "*.etcd.svc", "_etcd._tcp.x", "xn--bcher-kva.example", "1a.b"] {
            check("dns_names", good, "");
        }
        for good in ["127.0.0.1", "::1", "fd00::10"] {
            check("ip_addresses", good, "");
        }
        check("dns_names", "10.0.0.1", "Put it into \"ip_addresses\"");
        check("dns_names", "a..b", "1 to 63");
        check("dns_names", "a.*.b", "whole first part");
        check("dns_names", "*", "whole first part");
        check("dns_names", "-a.b", "inner hyphens");
        check("dns_names", "a b", "letters");
        check("dns_names", "a.", "ends in a dot");
        check("dns_names", "bücher.example", "xn--");
        check("dns_names", &"a".repeat(64), "63");
        check("dns_names", "", "253");
        check("ip_addresses", "etcd-0", "Put names into \"dns_names\"");
        check("ip_addresses", "10.0.0.0/8", "no ranges");
        check("ip_addresses", "10.0.0.256", "no IPv4");
        check("ip_addresses", "fe80::1%eth0", "no IPv4");
        for good in ["10.0.0.1", "fd00::10", "lb.example.org"] {
            check("names", good, "");
        }
        check("names", "a b", "no IPv4 or IPv6 address and, as a DNS name, has a part");
        check("names", "10.0.0.0/8", "something else than letters");
    }

    #[test]
    fn names_of_both_kinds_are_put_where_they_belong() {
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let (mut dns_names, mut ip_addresses) = (owned(&["a"]), owned(&["0:0::1"]));
        sort_in(owned(&["b", "::1", "10.0.0.1", "a"]), &mut dns_names, &mut ip_addresses);
        assert_eq!((dns_names, ip_addresses), (owned(&["a", "b"]), owned(&["0:0::1", "10.0.0.1"])));
    }

    #[test]
    fn order_is_no_difference() {
        assert!(same_set(&Value::strings(["b", "a", "a"]), &Value::strings(["a", "b"])));
        assert!(same_set(&Value::strings(["0:0::1"]), &Value::strings(["::1"])));
        assert!(!same_set(&Value::strings(["a"]), &Value::strings(["a", "b"])));
        assert!(same_set(&Value::null(Type::Any), &Value::strings([""; 0])));
        assert!(!same_set(&Value::unknown(Type::Any), &Value::strings([""; 0])));
    }
}
