//! Files as objects: in one piece and in parts, and what is left when something goes wrong.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use karmaform_model::{Diagnostic, Object, Value};
use karmaform_s3::{Limits, S3Object, S3Objects};
use tempfile::NamedTempFile;

use crate::depot::Depot;
use crate::fake::{Act, Fake, Seen, error, tagged};
use crate::servers::arguments;

const QUICK: Limits = Limits {
    connect: Duration::from_secs(5),
    one_try: Duration::from_secs(5),
    whole: Duration::from_secs(20),
    first_pause: Duration::from_millis(5),
};

/// A server with a bucket, of which `act` makes the answers.
fn serve(act: impl Fn(&Seen, &Depot) -> Act + Send + Sync + 'static) -> (Fake, Arc<Depot>) {
    let depot = Arc::new(Depot::default());
    let kept = Arc::clone(&depot);
    (Fake::new(move |_, seen| act(seen, &kept)), depot)
}

fn given(fake: &Fake) -> Object {
    arguments(&[("bucket", "fleet"), ("key", "backups"), ("endpoint", &fake.endpoint), ("access_key", "AK"), ("secret_key", "SECRET")])
}

fn open(arguments: &Object) -> S3Objects {
    let opened = S3Objects::open_within(arguments, &BTreeMap::new(), None, QUICK);
    opened.unwrap_or_else(|d| panic!("{}: {}", d.summary, d.detail)).in_parts_of(1000)
}

fn file(content: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file
}

/// So many letters, of which no two parts are the same.
fn letters(count: u32) -> String {
    (0..count).map(|n| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 24) as u8 % 26)).collect()
}

async fn put(bucket: &S3Objects, name: &str, content: &str) -> Result<(), Diagnostic> {
    bucket.put(name, file(content).path()).await
}

async fn read(bucket: &S3Objects, name: &str) -> Result<Option<String>, Diagnostic> {
    let mut bytes = Vec::new();
    let found = bucket.get(name, &mut bytes).await?;
    Ok(found.then(|| String::from_utf8(bytes).unwrap()))
}

/// What was asked, without the prefix.
fn asked(fake: &Fake) -> Vec<String> {
    fake.seen().iter().map(|seen| format!("{} {}", seen.method, seen.path.replace("/fleet/backups/", ""))).collect()
}

fn is_joining(seen: &Seen) -> bool {
    seen.method == "POST" && seen.path.contains("?uploadId=")
}

#[tokio::test]
async fn small_files_come_and_go() {
    let (fake, depot) = serve(|seen, depot| depot.answer(seen));
    let bucket = open(&given(&fake));
    assert_eq!(bucket.place(), "s3://fleet/backups");
    assert_eq!(read(&bucket, "a.db").await.unwrap(), None);
    put(&bucket, "a.db", "of before").await.unwrap();
    put(&bucket, "a.db", "data").await.unwrap();
    put(&bucket, "deep/empty", "").await.unwrap();
    put(&bucket, "b", &letters(1000)).await.unwrap();
    assert_eq!(read(&bucket, "a.db").await.unwrap().unwrap(), "data");
    assert_eq!(read(&bucket, "deep/empty").await.unwrap().unwrap(), "");
    assert_eq!(read(&bucket, "b").await.unwrap().unwrap(), letters(1000));
    for key in ["backups/", "backups/deep/", "backups2/x", "other"] {
        depot.put(key, "of somebody else");
    }
    // Five below the prefix make three pages.
    let object = |name: &str, size| S3Object { name: name.to_owned(), size };
    assert_eq!(bucket.list().await.unwrap(), [object("a.db", 4), object("b", 1000), object("deep/empty", 0)]);
    bucket.remove("a.db").await.unwrap();
    bucket.remove("a.db").await.unwrap();
    assert_eq!(read(&bucket, "a.db").await.unwrap(), None);
    assert_eq!(asked(&fake)[1..3], ["PUT a.db", "HEAD a.db"], "a small file is one request, and a look");
    let first = &fake.seen()[1];
    assert_eq!((first.header("content-type"), first.header("x-amz-checksum-sha256").len()), ("application/octet-stream", 44));
    assert_eq!(asked(&fake).iter().filter(|a| a.contains("list-type=2")).count(), 3);
}

#[tokio::test]
async fn large_files_are_sent_and_fetched_in_parts() {
    let (fake, depot) = serve(|seen, depot| depot.answer(seen));
    let bucket = open(&given(&fake));
    put(&bucket, "large", &letters(2005)).await.unwrap();
    assert!(depot.content("backups/large").unwrap() == letters(2005), "other bytes arrived");
    let upload = "uploadId=id%2F1%2B";
    let part = |n| format!("PUT large?partNumber={n}&{upload}");
    let expected = ["POST large?uploads".to_owned(), part(1), part(2), part(3), format!("POST large?{upload}"), "HEAD large".to_owned()];
    assert_eq!(asked(&fake), expected);
    assert_eq!(fake.seen()[0].header("content-length"), "0");
    assert_eq!(fake.seen().iter().map(|seen| seen.body.len()).take(4).collect::<Vec<_>>(), [0, 1000, 1000, 5]);
    assert!(read(&bucket, "large").await.unwrap().unwrap() == letters(2005), "other bytes came back");
    let ranges: Vec<_> = fake.seen()[6..].iter().map(|seen| seen.header("range").to_owned()).collect();
    assert_eq!(ranges, ["bytes=0-999", "bytes=1000-1999", "bytes=2000-2999"]);
    assert_eq!(depot.unfinished(), 0);
}

#[tokio::test]
async fn a_part_has_sixteen_megabytes() {
    let (fake, depot) = serve(|seen, depot| depot.answer(seen));
    let bucket = S3Objects::open(&given(&fake), &BTreeMap::new(), None).unwrap_or_else(|d| panic!("{}", d.detail));
    let content = letters((40 << 20) + 5);
    put(&bucket, "large", &content).await.unwrap();
    assert!(depot.content("backups/large").unwrap() == content, "other bytes arrived");
    assert!(read(&bucket, "large").await.unwrap().unwrap() == content, "other bytes came back");
    let methods: Vec<_> = fake.seen().iter().map(|seen| seen.method.clone()).collect();
    assert_eq!(methods[..6], ["POST", "PUT", "PUT", "PUT", "POST", "HEAD"]);
    // By four megabytes and one more time for the rest.
    assert!(methods[6..].len() == 11 && methods[6..].iter().all(|m| m == "GET"), "{methods:?}");
}

#[tokio::test]
async fn encryption_and_rights_go_where_they_belong() {
    let (fake, _) = serve(|seen, depot| depot.answer(seen));
    let mut arguments = given(&fake);
    arguments.insert("encrypt".to_owned(), Value::from(true));
    arguments.insert("acl".to_owned(), Value::from("private"));
    put(&open(&arguments), "large", &letters(1001)).await.unwrap();
    let with = |fake: &Fake, name: &str| fake.seen().iter().map(|s| !s.header(name).is_empty()).collect::<Vec<_>>();
    // Begun, two parts, joined, looked at.
    for name in ["x-amz-server-side-encryption", "x-amz-acl"] {
        assert_eq!(with(&fake, name), [true, false, false, false, false], "{name}");
    }
    assert_eq!(fake.seen()[0].header("content-type"), "application/octet-stream");
    assert_eq!(with(&fake, "content-md5"), [false, true, true, false, false]);
    assert_eq!(with(&fake, "x-amz-checksum-sha256"), [false; 5]);

    let (fake, _) = serve(|seen, depot| depot.answer(seen));
    let mut arguments = given(&fake);
    arguments.insert("sse_customer_key".to_owned(), Value::from("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="));
    let bucket = open(&arguments);
    put(&bucket, "large", &letters(1001)).await.unwrap();
    read(&bucket, "large").await.unwrap().unwrap();
    assert_eq!(with(&fake, "x-amz-server-side-encryption-customer-key"), [true, true, true, false, true, true, true]);
}

#[tokio::test]
async fn nothing_is_left_of_an_upload_that_fails() {
    let refuse = |seen: &Seen, depot: &Depot| match seen.path.contains("partNumber=2") {
        true => error(403, "AccessDenied"),
        false => depot.answer(seen),
    };
    let (fake, depot) = serve(refuse);
    let said = put(&open(&given(&fake)), "large", &letters(3000)).await.unwrap_err();
    assert_eq!(said.summary, "The bucket did not take it");
    assert!(said.detail.contains("did not allow to write \"backups/large\" in the bucket \"fleet\" (AccessDenied)"), "{}", said.detail);
    assert!(said.hints.is_empty() && !said.retryable && !said.detail.contains("SECRET"));
    assert_eq!(asked(&fake)[3..], ["DELETE large?uploadId=id%2F1%2B"]);
    assert_eq!((depot.unfinished(), depot.content("backups/large")), (0, None));

    // It is told if that fails too.
    let (fake, depot) = serve(move |seen, depot| if seen.method == "DELETE" { error(403, "AccessDenied") } else { refuse(seen, depot) });
    let said = put(&open(&given(&fake)), "large", &letters(3000)).await.unwrap_err();
    assert_eq!((depot.unfinished(), said.hints.len()), (1, 1));
}

#[tokio::test]
async fn a_file_that_shrinks_is_not_sent() {
    let content = file(&letters(3000));
    let path = content.path().to_owned();
    let (fake, depot) = serve(move |seen, depot| {
        if seen.path.contains("partNumber=1") {
            std::fs::File::options().write(true).open(&path).unwrap().set_len(1500).unwrap();
        }
        depot.answer(seen)
    });
    let said = open(&given(&fake)).put("large", content.path()).await.unwrap_err();
    assert_eq!(said.summary, "The file can't be read");
    assert!(said.detail.ends_with("it became shorter while it was sent."), "{}", said.detail);
    assert_eq!((depot.unfinished(), depot.content("backups/large")), (0, None));
    let said = open(&given(&fake)).put("large", std::path::Path::new("/not/there")).await.unwrap_err();
    assert_eq!(said.summary, "The file can't be read");
}

#[tokio::test]
async fn an_error_behind_a_good_status_is_one() {
    let late = |code: &str| Act::Answer(200, vec![], format!("<?xml version=\"1.0\"?>\n\n  <Error><Code>{code}</Code></Error>"));
    // Passing: it is joined in the end.
    let joins = AtomicUsize::new(0);
    let (fake, depot) = serve(move |seen, depot| match is_joining(seen) && joins.fetch_add(1, Ordering::Relaxed) < 2 {
        true => late("InternalError"),
        false => depot.answer(seen),
    });
    put(&open(&given(&fake)), "large", &letters(2000)).await.unwrap();
    assert!(depot.content("backups/large").unwrap() == letters(2000));

    for (code, tries, retryable) in [("InternalError", 5, true), ("InvalidPart", 1, false)] {
        let (fake, depot) = serve(move |seen, depot| if is_joining(seen) { late(code) } else { depot.answer(seen) });
        let said = put(&open(&given(&fake)), "large", &letters(2000)).await.unwrap_err();
        assert!(said.detail.contains(code) && said.retryable == retryable, "{}", said.detail);
        assert_eq!(fake.seen().iter().filter(|seen| is_joining(seen)).count(), tries);
        assert_eq!((depot.unfinished(), depot.content("backups/large")), (0, None));
    }
}

#[tokio::test]
async fn an_upload_whose_last_answer_was_lost_is_done() {
    let joins = AtomicUsize::new(0);
    let (fake, depot) = serve(move |seen, depot| {
        let answer = depot.answer(seen);
        if is_joining(seen) && joins.fetch_add(1, Ordering::Relaxed) == 0 { Act::Hangup } else { answer }
    });
    put(&open(&given(&fake)), "large", &letters(1500)).await.unwrap();
    let joined = "POST large?uploadId=id%2F1%2B";
    assert_eq!(asked(&fake)[3..], [joined, joined, "HEAD large", "HEAD large"]);
    assert!(depot.content("backups/large").unwrap() == letters(1500));

    // The upload was taken away, and what is there is another's.
    let (fake, depot) = serve(|seen, depot| if is_joining(seen) { error(404, "NoSuchUpload") } else { depot.answer(seen) });
    depot.put("backups/large", "short");
    let said = put(&open(&given(&fake)), "large", &letters(1500)).await.unwrap_err();
    assert!(said.detail.contains("404 NoSuchUpload"), "{}", said.detail);
}

#[tokio::test]
async fn what_is_there_afterwards_is_as_long_as_the_file() {
    for size in [10, 2500] {
        let (fake, _) = serve(|seen, depot| if seen.method == "HEAD" { tagged("\"1\"", "short") } else { depot.answer(seen) });
        let content = file(&letters(size));
        let said = open(&given(&fake)).put("name", content.path()).await.unwrap_err();
        let expected =
            format!("The file {} has {size} bytes, and s3://fleet/backups/name has 5 bytes after it was sent.", content.path().display());
        assert_eq!((said.summary.as_str(), said.detail), ("The bucket did not take it", expected));
    }
}

#[tokio::test]
async fn an_object_that_changes_is_not_put_together_of_two() {
    type Change = fn(&Depot);
    let changes: [Change; 3] = [
        // As long as before; shorter than what is asked for next; gone.
        |depot| depot.put("backups/large", &"x".repeat(2500)),
        |depot| depot.put("backups/large", "short"),
        |depot| drop(depot.answer(&Seen { method: "DELETE".to_owned(), path: "/fleet/backups/large".to_owned(), ..Seen::default() })),
    ];
    for change in changes {
        let (fake, depot) = serve(move |seen, depot| {
            let answer = depot.answer(seen);
            if seen.header("range").starts_with("bytes=0-") {
                change(depot);
            }
            answer
        });
        depot.put("backups/large", &letters(2500));
        let said = read(&open(&given(&fake)), "large").await.unwrap_err();
        assert_eq!(said.summary, "The bucket can't be read");
        assert_eq!(said.detail, "\"backups/large\" in the bucket \"fleet\" changed while it was read; try again.");
    }
}

/// A disk without room.
struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_disk_that_takes_no_more_is_not_the_buckets_fault() {
    let (fake, depot) = serve(|seen, depot| depot.answer(seen));
    depot.put("backups/a.db", "data");
    let why = open(&given(&fake)).get("a.db", &mut Full).await.unwrap_err();
    assert_eq!(why.summary, "What the bucket gave can't be written");
    assert_eq!(why.detail, "Writing s3://fleet/backups/a.db failed: no storage space.");
    assert!(why.hints[0].starts_with("Free space"), "{:?}", why.hints);
}

#[tokio::test]
async fn a_server_without_ranges_gives_all_at_once() {
    let whole = |seen: &Seen, depot: &Depot| {
        let seen = Seen { headers: vec![], ..seen.clone() };
        depot.answer(&seen)
    };
    let (fake, depot) = serve(whole);
    depot.put("backups/large", &letters(2500));
    depot.put("backups/empty", "");
    let bucket = open(&given(&fake));
    assert!(read(&bucket, "large").await.unwrap().unwrap() == letters(2500));
    assert_eq!(read(&bucket, "empty").await.unwrap().unwrap(), "");
    assert_eq!(fake.seen().len(), 2);

    // Not after it gave a part.
    let (fake, depot) =
        serve(move |seen, depot| if seen.header("range").contains("=0-") { depot.answer(seen) } else { whole(seen, depot) });
    depot.put("backups/large", &letters(2500));
    let said = read(&open(&given(&fake)), "large").await.unwrap_err();
    assert!(said.detail.contains("gave another part of \"backups/large\" than it was asked for"), "{}", said.detail);
}

#[tokio::test]
async fn a_line_that_breaks_costs_one_part() {
    let tries = AtomicUsize::new(0);
    let (fake, depot) = serve(move |seen, depot| {
        let breaks = seen.header("range").starts_with("bytes=1000-") || seen.path.contains("partNumber=2");
        if breaks && tries.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) { Act::Cut } else { depot.answer(seen) }
    });
    let bucket = open(&given(&fake));
    put(&bucket, "large", &letters(2500)).await.unwrap();
    assert!(depot.content("backups/large").unwrap() == letters(2500));
    assert!(read(&bucket, "large").await.unwrap().unwrap() == letters(2500));
    let count = |method: &str| fake.seen().iter().filter(|seen| seen.method == method).count();
    assert_eq!((count("PUT"), count("GET")), (4, 4));
}

#[tokio::test]
async fn what_is_no_answer_of_a_bucket_is_no_missing_object() {
    let (fake, _) = serve(|_, _| Act::Answer(404, vec![], "<html>not here</html>".to_owned()));
    let bucket = open(&given(&fake));
    let said = read(&bucket, "a").await.unwrap_err();
    assert!(said.detail.ends_with("and not as an S3 store does; check the endpoint."), "{}", said.detail);
    let said = bucket.remove("a").await.unwrap_err();
    assert_eq!(said.summary, "The bucket did not remove it");
    let (fake, _) = serve(|_, _| error(404, "NoSuchBucket"));
    let bucket = open(&given(&fake));
    for said in [read(&bucket, "a").await.unwrap_err(), put(&bucket, "a", "x").await.unwrap_err(), bucket.list().await.unwrap_err()] {
        assert!(said.detail.starts_with("There is no bucket \"fleet\" at "), "{}", said.detail);
    }
}

#[tokio::test]
async fn names_that_would_be_others_are_refused() {
    let (fake, _) = serve(|seen, depot| depot.answer(seen));
    let bucket = open(&given(&fake));
    for name in ["", "/a", "a/", "a//b", "../state", "a/./b", "a\nb"] {
        assert!(read(&bucket, name).await.unwrap_err().detail.starts_with("No object is called "), "{name}");
        assert!(put(&bucket, name, "x").await.is_err() && bucket.remove(name).await.is_err(), "{name}");
    }
    assert!(fake.seen().is_empty());
}
