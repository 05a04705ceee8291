//! Members in pods go to volumes of another kind: each leaves, and joins anew with an empty one, stopped at every step, with crashes and minds that change.
//! Nobody's data is deleted while the cluster needs it, and planning again always gets there.

use karmaform_model::{Object, Value};

use crate::pods_lab::{
    self, CLASS, Lab, POLICIES, arguments, changed, check_with, converge, delete_claim, delete_pod, formed, lose, member, nothing, placed,
    refused, with,
};
use crate::steps::{Policy, Stop};

const OTHER: &str = "slow";

#[test]
fn every_member_goes_to_another_volume() {
    check_with(&formed(3, CLASS), Some(&arguments(3, OTHER)), true, "to another class", nothing);
    for members in [2, 5] {
        check_with(&formed(members, CLASS), Some(&arguments(members, OTHER)), false, &format!("{members} to another class"), nothing);
    }
    let kept = with(arguments(3, OTHER), "on_destroy", "keep");
    check_with(&formed(3, CLASS), Some(&kept), false, "keeping", nothing);
    check_with(&formed(3, CLASS), Some(&changed(arguments(3, OTHER))), false, "with a setting", nothing);
    check_with(&formed(3, CLASS), Some(&placed(arguments(3, OTHER), "storage_size", "5Gi")), false, "smaller ones", nothing);
}

/// One that is down goes to another volume without being brought back first.
#[test]
fn who_is_gone_goes_to_another_volume() {
    for eager in [false, true] {
        let mut lab = formed(3, CLASS);
        lab.world.eager = eager;
        delete_pod(&mut lab.world, &member(1));
        assert_eq!(moved(&lab, &arguments(3, OTHER)).first().map(String::as_str), Some("etcd-main-1"));
        converge(&mut lab, Some(&arguments(3, OTHER)), POLICIES[0], "gone");
    }
}

/// Whose volumes change, in turn.
fn moved(lab: &Lab, wanted: &Object) -> Vec<String> {
    let lines = lab.plan(Some(wanted)).unwrap().choreography.impact;
    let line = lines.iter().find(|line| line.starts_with("new volumes of")).unwrap_or_else(|| panic!("{lines:?}"));
    let (_, names) = line.split_once(" for member").unwrap();
    let names = names.trim_start_matches('s').split(", one at a time").next().unwrap().split(", ");
    names.map(|name| name.trim().trim_start_matches("the leader ").to_owned()).collect()
}

#[test]
fn sizes_change_together_with_it() {
    for (from, to) in [(1, 3), (3, 5), (5, 3), (3, 2)] {
        check_with(&formed(from, CLASS), Some(&arguments(to, OTHER)), false, &format!("{from} to {to} on another class"), nothing);
    }
}

/// Killed anywhere on the way, and then it is to be as it was, or something else.
#[test]
fn who_changes_their_mind_gets_that() {
    let start = formed(3, CLASS);
    let plan = start.plan(Some(&arguments(3, OTHER))).unwrap();
    for then in [arguments(3, CLASS), arguments(3, "third"), arguments(5, OTHER), arguments(2, CLASS), changed(arguments(3, OTHER))] {
        for policy in [POLICIES[0], POLICIES[2]] {
            for eager in [false, true] {
                let mut start = start.clone();
                start.world.eager = eager;
                start.halts(&plan, policy, |halt| {
                    let what = format!("stopped after step {}, then {then:?}", halt.at);
                    converge(&mut halt.killed(), Some(&then), policy, &what);
                });
            }
        }
    }
}

/// A volume is lost on the way, when there are enough without it.
#[test]
fn who_loses_its_data_meanwhile_gets_it_back() {
    let start = formed(3, CLASS);
    let plan = start.plan(Some(&arguments(3, OTHER))).unwrap();
    for policy in [POLICIES[0], POLICIES[2]] {
        start.halts(&plan, policy, |halt| {
            let mut lab = halt.killed();
            lab.world.settle();
            for lost in (0..3).map(member).filter(|_| lab.world.alive().len() == 3) {
                let mut lab = lose(&lab, std::slice::from_ref(&lost), delete_claim);
                let what = format!("stopped after step {}, then {lost} lost its data", halt.at);
                pods_lab::sane(&lab, &what);
                converge(&mut lab, Some(&arguments(3, OTHER)), policy, &what);
            }
        });
    }
}

/// Somebody is killed when the StatefulSet is gone and not made again yet.
#[test]
fn the_stateful_set_is_gone_meanwhile() {
    let start = formed(3, CLASS);
    let plan = start.plan(Some(&arguments(3, OTHER))).unwrap();
    for policy in [POLICIES[0], POLICIES[2]] {
        start.halts(&plan, policy, |halt| {
            let mut lab = halt.killed();
            lab.world.remove("StatefulSet", "etcd-main");
            converge(&mut lab, Some(&arguments(3, OTHER)), policy, &format!("stopped after step {}, without the StatefulSet", halt.at));
        });
    }
}

/// One that was on its way in goes to the volume that it is to have by now.
#[test]
fn who_joins_when_it_changes() {
    let start = formed(1, CLASS);
    let plan = start.plan(Some(&arguments(3, CLASS))).unwrap();
    for policy in [POLICIES[0], POLICIES[2]] {
        start.halts(&plan, policy, |halt| {
            converge(&mut halt.killed(), Some(&arguments(3, OTHER)), policy, &format!("stopped after step {}", halt.at));
        });
    }
}

#[test]
fn what_nobody_could_do_without_is_refused() {
    let alone = "Too few members would be left";
    refused(&formed(1, CLASS), &arguments(1, OTHER), alone);
    let mut silent = formed(3, CLASS);
    (0..2).for_each(|i| delete_pod(&mut silent.world, &member(i)));
    refused(&silent, &arguments(3, OTHER), "Members can't go to other volumes now");
    refused(&formed(3, CLASS), &arguments(3, "emptyDir"), "`storage` of a formed cluster can't be changed yet");
    for (from, to) in [("emptyDir", OTHER), ("hostPath", OTHER), (CLASS, "hostPath")] {
        refused(&formed(3, from), &arguments(3, to), "`storage` of a formed cluster can't be changed yet");
    }
    // Of a first apply that did not end nobody says where it was to be.
    let mut unsaid = formed(3, "hostPath");
    unsaid.state.before = None;
    refused(&unsaid, &arguments(3, OTHER), "A member's volume can't be replaced");
    let newer = with(arguments(3, OTHER), "version", "3.6.9");
    let block = [("from", "backup.db"), ("sha256", &"ab".repeat(32)), ("id", "one"), ("program_image", "registry.example.com/karmaform:1")];
    let restored = with(arguments(3, OTHER), "restore", Value::object(block.map(|(name, value)| (name, value.into()))));
    refused(&formed(3, CLASS), &restored, "Other volumes come in a plan of their own");
    refused(&formed(3, CLASS), &newer, "Other volumes come in a plan of their own");
}

/// A cluster that was begun with a class that gives no volumes, and is not formed, takes another one at once.
#[test]
fn who_has_not_begun_yet_takes_another_one() {
    let start = Lab::default();
    let plan = start.plan(Some(&arguments(3, CLASS))).unwrap();
    start.halts(&plan, Policy::UnitsLast, |halt| {
        let mut lab = halt.killed();
        let is_started = lab.world.stateful_set().is_some();
        if !is_started && lab.world.objects.keys().any(|(kind, _)| kind == "PersistentVolumeClaim") {
            refused(&lab, &with(arguments(3, OTHER), "on_destroy", "keep"), "Claims that are kept can't be made anew");
        }
        match lab.plan(Some(&arguments(3, OTHER))) {
            Ok(plan) if !is_started => {
                lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
                converge(&mut lab, Some(&arguments(3, OTHER)), Policy::UnitsFirst, "another class from the start");
            }
            Ok(_) => converge(&mut lab, Some(&arguments(3, OTHER)), Policy::UnitsFirst, "another class when it was formed"),
            Err(_) => refused(&lab, &arguments(3, OTHER), "A cluster that was partly formed can't be changed like this"),
        }
    });
}

#[test]
fn plans_say_what_they_do() {
    let lines = |lab: &Lab, wanted: &Object| lab.plan(Some(wanted)).unwrap().choreography.impact;
    assert_eq!(
        lines(&formed(3, CLASS), &arguments(3, OTHER)),
        [
            "who joins does not vote until it has caught up; one at a time",
            "new volumes of \"slow\" for members etcd-main-1, etcd-main-2, the leader etcd-main-0, one at a time: each leaves the cluster, and joins it anew with an empty volume",
            "the claims that they had are deleted, and volumes with them as their class says",
            "at the worst moment 2 of 2 members are up; no failure is tolerated then",
        ]
    );
}
