//! Clusters in pods of the model on the way from one shape to another, whatever interferes.

use std::cell::RefCell;
use std::rc::Rc;

use karmaform_model::{Diagnostics, Object, Value};

use crate::pods::{Client, World};
use crate::steps::met::{MOST_PLANS, Met, Trail};
use crate::steps::{self, Policy, Stop, address, with_setting};

/// A cluster on Kubernetes.
pub(crate) type Lab = steps::Stage<World>;

pub(crate) const POLICIES: [Policy; 4] = [Policy::UnitsFirst, Policy::UnitsLast, Policy::Shuffled(1), Policy::Shuffled(2)];
pub(crate) const CLASS: &str = "fast";
pub(crate) const STORAGES: [&str; 3] = [CLASS, "hostPath", "emptyDir"];
pub(crate) const NODES: [&str; 3] = ["node1", "node2", "node3"];

pub(crate) fn member(ordinal: usize) -> String {
    format!("etcd-main-{ordinal}")
}

pub(crate) fn arguments(members: usize, storage: &str) -> Object {
    let count = i64::try_from(members).unwrap();
    let connection = Value::object([("provider", "kubernetes".into()), ("id", "host".into()), ("version", "1.36.2".into())]);
    let mut block = vec![("cluster", connection), ("namespace", "karmada".into()), ("members", count.into()), ("storage", storage.into())];
    if storage != "emptyDir" {
        block.push(("storage_size", "10Gi".into()));
    }
    if storage == "hostPath" {
        block.push(("nodes", Value::strings(NODES)));
    }
    let block = Value::from(block.into_iter().map(|(n, v)| (n.to_owned(), v)).collect::<Object>());
    Object::from([("version".to_owned(), "3.6.8".into()), ("kubernetes".to_owned(), block)])
}

pub(crate) fn with(mut arguments: Object, name: &str, value: impl Into<Value>) -> Object {
    arguments.insert(name.to_owned(), value.into());
    arguments
}

/// With another argument in the block.
pub(crate) fn placed(arguments: Object, name: &str, value: impl Into<Value>) -> Object {
    let mut block = arguments["kubernetes"].as_entries().unwrap().clone();
    block.insert(name.to_owned(), value.into());
    with(arguments, "kubernetes", block)
}

pub(crate) fn changed(arguments: Object) -> Object {
    with_setting(arguments, "snapshot-count", "5000")
}

/// All subsets of the members but the empty one.
pub(crate) fn subsets(members: usize) -> Vec<Vec<String>> {
    let of = |bits: usize| (0..members).filter(|i| bits & (1 << i) != 0).map(member).collect();
    (1..1_usize << members).map(of).collect()
}

/// A cluster that an apply has formed.
pub(crate) fn formed(members: usize, storage: &str) -> Lab {
    let mut lab = Lab::default();
    converge(&mut lab, Some(&arguments(members, storage)), Policy::Shuffled(7), "forming");
    lab.world.settle();
    lab
}

thread_local! {
    static MET: RefCell<Met<World>> = const { RefCell::new(Met::new()) };
}

/// Plans and applies until there is nothing to do, or the plan is refused.
pub(crate) fn try_to_converge(lab: &mut Lab, wanted: Option<&Object>, policy: Policy, what: &str) -> Result<(), Diagnostics> {
    let (mut failures, mut trail) = (Vec::new(), Trail::new(policy));
    for _ in 0..MOST_PLANS {
        lab.world.settle();
        sane(lab, what);
        let place = MET.with_borrow_mut(|met| met.place(lab, wanted));
        if let Some(end) = trail.comes_to(Rc::clone(&place)) {
            *lab = end;
            return Ok(());
        }
        let plan = place.plan.as_ref().map_err(Clone::clone)?;
        if !plan.has_changes() && plan.rest.is_none() && lab.state.before.is_some() == wanted.is_some() {
            if let Some(wanted) = wanted {
                as_wanted(lab, wanted, what);
            }
            lab.world.clients = Client::of(&lab.state.children).into_iter().collect();
            trail.ends(lab);
            return Ok(());
        }
        (_, failures) = lab.run(plan, policy, &Stop::Never);
        sane(lab, what);
    }
    panic!("{what}: still not there: {failures:#?}\n{:#?}", lab.world.pods.iter().map(|(n, p)| (n, &p.process)).collect::<Vec<_>>());
}

pub(crate) fn converge(lab: &mut Lab, wanted: Option<&Object>, policy: Policy, what: &str) {
    try_to_converge(lab, wanted, policy, what).unwrap_or_else(|d| panic!("{what}: refused: {d:#?}"));
}

pub(crate) fn sane(lab: &Lab, what: &str) {
    assert_eq!(lab.world.violations, Vec::<String>::new(), "{what}");
}

pub(crate) fn as_wanted(lab: &Lab, wanted: &Object, what: &str) {
    let world = &lab.world;
    let members = wanted["kubernetes"].get("members").and_then(Value::as_i64).unwrap();
    assert_eq!(i64::try_from(world.pods.len()), Ok(members), "{what}");
    let template = &world.stateful_set().unwrap()["spec"]["template"];
    for (name, pod) in &world.pods {
        assert!(world.is_healthy(name), "{what}: {name} is not healthy: {:?}", pod.process);
        assert_eq!(*pod.template, *template, "{what}: {name} is not as written");
    }
    let storage = wanted["kubernetes"].get("storage").and_then(Value::as_str).unwrap();
    let class = if storage == "hostPath" { "" } else { storage };
    let claims = world.objects.iter().filter(|((kind, _), _)| kind == "PersistentVolumeClaim").map(|(_, claim)| claim.manifest());
    let asked = world.stateful_set().unwrap()["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten();
    for claim in claims.map(|claim| &**claim).chain(asked) {
        assert_eq!(claim["spec"]["storageClassName"], class, "{what}: {claim}");
    }
    let volumes = world.objects.keys().filter(|(kind, _)| kind == "PersistentVolume").count();
    assert_eq!(i64::try_from(volumes), Ok(if storage == "hostPath" { members } else { 0 }), "{what}");
    let note = world.manifest("ConfigMap", "etcd-main-formed").unwrap_or_else(|| panic!("{what}: no note"));
    let list = note["data"]["initial-cluster"].as_str().unwrap_or_default();
    assert!(!list.is_empty() && !list.contains("etcd-main"), "{what}: somebody may start without data: {list}");
    let roster = world.formed.as_ref().map(|r| r.members.clone()).unwrap_or_default();
    let voters: Vec<&str> = roster.values().filter(|m| !m.learner).filter_map(|m| m.name.as_deref()).collect();
    let expected: Vec<&String> = world.pods.keys().collect();
    assert!(roster.len() == voters.len() && voters == expected, "{what}: {roster:?}");
    assert!(lab.state.before.as_ref().unwrap()["cluster_id"].as_str().is_some_and(|id| !id.is_empty()), "{what}");
}

/// How a world behaves between two steps.
pub(crate) fn worlds(start: &Lab) -> [Lab; 2] {
    [false, true].map(|eager| {
        let mut lab = start.clone();
        (lab.world.eager, lab.world.soft_crash) = (eager, eager);
        lab
    })
}

/// From this lab to what is wanted: without trouble, killed after each step, and with each member crashing after each step.
pub(crate) fn check(start: &Lab, wanted: Option<&Object>, what: &str, then: impl Fn(&Lab, &str)) {
    check_with(start, wanted, true, what, then);
}

pub(crate) fn check_with(start: &Lab, wanted: Option<&Object>, crashes: bool, what: &str, then: impl Fn(&Lab, &str)) {
    for mut start in worlds(start) {
        // Whoever removed something by hand did it just now; controllers that are quick have seen it already.
        if start.world.eager {
            start.world.settle();
        }
        let what = format!("{what}{}", if start.world.eager { ", eagerly" } else { "" });
        let plan = start.plan(wanted).unwrap_or_else(|d| panic!("{what}: refused: {d:#?}"));
        let members: Vec<String> = start.world.pods.keys().cloned().collect();
        for policy in POLICIES {
            let mut lab = start.clone();
            lab.run(&plan, policy, &Stop::Never);
            sane(&lab, &what);
            converge(&mut lab, wanted, policy, &what);
            then(&lab, &what);
            let stride = match (policy, members.len()) {
                (Policy::UnitsFirst, ..4) => 1,
                (Policy::UnitsFirst, _) => 4,
                (_, ..4) => 13,
                _ => 23,
            };
            start.halts(&plan, policy, |halt| {
                if halt.at.is_multiple_of(stride) {
                    let place = format!("{what}, {policy:?}, killed after step {}", halt.at);
                    let mut lab = halt.killed();
                    sane(&lab, &place);
                    converge(&mut lab, wanted, policy, &place);
                    then(&lab, &place);
                }
                if wanted.is_none() || !crashes || !halt.at.is_multiple_of(stride.max(3)) {
                    return;
                }
                for member in &members {
                    let place = format!("{what}, {policy:?}, {member} crashed after step {}", halt.at);
                    let mut lab = halt.crashed(member);
                    sane(&lab, &place);
                    converge(&mut lab, wanted, policy, &place);
                }
            });
        }
    }
}

pub(crate) fn nothing(_: &Lab, _: &str) {}

pub(crate) fn delete_pod(world: &mut World, member: &str) {
    world.pods.remove(member);
}

/// Its claim and its pod are deleted, and Kubernetes makes both anew.
pub(crate) fn delete_claim(world: &mut World, member: &str) {
    world.remove("PersistentVolumeClaim", &format!("data-{member}"));
    world.disks.remove(&format!("claim data-{member}"));
    world.pods.remove(member);
}

/// With these members disturbed like this.
pub(crate) fn lose(lab: &Lab, members: &[String], how: impl Fn(&mut World, &str)) -> Lab {
    let mut lab = lab.clone();
    members.iter().for_each(|m| how(&mut lab.world, m));
    // It has tried to start, and was not let.
    (0..3).for_each(|_| lab.world.settle());
    lab
}

pub(crate) fn refused(lab: &Lab, wanted: &Object, expected: &str) {
    let Err(diagnostics) = lab.plan(Some(wanted)) else { panic!("not refused: {expected}") };
    let found: Vec<_> = diagnostics.iter().map(|d| d.summary.clone()).collect();
    assert!(found.iter().any(|s| s == expected), "{expected}: {found:?}");
    for diagnostic in diagnostics.iter() {
        assert!(diagnostic.detail.ends_with('.') && !diagnostic.summary.ends_with('.'), "{diagnostic:?}");
        assert_eq!(diagnostic.address, Some(address()));
    }
}

/// A formed cluster, one disturbance on each subset of the members, and then these arguments.
pub(crate) fn check_subsets(members: usize, disturb: impl Fn(&mut World, &str), wanted: &Object, what: &str) {
    let storage = wanted["kubernetes"].get("storage").and_then(Value::as_str).unwrap();
    let start = formed(members, storage);
    for subset in subsets(members) {
        let mut lab = start.clone();
        for member in &subset {
            disturb(&mut lab.world, member);
        }
        check(&lab, Some(wanted), &format!("{what} on {} of {members}", subset.join(" ")), nothing);
    }
}
