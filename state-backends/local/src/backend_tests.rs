use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use karmaform_model::{History, OutputState};

use super::*;

/// Set for the processes that these tests start of themselves: what to do, and on which state.
const ROLE: &str = "KARMAFORM_LOCAL_TEST_ROLE";
const STATE: &str = "KARMAFORM_LOCAL_TEST_STATE";

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
    let output = OutputState { value: note.into(), sensitive: false };
    let outputs = [("note".to_owned(), output)].into();
    Snapshot { tool_version: "0.1.0".into(), lineage: "l".into(), serial, outputs, ..Snapshot::default() }
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("karmaform.tfstate");
    (folder, path)
}

fn read(path: &Path) -> Option<Snapshot> {
    block_on(LocalBackend::new(path).read()).unwrap()
}

fn write(backend: &LocalBackend, expected: Option<Serial>, next: &Snapshot) -> Result<(), BackendError> {
    block_on(backend.write(expected, next))
}

fn lock(backend: &LocalBackend, id: &str) -> Result<LockId, BackendError> {
    block_on(backend.lock(&who(id)))
}

fn unlock(backend: &LocalBackend, id: &str) -> Result<(), BackendError> {
    block_on(backend.unlock(&LockId(id.into())))
}

fn names(folder: &tempfile::TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Starts this test binary again in a role and waits until it is ready.
fn child(role: &str, path: &Path) -> Child {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "backend::tests::other_process", "--nocapture"])
        .env(ROLE, role)
        .env(STATE, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let ready = path.with_extension("ready");
    while !ready.exists() {
        assert!(start.elapsed() < Duration::from_secs(30), "the other process does not start");
        std::thread::sleep(Duration::from_millis(2));
    }
    fs::remove_file(ready).unwrap();
    child
}

/// What the other process does; nothing in an ordinary test run.
#[test]
fn other_process() {
    let (Ok(role), Ok(path)) = (std::env::var(ROLE), std::env::var(STATE)) else { return };
    let path = PathBuf::from(path);
    let backend = LocalBackend::new(&path);
    lock(&backend, "other").unwrap();
    fs::write(path.with_extension("ready"), "").unwrap();
    match role.as_str() {
        // Until the first process closes the pipe, or kills this one.
        "hold" => drop(std::io::stdin().read_to_end(&mut Vec::new())),
        _ => {
            let mut serial = None;
            loop {
                let next = serial.unwrap_or(0) + 1;
                write(&backend, serial, &snapshot(next, &"x".repeat(100_000))).unwrap();
                serial = Some(next);
            }
        }
    }
    unlock(&backend, "other").unwrap();
}

#[test]
fn a_state_is_written_read_and_backed_up_once_a_run() {
    let (folder, path) = folder();
    let run = LocalBackend::new(&path);
    assert_eq!(block_on(run.read()).unwrap(), None);
    for serial in 1..4 {
        write(&run, (serial > 1).then(|| serial - 1), &snapshot(serial, "first run")).unwrap();
    }
    assert_eq!(read(&path), Some(snapshot(3, "first run")));
    assert_eq!(names(&folder), ["karmaform.tfstate"], "there was nothing to back up, and nothing else is left");
    let run = LocalBackend::new(&path);
    for serial in 4..7 {
        write(&run, Some(serial - 1), &snapshot(serial, "second run")).unwrap();
    }
    assert_eq!(read(&folder.path().join("karmaform.tfstate.backup")), Some(snapshot(3, "first run")));
    for name in names(&folder) {
        assert_eq!(fs::metadata(folder.path().join(&name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    write(&run, Some(6), &snapshot(6, "second run")).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before, "an equal state is not written again");
}

#[test]
fn a_lost_race_is_refused_and_changes_nothing() {
    let (_folder, path) = folder();
    let backend = LocalBackend::new(&path);
    let conflict = |expected, serial| match write(&backend, expected, &snapshot(serial, "late")).unwrap_err() {
        BackendError::Conflict { expected, found } => (expected, found),
        other => panic!("{other}"),
    };
    assert_eq!(conflict(Some(3), 4), (3, 0));
    write(&backend, None, &snapshot(5, "kept")).unwrap();
    assert_eq!(conflict(None, 1), (0, 5));
    assert_eq!(conflict(Some(4), 5), (4, 5));
    assert_eq!(conflict(Some(6), 7), (6, 5));
    assert_eq!(read(&path), Some(snapshot(5, "kept")));
}

#[test]
fn of_many_writers_at_once_one_wins_each_serial() {
    let (_folder, path) = folder();
    let threads: Vec<_> = (0..8)
        .map(|i| {
            let path = path.clone();
            std::thread::spawn(move || {
                let backend = LocalBackend::new(&path);
                (0..20u64).filter(|s| write(&backend, s.checked_sub(1), &snapshot(*s, &format!("thread {i}"))).is_ok()).count()
            })
        })
        .collect();
    let won: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let last = read(&path).unwrap().serial;
    assert_eq!(won as u64, last + 1, "each serial was written exactly once");
}

#[test]
fn an_empty_file_is_no_state_and_anything_else_is_never_overwritten() {
    let (_folder, path) = folder();
    fs::write(&path, "").unwrap();
    assert_eq!(read(&path), None);
    write(&LocalBackend::new(&path), None, &snapshot(1, "")).unwrap();
    let written = fs::read(&path).unwrap();
    let version5 = br#"{"version":5,"serial":1}"#.to_vec();
    for content in [written[..written.len() / 2].to_vec(), b"hello".to_vec(), vec![0xff, 0xfe], version5] {
        fs::write(&path, &content).unwrap();
        let backend = LocalBackend::new(&path);
        assert!(matches!(block_on(backend.read()), Err(BackendError::Damaged { .. })));
        for expected in [None, Some(1)] {
            assert!(matches!(write(&backend, expected, &snapshot(2, "")), Err(BackendError::Damaged { .. })));
        }
        assert_eq!(fs::read(&path).unwrap(), content);
    }
    fs::write(&path, r#"{"version": 4, "serial": null, "lineage": "theirs", "terraform_version": "1.11.4"}"#).unwrap();
    write(&LocalBackend::new(&path), Some(0), &snapshot(1, "ours")).unwrap();
    assert_eq!(read(&path), Some(snapshot(1, "ours")));
}

#[test]
fn what_a_crash_left_before_the_rename_is_harmless() {
    let (folder, path) = folder();
    write(&LocalBackend::new(&path), None, &snapshot(1, "old")).unwrap();
    fs::write(folder.path().join(".karmaform.tfstate.new"), "{\"version\": 4, \"ser").unwrap();
    fs::write(folder.path().join(".karmaform.tfstate.backup.new"), "half").unwrap();
    assert_eq!(read(&path), Some(snapshot(1, "old")));
    write(&LocalBackend::new(&path), Some(1), &snapshot(2, "new")).unwrap();
    assert_eq!(read(&path), Some(snapshot(2, "new")));
    assert_eq!(names(&folder).iter().filter(|n| n.ends_with(".new")).count(), 0, "the next write uses it up");
}

#[test]
fn a_link_to_a_state_stays_a_link_and_shares_its_lock() {
    let (folder, link) = folder();
    let real = folder.path().join("real/state");
    write(&LocalBackend::new(&real), None, &snapshot(1, "")).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let (a, b) = (LocalBackend::new(&link), LocalBackend::new(&real));
    write(&a, Some(1), &snapshot(2, "through the link")).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&real), Some(snapshot(2, "through the link")));
    lock(&a, "a").unwrap();
    assert!(matches!(lock(&b, "b"), Err(BackendError::Locked(Some(_)))));
}

#[test]
fn one_holds_the_lock_and_the_others_are_told_who() {
    let (folder, path) = folder();
    let (a, b) = (Arc::new(LocalBackend::new(&path)), LocalBackend::new(folder.path().join("./karmaform.tfstate")));
    assert_eq!(lock(&a, "a").unwrap(), LockId("a".into()));
    let information = folder.path().join(".karmaform.tfstate.lock.info");
    let text = fs::read_to_string(&information).unwrap();
    let start = r#"{"ID":"a","Operation":"OperationTypeApply","Info":"","Who":"me@here","Version":"0.1.0","Created":"2026-01-02T03:04:05Z","Path":""#;
    assert!(text.starts_with(start) && text.ends_with("karmaform.tfstate\"}"), "{text}");
    assert_eq!(fs::metadata(&information).unwrap().permissions().mode() & 0o777, 0o600);
    for backend in [&*a, &b] {
        let Err(BackendError::Locked(Some(holder))) = lock(backend, "b") else { panic!("two hold the lock") };
        assert_eq!(holder.id, "a");
    }
    assert!(matches!(unlock(&a, "b"), Err(BackendError::OtherLock { held, .. }) if held == "a"));
    assert!(matches!(unlock(&b, "b"), Err(BackendError::OtherLock { held, .. }) if held == "a"));
    let error = unlock(&b, "a").unwrap_err().to_string();
    assert!(error.contains("this very process is still running"), "{error}");
    unlock(&a, "a").unwrap();
    assert_eq!(names(&folder), Vec::<String>::new());
    assert!(matches!(unlock(&a, "a"), Err(BackendError::NotLocked)));
    lock(&b, "b").unwrap();
    drop(b);
    lock(&a, "again").unwrap();
    assert_eq!(block_on(a.read()).unwrap(), None, "a lock is no state");
}

#[test]
fn threads_never_hold_it_together() {
    let (_folder, path) = folder();
    let inside = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let threads: Vec<_> = (0..4)
        .map(|i| {
            let (path, inside) = (path.clone(), inside.clone());
            std::thread::spawn(move || {
                let mut taken = 0;
                for n in 0..100 {
                    let backend = LocalBackend::new(&path);
                    if let Ok(id) = lock(&backend, &format!("{i} {n}")) {
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        block_on(backend.unlock(&id)).unwrap();
                        taken += 1;
                    }
                }
                taken
            })
        })
        .collect();
    assert!(threads.into_iter().map(|t| t.join().unwrap()).sum::<usize>() > 0);
}

#[test]
fn another_process_holds_it_until_it_ends() {
    let (_folder, path) = folder();
    let mut child = child("hold", &path);
    let backend = LocalBackend::new(&path);
    let Err(BackendError::Locked(Some(holder))) = lock(&backend, "me") else { panic!("two processes hold the lock") };
    assert_eq!(holder.id, "other");
    let error = unlock(&backend, "other").unwrap_err().to_string();
    assert!(error.contains(&format!("the process {} is still running", child.id())), "{error}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    lock(&backend, "me").unwrap();
}

#[test]
fn a_dead_process_blocks_nobody() {
    for take_first in [true, false] {
        let (folder, path) = folder();
        let mut child = child("hold", &path);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(folder.path().join(".karmaform.tfstate.lock.info").exists(), "it had no time to clean up");
        let backend = LocalBackend::new(&path);
        if take_first {
            lock(&backend, "me").unwrap();
            unlock(&backend, "me").unwrap();
        } else {
            assert!(matches!(unlock(&backend, "me"), Err(BackendError::OtherLock { held, .. }) if held == "other"));
            unlock(&backend, "other").unwrap();
            assert!(matches!(unlock(&backend, "other"), Err(BackendError::NotLocked)));
        }
        assert_eq!(names(&folder), Vec::<String>::new());
    }
}

#[test]
fn a_process_killed_while_it_writes_leaves_a_whole_state() {
    let (_folder, path) = folder();
    for delay in 0..12 {
        let mut child = child("write", &path);
        for _ in 0..20 {
            // Whatever moment it is: no state yet, or a whole one.
            read(&path);
        }
        std::thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = read(&path);
        let backend = LocalBackend::new(&path);
        lock(&backend, "me").unwrap();
        write(&backend, found.as_ref().map(|s| s.serial), &snapshot(found.map_or(1, |s| s.serial + 1), "after")).unwrap();
        unlock(&backend, "me").unwrap();
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn what_the_disk_refuses_is_a_clean_error() {
    let backend = LocalBackend::new("/proc/karmaform/karmaform.tfstate");
    assert_eq!(block_on(backend.read()).unwrap(), None);
    for result in [write(&backend, None, &snapshot(1, "")).map(drop), lock(&backend, "a").map(drop)] {
        assert!(matches!(result, Err(BackendError::Io { .. })));
    }
    assert!(matches!(unlock(&backend, "a"), Err(BackendError::NotLocked)));
    let (folder, path) = folder();
    fs::create_dir(&path).unwrap();
    assert!(matches!(block_on(LocalBackend::new(&path).read()), Err(BackendError::Io { what: "reading", .. })));
    let below = folder.path().join("file/karmaform.tfstate");
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(matches!(write(&LocalBackend::new(&below), None, &snapshot(1, "")), Err(BackendError::Io { .. })));
    let read_only = folder.path().join("read-only");
    fs::create_dir(&read_only).unwrap();
    fs::set_permissions(&read_only, fs::Permissions::from_mode(0o555)).unwrap();
    // The superuser writes there all the same.
    if fs::write(read_only.join("probe"), "").is_err() {
        let backend = LocalBackend::new(read_only.join("s"));
        assert!(matches!(write(&backend, None, &snapshot(1, "")), Err(BackendError::Io { what: "writing", .. })));
        assert!(matches!(lock(&backend, "a"), Err(BackendError::Io { what: "locking", .. })));
    }
}

fn about(who: &str, minute: usize) -> Generation {
    Generation {
        serial: 0,
        created: format!("2026-01-02T03:{minute:02}:05Z"),
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
    let (folder, path) = folder();
    assert_eq!(block_on(LocalBackend::new(&path).history()).unwrap(), Some(Vec::new()));
    for run in 1..=History::KEPT as u64 + 2 {
        let backend = LocalBackend::new(&path);
        let found = block_on(backend.read()).unwrap().map(|s| s.serial);
        write(&backend, found, &snapshot(2 * run - 1, "on the way")).unwrap();
        write(&backend, Some(2 * run - 1), &snapshot(2 * run, &format!("run {run}"))).unwrap();
        block_on(backend.keep(&about(&format!("run {run}"), run as usize))).unwrap();
        block_on(backend.keep(&about("again", 0))).unwrap();
    }
    // Who only reads leaves nothing, and neither does who writes what is there.
    let reader = LocalBackend::new(&path);
    let last = block_on(reader.read()).unwrap().unwrap();
    write(&reader, Some(last.serial), &last).unwrap();
    block_on(reader.keep(&about("reader", 59))).unwrap();

    let all = block_on(reader.history()).unwrap().unwrap();
    assert_eq!(all.iter().map(|g| g.serial).collect::<Vec<_>>(), (3..=History::KEPT as u64 + 2).map(|run| 2 * run).collect::<Vec<_>>());
    assert!(all.iter().all(|g| g.who == format!("run {}", g.serial / 2)));
    assert_eq!(block_on(reader.generation(6)).unwrap(), Some(snapshot(6, "run 3")));
    assert_eq!(block_on(reader.generation(4)).unwrap(), None, "it was let go");
    let directory = folder.path().join("karmaform.tfstate.generations");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let files: Vec<_> = fs::read_dir(&directory).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!((files.len(), mode(&directory)), (History::KEPT + 1, 0o700), "{files:?}");
    assert!(files.iter().all(|f| mode(f) == 0o600));

    // A list that is damaged costs who and when; a generation that is damaged is said to be.
    fs::write(directory.join("history.json"), "{").unwrap();
    fs::write(directory.join("00000000000000000006.tfstate"), "half").unwrap();
    fs::write(directory.join("not ours"), "").unwrap();
    let all = block_on(reader.history()).unwrap().unwrap();
    assert_eq!((all.len(), all[0].serial, all[0].who.as_str()), (History::KEPT, 6, ""));
    assert!(matches!(block_on(reader.generation(6)), Err(BackendError::Damaged { place, .. }) if place.ends_with("06.tfstate")));
    // A state that begins anew has serials that were there before.
    fs::remove_file(&path).unwrap();
    let anew = LocalBackend::new(&path);
    write(&anew, None, &snapshot(8, "anew")).unwrap();
    block_on(anew.keep(&about("anew", 58))).unwrap();
    assert_eq!(block_on(anew.generation(8)).unwrap(), Some(snapshot(8, "anew")));
}

#[test]
fn runs_at_once_lose_no_generation() {
    let (_folder, path) = folder();
    let threads: Vec<_> = (1..=8u64)
        .map(|serial| {
            let path = path.clone();
            std::thread::spawn(move || {
                let generation = Generation { serial, ..about("one of many", 0) };
                crate::history::keep(&path, &generation, snapshot(serial, "").to_text().as_bytes()).unwrap();
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let all = block_on(LocalBackend::new(&path).history()).unwrap().unwrap();
    assert_eq!(all.iter().filter(|g| g.who == "one of many").count(), 8);
}
