//! Whom this machine trusts to say who a server is: what `SSL_CERT_FILE` and `SSL_CERT_DIR` name, as for programs in Go and for OpenSSL, or else the
//! system's store; and the authorities of `ca_file`.
//!
//! Read once somebody fetches something, as stores are large and most runs fetch nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use karmaform_model::{Diagnostic, Span, Trust};
use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};

use crate::app::{App, Stop};
use crate::bundle::Use;
use crate::project::Project;

/// What was written about it.
struct Written {
    /// `ca_file`: where it is, as it was written, and where that stands.
    file: Option<(PathBuf, String, Span)>,
    /// Names of the environment, with the paths that they have.
    environment: Vec<(&'static str, PathBuf)>,
    found: OnceLock<Result<Vec<Vec<u8>>, Diagnostic>>,
}

/// Tells all who fetch something whom they can trust.
///
/// # Errors
/// `ca_file` can't be read, and things are made.
pub(crate) fn use_trust(app: &App, project: &Project, needed: Use) -> Result<(), Stop> {
    let file = project.config.settings.ca_file.as_ref().map(|(path, span)| (app.directory.join(path), path.clone(), *span));
    let of = |name: &'static str| {
        let value = app.wiring.environment.get(name).map(String::as_str).unwrap_or_default();
        std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).map(move |path| (name, path)).collect::<Vec<_>>()
    };
    let whole = |name: &'static str| Some((name, PathBuf::from(app.wiring.environment.get(name).filter(|v| !v.is_empty())?)));
    let environment = whole("SSL_CERT_FILE").into_iter().chain(of("SSL_CERT_DIR")).collect();
    let written = Written { file, environment, found: OnceLock::new() };
    if needed == Use::Certain {
        written.ours()?;
    }
    let trust: Arc<dyn Trust> = Arc::new(written);
    app.wiring.registry.drivers().for_each(|driver| driver.trust(Arc::clone(&trust)));
    Ok(())
}

impl Written {
    /// What is in `ca_file`.
    fn ours(&self) -> Result<Vec<Vec<u8>>, Diagnostic> {
        let Some((path, written, span)) = &self.file else { return Ok(Vec::new()) };
        certificates(load_certs_from_paths(Some(path), None)).map_err(|why| {
            Diagnostic::error("Authorities can't be read", format!("{written}, which \"ca_file\" names, {why}."))
                .with_span(Some(*span))
                .with_hint("It is a file with the certificates of authorities, one after the other, as PEM.")
        })
    }

    fn read(&self) -> Result<Vec<Vec<u8>>, Diagnostic> {
        let mut all = self.ours()?;
        for (name, path) in &self.environment {
            let found = match *name {
                "SSL_CERT_FILE" => load_certs_from_paths(Some(path), None),
                _ => load_certs_from_paths(None, Some(path)),
            };
            all.extend(certificates(found).map_err(|why| environment(name, path, &why))?);
        }
        if self.environment.is_empty() {
            // A machine without a store, as images often are, has errors to tell, and no certificates.
            all.extend(load_native_certs().certs.iter().map(|c| c.to_vec()));
        }
        Ok(all)
    }
}

fn environment(name: &str, path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("Authorities can't be read", format!("{}, which {name} in the environment names, {why}.", path.display()))
        .with_hint("Correct that variable, or unset it to trust what this machine trusts otherwise.")
}

/// The certificates, or the end of a sentence.
fn certificates(found: CertificateResult) -> Result<Vec<Vec<u8>>, String> {
    match found.errors.first() {
        Some(error) if found.certs.is_empty() => Err(format!("can't be read ({error})")),
        _ if found.certs.is_empty() => Err("has no certificate (PEM) in it".to_owned()),
        _ => Ok(found.certs.iter().map(|c| c.to_vec()).collect()),
    }
}

impl Trust for Written {
    fn authorities(&self) -> Result<Vec<Vec<u8>>, Diagnostic> {
        self.found.get_or_init(|| self.read()).clone()
    }
}
