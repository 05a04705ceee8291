//! Every change of every small cluster, stopped at every step, in many orders: quorum is never given up, a formed cluster is never started
//! anew, and planning again always gets there.

use karmaform_model::{Object, Value};

use crate::lab::{Lab, POLICIES, check, converge, formed, refused, sane, subsets};
use crate::model::{self, World};
use crate::steps::{Policy, State, Stop, arguments, with_setting};

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
    let formed = world.formed.clone();
    if let Some(host) = world.host_mut(member) {
        host.start(formed.as_ref(), &mut Vec::new());
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

/// They run, and hear nobody until they are restarted with what is to be written for them.
#[test]
fn a_majority_that_was_lost_comes_back_by_restarts() {
    let deaf = |members: usize, who: &str| {
        let mut lab = formed(members);
        for member in who.chars().map(String::from) {
            edit_unit(&mut lab.world, &member, "# DEAF");
            restart(&mut lab.world, &member);
        }
        lab.world.settle();
        lab
    };
    for (members, who) in [(1, "a"), (2, "b"), (2, "ab"), (3, "b"), (3, "bc"), (3, "abc"), (5, "abc")] {
        check(&deaf(members, who), Some(&arguments(members)), &format!("{who} of {members} hear nobody"));
        check(&deaf(members, who), Some(&changed(members)), &format!("{who} of {members} hear nobody, and a setting"));
    }
    // What is out of reach is not waited for.
    let mut lab = deaf(3, "bc");
    lab.world.lose("a");
    let plan = lab.plan(Some(&arguments(3))).unwrap();
    assert!(plan.choreography.gates.iter().any(|gate| gate.name == "nobody works"), "{:?}", plan.choreography.gates);
    let mut first = lab.clone();
    assert_eq!(first.run(&plan, Policy::UnitsFirst, &Stop::Never).1, Vec::<String>::new());
    assert!(first.world.is_healthy("b") && first.world.is_healthy("c"));
    // And nobody is restarted of whom somebody works by then.
    lab.world.away.clear();
    for member in ["a", "c"] {
        if let Some(host) = lab.world.host_mut(member) {
            host.things.values_mut().for_each(|thing| {
                let mended = thing.get("content").and_then(Value::as_str).map(|text| text.replace("# DEAF\n", ""));
                mended.into_iter().for_each(|text| drop(thing.insert("content".to_owned(), text.into())));
            });
        }
        restart(&mut lab.world, member);
    }
    lab.world.settle();
    let before = lab.world.host_mut("b").map(|host| host.process.clone());
    let (_, failures) = lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
    assert!(failures.iter().any(|f| f.contains("works again")), "{failures:?}");
    assert_eq!(lab.world.host_mut("b").map(|host| host.process.clone()), before);
    converge(&mut lab, Some(&arguments(3)), Policy::UnitsFirst, "one after the other");
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
fn certificates_are_renewed_though_a_member_is_away() {
    let text = |path: &[karmaform_model::ChildStep]| path.iter().map(ToString::to_string).collect::<Vec<_>>().join("/");
    let certificate = |lab: &Lab, member: &str| {
        let wanted = format!("member[\"{member}\"]/pki[\"server.crt\"]");
        lab.state.children.iter().find(|(path, _)| text(path) == wanted).map(|(_, (_, object))| object["content"].clone())
    };
    for lost in ["a", "b", "c"] {
        let mut wanted = arguments(3);
        wanted.insert("certificate_validity_hours".to_owned(), 9000i64.into());
        let mut lab = formed(3);
        lab.world.lose(lost);
        let before = lab.clone();
        let plan = lab.plan(Some(&wanted)).unwrap();
        lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
        for member in ["a", "b", "c"] {
            let is_new = certificate(&lab, member) != certificate(&before, member);
            assert_eq!(is_new, member != lost, "{member}, {lost} being away");
        }
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
            start.halts(&plan, policy, |halt| {
                let what = format!("forming {members} stopped after step {}, then a setting", halt.at);
                for second in [Policy::UnitsFirst, Policy::Shuffled(3)] {
                    converge(&mut halt.killed(), Some(&changed(members)), second, &what);
                }
            });
        }
    }
}

/// The run ends when the members have found each other, and before it has noted any of them.
#[test]
fn a_formation_that_was_not_noted_goes_on_though_a_member_lost_its_data() {
    let start = Lab::default();
    let plan = start.plan(Some(&arguments(3))).unwrap();
    for policy in [Policy::UnitsFirst, Policy::UnitsLast] {
        let mut unnoted = None;
        start.halts(&plan, policy, |halt| {
            let mut lab = halt.killed();
            lab.world.settle();
            let is_noted = lab.state.children.values().any(|(t, _)| t == "etcd_member");
            if !is_noted && lab.world.hosts.len() == 3 && lab.world.hosts.values().all(|host| host.marker) {
                unnoted = Some(lab);
            }
        });
        let unnoted = unnoted.expect("all of them were up before the first was noted");
        for how in ["wiped", "wiped in part"] {
            for member in ["a", "b"] {
                let mut lab = unnoted.clone();
                match how {
                    "wiped" => lab.world.wipe(member),
                    _ => lab.world.wipe_in_part(member),
                }
                let what = format!("forming 3, {policy:?}, not noted, {member} {how}");
                let line = format!("replaces member {member}: its data is gone, so its old membership ends and a new one begins");
                let plan = lab.plan(Some(&arguments(3))).unwrap_or_else(|d| panic!("{what}: {d:#?}"));
                assert!(plan.choreography.impact.contains(&line), "{what}: {:?}", plan.choreography.impact);
                check(&lab, Some(&arguments(3)), &what);
                // With one that is not wanted any more.
                converge(&mut lab, Some(&arguments(4)), Policy::UnitsFirst, &what);
            }
        }
    }
}

fn with(mut arguments: Object, name: &str, value: impl Into<Value>) -> Object {
    arguments.insert(name.to_owned(), value.into());
    arguments
}

#[test]
fn what_needs_more_care_is_refused() {
    let lab = formed(3);
    refused(&lab, &with(arguments(3), "client_port", 12379i64), "`client_port` of a formed cluster can't be changed yet");
    refused(&lab, &with(arguments(3), "peer_port", 12380i64), "`peer_port` of a formed cluster can't be changed yet");
    refused(&lab, &with(arguments(3), "user", "other"), "`user` of a formed cluster can't be changed yet");
    let moved = Value::object([("a", "10.0.9.9".into())]);
    refused(&lab, &with(arguments(3), "addresses", moved), "A member's address can't be changed yet");

    let mut other = lab.clone();
    other.world.formed.as_mut().unwrap().id = "other".to_owned();
    for host in other.world.hosts.values_mut() {
        if let model::Process::Running { cluster, .. } = &mut host.process {
            "other".clone_into(cluster);
        }
        host.data.as_mut().unwrap().cluster = "other".to_owned();
    }
    refused(&other, &changed(3), "Another etcd cluster answers");
    let mut lost = lab.clone();
    lost.state = State::default();
    refused(&lost, &arguments(3), "This cluster exists, but the state does not know it");
}

#[test]
fn clocks_that_are_off_are_in_the_way_of_certificates_alone() {
    let late = |arguments: Object| {
        let mut hosts = arguments["hosts"].as_entries().unwrap().clone();
        let mut host = hosts["b"].as_entries().unwrap().clone();
        host.insert("clock_offset".to_owned(), (-95i64).into());
        hosts.insert("b".to_owned(), host.into());
        with(arguments, "hosts", hosts)
    };
    let summary = "A host's clock is wrong";
    refused(&Lab::default(), &late(arguments(3)), summary);
    let lab = formed(3);
    refused(&lab, &late(arguments(4)), summary);
    refused(&lab, &late(with(arguments(3), "certificate_validity_hours", 9000i64)), summary);
    // What needs none goes on, and so do repairs.
    let plan = lab.plan(Some(&late(changed(3)))).unwrap();
    let line = "clocks of hosts are off, b by 95 s: plans that make certificates are refused until they are right";
    assert!(plan.choreography.impact.iter().any(|l| l == line), "{:?}", plan.choreography.impact);
    for member in ["a", "b"] {
        let mut lab = lab.clone();
        lab.world.stop(member);
        converge(&mut lab, Some(&late(arguments(3))), Policy::UnitsFirst, "stopped, and a clock is off");
    }
}

/// They are compared with the clock of this machine, and it is more likely that one is wrong than that all are, in the same way.
#[test]
fn clocks_that_are_all_off_alike_tell_of_this_machines() {
    let told = |offsets: [i64; 3]| {
        let mut hosts = arguments(3)["hosts"].as_entries().unwrap().clone();
        for (host, offset) in hosts.values_mut().zip(offsets) {
            let mut changed = host.as_entries().unwrap().clone();
            changed.insert("clock_offset".to_owned(), offset.into());
            *host = changed.into();
        }
        let found = Lab::default().plan(Some(&with(arguments(3), "hosts", hosts))).err().unwrap();
        found.iter().flat_map(|d| d.hints.clone()).collect::<Vec<_>>()
    };
    let ours =
        "All hosts are off alike, so probably it is the clock of this machine that is wrong: set it (`timedatectl`), then plan again.";
    let theirs = "Set up time synchronisation on that host (`chrony` or `systemd-timesyncd`), then plan again.";
    assert_eq!(told([3600, 3601, 3598]), [ours; 3]);
    assert_eq!(told([3600, 3601, 0]), [theirs; 2]);
    assert_eq!(told([3600, -3600, 3600]), [theirs; 3]);
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
fn a_cluster_is_formed_by_hosts_that_answer() {
    let mut lab = Lab::default();
    lab.world.away.insert("10.0.0.13:22".to_owned());
    refused(&lab, &arguments(3), "A host that is to form the cluster does not answer");
    converge(&mut lab, Some(&arguments(2)), Policy::UnitsFirst, "without it");
    lab.world.away.clear();
    converge(&mut lab, Some(&arguments(3)), Policy::UnitsFirst, "with it, later");
    // One that went away before all were started.
    let lab = Lab::default();
    let plan = lab.plan(Some(&arguments(3))).unwrap();
    let steps = lab.clone().run(&plan, Policy::UnitsFirst, &Stop::Never).0;
    for at in 0..steps {
        let mut lab = Lab::default();
        lab.run(&plan, Policy::UnitsFirst, &Stop::After(at));
        if lab.state.children.values().all(|(t, _)| t != "etcd_member") {
            lab.world.away.insert("10.0.0.12:22".to_owned());
            refused(&lab, &arguments(3), "A host that is to form the cluster does not answer");
            lab.world.away.clear();
            converge(&mut lab, Some(&arguments(3)), Policy::UnitsFirst, "when it is back");
        }
    }
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
    converge(&mut lab, Some(&arguments(3)), Policy::UnitsFirst, "replaced");
}
