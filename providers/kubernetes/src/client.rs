//! One cluster's client: calls within a time limit, and which kinds the server knows. Nothing else builds requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karmaform_model::{Connections, Diagnostic};
use kube::api::{DeleteParams, GetParams, ListParams, LogParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::Request;
use serde_json::Value as Json;
use tokio::time::{Instant, sleep};

use crate::again::Health;
use crate::builtin;
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
/// Objects per page of a list.
const PAGE: u32 = 500;
/// What a server says that has too much to do.
const BUSY: u16 = 429;
/// What a server says of the rest of a list that is too old.
const EXPIRED: u16 = 410;
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

/// A kind as the server serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// `Deployment`
    pub(crate) kind: String,
    /// `deployments`
    pub(crate) plural: String,
    /// Lives in namespaces.
    pub(crate) namespaced: bool,
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

    /// What is listed at a path, as a table; a server that makes none gives the list itself.
    pub(crate) async fn table(&self, path: &str, limit: Duration) -> Result<Json, Failure> {
        let request = Request::new(path).list(&ListParams::default().limit(PAGE)).map(|mut request| {
            // https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables
            let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
            request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static(accept));
            request
        });
        read(&self.send(request, limit).await?)
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

    /// All objects of a kind in a place.
    pub(crate) async fn list(&self, place: &Place) -> Result<Vec<Json>, Failure> {
        self.pages(place, ListParams::default()).await
    }

    /// Those of them that this selector of labels chooses.
    pub(crate) async fn labelled(&self, place: &Place, labels: &str) -> Result<Vec<Json>, Failure> {
        self.pages(place, ListParams::default().labels(labels)).await
    }

    async fn pages(&self, place: &Place, parameters: ListParams) -> Result<Vec<Json>, Failure> {
        let first = parameters.limit(PAGE);
        let (mut found, mut parameters, mut tries) = (Vec::new(), first.clone(), 0);
        loop {
            let page = self.call(place.request().list(&parameters)).await;
            let mut page = match page {
                // Its rest is compacted away by now: it is begun anew (kubernetes.io/docs/reference/using-api/api-concepts, section
                // "Retrieving large results sets in chunks").
                Err(failure) if failure.code() == Some(EXPIRED) && parameters.continue_token.is_some() && tries < RACES => {
                    tries += 1;
                    found.clear();
                    parameters = first.clone();
                    continue;
                }
                page => page.inspect_err(|f| self.mind(place, f))?,
            };
            if let Some(Json::Array(items)) = page.get_mut("items").map(Json::take) {
                found.extend(items);
            }
            match page["metadata"]["continue"].as_str().filter(|t| !t.is_empty()) {
                Some(token) => parameters = parameters.continue_token(token),
                None => return Ok(found),
            }
        }
    }

    /// The objects of a kind that these selectors choose; an empty selector chooses all. One page of them.
    pub(crate) async fn select(&self, place: &Place, labels: &str, fields: &str) -> Result<Vec<Json>, Failure> {
        let parameters = ListParams::default().labels(labels).fields(fields).limit(PAGE);
        let mut page = self.call(place.request().list(&parameters)).await?;
        Ok(page
            .get_mut("items")
            .map(Json::take)
            .and_then(|items| if let Json::Array(i) = items { Some(i) } else { None })
            .unwrap_or_default())
    }

    /// The last lines that a container wrote; those of the one before the last restart if `previous`.
    pub(crate) async fn log(&self, pods: &Place, pod: &str, container: &str, lines: i64, previous: bool) -> Result<String, Failure> {
        let parameters = LogParams { container: Some(container.to_owned()), tail_lines: Some(lines), previous, ..LogParams::default() };
        self.send(pods.request().logs(pod, &parameters), CALL_LIMIT).await
    }

    /// Server-side apply under our name.
    pub(crate) async fn apply(&self, place: &Place, name: &str, manifest: &Json, how: How) -> Result<Json, Failure> {
        let mut parameters = PatchParams::apply(MANAGER);
        parameters.force = how.force;
        parameters.dry_run = how.dry_run;
        let mut tries = 0;
        let applied = loop {
            tries += 1;
            match self.merge(place, name, manifest, how, &parameters).await {
                // Others write to the same object.
                Err(failure) if failure.is_race() && tries <= RACES => sleep(RACE_PAUSE * tries).await,
                applied => break applied,
            }
        };
        applied.map_err(|failure| {
            self.mind(place, &failure);
            if failure.is_unserved() { Failure::Unserved(place.served.kind.clone(), place.api_version.clone()) } else { failure }
        })
    }

    async fn merge(&self, place: &Place, name: &str, manifest: &Json, how: How, parameters: &PatchParams) -> Result<Json, Failure> {
        let request = || place.request().patch(name, parameters, &Patch::Apply(manifest));
        if place.served.kind != "APIService" {
            return self.call(request()).await;
        }
        // Servers of 1.20 panic over it and cut the connection (kubernetes#98576). Once may be an accident.
        let mut cuts = 0;
        while cuts < 2 && !self.0.no_services.load(Ordering::Relaxed) {
            match self.once(request(), self.0.connect + CALL_LIMIT).await {
                Err(failure) if failure.is_cut() && !failure.is_refused_connection() && !matches!(failure, Failure::Timeout) => cuts += 1,
                Err(failure) if failure.is_trouble() => return self.call(request()).await,
                other => return other.and_then(|text| read(&text)),
            }
        }
        let written = self.write(place, name, manifest, how).await?;
        self.0.no_services.store(true, Ordering::Relaxed);
        Ok(written)
    }

    /// Makes an object, or merges a manifest into it: for a server that keeps no account of who owns which field.
    async fn write(&self, place: &Place, name: &str, manifest: &Json, how: How) -> Result<Json, Failure> {
        let manager = Some(MANAGER.to_owned());
        if self.get(place, name).await?.is_some() {
            let parameters = PatchParams { dry_run: how.dry_run, field_manager: manager, ..PatchParams::default() };
            return self.call(place.request().patch(name, &parameters, &Patch::Merge(manifest))).await;
        }
        let parameters = PostParams { dry_run: how.dry_run, field_manager: manager };
        self.call(place.request().create(&parameters, manifest.to_string().into_bytes())).await
    }

    /// A server that does not serve what is usual, or not any more what it said, is asked what it serves from now on.
    fn mind(&self, place: &Place, failure: &Failure) {
        if failure.is_unserved() {
            self.0.served.lock().unwrap_or_else(PoisonError::into_inner).remove(&place.api_version);
            self.doubt(&place.api_version);
        }
    }

    /// The server is asked what it serves in this version, and not taken to serve what is usual.
    pub(crate) fn doubt(&self, api_version: &str) {
        self.0.unusual.lock().unwrap_or_else(PoisonError::into_inner).insert(api_version.to_owned());
    }

    /// Takes parts of an object away by a strategic merge patch, if it is still as it was seen.
    pub(crate) async fn strip(&self, place: &Place, live: &Json, mut patch: Json) -> Result<Json, Failure> {
        patch["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let name = live["metadata"]["name"].as_str().unwrap_or_default();
        self.call(place.request().patch(name, &parameters, &Patch::Strategic(patch))).await
    }

    /// Merges a patch into an object under our name (RFC 7396: null takes away).
    pub(crate) async fn patch(&self, place: &Place, name: &str, patch: &Json) -> Result<Json, Failure> {
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        self.call(place.request().patch(name, &parameters, &Patch::Merge(patch))).await
    }

    /// The same for a part of it that is served by itself.
    pub(crate) async fn patch_part(&self, place: &Place, name: &str, part: &str, patch: &Json) -> Result<Json, Failure> {
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        self.call(place.request().patch_subresource(part, name, &parameters, &Patch::Merge(patch))).await
    }

    /// Asks to delete an object; true if there was one of this uid.
    /// A refusal because of a race with others says nothing of the object: then it is looked at.
    pub(crate) async fn delete(&self, place: &Place, name: &str, uid: Option<&str>, policy: PropagationPolicy) -> Result<bool, Failure> {
        let parameters = DeleteParams { propagation_policy: Some(policy), ..deletion_of(uid) };
        let mut tries = 0;
        loop {
            tries += 1;
            match self.call(place.request().delete(name, &parameters)).await {
                Err(failure) if failure.code() == Some(404) => return Ok(false),
                Err(failure) if failure.code() == Some(409) => {
                    let live = self.get(place, name).await?;
                    // Gone, or another one under the same name.
                    if !live.is_some_and(|live| uid.is_none_or(|uid| live["metadata"]["uid"] == uid)) {
                        return Ok(false);
                    }
                    if tries > RACES {
                        return Err(failure);
                    }
                    sleep(RACE_PAUSE * tries).await;
                }
                other => return other.map(|_| true),
            }
        }
    }

    /// Deletes a pod that its node does not end: without waiting for it, and only if it is this one.
    pub(crate) async fn delete_at_once(&self, place: &Place, name: &str, uid: Option<&str>) -> Result<(), Failure> {
        self.delete_within(place, name, uid, 0).await
    }

    /// Deletes a pod, if it is this one, and gives it so many seconds to end, whatever it would have had.
    pub(crate) async fn delete_within(&self, place: &Place, name: &str, uid: Option<&str>, seconds: u32) -> Result<(), Failure> {
        let parameters = DeleteParams { grace_period_seconds: Some(seconds), ..deletion_of(uid) };
        match self.call(place.request().delete(name, &parameters)).await {
            Err(failure) if failure.code() == Some(404) => Ok(()),
            other => other.map(drop),
        }
    }

    /// A kind of a group version; none if it is not served. Asked anew as long as it is not there: a plan may bring it.
    pub(crate) async fn kind(&self, api_version: &str, kind: &str) -> Result<Option<Served>, Failure> {
        let find = |list: &[Served]| list.iter().find(|s| s.kind == kind).cloned();
        let known = self.0.served.lock().unwrap_or_else(PoisonError::into_inner).get(api_version).cloned();
        if let Some(found) = known.as_deref().and_then(|l| find(l)) {
            return Ok(Some(found));
        }
        let is_usual = !self.0.unusual.lock().unwrap_or_else(PoisonError::into_inner).contains(api_version);
        if let Some(found) = builtin::kind(api_version, kind).filter(|_| is_usual) {
            return Ok(Some(found));
        }
        let answer = match self.raw(&root(api_version)).await {
            Ok(answer) => answer,
            Err(failure) if failure.code() == Some(404) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let served = Arc::new(served(&answer));
        let found = find(&served);
        self.0.served.lock().unwrap_or_else(PoisonError::into_inner).insert(api_version.to_owned(), served);
        Ok(found)
    }

    /// All versions of a group that the server serves: `apps/v1`.
    pub(crate) async fn versions(&self, group: &str) -> Result<Vec<String>, Failure> {
        let answer = self.raw(&format!("/apis/{group}")).await?;
        let versions = answer["versions"].as_array().into_iter().flatten();
        Ok(versions.filter_map(|v| v["groupVersion"].as_str().map(str::to_owned)).collect())
    }

    /// The version that the server prefers for a group: `apps/v1`.
    pub(crate) async fn preferred(&self, group: &str) -> Result<Option<String>, Failure> {
        if group.is_empty() {
            return Ok(Some("v1".to_owned()));
        }
        match self.raw(&format!("/apis/{group}")).await {
            Ok(answer) => Ok(answer["preferredVersion"]["groupVersion"].as_str().map(str::to_owned)),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

fn read(text: &str) -> Result<Json, Failure> {
    serde_json::from_str(text).map_err(|e| Failure::Kube(Box::new(kube::Error::SerdeError(e))))
}

/// How to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct How {
    /// Take fields over from others.
    pub(crate) force: bool,
    /// Only tell what would be.
    pub(crate) dry_run: bool,
}

fn served(answer: &Json) -> Vec<Served> {
    let resources = answer["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |r: &Json| {
        let plural = r["name"].as_str().filter(|n| !n.contains('/'))?;
        Some(Served { kind: r["kind"].as_str()?.to_owned(), plural: plural.to_owned(), namespaced: r["namespaced"].as_bool()? })
    };
    resources.iter().filter_map(one).collect()
}

/// A deletion of this one alone, and not of another one under the same name.
fn deletion_of(uid: Option<&str>) -> DeleteParams {
    let preconditions = uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None });
    DeleteParams { preconditions, ..DeleteParams::default() }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
