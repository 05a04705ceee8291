use std::fs;

use karmaform_model::{Address, ResourceState, Status};

use super::*;

fn started(address: &str) -> JournalRecord {
    let planned = ResourceState {
        resource_type: "ssh_file".into(),
        provider: "ssh".into(),
        schema_version: 0,
        attributes: serde_json::json!({"content": "a\nb", "size": 3, "ratio": 0.5}).as_object().unwrap().clone().into(),
        secret_paths: Vec::new(),
        dependencies: vec!["data.ssh_host.a".parse().unwrap()],
        create_before_destroy: false,
        protected: false,
        status: Status::Unfinished,
    };
    JournalRecord::Started { address: address.parse().unwrap(), planned: Some(planned) }
}

fn ended(address: &str) -> JournalRecord {
    JournalRecord::Ended { address: address.parse::<Address>().unwrap(), state: None }
}

fn begin() -> JournalRecord {
    JournalRecord::Begin { lineage: "l".into(), serial: 7, version: "0.1.0".into() }
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".karmaform/journal");
    (folder, path)
}

#[test]
fn what_is_appended_is_read_back_also_by_the_next_run() {
    let (_folder, path) = folder();
    let mut journal = FileJournal::open(&path).unwrap();
    assert_eq!(journal.read().unwrap(), []);
    assert!(!path.exists(), "looking makes no file");
    journal.append(&[]).unwrap();
    journal.clear().unwrap();
    assert!(!path.exists());
    journal.append(&[begin(), started("ssh_file.a[\"x\"]")]).unwrap();
    journal.append(&[ended("ssh_file.a[0]")]).unwrap();
    let all = vec![begin(), started("ssh_file.a[\"x\"]"), ended("ssh_file.a[0]")];
    assert_eq!(journal.read().unwrap(), all);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2, "one line is one append");

    drop(journal);
    let mut next = FileJournal::open(&path).unwrap();
    assert_eq!(next.read().unwrap(), all);
    next.append(&[JournalRecord::Written { serial: 8 }]).unwrap();
    assert_eq!(next.read().unwrap().len(), 4);
    next.clear().unwrap();
    assert_eq!((next.read().unwrap(), fs::read(&path).unwrap()), (vec![], vec![]));
    next.append(&[begin()]).unwrap();
    assert_eq!(next.read().unwrap(), [begin()]);
}

#[test]
fn a_journal_torn_at_any_byte_keeps_every_whole_line_and_goes_on() {
    let (_folder, path) = folder();
    let mut journal = FileJournal::open(&path).unwrap();
    let appends = [vec![begin()], vec![started("ssh_file.a"), started("ssh_file.b")], vec![ended("ssh_file.a")]];
    let mut ends = vec![0];
    for records in &appends {
        journal.append(records).unwrap();
        ends.push(fs::metadata(&path).unwrap().len());
    }
    let full = fs::read(&path).unwrap();
    drop(journal);
    for cut in 0..=full.len() {
        for tail in [&b""[..], b"\0\0\0\0", b"\0\0\n", b"kf1 00000000 []\n", b"garbage"] {
            fs::write(&path, [&full[..cut], tail].concat()).unwrap();
            let whole = ends.iter().filter(|e| **e <= cut as u64).count() - 1;
            let expected = appends[..whole].concat();
            let mut journal = FileJournal::open(&path).unwrap();
            // Garbage that begins inside a torn line ends with it: one last line is bad, whatever is in it.
            assert_eq!(journal.read().unwrap(), expected, "cut at {cut}, then {tail:?}");
            if cut % if tail.is_empty() { 3 } else { 32 } != 0 {
                continue; // Each append waits for the disk.
            }
            journal.append(&[ended("ssh_file.z")]).unwrap();
            assert_eq!(FileJournal::open(&path).unwrap().read().unwrap(), [expected, vec![ended("ssh_file.z")]].concat(), "cut at {cut}");
        }
    }
}

#[test]
fn damage_before_the_last_line_is_an_error_at_any_byte() {
    let (_folder, path) = folder();
    let mut journal = FileJournal::open(&path).unwrap();
    journal.append(&[begin()]).unwrap();
    let first = fs::metadata(&path).unwrap().len();
    journal.append(&[ended("ssh_file.a")]).unwrap();
    let full = fs::read(&path).unwrap();
    drop(journal);
    for at in 0..usize::try_from(first).unwrap() {
        let mut bytes = full.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let error = FileJournal::open(&path).unwrap().read().unwrap_err();
        assert!(error.to_string().contains("line 1 of the journal"), "byte {at}: {error}");
    }
    assert!(matches!(FileJournal::open(&path).unwrap().append(&[begin()]), Err(BackendError::Damaged { .. })));
    FileJournal::open(&path).unwrap().clear().unwrap();
    assert_eq!(FileJournal::open(&path).unwrap().read().unwrap(), []);
}

#[test]
fn a_line_of_another_version_is_never_dropped() {
    let (_folder, path) = folder();
    FileJournal::open(&path).unwrap().append(&[begin()]).unwrap();
    let own = fs::read_to_string(&path).unwrap();
    let unknown = r#"[{"finished_twice":{}}]"#;
    let unknown = format!("kf1 {:08x} {unknown}\n", checksum(unknown.as_bytes()));
    for last in ["kf3 00000000 {}\n", &unknown] {
        fs::write(&path, format!("{own}{last}")).unwrap();
        let error = FileJournal::open(&path).unwrap().read().unwrap_err().to_string();
        assert!(error.contains("line 2 of the journal was written by another version"), "{error}");
    }
}

#[test]
fn a_full_disk_is_an_error_and_the_next_append_is_clean() {
    let (_folder, path) = folder();
    let mut journal = FileJournal::open(&path).unwrap();
    journal.append(&[begin()]).unwrap();
    let real = journal.file.replace(Held::new(OpenOptions::new().write(true).open("/dev/full").unwrap()));
    let error = journal.append(&[started("ssh_file.a")]).unwrap_err();
    assert!(matches!(&error, BackendError::Io { what: "writing", source, .. } if source.kind() == io::ErrorKind::StorageFull), "{error}");
    // What a full disk leaves behind.
    fs::write(&path, [fs::read(&path).unwrap(), b"kf1 0123".to_vec()].concat()).unwrap();
    journal.file = real;
    journal.append(&[ended("ssh_file.a")]).unwrap();
    assert_eq!(journal.read().unwrap(), [begin(), ended("ssh_file.a")]);
}

#[test]
fn what_can_not_be_opened_is_a_clean_error() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(FileJournal::open(folder.path()), Err(BackendError::Io { what: "reading", .. })));
    let mut nowhere = FileJournal::open("/proc/karmaform/journal").unwrap();
    assert!(matches!(nowhere.append(&[begin()]), Err(BackendError::Io { .. })));
}

#[test]
fn the_checksum_is_the_well_known_one() {
    assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
}

#[test]
fn two_runs_do_not_mix_their_records() {
    let (_folder, path) = folder();
    let (mut first, mut second) = (FileJournal::open(&path).unwrap(), FileJournal::open(&path).unwrap());
    first.append(&[begin()]).unwrap();
    assert!(second.append(&[begin()]).unwrap_err().to_string().contains("another run is writing it"));
    drop(first);
    second.append(&[ended("ssh_file.a")]).unwrap();
    assert_eq!(second.read().unwrap(), [begin(), ended("ssh_file.a")]);
}
