//! Files as objects of a bucket, sent and fetched in parts: neither the memory nor a line that breaks now and then limits their size.
//!
//! Knows nothing of what is in them. Unlike the state, an object is written whoever wrote it last.

mod upload;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use http::header::RANGE;
use http::{HeaderMap, Method, StatusCode};
use karmaform_model::{Diagnostic, Object, StoreError, Version};
use object_store::client::HttpRequestBody;

use crate::door::{Door, set};
use crate::http::Reply;
use crate::limits::Limits;
use crate::settings::{Surroundings, is_clean};
use crate::words::Refusal;

/// How many bytes a part has: repeated quickly, and not too many requests. Stores take none below 5 MiB, but for the last.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>
const PART: u64 = 16 << 20;
/// Fetched are smaller ones: how long an answer may take does not grow with it.
const PIECE: u64 = 4 << 20;

/// Files as objects of a bucket, below a prefix.
pub struct S3Objects {
    door: Door,
    part: u64,
}

/// An object of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Object {
    /// Its name behind the prefix and the slash.
    pub name: String,
    /// In bytes.
    pub size: u64,
}

/// A piece of an object.
struct Piece {
    version: Version,
    /// How many bytes the whole object has.
    total: u64,
    bytes: Vec<u8>,
}

impl S3Objects {
    /// Opens a prefix in a bucket. `arguments` fit [`schema`](crate::schema), of which `key` is the prefix, without a slash at either end;
    /// what they leave open is looked up in `environment` and in `.aws` below `home`. Files are read; nothing is asked yet.
    ///
    /// # Errors
    /// For arguments that make no sense.
    pub fn open(arguments: &Object, environment: &BTreeMap<String, String>, home: Option<&Path>) -> Result<Self, Diagnostic> {
        Self::open_within(arguments, environment, home, Limits::of_files())
    }

    /// The same with other limits of time, each for one request.
    ///
    /// # Errors
    /// As [`open`](Self::open) has them.
    pub fn open_within(
        arguments: &Object,
        environment: &BTreeMap<String, String>,
        home: Option<&Path>,
        limits: Limits,
    ) -> Result<Self, Diagnostic> {
        let door = Door::open(arguments, "default", Surroundings { environment, home }, limits)?;
        Ok(Self { door, part: PART })
    }

    /// The same in parts of so many bytes instead of 16 MiB.
    #[must_use]
    pub fn in_parts_of(self, bytes: u64) -> Self {
        Self { part: bytes.max(1), ..self }
    }

    /// Where they are, as people name it: `s3://bucket/prefix`.
    pub fn place(&self) -> String {
        self.door.name()
    }

    /// Puts a file there, over what has this name. `name` is a path without a slash at either end.
    ///
    /// # Errors
    /// The file can't be read or changes meanwhile, or the store does not take it. Nothing unfinished is left there, as far as it can be
    /// removed; but what is dropped before it ends leaves parts behind.
    pub async fn put(&self, name: &str, file: &Path) -> Result<(), Diagnostic> {
        let key = self.key(name).map_err(not_taken)?;
        let mut source = upload::Source::open(file)?;
        match source.size() <= self.part {
            true => self.put_whole(&key, &mut source).await?,
            false => self.put_in_parts(&key, &mut source).await?,
        }
        let kept = self.length(&key).await.map_err(not_taken)?;
        let size = source.size_now()?;
        if kept == Some(size) {
            return Ok(());
        }
        let kept = kept.map_or("nothing".to_owned(), |kept| format!("{kept} bytes"));
        let detail = format!("The file {} has {size} bytes, and {}/{name} has {kept} after it was sent.", file.display(), self.place());
        Err(Diagnostic::error(NOT_TAKEN, detail).with_hint("Send it again, and let nothing write to the file meanwhile."))
    }

    /// Writes an object `into`; false if there is none of that name.
    ///
    /// # Errors
    /// It can't be read, changes meanwhile, or can't be written: then what was written so far is of no use.
    pub async fn get(&self, name: &str, into: &mut (dyn Write + Send)) -> Result<bool, Diagnostic> {
        let key = self.key(name).map_err(not_read)?;
        let mut written = 0;
        let mut first: Option<(Version, u64)> = None;
        loop {
            let Some(Piece { version, total, bytes }) = self.piece(&key, written).await.map_err(not_read)? else {
                return if first.is_none() { Ok(false) } else { Err(not_read(self.changed(&key))) };
            };
            let now = (version, total);
            // Compared here and not by the store, since stores differ in how they want a version spelt.
            if *first.get_or_insert_with(|| now.clone()) != now {
                return Err(not_read(self.changed(&key)));
            }
            into.write_all(&bytes).map_err(|e| {
                Diagnostic::error("What the bucket gave can't be written", format!("Writing {}/{name} failed: {e}.", self.place()))
                    .with_hint("Free space where it is written to, or write it elsewhere; then run again.")
            })?;
            written += bytes.len() as u64;
            if written >= total {
                return Ok(true);
            }
        }
    }

    /// What is below the prefix, by name. What this crate would never have named so is left out, like the folders that consoles make.
    ///
    /// # Errors
    /// The store does not tell.
    pub async fn list(&self) -> Result<Vec<S3Object>, Diagnostic> {
        let prefix = format!("{}/", self.door.settings.key);
        let entries = self.door.list(&prefix).await.map_err(not_read)?;
        let object = |key: &str, size| {
            let name = key.strip_prefix(&prefix).filter(|name| is_clean(name))?;
            Some(S3Object { name: name.to_owned(), size })
        };
        let mut objects: Vec<S3Object> = entries.iter().filter_map(|entry| object(&entry.key, entry.size)).collect();
        objects.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(objects)
    }

    /// Removes an object. Gone already is as good.
    ///
    /// # Errors
    /// The store does not do it.
    pub async fn remove(&self, name: &str) -> Result<(), Diagnostic> {
        let not_removed = |error| told("The bucket did not remove it", error);
        let key = self.key(name).map_err(not_removed)?;
        let reply = self.door.on(Method::DELETE, &key, HeaderMap::new(), HttpRequestBody::empty()).await.map_err(not_removed)?;
        match reply.status.is_success() || Refusal::of(&reply).code == "NoSuchKey" {
            true => Ok(()),
            false => Err(not_removed(self.door.refused(&format!("delete {key:?}"), &reply))),
        }
    }

    /// The key of a name. Other names would be another object's in an address.
    fn key(&self, name: &str) -> Result<String, StoreError> {
        match is_clean(name) {
            true => Ok(format!("{}/{name}", self.door.settings.key)),
            false => Err(StoreError::Refused(format!(
                "No object is called {name:?}: a name is a path without a slash at either end and without empty parts."
            ))),
        }
    }

    /// How many bytes an object has; `None`: there is none.
    async fn length(&self, key: &str) -> Result<Option<u64>, StoreError> {
        match self.door.look(key).await? {
            Some(reply) => length(&reply).map(Some).ok_or_else(|| self.odd(&format!("did not say how long {key:?} is"))),
            None => Ok(None),
        }
    }

    /// The piece of an object that begins there, of at most one part; `None`: there is no object.
    async fn piece(&self, key: &str, from: u64) -> Result<Option<Piece>, StoreError> {
        let mut headers = self.door.key_headers();
        set(&mut headers, RANGE.as_str(), &format!("bytes={from}-{}", from.saturating_add(self.part.min(PIECE) - 1)));
        let reply = self.door.on(Method::GET, key, headers, HttpRequestBody::empty()).await?;
        let (total, version, bytes) = match reply.status {
            StatusCode::PARTIAL_CONTENT => {
                let total = total(&reply, from).ok_or_else(|| self.odd(&format!("gave another part of {key:?} than it was asked for")))?;
                (total, self.door.version(&reply, key)?, reply.body)
            }
            // A store that knows no ranges gives all of it, which is as good for whoever has nothing yet.
            status if status.is_success() && from == 0 => (reply.body.len() as u64, self.door.version(&reply, key)?, reply.body),
            status if status.is_success() => return Err(self.odd(&format!("gave another part of {key:?} than it was asked for"))),
            StatusCode::RANGE_NOT_SATISFIABLE if from > 0 => return Err(self.changed(key)),
            // An empty object has no ranges.
            StatusCode::RANGE_NOT_SATISFIABLE => match self.door.look(key).await? {
                Some(found) if length(&found) == Some(0) => (0, self.door.version(&found, key)?, Vec::new()),
                _ => return Err(self.door.refused(&format!("read {key:?}"), &reply)),
            },
            // Any web server answers 404. Only a store that says that the key is missing has no object.
            _ if Refusal::of(&reply).code == "NoSuchKey" => return Ok(None),
            _ => return Err(self.door.refused(&format!("read {key:?}"), &reply)),
        };
        Ok(Some(Piece { version, total, bytes }))
    }

    fn changed(&self, key: &str) -> StoreError {
        StoreError::Refused(format!("{key:?} in the bucket {:?} changed while it was read; try again.", self.door.place.bucket))
    }

    /// The store does what a store must not do.
    fn odd(&self, what: &str) -> StoreError {
        let place = &self.door.place;
        StoreError::Refused(format!(
            "The store at {} with the bucket {:?} {what}; check the endpoint, or use another store.",
            place.endpoint, place.bucket
        ))
    }
}

fn length(reply: &Reply) -> Option<u64> {
    reply.header("content-length")?.trim().parse().ok()
}

/// How many bytes the whole object has, if the answer is a piece that begins there: `bytes 0-15/40`.
fn total(reply: &Reply, from: u64) -> Option<u64> {
    let (range, total) = reply.header("content-range")?.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (begin, end) = range.split_once('-')?;
    let (begin, end, total) = (begin.parse::<u64>().ok()?, end.parse::<u64>().ok()?, total.parse::<u64>().ok()?);
    let length = end.checked_sub(begin)?.checked_add(1)?;
    (begin == from && end < total && length == reply.body.len() as u64).then_some(total)
}

const NOT_TAKEN: &str = "The bucket did not take it";

fn not_taken(error: StoreError) -> Diagnostic {
    told(NOT_TAKEN, error)
}

fn not_read(error: StoreError) -> Diagnostic {
    told("The bucket can't be read", error)
}

fn told(summary: &str, error: StoreError) -> Diagnostic {
    let diagnostic = Diagnostic::error(summary, error.to_string());
    if matches!(error, StoreError::Unreachable(_)) { diagnostic.retryable() } else { diagnostic }
}
