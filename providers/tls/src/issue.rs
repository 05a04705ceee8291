//! Making keys and certificates. The only user of rcgen besides reading authorities.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{Diagnostic, Object, Value};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    PublicKeyData as _, RsaKeySize, SanType, SerialNumber,
};
use sha2::{Digest as _, Sha256};

use crate::authority::Authority;
use crate::{der, lifetime};

/// The algorithms of keys, the default first.
pub(crate) const ALGORITHMS: [&str; 5] = ["ECDSA-P256", "ECDSA-P384", "ED25519", "RSA-2048", "RSA-4096"];

/// Lines of 64 characters, as PEM wants them.
const PEM_LINE: usize = 64;

/// What a certificate is to say.
#[derive(Default)]
pub(crate) struct Request {
    pub(crate) common_name: String,
    pub(crate) organizations: Vec<String>,
    pub(crate) dns_names: Vec<String>,
    pub(crate) ip_addresses: Vec<String>,
    pub(crate) usages: Vec<String>,
    /// Seconds since 1970.
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
}

/// A new certificate, as attributes.
pub(crate) struct Issued {
    certificate: String,
    private_key: String,
    not_before: String,
    not_after: String,
    serial_number: String,
}

/// A new key.
pub(crate) fn new_key(algorithm: &str) -> Result<KeyPair, Diagnostic> {
    let key = match algorithm {
        "ECDSA-P384" => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
        "ED25519" => KeyPair::generate_for(&rcgen::PKCS_ED25519),
        "RSA-2048" => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
        "RSA-4096" => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_4096),
        _ => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
    };
    key.map_err(|e| failed(&e))
}

/// The certificate of an authority, signed by its own key.
pub(crate) fn authority(request: &Request, key: &KeyPair) -> Result<Issued, Diagnostic> {
    let mut parameters = parameters(request)?;
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let signed = parameters.self_signed(key).map_err(|e| failed(&e))?;
    let name = der::name(&request.common_name, &request.organizations);
    issued(request, &parameters, signed.der(), (&name, &name), key, key)
}

/// A leaf, signed by an authority.
pub(crate) fn leaf(request: &Request, key: &KeyPair, authority: &Authority, signer: &KeyPair) -> Result<Issued, Diagnostic> {
    let mut parameters = parameters(request)?;
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    if key.algorithm() == &rcgen::PKCS_RSA_SHA256 {
        // Only an RSA key can encrypt another key, as TLS before 1.3 may do.
        parameters.key_usages.push(KeyUsagePurpose::KeyEncipherment);
    }
    parameters.extended_key_usages = request
        .usages
        .iter()
        .map(|u| if u == "client_auth" { ExtendedKeyUsagePurpose::ClientAuth } else { ExtendedKeyUsagePurpose::ServerAuth })
        .collect();
    let issuer = authority.issuer(signer).map_err(|e| failed(&e))?;
    let signed = parameters.signed_by(key, &issuer).map_err(|e| failed(&e))?;
    let name = der::name(&request.common_name, &request.organizations);
    issued(request, &parameters, signed.der(), (&authority.subject, &name), key, signer)
}

/// A request for a certificate that somebody else signs, in DER.
pub(crate) fn request(wanted: &Request, key: &KeyPair) -> Result<Vec<u8>, Diagnostic> {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    for organization in &wanted.organizations {
        parameters.distinguished_name.push(DnType::OrganizationName, organization.as_str());
    }
    parameters.distinguished_name.push(DnType::CommonName, wanted.common_name.as_str());
    parameters.subject_alt_names = alternative_names(wanted)?;
    Ok(parameters.serialize_request(key).map_err(|e| failed(&e))?.der().to_vec())
}

/// Puts a request and its key into an object.
pub(crate) fn asked(key: &KeyPair, request: Vec<u8>, object: &mut Object) {
    object.insert("private_key".into(), Value::from(written(key)).secret());
    object.insert("request".into(), pem("CERTIFICATE REQUEST", &request).into());
}

/// Puts a key that belongs to no certificate into an object.
pub(crate) fn bare(key: &KeyPair, object: &mut Object) {
    let public_key = key.subject_public_key_info();
    object.insert("private_key".into(), Value::from(written(key)).secret());
    object.insert("fingerprint".into(), Sha256::digest(&public_key).iter().map(|b| format!("{b:02x}")).collect::<String>().into());
    object.insert("public_key".into(), pem("PUBLIC KEY", &public_key).into());
}

fn alternative_names(request: &Request) -> Result<Vec<SanType>, Diagnostic> {
    let mut names = Vec::new();
    for name in &request.dns_names {
        let wrong = |e: rcgen::Error| failed(&e).with_hint(format!("A name in a certificate is plain ASCII; \"{name}\" is not."));
        names.push(SanType::DnsName(name.as_str().try_into().map_err(wrong)?));
    }
    names.extend(request.ip_addresses.iter().filter_map(|a| a.parse().ok()).map(SanType::IpAddress));
    Ok(names)
}

fn parameters(request: &Request) -> Result<CertificateParams, Diagnostic> {
    let mut parameters = CertificateParams::default();
    // The real names are put in by `der`.
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, request.common_name.as_str());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    parameters.not_before = epoch + Duration::from_secs(request.not_before.max(0).unsigned_abs());
    parameters.not_after = epoch + Duration::from_secs(request.not_after.max(0).unsigned_abs());
    parameters.serial_number = Some(SerialNumber::from_slice(&random_serial()?));
    parameters.use_authority_key_identifier_extension = true;
    parameters.subject_alt_names = alternative_names(request)?;
    Ok(parameters)
}

fn issued(
    request: &Request,
    parameters: &CertificateParams,
    signed: &[u8],
    (issuer, subject): (&[u8], &[u8]),
    key: &KeyPair,
    signer: &KeyPair,
) -> Result<Issued, Diagnostic> {
    let made = der::with_names(signed, issuer, subject, signer);
    let Some(certificate) = made else {
        return Err(Diagnostic::error("Certificate can't be made", "What was made could not be read again. This is a bug."));
    };
    let serial = parameters.serial_number.as_ref().map(SerialNumber::to_bytes).unwrap_or_default();
    Ok(Issued {
        certificate: pem("CERTIFICATE", &certificate),
        private_key: written(key),
        not_before: lifetime::written(request.not_before),
        not_after: lifetime::written(request.not_after),
        serial_number: serial.iter().map(|b| format!("{b:02x}")).collect(),
    })
}

impl Issued {
    /// Puts it into an object; a key that is there stays as it is written.
    pub(crate) fn fill(self, object: &mut Object) {
        object.insert("certificate".into(), self.certificate.into());
        if object.get("private_key").and_then(Value::as_str).is_none() {
            object.insert("private_key".into(), Value::from(self.private_key).secret());
        }
        object.insert("not_before".into(), self.not_before.into());
        object.insert("not_after".into(), self.not_after.into());
        object.insert("serial_number".into(), self.serial_number.into());
    }
}

/// 20 random bytes that are a positive number of that length. The randomness is that of a new key, which is made for nothing else.
fn random_serial() -> Result<[u8; 20], Diagnostic> {
    let key = KeyPair::generate().map_err(|e| failed(&e))?;
    let mut serial = [0; 20];
    serial.copy_from_slice(&Sha256::digest(key.serialized_der())[..20]);
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(serial)
}

/// A key as PEM in PKCS#8 form. A key that came in, in one of the older forms, is not written again.
fn written(key: &KeyPair) -> String {
    let der = der::pkcs8_v1(key.serialized_der());
    pem("PRIVATE KEY", der.as_deref().unwrap_or_else(|| key.serialized_der()))
}

fn pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(PEM_LINE));
        text.push_str(line);
        text.push('\n');
        rest = tail;
    }
    text + &format!("-----END {label}-----\n")
}

fn failed(error: &rcgen::Error) -> Diagnostic {
    Diagnostic::error("Certificate can't be made", format!("{error}."))
}
