//! The little DER that rcgen can't write: names with several organizations, names copied byte by byte, keys that all programs read.
//!
//! rcgen keeps one value per kind of name part, so a subject with two groups, or an issuer with two units, would come out wrong. Here the
//! finished certificate gets the right names and is signed again.

use rcgen::{KeyPair, SigningKey as _};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const UTF8_STRING: u8 = 0x0c;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
/// Object identifiers 2.5.4.10 and 2.5.4.3, with tag and length.
const ORGANIZATION: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x0a];
const COMMON_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x03];
/// The number that stands for version 1.
const VERSION_1: &[u8] = &[0x02, 0x01, 0x00];
/// Where issuer and subject stand in what is signed: version, serial number, algorithm, issuer, validity, subject.
const ISSUER: usize = 3;
const SUBJECT: usize = 5;

/// A distinguished name: organizations first, as is usual, then the common name.
pub(crate) fn name(common_name: &str, organizations: &[String]) -> Vec<u8> {
    let part = |kind: &[u8], text: &str| element(SET, &element(SEQUENCE, &[kind, &element(UTF8_STRING, text.as_bytes())].concat()));
    let mut parts: Vec<_> = organizations.iter().map(|o| part(ORGANIZATION, o)).collect();
    parts.push(part(COMMON_NAME, common_name));
    element(SEQUENCE, &parts.concat())
}

/// The certificate with these names, signed again. `None` if it is no certificate or the key can't sign.
pub(crate) fn with_names(certificate: &[u8], issuer: &[u8], subject: &[u8], key: &KeyPair) -> Option<Vec<u8>> {
    let [body, algorithm, _] = children(certificate)?.try_into().ok()?;
    let mut parts = children(body)?;
    *parts.get_mut(ISSUER)? = issuer;
    *parts.get_mut(SUBJECT)? = subject;
    let body = element(SEQUENCE, &parts.concat());
    let signature = [&[0], key.sign(&body).ok()?.as_slice()].concat();
    Some(element(SEQUENCE, &[&body, algorithm, &element(BIT_STRING, &signature)].concat()))
}

/// A private key in the first version of PKCS#8, which has no public key at its end: OpenSSL 3.0 reads no other. `None` if it is in none.
pub(crate) fn pkcs8_v1(key: &[u8]) -> Option<Vec<u8>> {
    let parts = children(key)?;
    let [_, algorithm, secret, ..] = parts.as_slice() else { return None };
    let is_pkcs8 = algorithm.first() == Some(&SEQUENCE) && secret.first() == Some(&OCTET_STRING);
    is_pkcs8.then(|| element(SEQUENCE, &[VERSION_1, algorithm, secret].concat()))
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let used = &length[length.iter().position(|b| *b != 0).unwrap_or(length.len() - 1)..];
    let mut out = vec![tag];
    match content.len() {
        0..=127 => out.push(used[0]),
        // At most eight bytes of length.
        _ => out.extend([&[0x80 | used.len().to_le_bytes()[0]], used].concat()),
    }
    out.extend(content);
    out
}

/// The elements inside a constructed element, each with its tag and length.
fn children(der: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = der.get(header(der)?..)?;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (child, tail) = rest.split_at_checked(header(rest)?.checked_add(length(rest)?)?)?;
        found.push(child);
        rest = tail;
    }
    Some(found)
}

fn header(der: &[u8]) -> Option<usize> {
    match *der.get(1)? {
        short @ 0..=127 => Some(short).map(|_| 2),
        long => Some(2 + usize::from(long & 0x7f)),
    }
}

fn length(der: &[u8]) -> Option<usize> {
    match *der.get(1)? {
        short @ 0..=127 => Some(usize::from(short)),
        long => der.get(2..2 + usize::from(long & 0x7f))?.iter().try_fold(0usize, |n, b| n.checked_mul(256)?.checked_add(usize::from(*b))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_any_length_come_back() {
        for size in [0, 1, 127, 128, 255, 256, 70_000] {
            let content = vec![7; size];
            let wrapped = element(SEQUENCE, &[element(UTF8_STRING, &content), element(SET, &[])].concat());
            let found = children(&wrapped).unwrap();
            assert_eq!(found, [element(UTF8_STRING, &content), element(SET, &[])], "{size}");
        }
        for broken in [&[0x30][..], &[0x30, 0x03, 0x0c, 0x05, 0x00], &[0x30, 0x84, 0xff], &[0x30, 0x02, 0x0c]] {
            assert!(children(broken).is_none_or(|c| c.is_empty()), "{broken:?}");
        }
    }
}
