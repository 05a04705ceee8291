//! The store: an item is a key, its version the revision at which it was written last.

use std::path::Path;
use std::time::Duration;

use etcd_client::{Client, Compare, CompareOp, DeleteOptions, Error, GetOptions, KeyValue, Txn, TxnOp};
use karmaform_model::{BoxFuture, Diagnostic, Found, Item, Object, Serial, StateStore, StoreError, Version};
use tokio::sync::Mutex;

use crate::arguments::{CALL_LIMIT, CONNECT_LIMIT, Settings};
use crate::chunks::{CHUNK, Manifest, chunks};

/// So often a call is tried again that failed at every member for a reason that passes: a change of the leader, a member that restarts.
const AGAIN: usize = 3;
/// The pause before the first of them; it doubles.
const PAUSE: Duration = Duration::from_millis(200);
/// So often a large value is read anew because somebody replaced it meanwhile.
const READS: usize = 5;

/// A state in etcd.
pub struct EtcdStore {
    settings: Settings,
    /// Of the state, and what the keys of all that belongs to it begin with.
    key: String,
    /// What the keys of the states of workspaces other than `default` begin with.
    workspaces: String,
    member: Mutex<Member>,
}

/// The member that is asked: one at a time, so that one that is gone is met once and then left. A client of all members would give each call
/// to any of them.
#[derive(Default)]
struct Member {
    /// Where it stands among the endpoints.
    endpoint: usize,
    /// Opened when it is first used.
    client: Option<Client>,
}

impl EtcdStore {
    /// The state of a workspace, over arguments that fit [`schema`](crate::schema). Paths are relative to `directory`; nothing is asked yet.
    ///
    /// # Errors
    /// For arguments that make no sense, and files that can't be read.
    pub fn open(arguments: &Object, workspace: &str, directory: &Path, home: Option<&Path>) -> Result<Self, Diagnostic> {
        let settings = Settings::read(arguments, directory, home)?;
        let workspaces = format!("{}/workspaces/", settings.prefix);
        let key = if workspace == "default" { settings.prefix.clone() } else { format!("{workspaces}{workspace}") };
        Ok(Self { settings, key, workspaces, member: Mutex::default() })
    }

    fn key(&self, item: &Item) -> String {
        let prefix = &self.key;
        match item {
            Item::State => prefix.clone(),
            Item::Lock => format!("{prefix}/lock"),
            Item::Generation(serial) => format!("{prefix}/generations/{serial:020}"),
            Item::History => format!("{prefix}/history"),
            Item::Scratch(name) => format!("{prefix}/probe/{name}"),
        }
    }

    /// A client of the member that is asked now, and which of the endpoints that is.
    async fn client(&self) -> Result<(usize, Client), (usize, StoreError)> {
        let mut member = self.member.lock().await;
        let endpoint = member.endpoint;
        if let Some(client) = &member.client {
            return Ok((endpoint, client.clone()));
        }
        let connecting = Client::connect(&self.settings.endpoints[endpoint..=endpoint], Some(self.settings.options.clone()));
        let opened = match tokio::time::timeout(CONNECT_LIMIT, connecting).await {
            Ok(opened) => opened.map_err(|e| (endpoint, self.failed(&e)))?,
            Err(_) => return Err((endpoint, StoreError::Unreachable(self.silent("a connection")))),
        };
        member.client = Some(opened.clone());
        Ok((endpoint, opened))
    }

    /// Leaves the member at `endpoint` for the next one, unless another call did so already.
    async fn leave(&self, endpoint: usize) {
        let mut member = self.member.lock().await;
        if member.endpoint == endpoint {
            *member = Member { endpoint: (endpoint + 1) % self.settings.endpoints.len(), client: None };
        }
    }

    fn silent(&self, what: &str) -> String {
        format!("etcd at {} did not give {what} in time", self.settings.endpoints.join(", "))
    }

    /// What etcd said, in a sentence.
    fn failed(&self, error: &Error) -> StoreError {
        let place = self.settings.endpoints.join(", ");
        match error {
            Error::GRpcStatus(status) => {
                let said = format!("etcd at {place} refused: {}", status.message().trim_start_matches("etcdserver: "));
                match status.code() as i32 {
                    // Cancelled, Unknown, DeadlineExceeded, Aborted, Internal, Unavailable: https://grpc.io/docs/guides/status-codes/
                    1 | 2 | 4 | 10 | 13 | 14 => StoreError::Unreachable(format!("etcd at {place} did not answer: {}", status.message())),
                    _ => StoreError::Refused(said),
                }
            }
            Error::TransportError(_) | Error::IoError(_) => StoreError::Unreachable(format!("etcd at {place} can't be reached")),
            other => StoreError::Refused(format!("etcd at {place}: {other}")),
        }
    }

    /// A call, tried again while it is not known whether it was done: at each member without a pause, and then a few times more.
    /// Transactions compare, so one that meets itself changes nothing.
    async fn call<T, F: Future<Output = Result<T, Error>>>(&self, make: impl Fn(Client) -> F) -> Result<T, StoreError> {
        let mut pause = PAUSE;
        let mut last = StoreError::Unreachable(self.silent("an answer"));
        let members = self.settings.endpoints.len();
        for turn in 0..members + AGAIN {
            if turn >= members {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            let endpoint;
            (endpoint, last) = match self.client().await {
                Err(failed) => failed,
                Ok((endpoint, client)) => match tokio::time::timeout(CALL_LIMIT, make(client)).await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(error)) => (endpoint, self.failed(&error)),
                    Err(_) => (endpoint, StoreError::Unreachable(self.silent("an answer"))),
                },
            };
            if !matches!(last, StoreError::Unreachable(_)) {
                break;
            }
            // A connection that failed may never get well again.
            self.leave(endpoint).await;
        }
        Err(last)
    }

    async fn value(&self, key: &str) -> Result<Option<KeyValue>, StoreError> {
        let answer = self.call(async |mut client: Client| client.get(key, None).await).await?;
        Ok(answer.kvs().first().cloned())
    }

    async fn get_now(&self, item: &Item) -> Result<Option<Found>, StoreError> {
        let key = self.key(item);
        for _ in 0..READS {
            let Some(found) = self.value(&key).await? else { return Ok(None) };
            let version = Version(found.mod_revision().to_string());
            let Some(manifest) = Manifest::in_value(found.value()) else {
                return Ok(Some(Found { bytes: found.value().to_vec(), version }));
            };
            if let Some(bytes) = self.put_together(&key, &manifest).await? {
                return Ok(Some(Found { bytes, version }));
            }
        }
        Err(StoreError::Refused(format!("the chunks of {key:?} in etcd are not what was written")))
    }

    /// `None`: they are not there any more, because somebody wrote another value.
    async fn put_together(&self, key: &str, manifest: &Manifest) -> Result<Option<Vec<u8>>, StoreError> {
        let mut bytes = Vec::new();
        for key in manifest.keys(key) {
            match self.value(&key).await? {
                Some(chunk) => bytes.extend_from_slice(chunk.value()),
                None => return Ok(None),
            }
        }
        Ok(manifest.fits(&bytes).then_some(bytes))
    }

    async fn put_now(&self, item: &Item, bytes: Vec<u8>, expected: Option<&Version>) -> Result<Version, StoreError> {
        let key = self.key(item);
        // The chunks of what is replaced are nobody's afterwards.
        let before = if expected.is_some() { self.value(&key).await? } else { None };
        let before = before.and_then(|kv| Manifest::in_value(kv.value()));
        if bytes.len() <= CHUNK {
            let version = self.swap(&key, bytes, expected).await?;
            self.clean(&key, before.as_ref()).await;
            return Ok(version);
        }
        let manifest = Manifest::of(&bytes, format!("{:016x}", fastrand::u64(..)));
        for (chunk, part) in manifest.keys(&key).iter().zip(bytes.chunks(CHUNK)) {
            self.call(async |mut client: Client| client.put(chunk.as_str(), part, None).await).await?;
        }
        match self.swap(&key, manifest.to_value(), expected).await {
            Ok(version) => {
                self.clean(&key, before.as_ref()).await;
                Ok(version)
            }
            Err(error) => {
                // Where it is not known whether they are in use, they stay.
                if !matches!(error, StoreError::Unreachable(_)) && !self.is_in_use(&key, &manifest).await {
                    self.clean(&key, Some(&manifest)).await;
                }
                Err(error)
            }
        }
    }

    /// A swap that was repeated may have met itself: then the chunks are the state's.
    async fn is_in_use(&self, key: &str, manifest: &Manifest) -> bool {
        self.value(key).await.map_or(true, |kv| kv.and_then(|kv| Manifest::in_value(kv.value())).as_ref() == Some(manifest))
    }

    async fn swap(&self, key: &str, value: Vec<u8>, expected: Option<&Version>) -> Result<Version, StoreError> {
        // A key that is not there has revision 0: https://etcd.io/docs/v3.5/learning/api/#transaction
        let revision = expected.map_or(Ok(0), |v| v.0.parse::<i64>()).map_err(|_| StoreError::Changed)?;
        let txn = Txn::new().when([Compare::mod_revision(key, CompareOp::Equal, revision)]).and_then([TxnOp::put(key, value, None)]);
        let answer = self.call(async |mut client: Client| client.txn(txn.clone()).await).await?;
        let revision = answer.header().map(etcd_client::ResponseHeader::revision).filter(|_| answer.succeeded());
        revision.map(|r| Version(r.to_string())).ok_or(StoreError::Changed)
    }

    /// What can't be removed stays; it does no harm.
    async fn clean(&self, key: &str, manifest: Option<&Manifest>) {
        if let Some(manifest) = manifest {
            let prefix = chunks(key, &manifest.id);
            let _ =
                self.call(async |mut client: Client| client.delete(prefix.as_str(), Some(DeleteOptions::new().with_prefix())).await).await;
        }
    }

    async fn delete_now(&self, item: &Item, expected: &Version) -> Result<(), StoreError> {
        let key = self.key(item);
        let Some(found) = self.value(&key).await? else { return Ok(()) };
        let revision = expected.0.parse::<i64>().map_err(|_| StoreError::Changed)?;
        let txn = Txn::new()
            .when([Compare::mod_revision(key.as_str(), CompareOp::Equal, revision)])
            .and_then([TxnOp::delete(key.as_str(), None)]);
        let answer = self.call(async |mut client: Client| client.txn(txn.clone()).await).await?;
        if !answer.succeeded() && self.value(&key).await?.is_some() {
            return Err(StoreError::Changed);
        }
        self.clean(&key, Manifest::in_value(found.value()).as_ref()).await;
        Ok(())
    }

    async fn list(&self) -> Result<Vec<Serial>, StoreError> {
        let mut serials: Vec<_> =
            self.below(&format!("{}/generations/", self.key)).await?.iter().filter_map(|name| name.parse().ok()).collect();
        serials.sort_unstable();
        Ok(serials)
    }

    /// What follows this in the keys that begin with it, in order.
    async fn below(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let options = GetOptions::new().with_prefix().with_keys_only();
        let answer = self.call(async |mut client: Client| client.get(prefix, Some(options.clone())).await).await?;
        let name = |kv: &KeyValue| Some(std::str::from_utf8(kv.key()).ok()?.strip_prefix(prefix)?.to_owned());
        Ok(answer.kvs().iter().filter_map(name).collect())
    }

    /// What else belongs to a state has a slash behind its key.
    async fn list_workspaces(&self) -> Result<Vec<String>, StoreError> {
        let mut names = self.below(&self.workspaces).await?;
        names.retain(|name| !name.contains('/'));
        Ok(names)
    }
}

impl StateStore for EtcdStore {
    fn place(&self) -> String {
        format!("etcd {} at {}", self.key, self.settings.endpoints.join(","))
    }

    fn get<'a>(&'a self, item: &'a Item) -> BoxFuture<'a, Result<Option<Found>, StoreError>> {
        Box::pin(self.get_now(item))
    }

    fn put<'a>(&'a self, item: &'a Item, bytes: Vec<u8>, expected: Option<&'a Version>) -> BoxFuture<'a, Result<Version, StoreError>> {
        Box::pin(self.put_now(item, bytes, expected))
    }

    fn delete<'a>(&'a self, item: &'a Item, expected: &'a Version) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.delete_now(item, expected))
    }

    fn generations(&self) -> BoxFuture<'_, Result<Vec<Serial>, StoreError>> {
        Box::pin(self.list())
    }

    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(self.list_workspaces())
    }
}
