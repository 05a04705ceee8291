//! The way into a bucket: requests that are signed, what goes with each, and lists. Knows neither states nor files.
//!
//! The requests are made here and not by a library's store, because what matters is in what a library hides: the answer to a lost
//! race, which error it was, when to come back, and what an ETag looks like to the store.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use karmaform_model::{Diagnostic, Object, StoreError, Version};
use object_store::client::HttpRequestBody;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::access::Access;
use crate::http::{Ask, Reply, Signature};
use crate::limits::Limits;
use crate::place::Bucket;
use crate::settings::{Encryption, Settings, Surroundings};
use crate::words::{self, Refusal, Where};

/// A bucket that can be asked.
pub(crate) struct Door {
    pub(crate) settings: Settings,
    /// For sentences.
    pub(crate) place: Where,
    bucket: Bucket,
    access: Access,
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

/// An object of a list.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// In bytes.
    #[serde(default)]
    pub(crate) size: u64,
}

impl Door {
    /// Of the bucket that the arguments name, for a workspace. Files are read; nothing is asked yet.
    pub(crate) fn open(arguments: &Object, workspace: &str, around: Surroundings<'_>, limits: Limits) -> Result<Self, Diagnostic> {
        let settings = Settings::read(arguments, workspace, around)?;
        let own = settings.endpoints.s3.is_some();
        let access = Access::of(arguments, around, &settings.endpoints, &settings.reach, own, limits)?;
        let bucket = Bucket::of(&settings, &access.region)?;
        let place = Where { endpoint: bucket.endpoint.clone(), bucket: settings.bucket.clone(), region: access.region.clone() };
        Ok(Self { settings, place, bucket, access })
    }

    /// Where the key is, as people name it.
    pub(crate) fn name(&self) -> String {
        format!("s3://{}/{}", self.settings.bucket, self.settings.key)
    }

    async fn send(&self, ask: &Ask) -> Result<Reply, StoreError> {
        let mut again = self.access.credentials.can_change();
        loop {
            let credential = self.access.credentials.get().await?;
            let signature = Signature { credential: &credential, service: "s3", region: &self.place.region };
            let reply = self.access.client.send(ask, Some(signature)).await.map_err(|failure| words::unreachable(&self.place, &failure))?;
            // The answer to a HEAD has no body that could say it.
            let code = || Refusal::of(&reply).code;
            let ended =
                || ask.method == Method::HEAD || ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"].contains(&code().as_str());
            if !(again && matches!(reply.status.as_u16(), 400 | 401 | 403) && ended()) {
                return Ok(reply);
            }
            // Taken back before their time, or the clock is wrong: new ones are asked for once.
            self.access.credentials.forget().await;
            again = false;
        }
    }

    /// Does something to a key.
    pub(crate) async fn on(&self, method: Method, key: &str, headers: HeaderMap, body: HttpRequestBody) -> Result<Reply, StoreError> {
        self.on_with(method, key, &[], headers, body).await
    }

    /// The same with a query.
    pub(crate) async fn on_with(
        &self,
        method: Method,
        key: &str,
        query: &[(&str, &str)],
        headers: HeaderMap,
        body: HttpRequestBody,
    ) -> Result<Reply, StoreError> {
        self.send(&Ask { method, url: self.bucket.object_with(key, query), headers, body }).await
    }

    /// What the store says of an object without giving it; `None` if there is none.
    pub(crate) async fn look(&self, key: &str) -> Result<Option<Reply>, StoreError> {
        let reply = self.on(Method::HEAD, key, self.key_headers(), HttpRequestBody::empty()).await?;
        match reply.status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => Ok(Some(reply)),
            _ => Err(self.refused(&format!("look at {key:?}"), &reply)),
        }
    }

    /// How long to wait after so many tries, where an error came in a way that the client does not see.
    pub(crate) fn pause(&self, tries: u32) -> Duration {
        self.access.client.pause(tries)
    }

    /// The version that an answer names.
    pub(crate) fn version(&self, reply: &Reply, key: &str) -> Result<Version, StoreError> {
        tag(reply).map(|t| Version(t.to_owned())).ok_or_else(|| {
            StoreError::Refused(format!(
                "The store at {} gave no ETag for {key:?} in the bucket {:?}, so nobody could tell who wrote it last; use another store.",
                self.place.endpoint, self.place.bucket
            ))
        })
    }

    /// The store answered with an error. `what` is what it was asked to do, like `read "key"`.
    pub(crate) fn refused(&self, what: &str, reply: &Reply) -> StoreError {
        words::refused(&self.place, what, reply)
    }

    /// The headers without which nothing that was encrypted with a key of one's own is read.
    pub(crate) fn key_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Encryption::Customer { key, md5 } = &self.settings.encryption {
            let name = "x-amz-server-side-encryption-customer-";
            set(&mut headers, &format!("{name}algorithm"), "AES256");
            set(&mut headers, &format!("{name}key"), key);
            set(&mut headers, &format!("{name}key-md5"), md5);
        }
        headers
    }

    /// The headers of what makes an object: of which type it is, how it is encrypted, and who may read it.
    pub(crate) fn write_headers(&self, content_type: &'static str) -> HeaderMap {
        let mut headers = self.key_headers();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        match &self.settings.encryption {
            Encryption::Bucket | Encryption::Customer { .. } => {}
            Encryption::Aes256 => set(&mut headers, "x-amz-server-side-encryption", "AES256"),
            Encryption::Kms(key) => {
                set(&mut headers, "x-amz-server-side-encryption", "aws:kms");
                set(&mut headers, "x-amz-server-side-encryption-aws-kms-key-id", key);
            }
        }
        if let Some(acl) = &self.settings.acl {
            set(&mut headers, "x-amz-acl", acl);
        }
        headers
    }

    /// Adds the checksum of what is written whole.
    pub(crate) fn add_checksum(&self, headers: &mut HeaderMap, bytes: &[u8]) {
        if self.settings.checksum {
            set(headers, "x-amz-sdk-checksum-algorithm", "SHA256");
            set(headers, "x-amz-checksum-sha256", &STANDARD.encode(Sha256::digest(bytes)));
        }
    }

    /// The objects whose keys begin like this, in the store's order.
    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        let mut from: Option<String> = None;
        loop {
            let url = self.bucket.list(prefix, from.as_deref());
            let ask = Ask { method: Method::GET, url, headers: HeaderMap::new(), body: HttpRequestBody::empty() };
            let reply = self.send(&ask).await?;
            if !reply.status.is_success() {
                return Err(self.refused(&format!("list {prefix:?}"), &reply));
            }
            let text = String::from_utf8_lossy(&reply.body);
            let page: Listed = quick_xml::de::from_str(&text).map_err(|_| {
                let Where { endpoint, bucket, .. } = &self.place;
                StoreError::Refused(format!(
                    "What {endpoint} answered is not a list of what is in the bucket {bucket:?}; check the endpoint."
                ))
            })?;
            entries.extend(page.contents);
            match page.next_continuation_token.filter(|next| page.is_truncated && from.as_ref() != Some(next)) {
                Some(next) => from = Some(next),
                None => return Ok(entries),
            }
        }
    }
}

/// The ETag of an answer. A proxy that repacks an answer marks its tag as weak, and then it would never match again.
pub(crate) fn tag(reply: &Reply) -> Option<&str> {
    reply.headers.get(ETAG).and_then(|t| t.to_str().ok()).map(|t| t.trim_start_matches("W/")).filter(|t| !t.is_empty())
}

/// Sets a header; what is set here was checked to fit in one.
pub(crate) fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}
