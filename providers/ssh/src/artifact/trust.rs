//! Whom servers are believed that something is fetched from: who is trusted on this machine, and, as docker and containerd have it, folders
//! with the authorities of single registries.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use karmaform_model::{Diagnostic, Trust, shows_authority, untrusted};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

/// Who says whom this machine trusts, once anybody has.
pub(crate) type Trusted = Arc<OnceLock<Arc<dyn Trust>>>;

/// Where docker and podman look for authorities of registries, besides beside docker's own configuration: `REGISTRY/*.crt` below these
/// (docker's "Verify repository client with certificates", containers-certs.d(5)).
const FOLDERS: [&str; 2] = ["/etc/docker/certs.d", "/etc/containers/certs.d"];

/// How servers show who they are. `more` are authorities for this server alone.
pub(super) fn tls(trusted: &Trusted, more: Vec<Certificate<'static>>) -> Result<TlsConfig, Diagnostic> {
    let told = trusted.get().map_or(Ok(Vec::new()), |trust| trust.authorities())?;
    let known = told.iter().map(|der| Certificate::from_der(der).to_owned());
    let roots: Vec<_> = known.chain(more).collect();
    let config = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    Ok(if roots.is_empty() { config.build() } else { config.root_certs(RootCerts::Specific(Arc::new(roots))).build() })
}

/// The authorities that were put down for one registry (`mirror.example:5000`). `docker` is docker's configuration file.
pub(super) fn of_registry(registry: &str, docker: &Path) -> Result<Vec<Certificate<'static>>, Diagnostic> {
    let beside = docker.parent().map(|folder| folder.join("certs.d"));
    let mut found = Vec::new();
    for folder in FOLDERS.into_iter().map(PathBuf::from).chain(beside) {
        let Ok(entries) = fs::read_dir(folder.join(registry)) else { continue };
        let mut files: Vec<_> = entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "crt")).collect();
        files.sort();
        for file in files {
            found.extend(read(&file)?);
        }
    }
    Ok(found)
}

fn read(file: &Path) -> Result<Vec<Certificate<'static>>, Diagnostic> {
    let broken = |why: &str| Diagnostic::error("Authority of a registry can't be read", format!("{} {why}.", file.display()));
    let text = fs::read(file).map_err(|e| broken(&format!("can't be opened ({e})")))?;
    let items: Result<Vec<_>, _> = parse_pem(&text).collect();
    let items = items.map_err(|_| broken("is no file of certificates (PEM)"))?;
    let certificates = items.into_iter().filter_map(|item| if let PemItem::Certificate(found) = item { Some(found) } else { None });
    let certificates: Vec<_> = certificates.collect();
    if certificates.is_empty() { Err(broken("has no certificate in it (PEM)")) } else { Ok(certificates) }
}

/// What is to be said if it is for its certificate that a server is not asked. `summary` is what can't be done, `what` was to be fetched.
pub(super) fn problem(error: &ureq::Error, summary: &str, what: &str) -> Option<Diagnostic> {
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
