//! What every [`Journal`] must do. Each check gets a function that opens the same place again, as the next run would.

use std::path::Path;

use karmaform_model::{Address, Journal, JournalRecord, Key};

type Open<'a> = dyn Fn() -> Box<dyn Journal> + 'a;

#[test]
fn local_file() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join(".karmaform/journal");
    every_check(&|| Box::new(karmaform_local::FileJournal::open(&path).expect("an open journal")));
}

#[test]
fn encrypted() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join(".karmaform/journal");
    every_check(&|| {
        Box::new(karmaform_local::FileJournal::open_sealed(&path, crate::parts::encryption(place.path())).expect("an open journal"))
    });
}

#[test]
fn a_torn_last_line_is_dropped() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join("journal");
    torn(&path, &|| karmaform_local::FileJournal::open(&path).expect("an open journal"));
    let path = place.path().join("encrypted");
    torn(&path, &|| karmaform_local::FileJournal::open_sealed(&path, crate::parts::encryption(place.path())).expect("an open journal"));
}

fn torn(path: &Path, open: &dyn Fn() -> karmaform_local::FileJournal) {
    open().append(&records(1)).expect("written");
    let whole = std::fs::read(path).expect("a file");
    open().append(&records(2)).expect("written");
    let both = std::fs::read(path).expect("a file");
    for length in whole.len()..both.len() {
        std::fs::write(path, &both[..length]).expect("written");
        assert_eq!(open().read().expect("readable"), records(1), "cut at {length}");
        open().append(&records(3)).expect("written");
        assert_eq!(open().read().expect("readable"), [records(1), records(3)].concat(), "appended after a cut at {length}");
    }
}

fn every_check(open: &Open<'_>) {
    assert_eq!(open().read().expect("readable"), []);
    open().append(&records(1)).expect("written");
    assert_eq!(open().read().expect("readable"), records(1));
    let mut journal = open();
    journal.append(&records(2)).expect("written");
    journal.append(&[]).expect("nothing to write");
    journal.append(&records(3)).expect("written");
    assert_eq!(open().read().expect("readable"), [records(1), records(2), records(3)].concat());
    journal.clear().expect("emptied");
    assert_eq!(open().read().expect("readable"), []);
    journal.append(&records(4)).expect("written");
    assert_eq!(open().read().expect("readable"), records(4));
}

fn records(serial: u64) -> Vec<JournalRecord> {
    let address = Address::managed("terraform_data", "x").with_key(Some(Key::Name("line\nbreak".into())));
    vec![
        JournalRecord::Begin { lineage: "l".into(), serial, version: "0.1.0".into() },
        JournalRecord::Started { address: address.clone(), planned: None },
        JournalRecord::Ended { address, state: None },
        JournalRecord::Written { serial },
    ]
}
