//! Room in databases as a part of plans: free pages go back where that is asked for, a full cluster takes writes again, and whatever interferes, it
//! is only tried while all members work.

use karmaform_model::Object;

use crate::lab::{Lab, check, converge, formed, subsets};
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

#[test]
fn members_that_are_down_come_first() {
    for which in subsets(3) {
        let mut start = fragmented(3, &["c".to_owned()]);
        which.iter().for_each(|member| start.world.stop(member));
        check(&start, Some(&defragmented(arguments(3))), &format!("free pages of c, and {} stopped", which.join("")));
    }
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
