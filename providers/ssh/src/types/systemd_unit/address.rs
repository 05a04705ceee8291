//! Where a unit is asked how it is, and whether that is an address of its host.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// What is wrong with an address to ask at.
pub(super) fn problem(url: &str) -> Option<String> {
    let is_plain =
        rest(url).is_some_and(|r| !r.is_empty() && r.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '{' | '}' | '"' | '\'' | '\\')));
    (!is_plain).then(|| "must be an address like \"http://127.0.0.1:10351/healthz\"".to_owned())
}

fn rest(url: &str) -> Option<&str> {
    url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))
}

/// The IP address in a URL, if it is one of these; empty if it is none of them. `None`: there is none in it, or nobody knows what the host's are.
pub(super) fn own_address(own: &BTreeSet<IpAddr>, url: Option<&str>) -> Option<String> {
    let address = address(url?)?;
    // There is always one that leads back to the host itself.
    (!own.is_empty()).then(|| if own.contains(&address) { address.to_string() } else { String::new() })
}

fn address(url: &str) -> Option<IpAddr> {
    let host = rest(url)?.split('/').next()?;
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => host.split(':').next()?,
    };
    host.parse().ok()
}
