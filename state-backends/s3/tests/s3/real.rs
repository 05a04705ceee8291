//! What a store must do, on every real server there is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use http::Method;
use karmaform_model::{Found, Item, StateStore as _, StoreError, Value, Version};
use karmaform_s3::{Limits, S3Object, S3Objects, S3Store};

use crate::servers::{Server, open, say, servers};

/// Runs a test on all servers.
async fn on_each<F: Future<Output = ()>>(test: &str, run: impl Fn(Server) -> F) {
    for server in servers(test) {
        let (name, start) = (server.name, Instant::now());
        run(server).await;
        say(&format!("{test} on {name}: {} ms", start.elapsed().as_millis()));
    }
}

fn found(bytes: &[u8], version: &Version) -> Option<Found> {
    Some(Found { bytes: bytes.to_vec(), version: version.clone() })
}

#[tokio::test]
async fn created_once_and_swapped_only_by_who_knows_it() {
    on_each("created_once_and_swapped_only_by_who_knows_it", |server| async move {
        let bucket = server.bucket().await;
        let store = server.store(&bucket, "prod/karmada");
        assert_eq!(store.place(), format!("s3://{bucket}/prod/karmada"));
        let item = Item::State;
        assert_eq!(store.get(&item).await, Ok(None));

        let first = store.put(&item, b"one".to_vec(), None).await.unwrap();
        assert_eq!(store.get(&item).await, Ok(found(b"one", &first)));
        assert_eq!(store.put(&item, b"two".to_vec(), None).await, Err(StoreError::Changed), "created twice");
        assert_eq!(store.get(&item).await, Ok(found(b"one", &first)));

        let second = store.put(&item, b"two".to_vec(), Some(&first)).await.unwrap();
        assert_ne!(first, second);
        assert_eq!(store.put(&item, b"three".to_vec(), Some(&first)).await, Err(StoreError::Changed), "swapped what it did not know");
        assert_eq!(store.get(&item).await, Ok(found(b"two", &second)));

        assert_eq!(store.delete(&item, &first).await, Err(StoreError::Changed), "deleted what it did not know");
        assert_eq!(store.delete(&item, &second).await, Ok(()));
        assert_eq!(store.delete(&item, &second).await, Ok(()), "deleted twice");
        assert_eq!(store.get(&item).await, Ok(None));
        assert_eq!(store.put(&item, b"four".to_vec(), Some(&second)).await, Err(StoreError::Changed), "swapped what was gone");
        assert_eq!(store.get(&item).await, Ok(None));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_at_once_one_wins() {
    on_each("of_twenty_at_once_one_wins", |server| async move {
        let bucket = server.bucket().await;
        let stores: Vec<_> = (0..20).map(|_| Arc::new(server.store(&bucket, "race"))).collect();
        let mut expected: Option<Version> = None;
        // SeaweedFS lets them in one by one, and takes half a second for each that lost a swap.
        for (round, count) in [20, if server.name == "seaweedfs" { 6 } else { 20 }].into_iter().enumerate() {
            let writers = stores.iter().take(count).enumerate().map(|(n, store)| {
                let (store, expected) = (Arc::clone(store), expected.clone());
                tokio::spawn(async move {
                    let bytes = format!("round {round}, writer {n}").into_bytes();
                    (bytes.clone(), store.put(&Item::Lock, bytes, expected.as_ref()).await)
                })
            });
            let mut won = Vec::new();
            for writer in futures::future::join_all(writers).await {
                match writer.unwrap() {
                    (bytes, Ok(version)) => won.push((bytes, version)),
                    (_, Err(StoreError::Changed)) => {}
                    (_, Err(other)) => panic!("{other}"),
                }
            }
            let [(bytes, version)] = &won[..] else { panic!("{} winners on {}", won.len(), server.name) };
            assert_eq!(stores[0].get(&Item::Lock).await, Ok(found(bytes, version)));
            expected = Some(version.clone());
        }
    })
    .await;
}

#[tokio::test]
async fn generations_are_listed_in_order() {
    on_each("generations_are_listed_in_order", |server| async move {
        let bucket = server.bucket().await;
        let store = server.store(&bucket, "prod/karmada");
        assert_eq!(store.generations().await, Ok(vec![]));
        for serial in [10, 9, 100] {
            store.put(&Item::Generation(serial), vec![b'x'; 10], None).await.unwrap();
        }
        // Neighbours are not taken for generations.
        server.store(&bucket, "prod/karmada.generations").put(&Item::State, b"x".to_vec(), None).await.ok();
        server.store(&bucket, "prod/karmada2").put(&Item::Generation(7), b"x".to_vec(), None).await.unwrap();
        assert_eq!(store.generations().await, Ok(vec![9, 10, 100]));
        let oldest = store.get(&Item::Generation(9)).await.unwrap().unwrap();
        store.delete(&Item::Generation(9), &oldest.version).await.unwrap();
        assert_eq!(store.generations().await, Ok(vec![10, 100]));
    })
    .await;
}

#[tokio::test]
async fn keys_are_where_terraform_looks() {
    on_each("keys_are_where_terraform_looks", |server| async move {
        let bucket = server.bucket().await;
        let arguments = server.arguments(&bucket, "prod/karmada.tfstate");
        for workspace in ["default", "dev"] {
            let store = open(&arguments, workspace, Limits::default());
            assert_eq!(store.workspaces().await, Ok(vec![]));
            for item in [Item::State, Item::Lock, Item::Generation(3), Item::Scratch("a".to_owned())] {
                store.put(&item, b"{}".to_vec(), None).await.unwrap();
            }
        }
        assert_eq!(server.store(&bucket, "prod/karmada.tfstate").workspaces().await, Ok(vec!["dev".to_owned()]));
        let (status, list) = server.ask(Method::GET, &format!("{bucket}?list-type=2")).await;
        assert_eq!(status, 200);
        let keys: Vec<_> = list.split("<Key>").skip(1).filter_map(|k| k.split("</Key>").next()).collect();
        let below = |prefix: &str| {
            ["", ".generations/00000000000000000003.tfstate", ".probe-a", ".tflock"].map(|end| format!("{prefix}prod/karmada.tfstate{end}"))
        };
        assert_eq!(keys, [below("env:/dev/"), below("")].concat());
    })
    .await;
}

#[tokio::test]
async fn odd_names_and_large_states_arrive_as_they_are() {
    on_each("odd_names_and_large_states_arrive_as_they_are", |server| async move {
        let bucket = server.bucket().await;
        let store = server.store(&bucket, "a b/ü+%41~'(x)*=&/state");
        let small = store.put(&Item::State, b"small".to_vec(), None).await.unwrap();
        let large: Vec<u8> = (0..10_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let version = store.put(&Item::State, large.clone(), Some(&small)).await.unwrap();
        assert!(store.get(&Item::State).await == Ok(found(&large, &version)), "other bytes came back");
        let empty = store.put(&Item::State, Vec::new(), Some(&version)).await.unwrap();
        assert_eq!(store.get(&Item::State).await, Ok(found(b"", &empty)));
    })
    .await;
}

async fn refusal(store: &S3Store) -> String {
    let answers = [
        store.get(&Item::State).await.map(|_| ()),
        store.put(&Item::State, b"x".to_vec(), None).await.map(|_| ()),
        store.generations().await.map(|_| ()),
    ];
    let said: Vec<_> = answers
        .into_iter()
        .map(|answer| match answer {
            Err(StoreError::Refused(sentence)) => sentence,
            other => panic!("{other:?}"),
        })
        .collect();
    said.join("\n")
}

#[tokio::test]
async fn a_missing_bucket_is_named() {
    on_each("a_missing_bucket_is_named", |server| async move {
        let said = refusal(&server.store("not-there", "k")).await;
        for line in said.lines() {
            assert_eq!(
                line,
                format!("There is no bucket \"not-there\" at {}; create it, or correct bucket, region or endpoint.", server.endpoint)
            );
        }
    })
    .await;
}

#[tokio::test]
async fn wrong_keys_are_told_and_not_shown() {
    on_each("wrong_keys_are_told_and_not_shown", |server| async move {
        if server.name == "moto" {
            return say("moto believes any secret");
        }
        let bucket = server.bucket().await;
        for (argument, code) in [("secret_key", "SignatureDoesNotMatch"), ("access_key", "InvalidAccessKeyId")] {
            let mut arguments = server.arguments(&bucket, "k");
            arguments.insert(argument.to_owned(), Value::from("not-the-right-one"));
            let said = refusal(&open(&arguments, "default", Limits::default())).await;
            assert!(said.contains(code) && said.contains(&server.endpoint) && said.contains(&bucket), "{said}");
            assert!(!said.contains("not-the-right-one") && !said.contains(&server.secret), "{said}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_key_of_ones_own_encrypts() {
    on_each("a_key_of_ones_own_encrypts", |server| async move {
        let bucket = server.bucket().await;
        let mut arguments = server.arguments(&bucket, "k");
        arguments.insert("sse_customer_key".to_owned(), Value::from("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="));
        let store = open(&arguments, "default", Limits::default());
        let first = store.put(&Item::State, b"one".to_vec(), None).await.unwrap();
        assert_eq!(store.get(&Item::State).await, Ok(found(b"one", &first)));
        let second = store.put(&Item::State, b"two".to_vec(), Some(&first)).await.unwrap();
        if server.name == "seaweedfs" {
            let without = server.store(&bucket, "k").get(&Item::State).await;
            assert!(matches!(without, Err(StoreError::Refused(_))), "read without the key: {without:?}");
        }
        store.delete(&Item::State, &second).await.unwrap();
        for argument in ["encrypt", "skip_s3_checksum"] {
            let mut arguments = server.arguments(&bucket, argument);
            arguments.insert(argument.to_owned(), Value::from(true));
            let store = open(&arguments, "default", Limits::default());
            let first = store.put(&Item::State, b"one".to_vec(), None).await.unwrap();
            assert_eq!(store.get(&Item::State).await, Ok(found(b"one", &first)));
        }
    })
    .await;
}

#[tokio::test]
async fn files_come_back_as_they_were() {
    on_each("files_come_back_as_they_were", |server| async move {
        let bucket = server.bucket().await;
        let opened = S3Objects::open(&server.arguments(&bucket, "backups/m ü"), &BTreeMap::new(), None);
        let objects = opened.unwrap_or_else(|d| panic!("{}: {}", d.summary, d.detail)).in_parts_of(5 << 20);
        assert!(objects.list().await.unwrap().is_empty());
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut expected = Vec::new();
        for (name, size) in [("deep/of two parts+", (5u32 << 20) + 1), ("empty", 0), ("of three parts", (11 << 20) + 5), ("small", 5)] {
            let content: Vec<u8> = (0..size).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            std::fs::write(file.path(), &content).unwrap();
            objects.put(name, file.path()).await.unwrap_or_else(|d| panic!("{name}: {}", d.detail));
            let mut bytes = Vec::new();
            assert!(objects.get(name, &mut bytes).await.unwrap_or_else(|d| panic!("{name}: {}", d.detail)), "{name}");
            assert!(bytes == content, "{name}: other bytes came back");
            expected.push(S3Object { name: name.to_owned(), size: u64::from(size) });
        }
        assert_eq!(objects.list().await.unwrap(), expected);
        for object in &expected {
            objects.remove(&object.name).await.unwrap();
            objects.remove(&object.name).await.unwrap();
            assert!(!objects.get(&object.name, &mut Vec::new()).await.unwrap());
        }
        assert!(objects.list().await.unwrap().is_empty());
    })
    .await;
}
