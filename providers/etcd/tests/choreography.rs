//! Every change of every small cluster, stopped at every step, in many orders: quorum is never given up, a formed cluster is never started
//! anew, and planning again always gets there.

mod hosts;
mod model;
mod steps;

use karmaform_model::{Object, Value};

use model::World;
use steps::{Policy, State, Stop, arguments, with_setting};

/// A cluster on hosts.
type Lab = steps::Stage<model::World>;

const POLICIES: [Policy; 4] = [Policy::UnitsFirst, Policy::UnitsLast, Policy::Shuffled(1), Policy::Shuffled(2)];

fn names(members: usize) -> Vec<String> {
    ('a'..='g').take(members).map(String::from).collect()
}

/// All subsets of the members but the empty one.
fn subsets(members: usize) -> Vec<Vec<String>> {
    let names = names(members);
    (1..1_usize << members)
        .map(|bits| names.iter().enumerate().filter(|(i, _)| bits & (1 << i) != 0).map(|(_, n)| n.clone()).collect())
        .collect()
}

/// A cluster that an apply has formed.
fn formed(members: usize) -> Lab {
    let mut lab = Lab::default();
    converge(&mut lab, Some(&arguments(members)), Policy::Shuffled(7), "forming");
    lab
}

/// Plans and applies until there is nothing to do.
fn converge(lab: &mut Lab, wanted: Option<&Object>, policy: Policy, what: &str) {
    for _ in 0..6 {
        lab.world.settle();
        let plan = lab.plan(wanted).unwrap_or_else(|d| panic!("{what}: refused: {d:#?}"));
        if !plan.has_changes() && lab.state.before.is_some() == wanted.is_some() {
            sane(lab, what);
            match wanted {
                Some(wanted) => as_wanted(lab, wanted, what),
                None => assert_eq!(lab.world.leftovers(), Vec::<String>::new(), "{what}"),
            }
            return;
        }
        lab.run(&plan, policy, &Stop::Never);
        sane(lab, what);
    }
    panic!("{what}: still not there: {:#?}", lab.world.hosts.values().map(|h| (&h.member, &h.process)).collect::<Vec<_>>());
}

fn sane(lab: &Lab, what: &str) {
    assert_eq!(lab.world.violations, Vec::<String>::new(), "{what}");
}

fn as_wanted(lab: &Lab, wanted: &Object, what: &str) {
    let hosts = wanted["hosts"].as_entries().unwrap();
    for name in hosts.keys() {
        assert!(lab.world.is_healthy(name), "{what}: {name} is not healthy");
        let host = lab.world.hosts.values().find(|h| h.member == *name).unwrap();
        assert!(host.runs_what_is_written(), "{what}: {name} does not run what is written");
        assert!(host.marker && !host.formation, "{what}: {name} is not marked");
    }
    assert!(lab.state.before.as_ref().unwrap()["cluster_id"].as_str().is_some_and(|id| !id.is_empty()), "{what}");
}

/// From this lab to what is wanted: without trouble, killed after each step, and with each member crashing after each step.
fn check(start: &Lab, wanted: Option<&Object>, what: &str) {
    let mut start = start.clone();
    start.world.settle();
    let plan = start.plan(wanted).unwrap_or_else(|d| panic!("{what}: refused: {d:#?}"));
    let members: Vec<String> = start.world.hosts.values().map(|h| h.member.clone()).collect();
    for policy in POLICIES {
        let mut lab = start.clone();
        let (steps, _) = lab.run(&plan, policy, &Stop::Never);
        sane(&lab, what);
        converge(&mut lab, wanted, policy, what);
        // Every step with one order, every few with the others, and fewer of five members: the states in between hardly differ.
        let stride = match (policy, members.len()) {
            (Policy::UnitsFirst, ..5) => 1,
            (Policy::UnitsFirst, _) => 4,
            (_, ..5) => 11,
            _ => 29,
        };
        for at in (0..=steps).step_by(stride) {
            let place = format!("{what}, {policy:?}, killed after step {at}");
            let mut lab = start.clone();
            lab.run(&plan, policy, &Stop::After(at));
            sane(&lab, &place);
            converge(&mut lab, wanted, policy, &place);
        }
        if wanted.is_none() {
            continue;
        }
        for member in &members {
            for at in (0..=steps).step_by(stride.max(3)) {
                let place = format!("{what}, {policy:?}, {member} crashed after step {at}");
                let mut lab = start.clone();
                lab.run(&plan, policy, &Stop::CrashAfter(at, member.clone()));
                sane(&lab, &place);
                converge(&mut lab, wanted, policy, &place);
            }
        }
    }
}

#[test]
fn clusters_are_formed() {
    for members in 1..=5 {
        check(&Lab::default(), Some(&arguments(members)), &format!("forming {members}"));
    }
}

/// A formed cluster, one disturbance on each subset of the members, and then these arguments.
fn check_subsets(members: usize, disturb: impl Fn(&mut World, &str), wanted: &Object, what: &str) {
    let start = formed(members);
    for subset in subsets(members) {
        let mut lab = start.clone();
        for member in &subset {
            disturb(&mut lab.world, member);
        }
        check(&lab, Some(wanted), &format!("{what} on {} of {members}", subset.join("")));
    }
}

fn edit_unit(world: &mut World, member: &str, line: &str) {
    if let Some(host) = world.host_mut(member)
        && let Some((_, unit)) = host.things.iter_mut().find(|((ty, _), _)| ty == "ssh_systemd_unit")
        && let Some(text) = unit["content"].as_str().map(|t| format!("{t}{line}\n"))
    {
        unit.insert("content".to_owned(), text.into());
    }
}

fn restart(world: &mut World, member: &str) {
    let formed = world.formed.as_ref().map(|(id, _)| id.clone());
    if let Some(host) = world.host_mut(member) {
        host.start(formed.as_deref(), &mut Vec::new());
    }
}

fn remove_file(world: &mut World, member: &str, end: &str) {
    if let Some(host) = world.host_mut(member) {
        host.things.retain(|(_, path), _| !path.ends_with(end));
    }
}

fn changed(members: usize) -> Object {
    with_setting(arguments(members), "snapshot-count", "5000")
}

#[test]
fn a_setting_is_changed() {
    for members in 1..=5 {
        check(&formed(members), Some(&changed(members)), &format!("a setting of {members}"));
    }
}

#[test]
fn stopped_members_are_started() {
    for members in 1..=5 {
        check_subsets(members, |w, m| w.stop(m), &arguments(members), "stopped");
    }
}

#[test]
fn stopped_members_are_started_before_a_setting_is_changed() {
    for members in 1..=5 {
        check_subsets(members, |w, m| w.stop(m), &changed(members), "stopped, and a setting");
    }
}

#[test]
fn edited_units_are_put_back() {
    for members in 1..=5 {
        check_subsets(members, |w, m| edit_unit(w, m, "# by hand"), &arguments(members), "unit edited");
    }
}

#[test]
fn broken_units_are_repaired() {
    let break_unit = |w: &mut World, m: &str| {
        edit_unit(w, m, "BROKEN");
        restart(w, m);
    };
    for members in 1..=4 {
        check_subsets(members, break_unit, &arguments(members), "unit broken");
        check_subsets(members, break_unit, &changed(members), "unit broken, and a setting");
    }
}

#[test]
fn missing_certificates_are_put_back() {
    for file in ["server.crt", "peer.key", "client-ca.crt"] {
        for members in 1..=3 {
            check_subsets(members, |w, m| remove_file(w, m, file), &arguments(members), file);
            check_subsets(members, |w, m| remove_file(w, m, file), &changed(members), &format!("{file}, and a setting"));
        }
    }
}

#[test]
fn members_that_only_seem_down_are_not_restarted_together() {
    let hide_and_edit = |w: &mut World, m: &str| {
        remove_file(w, m, "server.crt");
        edit_unit(w, m, "# by hand");
    };
    for members in 1..=5 {
        check_subsets(members, hide_and_edit, &arguments(members), "hidden and edited");
    }
}

#[test]
fn five_members_with_several_troubles_at_once() {
    let start = formed(5);
    for (stopped, hidden) in [("a", "b"), ("ab", "c"), ("e", "cd"), ("abc", "d"), ("ab", "cde"), ("", "abcde")] {
        let mut lab = start.clone();
        stopped.chars().for_each(|m| lab.world.stop(&m.to_string()));
        for m in hidden.chars() {
            remove_file(&mut lab.world, &m.to_string(), "server.crt");
            edit_unit(&mut lab.world, &m.to_string(), "# by hand");
        }
        check(&lab, Some(&changed(5)), &format!("stopped {stopped}, hidden {hidden}"));
    }
}

#[test]
fn certificates_are_renewed_without_a_restart() {
    for members in 1..=4 {
        let mut wanted = arguments(members);
        wanted.insert("certificate_validity_hours".to_owned(), 9000i64.into());
        let mut lab = formed(members);
        let plan = lab.plan(Some(&wanted)).unwrap();
        let before: Vec<_> = lab.world.hosts.values().map(|h| h.process.clone()).collect();
        assert!(plan.choreography.impact.iter().any(|l| l.starts_with("no restart")), "{:?}", plan.choreography.impact);
        lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
        assert_eq!(lab.world.hosts.values().map(|h| h.process.clone()).collect::<Vec<_>>(), before);
        check(&formed(members), Some(&wanted), &format!("renewal of {members}"));
    }
}

#[test]
fn clusters_are_destroyed_and_nothing_is_left() {
    for members in 1..=4 {
        check(&formed(members), None, &format!("destroying {members}"));
        for subset in subsets(members) {
            let mut lab = formed(members);
            subset.iter().for_each(|m| lab.world.stop(m));
            check(&lab, None, &format!("destroying {members} with {} stopped", subset.join("")));
        }
    }
}

#[test]
fn destroying_can_keep_the_data() {
    let mut wanted = arguments(3);
    wanted.insert("on_destroy".to_owned(), "keep".into());
    let mut lab = formed(3);
    converge(&mut lab, Some(&wanted), Policy::UnitsFirst, "keeping");
    let plan = lab.plan(None).unwrap();
    assert_eq!(plan.choreography.impact, ["stops the whole cluster: a, b, c", "data of the cluster is kept on a, b, c, moved aside"]);
    lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
    assert_eq!(lab.world.leftovers(), ["10.0.0.11:22: kept data", "10.0.0.12:22: kept data", "10.0.0.13:22: kept data"]);
}

#[test]
fn a_formation_that_stopped_halfway_goes_on_with_other_settings() {
    for members in 1..=4 {
        let start = Lab::default();
        let plan = start.plan(Some(&arguments(members))).unwrap();
        for policy in POLICIES {
            let steps = start.clone().run(&plan, policy, &Stop::Never).0;
            for at in 0..steps {
                let mut lab = start.clone();
                lab.run(&plan, policy, &Stop::After(at));
                let what = format!("forming {members} stopped after step {at}, then a setting");
                for second in [Policy::UnitsFirst, Policy::Shuffled(3)] {
                    converge(&mut lab.clone(), Some(&changed(members)), second, &what);
                }
            }
        }
    }
}

fn refused(lab: &Lab, wanted: &Object, expected: &str) {
    let Err(diagnostics) = lab.plan(Some(wanted)) else { panic!("not refused: {expected}") };
    let found: Vec<_> = diagnostics.iter().map(|d| d.summary.clone()).collect();
    assert!(found.iter().any(|s| s == expected), "{found:?}");
    assert!(diagnostics.iter().all(|d| d.address.is_some() && d.detail.ends_with('.')));
}

fn with(mut arguments: Object, name: &str, value: impl Into<Value>) -> Object {
    arguments.insert(name.to_owned(), value.into());
    arguments
}

#[test]
fn what_needs_more_care_is_refused() {
    let lab = formed(3);
    let (more, fewer) = (arguments(5), arguments(2));
    refused(&lab, &more, "The members of a formed cluster can't be changed yet");
    refused(&lab, &fewer, "The members of a formed cluster can't be changed yet");
    refused(&lab, &with(arguments(3), "version", "3.5.17"), "`version` of a formed cluster can't be changed yet");
    refused(&lab, &with(arguments(3), "client_port", 12379i64), "`client_port` of a formed cluster can't be changed yet");
    refused(&lab, &with(arguments(3), "peer_port", 12380i64), "`peer_port` of a formed cluster can't be changed yet");
    refused(&lab, &with(arguments(3), "data_directory", "/data/etcd"), "`data_directory` of a formed cluster can't be changed yet");
    refused(&lab, &with(arguments(3), "user", "other"), "`user` of a formed cluster can't be changed yet");
    refused(&lab, &with(arguments(3), "ca_validity_hours", 100i64), "The CA of a formed cluster can't be replaced yet");
    let moved = Value::object([("a", "10.0.9.9".into())]);
    refused(&lab, &with(arguments(3), "addresses", moved), "A member's address can't be changed yet");

    let mut wiped = lab.clone();
    wiped.world.wipe("b");
    refused(&wiped, &arguments(3), "A member has lost its data");
    let mut other = lab.clone();
    other.world.formed = other.world.formed.map(|(_, members)| ("other".to_owned(), members));
    for host in other.world.hosts.values_mut() {
        if let model::Process::Running { cluster, .. } = &mut host.process {
            "other".clone_into(cluster);
        }
    }
    refused(&other, &changed(3), "Another etcd cluster answers");
    let mut lost = lab.clone();
    lost.state = State::default();
    refused(&lost, &arguments(3), "This cluster exists, but the state does not know it");
}

#[test]
fn a_cluster_that_was_partly_formed_keeps_its_members() {
    let mut lab = Lab::default();
    let plan = lab.plan(Some(&arguments(3))).unwrap();
    let steps = lab.clone().run(&plan, Policy::UnitsFirst, &Stop::Never).0;
    let nothing_started = |lab: &Lab| lab.world.hosts.values().all(|h| h.data.is_none());
    for at in 0..steps {
        let mut lab = Lab::default();
        lab.run(&plan, Policy::UnitsFirst, &Stop::After(at));
        if nothing_started(&lab) {
            converge(&mut lab, Some(&arguments(2)), Policy::UnitsFirst, "fewer members, nothing started");
        } else if lab.state.children.values().all(|(t, _)| t != "etcd_member") {
            refused(&lab, &arguments(2), "A cluster that was partly formed can't be changed like this");
        }
    }
    lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
}

#[test]
fn the_guard_stops_what_the_plan_did_not_see() {
    // The data goes between plan and apply: the plan says "start it", and the guard refuses.
    let mut lab = formed(3);
    lab.world.stop("b");
    let plan = lab.plan(Some(&arguments(3))).unwrap();
    lab.world.wipe("b");
    let (_, failures) = lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
    sane(&lab, "wiped between plan and apply");
    assert!(failures.iter().any(|f| f.contains("not healthy: b")), "{failures:?}");
    refused(&lab, &arguments(3), "A member has lost its data");
}
