//! A cluster's client: one door per member, opened when it is used.
//!
//! Each look opens a new connection. That costs a handshake, and in return an answer never comes from a connection that a stopping member
//! still drains, and renewed certificates are in effect at once.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use karmaform_model::{Connections, Diagnostic, Object, Value};
use tokio::sync::Mutex;

/// The longest wait for a connection to a member.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The longest wait for one answer. A server gives up after 7 s and then says why; a shorter limit would never see the reason.
const CALL_LIMIT: Duration = Duration::from_secs(8);

/// A cluster.
#[derive(Clone)]
pub struct Client {
    id: String,
    members: Arc<BTreeMap<String, Door>>,
    tls: Option<TlsOptions>,
    connections: Arc<dyn Connections>,
}

struct Door {
    host: String,
    port: u16,
    via: Option<Object>,
    /// The local end of the way through `via`; it lives as long as the run.
    forwarded: Mutex<Option<SocketAddr>>,
}

impl Client {
    /// Reads a connection value. Nothing is opened yet: a member that can't be reached is an answer, not an error.
    pub(crate) fn new(connection: &Object, connections: Arc<dyn Connections>) -> Result<Self, Diagnostic> {
        let id = text(connection, "id").unwrap_or("etcd").to_owned();
        let broken = |detail: String| {
            Diagnostic::error("Not a connection to an etcd cluster", detail)
                .with_hint("Take the connection from an `etcd_cluster`, or write an object with `provider`, `id` and `members`.")
        };
        let Some(entries) = connection.get("members").and_then(Value::as_entries) else {
            return Err(broken("The connection value has no known `members`.".to_owned()));
        };
        let mut members = BTreeMap::new();
        for (name, value) in entries {
            let host = value.get("host").and_then(Value::as_str);
            let port = value.get("port").and_then(Value::as_i64).and_then(|p| u16::try_from(p).ok());
            let (Some(host), Some(port)) = (host, port) else {
                return Err(broken(format!("The member \"{name}\" needs a `host` and a `port`.")));
            };
            let via = value.get("via").and_then(Value::as_entries).cloned();
            members.insert(name.clone(), Door { host: host.to_owned(), port, via, forwarded: Mutex::new(None) });
        }
        let tls = match (text(connection, "ca_certificate"), text(connection, "certificate"), text(connection, "private_key")) {
            (None, None, None) => None,
            (Some(ca), Some(certificate), Some(key)) => {
                Some(TlsOptions::new().ca_certificate(Certificate::from_pem(ca)).identity(Identity::from_pem(certificate, key)))
            }
            _ => {
                return Err(broken("It needs `ca_certificate`, `certificate` and `private_key` together, or none of them.".to_owned()));
            }
        };
        Ok(Self { id, members: Arc::new(members), tls, connections })
    }

    /// What it is called in messages.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The members' names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// A new connection to one member, within the time limit. The error is a few words.
    pub(crate) async fn open(&self, name: &str) -> Result<etcd_client::Client, String> {
        let door = self.members.get(name).ok_or("it is not in the connection")?;
        let (host, port) = self.way_to(door).await?;
        let authority = if host.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let mut options = ConnectOptions::new().with_connect_timeout(CONNECT_LIMIT).with_timeout(CALL_LIMIT);
        let scheme = match &self.tls {
            Some(tls) => {
                // Through a tunnel the address we dial is not in the certificate; the member's own is.
                options = options.with_tls(tls.clone().domain_name(door.host.clone()));
                "https"
            }
            None => "http",
        };
        let connecting = etcd_client::Client::connect([format!("{scheme}://{authority}")], Some(options));
        match tokio::time::timeout(CONNECT_LIMIT, connecting).await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => Err(crate::look::reason(&error)),
            Err(_) => Err("no connection within 5 s".to_owned()),
        }
    }

    async fn way_to(&self, door: &Door) -> Result<(String, u16), String> {
        let Some(via) = &door.via else { return Ok((door.host.clone(), door.port)) };
        let mut forwarded = door.forwarded.lock().await;
        let address = match *forwarded {
            Some(address) => address,
            None => {
                let opened = self.connections.forward(via, &door.host, door.port).await;
                let address = opened.map_err(|d| format!("no way to its host: {}", d.summary))?;
                *forwarded = Some(address);
                address
            }
        };
        let host = match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => ip.to_string(),
        };
        Ok((host, address.port()))
    }
}

/// One answer within the time limit. The error is a few words.
pub(crate) async fn within<T>(call: impl Future<Output = Result<T, etcd_client::Error>>) -> Result<T, etcd_client::Error> {
    match tokio::time::timeout(CALL_LIMIT, call).await {
        Ok(answer) => answer,
        Err(_) => Err(etcd_client::Error::Internal("no answer within 8 s".to_owned())),
    }
}

fn text<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}
