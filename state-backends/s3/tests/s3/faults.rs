//! A server that is late, absent, busy or half there.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use karmaform_model::{Found, Item, StateStore as _, StoreError, Value, Version};
use karmaform_s3::{Limits, S3Store};

use crate::fake::{Act, Fake, Seen, error, tagged};
use crate::servers::{arguments, open};

/// Where nobody is late: so long that a busy machine does not come near.
const USUAL: Limits = Limits {
    connect: Duration::from_secs(20),
    one_try: Duration::from_secs(20),
    whole: Duration::from_secs(60),
    first_pause: Duration::from_millis(20),
};
/// Where an answer never comes, and is asked for again.
const SHORT: Limits = Limits { one_try: Duration::from_millis(300), ..USUAL };

/// A store on that server.
fn store(fake: &Fake, retries: i64) -> S3Store {
    within(fake, retries, USUAL)
}

fn within(fake: &Fake, retries: i64, limits: Limits) -> S3Store {
    let mut arguments =
        arguments(&[("bucket", "fleet"), ("key", "k"), ("endpoint", &fake.endpoint), ("access_key", "AK"), ("secret_key", "SECRET")]);
    arguments.insert("max_retries".to_owned(), Value::from(retries));
    open(&arguments, "default", limits)
}

fn version(tag: &str) -> Version {
    Version(tag.to_owned())
}

#[tokio::test]
async fn errors_of_the_servers_own_are_tried_again() {
    for status in [500, 502, 503, 504, 429] {
        let fake = Fake::new(move |n, _| if n < 2 { error(status, "InternalError") } else { tagged("\"1\"", "{}") });
        let found = Found { bytes: b"{}".to_vec(), version: version("\"1\"") };
        assert_eq!(store(&fake, 5).get(&Item::State).await, Ok(Some(found)), "{status}");
        assert_eq!(fake.seen().len(), 3);
    }
    let fake = Fake::new(|n, _| if n < 1 { error(400, "RequestTimeout") } else { tagged("\"1\"", "") });
    assert_eq!(store(&fake, 5).put(&Item::State, b"{}".to_vec(), None).await, Ok(version("\"1\"")));
}

#[tokio::test]
async fn no_more_tries_than_allowed() {
    for (retries, tries) in [(0, 1), (2, 3)] {
        let fake = Fake::new(|_, _| error(500, "InternalError"));
        let said = store(&fake, retries).get(&Item::State).await.unwrap_err();
        let expected = format!(
            "The store at {} with the bucket \"fleet\" could not read \"k\": it answered 500 InternalError to every try; try again later.",
            fake.endpoint
        );
        assert_eq!(said, StoreError::Unreachable(expected));
        assert_eq!(fake.seen().len(), tries);
    }
}

#[tokio::test]
async fn a_busy_store_is_left_alone_for_as_long_as_it_says() {
    let busy = || Act::Answer(503, vec![("Retry-After", "1".to_owned())], "<Error><Code>SlowDown</Code></Error>".to_owned());
    let fake = Fake::new(move |n, _| if n < 1 { busy() } else { tagged("\"1\"", "") });
    let start = Instant::now();
    store(&fake, 5).put(&Item::State, b"{}".to_vec(), None).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());

    // Longer than the whole call may take: it is not waited for.
    let fake = Fake::new(|_, _| Act::Answer(503, vec![("Retry-After", "600".to_owned())], String::new()));
    assert!(matches!(store(&fake, 5).get(&Item::State).await, Err(StoreError::Unreachable(_))));
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_store_that_hangs_is_not_waited_for() {
    let fake = Fake::new(|n, _| if n < 2 { Act::Hang } else { tagged("\"1\"", "") });
    assert_eq!(within(&fake, 5, SHORT).put(&Item::State, b"{}".to_vec(), None).await, Ok(version("\"1\"")));

    // Two seconds in all, and not the thirty of a hundred tries.
    let fake = Fake::new(|_, _| Act::Hang);
    let start = Instant::now();
    let store = within(&fake, 100, Limits { whole: Duration::from_millis(2500), ..SHORT });
    let Err(StoreError::Unreachable(said)) = store.get(&Item::State).await else { panic!("no error") };
    assert!((2000..20_000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    assert!(said.contains("did not answer in time") && said.contains(&fake.endpoint) && said.contains("\"fleet\""), "{said}");
}

#[tokio::test]
async fn half_an_answer_is_none() {
    let fake = Fake::new(|n, _| if n < 1 { Act::Cut } else { tagged("\"1\"", "whole") });
    assert_eq!(store(&fake, 5).get(&Item::State).await.unwrap().unwrap().bytes, b"whole");
    let fake = Fake::new(|_, _| Act::Cut);
    assert!(matches!(store(&fake, 1).get(&Item::State).await, Err(StoreError::Unreachable(_))));
}

#[tokio::test]
async fn a_slow_answer_is_waited_for_and_one_that_stops_is_not() {
    let slow = |pieces, announced| Fake::new(move |_, _| Act::Drip { pieces, announced, pause: Duration::from_millis(100) });
    // Longer than one try may take until its answer begins.
    let limits = Limits { one_try: Duration::from_secs(2), ..USUAL };
    let fake = slow(25, 25);
    assert_eq!(within(&fake, 0, limits).get(&Item::State).await.unwrap().unwrap().bytes, b"x".repeat(25));
    assert_eq!(fake.seen().len(), 1);
    for (pieces, announced) in [(1, 2), (300, 300)] {
        let fake = slow(pieces, announced);
        let start = Instant::now();
        assert!(matches!(within(&fake, 1, limits).get(&Item::State).await, Err(StoreError::Unreachable(_))));
        assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
        assert_eq!(fake.seen().len(), 2);
    }
}

#[tokio::test]
async fn nobody_there() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let arguments =
        arguments(&[("bucket", "fleet"), ("key", "k"), ("endpoint", &endpoint), ("access_key", "AK"), ("secret_key", "SECRET")]);
    let said = open(&arguments, "default", USUAL).get(&Item::State).await.unwrap_err();
    let expected = format!(
        "The store at {endpoint} with the bucket \"fleet\" can't be reached (Connection refused (os error 111)); check endpoint, region and network."
    );
    assert_eq!(said, StoreError::Unreachable(expected));
}

/// One object, and how the server compares tags.
struct Shelf {
    held: Mutex<Option<(Vec<u8>, u32)>>,
    bare: bool,
}

impl Shelf {
    fn new(bare: bool) -> Self {
        Self { held: Mutex::new(None), bare }
    }

    fn tag(&self) -> Option<String> {
        self.held.lock().unwrap().as_ref().map(|(_, n)| format!("\"tag-{n}\""))
    }

    fn answer(&self, seen: &Seen) -> Act {
        let now = self.tag();
        let wanted = now.as_ref().map(|t| if self.bare { t.trim_matches('"').to_owned() } else { t.clone() }).unwrap_or_default();
        let fits = match (seen.header("if-match"), seen.header("if-none-match")) {
            ("", "") => true,
            ("", _) => now.is_none(),
            (tag, _) => tag == wanted,
        };
        let mut held = self.held.lock().unwrap();
        match (seen.method.as_str(), &now) {
            ("PUT" | "DELETE", _) if !fits => error(412, "PreconditionFailed"),
            ("PUT", _) => {
                let number = held.as_ref().map_or(1, |(_, n)| n + 1);
                *held = Some((seen.body.clone(), number));
                tagged(&format!("\"tag-{number}\""), "")
            }
            ("DELETE", _) => {
                *held = None;
                Act::Answer(204, vec![], String::new())
            }
            (_, None) => error(404, "NoSuchKey"),
            (_, Some(tag)) => tagged(tag, &String::from_utf8_lossy(&held.as_ref().unwrap().0)),
        }
    }
}

#[tokio::test]
async fn a_store_that_wants_bare_tags_gets_them() {
    let shelf = Shelf::new(true);
    let fake = Fake::new(move |_, seen| shelf.answer(seen));
    let store = store(&fake, 5);
    let first = store.put(&Item::State, b"1".to_vec(), None).await.unwrap();
    let second = store.put(&Item::State, b"2".to_vec(), Some(&first)).await.unwrap();
    // Quoted, a look, bare. From then on bare at once.
    let spelt = |fake: &Fake| fake.seen().iter().map(|s| format!("{} {}", s.method, s.header("if-match"))).collect::<Vec<_>>();
    assert_eq!(spelt(&fake), ["PUT ", "PUT \"tag-1\"", "HEAD ", "PUT tag-1"]);
    store.put(&Item::State, b"3".to_vec(), Some(&second)).await.unwrap();
    assert_eq!(spelt(&fake)[4..], ["PUT tag-2"]);
    assert_eq!(store.put(&Item::State, b"4".to_vec(), Some(&second)).await, Err(StoreError::Changed));
    assert_eq!(store.delete(&Item::State, &second).await, Err(StoreError::Changed));
    assert_eq!(store.delete(&Item::State, &version("\"tag-3\"")).await, Ok(()));
    assert_eq!(store.get(&Item::State).await, Ok(None));
}

#[tokio::test]
async fn a_lost_race_is_no_other_spelling() {
    let shelf = Shelf::new(false);
    let fake = Fake::new(move |_, seen| shelf.answer(seen));
    let store = store(&fake, 5);
    let first = store.put(&Item::State, b"1".to_vec(), None).await.unwrap();
    store.put(&Item::State, b"2".to_vec(), Some(&first)).await.unwrap();
    assert_eq!(store.put(&Item::State, b"3".to_vec(), Some(&first)).await, Err(StoreError::Changed));
    assert_eq!(fake.seen().last().unwrap().method, "HEAD", "not tried without quotes");
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_reported_as_changed_and_is_there() {
    // Written, and then nothing, in three ways.
    for lost in [|| Act::Hangup, || Act::Hang, || error(500, "InternalError")] {
        let shelf = Shelf::new(false);
        let fake = Fake::new(move |n, seen| {
            let answer = shelf.answer(seen);
            if n == 0 { lost() } else { answer }
        });
        let store = within(&fake, 5, SHORT);
        assert_eq!(store.put(&Item::State, b"mine".to_vec(), None).await, Err(StoreError::Changed));
        assert_eq!(store.get(&Item::State).await.unwrap().unwrap().bytes, b"mine", "the caller reads back and finds its own");
        let now = store.get(&Item::State).await.unwrap().unwrap().version;
        assert_eq!(store.delete(&Item::State, &now).await, Ok(()));
    }
    // The same for a delete: gone is gone.
    let shelf = Shelf::new(false);
    let fake = Fake::new(move |_, seen| {
        let answer = shelf.answer(seen);
        if seen.method == "DELETE" && matches!(answer, Act::Answer(204, ..)) { Act::Hangup } else { answer }
    });
    let store = store(&fake, 5);
    let first = store.put(&Item::State, b"1".to_vec(), None).await.unwrap();
    assert_eq!(store.delete(&Item::State, &first).await, Ok(()));
}

#[tokio::test]
async fn what_is_sent_is_what_was_asked_for() {
    let fake = Fake::new(|_, _| tagged("W/\"1\"", ""));
    let mut arguments = arguments(&[
        ("bucket", "fleet"),
        ("key", "k"),
        ("endpoint", &fake.endpoint),
        ("access_key", "AK"),
        ("secret_key", "SECRET"),
        ("token", "TOKEN"),
    ]);
    let write = async |arguments: &karmaform_model::Object| {
        let written = open(arguments, "dev", USUAL).put(&Item::State, b"{}".to_vec(), None).await;
        assert_eq!(written, Ok(version("\"1\"")), "a weak tag would never match again");
        fake.seen().last().unwrap().clone()
    };
    let plain = write(&arguments).await;
    assert_eq!(plain.path, "/fleet/env%3A/dev/k");
    assert_eq!((plain.header("content-type"), plain.header("if-none-match")), ("application/json", "*"));
    assert_eq!(plain.header("x-amz-checksum-sha256"), "RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=");
    assert_eq!(plain.header("x-amz-security-token"), "TOKEN");
    assert!(plain.header("authorization").contains("/us-east-1/s3/aws4_request, SignedHeaders=content-type;host;if-none-match;"));

    arguments.insert("kms_key_id".to_owned(), Value::from("arn:aws:kms:eu-west-1:1:key/k"));
    arguments.insert("acl".to_owned(), Value::from("private"));
    arguments.insert("skip_s3_checksum".to_owned(), Value::from(true));
    let kms = write(&arguments).await;
    assert_eq!(kms.header("x-amz-server-side-encryption"), "aws:kms");
    assert_eq!(kms.header("x-amz-server-side-encryption-aws-kms-key-id"), "arn:aws:kms:eu-west-1:1:key/k");
    assert_eq!((kms.header("x-amz-acl"), kms.header("x-amz-checksum-sha256")), ("private", ""));
    assert!(kms.header("authorization").contains(";x-amz-acl;"), "what is not signed is refused");
}

#[tokio::test]
async fn a_certificate_is_trusted_if_its_ca_is_named() {
    let (fake, certificate) = Fake::secure(|_, _| tagged("\"1\"", "{}"));
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("ca.pem");
    std::fs::write(&bundle, certificate).unwrap();
    let mut arguments =
        arguments(&[("bucket", "fleet"), ("key", "k"), ("endpoint", &fake.endpoint), ("access_key", "AK"), ("secret_key", "SECRET")]);
    let read = async |arguments: &karmaform_model::Object| open(arguments, "default", USUAL).get(&Item::State).await;

    let Err(StoreError::Refused(said)) = read(&arguments).await else { panic!("trusted without a reason") };
    assert!(
        said.starts_with(&format!("The store at {} with the bucket \"fleet\" has a certificate that is not trusted (", fake.endpoint)),
        "{said}"
    );
    assert!(said.ends_with("); name its CA in custom_ca_bundle.") && !said.contains('\n'), "{said}");
    assert!(fake.seen().is_empty(), "keys went to a stranger");

    arguments.insert("custom_ca_bundle".to_owned(), Value::from(bundle.to_string_lossy().as_ref()));
    assert!(read(&arguments).await.unwrap().is_some());
    arguments.remove("custom_ca_bundle");
    arguments.insert("insecure".to_owned(), Value::from(true));
    assert!(read(&arguments).await.unwrap().is_some());

    std::fs::write(&bundle, "no certificate").unwrap();
    arguments.insert("custom_ca_bundle".to_owned(), Value::from(bundle.to_string_lossy().as_ref()));
    let refused = S3Store::open(&arguments, "default", &std::collections::BTreeMap::new(), None).map(|_| ()).unwrap_err();
    assert_eq!(refused.detail, "the CA bundle has no certificate in it.");
}

#[tokio::test]
async fn a_proxy_that_is_named_is_used_and_no_other() {
    let proxy = Fake::new(|_, _| tagged("\"1\"", "{}"));
    let mut arguments = arguments(&[
        ("bucket", "fleet"),
        ("key", "k"),
        ("endpoint", "http://store.invalid"),
        ("access_key", "AK"),
        ("secret_key", "SECRET"),
    ]);
    arguments.insert("http_proxy".to_owned(), Value::from(proxy.endpoint.as_str()));
    assert!(open(&arguments, "default", USUAL).get(&Item::State).await.unwrap().is_some());
    assert_eq!(proxy.seen()[0].path, "http://store.invalid/fleet/k");
    arguments.insert("no_proxy".to_owned(), Value::from("store.invalid"));
    arguments.insert("max_retries".to_owned(), Value::from(0i64));
    assert!(matches!(open(&arguments, "default", USUAL).get(&Item::State).await, Err(StoreError::Unreachable(_))));
    assert_eq!(proxy.seen().len(), 1);
}
