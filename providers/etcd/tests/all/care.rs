//! Room in databases as a part of plans: free pages go back where that is asked for, a full cluster takes writes again, and whatever interferes, it
//! is only tried while all members work.

use karmaform_model::Object;

use crate::lab::{Lab, check, converge, formed, refused, subsets};
use crate::steps::{self, Policy, arguments, with_setting};

fn defragmented(mut arguments: Object) -> Object {
    arguments.insert("defragment".to_owned(), true.into());
    arguments
}

/// A formed cluster with many free pages in these.
fn fragmented(members: usize, which: &[String]) -> Lab {
    let mut lab = formed(members);
    lab.world.fragmented = which.iter().cloned().collect();
    lab
}

/// The names of what a plan does to the running cluster.
fn operations(lab: &Lab, wanted: &Object) -> Vec<String> {
    let plan = lab.plan(Some(wanted)).expect("a plan");
    plan.choreography.gates.iter().filter(|g| g.gate == "etcd_make_room").map(|g| g.name.clone()).collect()
}

#[test]
fn free_pages_go_back_alone_and_with_other_changes() {
    for members in 1..=3 {
        for which in subsets(members) {
            let start = fragmented(members, &which);
            let wanted = defragmented(arguments(members));
            assert_eq!(operations(&start, &wanted), ["free pages go back to the disk"]);
            check(&start, Some(&wanted), &format!("free pages of {} of {members}", which.join("")));
            let changed = with_setting(wanted, "snapshot-count", "5000");
            check(&start, Some(&changed), &format!("a setting, and free pages of {} of {members}", which.join("")));
        }
    }
}

#[test]
fn nobody_defragments_who_was_not_asked_to() {
    let start = fragmented(3, &["a".to_owned(), "b".to_owned()]);
    assert!(!start.plan(Some(&arguments(3))).expect("a plan").has_changes());
    // To ask for it is no change where there is nothing to do.
    assert!(!formed(3).plan(Some(&defragmented(arguments(3)))).expect("a plan").has_changes());
}

#[test]
fn members_come_and_go_and_pages_are_given_back() {
    for (from, to) in [(1, 3), (3, 5), (3, 1)] {
        let start = fragmented(from, &["a".to_owned()]);
        check(&start, Some(&defragmented(arguments(to))), &format!("free pages on the way from {from} to {to}"));
    }
}

/// Who joins is sent the database of the one that leads as it lies on its disk.
#[test]
fn who_joins_is_sent_free_pages_and_gives_them_back() {
    let gives = |lab: &Lab, wanted: &Object| -> Vec<String> {
        let lines = lab.plan(Some(wanted)).expect("a plan").choreography.impact;
        lines.into_iter().filter(|line| line.contains("free pages")).collect()
    };
    let grows = defragmented(arguments(3));
    assert_eq!(
        gives(&fragmented(1, &["a".to_owned()]), &grows),
        [
            "gives free pages back to the disk, seconds for each GiB: a (250.0 MiB of 300.0 MiB), b (those that a sends it), c (those that a sends it), one at a time, the leader last"
        ]
    );
    // The one that leads leaves, and what it has sent stays.
    let mut others = defragmented(arguments(4));
    let mut hosts = others["hosts"].as_entries().expect("hosts").clone();
    hosts.retain(|name, _| name != "a");
    others.insert("hosts".to_owned(), hosts.into());
    let start = fragmented(3, &["a".to_owned()]);
    assert_eq!(
        gives(&start, &others),
        ["gives free pages back to the disk, seconds for each GiB: d (those that a sends it), one at a time, the leader last"]
    );
    check(&start, Some(&others), "free pages of the one that leads, which leaves");
    // A follower's free pages stay its own.
    assert_eq!(gives(&fragmented(3, &["b".to_owned()]), &defragmented(arguments(5))).len(), 1);
    assert_eq!(gives(&formed(3), &defragmented(arguments(5))), Vec::<String>::new());
}

#[test]
fn nobody_defragments_beside_members_that_are_not_among_the_targets() {
    let lab = fragmented(3, &["a".to_owned()]);
    let plan = lab.plan_of(Some(&defragmented(arguments(3))), &|address: &str| address.contains("member[\"a\"]")).expect("a plan");
    assert_eq!(
        plan.choreography.impact,
        ["leaves free pages as they are, as not all members are among the targets: a (250.0 MiB of 300.0 MiB) (left out: b, c)"]
    );
    assert!(plan.choreography.gates.iter().all(|g| g.gate != "etcd_make_room"), "{:?}", plan.choreography.gates);
}

#[test]
fn members_that_are_down_come_first() {
    for which in subsets(3) {
        let mut start = fragmented(3, &["c".to_owned()]);
        which.iter().for_each(|member| start.world.stop(member));
        check(&start, Some(&defragmented(arguments(3))), &format!("free pages of c, and {} stopped", which.join("")));
    }
}

/// Its alarm is on as well while it is away, and nobody makes room in it before it is back.
#[test]
fn nobody_waits_for_room_in_a_member_that_is_away() {
    let mut lab = formed(3);
    lab.world.lose("c");
    lab.world.is_full = true;
    let wanted = defragmented(arguments(3));
    assert_eq!(operations(&lab, &wanted), Vec::<String>::new());
    let plan = lab.plan(Some(&wanted)).expect("a plan");
    assert_eq!(
        plan.choreography.impact,
        ["the cluster is full and takes no writes; room is made, and the alarm NOSPACE ends, when all members work (not there: c)"]
    );
    assert_eq!(lab.run(&plan, Policy::UnitsFirst, &steps::Stop::Never).1, Vec::<String>::new());
    // What would change on its host brings it back no more.
    let mut renewed = wanted.clone();
    renewed.insert("certificate_validity_hours".to_owned(), 9000i64.into());
    assert_eq!(operations(&lab, &renewed), Vec::<String>::new());
    // Who does without it waits for nobody.
    let mut without = wanted;
    let mut hosts = without["hosts"].as_entries().expect("hosts").clone();
    hosts.retain(|name, _| name != "c");
    without.insert("hosts".to_owned(), hosts.into());
    assert_eq!(operations(&lab, &without), ["room is made, and the alarm NOSPACE ends"]);
}

#[test]
fn no_quota_is_below_what_the_database_has() {
    // 300 MiB, in the model.
    let lab = formed(3);
    let with_quota = |quota: &str| with_setting(arguments(3), "quota-backend-bytes", quota);
    refused(&lab, &with_quota("314572800"), "A quota that the database has outgrown");
    assert!(lab.plan(Some(&with_quota("314572801"))).is_ok());
    // Who has such a one already is not kept from anything.
    let mut small = lab.clone();
    small.state.before.as_mut().expect("it was formed").insert("settings".to_owned(), with_quota("100000000")["settings"].clone());
    assert!(small.plan(Some(&with_quota("100000000"))).is_ok() && small.plan(Some(&with_quota("200000000"))).is_ok());
}

#[test]
fn a_full_cluster_gets_room() {
    for members in [1, 3] {
        let mut start = formed(members);
        start.world.is_full = true;
        let ends = ["room is made, and the alarm NOSPACE ends"];
        let defragments = defragmented(arguments(members));
        assert_eq!(operations(&start, &defragments), ends);
        check(&start, Some(&defragments), &format!("full, of {members}"));
        let grows = with_setting(arguments(members), "quota-backend-bytes", "8589934592");
        assert_eq!(operations(&start, &grows), ends);
        let mut lab = start.clone();
        converge(&mut lab, Some(&grows), Policy::Shuffled(3), "full, with a larger quota");
        assert!(!lab.world.is_full);
        // Nothing else is begun while nobody can write.
        for other in [
            with_setting(arguments(members), "snapshot-count", "5000"),
            with_setting(arguments(members), "quota-backend-bytes", "1000000000"),
        ] {
            assert_eq!(operations(&start, &other), Vec::<String>::new());
            let plan = start.plan(Some(&other)).expect("a plan");
            let mut lab = start.clone();
            let (_, failures) = lab.run(&plan, Policy::UnitsFirst, &steps::Stop::Never);
            assert!(failures.iter().any(|f| f.contains("alarm NOSPACE")), "{failures:?}");
        }
    }
}
