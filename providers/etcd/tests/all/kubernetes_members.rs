//! Members in pods that come, go and are replaced: every size to every other, stopped at every step, with crashes, lost volumes and removals by hand.
//! Quorum is never given up, nobody starts as something that the cluster does not know, and planning again always gets there.

use karmaform_model::{Object, Value};

use crate::pods::World;
use crate::pods_lab::{
    self, CLASS, Lab, POLICIES, STORAGES, arguments, changed, check_with, converge, delete_claim, delete_pod, formed, lose, member,
    nothing, placed, refused, subsets, with,
};
use crate::steps::{self, Stop, with_setting};

#[test]
fn every_size_to_every_other() {
    for storage in STORAGES {
        for (from, to) in (1..=3).flat_map(|from| (1..=3).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            let what = format!("{from} to {to} on {storage}");
            check_with(&formed(from, storage), Some(&arguments(to, storage)), storage == CLASS, &what, nothing);
        }
    }
    for (from, to) in [(3, 4), (4, 3), (2, 4), (3, 5), (5, 3), (5, 1)] {
        check_with(&formed(from, CLASS), Some(&arguments(to, CLASS)), false, &format!("{from} to {to}"), nothing);
    }
}

#[test]
fn sizes_change_together_with_a_setting() {
    for (from, to) in [(1, 3), (3, 5), (5, 3), (3, 1), (3, 2)] {
        check_with(
            &formed(from, CLASS),
            Some(&changed(arguments(to, CLASS))),
            from + to < 7,
            &format!("{from} to {to}, and a setting"),
            nothing,
        );
    }
}

/// Killed anywhere on the way, and then something else is wanted: what it was, or another size.
#[test]
fn who_changes_their_mind_gets_that() {
    let two = [POLICIES[0], POLICIES[2]];
    for (from, to, then) in [(1, 3, 1), (1, 3, 2), (3, 5, 3), (3, 5, 4), (3, 1, 3), (2, 3, 1), (5, 3, 5)] {
        let start = formed(from, CLASS);
        let plan = start.plan(Some(&arguments(to, CLASS))).unwrap();
        for policy in two {
            for eager in [false, true] {
                let mut start = start.clone();
                start.world.eager = eager;
                start.halts(&plan, policy, |halt| {
                    let what = format!("{from} to {to}, stopped after step {}, then {then}", halt.at);
                    converge(&mut halt.killed(), Some(&arguments(then, CLASS)), policy, &what);
                });
            }
        }
    }
}

/// One that was on its way in, and another setting meanwhile: its pod is made anew when it votes, in turn with those of the others.
#[test]
fn who_joined_as_it_was_before_restarts_in_turn() {
    for (from, to) in [(1, 2), (2, 3)] {
        let start = formed(from, CLASS);
        let plan = start.plan(Some(&arguments(to, CLASS))).unwrap();
        for policy in [POLICIES[0], POLICIES[1], POLICIES[2]] {
            start.halts(&plan, policy, |halt| {
                let what = format!("{from} to {to}, {policy:?}, stopped after step {}, then a setting", halt.at);
                converge(&mut halt.killed(), Some(&changed(arguments(to, CLASS))), policy, &what);
            });
        }
    }
}

/// While one joins there is a list of members, and nobody else may start by it.
#[test]
fn who_loses_its_data_while_another_one_joins_does_not_start() {
    let start = formed(3, CLASS);
    let plan = start.plan(Some(&arguments(5, CLASS))).unwrap();
    for policy in [POLICIES[0], POLICIES[2]] {
        start.halts(&plan, policy, |halt| {
            let mut lab = halt.killed();
            lab.world.settle();
            for lost in (0..4).map(member).filter(|lost| lab.world.is_healthy(lost)) {
                let mut lab = lose(&lab, std::slice::from_ref(&lost), delete_claim);
                let what = format!("3 to 5, stopped after step {}, then {lost} lost its data", halt.at);
                pods_lab::sane(&lab, &what);
                converge(&mut lab, Some(&arguments(5, CLASS)), policy, &what);
            }
        });
    }
}

#[test]
fn who_keeps_their_data_from_now_on_and_restarts() {
    let wanted = with(changed(arguments(3, CLASS)), "on_destroy", "keep");
    check_with(&formed(3, CLASS), Some(&wanted), false, "keeping and a setting", nothing);
}

/// Others come and go without a restart of who stays.
#[test]
fn who_stays_is_not_restarted() {
    for (from, to) in [(1, 3), (3, 5), (5, 3), (3, 1)] {
        let mut lab = formed(from, CLASS);
        let uids = |lab: &Lab| (0..from.min(to)).map(|i| lab.world.pods[&member(i)].uid.clone()).collect::<Vec<_>>();
        let before = uids(&lab);
        converge(&mut lab, Some(&arguments(to, CLASS)), steps::Policy::Shuffled(5), "resized");
        assert_eq!(uids(&lab), before, "{from} to {to}");
    }
}

#[test]
fn who_lost_its_data_is_replaced() {
    let check = |members: usize, lost: &[usize], storage: &str, how: fn(&mut World, &str), sizes: &[usize]| {
        let lost: Vec<String> = lost.iter().copied().map(member).collect();
        let lab = lose(&formed(members, storage), &lost, how);
        for size in sizes {
            let what = format!("{} of {members} lost their data on {storage}, {size} wanted", lost.join(" "));
            check_with(&lab, Some(&arguments(*size, storage)), false, &what, nothing);
        }
    };
    for lost in 0..3 {
        check(3, &[lost], CLASS, delete_claim, &[3, 4]);
        check(3, &[lost], "hostPath", World::wipe, &[3]);
        check(3, &[lost], "emptyDir", delete_pod, &[3]);
    }
    check(3, &[2], CLASS, delete_claim, &[2]);
    check(4, &[1], CLASS, delete_claim, &[4, 3]);
    check(5, &[1, 4], CLASS, delete_claim, &[5, 4]);
}

#[test]
fn who_was_removed_by_hand_comes_back() {
    for members in 2..=4 {
        for name in (0..members).map(member) {
            let lab = lose(&formed(members, CLASS), std::slice::from_ref(&name), World::remove_by_hand);
            let what = format!("{name} of {members} removed by hand");
            let plan = lab.plan(Some(&arguments(members, CLASS))).unwrap();
            let told = format!("the volume of {name} is made anew: what may be in it is of no member");
            assert!(plan.choreography.impact.contains(&told), "{:?}", plan.choreography.impact);
            check_with(&lab, Some(&arguments(members, CLASS)), false, &what, nothing);
        }
    }
}

#[test]
fn nobody_starts_again_without_its_data() {
    for members in 1..=4 {
        for subset in subsets(members) {
            let lab = lose(&formed(members, CLASS), &subset, delete_claim);
            pods_lab::sane(&lab, &format!("{subset:?} of {members} lost their claims"));
            assert!(subset.iter().all(|m| !lab.world.is_healthy(m)));
        }
    }
}

#[test]
fn what_would_cost_the_quorum_is_refused() {
    let two = [member(1), member(2)];
    let lab = lose(&formed(3, CLASS), &two, delete_claim);
    refused(&lab, &arguments(3, CLASS), "The cluster has lost its majority");
    refused(&lab, &arguments(1, CLASS), "The cluster has lost its majority");

    let mut down = formed(3, CLASS);
    delete_pod(&mut down.world, &member(1));
    refused(&down, &arguments(5, CLASS), "Members can't come and go while another one is down");
    let mut another = formed(3, CLASS);
    delete_pod(&mut another.world, &member(0));
    refused(&another, &arguments(2, CLASS), "Members can't come and go while another one is down");

    // A volume that this state has not made, of whatever is in it.
    let mut foreign = formed(3, CLASS);
    let claim = foreign.world.objects[&("PersistentVolumeClaim".to_owned(), "data-etcd-main-0".to_owned())].clone();
    foreign.world.objects.insert(("PersistentVolumeClaim".to_owned(), "data-etcd-main-3".to_owned()), claim);
    foreign.world.edit("PersistentVolumeClaim", "data-etcd-main-3", &["metadata", "name"], "data-etcd-main-3".into());
    refused(&foreign, &arguments(4, CLASS), "There is data of another cluster already");
}

#[test]
fn new_members_may_be_on_more_nodes() {
    let more = placed(arguments(5, "hostPath"), "nodes", Value::strings(["node1", "node2", "node3", "node4", "node5"]));
    check_with(&formed(3, "hostPath"), Some(&more), false, "more nodes", nothing);
    let moved = placed(arguments(5, "hostPath"), "nodes", Value::strings(["node1", "node4", "node3"]));
    refused(&formed(3, "hostPath"), &moved, "`nodes` of a formed cluster can't be changed yet");
}

#[test]
fn a_setting_that_etcd_does_not_take_harms_nobody() {
    let broken = with_setting(arguments(4, CLASS), "max-snapshots", "broken");
    let mut lab = formed(3, CLASS);
    let plan = lab.plan(Some(&broken)).unwrap();
    lab.run(&plan, steps::Policy::UnitsFirst, &Stop::Never);
    lab.world.settle();
    assert_eq!((0..3).filter(|i| lab.world.is_healthy(&member(*i))).count(), 3);
    check_with(&lab, Some(&arguments(4, CLASS)), false, "taken back", nothing);
    check_with(&lab, Some(&arguments(3, CLASS)), false, "taken back, and nobody joins", nothing);
}

#[test]
fn plans_say_what_they_do() {
    let lines = |lab: &Lab, wanted: &Object| lab.plan(Some(wanted)).unwrap().choreography.impact;
    assert_eq!(
        lines(&formed(3, CLASS), &arguments(5, CLASS)),
        [
            "5 members instead of 3",
            "adds members etcd-main-3, etcd-main-4",
            "who joins does not vote until it has caught up; one at a time",
            "at the worst moment 4 of 4 members are up; quorum kept, it takes 3",
        ]
    );
    assert_eq!(
        lines(&formed(3, CLASS), &arguments(1, CLASS)),
        [
            "1 member instead of 3",
            "removes members etcd-main-1, etcd-main-2, one at a time; the lead moves before",
            "at the worst moment 2 of 2 members are up; no failure is tolerated then",
            "data of the members that leave will be deleted with their volumes",
        ]
    );
    let mut kept = formed(3, CLASS);
    let keeps = with(arguments(3, CLASS), "on_destroy", "keep");
    converge(&mut kept, Some(&keeps), steps::Policy::UnitsFirst, "keeping");
    let told = lines(&kept, &with(arguments(1, CLASS), "on_destroy", "keep"));
    assert_eq!(told.last().unwrap(), "data of the members that leave is kept in their volumes");
    let lost = lose(&formed(3, CLASS), &[member(1)], delete_claim);
    assert_eq!(
        lines(&lost, &arguments(3, CLASS)),
        [
            "replaces member etcd-main-1: its data is gone, so its old membership ends and a new one begins",
            "who joins does not vote until it has caught up; one at a time",
            "at the worst moment 2 of 2 members are up; no failure is tolerated then",
        ]
    );
}
