//! Which of the snapshots from before upgrades are kept: the line of the script that saves them, run on its own.

use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// What is left of snapshots of these ages, in hours, when the one of no age was just saved. Who set the clock back has older ones of tomorrow.
fn left(ages: &[(&str, i64)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, age) in ages {
        let file = fs::File::create(folder.path().join(format!("before-{name}.db"))).unwrap();
        let hours = Duration::from_secs(age.unsigned_abs() * 3_600);
        let now = SystemTime::now();
        file.set_modified(if *age < 0 { now + hours } else { now - hours }).unwrap();
    }
    let script = include_str!("../golden/snapshot.sh");
    let line = script.lines().find(|line| line.starts_with("ls -1t ")).expect("the line that tidies up");
    let saved = folder.path().join("before-new.db");
    let done = Command::new("sh").args(["-euc", line]).env("kept", folder.path()).env("file", &saved).status().unwrap();
    assert!(done.success());
    let mut names: Vec<String> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_newest_three_are_kept() {
    let kept = left(&[("new", 0), ("a", 30), ("b", 20), ("c", 10)]);
    assert_eq!(kept, ["before-b.db", "before-c.db", "before-new.db"]);
    assert_eq!(left(&[("new", 0)]), ["before-new.db"]);
}

#[test]
fn the_one_that_was_just_saved_is_kept_though_the_clock_was_set_back() {
    let kept = left(&[("new", 0), ("a", -30), ("b", -20), ("c", -10)]);
    assert_eq!(kept, ["before-a.db", "before-b.db", "before-new.db"]);
}
