//! Other versions under the data: every small cluster from one to the next, stopped at every step, with crashes, taken back half-way and gone on with.
//! Nobody starts on what a newer version has written, and what there was is saved before.

mod hosts;
mod lab;
mod model;
mod steps;

use karmaform_model::Object;

use lab::{Lab, POLICIES, check_some as check, converge, names, refused, sane};
use steps::{Policy, Stop, arguments, with_setting};

/// The arguments of a cluster of so many members of a version.
fn at(members: usize, version: &str) -> Object {
    let mut all = arguments(members);
    all.insert("version".to_owned(), version.into());
    all.insert("source".to_owned(), format!("etcd-v{version}-linux-amd64.tar.gz").into());
    all
}

fn formed(members: usize, version: &str) -> Lab {
    let mut lab = Lab::default();
    converge(&mut lab, Some(&at(members, version)), Policy::Shuffled(7), "forming");
    lab
}

#[test]
fn every_size_to_the_next_minor_version() {
    for members in 1..=5 {
        check(&formed(members, "3.4.23"), Some(&at(members, "3.5.16")), &format!("{members} to the next minor version"));
    }
}

#[test]
fn patches_in_both_directions_together_with_a_setting() {
    for members in [1, 3] {
        for (from, to) in [("3.5.16", "3.5.33"), ("3.5.33", "3.5.16")] {
            let wanted = with_setting(at(members, to), "snapshot-count", "5000");
            check(&formed(members, from), Some(&wanted), &format!("{members} from {from} to {to}"));
        }
    }
}

/// Stopped after each step, with and without a member that does not come up again, then back; and then forward again.
#[test]
fn what_was_begun_can_be_taken_back() {
    let (old, new) = (at(3, "3.4.23"), at(3, "3.5.16"));
    let start = formed(3, "3.4.23");
    let plan = start.plan(Some(&new)).unwrap();
    let has_new_programs = |lab: &Lab| lab.world.hosts.values().all(|h| h.version() == Some((5, 16)));
    let (mut back, mut kept) = (0, 0);
    for policy in POLICIES {
        let steps = start.clone().run(&plan, policy, &Stop::Never).0;
        for at in 0..=steps {
            for crashed in ["", "a", "b", "c"] {
                let what = format!("{policy:?}, stopped after step {at}, {crashed} crashed, then back");
                let mut lab = start.clone();
                lab.run(&plan, policy, &Stop::After(at));
                if !crashed.is_empty() {
                    lab.world.crash(crashed);
                }
                lab.world.settle();
                // Nobody says any more that the old version is all that its data has seen: then there is only the way on.
                if has_new_programs(&lab) && lab.plan(Some(&old)).is_err() {
                    refused(&lab, &old, "There is no way back to that version");
                    converge(&mut lab, Some(&new), policy, &format!("{what}: there is none"));
                    kept += 1;
                    continue;
                }
                converge(&mut lab, Some(&old), policy, &what);
                sane(&lab, &what);
                converge(&mut lab, Some(&new), policy, &format!("{what}, then forward again"));
                back += 1;
            }
        }
    }
    assert!(back > 100 && kept > 10 && kept < back, "{back} taken back, {kept} not");
}

/// Nothing of the new version is anywhere before the data is saved, also at the second try.
#[test]
fn what_can_not_be_saved_is_not_upgraded() {
    let new = at(3, "3.5.16");
    for policy in POLICIES {
        let mut lab = formed(3, "3.4.23");
        for _ in 0..2 {
            lab.world.host_mut("a").unwrap().has_no_room = true;
            let plan = lab.plan(Some(&new)).unwrap();
            let (_, failures) = lab.run(&plan, policy, &Stop::Never);
            assert!(failures.iter().any(|f| f.contains("there is no room for a snapshot")), "{failures:?}");
            assert!(lab.world.hosts.values().all(|h| h.version() == Some((4, 23))), "{policy:?}");
            sane(&lab, "nothing was saved");
            lab.world.settle();
        }
        lab.world.host_mut("a").unwrap().has_no_room = false;
        converge(&mut lab, Some(&new), policy, "there is room again");
        assert_eq!(lab.world.host_mut("a").unwrap().saved, Some(((5, 16), Some((4, 23)))));
    }
}

#[test]
fn what_is_no_way_is_refused() {
    let lab = formed(3, "3.4.23");
    refused(&lab, &at(3, "3.6.8"), "etcd goes from one minor version to the next");
    refused(&formed(3, "3.5.16"), &at(3, "3.6.8"), "A version that can't be upgraded from");
    refused(&formed(3, "3.5.16"), &at(3, "3.4.23"), "There is no way back to that version");
    refused(&lab, &at(5, "3.5.16"), "Members and the version can't change in one plan");
    for name in names(3) {
        let mut down = lab.clone();
        down.world.stop(&name);
        refused(&down, &at(3, "3.5.16"), "Not all members work");
        let mut wiped = lab.clone();
        wiped.world.wipe(&name);
        refused(&wiped, &at(3, "3.5.16"), "Members and the version can't change in one plan");
    }
}

#[test]
fn plans_say_what_they_do() {
    let lab = formed(3, "3.4.23");
    assert_eq!(
        lab.plan(Some(&at(3, "3.5.16"))).unwrap().choreography.impact,
        [
            "upgrades etcd from 3.4.23 to 3.5.16",
            "saves a snapshot first, on the host of a in /var/lib/etcd/main.snapshots",
            "once all members run 3.5, there is no way back to 3.4 but that snapshot; until then there is, by the old `version`",
            "rolling restart, one member at a time: b, c, then the leader a; quorum kept 2 of 3",
        ]
    );
}
