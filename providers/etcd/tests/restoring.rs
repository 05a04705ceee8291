//! Clusters that begin anew with a snapshot: of every size, stopped at every step, with crashes; from what has lost its majority or never was; and
//! members that come later. Nobody of the old cluster serves beside the new one.

mod hosts;
mod lab;
mod model;
mod steps;

use std::collections::BTreeSet;

use karmaform_model::{Object, Value};

use lab::{Lab, POLICIES, check, check_some, converge, formed, names, refused, sane};
use steps::{Policy, Stop, arguments};

/// The arguments with a restoration of this name.
fn restored(mut arguments: Object, id: &str) -> Object {
    let block = Value::object([("from", "backup.db".into()), ("sha256", "ab".repeat(32).into()), ("id", id.into())]);
    arguments.insert("restore".to_owned(), block);
    arguments
}

fn at(members: usize, version: &str) -> Object {
    let mut all = arguments(members);
    all.insert("version".to_owned(), version.into());
    all.insert("source".to_owned(), format!("etcd-v{version}-linux-amd64.tar.gz").into());
    all
}

/// The restorations that the members' data is from.
fn origins(lab: &Lab) -> BTreeSet<Option<String>> {
    lab.world.hosts.values().filter_map(|h| h.data.as_ref()).map(|d| d.restored.clone()).collect()
}

#[test]
fn every_size_begins_anew() {
    for members in 1..=5 {
        let start = formed(members);
        let wanted = restored(arguments(members), "");
        check_some(&start, Some(&wanted), &format!("{members} restored"));
        let mut lab = start.clone();
        converge(&mut lab, Some(&wanted), Policy::UnitsFirst, "restored");
        assert!(lab.world.hosts.values().all(|h| h.before.len() == 1), "what was there before is kept");
        assert_eq!(origins(&lab).len(), 1);
    }
}

#[test]
fn three_of_them_at_every_step() {
    check(&formed(3), Some(&restored(arguments(3), "")), "3 restored");
}

#[test]
fn a_new_cluster_begins_with_a_snapshot() {
    for members in [1, 3] {
        check(&Lab::default(), Some(&restored(arguments(members), "")), &format!("{members} from a snapshot"));
    }
}

/// What is left of a cluster without a majority, whoever is left of it; also without those that are gone.
#[test]
fn what_has_lost_its_majority_is_rescued() {
    for lost in [["b", "c"], ["a", "c"], ["a", "b"]] {
        for wiped in [true, false] {
            let mut start = formed(3);
            for name in lost {
                if wiped { start.world.wipe(name) } else { start.world.crash(name) }
            }
            start.world.settle();
            check_some(&start, Some(&restored(arguments(3), "")), &format!("{lost:?} lost, wiped: {wiped}"));
        }
    }
    let mut start = formed(3);
    start.world.wipe("b");
    start.world.wipe("c");
    refused(&start, &arguments(1), "The cluster has lost its majority");
    check_some(&start, Some(&restored(arguments(1), "")), "only a is left");
    check_some(&start, Some(&restored(arguments(5), "")), "a and four others");
}

#[test]
fn who_comes_later_has_nothing_to_restore() {
    let mut lab = formed(3);
    let policy = Policy::Shuffled(3);
    converge(&mut lab, Some(&restored(arguments(3), "")), policy, "restored");
    let before = lab.world.formed.as_ref().unwrap().id.clone();
    check_some(&lab, Some(&restored(arguments(5), "")), "5 of 3, with the block");
    converge(&mut lab, Some(&restored(arguments(5), "")), policy, "two more");
    assert_eq!(lab.world.formed.as_ref().unwrap().id, before);
    assert_eq!(origins(&lab).len(), 2, "the two have what the others told them");
    lab.world.wipe("b");
    converge(&mut lab, Some(&restored(arguments(5), "")), policy, "one that lost its disk is replaced as ever");
    assert_eq!(lab.world.formed.as_ref().unwrap().id, before);
}

#[test]
fn the_block_goes_and_nobody_is_restarted() {
    let mut lab = formed(3);
    converge(&mut lab, Some(&restored(arguments(3), "")), Policy::UnitsLast, "restored");
    let once = origins(&lab);
    let started = |lab: &Lab| lab.world.hosts.values().map(|h| h.process.clone()).collect::<Vec<_>>();
    let running = started(&lab);
    for policy in POLICIES {
        let mut lab = lab.clone();
        converge(&mut lab, Some(&arguments(3)), policy, "without the block");
        assert_eq!(started(&lab), running);
        assert!(lab.world.hosts.values().all(|h| h.before.is_empty()), "what was there before goes with the block");
        // Written again it is meant again.
        converge(&mut lab, Some(&restored(arguments(3), "")), policy, "again");
        assert!(origins(&lab).is_disjoint(&once));
    }
    converge(&mut lab, Some(&restored(arguments(3), "second")), Policy::UnitsLast, "another one");
    assert!(origins(&lab).is_disjoint(&once));
}

/// Nothing is stopped before all is ready on every host.
#[test]
fn what_can_not_be_made_ready_stops_nobody() {
    let wanted = restored(arguments(3), "");
    for name in names(3) {
        for policy in POLICIES {
            let mut lab = formed(3);
            let before = lab.world.formed.as_ref().unwrap().id.clone();
            lab.world.host_mut(&name).unwrap().has_no_room = true;
            let plan = lab.plan(Some(&wanted)).unwrap();
            let (_, failures) = lab.run(&plan, policy, &Stop::Never);
            assert!(failures.iter().any(|f| f.contains("there is no room")), "{failures:?}");
            sane(&lab, "no room");
            assert!(names(3).iter().all(|n| lab.world.is_healthy(n)));
            assert_eq!(lab.world.formed.as_ref().unwrap().id, before);
        }
    }
}

/// The only way back from a newer version.
#[test]
fn an_older_version_with_its_own_data() {
    let mut start = Lab::default();
    converge(&mut start, Some(&at(3, "3.4.23")), Policy::Shuffled(7), "forming");
    converge(&mut start, Some(&at(3, "3.5.16")), Policy::Shuffled(7), "upgrading");
    refused(&start, &at(3, "3.4.23"), "There is no way back to that version");
    check_some(&start, Some(&restored(at(3, "3.4.23"), "")), "back to 3.4 with a snapshot of it");
}

#[test]
fn plans_say_what_is_lost_and_ask() {
    let plan = formed(3).plan(Some(&restored(arguments(3), ""))).unwrap();
    assert_eq!(
        plan.choreography.impact,
        [
            "restores a, b, c, from backup.db (SHA-256 abababababab...): what was written since that was saved is lost",
            "stops all members at once: etcd is unavailable until they have started with what was restored",
            "the revision is raised by 1000000000, so that whoever watches or caches begins anew",
            "data of before is kept in /var/lib/etcd/main.before-*, until the block `restore` is taken out",
        ]
    );
    assert!(plan.choreography.risk.confirm.is_some());
    let new = Lab::default().plan(Some(&restored(arguments(3), ""))).unwrap();
    assert!(new.choreography.risk.confirm.is_none() && new.choreography.risk.data_loss.is_empty());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let lab = formed(3);
    let mut bad = restored(arguments(3), "");
    bad.insert("restore".to_owned(), Value::object([("from", "x".into()), ("sha256", "abc".into())]));
    refused(&lab, &bad, "Bad sum");
    refused(&lab, &restored(arguments(3), "a b"), "Bad word");
}
