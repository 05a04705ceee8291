//! Against a real etcd, started from the archives that the environment names.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use karmaform_etcd_state::EtcdStore;
use karmaform_model::{Found, Item, Object, StateStore, StoreError, Type, Value, Version};

/// Larger than a request may be, and no multiple of anything.
const LARGE: usize = 10_000_003;

/// An etcd; it ends when it is dropped.
struct Etcd {
    child: Child,
    url: String,
    _directory: tempfile::TempDir,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::print_stderr, reason = "a test talks to its reader")]
fn skipped(test: &str) {
    eprintln!("SKIPPED (KARMAFORM_TEST_ETCD is not set): {test}");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

impl Etcd {
    /// The first version of `KARMAFORM_TEST_ETCD` (`VERSION=ARCHIVE,...`).
    fn start(test: &str) -> Option<Self> {
        let Some(given) = std::env::var("KARMAFORM_TEST_ETCD").ok().filter(|g| !g.is_empty()) else {
            skipped(test);
            return None;
        };
        let archive = given.split(',').next()?.split_once('=')?.1.to_owned();
        let directory = tempfile::tempdir().expect("a directory");
        let unpacked = Command::new("tar").args(["-xzf", &archive, "--strip-components=1", "-C"]).arg(directory.path()).status();
        assert!(unpacked.expect("tar").success());
        let (client, peer) = (free_port(), free_port());
        let (url, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let child = Command::new(directory.path().join("etcd"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url, "--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer, "--initial-cluster", &format!("default={peer}"), "--data-dir"])
            .arg(directory.path().join("data"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Some(Self { child: child.expect("etcd"), url, _directory: directory })
    }

    fn store(&self, prefix: &str) -> EtcdStore {
        open(&[&self.url], prefix)
    }
}

fn open(endpoints: &[&str], prefix: &str) -> EtcdStore {
    let mut arguments = Object::new();
    let urls = endpoints.iter().map(|e| Value::from(*e)).collect();
    arguments.insert("endpoints".to_owned(), Value::list(Type::String, urls));
    arguments.insert("prefix".to_owned(), Value::from(prefix));
    EtcdStore::open(&arguments, Path::new("/"), None).expect("a store")
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads").block_on(future)
}

/// The first call waits for etcd to start.
async fn ready(store: &EtcdStore) {
    let until = Instant::now() + Duration::from_secs(60);
    while let Err(error) = store.get(&Item::State).await {
        assert!(Instant::now() < until, "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn bytes(store: &EtcdStore, item: &Item) -> Option<Vec<u8>> {
    store.get(item).await.expect("an answer").map(|found| found.bytes)
}

fn large(seed: u8) -> Vec<u8> {
    (0..LARGE).map(|i| u8::try_from(i % 251).unwrap_or(0) ^ seed).collect()
}

#[test]
fn creates_and_swaps_small_and_large() {
    let Some(etcd) = Etcd::start("creates and swaps in etcd") else { return };
    run(async {
        let store = etcd.store("karmaform/prod/");
        ready(&store).await;
        assert_eq!(store.place(), format!("etcd karmaform/prod at {}", etcd.url));
        for (first, second) in
            [(b"one".to_vec(), b"two".to_vec()), (large(1), large(2)), (large(3), b"small".to_vec()), (b"s".to_vec(), large(4))]
        {
            let one = store.put(&Item::State, first.clone(), None).await.expect("created");
            assert_eq!(store.put(&Item::State, second.clone(), None).await, Err(StoreError::Changed));
            assert_eq!(store.get(&Item::State).await, Ok(Some(Found { bytes: first, version: one.clone() })));
            let two = store.put(&Item::State, second.clone(), Some(&one)).await.expect("swapped");
            assert_eq!(store.put(&Item::State, large(9), Some(&one)).await, Err(StoreError::Changed));
            assert_eq!(store.put(&Item::State, b"late".to_vec(), Some(&one)).await, Err(StoreError::Changed));
            assert_eq!(bytes(&store, &Item::State).await, Some(second));
            assert_eq!(store.delete(&Item::State, &one).await, Err(StoreError::Changed));
            store.delete(&Item::State, &two).await.expect("removed");
            store.delete(&Item::State, &two).await.expect("it is gone already");
            assert_eq!(store.get(&Item::State).await, Ok(None));
            assert_eq!(store.put(&Item::State, b"x".to_vec(), Some(&two)).await, Err(StoreError::Changed));
        }
        // Nothing of all that is left: no chunk of a writing that lost, none of one that was replaced.
        let mut client = etcd_client::Client::connect([&etcd.url], None).await.expect("a client");
        let all = client.get("", Some(etcd_client::GetOptions::new().with_all_keys().with_count_only())).await.expect("a count");
        assert_eq!(all.count(), 0);
    });
}

#[test]
fn of_many_at_once_one_wins() {
    let Some(etcd) = Etcd::start("races in etcd") else { return };
    run(async {
        let store = Arc::new(etcd.store("race"));
        ready(&store).await;
        let mut over: Option<Version> = None;
        for round in 0..6u8 {
            let tries: Vec<_> = (0..10u8)
                .map(|i| {
                    let (store, over) = (Arc::clone(&store), over.clone());
                    // Large ones race too.
                    let mine = if round % 2 == 0 { vec![i; 10] } else { vec![i; 1_500_000] };
                    tokio::spawn(async move { (i, store.put(&Item::State, mine, over.as_ref()).await) })
                })
                .collect();
            let mut won = Vec::new();
            for tried in tries {
                match tried.await.expect("a task") {
                    (i, Ok(version)) => won.push((i, version)),
                    (_, Err(error)) => assert_eq!(error, StoreError::Changed),
                }
            }
            let [(i, version)] = &won[..] else { panic!("{} won", won.len()) };
            assert!(bytes(&store, &Item::State).await.is_some_and(|b| b.iter().all(|byte| byte == i)));
            over = Some(version.clone());
        }
    });
}

#[test]
fn generations_are_listed_and_prefixes_do_not_mix() {
    let Some(etcd) = Etcd::start("generations in etcd") else { return };
    run(async {
        let (store, other) = (etcd.store("a"), etcd.store("a/b"));
        ready(&store).await;
        for serial in [12, 3, 100] {
            store.put(&Item::Generation(serial), if serial == 12 { large(1) } else { b"x".to_vec() }, None).await.expect("kept");
        }
        other.put(&Item::Generation(7), b"x".to_vec(), None).await.expect("kept");
        assert_eq!(store.generations().await.map(|all| all.into_iter().filter(|s| [3, 12, 100].contains(s)).count()), Ok(3));
        assert_eq!(store.generations().await.map(|all| all.len()), Ok(3), "chunks are no generations");
        assert_eq!(other.generations().await, Ok(vec![7]));
    });
}

#[test]
fn one_member_that_is_gone_does_not_matter_and_none_is_said_in_a_sentence() {
    let Some(etcd) = Etcd::start("a member of etcd that is gone") else { return };
    let nowhere = format!("http://127.0.0.1:{}", free_port());
    run(async {
        let store = etcd.store("k");
        ready(&store).await;
        // Wherever it stands, and as often as one asks.
        for endpoints in [[nowhere.as_str(), &etcd.url], [&etcd.url, nowhere.as_str()]] {
            for _ in 0..50 {
                assert_eq!(open(&endpoints, "k").get(&Item::State).await, Ok(None));
            }
        }
        let gone = open(&[&nowhere], "k").get(&Item::State).await.expect_err("there is nobody");
        let StoreError::Unreachable(text) = gone else { panic!("{gone:?}") };
        assert!(text.contains(&nowhere) && !text.contains("Error"), "{text}");
    });
}

#[test]
fn wrong_arguments_are_said() {
    let given = |pairs: &[(&str, Value)]| -> Object { pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect() };
    let urls = |all: &[&str]| Value::list(Type::String, all.iter().map(|u| Value::from(*u)).collect());
    let good = ("endpoints", urls(&["https://a:1"]));
    let prefix = ("prefix", Value::from("p"));
    for (arguments, words) in [
        (given(&[("endpoints", urls(&[])), prefix.clone()]), "must be a list of URLs"),
        (given(&[("endpoints", urls(&["a:2379"])), prefix.clone()]), "must be a list of URLs"),
        (given(&[("endpoints", urls(&["https://a:1", "http://b:1"])), prefix.clone()]), "all https:// or all http://"),
        (given(&[good.clone(), ("prefix", Value::from("/"))]), "must not be empty"),
        (given(&[good.clone(), prefix.clone(), ("username", Value::from("u"))]), "go together"),
        (given(&[good, prefix, ("cacert_path", Value::from("/nowhere"))]), "The file that \"cacert_path\" names can't be read"),
    ] {
        let wrong = EtcdStore::open(&arguments, Path::new("/"), None).err().expect(words);
        assert!(wrong.detail.contains(words), "{}", wrong.detail);
    }
}
