//! Whether etcd lets us in: one TLS connection with our certificate, and one answer over it.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;

use crate::files::Etcd;

/// How long etcd may take to come up.
const PATIENCE: Duration = Duration::from_secs(30);
const ONE_ATTEMPT: Duration = Duration::from_secs(3);

/// Until one of the servers answers.
pub(crate) async fn reach(etcd: &Etcd) -> Result<(), String> {
    let config = ClientConfig::builder().with_root_certificates(etcd.roots.clone());
    let config = config.with_client_auth_cert(etcd.client.chain.clone(), etcd.client.key.clone_key());
    let connector = TlsConnector::from(Arc::new(config.map_err(|e| format!("--etcd-certfile: {e}"))?));
    let started = Instant::now();
    loop {
        let mut reasons = Vec::new();
        for server in &etcd.servers {
            match timeout(ONE_ATTEMPT, ask(&connector, server)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(why)) => reasons.push(format!("{server}: {why}")),
                Err(_) => reasons.push(format!("{server}: no answer")),
            }
        }
        if started.elapsed() > PATIENCE {
            return Err(format!("--etcd-servers: {}", reasons.join("; ")));
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// With TLS 1.3 a server refuses a client's certificate only after the handshake; so it has to say something.
async fn ask(connector: &TlsConnector, server: &str) -> Result<(), String> {
    let place = server.trim_start_matches("https://").trim_end_matches('/');
    let (host, _) = place.rsplit_once(':').ok_or("no port")?;
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(|e| e.to_string())?;
    let stream = TcpStream::connect(place).await.map_err(|e| e.to_string())?;
    let mut stream = connector.connect(name, stream).await.map_err(|e| e.to_string())?;
    let request = format!("GET /version HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|e| e.to_string())?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.map_err(|e| e.to_string())?;
    if &answer == b"HTTP/1.1 200" { Ok(()) } else { Err(format!("answers {}", String::from_utf8_lossy(&answer))) }
}
