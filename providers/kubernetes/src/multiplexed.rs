//! One connection to an API server behind a forward, for all requests at once: each connection there costs a port-forward of its own.
//!
//! The client library alone speaks HTTP/1.1, where requests at the same time need a connection each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tower::{BoxError, ServiceBuilder, service_fn};

use crate::failure::Failure;

/// How HTTP/2 is called in a TLS handshake (RFC 9113, section 3.2).
const HTTP2: &[u8] = b"h2";

/// A client over one connection.
pub(crate) struct Multiplexed {
    /// The client.
    pub(crate) client: Client,
    connection: JoinHandle<()>,
}

impl Multiplexed {
    /// True if the connection has ended; the client is of no use then.
    pub(crate) fn is_over(&self) -> bool {
        self.connection.is_finished()
    }
}

fn failed(error: impl Into<BoxError>) -> Failure {
    Failure::Kube(Box::new(kube::Error::Service(error.into())))
}

/// Connects, to a server that is called `host` in its certificate. None if it does not speak HTTP/2.
pub(crate) async fn connect(config: &Config, local: SocketAddr, host: &str, limit: Duration) -> Result<Option<Multiplexed>, Failure> {
    let library = |e: kube::Error| Failure::Kube(Box::new(e));
    let mut tls = config.rustls_client_config().map_err(library)?;
    tls.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from(host.to_owned()).map_err(failed)?;
    let shake = async {
        let stream = TcpStream::connect(local).await.map_err(failed)?;
        let _ = stream.set_nodelay(true);
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await.map_err(failed)?;
        if stream.get_ref().1.alpn_protocol() != Some(HTTP2) {
            return Ok(None);
        }
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.map(Some).map_err(failed)
    };
    let shaken = tokio::time::timeout(limit, shake).await.unwrap_or(Err(Failure::Timeout))?;
    let Some((sender, connection)) = shaken else { return Ok(None) };
    // It ends when the other side ends it, or nobody holds a sender any more; requests under way say what happened.
    let connection = tokio::spawn(async move { drop(connection.await) });
    let send = service_fn(move |request: http::Request<Body>| {
        let mut sender = sender.clone();
        async move {
            sender.ready().await.map_err(BoxError::from)?;
            sender.send_request(request).await.map_err(BoxError::from)
        }
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(library)?)
        .layer(config.extra_headers_layer().map_err(library)?)
        .service(send);
    Ok(Some(Multiplexed { client: Client::new(service, config.default_namespace.clone()), connection }))
}
