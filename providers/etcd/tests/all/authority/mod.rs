//! A certificate authority for tests.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// One that issues for this test only.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    /// With a new key.
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "test CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// Its certificate, PEM.
    pub(crate) fn certificate(&self) -> String {
        self.certificate.clone()
    }

    /// A client certificate and its key.
    pub(crate) fn client(&self) -> (String, String) {
        self.issue("root", &[])
    }

    fn issue(&self, name: &str, addresses: &[&str]) -> (String, String) {
        let mut params = CertificateParams::new(addresses.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// Files for members that are reached at loopback and, as far as clients know, at `address`.
    pub(crate) fn write(&self, directory: &Path, address: &str) {
        let (certificate, key) = self.issue("member", &["127.0.0.1", "localhost", address]);
        for (name, text) in [("ca.crt", &self.certificate), ("member.crt", &certificate), ("member.key", &key)] {
            std::fs::write(directory.join(name), text).unwrap();
        }
    }
}
