//! Ports, with and without TLS, and which requests go where.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::apis::Apis;
use crate::certificates::Pair;
use crate::component::Component;
use crate::flags::Flags;
use crate::{say, webhook};

/// A body longer than this is nobody's object.
const LONGEST: usize = 16 << 20;

/// An answer: a code, and JSON or words.
pub(crate) type Answer = (StatusCode, Value);

/// What all connections share.
struct Server {
    component: Component,
    apis: Apis,
    /// What its probes are told.
    alive: Arc<AtomicBool>,
}

/// Serves without end; returns only if a port can't be had.
pub(crate) async fn serve(
    component: Component,
    flags: &Flags,
    serving: Option<Pair>,
    alive: Arc<AtomicBool>,
) -> Result<Infallible, String> {
    let server = Arc::new(Server { component, apis: Apis::new(component), alive });
    for (flag, usual) in component.plain_addresses() {
        let address = flags.get(flag).unwrap_or(usual);
        if address != "0" {
            tokio::spawn(accept(listen(flag, address).await?, None, Arc::clone(&server)));
        }
    }
    if let (Some(pair), Some(usual)) = (serving, component.secure_port()) {
        let host = flags.get("bind-address").unwrap_or("0.0.0.0");
        let port = flags.get("secure-port").map_or_else(|| usual.to_string(), str::to_owned);
        let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let acceptor = TlsAcceptor::from(Arc::new(tls(component, flags, pair)?));
        tokio::spawn(accept(listen("secure-port", &address).await?, Some(acceptor), Arc::clone(&server)));
    }
    if component.secure_port().is_some() && component != Component::Webhook {
        notify().map_err(|e| format!("NOTIFY_SOCKET: {e}"))?;
    }
    std::future::pending().await
}

/// Tells systemd that it serves, if systemd asked for that; as the real ones that are API servers do.
fn notify() -> std::io::Result<()> {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    std::os::unix::net::UnixDatagram::unbound()?.send_to(b"READY=1", path).map(|_| ())
}

/// `:8080` is on all addresses.
async fn listen(flag: &str, address: &str) -> Result<TcpListener, String> {
    let full = if address.starts_with(':') { format!("0.0.0.0{address}") } else { address.to_owned() };
    let socket: SocketAddr = full.parse().map_err(|_| format!("--{flag}: {address} is no address to listen at"))?;
    TcpListener::bind(socket).await.map_err(|e| format!("--{flag}: {address}: {e}"))
}

/// By default the webhook takes TLS 1.3 alone, the others 1.2 too.
fn tls(component: Component, flags: &Flags, pair: Pair) -> Result<ServerConfig, String> {
    let usual = if component == Component::Webhook { "1.3" } else { "" };
    let versions = match flags.get("tls-min-version").unwrap_or(usual) {
        "VersionTLS13" | "1.3" => &[&rustls::version::TLS13][..],
        "" | "VersionTLS12" | "VersionTLS11" | "VersionTLS10" | "1.2" | "1.1" | "1.0" => rustls::ALL_VERSIONS,
        other => return Err(format!("--tls-min-version={other}: there is no such version")),
    };
    let config = ServerConfig::builder_with_protocol_versions(versions).with_no_client_auth();
    config.with_single_cert(pair.chain, pair.key).map_err(|e| format!("the serving certificate: {e}"))
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, server: Arc<Server>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (acceptor, server) = (acceptor.clone(), Arc::clone(&server));
        tokio::spawn(async move {
            match acceptor {
                None => talk(stream, server, false).await,
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => talk(stream, server, true).await,
                    // Whoever only looks whether somebody listens says nothing at all.
                    Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {}
                    Err(error) => say(server.component.program(), &format!("TLS: {error}")),
                },
            }
        });
    }
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin, server: Arc<Server>, secure: bool) {
    let service = service_fn(|request| answer(&server, request, secure));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await; // callers leave as they like
}

async fn answer(server: &Server, request: Request<Incoming>, secure: bool) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let wants_table = head.headers.get("accept").and_then(|a| a.to_str().ok()).is_some_and(|a| a.contains("as=Table"));
    let (code, value) = match Limited::new(body, LONGEST).collect().await {
        Ok(body) => server.route(&head.method, head.uri.path(), &body.to_bytes(), secure),
        Err(error) => (StatusCode::BAD_REQUEST, failure(StatusCode::BAD_REQUEST, &error.to_string())),
    };
    let value = if wants_table { crate::apis::as_table(value) } else { value };
    let (kind, text) = match value {
        Value::String(text) => ("text/plain", text),
        other => ("application/json", other.to_string()),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = code;
    response.headers_mut().insert("content-type", http::HeaderValue::from_static(kind));
    Ok(response)
}

impl Server {
    fn route(&self, method: &Method, path: &str, body: &[u8], secure: bool) -> Answer {
        match path.trim_end_matches('/') {
            "/healthz" | "/readyz" | "/livez" if self.alive.load(Ordering::Relaxed) => (StatusCode::OK, json!("ok")),
            "/healthz" | "/readyz" | "/livez" => (StatusCode::INTERNAL_SERVER_ERROR, json!("not yet")),
            "/metrics" => (StatusCode::OK, json!("")),
            other if secure && self.component == Component::Webhook => webhook::answer(method, other, body),
            other if secure => self.apis.answer(method, other, body),
            _ => missing(path),
        }
    }
}

/// What an API server says when something is wrong.
pub(crate) fn failure(code: StatusCode, why: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": why, "code": code.as_u16(),
        "reason": code.canonical_reason().unwrap_or_default().replace(' ', "") })
}

pub(crate) fn missing(path: &str) -> Answer {
    (StatusCode::NOT_FOUND, failure(StatusCode::NOT_FOUND, &format!("{path} is not here")))
}

pub(crate) fn bad(why: &str) -> Answer {
    (StatusCode::BAD_REQUEST, failure(StatusCode::BAD_REQUEST, why))
}
