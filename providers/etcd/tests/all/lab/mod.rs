//! Clusters of the model on the way from one shape to another, whatever interferes.

use std::cell::RefCell;
use std::rc::Rc;

use karmaform_model::{Object, Value};

use crate::model;
use crate::steps::met::{MOST_PLANS, Met, Trail};
use crate::steps::{self, Policy, Stop, arguments};

/// A cluster on hosts.
pub(crate) type Lab = steps::Stage<model::World>;

/// In which orders.
pub(crate) const POLICIES: [Policy; 4] = [Policy::UnitsFirst, Policy::UnitsLast, Policy::Shuffled(1), Policy::Shuffled(2)];

/// The first so many.
pub(crate) fn names(members: usize) -> Vec<String> {
    ('a'..='g').take(members).map(String::from).collect()
}

/// All subsets of the members but the empty one.
pub(crate) fn subsets(members: usize) -> Vec<Vec<String>> {
    let names = names(members);
    (1..1_usize << members)
        .map(|bits| names.iter().enumerate().filter(|(i, _)| bits & (1 << i) != 0).map(|(_, n)| n.clone()).collect())
        .collect()
}

/// A cluster that an apply has formed.
pub(crate) fn formed(members: usize) -> Lab {
    let mut lab = Lab::default();
    converge(&mut lab, Some(&arguments(members)), Policy::Shuffled(7), "forming");
    lab
}

thread_local! {
    static MET: RefCell<Met<model::World>> = const { RefCell::new(Met::new()) };
}

/// Plans and applies until there is nothing to do.
pub(crate) fn converge(lab: &mut Lab, wanted: Option<&Object>, policy: Policy, what: &str) {
    let mut trail = Trail::new(policy);
    for _ in 0..MOST_PLANS {
        lab.world.settle();
        let place = MET.with_borrow_mut(|met| met.place(lab, wanted));
        if let Some(end) = trail.comes_to(Rc::clone(&place)) {
            *lab = end;
            return;
        }
        let plan = place.plan.as_ref().unwrap_or_else(|d| panic!("{what}: refused: {d:#?}"));
        if !plan.has_changes() && plan.rest.is_none() && lab.state.before.is_some() == wanted.is_some() {
            sane(lab, what);
            lab.world.clients = model::Client::of(&lab.state.children).into_iter().collect();
            match wanted {
                Some(wanted) => as_wanted(lab, wanted, what),
                None => assert_eq!(lab.world.leftovers(), Vec::<String>::new(), "{what}"),
            }
            trail.ends(lab);
            return;
        }
        lab.run(plan, policy, &Stop::Never);
        sane(lab, what);
    }
    panic!("{what}: still not there: {:#?}", lab.world.hosts.values().map(|h| (&h.member, &h.process)).collect::<Vec<_>>());
}

/// A crash while one failure is too many costs the majority. The plan then says what to put back, and that is what people do.
fn go_back_if_told(lab: &mut Lab, wanted: Option<&Object>, policy: Policy, what: &str) {
    lab.world.settle();
    let place = MET.with_borrow_mut(|met| met.place(lab, wanted));
    let Err(refused) = &place.plan else { return };
    let way_out = refused.iter().any(|d| d.hints.iter().any(|h| h.starts_with("Put ") && h.contains(", plan and apply")));
    assert!(way_out, "{what}: {refused:#?}");
    let inputs = |object: &Object| {
        object
            .iter()
            .filter(|(n, _)| matches!(n.as_str(), "hosts" | "version" | "source" | "settings" | "authorities"))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect()
    };
    let before: Object = inputs(lab.state.before.as_ref().expect("it was formed"));
    converge(lab, Some(&before), policy, &format!("{what}, put back"));
}

/// Nothing happened that must not.
pub(crate) fn sane(lab: &Lab, what: &str) {
    assert_eq!(lab.world.violations, Vec::<String>::new(), "{what}");
}

fn as_wanted(lab: &Lab, wanted: &Object, what: &str) {
    let hosts = wanted["hosts"].as_entries().unwrap();
    for name in hosts.keys() {
        assert!(lab.world.is_healthy(name), "{what}: {name} is not healthy");
        let host = lab.world.hosts.values().find(|h| h.member == *name).unwrap();
        assert!(host.runs_what_is_written(), "{what}: {name} does not run what is written");
        assert!(host.marker && host.formation.is_none(), "{what}: {name} is not marked");
        let directory = wanted.get("data_directory").and_then(Value::as_str).unwrap_or("/var/lib/etcd/main");
        assert!(host.has_data_at(directory) && host.moving.is_empty(), "{what}: the data of {name} is in {:?}", host.data_at);
        let kept = host.things.keys().filter(|(ty, path)| ty == "ssh_directory" && path == directory).count();
        assert_eq!(kept, 1, "{what}: {:?}", host.things.keys());
    }
    let roster = lab.world.formed.as_ref().unwrap();
    let names: Vec<_> = roster.members.values().map(|m| (m.name.clone().unwrap_or_default(), m.learner)).collect();
    let expected: Vec<_> = hosts.keys().map(|name| (name.clone(), false)).collect();
    assert_eq!(names, expected, "{what}");
    if wanted.get("defragment").and_then(Value::as_bool) == Some(true) {
        assert!(lab.world.fragmented.is_empty() && !lab.world.is_full, "{what}: {:?}", lab.world.fragmented);
    }
    assert_eq!(roster.goes_down_to, None, "{what}");
    if let Some(version) = wanted.get("version").and_then(Value::as_str) {
        let runs = |name: &String| lab.world.hosts.values().find(|h| h.member == *name).and_then(model::Host::version);
        assert!(
            hosts.keys().all(|name| runs(name).is_some_and(|(minor, patch)| format!("3.{minor}.{patch}") == version)),
            "{what}: not {version}"
        );
    }
    if wanted.contains_key("restore") {
        assert!(roster.id.starts_with("restored-"), "{what}: {}", roster.id);
    }
    for host in lab.world.hosts.values().filter(|h| !hosts.contains_key(&h.member)) {
        assert_eq!(host.leftovers(), Vec::<String>::new(), "{what}: on the host of {}", host.member);
    }
    assert!(lab.state.before.as_ref().unwrap()["cluster_id"].as_str().is_some_and(|id| !id.is_empty()), "{what}");
}

/// From this lab to what is wanted: without trouble, killed after each step, and with each member crashing after each step.
pub(crate) fn check(start: &Lab, wanted: Option<&Object>, what: &str) {
    check_every(1, start, wanted, what);
}

/// The same at some of the steps: the steps of many members are alike.
pub(crate) fn check_some(start: &Lab, wanted: Option<&Object>, what: &str) {
    check_every(5, start, wanted, what);
}

fn check_every(pace: usize, start: &Lab, wanted: Option<&Object>, what: &str) {
    let mut start = start.clone();
    start.world.settle();
    let plan = start.plan(wanted).unwrap_or_else(|d| panic!("{what}: refused: {d:#?}"));
    let members: Vec<String> = start.world.hosts.values().map(|h| h.member.clone()).collect();
    for policy in POLICIES {
        let mut lab = start.clone();
        lab.run(&plan, policy, &Stop::Never);
        sane(&lab, what);
        converge(&mut lab, wanted, policy, what);
        // Every step with one order, every few with the others, and fewer of four and five members: the states in between hardly differ.
        let stride = match (policy, members.len()) {
            (Policy::UnitsFirst, ..4) => 1,
            (Policy::UnitsFirst, 4) => 3,
            (Policy::UnitsFirst, _) => 4,
            (_, ..4) => 11,
            (_, 4) => 23,
            _ => 29,
        };
        start.halts(&plan, policy, |halt| {
            if halt.at.is_multiple_of(stride * pace) {
                let place = format!("{what}, {policy:?}, killed after step {}", halt.at);
                let mut lab = halt.killed();
                sane(&lab, &place);
                converge(&mut lab, wanted, policy, &place);
            }
            if wanted.is_none() || !halt.at.is_multiple_of(stride.max(3) * pace) {
                return;
            }
            for member in &members {
                let place = format!("{what}, {policy:?}, {member} crashed after step {}", halt.at);
                let mut lab = halt.crashed(member);
                sane(&lab, &place);
                go_back_if_told(&mut lab, wanted, policy, &place);
                converge(&mut lab, wanted, policy, &place);
            }
        });
    }
}

/// The plan is refused, with this summary among others.
pub(crate) fn refused(lab: &Lab, wanted: &Object, expected: &str) {
    refused_without("nothing", lab, wanted, expected);
}

/// The same where those with this in their address are not among the targets.
pub(crate) fn refused_without(left_out: &str, lab: &Lab, wanted: &Object, expected: &str) {
    let Err(diagnostics) = lab.plan_without(Some(wanted), left_out) else { panic!("not refused: {expected}") };
    let found: Vec<_> = diagnostics.iter().map(|d| d.summary.clone()).collect();
    assert!(found.iter().any(|s| s == expected), "{found:?}");
    assert!(diagnostics.iter().all(|d| d.address.is_some() && d.detail.ends_with('.')));
}
