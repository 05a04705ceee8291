//! What others have or put there, what is lost, and what the host remembers.

use super::*;

/// What somebody else has put there meanwhile is left alone, and so is what it would have taken the place of.
#[test]
fn what_others_put_there_meanwhile_stays() {
    let base = folder(&std::env::temp_dir());
    let (from, to) = (fill(base.path()), base.path().join("to"));
    std::fs::create_dir_all(to.join("lost+found/x")).unwrap();
    assert_eq!(run(base.path(), &change(&from, &to), None).1.as_deref(), Some("exists"));
    assert!(to.join("lost+found/x").exists() && has_all(&from));
    std::fs::remove_dir_all(&to).unwrap();
    let lines = "cp() { return 1; }\nln() { return 1; }";
    assert_eq!(run_with(base.path(), &change(&from, &to), None, lines).1.as_deref(), Some("write"));
    let strange = base.path().join("to.snapshots");
    std::fs::create_dir_all(strange.join("two")).unwrap();
    assert_eq!(run(base.path(), &change(&from, &to), None).1.as_deref(), Some("twice"));
    assert!(strange.join("two").exists() && base.path().join("from.snapshots/one").exists() && has_all(&from));
}

/// While it is nowhere, what others put in either place does not take its place.
#[test]
fn what_has_left_is_not_given_up_for_what_is_put_in_its_place() {
    for stray in ["from/stray", "to/stray"] {
        for commands in 1.. {
            let (base, other) = (folder(&std::env::temp_dir()), folder(&std::env::temp_dir()));
            let (from, to) = (fill(base.path()), other.path().join("to"));
            let left = base.path().join("from.karmaform-moved");
            let ended = run(base.path(), &change(&from, &to), Some(commands)).0.is_some();
            if !has_all(&left) {
                assert!(!ended, "it was never on its way");
                continue;
            }
            let stray = if stray.starts_with("to") { to.join("stray") } else { from.join("stray") };
            std::fs::create_dir_all(stray.parent().unwrap()).unwrap();
            std::fs::write(&stray, "").unwrap();
            assert_eq!(run(base.path(), &change(&from, &to), None).1.as_deref(), Some("twice"));
            assert!(has_all(&left));
            std::fs::remove_file(&stray).unwrap();
            assert_eq!(run(base.path(), &change(&from, &to), None), (Some(0), None));
            is_at(&to, &[&from], base.path(), "the stray is gone");
            break;
        }
    }
}

/// Two that one unit uses are two.
#[test]
fn another_directory_of_the_unit_is_left_alone() {
    let base = folder(&std::env::temp_dir());
    let (from, to, other) = (fill(base.path()), base.path().join("to"), base.path().join("other"));
    assert_eq!(run(base.path(), &change(&from, &to), None), (Some(0), None));
    assert_eq!(run(base.path(), &change_from(&[], &other), None), (Some(0), None));
    assert!(has_all(&to) && !other.exists());
}

/// All of it is lost: what remembers the move does not stand in the way of a new beginning.
#[test]
fn what_is_lost_on_its_way_is_forgotten() {
    let base = folder(&std::env::temp_dir());
    let (from, to) = (fill(base.path()), base.path().join("to"));
    assert_eq!(run_with(base.path(), &change(&from, &to), None, "ln() { return 1; }\ncp() { return 1; }").1.as_deref(), Some("write"));
    assert!(std::fs::read_to_string(base.path().join("kf/owned")).unwrap().contains("moving"));
    std::fs::remove_dir_all(&from).unwrap();
    assert_eq!(run(base.path(), &change(&from, &to), None).1.as_deref(), Some("nothing"));
    assert!(!std::fs::read_to_string(base.path().join("kf/owned")).unwrap().contains("moving"));
}

/// The next move failed before anything was done: where the last one brought it is known all the same.
#[test]
fn where_the_last_move_brought_it_is_remembered() {
    let base = folder(&std::env::temp_dir());
    let (from, to, third) = (fill(base.path()), base.path().join("to"), base.path().join("third"));
    assert_eq!(run(base.path(), &change(&from, &to), None), (Some(0), None));
    let owned = format!("ssh_directory\t{1}\t\nmoved\t{0}\t{1}\t{UNIT}\n", from.display(), to.display());
    assert_eq!(std::fs::read_to_string(base.path().join("kf/owned")).unwrap(), owned);
    std::fs::write(base.path().join("kf/fstab"), format!("/dev/sdx {} ext4 defaults 0 2\n", third.display())).unwrap();
    assert_eq!(run(base.path(), &change(&from, &third), None).1.as_deref(), Some("unmounted"));
    std::fs::remove_file(base.path().join("kf/fstab")).unwrap();
    assert_eq!(run(base.path(), &change(&from, &third), None), (Some(0), None), "only where it began is told");
    is_at(&third, &[&from, &to], base.path(), "told where it began");
}

/// Who comes to a place where somebody else was before does not take what that one has brought away from there.
#[test]
fn what_others_have_is_left_alone() {
    let of_other = |change: Change| {
        let Change::Create { mut after } = change else { unreachable!() };
        after.insert("stopped_unit".to_owned(), "etcd-other.service".into());
        Change::Create { after }
    };
    let base = folder(&std::env::temp_dir());
    let (from, to) = (fill(base.path()), base.path().join("to"));
    assert_eq!(run(base.path(), &change(&from, &to), None), (Some(0), None));
    // One that is new there, and one that comes from elsewhere and has lost everything.
    for told in [&[][..], &[base.path().join("lost").as_path()]] {
        std::fs::create_dir_all(&from).unwrap();
        let (_, word) = run(base.path(), &of_other(change_from(told, &from)), None);
        assert_eq!(word.as_deref(), (!told.is_empty()).then_some("nothing"));
        assert!(has_all(&to) && files(&from).is_empty(), "{told:?}");
    }
    // And one that has something.
    let other = base.path().join("other");
    std::fs::create_dir_all(other.join("x")).unwrap();
    assert_eq!(run(base.path(), &of_other(change(&other, &from)), None), (Some(0), None));
    assert!(has_all(&to) && from.join("x").exists());
}

/// The state may be several answers behind.
#[test]
fn every_place_where_it_was_leads_to_where_it_is() {
    let base = folder(&std::env::temp_dir());
    let from = fill(base.path());
    let places: Vec<PathBuf> = ["one", "two", "three"].iter().map(|name| base.path().join(name)).collect();
    for to in &places {
        assert_eq!(run(base.path(), &planned(base.path(), &from, &from, to), None), (Some(0), None), "{to:?}");
    }
    for at in [&from, &places[0], &places[1]] {
        assert_eq!(sources(&planned(base.path(), at, at, &from)).first().map(PathBuf::from).as_ref(), Some(&places[2]), "{at:?}");
    }
}

/// What was lost where it was brought is lost, once and for all.
#[test]
fn notes_of_what_is_lost_go() {
    let base = folder(&std::env::temp_dir());
    let from = fill(base.path());
    let (one, two) = (base.path().join("one"), base.path().join("two"));
    for to in [&one, &two] {
        assert_eq!(run(base.path(), &planned(base.path(), &from, &from, to), None), (Some(0), None));
    }
    std::fs::remove_dir_all(&two).unwrap();
    assert_eq!(run(base.path(), &planned(base.path(), &one, &from, &from), None).1.as_deref(), Some("nothing"));
    assert!(!std::fs::read_to_string(base.path().join("kf/owned")).unwrap_or_default().contains("moved"));
    assert!(sources(&planned(base.path(), &from, &from, &from)).is_empty());
}

/// Planned while the script of a run that was killed went on, and executed when that had ended.
#[test]
fn what_went_on_meanwhile_is_found() {
    let base = folder(&std::env::temp_dir());
    let (from, to, third) = (fill(base.path()), base.path().join("to"), base.path().join("third"));
    let notes = || std::fs::read_to_string(base.path().join("kf/owned")).unwrap();
    let first = planned(base.path(), &from, &from, &to);
    let noted = (0..).find(|n| run(base.path(), &first, Some(*n)).0.is_some() || notes().matches("moving\t").count() == 2);
    assert!(noted.is_some() && has_all(&from));
    for next in [&from, &third] {
        let then = planned(base.path(), &from, &from, next);
        assert_eq!(run(base.path(), &first, None), (Some(0), None));
        assert!(has_all(&to));
        assert_eq!(run(base.path(), &then, None), (Some(0), None), "{next:?}");
        assert!(has_all(next) && !to.exists(), "{next:?}");
    }
}

/// Nobody tells where it may be: what the host notes of it has to be there all the same.
#[test]
fn what_the_host_notes_must_be_there() {
    let base = folder(&std::env::temp_dir());
    let (from, to, third) = (fill(base.path()), base.path().join("to"), base.path().join("third"));
    let untold = |to: &Path| {
        let mut change = planned(base.path(), &from, &from, to);
        if let Change::Create { after } | Change::Update { after, .. } = &mut change {
            after.remove("moves_from");
        }
        change
    };
    assert_eq!(run(base.path(), &untold(&to), None), (Some(0), None));
    let away = base.path().join("away");
    std::fs::rename(&to, &away).unwrap();
    std::fs::write(base.path().join("kf/fstab"), format!("/dev/sdx {} ext4 nofail 0 2\n", to.display())).unwrap();
    for place in [&from, &third] {
        assert_eq!(run(base.path(), &untold(place), None).1.as_deref(), Some("unmounted"));
        assert!(!place.exists());
    }
    std::fs::remove_file(base.path().join("kf/fstab")).unwrap();
    std::fs::rename(&away, &to).unwrap();
    assert_eq!(run(base.path(), &untold(&third), None), (Some(0), None));
    assert!(has_all(&third));
}

/// Half-way, with another unit in the configuration, or on a host that has forgotten everything.
#[test]
fn what_was_left_is_not_passed_over() {
    let base = folder(&std::env::temp_dir());
    let (from, to) = (fill(base.path()), base.path().join("to"));
    let left = base.path().join("from.karmaform-moved");
    let stopped = (1..).find(|n| run(base.path(), &change(&from, &to), Some(*n)).0.is_some() || has_all(&left));
    assert!(stopped.is_some() && has_all(&left));
    let mut other = planned(base.path(), &from, &from, &from);
    if let Change::Create { after } | Change::Update { after, .. } = &mut other {
        after.insert("stopped_unit".to_owned(), "etcd-other.service".into());
    }
    assert_eq!(run(base.path(), &other, None).1.as_deref(), Some("unit"));
    std::fs::write(base.path().join("kf/owned"), "").unwrap();
    assert_eq!(run(base.path(), &planned(base.path(), &from, &from, &from), None).1.as_deref(), Some("left"));
    assert!(has_all(&left) && !from.exists());
}

/// It has arrived on a disk that is not mounted any more, and is taken back: nothing is begun anew where it was, and nothing forgotten.
#[test]
fn what_was_begun_is_not_taken_back_without_it() {
    let mut checked = 0;
    for commands in 1.. {
        let (base, other) = (folder(&std::env::temp_dir()), folder(&std::env::temp_dir()));
        let (from, to) = (fill(base.path()), other.path().join("to"));
        let ended = run(base.path(), &change(&from, &to), Some(commands)).0.is_some();
        let notes = || std::fs::read_to_string(base.path().join("kf/owned")).unwrap();
        if ended {
            break;
        }
        if !has_all(&to) || !notes().contains(&format!("moving\t{}", from.display())) {
            continue;
        }
        checked += 1;
        let (mounted, away) = (other.path().to_owned(), base.path().join("away"));
        std::fs::write(base.path().join("kf/fstab"), format!("/dev/sdx {} ext4 nofail 0 2\n", mounted.display())).unwrap();
        std::fs::rename(&to, &away).unwrap();
        let back = planned(base.path(), &from, &from, &from);
        assert_eq!(run(base.path(), &back, None).1.as_deref(), Some("unmounted"), "{commands}");
        assert!(!from.exists() && notes().contains(&format!("moving\t{}", from.display())));
        std::fs::rename(&away, &to).unwrap();
        std::fs::remove_file(base.path().join("kf/fstab")).unwrap();
        assert_eq!(run(base.path(), &planned(base.path(), &from, &from, &from), None), (Some(0), None), "{commands}");
        assert!(has_all(&from) && !to.exists());
    }
    assert!(checked >= 3, "{checked}");
}
