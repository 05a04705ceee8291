//! The store: a state, its lock and its generations as objects of a bucket, each written only if it is as expected.
//!
//! The five requests are made here and not by a library's store, because what matters is in what a library hides: the answer to a lost
//! race, which error it was, when to come back, and what an ETag looks like to the store.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use karmaform_model::{BoxFuture, Diagnostic, Found, Item, Object, Serial, StateStore, StoreError, Version};
use object_store::client::HttpRequestBody;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::access::Access;
use crate::http::{Ask, Reply, Signature};
use crate::limits::Limits;
use crate::names;
use crate::place::Bucket;
use crate::settings::{Encryption, Settings, Surroundings};
use crate::words::{self, Refusal, Where};

/// A state in a bucket.
pub struct S3Store {
    settings: Settings,
    bucket: Bucket,
    place: Where,
    access: Access,
    /// The store compares ETags without their quotes (Ceph's gateway up to 16 does). Found out once, then remembered.
    bare_tags: AtomicBool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    #[serde(default)]
    contents: Vec<Entry>,
    #[serde(default)]
    is_truncated: bool,
    next_continuation_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    key: String,
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
        let around = Surroundings { environment, home };
        let settings = Settings::read(arguments, workspace, around)?;
        let own = settings.endpoints.s3.is_some();
        let access = Access::of(arguments, around, &settings.endpoints, &settings.reach, own, limits)?;
        let bucket = Bucket::of(&settings, &access.region)?;
        let place = Where { endpoint: bucket.endpoint.clone(), bucket: settings.bucket.clone(), region: access.region.clone() };
        Ok(Self { settings, bucket, place, access, bare_tags: AtomicBool::new(false) })
    }

    async fn send(&self, ask: &Ask) -> Result<Reply, StoreError> {
        let mut again = self.access.credentials.can_change();
        loop {
            let credential = self.access.credentials.get().await?;
            let signature = Signature { credential: &credential, service: "s3", region: &self.place.region };
            let reply = self.access.client.send(ask, Some(signature)).await.map_err(|failure| words::unreachable(&self.place, &failure))?;
            let ended = || ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"].contains(&Refusal::of(&reply).code.as_str());
            if !(again && matches!(reply.status.as_u16(), 400 | 401 | 403) && ended()) {
                return Ok(reply);
            }
            // Taken back before their time, or the clock is wrong: new ones are asked for once.
            self.access.credentials.forget().await;
            again = false;
        }
    }

    async fn on(&self, method: Method, key: &str, headers: HeaderMap, body: HttpRequestBody) -> Result<Reply, StoreError> {
        self.send(&Ask { method, url: self.bucket.object(key), headers, body }).await
    }

    /// The version an item has now.
    async fn head(&self, key: &str) -> Result<Option<Version>, StoreError> {
        let reply = self.on(Method::HEAD, key, self.key_headers(), HttpRequestBody::empty()).await?;
        match reply.status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => Ok(Some(self.version(&reply, key)?)),
            _ => Err(words::refused(&self.place, &format!("look at {key:?}"), &reply)),
        }
    }

    /// The version that an answer names. A proxy that repacks an answer marks its tag as weak, and then it would never match again.
    fn version(&self, reply: &Reply, key: &str) -> Result<Version, StoreError> {
        let tag = reply.headers.get(ETAG).and_then(|t| t.to_str().ok()).map(|t| t.trim_start_matches("W/")).filter(|t| !t.is_empty());
        tag.map(|t| Version(t.to_owned())).ok_or_else(|| {
            StoreError::Refused(format!(
                "The store at {} gave no ETag for {key:?} in the bucket {:?}, so nobody could tell who wrote it last; use another store.",
                self.place.endpoint, self.place.bucket
            ))
        })
    }

    /// The headers without which nothing that was encrypted with a key of one's own is read.
    fn key_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Encryption::Customer { key, md5 } = &self.settings.encryption {
            let name = "x-amz-server-side-encryption-customer-";
            put(&mut headers, &format!("{name}algorithm"), "AES256");
            put(&mut headers, &format!("{name}key"), key);
            put(&mut headers, &format!("{name}key-md5"), md5);
        }
        headers
    }

    fn write_headers(&self, bytes: &[u8]) -> HeaderMap {
        let mut headers = self.key_headers();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.settings.checksum {
            put(&mut headers, "x-amz-sdk-checksum-algorithm", "SHA256");
            put(&mut headers, "x-amz-checksum-sha256", &STANDARD.encode(Sha256::digest(bytes)));
        }
        match &self.settings.encryption {
            Encryption::Bucket | Encryption::Customer { .. } => {}
            Encryption::Aes256 => put(&mut headers, "x-amz-server-side-encryption", "AES256"),
            Encryption::Kms(key) => {
                put(&mut headers, "x-amz-server-side-encryption", "aws:kms");
                put(&mut headers, "x-amz-server-side-encryption-aws-kms-key-id", key);
            }
        }
        if let Some(acl) = &self.settings.acl {
            put(&mut headers, "x-amz-acl", acl);
        }
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
            Condition::Is(Version(tag)) => put(&mut headers, IF_MATCH.as_str(), if bare { tag.trim_matches('"') } else { tag }),
        }
        self.on(method, key, headers, body).await
    }

    async fn write(&self, item: &Item, bytes: Vec<u8>, expected: Option<&Version>) -> Result<Version, StoreError> {
        let key = names::key(&self.settings.key, item);
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
                true => self.version(&reply, &key),
                false => self.head(&key).await?.ok_or(StoreError::Changed),
            };
        }
        let gone = expected.is_some() && Refusal::of(&reply).code == "NoSuchKey";
        match is_lost(&reply) || gone {
            true => Err(StoreError::Changed),
            false => Err(words::refused(&self.place, &format!("write {key:?}"), &reply)),
        }
    }

    async fn read(&self, item: &Item) -> Result<Option<Found>, StoreError> {
        let key = names::key(&self.settings.key, item);
        let reply = self.on(Method::GET, &key, self.key_headers(), HttpRequestBody::empty()).await?;
        if reply.status.is_success() {
            return Ok(Some(Found { version: self.version(&reply, &key)?, bytes: reply.body }));
        }
        // Any web server answers 404. Only a store that says that the key is missing has no state.
        match Refusal::of(&reply).code == "NoSuchKey" {
            true => Ok(None),
            false => Err(words::refused(&self.place, &format!("read {key:?}"), &reply)),
        }
    }

    /// Removes. The version is compared here, and by the store as well if it can: Amazon's can since 2024, others don't look at it.
    async fn remove(&self, item: &Item, expected: &Version) -> Result<(), StoreError> {
        let key = names::key(&self.settings.key, item);
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
                _ => return Err(words::refused(&self.place, &format!("delete {key:?}"), &reply)),
            }
        }
        Err(StoreError::Changed)
    }

    /// The keys that begin like this, in the store's order.
    async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let mut keys = Vec::new();
        let mut from: Option<String> = None;
        loop {
            let url = self.bucket.list(prefix, from.as_deref());
            let ask = Ask { method: Method::GET, url, headers: HeaderMap::new(), body: HttpRequestBody::empty() };
            let reply = self.send(&ask).await?;
            if !reply.status.is_success() {
                return Err(words::refused(&self.place, &format!("list {prefix:?}"), &reply));
            }
            let text = String::from_utf8_lossy(&reply.body);
            let page: Listed = quick_xml::de::from_str(&text).map_err(|_| {
                let Where { endpoint, bucket, .. } = &self.place;
                StoreError::Refused(format!(
                    "What {endpoint} answered is not a list of what is in the bucket {bucket:?}; check the endpoint."
                ))
            })?;
            keys.extend(page.contents.into_iter().map(|e| e.key));
            match page.next_continuation_token.filter(|next| page.is_truncated && from.as_ref() != Some(next)) {
                Some(next) => from = Some(next),
                None => return Ok(keys),
            }
        }
    }

    async fn list_generations(&self) -> Result<Vec<Serial>, StoreError> {
        let keys = self.list(&names::generations(&self.settings.key)).await?;
        let mut serials: Vec<_> = keys.iter().filter_map(|key| names::generation(&self.settings.key, key)).collect();
        serials.sort_unstable();
        Ok(serials)
    }

    async fn list_workspaces(&self) -> Result<Vec<String>, StoreError> {
        let Settings { workspaces, default_key, .. } = &self.settings;
        let keys = self.list(workspaces).await?;
        let mut names: Vec<_> = keys.iter().filter_map(|key| names::workspace(workspaces, default_key, key)).map(str::to_owned).collect();
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

/// Sets a header; what is set here was checked to fit in one.
fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}

impl StateStore for S3Store {
    fn place(&self) -> String {
        format!("s3://{}/{}", self.settings.bucket, self.settings.key)
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
