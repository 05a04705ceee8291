//! Local addresses that lead to pods: a listener per target, and for each connection a port-forward of its own to a pod chosen anew, for pods
//! are replaced by rollouts. Through the API server, so nothing needs to be exposed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use karmaform_model::Diagnostic;
use kube::Api;
use serde_json::Value as Json;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::builtin;
use crate::client::{Client, Inner, Place};
use crate::rights::{self, Right};

/// The summary that says that the cluster answers, but has nothing to forward to (yet).
pub(crate) const NOTHING_THERE: &str = "Nothing to forward to";
/// The longest wait for one port-forward.
const OPEN_LIMIT: Duration = Duration::from_secs(15);
/// Before accepting again after a failure.
const PAUSE: Duration = Duration::from_millis(50);
/// Pods tried for one connection: one that has just gone may still be listed.
const TRIES: usize = 3;

/// So long what was seen of a target is believed: whoever asks for the way connects next, often several times.
const FRESH: Duration = Duration::from_secs(2);

/// What is listened for: by host name and port.
pub(crate) type Forwards = tokio::sync::Mutex<BTreeMap<(String, u16), Forward>>;

/// Pods with the port in them, and when they were seen.
type Seen = Arc<Mutex<Option<(Instant, Vec<(String, u16)>)>>>;

/// An open listener; it ends with its client.
pub(crate) struct Forward {
    address: SocketAddr,
    task: AbortHandle,
    seen: Seen,
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a host name inside a cluster means (<https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/>).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    namespace: String,
    service: String,
    /// This one and no other.
    pod: Option<String>,
    port: u16,
}

impl Target {
    fn parse(host: &str, port: u16) -> Option<Self> {
        let parts: Vec<&str> = host.trim_end_matches('.').split('.').collect();
        let (pod, service, namespace) = match parts[..] {
            [pod, service, namespace, "svc", ..] => (Some(pod.to_owned()), service, namespace),
            [service, namespace, "svc", ..] => (None, service, namespace),
            _ => return None,
        };
        if parts.iter().any(|p| p.is_empty()) {
            return None;
        }
        Some(Self { namespace: namespace.to_owned(), service: service.to_owned(), pod, port })
    }
}

/// A local address that leads to `host:port`; the same one when asked again. Whether something is there is looked at each time.
pub(crate) async fn forward(client: &Client, host: &str, port: u16) -> Result<SocketAddr, Diagnostic> {
    let target = Target::parse(host, port).ok_or_else(|| {
        Diagnostic::error(
            "No way through this connection",
            format!("{host} is no name of a Service or a pod in the cluster {}.", client.place()),
        )
        .with_hint("Names are of the form \"SERVICE.NAMESPACE.svc\" or \"POD.SERVICE.NAMESPACE.svc\".")
    })?;
    let key = (host.to_owned(), port);
    let open = client.0.forwards.lock().await.get(&key).map(|f| (f.address, f.seen.clone()));
    if let Some((address, seen)) = open {
        remember(&seen, candidates(client, &target).await?);
        return Ok(address);
    }
    let right = Right::to_forward(&target.namespace);
    // One look at the rights in a namespace is enough.
    let is_known =
        client.0.forwards.lock().await.keys().any(|(h, p)| Target::parse(h, *p).is_some_and(|t| t.namespace == target.namespace));
    let allowed = async { if is_known { Ok(true) } else { rights::allowed(client, &right).await } };
    let (found, allowed) = futures::join!(candidates(client, &target), allowed);
    // Who can't be asked about rights is not asked; the port-forward itself will tell.
    if matches!(allowed, Ok(false)) {
        return Err(no_right(&target));
    }
    let seen = Seen::default();
    remember(&seen, found?);
    let mut forwards = client.0.forwards.lock().await;
    if let Some(forward) = forwards.get(&key) {
        return Ok(forward.address);
    }
    let broken = |error: std::io::Error| {
        Diagnostic::error("No local port", format!("A port of this machine to forward from can't be opened: {error}."))
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(broken)?;
    let address = listener.local_addr().map_err(broken)?;
    let task = tokio::spawn(listen(listener, Arc::downgrade(&client.0), target, seen.clone())).abort_handle();
    forwards.insert(key, Forward { address, task, seen });
    Ok(address)
}

fn remember(seen: &Seen, pods: Vec<(String, u16)>) {
    *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), pods));
}

fn no_right(target: &Target) -> Diagnostic {
    Diagnostic::error(
        "Right missing in the cluster",
        format!("The right to get pods/portforward in the namespace \"{}\" is missing.", target.namespace),
    )
    .with_hint("Let a role grant \"get\" and \"create\" on \"pods/portforward\" to this user.")
}

fn nothing(detail: String) -> Diagnostic {
    Diagnostic::error(NOTHING_THERE, detail)
        .with_hint("See whether the pods of it run: `kubectl get pods`, `kubectl describe`.")
        // Pods come.
        .retryable()
}

async fn get(client: &Client, kind: &'static str, namespace: &str, name: &str) -> Result<Option<Json>, Diagnostic> {
    let Some(served) = builtin::kind("v1", kind) else { return Ok(None) };
    let place = Place { api_version: "v1".to_owned(), served, namespace: Some(namespace.to_owned()) };
    client.get(&place, name).await.map_err(|failure| failure.diagnostic(client.place(), &place.call("get", name), &[]))
}

/// Pods, each with the port in it.
async fn candidates(client: &Client, target: &Target) -> Result<Vec<(String, u16)>, Diagnostic> {
    if let Some(name) = &target.pod {
        let pod = get(client, "Pod", &target.namespace, name).await?;
        return the_pod(target, name, pod.as_ref()).map_err(nothing);
    }
    let (service, endpoints) = futures::join!(
        get(client, "Service", &target.namespace, &target.service),
        get(client, "Endpoints", &target.namespace, &target.service)
    );
    behind(target, service?.as_ref(), endpoints?.as_ref()).map_err(nothing)
}

/// A pod that runs, ready or not; or why there is none.
fn the_pod(target: &Target, name: &str, pod: Option<&Json>) -> Result<Vec<(String, u16)>, String> {
    let named = format!("pod \"{name}\" in the namespace \"{}\"", target.namespace);
    let Some(pod) = pod else { return Err(format!("There is no {named}.")) };
    match pod["status"]["phase"].as_str() {
        Some("Running") => Ok(vec![(name.to_owned(), target.port)]),
        phase => Err(format!("The {named} does not run: it is {}.", phase.unwrap_or("new"))),
    }
}

/// The ready pods behind a Service; or why there are none.
fn behind(target: &Target, service: Option<&Json>, endpoints: Option<&Json>) -> Result<Vec<(String, u16)>, String> {
    let named = format!("Service \"{}\" in the namespace \"{}\"", target.service, target.namespace);
    let Some(service) = service else { return Err(format!("There is no {named}.")) };
    let items = |value: &Json| value.as_array().cloned().unwrap_or_default();
    // Its name leads to the pods themselves, so the port is theirs.
    let is_headless = service["spec"]["clusterIP"] == "None";
    let port = items(&service["spec"]["ports"]).into_iter().find(|p| p["port"] == target.port && p["protocol"] != "UDP");
    let Some(port) = port.or(is_headless.then_some(Json::Null)) else {
        return Err(format!("The {named} has no port {}.", target.port));
    };
    let name = |port: &Json| port["name"].as_str().unwrap_or_default().to_owned();
    let (mut found, mut unready, mut strangers) = (Vec::new(), 0, 0);
    for subset in endpoints.map(|e| items(&e["subsets"])).unwrap_or_default() {
        unready += items(&subset["notReadyAddresses"]).len();
        let of_subset =
            items(&subset["ports"]).iter().find(|p| name(p) == name(&port)).and_then(|p| u16::try_from(p["port"].as_u64()?).ok());
        let number = if is_headless { Some(target.port) } else { of_subset };
        let Some(number) = number else { continue };
        for address in items(&subset["addresses"]) {
            match address["targetRef"]["name"].as_str().filter(|_| address["targetRef"]["kind"] == "Pod") {
                Some(pod) => found.push((pod.to_owned(), number)),
                None => strangers += 1,
            }
        }
    }
    match (found.is_empty(), strangers, unready) {
        (false, ..) => Ok(found),
        (_, 1.., _) => Err(format!("What is behind the {named} are no pods, and only to pods there is a way.")),
        (.., 0) => Err(format!("There is no pod behind the {named}.")),
        (.., 1) => Err(format!("The pod behind the {named} is not ready.")),
        (.., many) => Err(format!("None of the {many} pods behind the {named} is ready.")),
    }
}

/// Accepts until it is ended. The client is held weakly, for it holds this.
async fn listen(listener: TcpListener, client: Weak<Inner>, target: Target, seen: Seen) {
    let mut running = JoinSet::new();
    let mut turn = 0usize;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Some(inner) = client.upgrade() else { break };
                match accepted {
                    Ok((local, _)) => {
                        turn = turn.wrapping_add(1);
                        running.spawn(connect(local, Client(inner), target.clone(), turn, seen.clone()));
                    }
                    // Out of files, for one: that passes.
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
            Some(_) = running.join_next() => {}
        }
    }
}

/// One connection, from its start to its end. What goes wrong ends it: who connects is told by that, and why when asking for the way again.
async fn connect(local: TcpStream, client: Client, target: Target, turn: usize, seen: Seen) {
    let fresh = seen.lock().unwrap_or_else(PoisonError::into_inner).clone().filter(|(at, _)| at.elapsed() < FRESH);
    let mut pods = match fresh {
        Some((_, pods)) => pods,
        None => match candidates(&client, &target).await {
            Ok(pods) => {
                remember(&seen, pods.clone());
                pods
            }
            Err(_) => return,
        },
    };
    let count = pods.len().max(1);
    pods.rotate_left(turn % count);
    let Ok(kube) = client.0.kube().await else { return };
    // Only the stream is held on to from here.
    drop(client);
    let api: Api<Pod> = Api::namespaced(kube, &target.namespace);
    for (pod, port) in pods.into_iter().take(TRIES) {
        let ports = [port];
        if let Ok(Ok(opened)) = tokio::time::timeout(OPEN_LIMIT, api.portforward(&pod, &ports)).await {
            drop(api);
            return copy(local, opened, port).await;
        }
    }
    // Whoever tries again is not sent there again.
    *seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Both ways until either side ends. There is no way to end one direction alone in this protocol.
async fn copy(mut local: TcpStream, mut opened: kube::api::Portforwarder, port: u16) {
    let (Some(remote), Some(refused)) = (opened.take_stream(port), opened.take_error(port)) else { return };
    let _ = local.set_nodelay(true);
    let refused = async {
        // Nothing is said when all went well.
        if refused.await.is_none() {
            std::future::pending::<()>().await;
        }
    };
    let (mut from_pod, mut to_pod) = tokio::io::split(remote);
    let (mut from_here, mut to_here) = local.split();
    tokio::select! {
        _ = tokio::io::copy(&mut from_pod, &mut to_here) => {}
        _ = tokio::io::copy(&mut from_here, &mut to_pod) => { let _ = to_pod.shutdown().await; }
        () = refused => {}
    }
    let _ = to_here.shutdown().await;
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;
