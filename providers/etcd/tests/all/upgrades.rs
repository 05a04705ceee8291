//! Other versions under the data: every small cluster from one to the next, stopped at every step, with crashes, taken back half-way and gone on with.
//! Nobody starts on what a newer version has written, and what there was is saved before.

use karmaform_model::Object;

use crate::lab::{Lab, POLICIES, check_some as check, converge, names, refused, refused_without, sane};
use crate::steps::{Policy, Stop, arguments, with_setting};

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

/// As many plans as there are versions on the way, each as careful as if it were alone.
#[test]
fn ways_over_other_versions() {
    for (from, to) in [("3.4.23", "3.7.1"), ("3.5.16", "3.6.14"), ("3.6.14", "3.7.1"), ("3.7.1", "3.5.16")] {
        for members in [1, 3] {
            check(&formed(members, from), Some(&at(members, to)), &format!("{members} from {from} to {to}"));
        }
    }
    let mut lab = formed(3, "3.4.23");
    let mut seen = Vec::new();
    while let Some(rest) = lab.plan(Some(&at(3, "3.7.1"))).unwrap().rest {
        seen.push(rest);
        let plan = lab.plan(Some(&at(3, "3.7.1"))).unwrap();
        lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
        lab.world.settle();
    }
    assert_eq!(
        seen,
        [
            "etcd goes to 3.5.32 first, then to 3.6.11, then to 3.7.1",
            "etcd goes to 3.6.11 first (with `snapshot-count` 1 until it goes on), then to 3.7.1",
        ]
    );
}

#[test]
fn nobody_gets_another_version_before_a_snapshot_that_is_not_among_the_targets() {
    for left_out in ["/snapshot", "member[\"a\"]"] {
        refused_without(left_out, &formed(3, "3.4.23"), &at(3, "3.5.16"), "Another version only for the whole cluster");
    }
}

/// With a part of a member as the target nobody looks whether it works, so nobody says that it does not.
#[test]
fn who_is_not_looked_at_is_not_called_down() {
    let lab = formed(3, "3.4.23");
    let told = lab.plan_of(Some(&at(3, "3.5.16")), &|address: &str| {
        address.contains("member[\"a\"]/program") || address.contains("member[\"b\"]/etcd")
    });
    let told: Vec<String> = told.err().expect("a refusal").iter().map(|d| d.summary.clone()).collect();
    assert_eq!(told, ["Another version only for the whole cluster"]);
}

/// Members are told before the first of them is changed, and nobody of the older version starts before.
#[test]
fn every_size_to_the_minor_version_before() {
    for members in 1..=5 {
        check(&formed(members, "3.6.14"), Some(&at(members, "3.5.33")), &format!("{members} to the minor version before"));
    }
    check(&formed(3, "3.7.1"), Some(&at(3, "3.6.14")), "from 3.7");
    assert_eq!(
        formed(3, "3.6.14").plan(Some(&at(3, "3.5.33"))).unwrap().choreography.impact,
        [
            "goes back from 3.6.14 to 3.5.33",
            "saves a snapshot first, on the host of a in /var/lib/etcd/main.snapshots",
            "tells the cluster first that it goes down to 3.5, and waits until all members keep their data as that does; what only newer ones keep is gone then",
            "rolling restart, one member at a time: b, c, then the leader a; quorum kept 2 of 3",
        ]
    );
}

/// Stopped after each step, with and without members that do not come up again, then up again, then down after all, and all the way up.
#[test]
fn a_way_down_can_be_given_up() {
    let (new, old) = (at(3, "3.6.14"), at(3, "3.5.33"));
    let start = formed(3, "3.6.14");
    let plan = start.plan(Some(&old)).unwrap();
    let mut told = 0;
    for policy in POLICIES {
        let steps = start.clone().run(&plan, policy, &Stop::Never).0;
        for at_step in 0..=steps {
            for crashed in [&[][..], &["a"], &["b"], &["c"], &["a", "b"], &["b", "c"]] {
                let what = format!("{policy:?}, stopped after step {at_step}, {crashed:?} crashed, then up again");
                let mut lab = start.clone();
                lab.run(&plan, policy, &Stop::After(at_step));
                lab.world.settle();
                crashed.iter().for_each(|member| lab.world.crash(member));
                told += usize::from(lab.world.formed.as_ref().is_some_and(|f| f.goes_down_to.is_some()));
                if lab.plan(Some(&new)).is_err() {
                    // All had gone down by then, and up it goes only together.
                    refused(&lab, &new, "Not all members work");
                    converge(&mut lab, Some(&old), policy, &format!("{what}: it goes down"));
                }
                converge(&mut lab, Some(&new), policy, &what);
                if crashed.is_empty() {
                    converge(&mut lab, Some(&at(3, "3.7.1")), policy, &format!("{what}, and to the next"));
                    converge(&mut lab, Some(&new), policy, &format!("{what}, and back"));
                }
                converge(&mut lab, Some(&old), policy, &format!("{what}, then down after all"));
                sane(&lab, &what);
            }
        }
    }
    assert!(told > 50, "{told}");
}

/// Half-way up, and then another patch of the version above, or one further away.
#[test]
fn another_version_half_way() {
    for (from, to, then) in
        [("3.5.33", "3.6.11", "3.6.14"), ("3.6.14", "3.5.33", "3.5.32"), ("3.4.23", "3.5.33", "3.7.1"), ("3.4.23", "3.5.16", "3.5.33")]
    {
        let start = formed(3, from);
        let plan = start.plan(Some(&at(3, to))).unwrap();
        for policy in POLICIES {
            let steps = start.clone().run(&plan, policy, &Stop::Never).0;
            for at_step in 0..=steps {
                let what = format!("{from} to {to}, {policy:?}, stopped after step {at_step}, then {then}");
                let mut lab = start.clone();
                lab.run(&plan, policy, &Stop::After(at_step));
                converge(&mut lab, Some(&at(3, then)), policy, &what);
            }
        }
    }
}

/// A member that is down and has the old version already is started, whoever runs it.
#[test]
fn down_with_members_that_are_down() {
    let (new, old) = (at(3, "3.6.14"), at(3, "3.5.33"));
    for (start, wanted) in [(formed(3, "3.6.14"), &old), (formed(3, "3.5.33"), &new)] {
        let back = if wanted == &old { &new } else { &old };
        let plan = start.plan(Some(wanted)).unwrap();
        let steps = start.clone().run(&plan, Policy::UnitsFirst, &Stop::Never).0;
        for at_step in 0..=steps {
            for crashed in names(3) {
                let what = format!("stopped after step {at_step}, {crashed} crashed");
                let mut lab = start.clone();
                lab.run(&plan, Policy::UnitsFirst, &Stop::After(at_step));
                lab.world.settle();
                lab.world.crash(&crashed);
                let mut on = lab.clone();
                if on.plan(Some(wanted)).is_err() {
                    refused(&on, wanted, "Not all members work");
                } else {
                    converge(&mut on, Some(wanted), Policy::UnitsFirst, &format!("{what}, then on"));
                }
                if lab.plan(Some(back)).is_ok() {
                    converge(&mut lab, Some(back), Policy::UnitsFirst, &format!("{what}, then back"));
                }
            }
        }
    }
}

/// What is saved before an upgrade does not stand in the way of what is saved before the way back.
#[test]
fn down_to_the_very_version_from_before_is_saved_first() {
    let mut lab = formed(3, "3.5.33");
    converge(&mut lab, Some(&at(3, "3.6.14")), Policy::UnitsFirst, "up");
    converge(&mut lab, Some(&at(3, "3.5.33")), Policy::UnitsFirst, "down");
    assert_eq!(lab.world.host_mut("a").unwrap().saved, Some(((5, 33), Some((6, 14)))));
}

#[test]
fn what_is_no_way_is_refused() {
    let lab = formed(3, "3.4.23");
    // Nobody says where the versions on the way are.
    let unnamed = |version: &str| {
        let mut all = at(3, version);
        all.insert("source".to_owned(), "etcd.tar.gz".into());
        all
    };
    refused(&lab, &unnamed("3.6.8"), "etcd goes from one minor version to the next");
    refused(&formed(3, "3.5.16"), &unnamed("3.6.8"), "A version that can't be upgraded from");
    assert!(formed(3, "3.6.14").plan(Some(&at(3, "3.7.1"))).unwrap().rest.is_some_and(|rest| rest.contains("snapshot-count")));
    refused(&formed(3, "3.7.1"), &unnamed("3.5.33"), "There is no way back to that version at once");
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
