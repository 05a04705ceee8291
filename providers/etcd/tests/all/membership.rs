//! Members that come, go and are replaced: every size to every other, stopped at every step, with crashes, wiped disks and removals by hand. Quorum is
//! never given up, nobody starts as something that the cluster does not know, and planning again always gets there.

use std::ops::RangeInclusive;

use karmaform_etcd::EtcdCluster;
use karmaform_model::{ChildStep, Composite as _, Object, Type, Value};

use crate::lab::{Lab, check_some as check, formed, names, refused, subsets};
use crate::model::World;
use crate::steps::{arguments, with_setting};

/// The arguments of a cluster of these members of `a` to `g`.
fn of(members: &str) -> Object {
    let mut all = arguments(7);
    let hosts = all["hosts"].as_entries().unwrap().clone();
    let hosts: Object = hosts.into_iter().filter(|(name, _)| members.contains(name.as_str())).collect();
    all.insert("hosts".to_owned(), hosts.into());
    all
}

#[test]
fn every_size_to_every_other() {
    for from in 1..=5 {
        for to in 1..=5 {
            if from != to {
                check(&formed(from), Some(&arguments(to)), &format!("{from} to {to}"));
            }
        }
    }
}

#[test]
fn other_members_instead() {
    for (from, to) in [(1, "b"), (2, "bc"), (3, "abd"), (3, "ade"), (3, "def"), (3, "d"), (5, "abcfg"), (5, "fg"), (4, "efg")] {
        check(&formed(from), Some(&of(to)), &format!("{from} become {to}"));
    }
}

#[test]
fn sizes_change_together_with_a_setting() {
    for (from, to) in [(1, 3), (3, 5), (5, 3), (3, 1), (3, 2)] {
        let wanted = with_setting(arguments(to), "snapshot-count", "5000");
        check(&formed(from), Some(&wanted), &format!("{from} to {to}, and a setting"));
    }
}

#[test]
fn who_runs_without_data_is_told_of_where_nothing_changes() {
    let [data, unit] = [("directory", Some("data")), ("unit", None)].map(|(name, key)| {
        vec![ChildStep::keyed("member", "a"), key.map_or_else(|| ChildStep::new(name), |key| ChildStep::keyed(name, key))]
    });
    let told_of = |how: &str, is_so: bool, active: bool| {
        let directory = Object::from([("path".to_owned(), "/var/lib/etcd/main".into()), (how.to_owned(), is_so.into())]);
        let service = Object::from([("name".to_owned(), "etcd-main.service".into()), ("active".to_owned(), active.into())]);
        EtcdCluster.care(&[(data.as_slice(), &directory), (unit.as_slice(), &service)].into())
    };
    let told = |empty: bool, active: bool| told_of("empty", empty, active);
    assert_eq!((told_of("hollow", true, true).len(), told_of("hollow", false, true).len()), (1, 0));
    let found = told(true, true);
    assert_eq!(found.len(), 1);
    let (path, warning) = &found[0];
    assert!(*path == data && !warning.is_error());
    assert_eq!(
        warning.detail,
        "Somebody has removed what was in /var/lib/etcd/main while a ran. It goes on with what it has in memory, and would not start again."
    );
    assert_eq!(warning.hints, ["Stop it on its host (`systemctl stop etcd-main.service`), then plan again: it is replaced."]);
    assert!(told(true, false).is_empty() && told(false, true).is_empty() && EtcdCluster.care(&[].into()).is_empty());
}

/// So many that the rest has a majority, before and after.
fn minorities(members: usize) -> impl Iterator<Item = Vec<String>> {
    subsets(members).into_iter().filter(move |s| members - s.len() > members / 2)
}

/// Each cluster of these sizes in which something happened to each minority: how many members it has, to which of them it happened, and itself.
fn harmed(sizes: RangeInclusive<usize>, happens: fn(&mut World, &str)) -> impl Iterator<Item = (usize, Vec<String>, Lab)> {
    let each = |members: usize| minorities(members).map(move |subset| (members, subset));
    sizes.flat_map(each).map(move |(members, subset)| {
        let mut lab = formed(members);
        subset.iter().for_each(|member| happens(&mut lab.world, member));
        (members, subset, lab)
    })
}

#[test]
fn wiped_members_are_replaced() {
    for (members, subset, lab) in harmed(3..=5, World::wipe) {
        let wiped = subset.join("");
        check(&lab, Some(&arguments(members)), &format!("{wiped} of {members} wiped"));
        // At another size, and with others that are only stopped.
        check(&lab, Some(&arguments(members + 1)), &format!("{wiped} of {members} wiped, one more"));
    }
}

/// Something is left in the directory, and the member can't start with that: it is as lost as one of which nothing is.
#[test]
fn members_that_lost_a_part_of_their_data_are_replaced() {
    for (members, subset, lab) in harmed(3..=4, World::wipe_in_part) {
        check(&lab, Some(&arguments(members)), &format!("{} of {members} wiped in part", subset.join("")));
    }
    let mut lab = formed(3);
    lab.world.wipe_in_part("b");
    assert_eq!(
        lab.plan(Some(&arguments(3))).unwrap().choreography.impact,
        [
            "replaces member b: its data is gone, so its old membership ends and a new one begins",
            "who joins does not vote until it has caught up; one at a time",
            "old data on b is moved aside",
            "at the worst moment 2 of 2 members are up; no failure is tolerated then",
        ]
    );
    check(&lab, None, "b of 3 wiped in part, and destroyed");
    lab.world.wipe_in_part("c");
    refused(&lab, &arguments(3), "The cluster has lost its majority");
}

#[test]
fn dead_members_leave_before_others_join() {
    for (members, subset, lab) in harmed(3..=5, World::crash) {
        let (crashed, left) = (subset.join(""), names(members).into_iter().filter(|n| !subset.contains(n)).collect::<String>());
        check(&lab, Some(&of(&left)), &format!("{crashed} of {members} crashed and are not wanted"));
        check(&lab, Some(&of(&format!("{left}g"))), &format!("{crashed} of {members} crashed, g instead"));
    }
}

#[test]
fn stopped_members_start_before_others_come_and_go() {
    for members in 2..=4 {
        for subset in subsets(members) {
            let mut lab = formed(members);
            subset.iter().for_each(|m| lab.world.stop(m));
            check(&lab, Some(&arguments(members + 1)), &format!("{} of {members} stopped, one more", subset.join("")));
            let fewer = arguments(members - 1);
            if members == 2 && subset.contains(&"b".to_owned()) {
                // Nobody starts it, since it is not wanted, and the other one alone decides nothing.
                refused(&lab, &fewer, "The cluster has lost its majority");
            } else {
                check(&lab, Some(&fewer), &format!("{} of {members} stopped, one less", subset.join("")));
            }
        }
    }
}

#[test]
fn members_that_were_removed_by_hand_come_back() {
    for members in 2..=5 {
        for name in names(members) {
            let mut lab = formed(members);
            lab.world.remove_by_hand(&name);
            check(&lab, Some(&arguments(members)), &format!("{name} of {members} removed by hand"));
        }
    }
}

#[test]
fn what_would_cost_the_quorum_is_refused() {
    let mut lab = formed(3);
    ["b", "c"].iter().for_each(|m| lab.world.wipe(m));
    refused(&lab, &arguments(3), "The cluster has lost its majority");
    refused(&lab, &of("a"), "The cluster has lost its majority");

    let mut strange = formed(3);
    strange.world.add_by_hand("https://10.0.9.9:2380");
    refused(&strange, &arguments(5), "The cluster has a member that is not known here");
    assert!(strange.plan(Some(&with_setting(arguments(3), "snapshot-count", "5000"))).is_ok(), "a stranger is no matter of a setting");
    // Nor is it one of ours by its name, where that is at its place.
    if let Some(known) = strange.world.formed.as_mut().and_then(|roster| roster.members.get_mut("https://10.0.9.9:2380")) {
        known.name = Some("b".to_owned());
    }
    refused(&strange, &arguments(5), "The cluster has a member that is not known here");

    // One that is away and stays: etcd would refuse, and the plan says so before anything is done.
    let mut away = formed(5);
    away.world.hide("b");
    refused(&away, &arguments(6), "Members can't come and go while another one is down");
}

/// A first start that met the end of the disk is not tried again on it: the database that it is sent has a size.
#[test]
fn who_joins_has_room_for_what_it_is_sent() {
    let with_free = |mut arguments: Object, member: &str, mebibytes: i64| {
        let mut hosts = arguments["hosts"].as_entries().unwrap().clone();
        let mut host = hosts[member].as_entries().unwrap().clone();
        host.insert("disks".to_owned(), Value::map(Type::Number, [("/".to_owned(), (mebibytes << 20).into())].into()));
        hosts.insert(member.to_owned(), host.into());
        arguments.insert("hosts".to_owned(), hosts.into());
        arguments
    };
    // The model's database has 300 MiB, and 256 MiB are to be left.
    let told = |lab: &Lab, member: &str, members: usize, mebibytes: i64| {
        let plan = lab.plan(Some(&with_free(arguments(members), member, mebibytes)));
        plan.err().map(|found| found.iter().map(|d| format!("{}: {} {}", d.summary, d.detail, d.hints.join(" "))).collect::<String>())
    };
    let lab = formed(3);
    assert_eq!(told(&lab, "d", 4, 557), None);
    assert_eq!(
        told(&lab, "d", 4, 555).as_deref(),
        Some(
            "No room for a member: Where /var/lib/etcd/main is to be on the host of member \"d\", 555.0 MiB are free. It is sent the cluster's \
             database of 300.0 MiB, and needs 256.0 MiB more to go on with. Make room, or choose another host."
        )
    );
    let mut wiped = formed(3);
    wiped.world.wipe("b");
    assert_eq!(told(&wiped, "b", 3, 557), None);
    let refused = told(&wiped, "b", 3, 555).unwrap_or_default();
    assert!(
        refused.ends_with("Make room there. What was moved aside when it was replaced before is in /var/lib/etcd/main.replaced-*."),
        "{refused}"
    );
    // Who has its data needs no room for it.
    assert_eq!(told(&lab, "a", 4, 1), None);
}

#[test]
fn plans_say_what_they_do() {
    let lines = |lab: &Lab, wanted: &Object| lab.plan(Some(wanted)).unwrap().choreography.impact;
    assert_eq!(
        lines(&formed(3), &arguments(5)),
        [
            "5 members instead of 3",
            "adds members d, e",
            "who joins does not vote until it has caught up; one at a time",
            "at the worst moment 4 of 4 members are up; quorum kept, it takes 3",
        ]
    );
    assert_eq!(
        lines(&formed(3), &of("a")),
        [
            "1 member instead of 3",
            "removes members b, c, one at a time; the lead moves before",
            "at the worst moment 2 of 2 members are up; no failure is tolerated then",
            "data of the members that leave will be deleted on b, c",
        ]
    );
    // One alone could not be restarted without being missed.
    let changed = with_setting(of("a"), "snapshot-count", "5000");
    assert_eq!(
        lines(&formed(3), &changed),
        [
            "1 member instead of 3",
            "removes members b, c, one at a time; the lead moves before",
            "at the worst moment 2 of 2 members are up; no failure is tolerated then",
            "data of the members that leave will be deleted on b, c",
            "rolling restart, one member at a time: the leader a; quorum kept 2 of 3, before others leave",
        ]
    );
    let gates = formed(3).plan(Some(&changed)).unwrap().choreography.gates;
    let at = |text: &str| gates.iter().position(|gate| gate.name.contains(text)).expect("such a gate");
    assert!(at("healthy after member[\"a\"]") < at("leaves the cluster"));
    let mut wiped = formed(3);
    wiped.world.wipe("b");
    assert_eq!(
        lines(&wiped, &arguments(3)),
        [
            "replaces member b: its data is gone, so its old membership ends and a new one begins",
            "who joins does not vote until it has caught up; one at a time",
            "at the worst moment 2 of 2 members are up; no failure is tolerated then",
        ]
    );
}
