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

use crate::care::QUOTA;
use crate::pem;

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
    quota: i64,
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
            Diagnostic::error("Not a connection to an etcd cluster", detail).with_hint(
                "Take the connection from an `etcd_cluster`, or write an object with `provider`, `id` and `members` or `endpoints`.",
            )
        };
        let mut members = endpoints(connection).map_err(broken)?;
        let entries = connection.get("members").and_then(Value::as_entries);
        if entries.is_none() && members.is_empty() {
            return Err(broken("The connection value has no known `members` and no known `endpoints`.".to_owned()));
        }
        for (name, value) in entries.into_iter().flatten() {
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
                let ca = pem::certificates("ca_certificate", ca).map_err(broken)?;
                let certificate = pem::certificates("certificate", certificate).map_err(broken)?;
                let key = pem::private_key("private_key", key).map_err(broken)?;
                Some(TlsOptions::new().ca_certificate(Certificate::from_pem(ca)).identity(Identity::from_pem(certificate, key)))
            }
            _ => {
                return Err(broken("It needs `ca_certificate`, `certificate` and `private_key` together, or none of them.".to_owned()));
            }
        };
        let quota = connection.get("quota_bytes").and_then(Value::as_i64).unwrap_or(QUOTA);
        Ok(Self { id, members: Arc::new(members), tls, connections, quota })
    }

    /// To no cluster at all.
    pub(crate) fn nowhere(connections: Arc<dyn Connections>) -> Self {
        Self { id: "etcd".to_owned(), members: Arc::default(), tls: None, connections, quota: QUOTA }
    }

    /// The same for another connection of the same run.
    pub(crate) fn beside(&self, connection: &Object) -> Result<Self, Diagnostic> {
        Self::new(connection, Arc::clone(&self.connections))
    }

    /// What its databases may grow to, in bytes, unless they say otherwise.
    pub(crate) fn quota(&self) -> i64 {
        self.quota
    }

    /// True in a run that only looks.
    pub(crate) fn only_looks(&self) -> bool {
        self.connections.only_looks()
    }

    /// What it is called in messages.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// True if a member is reached through another connection.
    pub(crate) fn is_through(&self) -> bool {
        self.members.values().any(|door| door.via.is_some())
    }

    /// The members' names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// A new connection to one member, within the time limit. The error is a few words.
    pub(crate) async fn open(&self, name: &str) -> Result<etcd_client::Client, String> {
        self.open_for(name, CALL_LIMIT).await
    }

    /// The same for calls that take longer: each may take up to `limit`.
    pub(crate) async fn open_for(&self, name: &str, limit: Duration) -> Result<etcd_client::Client, String> {
        let door = self.members.get(name).ok_or("it is not in the connection")?;
        let (host, port) = self.way_to(door).await?;
        let authority = if host.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let mut options = ConnectOptions::new().with_connect_timeout(CONNECT_LIMIT).with_timeout(limit);
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
                let address = opened.map_err(|d| format!("no way to its host: {}", cause(&d)))?;
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

/// Why there is no way, in one line: what was met, and the first line of the details.
fn cause(met: &Diagnostic) -> String {
    match met.detail.lines().next().map(|line| line.trim_end_matches('.')).filter(|line| !line.is_empty()) {
        Some(line) => format!("{}: {line}", met.summary),
        None => met.summary.clone(),
    }
}

/// The members of a connection that has their URLs and no names: each is called by its URL. Names inside a Kubernetes cluster are reached
/// through `via`, if there is one; everything else straight from here.
fn endpoints(connection: &Object) -> Result<BTreeMap<String, Door>, String> {
    let mut members = BTreeMap::new();
    let via = connection.get("via").and_then(Value::as_entries);
    for url in connection.get("endpoints").and_then(Value::as_items).into_iter().flatten() {
        let Some(url) = url.as_str() else { return Err("An endpoint is not known or no text.".to_owned()) };
        let Some((host, port)) = address(url) else {
            return Err(format!("The endpoint \"{url}\" is not of the form \"https://HOST:PORT\"."));
        };
        // Through a cluster only what has a name there; through a host everything.
        let is_host = via.is_some_and(|v| text(v, "provider") == Some("ssh"));
        let is_inside = is_host || host.ends_with(".svc") || host.contains(".svc.");
        let door = Door { host, port, via: via.filter(|_| is_inside).cloned(), forwarded: Mutex::new(None) };
        members.insert(url.to_owned(), door);
    }
    Ok(members)
}

/// The host and the port in a URL.
fn address(url: &str) -> Option<(String, u16)> {
    let (rest, usual) = match url.split_once("://")? {
        ("https", rest) => (rest, 443),
        ("http", rest) => (rest, 80),
        _ => return None,
    };
    let rest = rest.trim_end_matches('/');
    let (host, port) = match rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Some(usual), |p| p.parse().ok())?;
    let is_host = !host.is_empty() && !host.contains(['/', '@', '[', ']']) && !host.contains(char::is_whitespace);
    is_host.then(|| (host.to_owned(), port))
}

fn text<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_hosts_and_ports() {
        for (url, expected) in [
            ("https://10.0.0.1:2379", Some(("10.0.0.1", 2379))),
            ("https://etcd.example/", Some(("etcd.example", 443))),
            ("http://[fd00::1]:2379", Some(("fd00::1", 2379))),
            ("https://a:b", None),
            ("https://user@a:1", None),
            ("10.0.0.1:2379", None),
            ("https://", None),
        ] {
            assert_eq!(address(url), expected.map(|(h, p)| (h.to_owned(), p)), "{url}");
        }
    }

    #[test]
    fn only_names_inside_a_cluster_are_reached_through_it() {
        let urls = ["https://etcd-0.etcd.ns.svc.cluster.local:2379", "https://10.0.0.1:2379", "https://etcd.svcs.example:2379"];
        let via = Value::object([("provider", "kubernetes".into())]);
        let connection = Object::from([("endpoints".to_owned(), Value::strings(urls)), ("via".to_owned(), via)]);
        let through: Vec<bool> = urls.iter().map(|u| endpoints(&connection).unwrap()[*u].via.is_some()).collect();
        assert_eq!(through, [true, false, false]);
    }
}
