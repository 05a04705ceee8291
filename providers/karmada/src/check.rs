//! Small checks of texts.

use std::net::IpAddr;

/// True for a DNS label that Kubernetes takes as a name.
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.len() <= 63 && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// True for labels with dots between.
pub(crate) fn is_domain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

/// True for what a certificate can hold: an IP address, or a DNS name that may start with `*.`.
pub(crate) fn is_host(text: &str) -> bool {
    is_address(text) || is_domain(text.strip_prefix("*.").unwrap_or(text))
}

/// True for an IP address.
pub(crate) fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// True for one address range, or two of different families with a comma between.
pub(crate) fn is_subnet(text: &str) -> bool {
    let parts: Vec<_> = text.split(',').map(family).collect();
    match parts[..] {
        [Some(_)] => true,
        [Some(a), Some(b)] => a != b,
        _ => false,
    }
}

fn family(range: &str) -> Option<bool> {
    let (address, bits) = range.split_once('/')?;
    let (address, bits) = (address.parse::<IpAddr>().ok()?, bits.parse::<u8>().ok()?);
    (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some(address.is_ipv4())
}

/// True for a label's value, or its key without the part before `/`.
pub(crate) fn is_label_value(text: &str) -> bool {
    let end = |b: Option<u8>| b.is_none_or(|b| b.is_ascii_alphanumeric());
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && end(text.bytes().next())
        && end(text.bytes().last())
}

/// True for a label's key: `name` or `example.org/name`.
pub(crate) fn is_label_key(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(is_domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_checked() {
        assert!(is_subnet("10.96.0.0/12") && is_subnet("fd00::/108,10.0.0.0/16"));
        assert!(!is_subnet("10.96.0.0") && !is_subnet("10.0.0.0/33") && !is_subnet("10.0.0.0/8,10.1.0.0/16"));
        assert!(is_host("*.example.org") && is_host("fd00::1") && !is_host("a b") && !is_host("https://x"));
        assert!(is_label_key("example.org/a_b") && !is_label_key("/a") && !is_label_key("a b") && !is_label_value("-a"));
    }
}
