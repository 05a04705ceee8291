//! What is done by hand and ends early, with members that say what a real one says on a bad day only: each time it is told why, and what to do.

use std::path::Path;
use std::sync::Arc;

use karmaform_etcd::{Cluster, Defragmenting, Saving, Turn, defragment, disarm, move_leader, save};
use karmaform_model::Diagnostic;
use serde_json::json;

use crate::fake::{EXHAUSTED, Fakes, INVALID, Key, PRECONDITION, Says, Straight, closed, connection, tells};

/// A cluster of one member whose database is full.
async fn full(change: impl Fn(&mut Says)) -> Fakes {
    let fakes = Fakes::start(1).await;
    fakes.all(|says| says.alarms = vec![(1, 1)]);
    fakes.all(change);
    fakes
}

async fn disarmed(fakes: &Fakes) -> Diagnostic {
    disarm(&fakes.cluster(), &mut |_| ()).await.unwrap_err()
}

#[tokio::test]
async fn a_run_that_only_looks_changes_nothing() {
    let fakes = full(|_| ()).await;
    let cluster = Cluster::new(&fakes.connection(), Arc::new(Straight { only_looks: true })).unwrap();
    let refused = [
        disarm(&cluster, &mut |_| ()).await.unwrap_err(),
        move_leader(&cluster, None).await.unwrap_err(),
        defragment(&cluster, Defragmenting { force: true }, &mut |_| ()).await.unwrap_err(),
    ];
    for told in refused {
        assert!(told.summary == "Nothing may be changed" && told.detail.contains("only looks"), "{told:?}");
    }
    assert_eq!(fakes.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn an_alarm_that_can_not_be_ended_is_told_of_with_how_far_it_was() {
    let told = disarmed(&full(|says| says.refuses = vec![("Compact", EXHAUSTED, "etcdserver: too many requests")]).await).await;
    tells(&told, "The history could not be dropped", "at revision 7: too many requests. Nothing was defragmented", "log of the leader");

    let told = disarmed(&full(|says| says.refuses = vec![("Defragment", INVALID, "no space left on device")]).await).await;
    tells(&told, "Defragmentation failed", "Member a was asked to defragment, and that failed: no space left on device", "free space");

    let told = disarmed(&full(|says| says.refuses = vec![("Disarm", EXHAUSTED, "etcdserver: too many requests")]).await).await;
    tells(&told, "The alarm could not be ended", "Alarm NOSPACE of member a: too many requests.", "Run this again");

    let told = disarmed(&full(|says| says.alarms_stay = true).await).await;
    tells(&told, "The alarm is on again", "raised it again at once", "quota-backend-bytes");
    // And where nothing is in the way it ends.
    let fakes = full(|_| ()).await;
    assert_eq!(disarm(&fakes.cluster(), &mut |_| ()).await.unwrap().compacted, Some(7));
    assert!(fakes.0[0].says().alarms.is_empty());
}

#[tokio::test]
async fn members_with_different_data_are_left_as_they_are() {
    let fakes = full(|says| says.alarms = vec![(1, 2)]).await;
    let forced = Defragmenting { force: true };
    for told in [disarmed(&fakes).await, defragment(&fakes.cluster(), forced, &mut |_| ()).await.unwrap_err()] {
        tells(&told, "The data of members differ", "The alarm CORRUPT is on", "save the data directories of all members");
    }
    assert!(!fakes.asked().iter().any(|method| ["Compact", "Defragment", "Disarm"].contains(&method.as_str())));
}

#[tokio::test]
async fn a_leader_that_stays_is_told_of() {
    let alone = Fakes::start(1).await;
    let told = move_leader(&alone.cluster(), None).await.unwrap_err();
    tells(&told, "Nobody else can lead", "one member that votes", "stops writes");

    let fakes = Fakes::start(3).await;
    fakes.all(|says| says.refuses = vec![("MoveLeader", PRECONDITION, "etcdserver: bad leader transferee")]);
    let told = move_leader(&fakes.cluster(), Some("c")).await.unwrap_err();
    tells(&told, "The leader could not be moved", "Member a was asked to hand over to c: bad leader transferee", "-to");

    // They follow one that is in no list, so that each by itself is well.
    fakes.all(|says| says.leader = 99);
    let told = move_leader(&fakes.cluster(), None).await.unwrap_err();
    tells(&told, "No leader", "nobody to ask", "etcd status");
}

async fn saved(fakes: &Fakes, file: &Path) -> Diagnostic {
    save(&fakes.cluster(), file, &Saving::default(), &mut |_| ()).await.unwrap_err()
}

#[tokio::test]
async fn a_snapshot_that_is_none_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let fakes = Fakes::start(3).await;
    fakes.all(|says| says.snapshot = b"no database".to_vec());
    tells(&saved(&fakes, &file).await, "No snapshot was made", "of member b is not to be used: its length, 11 bytes", "with -member");
    fakes.all(|says| says.refuses = vec![("Snapshot", EXHAUSTED, "etcdserver: too many requests")]);
    tells(&saved(&fakes, &file).await, "No snapshot was made", "of member b is not to be used: too many requests", "with -member");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let nowhere = folder.path().join("none/s.db");
    tells(
        &saved(&fakes, &nowhere).await,
        "The snapshot can't be written",
        "none/s.db can't be written: No such file",
        "room for the whole",
    );

    fakes.0[1].says().hash = 6;
    let told = saved(&fakes, &file).await;
    tells(&told, "The data of members differ", "At revision 7 member b has other data than the others", "etcd hashkv");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_backup_notices_that_its_turn_is_over() {
    let fakes = Fakes::start(1).await;
    let key = |lease: u64| Key { key: "/karmaform.io/backups/nightly/lock".into(), value: "me".into(), lease };
    let turn = Turn::take(&fakes.cluster(), "nightly", "me", std::time::Duration::ZERO).await.unwrap();
    // The lease that it was given, another one's, and none.
    fakes.all(|says| says.keys = vec![key(7)]);
    turn.holds().await.unwrap();
    for keys in [vec![key(8)], vec![]] {
        fakes.all(|says| says.keys.clone_from(&keys));
        tells(&turn.holds().await.unwrap_err(), "The lock was lost", "another one may have begun", "etcd backup list");
    }

    fakes.all(|says| says.refuses = vec![("Txn", EXHAUSTED, "etcdserver: mvcc: database space exceeded")]);
    let told = turn.made(&json!({})).await.unwrap_err();
    tells(&told, "The cluster takes no note of backups", "read or written: mvcc: database space exceeded", "etcd status");
    let away = Cluster::new(&connection([closed()]), Arc::new(Straight { only_looks: false })).unwrap();
    let told = Turn::without_lock(&away, "nightly").newest().await.unwrap_err();
    tells(&told, "The cluster takes no note of backups", "onnection refused", "etcd status");
}
