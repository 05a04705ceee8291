//! A way to the cluster's API server on which things go wrong by rule: refusals, silence, cut connections, half answers.
//!
//! TLS in front with a certificate of its own, the administrator's behind. What asks for an upgrade (a port-forward) goes through.

use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1 as client;
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, TRANSFER_ENCODING, UPGRADE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::Host;

/// Longer than anybody waits for an answer.
const SILENCE: Duration = Duration::from_secs(300);

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The server's refusal, as it words it. It never hears of the request.
    Answer(u16),
    /// No answer, ever.
    Silence,
    /// The connection ends; the server never hears of the request.
    CutBefore,
    /// The server does what it is asked, and the connection ends before its answer.
    CutAfter,
    /// Half of the answer's body.
    Half,
}

/// What is told of a request to who decides on it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// From 0 on.
    pub(super) number: usize,
    pub(super) method: String,
    /// With its query.
    pub(super) path: String,
}

type Rule = Box<dyn FnMut(&Asked) -> Option<Fault> + Send>;

struct Shared {
    rule: Mutex<Rule>,
    count: Mutex<(usize, Vec<String>)>,
    user: Mutex<Option<String>>,
    upstream: (String, u16),
    connector: TlsConnector,
}

/// It ends when it is dropped.
pub(super) struct Proxy {
    runtime: Option<tokio::runtime::Runtime>,
    shared: Arc<Shared>,
    file: tempfile::NamedTempFile,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Proxy {
    /// In front of the host cluster; nothing goes wrong yet.
    pub(super) fn new(host: &Host) -> Self {
        let at = |path: &str| host.run(&["config", "view", "--raw", "-o", &format!("jsonpath={{{path}}}")]);
        let pem = |path: &str| BASE64_STANDARD.decode(at(path)).expect("base64");
        let certificates = |pem: &[u8]| CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().expect("certificates");
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(certificates(&pem(".clusters[0].cluster.certificate-authority-data")));
        let identity = certificates(&pem(".users[0].user.client-certificate-data"));
        let key = PrivateKeyDer::from_pem_slice(&pem(".users[0].user.client-key-data")).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let behind = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let behind = behind.expect("TLS").with_root_certificates(roots).with_client_auth_cert(identity, key).expect("an identity");
        let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let own_key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
        let front = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("TLS");
        let front = front.with_no_client_auth().with_single_cert(vec![own.cert.der().clone()], own_key).expect("a certificate");

        let server = at(".clusters[0].cluster.server");
        let (name, port) = server.trim_start_matches("https://").rsplit_once(':').expect("a port");
        let shared = Arc::new(Shared {
            rule: Mutex::new(Box::new(|_| None)),
            count: Mutex::default(),
            user: Mutex::default(),
            upstream: (name.to_owned(), port.parse().expect("a port")),
            connector: TlsConnector::from(Arc::new(behind)),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).expect("a port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(listen(listener, TlsAcceptor::from(Arc::new(front)), Arc::clone(&shared)));
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), kubeconfig(address, &own.cert.pem())).expect("written");
        Self { runtime: Some(runtime), shared, file }
    }

    /// The way through it.
    pub(super) fn kubeconfig(&self) -> String {
        self.file.path().to_string_lossy().into_owned()
    }

    /// From now on this decides; requests are counted anew.
    pub(super) fn rule(&self, rule: impl FnMut(&Asked) -> Option<Fault> + Send + 'static) {
        *self.shared.rule.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(rule);
        *self.shared.count.lock().unwrap_or_else(PoisonError::into_inner) = (0, Vec::new());
    }

    /// From now on requests are made in the name of this user, instead of the administrator's own.
    pub(super) fn act_as(&self, user: Option<&str>) {
        *self.shared.user.lock().unwrap_or_else(PoisonError::into_inner) = user.map(str::to_owned);
    }

    /// How many requests there were since then, and what was done to which.
    pub(super) fn done(&self) -> (usize, Vec<String>) {
        self.shared.count.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn kubeconfig(address: SocketAddr, certificate: &str) -> String {
    let authority = BASE64_STANDARD.encode(certificate);
    json!({ "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{ "name": "c", "user": {} }],
        "clusters": [{ "name": "c", "cluster": { "server": format!("https://{address}"), "certificate-authority-data": authority } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "c" } }] })
    .to_string()
}

async fn listen(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = hyper::service::service_fn(|request| answer(Arc::clone(&shared), request));
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // An error of the service cuts the connection: that is what it is for.
            let _ = connection.with_upgrades().await;
        });
    }
}

type Failed = Box<dyn Error + Send + Sync>;

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Part>, Failed> {
    let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    let fault = {
        let mut count = shared.count.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = Asked { number: count.0, method: request.method().to_string(), path };
        count.0 += 1;
        let fault = (shared.rule.lock().unwrap_or_else(PoisonError::into_inner))(&asked);
        count.1.extend(fault.map(|fault| format!("{fault:?}: {} {}", asked.method, asked.path)));
        fault
    };
    match fault {
        Some(Fault::Answer(code)) => return Ok(refusal(code)),
        Some(Fault::Silence) => tokio::time::sleep(SILENCE).await,
        _ => {}
    }
    if matches!(fault, Some(Fault::CutBefore | Fault::Silence)) {
        return Err("cut".into());
    }
    let response = forward(&shared, request).await?;
    if fault.is_none() {
        return Ok(response.map(Part::Live));
    }
    let (mut head, body) = response.into_parts();
    let whole = body.collect().await?.to_bytes();
    if fault == Some(Fault::CutAfter) {
        return Err("cut".into());
    }
    head.headers.remove(TRANSFER_ENCODING);
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(whole.len()));
    let half = whole.slice(..whole.len() / 2);
    Ok(Response::from_parts(head, Part::Half(Some(half), whole.len() as u64)))
}

async fn forward(shared: &Shared, mut request: Request<Incoming>) -> Result<Response<Incoming>, Failed> {
    let stream = TcpStream::connect((shared.upstream.0.as_str(), shared.upstream.1)).await?;
    let stream = shared.connector.connect(ServerName::try_from(shared.upstream.0.clone())?, stream).await?;
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection.with_upgrades());
    if request.headers().get(UPGRADE).is_none() {
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let user = shared.user.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(user) = user {
        // https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
        request.headers_mut().insert("impersonate-user", HeaderValue::from_str(&user)?);
    }
    let upgrade = hyper::upgrade::on(&mut request);
    let mut response = sender.send_request(request).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let behind = hyper::upgrade::on(&mut response);
        tokio::spawn(async move {
            let (Ok(front), Ok(behind)) = (upgrade.await, behind.await) else { return };
            let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(front), &mut TokioIo::new(behind)).await;
        });
    } else {
        // The connection in front goes on, whatever the one behind does.
        response.headers_mut().remove(CONNECTION);
    }
    Ok(response)
}

/// As API servers say it.
fn refusal(code: u16) -> Response<Part> {
    let (reason, message) = match code {
        409 => ("Conflict", "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version"),
        429 => ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => ("Timeout", "the server was unable to return a response in the time allotted"),
        _ => ("InternalError", "Internal error occurred: etcdserver: request timed out"),
    };
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": code });
    let body = Bytes::from(status.to_string());
    let length = body.len() as u64;
    let mut response = Response::new(Part::Half(Some(body), length));
    *response.status_mut() = StatusCode::from_u16(code).expect("a status");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if code == 429 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// A body that is passed on, or made up, and perhaps shorter than its head says.
enum Part {
    Live(Incoming),
    /// What comes, and how much is announced.
    Half(Option<Bytes>, u64),
}

impl Body for Part {
    type Data = Bytes;
    type Error = Failed;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failed>>> {
        match self.get_mut() {
            Self::Live(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Self::Half(bytes, announced) => Poll::Ready(match bytes.take() {
                Some(bytes) => {
                    *announced -= bytes.len() as u64;
                    Some(Ok(Frame::data(bytes)))
                }
                None if *announced > 0 => Some(Err("cut".into())),
                None => None,
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Live(body) => body.is_end_stream(),
            Self::Half(bytes, announced) => bytes.is_none() && *announced == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Live(body) => body.size_hint(),
            Self::Half(_, announced) => SizeHint::with_exact(*announced),
        }
    }
}
