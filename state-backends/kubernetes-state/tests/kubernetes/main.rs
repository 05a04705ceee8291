//! Against the real API server that the environment names.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use karmaform_kubernetes_state::KubernetesStore;
use karmaform_model::{Found, Item, Object, StateStore, StoreError, Value, Version};

/// Larger than a Secret may be, even packed.
const LARGE: usize = 3_000_001;

#[expect(clippy::print_stderr, reason = "a test talks to its reader")]
fn kubeconfig(test: &str) -> Option<String> {
    let found = std::env::var("KARMAFORM_TEST_KUBECONFIG").ok().filter(|k| !k.is_empty());
    if found.is_none() {
        eprintln!("SKIPPED (KARMAFORM_TEST_KUBECONFIG is not set): {test}");
    }
    found
}

fn arguments(pairs: &[(&str, &str)]) -> Object {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect()
}

/// A store that nobody else has.
fn fresh(kubeconfig: &str) -> KubernetesStore {
    let suffix = format!("test-{:016x}", fastrand::u64(..));
    let arguments = arguments(&[("secret_suffix", &suffix), ("namespace", "default"), ("config_path", kubeconfig)]);
    KubernetesStore::open(&arguments, "default", &BTreeMap::new(), Path::new("/"), None).expect("a store")
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads").block_on(future)
}

/// Bytes that can't be packed.
fn large(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..LARGE).map(|_| random.u8(..)).collect()
}

#[test]
fn creates_and_swaps_small_and_large() {
    let Some(kubeconfig) = kubeconfig("creates and swaps in Secrets") else { return };
    run(async {
        let store = fresh(&kubeconfig);
        for (first, second) in
            [(b"one".to_vec(), b"two".to_vec()), (large(1), large(2)), (large(3), b"small".to_vec()), (b"s".to_vec(), large(4))]
        {
            let one = store.put(&Item::State, first.clone(), None).await.expect("created");
            assert_eq!(store.put(&Item::State, second.clone(), None).await, Err(StoreError::Changed));
            assert_eq!(store.get(&Item::State).await, Ok(Some(Found { bytes: first, version: one.clone() })));
            let two = store.put(&Item::State, second.clone(), Some(&one)).await.expect("swapped");
            for late in [large(9), b"late".to_vec()] {
                assert_eq!(store.put(&Item::State, late, Some(&one)).await, Err(StoreError::Changed));
            }
            assert_eq!(store.get(&Item::State).await.expect("an answer").map(|f| f.bytes), Some(second));
            assert_eq!(store.delete(&Item::State, &one).await, Err(StoreError::Changed));
            store.delete(&Item::State, &two).await.expect("removed");
            store.delete(&Item::State, &two).await.expect("it is gone already");
            assert_eq!(store.get(&Item::State).await, Ok(None));
            assert_eq!(store.put(&Item::State, b"x".to_vec(), Some(&two)).await, Err(StoreError::Changed));
        }
    });
}

#[test]
fn a_lock_is_a_lease_that_is_held_and_freed() {
    let Some(kubeconfig) = kubeconfig("a lock as a Lease") else { return };
    run(async {
        let store = fresh(&kubeconfig);
        let lock = |id: &str| format!("{{\"ID\":\"{id}\",\"Lease\":60}}").into_bytes();
        for round in 0..2 {
            assert_eq!(store.get(&Item::Lock).await, Ok(None));
            let held = store.put(&Item::Lock, lock("a"), None).await.expect("locked");
            assert_eq!(store.put(&Item::Lock, lock("b"), None).await, Err(StoreError::Changed), "{round}");
            let renewed = store.put(&Item::Lock, lock("a"), Some(&held)).await.expect("renewed");
            assert_eq!(store.put(&Item::Lock, lock("b"), Some(&held)).await, Err(StoreError::Changed));
            assert_eq!(store.delete(&Item::Lock, &held).await, Err(StoreError::Changed));
            assert_eq!(store.get(&Item::Lock).await.expect("an answer").map(|f| f.bytes), Some(lock("a")));
            store.delete(&Item::Lock, &renewed).await.expect("freed");
            store.delete(&Item::Lock, &renewed).await.expect("it is free already");
        }
    });
}

#[test]
fn of_many_at_once_one_wins() {
    let Some(kubeconfig) = kubeconfig("races for a Secret and a Lease") else { return };
    run(async {
        let store = Arc::new(fresh(&kubeconfig));
        for item in [Item::State, Item::Lock] {
            let mut over: Option<Version> = None;
            for round in 0..4 {
                let tries: Vec<_> = (0..10)
                    .map(|i| {
                        let (store, over, item) = (Arc::clone(&store), over.clone(), item.clone());
                        // To write what is there already is no change to the server, and succeeds beside the one that wins.
                        let mine = format!("{{\"ID\":\"{round}-{i}\"}}").into_bytes();
                        tokio::spawn(async move { store.put(&item, mine, over.as_ref()).await })
                    })
                    .collect();
                let mut won = Vec::new();
                for tried in tries {
                    match tried.await.expect("a task") {
                        Ok(version) => won.push(version),
                        Err(error) => assert_eq!(error, StoreError::Changed),
                    }
                }
                assert_eq!(won.len(), 1, "{item:?}");
                over = won.pop();
            }
        }
    });
}

#[test]
fn generations_are_listed() {
    let Some(kubeconfig) = kubeconfig("generations in Secrets") else { return };
    run(async {
        let store = fresh(&kubeconfig);
        for serial in [12, 3, 100] {
            store.put(&Item::Generation(serial), if serial == 12 { large(1) } else { b"x".to_vec() }, None).await.expect("kept");
        }
        assert_eq!(store.generations().await, Ok(vec![3, 12, 100]));
        assert_eq!(fresh(&kubeconfig).generations().await, Ok(Vec::new()));
    });
}

/// The address of an API server that has nothing, and lets in who shows this token.
fn guarded(token: &Arc<Mutex<&'static str>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let token = Arc::clone(token);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let token = Arc::clone(&token);
            std::thread::spawn(move || answer(stream, &token));
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream, token: &Mutex<&'static str>) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let head: Vec<String> = lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let shown = head.iter().filter_map(|line| line.split_once(": ")).find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let is_good = shown.is_some_and(|(_, value)| value == format!("Bearer {}", token.lock().expect("a token")));
    let (code, reason) = if is_good { (404, "NotFound") } else { (401, "Unauthorized") };
    let body = format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"{reason}\",\"reason\":\"{reason}\",\"code\":{code}}}"
    );
    let head =
        format!("HTTP/1.1 {code} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).ok()
}

#[test]
fn a_token_that_ends_is_taken_anew_from_the_kubeconfig() {
    let token = Arc::new(Mutex::new("one"));
    let server = guarded(&token);
    let file = std::env::temp_dir().join(format!("karmaform-{:016x}", fastrand::u64(..)));
    let write = |token: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
             users: [{{name: u, user: {{token: {token}}}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
        );
        std::fs::write(&file, text).expect("written");
    };
    write("one");
    let store = fresh(&file.display().to_string());
    run(async {
        assert_eq!(store.get(&Item::State).await, Ok(None));
        *token.lock().expect("a token") = "two";
        let Err(StoreError::Refused(text)) = store.get(&Item::State).await else { panic!("it is let in with an old token") };
        assert!(text.contains("refused: Unauthorized"), "{text}");
        write("two");
        assert_eq!(store.get(&Item::State).await, Ok(None));
    });
    std::fs::remove_file(&file).expect("removed");
}

#[test]
fn what_is_wrong_is_said() {
    let open = |pairs: &[(&str, &str)]| KubernetesStore::open(&arguments(pairs), "default", &BTreeMap::new(), Path::new("/"), None);
    for (pairs, words) in [
        (&[("secret_suffix", "Big"), ("config_path", "/x")][..], "\"secret_suffix\" must be part of a name"),
        (&[("secret_suffix", "a"), ("namespace", "-"), ("config_path", "/x")], "\"namespace\" must be"),
        (&[("secret_suffix", "a")], "Nothing says where a kubeconfig is"),
    ] {
        assert!(open(pairs).err().expect(words).detail.contains(words));
    }
    let nowhere = open(&[("secret_suffix", "a"), ("config_path", "/nowhere")]).expect("a store");
    let Err(StoreError::Refused(text)) = run(nowhere.get(&Item::State)) else { panic!("there is no such file") };
    assert!(text.contains("/nowhere"), "{text}");
    let Some(kubeconfig) = kubeconfig("a namespace that is not there") else { return };
    let lost = open(&[("secret_suffix", "a"), ("namespace", "nobody-made-this"), ("config_path", &kubeconfig)]).expect("a store");
    let Err(StoreError::Refused(text)) = run(lost.put(&Item::State, b"x".to_vec(), None)) else { panic!("there is no such namespace") };
    assert!(text.contains("nobody-made-this"), "{text}");
}
