//! The store: a state, its lock and its generations as objects of a bucket, each written only if it is as expected.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method};
use karmaform_model::{BoxFuture, Diagnostic, Found, Item, Object, Serial, StateStore, StoreError, Version};
use object_store::client::HttpRequestBody;

use crate::door::{Door, set};
use crate::http::Reply;
use crate::limits::Limits;
use crate::names;
use crate::settings::{Settings, Surroundings};
use crate::words::Refusal;

/// A state in a bucket.
pub struct S3Store {
    door: Door,
    /// The store compares ETags without their quotes (Ceph's gateway up to 16 does). Found out once, then remembered.
    bare_tags: AtomicBool,
}

/// What a request expects to find.
#[derive(Clone, Copy)]
enum Condition<'a> {
    None,
    Absent,
    Is(&'a Version),
}

impl S3Store {
    /// Opens the state of a workspace (`default` or another). `arguments` fit [`schema`](crate::schema); what they leave open is looked up
    /// in `environment` and in `.aws` below `home`. Files are read; nothing is asked yet.
    pub fn open(
        arguments: &Object,
        workspace: &str,
        environment: &BTreeMap<String, String>,
        home: Option<&Path>,
    ) -> Result<Self, Diagnostic> {
        Self::open_within(arguments, workspace, environment, home, Limits::default())
    }

    /// The same with other limits of time.
    pub fn open_within(
        arguments: &Object,
        workspace: &str,
        environment: &BTreeMap<String, String>,
        home: Option<&Path>,
        limits: Limits,
    ) -> Result<Self, Diagnostic> {
        let door = Door::open(arguments, workspace, Surroundings { environment, home }, limits)?;
        Ok(Self { door, bare_tags: AtomicBool::new(false) })
    }

    fn key(&self, item: &Item) -> String {
        names::key(&self.door.settings.key, item)
    }

    /// The version an item has now.
    async fn head(&self, key: &str) -> Result<Option<Version>, StoreError> {
        self.door.look(key).await?.map(|reply| self.door.version(&reply, key)).transpose()
    }

    fn write_headers(&self, bytes: &[u8]) -> HeaderMap {
        let mut headers = self.door.write_headers("application/json");
        self.door.add_checksum(&mut headers, bytes);
        headers
    }

    /// Sends a request that must only be done under a condition.
    async fn conditional(
        &self,
        method: Method,
        key: &str,
        mut headers: HeaderMap,
        body: HttpRequestBody,
        condition: Condition<'_>,
        bare: bool,
    ) -> Result<Reply, StoreError> {
        match condition {
            Condition::None => {}
            Condition::Absent => {
                headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
            }
            Condition::Is(Version(tag)) => set(&mut headers, IF_MATCH.as_str(), if bare { tag.trim_matches('"') } else { tag }),
        }
        self.door.on(method, key, headers, body).await
    }

    async fn write(&self, item: &Item, bytes: Vec<u8>, expected: Option<&Version>) -> Result<Version, StoreError> {
        let key = self.key(item);
        let (headers, body) = (self.write_headers(&bytes), HttpRequestBody::from(bytes));
        let condition = expected.map_or(Condition::Absent, Condition::Is);
        let bare = self.bare_tags.load(Ordering::Relaxed);
        let mut reply = self.conditional(Method::PUT, &key, headers.clone(), body.clone(), condition, bare).await?;
        // "Not as expected", and yet it is: this store compares another spelling.
        if let (true, Some(expected), false) = (is_lost(&reply), expected, bare)
            && self.head(&key).await?.as_ref() == Some(expected)
        {
            reply = self.conditional(Method::PUT, &key, headers, body, condition, true).await?;
            self.bare_tags.fetch_or(reply.status.is_success(), Ordering::Relaxed);
        }
        if reply.status.is_success() {
            return match reply.headers.contains_key(ETAG) {
                true => self.door.version(&reply, &key),
                false => self.head(&key).await?.ok_or(StoreError::Changed),
            };
        }
        let gone = expected.is_some() && Refusal::of(&reply).code == "NoSuchKey";
        match is_lost(&reply) || gone {
            true => Err(StoreError::Changed),
            false => Err(self.door.refused(&format!("write {key:?}"), &reply)),
        }
    }

    async fn read(&self, item: &Item) -> Result<Option<Found>, StoreError> {
        let key = self.key(item);
        let reply = self.door.on(Method::GET, &key, self.door.key_headers(), HttpRequestBody::empty()).await?;
        if reply.status.is_success() {
            return Ok(Some(Found { version: self.door.version(&reply, &key)?, bytes: reply.body }));
        }
        // Any web server answers 404. Only a store that says that the key is missing has no state.
        match Refusal::of(&reply).code == "NoSuchKey" {
            true => Ok(None),
            false => Err(self.door.refused(&format!("read {key:?}"), &reply)),
        }
    }

    /// Removes. The version is compared here, and by the store as well if it can: Amazon's can since 2024, others don't look at it.
    async fn remove(&self, item: &Item, expected: &Version) -> Result<(), StoreError> {
        let key = self.key(item);
        let mut bare = self.bare_tags.load(Ordering::Relaxed);
        let mut condition = Condition::Is(expected);
        for _ in 0..3 {
            match self.head(&key).await? {
                None => return Ok(()),
                Some(found) if found != *expected => return Err(StoreError::Changed),
                Some(_) => {}
            }
            let reply = self.conditional(Method::DELETE, &key, HeaderMap::new(), HttpRequestBody::empty(), condition, bare).await?;
            match reply.status.as_u16() {
                200..=299 | 404 => return Ok(()),
                // Somebody was quicker, or a first try was, or it compares another spelling: the next look tells.
                409 | 412 => bare = true,
                501 => condition = Condition::None,
                _ => return Err(self.door.refused(&format!("delete {key:?}"), &reply)),
            }
        }
        Err(StoreError::Changed)
    }

    async fn list_generations(&self) -> Result<Vec<Serial>, StoreError> {
        let state = &self.door.settings.key;
        let entries = self.door.list(&names::generations(state)).await?;
        let mut serials: Vec<_> = entries.iter().filter_map(|entry| names::generation(state, &entry.key)).collect();
        serials.sort_unstable();
        Ok(serials)
    }

    async fn list_workspaces(&self) -> Result<Vec<String>, StoreError> {
        let Settings { workspaces, default_key, .. } = &self.door.settings;
        let entries = self.door.list(workspaces).await?;
        let named = entries.iter().filter_map(|entry| names::workspace(workspaces, default_key, &entry.key));
        let mut names: Vec<_> = named.map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }
}

/// True if the answer says that the condition did not hold. 409 is Amazon's word for a race within the same moment; 304 is what
/// HTTP has for a failed `If-None-Match` on reads, and some stores say it on writes.
fn is_lost(reply: &Reply) -> bool {
    match reply.status.as_u16() {
        412 | 304 => true,
        409 => ["ConditionalRequestConflict", "OperationAborted"].contains(&Refusal::of(reply).code.as_str()),
        _ => false,
    }
}

impl StateStore for S3Store {
    fn place(&self) -> String {
        self.door.name()
    }

    fn get<'a>(&'a self, item: &'a Item) -> BoxFuture<'a, Result<Option<Found>, StoreError>> {
        Box::pin(self.read(item))
    }

    fn put<'a>(&'a self, item: &'a Item, bytes: Vec<u8>, expected: Option<&'a Version>) -> BoxFuture<'a, Result<Version, StoreError>> {
        Box::pin(self.write(item, bytes, expected))
    }

    fn delete<'a>(&'a self, item: &'a Item, expected: &'a Version) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.remove(item, expected))
    }

    fn generations(&self) -> BoxFuture<'_, Result<Vec<Serial>, StoreError>> {
        Box::pin(self.list_generations())
    }

    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(self.list_workspaces())
    }
}
