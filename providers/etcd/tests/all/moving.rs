//! Another `data_directory` under every small cluster, stopped at every step and in the middle of each move, with crashes, lost disks, and second thoughts:
//! quorum is never given up, nobody starts where its data is not, and planning again always gets there.

use karmaform_model::{Object, Value};

use crate::lab::{Lab, POLICIES, check, converge, formed, names, refused, refused_without, sane};
use crate::steps::run::Cut;
use crate::steps::{Policy, Stop, arguments, with_setting};

const OLD: &str = "/var/lib/etcd/main";
const NEW: &str = "/srv/etcd";

fn at(mut arguments: Object, directory: &str) -> Object {
    arguments.insert("data_directory".to_owned(), directory.into());
    arguments
}

fn nobody_was_replaced(lab: &Lab, what: &str) {
    let replaced: Vec<&str> =
        lab.world.hosts.values().filter(|h| h.data.as_ref().is_none_or(|d| d.incarnation != 0)).map(|h| h.member.as_str()).collect();
    assert!(replaced.is_empty(), "{what}: {replaced:?}");
}

#[test]
fn every_size_is_moved() {
    for members in 1..=5 {
        check(&formed(members), Some(&at(arguments(members), NEW)), &format!("{members} are moved"));
    }
}

#[test]
fn it_is_moved_together_with_a_setting() {
    for members in [1, 3] {
        let wanted = with_setting(at(arguments(members), NEW), "snapshot-count", "5000");
        check(&formed(members), Some(&wanted), &format!("{members} are moved, and a setting"));
    }
}

/// In the middle of each move, before and after the host took note of it, and when its data has left; then on, back, or to a third place; and cut off
/// once more on the way.
#[test]
fn moves_that_were_cut_off_go_on_or_back() {
    for members in [1, 2, 3] {
        let start = formed(members);
        let plan = start.plan(Some(&at(arguments(members), NEW))).unwrap();
        for policy in POLICIES {
            let steps = start.clone().run(&plan, policy, &Stop::Never).0;
            let mut seen = Vec::new();
            for (from, cut) in (0..=steps).flat_map(|from| Cut::ALL.map(|cut| (from, cut))) {
                let mut lab = start.clone();
                let done = lab.run(&plan, policy, &Stop::Moving(from, cut)).0;
                if seen.contains(&(done, cut)) || done == steps {
                    continue;
                }
                seen.push((done, cut));
                for to in [NEW, OLD, "/data/third"] {
                    let what = format!("{members}, {policy:?}, cut off in step {done}, {cut:?}, then to {to}");
                    sane(&lab, &what);
                    converge(&mut lab.clone(), Some(&at(arguments(members), to)), policy, &what);
                    for again in Cut::ALL {
                        let mut lab = lab.clone();
                        lab.world.settle();
                        let plan = lab.plan(Some(&at(arguments(members), to))).unwrap_or_else(|d| panic!("{what}: {d:#?}"));
                        lab.run(&plan, policy, &Stop::Moving(0, again));
                        let what = format!("{what}, cut off again, {again:?}");
                        sane(&lab, &what);
                        for then in [NEW, OLD, "/data/third"] {
                            let (mut lab, what) = (lab.clone(), format!("{what}, then to {then}"));
                            // Everything is back, and one member is down: nothing is begun any more, so it has to be repaired first.
                            if (to, again) == (OLD, Cut::Done) && lab.plan(Some(&at(arguments(members), then))).is_err() {
                                refused(&lab, &at(arguments(members), then), "Not all members work");
                                converge(&mut lab, Some(&arguments(members)), policy, &what);
                            }
                            converge(&mut lab, Some(&at(arguments(members), then)), policy, &what);
                            nobody_was_replaced(&lab, &what);
                        }
                    }
                }
            }
            assert_eq!(seen.len(), Cut::ALL.len() * members, "{policy:?}: each of them");
        }
    }
}

/// A run is killed, and what it had begun on a host goes on there: the next plan is made in the middle of that, and executed when it has ended.
#[test]
fn what_goes_on_without_its_run_surprises_nobody() {
    for members in [1, 2, 3] {
        let start = formed(members);
        let plan = start.plan(Some(&at(arguments(members), NEW))).unwrap();
        let steps = start.clone().run(&plan, Policy::UnitsFirst, &Stop::Never).0;
        for step in 0..steps {
            for seen in [Cut::Noted, Cut::Left, Cut::Arrived] {
                for to in [NEW, OLD, "/data/third"] {
                    let what = format!("{members}, goes on in step {step}, seen {seen:?}, then to {to}");
                    let [mut looked, mut lab] = [seen, Cut::Done].map(|cut| {
                        let mut lab = start.clone();
                        lab.run(&plan, Policy::UnitsFirst, &Stop::Moving(step, cut));
                        lab
                    });
                    looked.world.settle();
                    let planned = looked.plan(Some(&at(arguments(members), to))).unwrap_or_else(|d| panic!("{what}: {d:#?}"));
                    lab.world.settle();
                    lab.run(&planned, Policy::UnitsFirst, &Stop::Never);
                    sane(&lab, &what);
                    converge(&mut lab, Some(&at(arguments(members), to)), Policy::UnitsFirst, &what);
                    nobody_was_replaced(&lab, &what);
                }
            }
        }
    }
}

/// Destroyed when a move was cut off before the host knew of it, nothing is left. (When it does know, its provider lets nothing go.)
#[test]
fn what_was_cut_off_can_be_destroyed() {
    let start = formed(3);
    let plan = start.plan(Some(&at(arguments(3), NEW))).unwrap();
    for policy in POLICIES {
        let mut lab = start.clone();
        lab.run(&plan, policy, &Stop::Moving(0, Cut::Before));
        converge(&mut lab, None, policy, "destroyed in the middle");
    }
}

/// Stopped after each step, then destroyed: nothing is left at either place. In the middle of a member's turn, what cleans up has to know first.
#[test]
fn what_is_half_way_is_destroyed_wherever_it_is() {
    let start = formed(3);
    let plan = start.plan(Some(&at(arguments(3), NEW))).unwrap();
    let steps = start.clone().run(&plan, Policy::UnitsFirst, &Stop::Never).0;
    let (mut destroyed, mut refused) = (0, 0);
    for step in 1..steps {
        let mut lab = start.clone();
        lab.run(&plan, Policy::UnitsFirst, &Stop::After(step));
        lab.world.settle();
        let what = format!("stopped after step {step}, then destroyed");
        let Err(why) = lab.plan(None) else {
            destroyed += 1;
            converge(&mut lab, None, Policy::UnitsFirst, &what);
            continue;
        };
        refused += 1;
        assert!(why.iter().any(|d| d.summary == "A cluster whose data is half-way can't be destroyed"), "{what}: {why:?}");
        for to in [NEW, OLD] {
            let mut lab = lab.clone();
            converge(&mut lab, Some(&at(arguments(3), to)), Policy::UnitsFirst, "first there");
            converge(&mut lab, None, Policy::UnitsFirst, &what);
        }
    }
    assert!(destroyed > 5 && refused > 5, "{destroyed} {refused}");
}

/// Moved on, when a move had not come to all members: those that have moved are known to be where they are.
#[test]
fn what_is_half_way_can_go_elsewhere() {
    let start = formed(3);
    let plan = start.plan(Some(&at(arguments(3), NEW))).unwrap();
    let steps = start.clone().run(&plan, Policy::UnitsFirst, &Stop::Never).0;
    for step in 1..steps {
        for cut in Cut::ALL {
            let what = format!("stopped after step {step}, then to a third place, cut off, {cut:?}");
            let mut lab = start.clone();
            lab.run(&plan, Policy::UnitsFirst, &Stop::After(step));
            lab.world.settle();
            let third = at(arguments(3), "/data/third");
            let plan = lab.plan(Some(&third)).unwrap_or_else(|d| panic!("{what}: {d:#?}"));
            lab.run(&plan, Policy::UnitsFirst, &Stop::Moving(0, cut));
            sane(&lab, &what);
            for to in ["/data/third", OLD, NEW] {
                converge(&mut lab.clone(), Some(&at(arguments(3), to)), Policy::UnitsFirst, &format!("{what}, then to {to}"));
            }
        }
    }
}

/// Stopped after each step, then back, and then to a third place.
#[test]
fn what_was_begun_can_be_taken_back() {
    let start = formed(3);
    let plan = start.plan(Some(&at(arguments(3), NEW))).unwrap();
    for policy in POLICIES {
        let steps = start.clone().run(&plan, policy, &Stop::Never).0;
        for step in 0..=steps {
            let what = format!("{policy:?}, stopped after step {step}, then back");
            let mut lab = start.clone();
            lab.run(&plan, policy, &Stop::After(step));
            converge(&mut lab, Some(&arguments(3)), policy, &what);
            sane(&lab, &what);
            converge(&mut lab, Some(&at(arguments(3), "/data/third")), policy, &format!("{what}, then elsewhere"));
        }
    }
}

/// A member that loses its data when others have moved is replaced, and the rest goes on.
#[test]
fn disks_that_are_lost_meanwhile_stop_nothing() {
    let start = formed(3);
    let wanted = at(arguments(3), NEW);
    let plan = start.plan(Some(&wanted)).unwrap();
    let steps = start.clone().run(&plan, Policy::UnitsFirst, &Stop::Never).0;
    let mut gone_on = 0;
    for (step, member) in (0..=steps).flat_map(|step| names(3).into_iter().map(move |member| (step, member))) {
        let what = format!("stopped after step {step}, {member} wiped");
        let mut lab = start.clone();
        lab.run(&plan, Policy::UnitsFirst, &Stop::After(step));
        lab.world.settle();
        lab.world.wipe(&member);
        lab.world.settle();
        match lab.plan(Some(&wanted)) {
            Ok(_) => gone_on += 1,
            Err(refused) => {
                let majority = refused.iter().any(|d| d.summary == "The cluster has lost its majority");
                if majority {
                    continue;
                }
                converge(&mut lab, Some(&arguments(3)), Policy::UnitsFirst, &format!("{what}, back"));
            }
        }
        converge(&mut lab, Some(&wanted), Policy::UnitsFirst, &what);
    }
    assert!(gone_on > 5, "{gone_on}");
}

#[test]
fn where_there_is_no_room_nothing_stops() {
    let wanted = at(arguments(3), NEW);
    let mut lab = formed(3);
    lab.world.host_mut("b").unwrap().has_no_room = true;
    let plan = lab.plan(Some(&wanted)).unwrap();
    let (_, failures) = lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
    assert!(failures.iter().any(|f| f.contains("no room")), "{failures:?}");
    assert_eq!(lab.world.alive().len(), 3);
    let mut back = lab.clone();
    converge(&mut back, Some(&arguments(3)), Policy::UnitsFirst, "back");
    lab.world.host_mut("b").unwrap().has_no_room = false;
    converge(&mut lab, Some(&wanted), Policy::UnitsFirst, "there is room again");
}

#[test]
fn what_is_no_way_is_refused() {
    let lab = formed(3);
    let to = |directory: &str| at(arguments(3), directory);
    refused(&lab, &to("/var/lib/etcd/main/inside"), "A data directory can't be moved into itself");
    refused(&lab, &to("/var/lib/etcd/main.snapshots"), "A data directory can't be moved into itself");
    refused(&lab, &at(arguments(5), NEW), "Members can't come and go while data is moved");
    refused(&lab, &at(arguments(2), NEW), "Members can't come and go while data is moved");
    let mut newer = to(NEW);
    newer.insert("version".to_owned(), "3.5.33".into());
    newer.insert("source".to_owned(), "etcd-v3.5.33-linux-amd64.tar.gz".into());
    refused(&lab, &newer, "Data can't be moved together with another version");
    for name in names(3) {
        let mut down = lab.clone();
        down.world.stop(&name);
        refused(&down, &to(NEW), "Not all members work");
        let mut wiped = lab.clone();
        wiped.world.wipe(&name);
        refused(&wiped, &to(NEW), "Members can't come and go while data is moved");
    }
    let mut restored = to(NEW);
    let from = Value::object([("from", "s.db".into()), ("sha256", "ab".repeat(32).as_str().into())]);
    restored.insert("restore".to_owned(), from);
    refused(&lab, &restored, "Data can't be moved together with a restoration");
}

#[test]
fn plans_say_what_they_do() {
    let lines = |lab: &Lab, wanted: &Object| lab.plan(Some(wanted)).unwrap().choreography.impact;
    assert_eq!(
        lines(&formed(3), &at(arguments(3), NEW)),
        [
            "moves the data of each member from /var/lib/etcd/main to /srv/etcd while it is stopped, one at a time: b, c, then the leader a; quorum kept 2 of 3"
        ]
    );
    assert_eq!(
        lines(&formed(1), &at(arguments(1), NEW)),
        ["moves the data of the only member from /var/lib/etcd/main to /srv/etcd while it is stopped: etcd is unavailable meanwhile"]
    );
    // Cut off in the first move.
    let mut lab = formed(3);
    let plan = lab.plan(Some(&at(arguments(3), NEW))).unwrap();
    lab.run(&plan, Policy::UnitsFirst, &Stop::Moving(0, Cut::Left));
    assert_eq!(
        lines(&lab, &at(arguments(3), NEW)),
        [
            "starts member b",
            "moves the data of b from /var/lib/etcd/main to /srv/etcd before that",
            "moves the data of members from /var/lib/etcd/main to /srv/etcd while it is stopped, one at a time: c, then the leader a; quorum kept 2 of 3",
        ]
    );
}

#[test]
fn nothing_is_moved_under_a_member_that_is_not_among_the_targets() {
    let (lab, wanted) = (formed(3), at(arguments(3), NEW));
    for left_out in ["/unit", "member[\"a\"]/unit"] {
        refused_without(left_out, &lab, &wanted, "Data is moved only together with its member");
    }
    let told =
        lab.plan_of(Some(&wanted), &|address: &str| address.contains("/directory[\"data\"]") || address.contains("member[\"b\"]/etcd"));
    let told: Vec<String> = told.err().expect("a refusal").iter().map(|d| d.summary.clone()).collect();
    assert_eq!(told, ["Data is moved only together with its member"]);
}

/// On another file system there has to be room, which a plan sees.
#[test]
fn another_file_system_has_to_have_room() {
    let with_disk = |free: i64| {
        let mut wanted = at(arguments(3), NEW);
        let mut hosts = wanted["hosts"].as_entries().unwrap().clone();
        for host in hosts.values_mut() {
            let mut facts = host.as_entries().unwrap().clone();
            let disks = [("/".to_owned(), (9_i64 << 40).into()), ("/srv".to_owned(), free.into())];
            facts.insert("disks".to_owned(), Value::map(karmaform_model::Type::Number, disks.into()));
            *host = facts.into();
        }
        wanted.insert("hosts".to_owned(), hosts.into());
        wanted
    };
    let lab = formed(3);
    refused(&lab, &with_disk(400 << 20), "No room for the data of a member");
    let plan = lab.plan(Some(&with_disk(9 << 30))).unwrap();
    let line = "on a, b, c that is another file system: 300.0 MiB and more are copied while the member is down";
    assert!(plan.choreography.impact.iter().any(|l| l == line), "{:?}", plan.choreography.impact);
    let plan = lab.plan(Some(&with_disk(9 << 40))).unwrap();
    assert_eq!(plan.choreography.impact.len(), 1, "one file system under two names");
}
