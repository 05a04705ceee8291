//! A way to a server on which things go wrong by rule: refusals, silence, cut connections, half answers, lost replies.
//!
//! Plain or with TLS on either side. What asks for an upgrade (a port-forward) goes through.

use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1 as client;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Longer than anybody waits for an answer.
const SILENCE: Duration = Duration::from_secs(300);

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
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
    /// The server never sees the conditions (If-Match, If-None-Match).
    Unconditional,
}

/// What is told of a request to who decides on it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// From 0 on.
    pub(crate) number: usize,
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
}

/// A refusal in the words of a kind of server: its body, and more headers.
pub(crate) type Refusal = fn(u16) -> (String, Vec<(HeaderName, &'static str)>);

/// What is behind, and what it takes to get there.
pub(crate) struct Behind {
    /// A name or an address.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// TLS to it.
    pub(crate) tls: Option<TlsConnector>,
    pub(crate) refusal: Refusal,
}

type Rule = Box<dyn FnMut(&Asked) -> Option<Fault> + Send>;

struct Shared {
    rule: Mutex<Rule>,
    count: Mutex<(usize, Vec<String>)>,
    /// Headers that every request is given.
    headers: Mutex<Vec<(HeaderName, HeaderValue)>>,
    behind: Behind,
}

/// It ends when it is dropped.
pub(crate) struct Proxy {
    runtime: Option<tokio::runtime::Runtime>,
    shared: Arc<Shared>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Proxy {
    /// On a free port of the loopback device, with TLS if there is an acceptor; nothing goes wrong yet.
    pub(crate) fn new(behind: Behind, front: Option<TlsAcceptor>) -> Self {
        let shared = Arc::new(Shared { rule: Mutex::new(Box::new(|_| None)), count: Mutex::default(), headers: Mutex::default(), behind });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).expect("a port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(listen(listener, front, Arc::clone(&shared)));
        Self { runtime: Some(runtime), shared, address }
    }

    /// From now on this decides; requests are counted anew.
    pub(crate) fn rule(&self, rule: impl FnMut(&Asked) -> Option<Fault> + Send + 'static) {
        *self.shared.rule.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(rule);
        *self.shared.count.lock().unwrap_or_else(PoisonError::into_inner) = (0, Vec::new());
    }

    /// From now on every request has these headers.
    pub(crate) fn headers(&self, headers: Vec<(HeaderName, HeaderValue)>) {
        *self.shared.headers.lock().unwrap_or_else(PoisonError::into_inner) = headers;
    }

    /// How many requests there were since the last rule, and what was done to which.
    pub(crate) fn done(&self) -> (usize, Vec<String>) {
        self.shared.count.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn listen(listener: TcpListener, front: Option<TlsAcceptor>, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (front, shared) = (front.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            match front {
                None => serve(stream, shared).await,
                Some(front) => {
                    if let Ok(stream) = front.accept(stream).await {
                        serve(stream, shared).await;
                    }
                }
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, shared: Arc<Shared>) {
    let service = hyper::service::service_fn(|request| answer(Arc::clone(&shared), request));
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // An error of the service cuts the connection: that is what it is for.
    let _ = connection.with_upgrades().await;
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
        Some(Fault::Answer(code)) => return Ok(refusal(&shared.behind, code)),
        Some(Fault::Silence) => tokio::time::sleep(SILENCE).await,
        _ => {}
    }
    if matches!(fault, Some(Fault::CutBefore | Fault::Silence)) {
        return Err("cut".into());
    }
    let mut request = request;
    if fault == Some(Fault::Unconditional) {
        request.headers_mut().remove(hyper::header::IF_MATCH);
        request.headers_mut().remove(hyper::header::IF_NONE_MATCH);
    }
    let response = forward(&shared, request).await?;
    if matches!(fault, None | Some(Fault::Unconditional)) {
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

async fn forward(shared: &Shared, request: Request<Incoming>) -> Result<Response<Incoming>, Failed> {
    let Behind { host, port, tls, .. } = &shared.behind;
    let stream = TcpStream::connect((host.as_str(), *port)).await?;
    match tls {
        None => through(shared, stream, request).await,
        Some(tls) => through(shared, tls.connect(ServerName::try_from(host.clone())?, stream).await?, request).await,
    }
}

async fn through(
    shared: &Shared,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, Failed> {
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection.with_upgrades());
    if request.headers().get(UPGRADE).is_none() {
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    request.headers_mut().extend(shared.headers.lock().unwrap_or_else(PoisonError::into_inner).clone());
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

fn refusal(behind: &Behind, code: u16) -> Response<Part> {
    let (text, headers) = (behind.refusal)(code);
    let body = Bytes::from(text);
    let length = body.len() as u64;
    let mut response = Response::new(Part::Half(Some(body), length));
    *response.status_mut() = StatusCode::from_u16(code).expect("a status");
    response.headers_mut().extend(headers.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))));
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
