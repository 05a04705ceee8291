//! What a certificate must be for its purpose. Knows nothing of flags; "what" is how messages name the thing.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, crypto::aws_lc_rs::default_provider};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// A certificate with those that follow it, and the key that fits.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Clone for Pair {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

/// The bytes of a file that must be there and not be empty.
pub(crate) fn read(what: &str, path: &str) -> Result<Vec<u8>, String> {
    let bytes = fs::read(path).map_err(|e| format!("{what}: {path} can't be read: {e}"))?;
    if bytes.is_empty() { Err(format!("{what}: {path} is empty")) } else { Ok(bytes) }
}

/// Certificates in PEM, at least one.
pub(crate) fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(format!("{what} has no certificate in it")),
        Err(error) => Err(format!("{what} is no PEM: {error}")),
    }
}

/// Certificate and key in PEM, which must belong together.
pub(crate) fn pair(what: &str, certificate: &[u8], key: &[u8]) -> Result<Pair, String> {
    let chain = certificates(what, certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| format!("{what}: no usable private key: {e}"))?;
    CertifiedKey::from_der(chain.clone(), key.clone_key(), &default_provider())
        .map_err(|e| format!("{what}: certificate and private key don't fit: {e}"))?;
    Ok(Pair { chain, key })
}

/// Authorities: within their time and marked as such.
pub(crate) fn authorities(what: &str, ders: &[CertificateDer<'static>]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for der in ders {
        let parsed = parse(what, der)?;
        in_time(what, &parsed)?;
        if !parsed.is_ca() {
            return Err(format!("{what}: {} is no certificate authority", parsed.subject()));
        }
        roots.add(der.clone()).map_err(|e| format!("{what}: {e}"))?;
    }
    Ok(roots)
}

/// A serving certificate: of this authority, within its time, for servers, and for this name.
pub(crate) fn serves(what: &str, pair: &Pair, roots: &RootCertStore, name: &str) -> Result<(), String> {
    let wrong = |why: String| format!("{what} is no serving certificate for {name}: {why}");
    let verifier = WebPkiServerVerifier::builder(Arc::new(roots.clone())).build().map_err(|e| wrong(e.to_string()))?;
    let server = ServerName::try_from(name.to_owned()).map_err(|e| wrong(e.to_string()))?;
    let (first, rest) = pair.chain.split_first().ok_or_else(|| wrong("there is none".to_owned()))?;
    verifier.verify_server_cert(first, rest, &server, &[], UnixTime::now()).map_err(|e| wrong(e.to_string()))?;
    Ok(())
}

/// The DNS names that a certificate is for.
pub(crate) fn dns_names(what: &str, pair: &Pair) -> Result<Vec<String>, String> {
    let parsed = parse(what, first(what, pair)?)?;
    let extension = parsed.subject_alternative_name().map_err(|e| format!("{what}: {e}"))?;
    let names = extension.iter().flat_map(|e| e.value.general_names.iter());
    Ok(names.filter_map(|n| if let GeneralName::DNSName(name) = n { Some((*name).to_owned()) } else { None }).collect())
}

/// A client's certificate: within its time, for clients, with a name of its own, and nobody's who may do everything unasked.
pub(crate) fn identifies(what: &str, pair: &Pair) -> Result<(), String> {
    let parsed = parse(what, first(what, pair)?)?;
    in_time(what, &parsed)?;
    let usage = parsed.extended_key_usage().map_err(|e| format!("{what}: {e}"))?;
    if !usage.is_some_and(|u| u.value.client_auth || u.value.any) {
        return Err(format!("{what} is not for clients (no clientAuth)"));
    }
    if parsed.subject().iter_organization().any(|o| o.as_str() == Ok("system:masters")) {
        return Err(format!("{what} is in the group system:masters, which no right can be taken from"));
    }
    match parsed.subject().iter_common_name().next().and_then(|n| n.as_str().ok()) {
        None | Some("" | "system:admin") => Err(format!("{what} has no name of its own ({})", parsed.subject())),
        Some(_) => Ok(()),
    }
}

fn first<'a>(what: &str, pair: &'a Pair) -> Result<&'a CertificateDer<'static>, String> {
    pair.chain.first().ok_or_else(|| format!("{what} has no certificate in it"))
}

fn parse<'a>(what: &str, der: &'a CertificateDer<'static>) -> Result<X509Certificate<'a>, String> {
    X509Certificate::from_der(der).map(|(_, parsed)| parsed).map_err(|e| format!("{what} is no certificate: {e}"))
}

fn in_time(what: &str, parsed: &X509Certificate<'_>) -> Result<(), String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs().cast_signed();
    let validity = parsed.validity();
    if (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&now) {
        Ok(())
    } else {
        Err(format!("{what}: {} is valid from {} to {}", parsed.subject(), validity.not_before, validity.not_after))
    }
}

#[cfg(test)]
#[path = "certificates_tests.rs"]
mod tests;
