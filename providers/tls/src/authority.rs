//! A certificate authority as it comes in: a certificate and its key as PEM, ours or anybody's.

use karmaform_model::Diagnostic;
use rcgen::{Issuer, KeyPair, PublicKeyData as _};
use x509_parser::extensions::ParsedExtension;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// What a certificate of an authority says.
pub(crate) struct Authority {
    der: Vec<u8>,
    /// Its name, byte by byte.
    pub(crate) subject: Vec<u8>,
    public_key: Vec<u8>,
    /// What those that it signed call its key.
    pub(crate) key_id: Option<Vec<u8>>,
    /// When it ends, in seconds since 1970.
    pub(crate) not_after: i64,
}

/// What is to be signed can't be: a state that was made anew may be without the key.
pub(crate) fn without_key(what: &str) -> Diagnostic {
    let detail = format!("{what}, but nobody knows the key of the authority any more.");
    Diagnostic::error("Certificate authority without its key", detail)
        .with_hint("If a state from before it was lost is left anywhere, bring it back: state push FILE.")
        .with_hint("Or take another authority: in an etcd_cluster by its block `authorities`, else with -replace=ADDRESS. What trusts the old one must trust the new one then.")
}

fn refused(detail: &str) -> Diagnostic {
    Diagnostic::error("Unusable certificate authority", detail)
}

/// The first block of a PEM text whose label ends so.
fn block(text: &str, label: &str) -> Option<(String, Vec<u8>)> {
    Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok).find(|p| p.label.ends_with(label)).map(|p| (p.label, p.contents))
}

impl Authority {
    /// Reads the certificate; of a bundle the first one.
    pub(crate) fn read(certificate: &str) -> Result<Self, Diagnostic> {
        let Some((_, der)) = block(certificate, "CERTIFICATE") else {
            return Err(refused("The value of \"ca_certificate\" holds no certificate in PEM form (\"-----BEGIN CERTIFICATE-----\")."));
        };
        let parsed = X509Certificate::from_der(&der).map_err(|_| refused("The certificate in \"ca_certificate\" can't be read."))?.1;
        if !parsed.is_ca() {
            return Err(refused("The certificate in \"ca_certificate\" is not one of an authority: it must not sign others.")
                .with_hint("Give the certificate of a tls_ca, or one that was made with CA:TRUE."));
        }
        if let Ok(Some(usage)) = parsed.key_usage()
            && !usage.value.key_cert_sign()
        {
            return Err(refused("The certificate in \"ca_certificate\" has key usages, but signing certificates is not among them."));
        }
        Ok(Self {
            subject: parsed.subject().as_raw().to_vec(),
            public_key: parsed.public_key().subject_public_key.data.to_vec(),
            key_id: parsed.extensions().iter().find_map(|e| match e.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            }),
            not_after: parsed.validity().not_after.timestamp(),
            der: der.clone(),
        })
    }

    /// Its key, which must be the one that the certificate is about.
    pub(crate) fn key(&self, private_key: &str) -> Result<KeyPair, Diagnostic> {
        let key = read_key("ca_private_key", private_key)?;
        if key.der_bytes() != self.public_key {
            return Err(refused("The key in \"ca_private_key\" is not the key of the certificate in \"ca_certificate\".")
                .with_hint("Take both from the same tls_ca, or from the same pair of files."));
        }
        Ok(key)
    }

    /// What rcgen signs with.
    pub(crate) fn issuer<'a>(&self, key: &'a KeyPair) -> Result<Issuer<'static, &'a KeyPair>, rcgen::Error> {
        Issuer::from_ca_cert_der(&self.der.as_slice().into(), key)
    }
}

/// A private key; PKCS#8 or the older forms of RSA and elliptic curves.
pub(crate) fn read_key(attribute: &str, pem: &str) -> Result<KeyPair, Diagnostic> {
    let refused = |summary: &str, what: &str| Diagnostic::error(summary, format!("The value of \"{attribute}\" {what}."));
    let Some((label, der)) = block(pem, "PRIVATE KEY") else {
        return Err(refused("Not a private key", "holds no private key in PEM form (\"-----BEGIN PRIVATE KEY-----\")"));
    };
    if label == "ENCRYPTED PRIVATE KEY" {
        return Err(refused("Encrypted private key", "is an encrypted key, and there is no way to give its passphrase")
            .with_hint("Decrypt it with \"openssl pkey\" and pass it in a sensitive variable."));
    }
    KeyPair::try_from(der).map_err(|_| refused("Not a private key", "is none of: RSA of at least 2048 bits, P-256, P-384, P-521, Ed25519"))
}
