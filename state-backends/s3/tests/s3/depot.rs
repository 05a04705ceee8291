//! A bucket in memory for the server in this process: objects of text, uploads in parts, ranges, and lists of a few keys a page.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::fake::{Act, Seen, error, tagged};

/// So many keys are on a page of a list.
const PAGE: usize = 2;

/// The bucket `fleet`.
#[derive(Default)]
pub(crate) struct Depot(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// By key, each with the number of its write.
    objects: BTreeMap<String, (String, usize)>,
    /// Parts by their number, by the upload's id as it stands in addresses.
    uploads: BTreeMap<String, BTreeMap<usize, String>>,
    count: usize,
}

impl Depot {
    /// Puts an object there.
    pub(crate) fn put(&self, key: &str, content: &str) {
        self.0.lock().unwrap().write(key, content.to_owned());
    }

    /// What an object has in it.
    pub(crate) fn content(&self, key: &str) -> Option<String> {
        self.0.lock().unwrap().objects.get(key).map(|(content, _)| content.clone())
    }

    /// How many uploads were begun and not ended.
    pub(crate) fn unfinished(&self) -> usize {
        self.0.lock().unwrap().uploads.len()
    }

    /// Does what a store does.
    pub(crate) fn answer(&self, seen: &Seen) -> Act {
        let (path, query) = seen.path.split_once('?').unwrap_or((seen.path.as_str(), ""));
        let key = path.trim_start_matches("/fleet").trim_start_matches('/');
        let query: BTreeMap<&str, &str> = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
        let value = |name: &str| query.get(name).copied().unwrap_or_default();
        let body = String::from_utf8(seen.body.clone()).unwrap();
        let mut kept = self.0.lock().unwrap();
        match (seen.method.as_str(), value("uploadId")) {
            ("POST", "") if query.contains_key("uploads") => kept.begin(),
            ("PUT", "") => tagged(&kept.write(key, body), ""),
            ("DELETE", "") => kept.remove(key),
            ("GET", "") if value("list-type") == "2" => {
                kept.list(&value("prefix").replace("%2F", "/"), value("continuation-token").parse().unwrap_or(0))
            }
            ("GET" | "HEAD", "") => kept.read(key, seen.header("range")),
            ("PUT", id) => kept.part(id, value("partNumber").parse().unwrap(), body),
            ("POST", id) => kept.join(key, id, &body),
            ("DELETE", id) => kept.abort(id),
            _ => error(405, "MethodNotAllowed"),
        }
    }
}

fn done() -> Act {
    Act::Answer(204, vec![], String::new())
}

impl Kept {
    fn write(&mut self, key: &str, content: String) -> String {
        self.count += 1;
        self.objects.insert(key.to_owned(), (content, self.count));
        format!("\"tag-{}\"", self.count)
    }

    fn remove(&mut self, key: &str) -> Act {
        self.objects.remove(key);
        done()
    }

    fn begin(&mut self) -> Act {
        self.count += 1;
        self.uploads.insert(format!("id%2F{}%2B", self.count), BTreeMap::new());
        let id = format!("<UploadId>id/{}+</UploadId>", self.count);
        Act::Answer(200, vec![], format!("<InitiateMultipartUploadResult><Bucket>fleet</Bucket>{id}</InitiateMultipartUploadResult>"))
    }

    fn part(&mut self, id: &str, number: usize, body: String) -> Act {
        let Some(parts) = self.uploads.get_mut(id) else { return error(404, "NoSuchUpload") };
        parts.insert(number, body);
        tagged(&format!("\"part-{number}\""), "")
    }

    fn join(&mut self, key: &str, id: &str, body: &str) -> Act {
        let Some(parts) = self.uploads.get(id) else { return error(404, "NoSuchUpload") };
        let named = |n: &usize| format!("<Part><PartNumber>{n}</PartNumber><ETag>&quot;part-{n}&quot;</ETag></Part>");
        let listed: String = parts.keys().map(named).collect();
        if !body.contains(&format!(">{listed}</CompleteMultipartUpload>")) {
            return error(400, "InvalidPart");
        }
        let whole: String = parts.values().map(String::as_str).collect();
        self.uploads.remove(id);
        let tag = self.write(key, whole);
        tagged(&tag, "<?xml version=\"1.0\"?>\n<CompleteMultipartUploadResult><Key>k</Key></CompleteMultipartUploadResult>")
    }

    fn abort(&mut self, id: &str) -> Act {
        if self.uploads.remove(id).is_some() { done() } else { error(404, "NoSuchUpload") }
    }

    fn read(&self, key: &str, range: &str) -> Act {
        let Some((content, number)) = self.objects.get(key) else { return error(404, "NoSuchKey") };
        let tag = ("ETag", format!("\"tag-{number}\""));
        let Some((from, to)) = range.strip_prefix("bytes=").and_then(|r| r.split_once('-')) else {
            return Act::Answer(200, vec![tag], content.clone());
        };
        let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
        if from >= content.len() {
            return error(416, "InvalidRange");
        }
        let end = (to + 1).min(content.len());
        let place = ("Content-Range", format!("bytes {from}-{}/{}", end - 1, content.len()));
        Act::Answer(206, vec![tag, place], content[from..end].to_owned())
    }

    fn list(&self, prefix: &str, from: usize) -> Act {
        let all: Vec<_> = self.objects.iter().filter(|(key, _)| key.starts_with(prefix)).collect();
        let entry = |(key, (content, _)): &(&String, &(String, usize))| {
            format!("<Contents><Key>{key}</Key><LastModified>x</LastModified><Size>{}</Size></Contents>", content.len())
        };
        let entries: String = all.iter().skip(from).take(PAGE).map(entry).collect();
        let more = from + PAGE < all.len();
        let next = if more { format!("<NextContinuationToken>{}</NextContinuationToken>", from + PAGE) } else { String::new() };
        let list =
            format!("<ListBucketResult xmlns=\"x\"><Name>fleet</Name>{next}<IsTruncated>{more}</IsTruncated>{entries}</ListBucketResult>");
        Act::Answer(200, vec![], list)
    }
}
