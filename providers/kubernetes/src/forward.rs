//! Local addresses that lead to pods: a listener per target, and for each connection a port-forward of its own to a pod chosen anew, for pods
//! are replaced by rollouts. Through the API server, so nothing needs to be exposed.
//!
//! Whoever asks for a way connects next. So the way is tried by opening it, which tells more than any look, and what was opened is kept for
//! the first connection: it costs one request and not several.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use karmaform_model::Diagnostic;
use kube::Api;
use kube::api::Portforwarder;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::client::{Client, Inner, Needed};
use crate::failure::Failure;
use crate::forward_target::{Door, Target, candidates, why};

/// The longest wait for one port-forward.
const OPEN_LIMIT: Duration = Duration::from_secs(15);
/// Before accepting again after a failure.
const PAUSE: Duration = Duration::from_millis(50);
/// Pods tried for one connection: one that has just gone may still be listed.
const TRIES: usize = 3;
/// So long what was seen of a target, and a way that was opened and not used, are believed.
const FRESH: Duration = Duration::from_secs(2);

/// What is listened for: by host name and port.
pub(crate) type Forwards = tokio::sync::Mutex<BTreeMap<(String, u16), Forward>>;

/// An open listener; it ends with its client.
pub(crate) struct Forward {
    address: SocketAddr,
    task: AbortHandle,
    kept: Kept,
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What was seen of a target and opened to it last.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Remembered>>);

#[derive(Default)]
struct Remembered {
    pods: Option<(Instant, Vec<Door>)>,
    /// What was opened and not used yet, the newest last: who asks at the same time as another gets a way of its own.
    open: Vec<(Instant, Opened)>,
    turn: usize,
}

/// A port-forward, and the port in the pod.
struct Opened(Portforwarder, u16);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pods to try, another one first each time.
    fn remember(&self, mut pods: Vec<Door>) -> Vec<Door> {
        let mut kept = self.lock();
        kept.pods = Some((Instant::now(), pods.clone()));
        kept.turn = kept.turn.wrapping_add(1);
        let count = pods.len().max(1);
        pods.rotate_left(kept.turn % count);
        pods
    }

    fn pods(&self) -> Option<Vec<Door>> {
        let fresh = self.lock().pods.clone().filter(|(at, _)| at.elapsed() < FRESH);
        fresh.map(|(_, pods)| self.remember(pods))
    }

    /// Nobody is sent there again before it was looked at anew.
    fn forget(&self) {
        let mut kept = self.lock();
        kept.pods = None;
        kept.open.clear();
    }

    fn keep(&self, opened: Opened) {
        let mut kept = self.lock();
        kept.open.retain(|(at, _)| at.elapsed() < FRESH);
        kept.open.push((Instant::now(), opened));
    }

    /// The newest: one that was opened before may lead to what was there before.
    fn take(&self) -> Option<Opened> {
        let (at, opened) = self.lock().open.pop()?;
        (at.elapsed() < FRESH).then_some(opened)
    }
}

/// What keeps a machine from opening one more port.
pub(crate) const LIMITS: &str = "See how many files are open on this machine, and its limits: `ulimit -a`.";

/// A local address that leads to `host:port`; the same one when asked again. Whether something is there is tried each time.
pub(crate) async fn forward(client: &Client, host: &str, port: u16) -> Result<SocketAddr, Diagnostic> {
    let target = Target::parse(host, port).ok_or_else(|| {
        Diagnostic::error(
            "No way through this connection",
            format!("{host} is no name of a Service or a pod in the cluster {}.", client.place()),
        )
        .with_hint("Names are of the form \"SERVICE.NAMESPACE.svc\" or \"POD.SERVICE.NAMESPACE.svc\".")
    })?;
    let (address, kept) = listening(client, host, &target).await?;
    let pods = kept.remember(candidates(client, &target).await?);
    match open(client, &target, pods).await {
        Ok(opened) => kept.keep(opened),
        Err((pod, failure)) => {
            kept.forget();
            return Err(why(client, &target, &pod, failure).await);
        }
    }
    Ok(address)
}

/// Where it is listened for this target; from now on, if it was not.
async fn listening(client: &Client, host: &str, target: &Target) -> Result<(SocketAddr, Kept), Diagnostic> {
    let mut forwards = client.0.forwards.lock().await;
    let key = (host.to_owned(), target.port);
    if let Some(forward) = forwards.get(&key) {
        return Ok((forward.address, forward.kept.clone()));
    }
    let broken = |error: std::io::Error| {
        Diagnostic::error("No local port", format!("A port of this machine to forward from can't be opened: {error}.")).with_hint(LIMITS)
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(broken)?;
    let address = listener.local_addr().map_err(broken)?;
    let kept = Kept::default();
    let task = tokio::spawn(listen(listener, Arc::downgrade(&client.0), target.clone(), kept.clone())).abort_handle();
    forwards.insert(key, Forward { address, task, kept: kept.clone() });
    Ok((address, kept))
}

/// A way to the first of these pods that has one; or the last failure.
async fn open(client: &Client, target: &Target, pods: Vec<Door>) -> Result<Opened, (String, Failure)> {
    let mut failed = (target.namespace.clone(), Failure::Timeout);
    for (pod, port) in pods.into_iter().take(TRIES) {
        let work = async {
            let api: Api<Pod> = Api::namespaced(client.0.kube().await?, &target.namespace);
            api.portforward(&pod, &[port]).await.map_err(|e| Failure::Kube(Box::new(e)))
        };
        failed.1 = match tokio::time::timeout(OPEN_LIMIT, work).await {
            Ok(Ok(opened)) => return Ok(Opened(opened, port)),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::Timeout,
        };
        failed.0 = pod;
    }
    Err(failed)
}

/// Accepts until it is ended. The client is held weakly, for it holds this.
async fn listen(listener: TcpListener, client: Weak<Inner>, target: Target, kept: Kept) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Some(inner) = client.upgrade() else { break };
                match accepted {
                    Ok((local, _)) => {
                        running.spawn(connect(local, Client(inner, Needed::Yes), target.clone(), kept.clone()));
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
async fn connect(local: TcpStream, client: Client, target: Target, kept: Kept) {
    let opened = match kept.take() {
        Some(opened) => opened,
        None => {
            let pods = match kept.pods() {
                Some(pods) => pods,
                None => match candidates(&client, &target).await {
                    Ok(pods) => kept.remember(pods),
                    Err(_) => return,
                },
            };
            match open(&client, &target, pods).await {
                Ok(opened) => opened,
                Err(_) => return kept.forget(),
            }
        }
    };
    // Only the stream is held on to from here.
    drop(client);
    copy(local, opened).await;
}

/// Both ways until either side ends. There is no way to end one direction alone in this protocol.
async fn copy(mut local: TcpStream, Opened(mut opened, port): Opened) {
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
