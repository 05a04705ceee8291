//! Clusters in pods that begin anew with a snapshot: of every size, stopped at every step, with crashes; from what has lost its majority or never was.
//! Nobody of the old cluster serves beside the new one, and nothing is lost that the block does not give up.

use std::collections::BTreeSet;

use karmaform_model::{ChildStep, Object, Value};

use crate::pods_lab::{self, CLASS, Lab, POLICIES, arguments, changed, check, converge, formed, member, nothing, refused, sane, with};
use crate::steps::{Policy, Stop};

/// The arguments with a restoration of this name.
fn restored(arguments: Object, id: &str) -> Object {
    let image = "registry.example.com/karmaform:1";
    let block = [("from", "backup.db".into()), ("sha256", "ab".repeat(32).into()), ("id", id.into()), ("program_image", image.into())];
    with(arguments, "restore", Value::object(block))
}

/// The restorations that the members' data is from.
fn origins(lab: &Lab) -> BTreeSet<Option<String>> {
    lab.world.disks.values().map(|d| d.restored.clone()).collect()
}

/// What is beside data, in all volumes: what was made ready, and what was there before.
fn beside(lab: &Lab) -> (usize, usize) {
    let all = || lab.world.beside.values();
    (all().filter(|b| b.prepared.is_some()).count(), all().map(|b| b.before.len()).sum())
}

fn is_noted(lab: &Lab) -> bool {
    lab.state.children.keys().any(|path| path[0].name == "restored")
}

/// Every member has what there was before any restoration, in its place or aside.
fn nothing_is_lost(lab: &Lab, what: &str) {
    for (disk, data) in &lab.world.disks {
        let beside = lab.world.beside.get(disk);
        let mut all = beside.into_iter().flat_map(|b| b.before.iter().map(|(_, d)| d)).chain([data]);
        assert!(all.any(|d| d.restored.is_none()), "{what}: {disk} has lost what was before");
    }
}

/// Stops a run after each of its steps, with one order and another.
fn stopped_everywhere(start: &Lab, wanted: &Object, check: impl Fn(Lab, &str)) {
    let plan = start.plan(Some(wanted)).unwrap();
    for policy in [Policy::UnitsFirst, Policy::Shuffled(5)] {
        start.halts(&plan, policy, |halt| {
            let mut lab = halt.killed();
            lab.world.settle();
            check(lab, &format!("{policy:?}, stopped after step {}", halt.at));
        });
    }
}

fn summaries(lab: &Lab, wanted: &Object) -> Vec<String> {
    lab.plan(Some(wanted)).err().into_iter().flatten().map(|d| d.summary.clone()).collect()
}

#[test]
fn every_size_begins_anew() {
    for storage in [CLASS, "hostPath"] {
        for members in 1..=5 {
            let wanted = restored(arguments(members, storage), "");
            let then = |lab: &Lab, what: &str| {
                assert!(lab.world.helpers.is_empty(), "{what}: {:?}", lab.world.helpers);
                assert_eq!(beside(lab), (0, members), "{what}: what was there before is kept");
                let origins = origins(lab);
                assert!(origins.len() == 1 && !origins.contains(&None), "{what}: {origins:?}");
            };
            check(&formed(members, storage), Some(&wanted), &format!("{members} restored on {storage}"), then);
        }
    }
}

#[test]
fn what_is_in_a_bucket_is_given_to_helpers() {
    let image = "registry.example.com/karmaform:1";
    let block = [("from", "s3://fleet-backups/prod/etcd/main".into()), ("program_image", image.into())];
    let wanted = with(arguments(3, CLASS), "restore", Value::object(block));
    let then = |lab: &Lab, what: &str| {
        let origins = origins(lab);
        assert!(origins.len() == 1 && !origins.contains(&None), "{what}: {origins:?}");
    };
    check(&formed(3, CLASS), Some(&wanted), "3 restored out of a bucket", then);
}

#[test]
fn a_new_cluster_begins_with_a_snapshot() {
    for storage in [CLASS, "hostPath"] {
        for members in [1, 3] {
            let wanted = restored(arguments(members, storage), "");
            let then = |lab: &Lab, what: &str| assert!(origins(lab).len() == 1 && !origins(lab).contains(&None), "{what}");
            check(&Lab::default(), Some(&wanted), &format!("{members} from a snapshot on {storage}"), then);
        }
    }
}

#[test]
fn another_number_of_members_begins_anew() {
    for (from, to) in [(3, 1), (1, 3), (3, 5), (5, 3)] {
        check(&formed(from, CLASS), Some(&restored(arguments(to, CLASS), "")), &format!("{from} restored as {to}"), nothing);
    }
}

/// What is left of a cluster without a majority, whoever is left of it.
#[test]
fn what_has_lost_its_majority_is_rescued() {
    for lost in [[1, 2], [0, 2], [0, 1]] {
        for with_claim in [false, true] {
            let mut start = formed(3, CLASS);
            for name in lost.map(member) {
                start.world.wipe(&name);
                if with_claim {
                    start.world.remove("PersistentVolumeClaim", &format!("data-{name}"));
                }
            }
            start.world.settle();
            check(&start, Some(&restored(arguments(3, CLASS), "")), &format!("{lost:?} lost, with their claims: {with_claim}"), nothing);
        }
    }
}

#[test]
fn the_block_goes_and_nobody_is_restarted() {
    let mut lab = formed(3, CLASS);
    converge(&mut lab, Some(&restored(arguments(3, CLASS), "")), Policy::UnitsLast, "restored");
    let once = origins(&lab);
    let uids = |lab: &Lab| lab.world.pods.values().map(|p| p.uid.clone()).collect::<Vec<_>>();
    let running = uids(&lab);
    for policy in POLICIES {
        let mut lab = lab.clone();
        converge(&mut lab, Some(&arguments(3, CLASS)), policy, "without the block");
        assert_eq!(uids(&lab), running);
        assert_eq!(beside(&lab), (0, 0), "what was there before goes with the block");
        assert!(lab.world.helpers.is_empty() && !lab.state.children.keys().any(|path| path[0].name == "stopping"));
        // Written again it is meant again.
        converge(&mut lab, Some(&restored(arguments(3, CLASS), "")), policy, "again");
        assert!(origins(&lab).is_disjoint(&once));
    }
    converge(&mut lab, Some(&restored(arguments(3, CLASS), "second")), Policy::UnitsLast, "another one");
    assert!(origins(&lab).is_disjoint(&once));
    assert_eq!(beside(&lab), (0, 6), "all of before is kept");
}

#[test]
fn the_block_goes_at_any_moment() {
    let mut start = formed(3, CLASS);
    converge(&mut start, Some(&restored(arguments(3, CLASS), "")), Policy::UnitsLast, "restored");
    stopped_everywhere(&start, &arguments(3, CLASS), |mut lab, what| {
        sane(&lab, what);
        converge(&mut lab, Some(&arguments(3, CLASS)), Policy::UnitsFirst, what);
        assert_eq!(beside(&lab), (0, 0), "{what}");
        assert!(lab.world.helpers.is_empty(), "{what}");
    });
}

/// Nothing is stopped before all is ready in every volume.
#[test]
fn what_can_not_be_made_ready_stops_nobody() {
    let wanted = restored(arguments(3, CLASS), "");
    for policy in POLICIES {
        let mut lab = formed(3, CLASS);
        let uids = |lab: &Lab| lab.world.pods.values().map(|p| p.uid.clone()).collect::<Vec<_>>();
        let before = uids(&lab);
        lab.world.has_no_room = true;
        let plan = lab.plan(Some(&wanted)).unwrap();
        let (_, failures) = lab.run(&plan, policy, &Stop::Never);
        assert!(failures.iter().any(|f| f.contains("there is no room")), "{failures:?}");
        sane(&lab, "no room");
        assert!((0..3).all(|i| lab.world.is_healthy(&member(i))));
        assert_eq!(uids(&lab), before);
        // Given up, nothing is left of it.
        converge(&mut lab, Some(&arguments(3, CLASS)), policy, "given up");
        assert_eq!((uids(&lab), beside(&lab)), (before, (0, 0)));
        assert!(lab.world.helpers.is_empty());
    }
}

#[test]
fn the_block_goes_before_it_has_ended() {
    let (with, without) = (restored(arguments(3, CLASS), ""), arguments(3, CLASS));
    stopped_everywhere(&formed(3, CLASS), &with, |mut lab, what| {
        match summaries(&lab, &without)[..] {
            [] if is_noted(&lab) => converge(&mut lab, Some(&without), Policy::UnitsFirst, what),
            [] => {
                converge(&mut lab, Some(&without), Policy::UnitsFirst, what);
                nothing_is_lost(&lab, what);
                assert_eq!(beside(&lab).0, 0, "{what}");
            }
            _ => {
                refused(&lab, &without, "A restoration has begun and has not ended");
                nothing_is_lost(&lab, what);
                converge(&mut lab, Some(&with), Policy::UnitsLast, what);
                assert_eq!(beside(&lab), (0, 3), "{what}");
                converge(&mut lab, Some(&without), Policy::UnitsLast, what);
            }
        }
        converge(&mut lab, None, Policy::Shuffled(3), &format!("{what}, destroyed"));
    });
}

#[test]
fn given_up_at_any_moment_for_another_one() {
    stopped_everywhere(&formed(3, CLASS), &restored(arguments(3, CLASS), ""), |mut lab, what| {
        converge(&mut lab, Some(&restored(arguments(3, CLASS), "second")), Policy::UnitsLast, what);
        nothing_is_lost(&lab, what);
        converge(&mut lab, Some(&arguments(3, CLASS)), Policy::UnitsLast, what);
    });
}

/// Run and killed twice, with helpers that are gone by then; and destroyed at any moment: nothing is left, a helper least of all.
#[test]
fn killed_twice_and_destroyed_at_any_moment() {
    let with = restored(arguments(3, CLASS), "");
    for start in [formed(3, CLASS), Lab::default()] {
        stopped_everywhere(&start, &with, |lab, what| {
            let mut destroyed = lab.clone();
            converge(&mut destroyed, None, Policy::Shuffled(3), &format!("{what}, destroyed"));
            assert_eq!(destroyed.world.leftovers(), Vec::<String>::new(), "{what}");
            let Ok(plan) = lab.plan(Some(&with)) else { panic!("{what}: refused") };
            let steps = lab.clone().run(&plan, Policy::UnitsLast, &Stop::Never).0;
            for at in (0..=steps).step_by(5) {
                let mut lab = lab.clone();
                lab.run(&plan, Policy::UnitsLast, &Stop::After(at));
                lab.world.settle();
                lab.world.helpers.clear();
                converge(&mut lab, Some(&with), Policy::UnitsFirst, &format!("{what}, and after step {at}"));
            }
        });
    }
}

/// One of three is not ready: nobody changes over, in a cluster that is there and in one that is to be.
#[test]
fn one_that_is_not_ready_holds_all() {
    for start in [formed(3, CLASS), Lab::default()] {
        for policy in POLICIES {
            let mut lab = start.clone();
            lab.world.no_room_of = Some(member(1));
            let plan = lab.plan(Some(&restored(arguments(3, CLASS), ""))).unwrap();
            let (_, failures) = lab.run(&plan, policy, &Stop::Never);
            assert!(failures.iter().any(|f| f.contains("there is no room")), "{failures:?}");
            assert!(lab.world.disks.values().all(|d| d.restored.is_none()), "{policy:?}");
            let other = restored(arguments(1, CLASS), "other");
            lab.world.no_room_of = None;
            converge(&mut lab.clone(), Some(&other), policy, "with fewer");
            converge(&mut lab, Some(&arguments(3, CLASS)), policy, "given up");
            assert!(lab.world.helpers.is_empty() && beside(&lab) == (0, 0) && origins(&lab) == BTreeSet::from([None]));
        }
    }
}

/// What was made ready for a second one goes when the block is that of the first again.
#[test]
fn back_to_the_first_one_before_the_second_stops_anybody() {
    for keeps in [false, true] {
        let of = |arguments: Object| if keeps { with(arguments, "on_destroy", "keep") } else { arguments };
        let mut lab = formed(3, CLASS);
        let first = of(restored(arguments(3, CLASS), ""));
        converge(&mut lab, Some(&first), Policy::UnitsFirst, "the first");
        lab.world.no_room_of = Some(member(2));
        let plan = lab.plan(Some(&of(restored(arguments(3, CLASS), "second")))).unwrap();
        lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
        assert!(beside(&lab).0 > 0 && !lab.world.helpers.is_empty());
        for wanted in [first, of(arguments(3, CLASS))] {
            let mut lab = lab.clone();
            converge(&mut lab, Some(&wanted), Policy::UnitsLast, "back");
            assert!(beside(&lab).0 == 0 && lab.world.helpers.is_empty(), "keeps: {keeps}");
        }
    }
}

/// The first had started and was not noted when the second stopped all: what is in place then is not the first's.
#[test]
fn back_to_the_first_one_half_way_in_the_second() {
    let (first, second) = (restored(arguments(3, CLASS), ""), restored(arguments(3, CLASS), "second"));
    stopped_everywhere(&formed(3, CLASS), &first, |lab, what| {
        let of = |lab: &Lab, name: &str| lab.state.children.keys().any(|path| path[0].name == name);
        if !of(&lab, "starting") || is_noted(&lab) {
            return;
        }
        stopped_everywhere(&lab, &second, |mut lab, then| {
            let input = |name: &str| {
                lab.state.children.iter().find(|(path, _)| path[0].name == name).and_then(|(_, (_, of))| of.get("input").cloned())
            };
            let what = format!("{what}, then {then}");
            let id = |which: &str| {
                lab.state
                    .children
                    .iter()
                    .find(|(path, _)| path[0] == ChildStep::keyed("restoring", which))
                    .and_then(|(_, (_, of))| of.get("id").cloned())
            };
            let of_first = id("abababababab");
            if input("starting") != of_first {
                // All have what the second has put there.
                converge(&mut lab, Some(&second), Policy::UnitsLast, &what);
            } else if input("stopping") != of_first {
                refused(&lab, &first, "Another restoration has stopped the members since");
                converge(&mut lab.clone(), Some(&second), Policy::UnitsLast, &what);
                converge(&mut lab, Some(&restored(arguments(3, CLASS), "third")), Policy::UnitsLast, &what);
            } else if !is_noted(&lab) {
                converge(&mut lab, Some(&first), Policy::UnitsLast, &what);
                assert!(lab.world.helpers.is_empty() && beside(&lab).0 == 0, "{what}");
            }
        });
    });
}

/// Some members would begin with other things than the rest.
#[test]
fn what_has_begun_goes_on_as_it_began() {
    let (with, unfit) = (restored(arguments(3, CLASS), ""), "A restoration that has begun can't be changed");
    let block = |name: &str, value: Value| {
        let mut block = with["restore"].as_entries().unwrap().clone();
        block.insert(name.to_owned(), value);
        pods_lab::with(with.clone(), "restore", block)
    };
    let others = [block("bump_revision", 5i64.into()), restored(arguments(2, CLASS), ""), restored(arguments(4, CLASS), "")];
    let repaired = block("program_image", "registry.example.com/karmaform:2".into());
    stopped_everywhere(&formed(3, CLASS), &with, |mut lab, what| {
        let has_begun = lab.state.children.keys().any(|path| path[0].name == "restoring");
        if has_begun && !is_noted(&lab) {
            others.iter().for_each(|other| refused(&lab, other, unfit));
            converge(&mut lab.clone(), Some(&repaired), Policy::Shuffled(4), what);
            converge(&mut lab, Some(&restored(arguments(4, CLASS), "second")), Policy::Shuffled(9), what);
        } else {
            assert!(others.iter().all(|other| !summaries(&lab, other).iter().any(|s| s == unfit)), "{what}");
        }
    });
}

/// The others count on what it has said to them: it joins as one without data, as ever, or all begin anew.
#[test]
fn who_has_lost_what_was_restored_does_not_begin_again_alone() {
    let with = restored(arguments(3, CLASS), "");
    let then = |lab: Lab, what: &str| {
        let serves = lab.world.has_quorum() && !origins(&lab).contains(&None);
        if !serves {
            return;
        }
        for new_volume in [false, true] {
            let mut lab = lab.clone();
            lab.world.wipe(&member(2));
            if new_volume {
                let claim = format!("data-{}", member(2));
                lab.world.beside.remove(&format!("claim {claim}"));
                lab.world.remove("PersistentVolumeClaim", &claim);
                lab.world.pods.remove(&member(2));
            }
            lab.world.settle();
            let id = lab.world.formed.as_ref().unwrap().id.clone();
            let is_formed = lab.world.manifest("ConfigMap", "etcd-main-formed").is_some();
            let was_read = lab.state.children.values().any(|(_, of)| of.get("restoration").is_some_and(|v| !v.is_null()));
            if was_read {
                converge(&mut lab, Some(&with), Policy::UnitsLast, what);
                assert_eq!(lab.world.formed.as_ref().unwrap().id, id, "{what}");
            } else if is_formed {
                refused(&lab, &with, "A member has lost what was restored");
                converge(&mut lab, Some(&restored(arguments(3, CLASS), "second")), Policy::UnitsLast, what);
            }
        }
    };
    stopped_everywhere(&formed(3, CLASS), &with, then);
}

#[test]
fn data_of_before_is_kept_where_that_is_written() {
    let keep = |arguments: Object| with(arguments, "on_destroy", "keep");
    let mut lab = formed(3, CLASS);
    converge(&mut lab, Some(&keep(restored(arguments(3, CLASS), ""))), Policy::UnitsFirst, "restored");
    converge(&mut lab, Some(&keep(arguments(3, CLASS))), Policy::UnitsFirst, "without the block");
    nothing_is_lost(&lab, "kept");
}

/// What members are started with is another one in the same plan.
#[test]
fn other_settings_and_an_older_version_come_with_it() {
    let at = |version: &str| with(arguments(3, CLASS), "version", version);
    check(&formed(3, CLASS), Some(&changed(restored(arguments(3, CLASS), ""))), "restored, and a setting", nothing);
    let mut start = Lab::default();
    converge(&mut start, Some(&at("3.5.33")), Policy::Shuffled(7), "forming");
    refused(&start, &at("3.4.23"), "There is no way back to that version");
    converge(&mut start, Some(&at("3.6.8")), Policy::Shuffled(7), "upgrading");
    check(&start, Some(&restored(at("3.5.33"), "")), "back to 3.5 with a snapshot of it", nothing);
}

#[test]
fn members_come_and_go_while_the_block_stands() {
    let mut lab = formed(3, CLASS);
    converge(&mut lab, Some(&restored(arguments(3, CLASS), "")), Policy::Shuffled(3), "restored");
    let id = lab.world.formed.as_ref().unwrap().id.clone();
    check(&lab, Some(&restored(arguments(5, CLASS), "")), "5 of 3, with the block", nothing);
    check(&lab, Some(&restored(arguments(1, CLASS), "")), "1 of 3, with the block", nothing);
    converge(&mut lab, Some(&restored(arguments(5, CLASS), "")), Policy::Shuffled(3), "two more");
    assert_eq!(lab.world.formed.as_ref().unwrap().id, id);
    assert_eq!(origins(&lab).len(), 2, "the two have what the others told them");
}

#[test]
fn plans_say_what_is_lost_and_ask() {
    let plan = formed(3, CLASS).plan(Some(&restored(arguments(3, CLASS), ""))).unwrap();
    assert_eq!(
        plan.choreography.impact,
        [
            "restores etcd-main-0, etcd-main-1, etcd-main-2, from backup.db (SHA-256 abababababab...): what was written since that was saved is lost",
            "stops all members at once: etcd is unavailable until they have started with what was restored",
            "the revision is raised by 1000000000, so that whoever watches or caches begins anew",
            "data of before is kept in /var/lib/etcd/data.before-* of each volume, until the block `restore` is taken out",
        ]
    );
    assert!(plan.choreography.risk.confirm.is_some());
    let new = Lab::default().plan(Some(&restored(arguments(3, CLASS), ""))).unwrap();
    assert!(new.choreography.risk.confirm.is_none() && new.choreography.risk.data_loss.is_empty());
}

#[test]
fn what_makes_no_sense_is_refused() {
    refused(&formed(3, "emptyDir"), &restored(arguments(3, "emptyDir"), ""), "Data in emptyDir volumes can't be restored");
    let larger = pods_lab::placed(restored(arguments(3, CLASS), ""), "storage_size", "20Gi");
    refused(&formed(3, CLASS), &larger, "Volumes grow in a plan of their own");
    let mut block = restored(arguments(3, CLASS), "")["restore"].as_entries().unwrap().clone();
    block.remove("program_image");
    refused(&formed(3, CLASS), &with(arguments(3, CLASS), "restore", block), "No program for the volumes");
}
