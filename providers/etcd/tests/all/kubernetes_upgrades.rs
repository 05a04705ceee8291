//! Other versions under the data of clusters in pods: from one to the next, stopped at every step, with crashes, taken back half-way and gone on with.
//! Nobody starts on what a newer version has written, and what there was is saved before.

use karmaform_model::Object;

use crate::pods_lab::{
    self, CLASS, Lab, POLICIES, arguments, changed, check, converge, delete_pod, member, nothing, placed, refused, sane, with,
};
use crate::steps::{Policy, Stop};

fn at(members: usize, version: &str) -> Object {
    with(arguments(members, CLASS), "version", version)
}

fn formed(members: usize, version: &str) -> Lab {
    let mut lab = Lab::default();
    converge(&mut lab, Some(&at(members, version)), Policy::Shuffled(7), "forming");
    lab.world.settle();
    lab
}

fn runs(lab: &Lab, version: &str) -> bool {
    lab.world.pods.values().all(|pod| pod.version() == version)
}

#[test]
fn every_size_to_the_next_minor_version() {
    for members in 1..=4 {
        let done = |lab: &Lab, what: &str| assert!(runs(lab, "3.5.16"), "{what}");
        check(&formed(members, "3.4.23"), Some(&at(members, "3.5.16")), &format!("{members} to the next minor version"), done);
    }
}

#[test]
fn down_again_and_over_versions_on_the_way() {
    let image = |version: &str| placed(at(3, version), "image", format!("r.example/etcd:v{version}"));
    for (from, to) in [("3.6.14", "3.5.33"), ("3.5.16", "3.6.14"), ("3.7.1", "3.5.33"), ("3.6.14", "3.7.1")] {
        let mut lab = Lab::default();
        converge(&mut lab, Some(&image(from)), Policy::Shuffled(7), "forming");
        lab.world.settle();
        let done = |lab: &Lab, what: &str| assert!(runs(lab, to), "{what}");
        check(&lab, Some(&image(to)), &format!("from {from} to {to}"), done);
    }
    // Nobody says that there is such an image.
    refused(&formed(3, "3.5.16"), &at(3, "3.6.14"), "A version that can't be upgraded from");
}

#[test]
fn patches_in_both_directions_together_with_a_setting() {
    for members in [1, 3] {
        for (from, to) in [("3.5.16", "3.5.33"), ("3.5.33", "3.5.16")] {
            check(&formed(members, from), Some(&changed(at(members, to))), &format!("{members} from {from} to {to}"), nothing);
        }
    }
}

/// Stopped after each step, with and without a pod that is evicted, then back; and then forward again.
#[test]
fn what_was_begun_can_be_taken_back() {
    let (old, new) = (at(3, "3.4.23"), at(3, "3.5.16"));
    let start = formed(3, "3.4.23");
    let plan = start.plan(Some(&new)).unwrap();
    let (mut back, mut kept) = (0, 0);
    for policy in POLICIES {
        let steps = start.clone().run(&plan, policy, &Stop::Never).0;
        for at in 0..=steps {
            for evicted in [None, Some(0), Some(1), Some(2)] {
                let what = format!("{policy:?}, stopped after step {at}, {evicted:?} evicted, then back");
                let mut lab = start.clone();
                lab.run(&plan, policy, &Stop::After(at));
                evicted.into_iter().for_each(|i| delete_pod(&mut lab.world, &member(i)));
                (0..2).for_each(|_| lab.world.settle());
                if runs(&lab, "3.5.16") {
                    refused(&lab, &old, "There is no way back to that version");
                    converge(&mut lab, Some(&new), policy, &format!("{what}: there is none"));
                    kept += 1;
                    continue;
                }
                converge(&mut lab, Some(&old), policy, &what);
                assert!(runs(&lab, "3.4.23"), "{what}");
                sane(&lab, &what);
                converge(&mut lab, Some(&new), policy, &format!("{what}, then forward again"));
                back += 1;
            }
        }
    }
    assert!(back > 50 && kept > 5 && kept < back, "{back} taken back, {kept} not");
}

#[test]
fn what_can_not_be_saved_is_not_upgraded() {
    let new = at(3, "3.5.16");
    for policy in POLICIES {
        let mut lab = formed(3, "3.4.23");
        for _ in 0..2 {
            lab.world.has_no_room = true;
            let plan = lab.plan(Some(&new)).unwrap();
            let (_, failures) = lab.run(&plan, policy, &Stop::Never);
            assert!(failures.iter().any(|f| f.contains("can't save")), "{failures:?}");
            lab.world.settle();
            sane(&lab, "nothing was saved");
            assert!(runs(&lab, "3.4.23"), "{policy:?}");
        }
        lab.world.has_no_room = false;
        converge(&mut lab, Some(&new), policy, "there is room again");
    }
}

#[test]
fn what_is_no_way_is_refused() {
    let lab = formed(3, "3.4.23");
    refused(&lab, &at(3, "3.6.8"), "etcd goes from one minor version to the next");
    refused(&formed(3, "3.5.16"), &at(3, "3.6.8"), "A version that can't be upgraded from");
    refused(&formed(3, "3.5.16"), &at(3, "3.4.23"), "There is no way back to that version");
    refused(&lab, &at(5, "3.5.16"), "Members and the version can't change in one plan");
    for name in (0..3).map(member) {
        let mut down = lab.clone();
        delete_pod(&mut down.world, &name);
        refused(&down, &at(3, "3.5.16"), "Not all members work");
    }
    let small = |size: &str| pods_lab::placed(at(3, "3.4.23"), "storage_size", size);
    let mut tight = Lab::default();
    converge(&mut tight, Some(&small("256Mi")), Policy::Shuffled(7), "a small volume");
    refused(&tight, &with(small("256Mi"), "version", "3.5.16"), "There is no room for a snapshot");
}

#[test]
fn plans_say_what_they_do() {
    assert_eq!(
        formed(3, "3.4.23").plan(Some(&at(3, "3.5.16"))).unwrap().choreography.impact,
        [
            "upgrades etcd from 3.4.23 to 3.5.16",
            "saves a snapshot first, on the volume of etcd-main-0 as /var/lib/etcd/before-upgrade.db",
            "once all members run 3.5, there is no way back to 3.4 but that snapshot; until then there is, by the old `version`",
            "rolling restart, one member at a time: etcd-main-1, etcd-main-2, then the leader etcd-main-0; quorum kept 2 of 3",
        ]
    );
}
