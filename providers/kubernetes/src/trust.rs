//! Whom servers are believed that archives are fetched from. Clusters say themselves whom they are signed by.

use std::sync::{Arc, OnceLock};

use karmaform_model::{Diagnostic, Trust, shows_authority, untrusted};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

/// Who says whom this machine trusts, once anybody has.
pub(crate) type Trusted = OnceLock<Arc<dyn Trust>>;

/// How servers show who they are.
pub(crate) fn tls(trusted: &Trusted) -> Result<TlsConfig, Diagnostic> {
    let told = trusted.get().map_or(Ok(Vec::new()), |trust| trust.authorities())?;
    let roots: Vec<_> = told.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    let config = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    Ok(if roots.is_empty() { config.build() } else { config.root_certs(RootCerts::Specific(Arc::new(roots))).build() })
}

/// What is to be said if it is for its certificate that a server is not asked. `summary` is what can't be done, `what` was to be fetched.
pub(crate) fn problem(error: &ureq::Error, summary: &str, what: &str) -> Option<Diagnostic> {
    let found = match error {
        ureq::Error::Rustls(e) => Some(e),
        ureq::Error::Io(e) => e.get_ref().and_then(|e| e.downcast_ref()),
        _ => None,
    };
    match found? {
        rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer) => Some(untrusted(summary, what)),
        // The library has no kind of its own for it.
        rustls::Error::InvalidCertificate(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            Some(shows_authority(summary, what))
        }
        _ => None,
    }
}
