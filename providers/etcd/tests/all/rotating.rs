//! Other CAs in place of the first ones: every small cluster through all three changes, stopped at every step, with crashes, and taken back half-way.
//! No member refuses another at any moment, and no client that has what the last apply gave it is refused.

use karmaform_model::{Object, Type, Value};

use crate::lab::{POLICIES, check, check_some, converge, formed, refused, sane};
use crate::steps::{Policy, Stop, arguments};

fn with(mut arguments: Object, name: &str, value: impl Into<Value>) -> Object {
    arguments.insert(name.to_owned(), value.into());
    arguments
}

/// The arguments of a cluster with these CAs.
fn of(members: usize, trusted: &[i64], signs_with: i64) -> Object {
    let trusted = Value::list(Type::Number, trusted.iter().map(|n| (*n).into()).collect());
    with(arguments(members), "authorities", Value::object([("trusted", trusted), ("signs_with", signs_with.into())]))
}

/// From the first CAs to the second ones.
const WAY: [(&[i64], i64); 4] = [(&[1], 1), (&[1, 2], 1), (&[1, 2], 2), (&[2], 2)];

#[test]
fn every_size_through_all_three_changes() {
    for members in 1..=5 {
        let mut lab = formed(members);
        for (trusted, signs_with) in &WAY[1..] {
            let wanted = of(members, trusted, *signs_with);
            let what = format!("{members} members, {trusted:?} signing with {signs_with}");
            if members == 3 {
                check(&lab, Some(&wanted), &what)
            } else {
                check_some(&lab, Some(&wanted), &what)
            }
            converge(&mut lab, Some(&wanted), Policy::Shuffled(3), &what);
        }
        assert!(lab.state.children.keys().all(|path| path[0].to_string() != "client_ca" && path[0].to_string() != "peer_ca"));
    }
}

/// Stopped after each step of each of the three, taken back, and gone on with.
#[test]
fn what_was_begun_can_be_taken_back() {
    let mut start = formed(3);
    let mut count = 0;
    for pair in WAY.windows(2) {
        let [old, new] = [pair[0], pair[1]].map(|(trusted, signs_with)| of(3, trusted, signs_with));
        converge(&mut start, Some(&old), Policy::Shuffled(7), "before");
        let plan = start.plan(Some(&new)).unwrap();
        for policy in POLICIES {
            let steps = start.clone().run(&plan, policy, &Stop::Never).0;
            for at in 0..steps {
                let what = format!("{policy:?}, to {:?}, stopped after step {at}, then back", pair[1]);
                let mut lab = start.clone();
                lab.run(&plan, policy, &Stop::After(at));
                converge(&mut lab, Some(&old), policy, &what);
                converge(&mut lab, Some(&new), policy, &format!("{what}, then forward again"));
                count += 1;
            }
        }
    }
    assert!(count > 250, "{count}");
}

/// Stopped after each step of one change, every other one is tried at once: it is refused, or nobody is locked out.
#[test]
fn nothing_that_was_half_done_opens_a_way_around() {
    let mut start = formed(3);
    let (mut taken, mut refusals) = (0, 0);
    let others: Vec<Object> =
        WAY.iter().chain(&[(&[1, 2, 3][..], 2), (&[1, 2, 3][..], 3), (&[3][..], 3)]).map(|(t, s)| of(3, t, *s)).collect();
    for pair in WAY.windows(2) {
        let [old, new] = [pair[0], pair[1]].map(|(trusted, signs_with)| of(3, trusted, signs_with));
        converge(&mut start, Some(&old), Policy::Shuffled(7), "before");
        let plan = start.plan(Some(&new)).unwrap();
        for policy in [Policy::UnitsFirst, Policy::Shuffled(5)] {
            let steps = start.clone().run(&plan, policy, &Stop::Never).0;
            for at in 0..=steps {
                for (i, other) in others.iter().enumerate() {
                    let mut lab = start.clone();
                    lab.run(&plan, policy, &Stop::After(at));
                    if policy == Policy::Shuffled(5) {
                        lab.world.crash("b");
                    }
                    lab.world.settle();
                    let Ok(next) = lab.plan(Some(other)) else {
                        refusals += 1;
                        continue;
                    };
                    let what = format!("{policy:?}, to {:?}, stopped after step {at}, then the {i}th", pair[1]);
                    lab.run(&next, policy, &Stop::Never);
                    sane(&lab, &what);
                    converge(&mut lab, Some(other), policy, &what);
                    taken += 1;
                }
            }
        }
    }
    assert!(taken > 100 && refusals > 100, "{taken} taken, {refusals} refused");
}

/// The same key: what was signed stays valid, and one rolling restart is all.
#[test]
fn a_ca_is_renewed_in_place() {
    for members in [1, 3] {
        check_some(&formed(members), Some(&with(arguments(members), "ca_validity_hours", 100_000i64)), "another validity");
    }
}

/// A certificate of the old CA has come back to a host by hand.
#[test]
fn certificates_of_before_are_replaced_before_anybody_stops_to_trust_them() {
    for policy in POLICIES {
        let mut lab = formed(3);
        let before = lab.clone();
        for (trusted, signs_with) in &WAY[1..3] {
            converge(&mut lab, Some(&of(3, trusted, *signs_with)), policy, "on the way");
        }
        for name in ["b", "c"] {
            let is_it = |(ty, path): &(String, String)| ty == "ssh_file" && path.ends_with("/peer.crt");
            let old = before.world.hosts.values().find(|h| h.member == name).unwrap().things.iter().find(|(key, _)| is_it(key)).unwrap();
            lab.world.host_mut(name).unwrap().things.insert(old.0.clone(), old.1.clone());
        }
        converge(&mut lab, Some(&of(3, &[2], 2)), policy, "old certificates on two hosts");
    }
}

#[test]
fn what_would_lock_somebody_out_is_refused() {
    let lab = formed(3);
    refused(&lab, &of(3, &[2], 2), "Nobody trusts that CA yet");
    refused(&lab, &of(3, &[2], 2), "A CA that is in use can't be dropped");
    refused(&lab, &of(3, &[1, 2], 2), "Nobody trusts that CA yet");
    refused(&lab, &of(5, &[1, 2], 1), "Members and CAs can't change in one plan");
    let mut both = lab.clone();
    converge(&mut both, Some(&of(3, &[1, 2], 1)), Policy::UnitsFirst, "both");
    refused(&both, &of(3, &[2], 2), "A CA that is in use can't be dropped");
    refused(&both, &of(3, &[1, 2, 3], 2), "What is trusted and what signs can't change in one plan");
    refused(&both, &of(3, &[1, 2, 3], 3), "Nobody trusts that CA yet");
    converge(&mut both, Some(&of(3, &[1, 2], 2)), Policy::UnitsFirst, "the second signs");
    refused(&both, &of(3, &[1], 1), "A CA that is in use can't be dropped");
    refused(&both, &arguments(3), "A CA that is in use can't be dropped");
    // The key is gone: what has its number is another one.
    let mut lost = lab;
    lost.state.children.retain(|path, _| path[0].to_string() != "client_ca");
    refused(&lost, &arguments(3), "A CA of a formed cluster can't be replaced in place");
}

#[test]
fn plans_say_what_they_do() {
    let mut lab = formed(3);
    let mut said = Vec::new();
    for (trusted, signs_with) in &WAY[1..] {
        let wanted = of(3, trusted, *signs_with);
        said.push(lab.plan(Some(&wanted)).unwrap().choreography.impact);
        converge(&mut lab, Some(&wanted), Policy::UnitsFirst, "on the way");
    }
    assert_eq!(
        said,
        [
            [
                "also trusts CA 2 from now on; nothing is signed with it yet",
                "rolling restart, one member at a time: b, c, then the leader a; quorum kept 2 of 3",
            ],
            [
                "signs with CA 2 from now on: new certificates for every member and for clients",
                "no restart for new certificates: etcd reads them at the next handshake",
            ],
            [
                "does not trust CA 1 any more: clients with certificates of it are refused",
                "rolling restart, one member at a time: b, c, then the leader a; quorum kept 2 of 3",
            ],
        ]
    );
}
