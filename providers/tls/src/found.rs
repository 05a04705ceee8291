//! Certificates and keys that turned up where they are used, when the state that knew them is lost: what they say of themselves.

use std::net::IpAddr;

use karmaform_model::{Object, Value};
use rcgen::{KeyPair, PublicKeyData as _};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::authority::{Authority, read_key};
use crate::lifetime;

/// Above so many bytes of public key an RSA key has more than 3072 bits.
const LONG_RSA: usize = 400;

/// A certificate, and what it says.
pub(crate) struct Read {
    text: String,
    pub(crate) common_name: String,
    pub(crate) organizations: Vec<String>,
    pub(crate) dns_names: Vec<String>,
    pub(crate) ip_addresses: Vec<String>,
    pub(crate) usages: Vec<String>,
    /// The issuer's name, byte by byte.
    issuer: Vec<u8>,
    /// What it calls the key that signed it.
    issuer_key_id: Option<Vec<u8>>,
    public_key: Vec<u8>,
    not_before: i64,
    not_after: i64,
    serial_number: String,
}

/// The only thing in this attribute, which is of this kind: what has more in it, a key beside a certificate for one, was put together by others.
fn alone<'a>(found: &'a Object, attribute: &str, label: &str) -> Option<(&'a str, Pem)> {
    let text = found.get(attribute)?.as_str()?;
    let mut blocks = Pem::iter_from_buffer(text.as_bytes());
    let pem = blocks.next()?.ok()?;
    let is_alone = blocks.next().is_none() && pem.label.ends_with(label);
    let is_bare = text.starts_with("-----BEGIN ") && text.trim_end().ends_with("-----");
    (is_alone && is_bare).then_some((text, pem))
}

/// The certificate in this attribute; `None` if there is none that can be read.
pub(crate) fn certificate(found: &Object, attribute: &str) -> Option<Read> {
    let (text, pem) = alone(found, attribute, "CERTIFICATE")?;
    let parsed = X509Certificate::from_der(&pem.contents).ok()?.1;
    let texts = |names: Vec<Option<&str>>| names.into_iter().flatten().map(str::to_owned).collect::<Vec<_>>();
    let (mut dns_names, mut ip_addresses) = (Vec::new(), Vec::new());
    for name in parsed.subject_alternative_name().ok().flatten().map(|e| e.value.general_names.iter()).into_iter().flatten() {
        match name {
            GeneralName::DNSName(name) => dns_names.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => ip_addresses.extend(address(bytes)),
            _ => {}
        }
    }
    let mut usages = Vec::new();
    if let Ok(Some(extended)) = parsed.extended_key_usage() {
        let [server, client] = crate::names::USAGES;
        usages.extend(extended.value.server_auth.then(|| server.to_owned()));
        usages.extend(extended.value.client_auth.then(|| client.to_owned()));
    }
    Some(Read {
        text: text.to_owned(),
        common_name: texts(parsed.subject().iter_common_name().map(|n| n.as_str().ok()).collect()).pop()?,
        organizations: texts(parsed.subject().iter_organization().map(|n| n.as_str().ok()).collect()),
        dns_names,
        ip_addresses,
        usages,
        issuer: parsed.issuer().as_raw().to_vec(),
        issuer_key_id: parsed.extensions().iter().find_map(|e| match e.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|k| k.0.to_vec()),
            _ => None,
        }),
        public_key: parsed.public_key().subject_public_key.data.to_vec(),
        not_before: parsed.validity().not_before.timestamp(),
        not_after: parsed.validity().not_after.timestamp(),
        serial_number: parsed.raw_serial().iter().map(|b| format!("{b:02x}")).collect(),
    })
}

fn address(bytes: &[u8]) -> Option<String> {
    let four = <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    four.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)).map(|a| a.to_string())
}

/// The key in this attribute, as it is written, if it is the one of the certificate.
pub(crate) fn key_of(found: &Object, attribute: &str, certificate: &Read) -> Option<String> {
    let (text, _) = alone(found, attribute, "PRIVATE KEY")?;
    let key = read_key(attribute, text).ok()?;
    (key.der_bytes() == certificate.public_key).then(|| text.to_owned())
}

/// The name of a key's kind.
pub(crate) fn algorithm(key: &KeyPair) -> Option<&'static str> {
    let kind = key.algorithm();
    if kind == &rcgen::PKCS_ECDSA_P256_SHA256 {
        Some("ECDSA-P256")
    } else if kind == &rcgen::PKCS_ECDSA_P384_SHA384 {
        Some("ECDSA-P384")
    } else if kind == &rcgen::PKCS_ED25519 {
        Some("ED25519")
    } else if kind == &rcgen::PKCS_RSA_SHA256 {
        Some(if key.der_bytes().len() > LONG_RSA { "RSA-4096" } else { "RSA-2048" })
    } else {
        None
    }
}

impl Read {
    /// True if this authority signed it, as far as names of it and of its key tell.
    pub(crate) fn is_of(&self, authority: &Authority) -> bool {
        let is_other_key = self.issuer_key_id.is_some() && authority.key_id.is_some() && self.issuer_key_id != authority.key_id;
        self.issuer == authority.subject && !is_other_key
    }

    /// Puts it into an object, with its key if there is one.
    pub(crate) fn fill(&self, key: Option<String>, object: &mut Object) {
        if let Some(kind) = key.as_deref().and_then(|text| algorithm(&read_key("private_key", text).ok()?)) {
            object.insert("algorithm".to_owned(), kind.into());
        }
        let key = key.map_or_else(|| Value::null(karmaform_model::Type::String), Value::from);
        object.insert("private_key".to_owned(), key.secret());
        object.insert("certificate".to_owned(), self.text.as_str().into());
        object.insert("not_before".to_owned(), lifetime::written(self.not_before).into());
        object.insert("not_after".to_owned(), lifetime::written(self.not_after).into());
        object.insert("serial_number".to_owned(), self.serial_number.as_str().into());
    }
}

#[cfg(test)]
#[path = "found_tests.rs"]
mod tests;
