//! The store over etcd, against a real one.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use karmaform_etcd_state::EtcdStore;
use karmaform_model::{Found, Item, Object, StateStore, StoreError, Type, Value, Version};

use crate::etcd_server::{EtcdServer, free_port};

/// Larger than a request may be, and no multiple of anything.
const LARGE: usize = 10_000_003;

fn open(endpoints: &[&str], prefix: &str) -> EtcdStore {
    let mut arguments = Object::new();
    let urls = endpoints.iter().map(|e| Value::from(*e)).collect();
    arguments.insert("endpoints".to_owned(), Value::list(Type::String, urls));
    arguments.insert("prefix".to_owned(), Value::from(prefix));
    EtcdStore::open(&arguments, "default", Path::new("/"), None).expect("a store")
}

fn store_of(etcd: &EtcdServer, prefix: &str) -> EtcdStore {
    open(&[&etcd.url], prefix)
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
    let Some(etcd) = EtcdServer::start("creates and swaps in etcd") else { return };
    run(async {
        let store = store_of(&etcd, "karmaform/prod/");
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
        assert_eq!(etcd.keys(), Vec::<String>::new());
    });
}

#[test]
fn of_many_at_once_one_wins() {
    let Some(etcd) = EtcdServer::start("races in etcd") else { return };
    run(async {
        let store = Arc::new(store_of(&etcd, "race"));
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
    let Some(etcd) = EtcdServer::start("generations in etcd") else { return };
    run(async {
        let (store, other) = (store_of(&etcd, "a"), store_of(&etcd, "a/b"));
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
    let Some(etcd) = EtcdServer::start("a member of etcd that is gone") else { return };
    let nowhere = format!("http://127.0.0.1:{}", free_port());
    run(async {
        let store = store_of(&etcd, "k");
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
