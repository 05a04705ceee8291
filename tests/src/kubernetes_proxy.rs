//! A way to the lab's API server on which things go wrong by rule.
//!
//! TLS in front with a certificate of its own, the administrator's behind.

use std::net::SocketAddr;
use std::ops::Deref;
use std::process::Command;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::proxy::{self, Behind};

/// It ends when it is dropped.
pub(crate) struct Proxy {
    proxy: proxy::Proxy,
    file: tempfile::NamedTempFile,
}

impl Deref for Proxy {
    type Target = proxy::Proxy;

    fn deref(&self) -> &proxy::Proxy {
        &self.proxy
    }
}

impl Proxy {
    /// In front of the cluster that this kubeconfig is for; nothing goes wrong yet.
    pub(crate) fn new(kubeconfig: &str) -> Self {
        let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let own_key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let front = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("TLS");
        let front = front.with_no_client_auth().with_single_cert(vec![own.cert.der().clone()], own_key).expect("a certificate");
        let proxy = proxy::Proxy::new(behind(kubeconfig), Some(TlsAcceptor::from(Arc::new(front))));
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), through(proxy.address, &own.cert.pem())).expect("written");
        Self { proxy, file }
    }

    /// The way through it.
    pub(crate) fn kubeconfig(&self) -> String {
        self.file.path().to_string_lossy().into_owned()
    }

    /// From now on requests are made in the name of this user, instead of the administrator's own.
    pub(crate) fn act_as(&self, user: Option<&str>) {
        // https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
        let header = |user| (HeaderName::from_static("impersonate-user"), HeaderValue::from_str(user).expect("a name"));
        self.proxy.headers(user.map(header).into_iter().collect());
    }
}

/// The cluster that this kubeconfig is for, asked as its user, who has a certificate.
pub(crate) fn behind(kubeconfig: &str) -> Behind {
    let kubectl = std::env::var("KARMAFORM_TEST_KUBECTL").expect("a kubectl, where there is a cluster");
    let at = |path: &str| {
        let arguments = ["--kubeconfig", kubeconfig, "config", "view", "--raw", "-o", &format!("jsonpath={{{path}}}")];
        let output = Command::new(&kubectl).args(arguments).output().expect("kubectl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let pem = |path: &str| BASE64_STANDARD.decode(at(path)).expect("base64");
    let certificates = |pem: &[u8]| CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().expect("certificates");
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&pem(".clusters[0].cluster.certificate-authority-data")));
    let identity = certificates(&pem(".users[0].user.client-certificate-data"));
    let key = PrivateKeyDer::from_pem_slice(&pem(".users[0].user.client-key-data")).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let tls = tls.expect("TLS").with_root_certificates(roots).with_client_auth_cert(identity, key).expect("an identity");
    let server = at(".clusters[0].cluster.server");
    let (name, port) = server.trim_start_matches("https://").rsplit_once(':').expect("a port");
    Behind { host: name.to_owned(), port: port.parse().expect("a port"), tls: Some(TlsConnector::from(Arc::new(tls))), refusal }
}

fn through(address: SocketAddr, certificate: &str) -> String {
    let authority = BASE64_STANDARD.encode(certificate);
    json!({ "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{ "name": "c", "user": {} }],
        "clusters": [{ "name": "c", "cluster": { "server": format!("https://{address}"), "certificate-authority-data": authority } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "c" } }] })
    .to_string()
}

/// As API servers say it.
fn refusal(code: u16) -> (String, Vec<(HeaderName, &'static str)>) {
    let (reason, message) = match code {
        409 => ("Conflict", "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version"),
        429 => ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => ("Timeout", "the server was unable to return a response in the time allotted"),
        _ => ("InternalError", "Internal error occurred: etcdserver: request timed out"),
    };
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": code });
    let mut headers = vec![(CONTENT_TYPE, "application/json")];
    headers.extend((code == 429).then_some((RETRY_AFTER, "1")));
    (status.to_string(), headers)
}
