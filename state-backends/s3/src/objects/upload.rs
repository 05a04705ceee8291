//! Sending a file: whole if it is small, in parts otherwise, of which the store makes an object at the end.
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html>

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use karmaform_model::{Diagnostic, StoreError};
use md5::{Digest as _, Md5};
use object_store::client::HttpRequestBody;
use serde::Deserialize;

use super::{S3Objects, not_taken};
use crate::door::{set, tag};
use crate::http::Reply;
use crate::words::Refusal;

/// So many parts can an object have. <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>
const MOST_PARTS: u64 = 10_000;
/// So often the parts are joined again after an error behind a good status.
const MORE_TRIES: u32 = 4;
const CONTENT: &str = "application/octet-stream";

/// The file that is sent.
pub(super) struct Source<'a> {
    path: &'a Path,
    file: File,
    size: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Begun {
    upload_id: String,
}

impl<'a> Source<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Self, Diagnostic> {
        let file = File::open(path).map_err(|e| unreadable(path, &e))?;
        let size = file.metadata().map_err(|e| unreadable(path, &e))?.len();
        Ok(Self { path, file, size })
    }

    /// In bytes, when it was opened.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// In bytes, now.
    pub(super) fn size_now(&self) -> Result<u64, Diagnostic> {
        self.file.metadata().map(|m| m.len()).map_err(|e| unreadable(self.path, &e))
    }

    /// The next so many bytes, and never fewer.
    fn next(&mut self, count: u64) -> Result<Vec<u8>, Diagnostic> {
        let mut bytes = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
        (&mut self.file).take(count).read_to_end(&mut bytes).map_err(|e| unreadable(self.path, &e))?;
        match bytes.len() as u64 == count {
            true => Ok(bytes),
            false => Err(unreadable(self.path, &io::Error::other("it became shorter while it was sent"))),
        }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error("The file can't be read", format!("{}: {error}.", path.display()))
}

impl S3Objects {
    /// Sends a file in one piece.
    pub(super) async fn put_whole(&self, key: &str, source: &mut Source<'_>) -> Result<(), Diagnostic> {
        let bytes = source.next(source.size)?;
        let mut headers = self.door.write_headers(CONTENT);
        self.door.add_checksum(&mut headers, &bytes);
        headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        let reply = self.door.on(Method::PUT, key, headers, HttpRequestBody::from(bytes)).await.map_err(not_taken)?;
        match reply.status.is_success() {
            true => Ok(()),
            false => Err(not_taken(self.not_written(key, &reply))),
        }
    }

    /// Sends a file in parts, one after the other. Parts that never become an object are paid for, so they are removed after any error.
    pub(super) async fn put_in_parts(&self, key: &str, source: &mut Source<'_>) -> Result<(), Diagnostic> {
        let id = self.begin(key).await.map_err(not_taken)?;
        let sent = match self.parts(key, &id, source).await {
            Ok(tags) => self.join(key, &id, &tags, source.size).await.map_err(not_taken),
            Err(error) => Err(error),
        };
        match sent {
            Err(error) if !self.abort(key, &id).await => {
                Err(error.with_hint("Parts of it may be left in the bucket; let the bucket remove unfinished uploads after some days."))
            }
            sent => sent,
        }
    }

    /// Begins an upload and gives its id. One whose answer was lost stays, but has no parts, and costs nothing.
    async fn begin(&self, key: &str) -> Result<String, StoreError> {
        let mut headers = self.door.write_headers(CONTENT);
        // With an empty body nobody else says it, and some stores insist.
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        let reply = self.door.on_with(Method::POST, key, &[("uploads", "")], headers, HttpRequestBody::empty()).await?;
        if !reply.status.is_success() {
            return Err(self.not_written(key, &reply));
        }
        let begun: Option<Begun> = quick_xml::de::from_str(&String::from_utf8_lossy(&reply.body)).ok();
        let id = begun.map(|b| b.upload_id).filter(|id| !id.is_empty());
        id.ok_or_else(|| self.odd(&format!("gave no id for an upload of {key:?}")))
    }

    /// Sends all parts, and gives what the store calls them.
    async fn parts(&self, key: &str, id: &str, source: &mut Source<'_>) -> Result<Vec<String>, Diagnostic> {
        let size = part_size(source.size, self.part);
        let mut left = source.size;
        let mut tags = Vec::new();
        while left > 0 {
            let bytes = source.next(size.min(left))?;
            left -= bytes.len() as u64;
            let number = (tags.len() + 1).to_string();
            let mut headers = self.door.key_headers();
            if self.door.settings.checksum {
                // Buckets that lock what is in them take no part without a digest. This is the one that every store knows.
                set(&mut headers, "content-md5", &STANDARD.encode(Md5::digest(&bytes)));
            }
            let query = [("partNumber", number.as_str()), ("uploadId", id)];
            let reply = self.door.on_with(Method::PUT, key, &query, headers, HttpRequestBody::from(bytes)).await.map_err(not_taken)?;
            if !reply.status.is_success() {
                return Err(not_taken(self.not_written(key, &reply)));
            }
            let name = tag(&reply).ok_or_else(|| not_taken(self.odd(&format!("gave no ETag for a part of {key:?}"))))?;
            tags.push(name.to_owned());
        }
        Ok(tags)
    }

    /// Makes an object of `size` bytes of the parts.
    async fn join(&self, key: &str, id: &str, tags: &[String], size: u64) -> Result<(), StoreError> {
        let body = joined(tags);
        let mut tries = 0;
        loop {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/xml"))]);
            let request = HttpRequestBody::from(body.clone());
            let reply = self.door.on_with(Method::POST, key, &[("uploadId", id)], headers, request).await?;
            // Joining takes long, so the status is sent before it is known how it ends.
            let is_late_error = reply.status.is_success() && String::from_utf8_lossy(&reply.body).contains("<Error");
            if reply.status.is_success() && !is_late_error {
                return Ok(());
            }
            let code = Refusal::of(&reply).code;
            // It was joined, and the answer was lost: nobody else knows the id.
            if code == "NoSuchUpload" && self.length(key).await? == Some(size) {
                return Ok(());
            }
            if !is_late_error {
                return Err(self.not_written(key, &reply));
            }
            let is_passing = ["InternalError", "ServiceUnavailable", "SlowDown"].contains(&code.as_str());
            if !is_passing || tries >= MORE_TRIES {
                let status = if is_passing { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::BAD_REQUEST };
                return Err(self.not_written(key, &Reply { status, ..reply }));
            }
            tokio::time::sleep(self.door.pause(tries)).await;
            tries += 1;
        }
    }

    /// Removes the parts of an upload. True if none is left.
    async fn abort(&self, key: &str, id: &str) -> bool {
        let reply = self.door.on_with(Method::DELETE, key, &[("uploadId", id)], HeaderMap::new(), HttpRequestBody::empty()).await;
        reply.is_ok_and(|r| r.status.is_success() || Refusal::of(&r).code == "NoSuchUpload")
    }

    fn not_written(&self, key: &str, reply: &Reply) -> StoreError {
        self.door.refused(&format!("write {key:?}"), reply)
    }
}

/// How many bytes each part has but the last.
fn part_size(size: u64, usual: u64) -> u64 {
    usual.max(size.div_ceil(MOST_PARTS))
}

/// The list of parts. <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html>
fn joined(tags: &[String]) -> String {
    let part = |(index, tag): (usize, &String)| {
        format!("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", index + 1, quick_xml::escape::escape(tag.as_str()))
    };
    let parts: String = tags.iter().enumerate().map(part).collect();
    format!("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{parts}</CompleteMultipartUpload>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_where_there_would_be_too_many() {
        let usual = 16 << 20;
        assert_eq!(part_size(40 << 20, usual), usual);
        assert_eq!(part_size(usual * MOST_PARTS, usual), usual);
        assert_eq!(part_size(usual * MOST_PARTS + 1, usual), usual + 1);
        let size: u64 = 5 << 40;
        assert!(size.div_ceil(part_size(size, usual)) <= MOST_PARTS);
    }

    #[test]
    fn the_list_of_parts_is_xml() {
        let parts = joined(&["\"a\"".to_owned(), "b<".to_owned()]);
        assert!(parts.contains("<Part><PartNumber>1</PartNumber><ETag>&quot;a&quot;</ETag></Part>"), "{parts}");
        assert!(parts.contains("<Part><PartNumber>2</PartNumber><ETag>b&lt;</ETag></Part>"), "{parts}");
    }
}
