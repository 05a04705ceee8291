use futures::executor::block_on;
use karmaform_model::{History, OutputState};

use super::*;
use crate::memory::{Fault, Memory};

fn who(id: &str) -> LockInfo {
    LockInfo {
        id: id.into(),
        operation: "OperationTypeApply".into(),
        info: String::new(),
        who: "me@here".into(),
        version: "0.1.0".into(),
        created: "2026-01-02T03:04:05Z".into(),
        path: String::new(),
        lease: None,
        renewed: None,
    }
}

fn snapshot(serial: Serial, note: &str) -> Snapshot {
    let outputs = [("note".to_owned(), OutputState { value: note.into(), sensitive: false })].into();
    Snapshot { tool_version: "0.1.0".into(), lineage: "l".into(), serial, outputs, ..Snapshot::default() }
}

fn open(store: &Memory) -> RemoteState {
    RemoteState::new(Arc::new(store.clone()), Duration::from_secs(60))
}

fn read(store: &Memory) -> Option<Snapshot> {
    block_on(open(store).read()).unwrap()
}

fn write(state: &RemoteState, expected: Option<Serial>, next: &Snapshot) -> Result<(), BackendError> {
    block_on(state.write(expected, next))
}

fn lock(state: &RemoteState, id: &str) -> Result<LockId, BackendError> {
    block_on(state.lock(&who(id)))
}

fn holder(store: &Memory) -> Option<LockInfo> {
    store.bytes(&Item::Lock).map(|b| serde_json::from_slice(&b).unwrap())
}

#[test]
fn writes_whose_replies_are_lost_are_taken_for_what_they_are() {
    let store = Memory::default();
    let state = open(&store);
    for (fault, serial) in [(Fault::Met, 1), (Fault::Met, 2)] {
        store.fail(&[fault]);
        write(&state, (serial > 1).then(|| serial - 1), &snapshot(serial, "met")).unwrap();
    }
    // Done or not done, nobody knew; then more had happened, and was written under the same number.
    let over_the_first = [Fault::None, Fault::Lost];
    for (faults, note) in [(&[Fault::Lost][..], "lost"), (&[Fault::Down], "down"), (&over_the_first, "lost again")] {
        store.fail(faults);
        assert!(matches!(write(&state, Some(2), &snapshot(3, note)), Err(BackendError::Store { .. })), "{note}");
    }
    write(&state, Some(2), &snapshot(3, "through")).unwrap();
    assert_eq!(read(&store), Some(snapshot(3, "through")));
    write(&state, Some(3), &snapshot(4, "on")).unwrap();
    // Done, and met by its next try, after which nobody could look.
    store.fail(&[Fault::Met]);
    store.silence();
    assert!(matches!(write(&state, Some(4), &snapshot(5, "met")), Err(BackendError::Store { .. })));
    write(&state, Some(4), &snapshot(5, "seen")).unwrap();
    assert_eq!(read(&store), Some(snapshot(5, "seen")));
    // The very first write, lost.
    let store = Memory::default();
    let state = open(&store);
    store.fail(&[Fault::Lost]);
    write(&state, None, &snapshot(1, "one")).unwrap_err();
    write(&state, None, &snapshot(1, "two")).unwrap();
    assert_eq!(read(&store), Some(snapshot(1, "two")));
}

#[test]
fn what_somebody_else_wrote_is_never_written_over() {
    let store = Memory::default();
    let (mine, theirs) = (open(&store), open(&store));
    write(&mine, None, &snapshot(1, "mine")).unwrap();
    block_on(theirs.read()).unwrap();
    write(&theirs, Some(1), &snapshot(2, "theirs")).unwrap();
    assert!(matches!(write(&mine, Some(1), &snapshot(2, "late")), Err(BackendError::Conflict { expected: 1, found: 2 })));
    // With the same serial, as two that raced have it.
    store.set(&Item::State, snapshot(2, "others").to_text().as_bytes());
    assert!(matches!(write(&theirs, Some(2), &snapshot(3, "late")), Err(BackendError::Conflict { .. })));
    // A try of ours that was not done is not mistaken for theirs.
    store.fail(&[Fault::Down]);
    block_on(mine.read()).unwrap();
    write(&mine, Some(2), &snapshot(3, "down")).unwrap_err();
    store.set(&Item::State, snapshot(3, "theirs").to_text().as_bytes());
    assert!(matches!(write(&mine, Some(2), &snapshot(3, "again")), Err(BackendError::Conflict { found: 3, .. })));
    assert_eq!(read(&store), Some(snapshot(3, "theirs")));
}

#[test]
fn a_stale_read_ends_at_the_first_write() {
    let store = Memory::default();
    let state = open(&store);
    write(&state, None, &snapshot(1, "old")).unwrap();
    write(&state, Some(1), &snapshot(2, "new")).unwrap();
    let late = open(&store);
    store.stale(snapshot(1, "old").to_text().into_bytes());
    assert_eq!(block_on(late.read()).unwrap().map(|s| s.serial), Some(1));
    assert!(matches!(write(&late, Some(1), &snapshot(2, "late")), Err(BackendError::Conflict { found: 2, .. })));
    assert_eq!(read(&store), Some(snapshot(2, "new")));
}

#[test]
fn an_empty_object_is_no_state_and_what_is_no_state_is_never_overwritten() {
    let store = Memory::default();
    store.set(&Item::State, b"");
    assert_eq!(read(&store), None);
    write(&open(&store), None, &snapshot(1, "")).unwrap();
    for bytes in [&b"hello"[..], &[0xff, 0xfe], br#"{"version": 5}"#] {
        store.set(&Item::State, bytes);
        for expected in [None, Some(1)] {
            assert!(matches!(write(&open(&store), expected, &snapshot(2, "")), Err(BackendError::Damaged { .. })));
        }
        assert_eq!(store.bytes(&Item::State).as_deref(), Some(bytes));
    }
}

#[test]
fn a_lock_is_renewed_and_lost_only_to_others() {
    let store = Memory::default();
    let state = open(&store);
    let id = lock(&state, "a").unwrap();
    assert_eq!(holder(&store).unwrap().lease, Some(60));
    block_on(state.renew(&id, "later")).unwrap();
    store.fail(&[Fault::Met]);
    block_on(state.renew(&id, "much later")).unwrap();
    store.fail(&[Fault::Lost]);
    assert!(matches!(block_on(state.renew(&id, "later still")), Err(BackendError::Store { .. })));
    block_on(state.renew(&id, "at last")).unwrap();
    // Said to be done, and never seen by anybody: that is no sign of life.
    store.always(Fault::Deaf);
    assert!(matches!(block_on(state.renew(&id, "to nobody")), Err(BackendError::Store { source: StoreError::Changed, .. })));
    store.always(Fault::None);
    assert_eq!(holder(&store).unwrap().renewed.as_deref(), Some("at last"));
    // Unlocked by force, and taken by somebody else.
    block_on(open(&store).unlock(&id)).unwrap();
    assert!(matches!(block_on(state.renew(&id, "")), Err(BackendError::LockLost(None))));
    lock(&open(&store), "b").unwrap();
    assert!(matches!(block_on(state.renew(&id, "")), Err(BackendError::LockLost(Some(h))) if h.id == "b"));
    assert!(matches!(block_on(state.unlock(&id)), Err(BackendError::OtherLock { held, .. }) if held == "b"));
    assert_eq!(holder(&store).unwrap().id, "b", "what is somebody else's stays");
}

#[test]
fn a_last_sign_of_life_does_not_keep_the_lock() {
    let store = Memory::default();
    let state = open(&store);
    let id = lock(&state, "a").unwrap();
    let mut info = holder(&store).unwrap();
    info.renewed = Some("at the last moment".into());
    store.late(serde_json::to_vec(&info).unwrap());
    block_on(state.unlock(&id)).unwrap();
    assert_eq!(holder(&store), None);
    // Somebody else's is left alone, however late it came.
    let id = lock(&state, "a").unwrap();
    info.id = "b".into();
    store.late(serde_json::to_vec(&info).unwrap());
    assert!(matches!(block_on(state.unlock(&id)), Err(BackendError::OtherLock { held, .. }) if held == "b"));
    assert_eq!(holder(&store).unwrap().id, "b");
}

#[test]
fn taking_a_lock_whose_reply_is_lost_is_taking_it() {
    let store = Memory::default();
    store.fail(&[Fault::Met]);
    lock(&open(&store), "a").unwrap();
    assert!(matches!(lock(&open(&store), "b"), Err(BackendError::Locked(Some(h))) if h.id == "a"));
    // Nobody knows that it was done; the next run is told who it was.
    store.remove(&Item::Lock);
    store.fail(&[Fault::Lost]);
    assert!(matches!(lock(&open(&store), "c"), Err(BackendError::Store { .. })));
    assert!(matches!(lock(&open(&store), "d"), Err(BackendError::Locked(Some(h))) if h.id == "c"));
}

#[test]
fn who_lost_its_lock_to_another_can_not_write() {
    let store = Memory::default();
    let gone = open(&store);
    let id = lock(&gone, "gone").unwrap();
    write(&gone, None, &snapshot(1, "gone")).unwrap();
    let dead = holder(&store).unwrap();
    // It was alive, after all.
    block_on(gone.renew(&id, "now")).unwrap();
    assert!(matches!(block_on(open(&store).take_over(&dead, &who("next"))), Err(BackendError::Locked(Some(_)))));
    let dead = holder(&store).unwrap();
    let next = open(&store);
    assert_eq!(block_on(next.take_over(&dead, &who("next"))).unwrap(), LockId("next".into()));
    assert!(matches!(write(&gone, Some(1), &snapshot(2, "too late")), Err(BackendError::Conflict { .. })));
    assert!(matches!(block_on(gone.renew(&id, "")), Err(BackendError::LockLost(Some(_)))));
    let taken = block_on(next.read()).unwrap().unwrap();
    assert_eq!((taken.serial, &taken.outputs), (2, &snapshot(1, "gone").outputs));
    write(&next, Some(2), &snapshot(3, "next")).unwrap();
}

#[test]
fn where_there_was_no_state_yet_the_dead_can_not_write_one_either() {
    let store = Memory::default();
    let gone = open(&store);
    lock(&gone, "gone").unwrap();
    block_on(gone.read()).unwrap();
    let dead = holder(&store).unwrap();
    block_on(open(&store).take_over(&dead, &who("next"))).unwrap();
    assert!(matches!(write(&gone, None, &snapshot(1, "too late")), Err(BackendError::Conflict { .. })));
}

#[test]
fn a_lock_without_lease_is_never_taken_over() {
    let store = Memory::default();
    let terraform = br#"{"ID":"t","Operation":"OperationTypeApply","Info":"","Who":"me@there","Version":"1.11.4","Created":"2026-01-02T03:04:05.6Z","Path":"b/k"}"#;
    store.set(&Item::Lock, terraform);
    let found = holder(&store).unwrap();
    assert_eq!((found.lease, found.who.as_str()), (None, "me@there"));
    assert!(matches!(block_on(open(&store).take_over(&found, &who("next"))), Err(BackendError::Locked(Some(_)))));
    store.set(&Item::Lock, b"not ours");
    assert!(matches!(lock(&open(&store), "a"), Err(BackendError::Locked(None))));
}

fn about(who: &str) -> Generation {
    Generation {
        serial: 0,
        created: "2026-01-02T03:04:05Z".into(),
        who: who.into(),
        operation: "OperationTypeApply".into(),
        version: "0.1.0".into(),
        configuration: "abc".into(),
        resources: 0,
        overrides: std::collections::BTreeMap::new(),
    }
}

#[test]
fn each_run_that_wrote_leaves_a_generation_and_the_oldest_go() {
    let store = Memory::default();
    let runs = History::KEPT as u64 + 5;
    for run in 0..runs {
        let state = open(&store);
        let found = block_on(state.read()).unwrap().map(|s| s.serial);
        // Twice in a run, as an apply does.
        let next = found.unwrap_or(0) + 1;
        write(&state, found, &snapshot(next, "claimed")).unwrap();
        if run == 3 {
            store.fail(&[Fault::None, Fault::Met, Fault::Met]);
        }
        write(&state, Some(next), &snapshot(next + 1, &format!("run {run}"))).unwrap();
        block_on(state.keep(&about(&format!("run {run}")))).unwrap();
        block_on(state.keep(&about("again"))).unwrap();
    }
    let all = block_on(open(&store).history()).unwrap().unwrap();
    assert_eq!(all.len(), History::KEPT);
    assert_eq!(all.iter().map(|g| g.serial).collect::<Vec<_>>(), (6..=runs).map(|n| n * 2).collect::<Vec<_>>());
    assert!(all.iter().all(|g| g.who == format!("run {}", g.serial / 2 - 1)));
    let last = block_on(open(&store).generation(runs * 2)).unwrap();
    assert_eq!(last, Some(snapshot(runs * 2, &format!("run {}", runs - 1))));
    assert_eq!(block_on(open(&store).generation(2)).unwrap(), None, "it was let go");
    // Who only read leaves nothing.
    let count = store.count();
    let reader = open(&store);
    block_on(reader.read()).unwrap();
    block_on(reader.keep(&about("reader"))).unwrap();
    assert_eq!(store.count(), count);
    // A state that begins anew has serials that were there before.
    store.remove(&Item::State);
    let anew = open(&store);
    write(&anew, None, &snapshot(runs * 2, "anew")).unwrap();
    block_on(anew.keep(&about("anew"))).unwrap();
    assert_eq!(block_on(anew.generation(runs * 2)).unwrap(), Some(snapshot(runs * 2, "anew")));
    // A list that was lost costs who and when, and nothing else.
    store.set(&Item::History, b"{");
    let all = block_on(open(&store).history()).unwrap().unwrap();
    assert_eq!((all.len(), all[0].who.as_str()), (History::KEPT, ""));
}
