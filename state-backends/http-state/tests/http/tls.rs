//! A server with a certificate, and one that wants to see ours.

use std::sync::Arc;

use karmaform_http_state::HttpBackend;
use karmaform_model::{BackendError, StateBackend as _, StoreError, Value};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::server::{Act, Server, open};

/// A certificate that signed itself, as PEM, with its key.
struct Own {
    certificate: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl Own {
    fn new(name: &str) -> Self {
        Self { certificate: rcgen::generate_simple_self_signed([name.to_owned()]).unwrap() }
    }

    fn pem(&self) -> Value {
        Value::from(self.certificate.cert.pem().as_str())
    }

    fn key(&self) -> Value {
        Value::from(self.certificate.signing_key.serialize_pem().as_str())
    }
}

/// A server with this certificate. It takes only clients that show the other one, if there is another one.
fn server(own: &Own, client: Option<&Own>) -> Server {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.certificate.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
    let config = match client {
        None => config.with_no_client_auth(),
        Some(client) => {
            let mut roots = RootCertStore::empty();
            roots.add(client.certificate.cert.der().clone()).unwrap();
            config.with_client_cert_verifier(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap())
        }
    };
    let config = Arc::new(config.with_single_cert(vec![own.certificate.cert.der().clone()], key).unwrap());
    Server::on("https", |_, _| Act::Do, move |stream| Some(StreamOwned::new(ServerConnection::new(Arc::clone(&config)).ok()?, stream)))
}

fn with(server: &Server, more: &[(&str, Value)]) -> HttpBackend {
    let mut arguments = server.arguments();
    arguments.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    open(&arguments)
}

async fn refused(backend: HttpBackend) -> String {
    match backend.read().await {
        Err(BackendError::Store { source: StoreError::Refused(said), .. }) => said,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_certificate_is_checked_unless_that_is_switched_off() {
    let own = Own::new("127.0.0.1");
    let server = server(&own, None);
    let said = refused(with(&server, &[])).await;
    assert!(said.contains("certificate that is not trusted") && said.contains("client_ca_certificate_pem"), "{said}");
    let said = refused(with(&server, &[("client_ca_certificate_pem", Own::new("127.0.0.1").pem())])).await;
    assert!(said.contains("not trusted"), "{said}");
    assert_eq!(server.lines().len(), 0);
    for trust in [("client_ca_certificate_pem", own.pem()), ("skip_cert_verification", Value::from(true))] {
        assert_eq!(with(&server, &[trust]).read().await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_gets_one() {
    let (own, client) = (Own::new("127.0.0.1"), Own::new("client"));
    let server = server(&own, Some(&client));
    let trust = ("client_ca_certificate_pem", own.pem());
    let stranger = Own::new("client");
    for shown in [vec![], vec![("client_certificate_pem", stranger.pem()), ("client_private_key_pem", stranger.key())]] {
        let said = refused(with(&server, &[shown, vec![trust.clone()]].concat())).await;
        assert!(said.contains("client_certificate_pem and client_private_key_pem"), "{said}");
    }
    let shown = [trust, ("client_certificate_pem", client.pem()), ("client_private_key_pem", client.key())];
    assert_eq!(with(&server, &shown).read().await.unwrap(), None);
}

#[test]
fn certificates_that_are_none_are_refused_at_once() {
    let server = Server::good();
    for (name, other) in [("client_ca_certificate_pem", None), ("client_certificate_pem", Some("client_private_key_pem"))] {
        let mut arguments = server.arguments();
        for name in [Some(name), other].into_iter().flatten() {
            arguments.insert(name.to_owned(), Value::from("hunter2"));
        }
        let Err(said) = HttpBackend::open(&arguments, &Default::default()) else { panic!("it can't be used") };
        assert_eq!(said.summary, "No connection to the http backend possible");
        assert!(said.detail.contains(name) && !said.detail.contains("hunter2"), "{}", said.detail);
        assert_eq!(said.hints, ["Check the certificates and the proxies."]);
    }
}

#[test]
fn a_proxy_that_is_none_is_named_by_its_variable() {
    let arguments = Server::good().arguments();
    for name in ["http_proxy", "https_proxy"] {
        let environment = [(name.to_owned(), "http://me:hunter2@".to_owned())].into();
        let Err(said) = HttpBackend::open(&arguments, &environment) else { panic!("it can't be used") };
        assert_eq!(said.summary, "No connection to the http backend possible");
        let words = format!("the address in {name} can't be used: ");
        assert!(said.detail.starts_with(&words) && !said.detail.contains("hunter2"), "{}", said.detail);
    }
}
