//! What every [`StateBackend`] must do. Each check gets two handles on one fresh place, as two processes would have them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karmaform_model::{
    BackendError, Generation, LockId, LockInfo, Object, OutputState, ResourceState, Snapshot, StateBackend, Status, Type, Value,
};
use serde_json::json;

use crate::parts::block_on;

/// Opens a handle on the same place as all other calls of this function.
type Open = dyn Fn() -> Arc<dyn StateBackend> + Send + Sync;

#[test]
fn local_file() {
    every_check(&|| {
        let place = tempfile::tempdir().expect("a temporary directory");
        Box::new(move || Arc::new(karmaform_local::LocalBackend::new(place.path().join("karmaform.tfstate"))))
    });
}

#[test]
fn encrypted() {
    every_check(&|| {
        let place = tempfile::tempdir().expect("a temporary directory");
        Box::new(move || {
            let backend = karmaform_local::LocalBackend::new(place.path().join("karmaform.tfstate"));
            Arc::new(backend.sealed(crate::parts::encryption(place.path())))
        })
    });
    let Some(server) = crate::s3::Server::all("the suite of state backends on S3, encrypted").into_iter().next() else { return };
    every_check(&|| {
        let (server, place) = (server.clone(), tempfile::tempdir().expect("a temporary directory"));
        let key = server.key("conformance");
        Box::new(move || {
            let backend = karmaform_remote::RemoteState::new(Arc::new(server.store(&key)), Duration::from_secs(60));
            Arc::new(backend.sealed(crate::parts::encryption(place.path())))
        })
    });
}

#[test]
fn memory() {
    every_check(&|| {
        let one: Arc<dyn StateBackend> = Arc::new(crate::tool::MemoryBackend::default());
        Box::new(move || Arc::clone(&one))
    });
}

#[test]
fn etcd() {
    let Some(server) = crate::etcd_server::EtcdServer::start("the suite of state backends on etcd") else { return };
    every_check(&|| {
        let mut arguments = Object::new();
        arguments.insert("endpoints".to_owned(), Value::list(Type::String, vec![Value::from(server.url.as_str())]));
        arguments.insert("prefix".to_owned(), Value::from(format!("conformance/{:016x}", fastrand::u64(..)).as_str()));
        Box::new(move || {
            let store = karmaform_etcd_state::EtcdStore::open(&arguments, "default", Path::new("/"), None).expect("a store");
            Arc::new(karmaform_remote::RemoteState::new(Arc::new(store), Duration::from_secs(60)))
        })
    });
}

#[test]
fn kubernetes() {
    let Ok(kubeconfig) = std::env::var("KARMAFORM_TEST_KUBECONFIG") else {
        return crate::parts::tell("SKIPPED (no Kubernetes): the suite of state backends on Kubernetes");
    };
    every_check(&|| {
        let suffix = format!("conformance-{:016x}", fastrand::u64(..));
        let texts = [("secret_suffix", suffix.as_str()), ("config_path", &kubeconfig)];
        let arguments: Object = texts.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        Box::new(move || {
            let store = karmaform_kubernetes_state::KubernetesStore::open(&arguments, "default", &BTreeMap::new(), Path::new("/"), None);
            Arc::new(karmaform_remote::RemoteState::new(Arc::new(store.expect("a store")), Duration::from_secs(60)))
        })
    });
}

#[test]
fn http() {
    let server = crate::http_state::gitlab::GitLab::start();
    every_check(&|| {
        let (server, name) = (server.clone(), format!("conformance-{:016x}", fastrand::u64(..)));
        Box::new(move || Arc::new(server.open(&name)))
    });
}

#[test]
fn s3() {
    for server in crate::s3::Server::all("the suite of state backends on S3") {
        every_check(&|| {
            let server = server.clone();
            let key = server.key("conformance");
            Box::new(move || Arc::new(karmaform_remote::RemoteState::new(Arc::new(server.store(&key)), Duration::from_secs(60))))
        });
    }
}

fn every_check(fresh: &dyn Fn() -> Box<Open>) {
    for check in [
        an_empty_place_has_no_state,
        what_was_written_comes_back,
        a_lost_race_is_refused,
        one_of_many_writers_wins,
        one_of_many_lockers_wins,
        a_lock_names_its_holder,
        what_runs_left_is_kept,
    ] {
        check(&*fresh());
    }
}

fn snapshot(serial: u64) -> Snapshot {
    let resource = ResourceState {
        resource_type: "terraform_data".into(),
        provider: "terraform".into(),
        schema_version: 0,
        attributes: json!({"id": "x", "input": {"value": "ünï\n\"quoted\"", "type": "string"}})
            .as_object()
            .cloned()
            .unwrap_or_default()
            .into(),
        secret_paths: Vec::new(),
        dependencies: vec!["terraform_data.b[\"k\"]".parse().expect("an address")],
        create_before_destroy: true,
        protected: true,
        status: Status::Unfinished,
    };
    let mut snapshot = Snapshot { tool_version: "0.1.0".into(), lineage: "l".into(), serial, ..Snapshot::default() };
    snapshot.outputs.insert("key".into(), OutputState { value: Value::from("pw").secret(), sensitive: true });
    snapshot.deposed.insert(("terraform_data.a".parse().expect("an address"), "0123abcd".into()), resource.clone());
    snapshot.resources.insert("etcd_cluster.main/member[\"a\"]/unit".parse().expect("an address"), resource);
    snapshot
}

fn info(id: &str) -> LockInfo {
    LockInfo {
        id: id.into(),
        operation: "OperationTypeApply".into(),
        info: "for a test".into(),
        who: "me@here".into(),
        version: "0.1.0".into(),
        created: "2026-01-02T03:04:05Z".into(),
        path: "karmaform.tfstate".into(),
        lease: None,
        renewed: None,
    }
}

fn an_empty_place_has_no_state(open: &Open) {
    assert!(block_on(open().read()).expect("readable").is_none());
}

fn what_was_written_comes_back(open: &Open) {
    let one = snapshot(1);
    block_on(open().write(None, &one)).expect("written");
    assert_eq!(block_on(open().read()).expect("readable").as_ref(), Some(&one));
    let two = Snapshot { resources: Default::default(), ..snapshot(2) };
    block_on(open().write(Some(1), &two)).expect("written");
    assert_eq!(block_on(open().read()).expect("readable"), Some(two));
}

/// Where a backend keeps it at all.
fn what_runs_left_is_kept(open: &Open) {
    let Some(none) = block_on(open().history()).expect("readable") else { return };
    assert_eq!(none, []);
    let about = |who: &str| Generation {
        serial: 0,
        created: "2026-01-02T03:04:05Z".into(),
        who: who.into(),
        operation: "OperationTypeApply".into(),
        version: "0.1.0".into(),
        configuration: "abc".into(),
        resources: 0,
        overrides: std::collections::BTreeMap::new(),
    };
    for run in [1, 2] {
        let backend = open();
        let last = (run > 1).then(|| 2 * run - 2);
        block_on(backend.write(last, &snapshot(2 * run - 1))).expect("written");
        block_on(backend.write(Some(2 * run - 1), &snapshot(2 * run))).expect("written");
        block_on(backend.keep(&about(&format!("run {run}")))).expect("kept");
    }
    let reader = open();
    block_on(reader.keep(&about("who wrote nothing"))).expect("nothing to keep");
    let all = block_on(reader.history()).expect("readable").unwrap_or_default();
    let expected = [1, 2].map(|run| Generation { serial: 2 * run, resources: 1, ..about(&format!("run {run}")) });
    assert_eq!(all, expected);
    assert_eq!(block_on(reader.generation(2)).expect("readable"), Some(snapshot(2)));
    assert_eq!(block_on(reader.generation(3)).expect("readable"), None, "it was written over by its own run");
    // What is brought from another place is as it was there, and is no state.
    let brought = Generation { serial: 7, resources: 5, ..about("who was somewhere else") };
    block_on(open().take_in(&brought, &snapshot(7))).expect("kept");
    let all = block_on(reader.history()).expect("readable").unwrap_or_default();
    assert_eq!(all.iter().map(|g| g.serial).collect::<Vec<_>>(), [2, 4, 7]);
    assert_eq!(all.last(), Some(&brought));
    assert_eq!(block_on(reader.generation(7)).expect("readable"), Some(snapshot(7)));
    assert_eq!(block_on(open().read()).expect("readable").map(|s| s.serial), Some(4));
}

fn a_lost_race_is_refused(open: &Open) {
    block_on(open().write(None, &snapshot(1))).expect("written");
    for wrong in [None, Some(0), Some(2)] {
        let error = block_on(open().write(wrong, &snapshot(7))).expect_err("must be refused");
        assert!(matches!(error, BackendError::Conflict { found: 1, .. }), "{wrong:?}: {error}");
    }
    assert_eq!(block_on(open().read()).expect("readable"), Some(snapshot(1)));
}

/// Runs `work` on many threads at once and gives the handles of those that say yes. They are kept, because a handle that is gone holds no
/// lock any more: that is what becomes of the lock of a process that was killed.
fn race(open: &Open, work: impl Fn(usize, &dyn StateBackend) -> bool + Sync) -> Vec<Arc<dyn StateBackend>> {
    let winners = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for i in 0..8 {
            let (winners, work) = (&winners, &work);
            scope.spawn(move || {
                let backend = open();
                if work(i, &*backend) {
                    winners.lock().unwrap_or_else(PoisonError::into_inner).push(backend);
                }
            });
        }
    });
    winners.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn one_of_many_writers_wins(open: &Open) {
    block_on(open().write(None, &snapshot(1))).expect("written");
    for round in 1..10 {
        let won = race(open, |i, backend| {
            let mine = Snapshot { tool_version: i.to_string(), ..snapshot(round + 1) };
            block_on(backend.write(Some(round), &mine)).is_ok()
        });
        assert_eq!(won.len(), 1, "round {round}");
        assert_eq!(block_on(open().read()).expect("readable").map(|s| s.serial), Some(round + 1));
    }
}

fn one_of_many_lockers_wins(open: &Open) {
    for round in 0..10 {
        let won = race(open, |i, backend| block_on(backend.lock(&info(&format!("{round}-{i}")))).is_ok());
        assert_eq!(won.len(), 1, "round {round}");
        let Err(BackendError::Locked(Some(holder))) = block_on(open().lock(&info("late"))) else { panic!("it is locked") };
        block_on(won[0].unlock(&LockId(holder.id))).expect("unlocked");
    }
}

fn a_lock_names_its_holder(open: &Open) {
    let holder = open();
    let id = block_on(holder.lock(&info("first"))).expect("locked");
    assert_eq!(id, LockId("first".into()));
    match block_on(open().lock(&info("second"))) {
        // A backend may add its lease.
        Err(BackendError::Locked(Some(found))) => assert_eq!(LockInfo { lease: None, renewed: None, ..*found }, info("first")),
        other => panic!("{other:?}"),
    }
    match block_on(open().unlock(&LockId("second".into()))) {
        Err(BackendError::OtherLock { given, held }) => assert_eq!((given.as_str(), held.as_str()), ("second", "first")),
        other => panic!("{other:?}"),
    }
    block_on(holder.unlock(&id)).expect("released");
    assert!(matches!(block_on(open().unlock(&id)), Err(BackendError::NotLocked)));
    block_on(holder.lock(&info("third"))).expect("free again");
}
