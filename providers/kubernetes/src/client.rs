//! One cluster's client: calls within a time limit. Nothing else builds requests.

mod changes;
mod deletions;
mod kinds;
mod lists;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karmaform_model::{Connections, Diagnostic};
use kube::api::{GetParams, ListParams, LogParams, PostParams};
use kube::core::Request;
use serde_json::Value as Json;
use tokio::time::{Instant, sleep};

pub(crate) use self::changes::How;
pub(crate) use self::kinds::Served;
use crate::again::Health;
use crate::connection::{Options, Server};
use crate::failure::{Call, Failure};
use crate::forward::Forwards;
use crate::pace::Pace;
use crate::through::Through;

/// Under this name fields are ours.
pub(crate) const MANAGER: &str = "karmaform";
/// The longest wait for one answer. Servers end calls themselves after 60 s; dry runs go through webhooks, which have up to 30 s.
const CALL_LIMIT: Duration = Duration::from_secs(45);
/// How often a change that lost a race is tried again, and the first pause before that.
const RACES: u32 = 4;
const RACE_PAUSE: Duration = Duration::from_millis(50);
/// What a server says that has too much to do.
const BUSY: u16 = 429;
/// Requests at a time.
const AT_ONCE: usize = 8;

/// A cluster.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<Inner>, pub(crate) Needed);

/// Whether it must be there when it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// That it does not answer is an error.
    Yes,
    /// That it does not answer is worth a warning.
    No,
}

/// What all who use the same cluster share.
pub(crate) struct Inner {
    way: Way,
    server: Server,
    connect: Duration,
    /// What a group version serves: `v1`, `apps/v1`.
    served: Mutex<BTreeMap<String, Arc<Vec<Served>>>>,
    /// Group versions of Kubernetes' own that this server turned out not to serve as is usual.
    unusual: Mutex<BTreeSet<String>>,
    /// How it was when it was last asked.
    health: Health,
    /// How often it is asked.
    pace: Pace,
    /// It ends connections when APIServices are applied.
    no_services: AtomicBool,
    /// For a run that only looks: nothing but reads is sent.
    only_looks: bool,
    /// What was tried from it with success.
    passed: Mutex<BTreeSet<String>>,
    /// The ways through it.
    pub(crate) forwards: Forwards,
}

enum Way {
    Straight(kube::Client),
    Through(Box<Through>),
}

/// Where objects of one kind are: what a request goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// `apps/v1`
    pub(crate) api_version: String,
    /// What it is.
    pub(crate) served: Served,
    /// None for the cluster.
    pub(crate) namespace: Option<String>,
}

impl Place {
    fn request(&self) -> Request {
        let namespace = self.namespace.as_ref().map(|n| format!("/namespaces/{n}")).unwrap_or_default();
        Request::new(format!("{}{namespace}/{}", root(&self.api_version), self.served.plural))
    }

    /// A call to it, for messages.
    pub(crate) fn call(&self, verb: &'static str, name: &str) -> Call {
        Call { verb, resource: self.served.plural.clone(), namespace: self.namespace.clone(), name: name.to_owned() }
    }
}

fn root(api_version: &str) -> String {
    if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") }
}

impl Inner {
    /// Reads the configuration and makes the client. Nothing is asked yet, but programs that give credentials are run. What is behind
    /// another connection is opened when it is used: it need not be there.
    pub(crate) async fn open(options: Options, connections: Arc<dyn Connections>) -> Result<Self, Diagnostic> {
        let (connect, pace, only_looks) = (options.timeout, Pace::new(options.every), connections.only_looks());
        if let Some(beyond) = options.beyond()? {
            let server = Server { url: beyond.place.clone(), ca: String::new(), is_verified: true };
            let way = Way::Through(Box::new(Through::new(options, beyond, connections)));
            return Ok(Self::new(way, server, (connect, pace), only_looks));
        }
        let config = options.config().await?;
        let server = Server::of(&config);
        // Those programs are waited for where waiting is allowed.
        let made = tokio::task::spawn_blocking(move || kube::Client::try_from(config)).await;
        let kube = match made {
            Ok(Ok(kube)) => kube,
            Ok(Err(error)) => return Err(Failure::Kube(Box::new(error)).diagnostic(&server.url, &Call::none(), &[])),
            Err(_) => return Err(Diagnostic::error("No client for the cluster", "Making the client ended before there was one.")),
        };
        let way = Way::Straight(kube);
        Ok(Self::new(way, server, (connect, pace), only_looks))
    }

    fn new(way: Way, server: Server, (connect, pace): (Duration, Pace), only_looks: bool) -> Self {
        let (served, unusual) = (Mutex::default(), Mutex::default());
        let (health, no_services) = (Health::default(), AtomicBool::new(false));
        let (passed, forwards) = (Mutex::default(), Forwards::default());
        Self { way, server, connect, served, unusual, health, pace, no_services, only_looks, passed, forwards }
    }

    /// The library's client.
    pub(crate) async fn kube(&self) -> Result<kube::Client, Failure> {
        match &self.way {
            Way::Straight(kube) => Ok(kube.clone()),
            Way::Through(through) => through.client().await,
        }
    }

    /// Forgets a way through another connection.
    pub(crate) async fn close(&self) {
        if let Way::Through(through) = &self.way {
            through.close().await;
        }
    }
}

type Built = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

impl Client {
    /// The server's address, for messages.
    pub(crate) fn place(&self) -> &str {
        &self.0.server.url
    }

    /// What the way says of the server.
    pub(crate) fn server(&self) -> &Server {
        &self.0.server
    }

    /// True if it is reached through another connection.
    pub(crate) fn is_through(&self) -> bool {
        matches!(self.0.way, Way::Through(_))
    }

    /// How it is reached, if that is through another connection.
    pub(crate) fn through(&self) -> Option<&Through> {
        match &self.0.way {
            Way::Straight(_) => None,
            Way::Through(through) => Some(through),
        }
    }

    /// True in a run that only looks.
    pub(crate) fn only_looks(&self) -> bool {
        self.0.only_looks
    }

    /// True if this was tried with success before.
    pub(crate) fn has_passed(&self, what: &str) -> bool {
        self.0.passed.lock().unwrap_or_else(PoisonError::into_inner).contains(what)
    }

    /// Remembers that this was tried with success, as long as this client is there.
    pub(crate) fn passed(&self, what: String) {
        self.0.passed.lock().unwrap_or_else(PoisonError::into_inner).insert(what);
    }

    /// How many requests are best under way at the same time.
    pub(crate) async fn at_once(&self) -> usize {
        match &self.0.way {
            Way::Straight(_) => AT_ONCE,
            Way::Through(through) => through.at_once().await,
        }
    }

    async fn call(&self, request: Built) -> Result<Json, Failure> {
        read(&self.send(request, CALL_LIMIT).await?)
    }

    /// The answer's text. What goes wrong on the way, or at the server for a moment, is not seen from here: the request is made again.
    async fn send(&self, request: Built, limit: Duration) -> Result<String, Failure> {
        let request = request.map_err(|e| Failure::Kube(Box::new(kube::Error::BuildRequest(e))))?;
        let (only_reads, health) = (request.method() == http::Method::GET, &self.0.health);
        if !only_reads && self.only_looks() {
            let detail =
                format!("A {} was about to be sent to {} in a run that only looks. This is a bug.", request.method(), self.place());
            return Err(Failure::Way(Box::new(Diagnostic::error("A run that only looks was to change something", detail))));
        }
        let (start, mut tries) = (Instant::now(), 0);
        loop {
            tries += 1;
            let answer = self.once(Ok(request.clone()), health.limit(only_reads, tries, self.0.connect + limit)).await;
            let Err(failure) = answer else { return answer };
            // A server that is about to come is asked again by whoever waits for it; one that only wants to be asked less often is there.
            let is_to_come = self.is_through() && failure.code() != Some(BUSY);
            let pause = if is_to_come { None } else { health.pause(&failure, only_reads, tries, start.elapsed()) };
            let Some(pause) = pause else { return Err(failure) };
            sleep(pause).await;
        }
    }

    async fn once(&self, request: Built, limit: Duration) -> Result<String, Failure> {
        let request = request.map_err(|e| Failure::Kube(Box::new(kube::Error::BuildRequest(e))))?;
        self.0.pace.turn().await;
        let work = async { self.0.kube().await?.request_text(request).await.map_err(|e| Failure::Kube(Box::new(e))) };
        let answer = tokio::time::timeout(limit, work).await.unwrap_or(Err(Failure::Timeout));
        match &answer {
            Err(failure) if failure.is_cut() => self.0.close().await,
            Err(failure) if failure.is_trouble() || failure.code().is_none() => {}
            _ => self.0.health.answered(),
        }
        answer
    }

    /// What is at a path, as text, within a time.
    pub(crate) async fn text(&self, path: &str, limit: Duration) -> Result<String, Failure> {
        self.send(Request::new(path).list(&ListParams::default()), limit).await
    }

    /// Posts something that is only answered, and not kept.
    pub(crate) async fn create(&self, path: &str, body: &Json) -> Result<Json, Failure> {
        self.call(Request::new(path).create(&PostParams::default(), body.to_string().into_bytes())).await
    }

    /// What is at a path.
    pub(crate) async fn raw(&self, path: &str) -> Result<Json, Failure> {
        self.call(Request::new(path).list(&ListParams::default())).await
    }

    /// One object.
    pub(crate) async fn get(&self, place: &Place, name: &str) -> Result<Option<Json>, Failure> {
        match self.call(place.request().get(name, &GetParams::default())).await {
            Err(failure) if failure.code() == Some(404) => {
                self.mind(place, &failure);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// The last lines that a container wrote; those of the one before the last restart if `previous`.
    pub(crate) async fn log(&self, pods: &Place, pod: &str, container: &str, lines: i64, previous: bool) -> Result<String, Failure> {
        let parameters = LogParams { container: Some(container.to_owned()), tail_lines: Some(lines), previous, ..LogParams::default() };
        self.send(pods.request().logs(pod, &parameters), CALL_LIMIT).await
    }
}

fn read(text: &str) -> Result<Json, Failure> {
    serde_json::from_str(text).map_err(|e| Failure::Kube(Box::new(kube::Error::SerdeError(e))))
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
