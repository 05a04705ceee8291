//! The provider `tls`: certificate authorities, the certificates they sign, requests for others to sign, and bare keys. All live in the state alone.
//!
//! Renewal is a difference like any other: it depends on the time that the plan is given, is shown, and is applied.
//! Knows nothing of: files, hosts, who uses a certificate.

mod authority;
mod ca;
mod certificate;
mod der;
mod found;
mod issue;
mod lifetime;
mod names;
mod private_key;
mod renewal;
mod request;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use karmaform_model::{Adapter, BoxFuture, Connections, Diagnostic, Driver, Object, Provider, ResourceType, Schema};

use ca::Ca;
use certificate::Certificate;
use private_key::PrivateKey;
use request::CertificateRequest;

/// The provider `tls`.
pub struct Tls {
    schema: Schema,
    ca: Ca,
    certificate: Certificate,
    private_key: PrivateKey,
    request: CertificateRequest,
}

/// The provider, as the registry takes it.
pub fn drivers() -> Vec<Arc<dyn Driver>> {
    vec![Arc::new(Adapter(Tls::default()))]
}

impl Default for Tls {
    fn default() -> Self {
        let schema = Schema::new("Certificate authorities, certificates and keys.", Vec::new());
        Self { schema, ca: Ca::new(), certificate: Certificate::new(), private_key: PrivateKey::new(), request: CertificateRequest::new() }
    }
}

impl Provider for Tls {
    type Client = ();

    fn name(&self) -> &'static str {
        "tls"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn types(&self) -> Vec<&dyn ResourceType<()>> {
        vec![&self.ca, &self.certificate, &self.private_key, &self.request]
    }

    fn connect<'a>(&'a self, _: &'a Object, _: &'a Object, _: Arc<dyn Connections>) -> BoxFuture<'a, Result<(), Diagnostic>> {
        Box::pin(async { Ok(()) })
    }
}
