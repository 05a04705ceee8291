//! The state: read, compared with what this run knew, and written. Knows nothing of how a request is made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use karmaform_model::{
    BackendError, BoxFuture, Clear, Diagnostic, LockId, LockInfo, Object, Seal, SealError, Serial, Snapshot, StateBackend, StoreError,
};
use md5::{Digest as _, Md5};
use reqwest::{Method, StatusCode, Url};

use crate::arguments::Settings;
use crate::http::{Client, Patience};
use crate::limits::Limits;
use crate::words::{self, Asked};

/// A state on a server.
///
/// The protocol has no conditional writes. So each write reads the state first and goes through only over what was read or written last;
/// between the two there is a moment in which only the server's lock, or its own look at serials, keeps others out.
pub struct HttpBackend {
    pub(crate) settings: Settings,
    pub(crate) client: Client,
    seal: Arc<dyn Seal>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
pub(crate) struct Memory {
    /// The state as it was read or written last; `Some(None)`: there was none.
    last: Option<Option<Known>>,
    /// Digests of what was sent since then: nobody knows whether it arrived. A server may be away for hours, and states are large.
    pending: Vec<[u8; 16]>,
    /// The lock that this run holds; where there are no locks, the one it would.
    pub(crate) held: Option<LockInfo>,
    /// Who took the lock that this run held. From then on it writes nothing.
    pub(crate) thief: Option<LockInfo>,
}

/// A state that this run knows of.
struct Known {
    /// The serial that whoever calls knows it by.
    told: Serial,
    /// The serial it has.
    serial: Serial,
    bytes: Vec<u8>,
}

impl HttpBackend {
    /// With arguments that fit [`schema`](crate::schema). Asks nobody yet.
    ///
    /// # Errors
    /// If an argument, or a variable in its place, can't be as it is.
    pub fn open(arguments: &Object, environment: &BTreeMap<String, String>) -> Result<Self, Diagnostic> {
        Self::open_within(arguments, environment, Limits::default())
    }

    /// The same with other limits.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_within(arguments: &Object, environment: &BTreeMap<String, String>, limits: Limits) -> Result<Self, Diagnostic> {
        let settings = Settings::read(arguments, environment)?;
        let client = Client::new(&settings.reach, settings.retries, limits).map_err(|why| {
            Diagnostic::error("No connection to the http backend possible", format!("{why}."))
                .with_hint("Check the certificates and the proxies.")
        })?;
        Ok(Self { settings, client, seal: Arc::new(Clear), memory: Mutex::default() })
    }

    /// The same with the state sealed.
    #[must_use]
    pub fn sealed(mut self, seal: Arc<dyn Seal>) -> Self {
        self.seal = seal;
        self
    }

    /// Where the state is.
    pub fn place(&self) -> String {
        self.settings.update.url.to_string()
    }

    /// True if runs are kept apart by a lock.
    pub fn locks(&self) -> bool {
        self.settings.locking.is_some()
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn failed(&self, what: &'static str) -> impl Fn(StoreError) -> BackendError + use<> {
        let place = self.place();
        move |source| BackendError::Store { what, place: place.clone(), source }
    }

    pub(crate) fn asked<'a>(&self, what: &'static str, url: &'a Url, arguments: &'static str) -> Asked<'a> {
        Asked { what, url, arguments, has_login: self.client.has_login() }
    }

    /// From what the server keeps to a state.
    fn decode(&self, bytes: &[u8]) -> Result<Snapshot, BackendError> {
        Snapshot::from_stored(bytes, &*self.seal).map_err(|source| BackendError::Damaged { place: self.place(), source })
    }

    /// From a state to what the server keeps. GitLab refuses what is not JSON with the `serial` at its top.
    fn encode(&self, snapshot: &Snapshot) -> Result<Vec<u8>, BackendError> {
        let sealed = |source: SealError| BackendError::Damaged { place: self.place(), source: source.into() };
        snapshot.to_stored(&*self.seal).map_err(sealed)
    }

    /// The state as it is kept now; `None` if there is none, for which servers have several answers.
    async fn fetch(&self, patience: Patience) -> Result<Option<Vec<u8>>, BackendError> {
        let url = &self.settings.update.url;
        let asked = self.asked("read the state", url, "address");
        let sent = self.client.send(&self.client.request(&Method::GET, url, None), patience).await;
        let reply = sent.map_err(|failure| self.failed("reading")(words::unreachable(asked, &failure)))?;
        match reply.status {
            StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => Ok(None),
            StatusCode::OK => Ok(Some(reply.body).filter(|body| !body.is_empty())),
            _ => Err(self.failed("reading")(words::refused(asked, &reply))),
        }
    }

    async fn read_now(&self) -> Result<Option<Snapshot>, BackendError> {
        let Some(bytes) = self.fetch(Patience::Usual).await? else {
            self.memory().last = Some(None);
            return Ok(None);
        };
        let state = self.decode(&bytes)?;
        self.memory().last = Some(Some(Known { told: state.serial, serial: state.serial, bytes }));
        Ok(Some(state))
    }

    async fn write_now(&self, expected: Option<Serial>, next: &Snapshot) -> Result<(), BackendError> {
        if let Some(thief) = self.memory().thief.clone() {
            return Err(BackendError::LockLost(Some(Box::new(thief))));
        }
        let found = self.fetch(Patience::Usual).await?;
        let over = self.check(expected, found.as_deref())?;
        // It may be over a write of ours that whoever calls knows nothing of, and a server that keeps each serial once, like GitLab, wants
        // another one.
        let serial = next.serial.max(over.map_or(0, |serial| serial.saturating_add(1)));
        let bytes = if serial == next.serial { self.encode(next)? } else { self.encode(&Snapshot { serial, ..next.clone() })? };
        if let Err((error, answer)) = self.update(bytes.clone()).await {
            // What the answer does not say, the state does.
            let is_there = match self.fetch(Patience::None).await {
                Ok(now) if self.same(now.as_deref(), Some(&bytes)) => true,
                Ok(now) if !self.same(now.as_deref(), found.as_deref()) => {
                    let now = now.map(|now| self.decode(&now)).transpose()?;
                    // One of ours that was sent before may have arrived only now. The next write goes over that.
                    let is_ours = now.as_ref().is_some_and(|state| self.memory().pending.contains(&digest(state)));
                    if !is_ours {
                        return Err(conflict(expected, now.map(|state| state.serial)));
                    }
                    false
                }
                _ => false,
            };
            if !is_there {
                // It may still arrive.
                let sent = self.decode(&bytes).ok().as_ref().map(digest);
                self.memory().pending.extend(sent);
                return Err(self.explained(error, answer).await);
            }
        }
        let mut memory = self.memory();
        memory.last = Some(Some(Known { told: next.serial, serial, bytes }));
        memory.pending.clear();
        Ok(())
    }

    /// The serial of what was found, if it may be written over: it is what this run read or wrote last. If it did neither, or somebody else
    /// tells it what to expect, the serial decides.
    fn check(&self, expected: Option<Serial>, found: Option<&[u8]>) -> Result<Option<Serial>, BackendError> {
        let memory = self.memory();
        let known = memory.last.as_ref().filter(|last| last.as_ref().map(|known| known.told) == expected);
        if let Some(last) = known
            && last.as_ref().map(|known| known.bytes.as_slice()) == found
        {
            return Ok(last.as_ref().map(|known| known.serial));
        }
        let state = found.map(|found| self.decode(found)).transpose()?;
        let serial = state.as_ref().map(|state| state.serial);
        let is_expected = match known {
            Some(last) => self.same(last.as_ref().map(|known| known.bytes.as_slice()), found),
            None => serial == expected,
        };
        let is_ours = || state.as_ref().is_some_and(|state| memory.pending.contains(&digest(state)));
        if is_expected || is_ours() { Ok(serial) } else { Err(conflict(expected, serial)) }
    }

    /// True for the same state, however a server spells it.
    fn same(&self, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
        let text = |bytes: &[u8]| self.decode(bytes).ok().map(|state| state.to_text());
        match (one, other) {
            (Some(one), Some(other)) => one == other || text(one).is_some_and(|one| Some(one) == text(other)),
            (one, other) => one == other,
        }
    }

    /// Sends a state. The lock's id goes with it, so that a server that knows it can refuse it from anybody else.
    async fn update(&self, bytes: Vec<u8>) -> Result<(), (StoreError, Option<StatusCode>)> {
        let door = &self.settings.update;
        let mut url = door.url.clone();
        if let (true, Some(held)) = (self.locks(), self.memory().held.as_ref()) {
            url.query_pairs_mut().append_pair("ID", &held.id);
        }
        let asked = self.asked("write the state", &door.url, "address and update_method");
        let sent = self.client.send(&self.client.request(&door.method, &url, Some(bytes)), Patience::Usual).await;
        match sent {
            Ok(reply) if reply.status.is_success() => Ok(()),
            Ok(reply) => Err((words::refused(asked, &reply), Some(reply.status))),
            Err(failure) => Err((words::unreachable(asked, &failure), None)),
        }
    }

    /// What kept a write from being done: perhaps that the lock is not this run's any more. GitLab's answer to that is 500.
    async fn explained(&self, error: StoreError, answer: Option<StatusCode>) -> BackendError {
        let may_be_why = answer.is_some_and(|status| matches!(status.as_u16(), 400 | 409 | 412 | 422 | 423 | 500));
        let lost = if may_be_why { self.lost().await } else { None };
        let with = |said: String| format!("{said} The lock was not held by this run any more, which may be why.");
        self.failed("writing")(match (lost, error) {
            (Some(Some(holder)), _) => return BackendError::LockLost(Some(Box::new(holder))),
            (Some(None), StoreError::Unreachable(said)) => StoreError::Unreachable(with(said)),
            (Some(None), StoreError::Refused(said)) => StoreError::Refused(with(said)),
            (_, error) => error,
        })
    }
}

/// Of a state, however a server spells it. It only tells one from another: whoever can write there needs no tricks.
fn digest(state: &Snapshot) -> [u8; 16] {
    Md5::digest(state.to_text()).into()
}

fn conflict(expected: Option<Serial>, found: Option<Serial>) -> BackendError {
    BackendError::Conflict { expected: expected.unwrap_or(0), found: found.unwrap_or(0) }
}

impl StateBackend for HttpBackend {
    fn read(&self) -> BoxFuture<'_, Result<Option<Snapshot>, BackendError>> {
        Box::pin(self.read_now())
    }

    fn write<'a>(&'a self, expected: Option<Serial>, next: &'a Snapshot) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.write_now(expected, next))
    }

    fn lock<'a>(&'a self, who: &'a LockInfo) -> BoxFuture<'a, Result<LockId, BackendError>> {
        Box::pin(self.lock_now(who))
    }

    fn unlock<'a>(&'a self, id: &'a LockId) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.unlock_now(id))
    }

    /// The protocol can't renew a lock, so there is no lease; others write here all the same.
    fn is_shared(&self) -> bool {
        true
    }
}
