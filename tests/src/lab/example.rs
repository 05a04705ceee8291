//! `examples/etcd-on-hosts` as a user lives with it: from nothing, through damage and change, and away again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::client::Finally;
use super::project::{Etcdctl, Given};
use super::{Lab, secrets};
use crate::project::Project;

#[test]
fn from_nothing_to_a_cluster_and_back_with_every_etcd() {
    let Some(lab) = Lab::fresh("from_nothing_to_a_cluster_and_back_with_every_etcd") else { return };
    for etcd in lab.etcd.clone() {
        whole_life(&lab, &etcd);
    }
}

fn whole_life(lab: &Lab, etcd: &(String, String)) {
    let before = lab.all_files();
    let project = Project::etcd_with(lab, &Given { hosts: &lab.hosts, etcd, more: "" });

    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains("0 to change, 0 to destroy"), "{plan}");
    let (applied, seen) = secrets::watching_processes(|| project.apply());
    project.no_changes();

    let ctl = Etcdctl::new(&project, &etcd.1);
    ctl.run(&["put", "greeting", "hello"]);
    let health = ctl.run(&["endpoint", "health"]);
    assert_eq!(health.matches("is healthy").count(), lab.hosts.len(), "{health}");
    modes_are_tight(lab);
    secrets::none_in(&project, &[("plan", &plan), ("apply", &applied), ("process list", &seen)]);

    // Three people do three things on three hosts.
    let [a, b, c] = [&lab.hosts[0].0, &lab.hosts[1].0, &lab.hosts[2].0];
    lab.shell(a, "sed -i 's/^LimitNOFILE=.*/LimitNOFILE=1024/' /etc/systemd/system/etcd-main.service");
    lab.shell(b, "rm /etc/etcd/main/pki/server.crt");
    lab.shell(c, "systemctl stop etcd-main.service");
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    for expected in [
        format!("member[\"{a}\"]/unit"),
        format!("member[\"{b}\"]/pki[\"server.crt\"]"),
        format!("member[\"{c}\"]/unit"),
        "Plan: 1 to add, 2 to change, 0 to destroy".to_owned(),
    ] {
        assert!(plan.contains(&expected), "{expected} is not in\n{plan}");
    }
    let applied = project.apply();
    assert!(applied.contains("1 added, 2 changed, 0 destroyed"), "{applied}");
    project.no_changes();
    assert!(ctl.run(&["get", "greeting"]).contains("hello"));
    assert_eq!(lab.shell(a, "systemctl show --property=LimitNOFILE --value etcd-main.service").trim(), "65536");

    // A changed setting rolls through the cluster, and a client that tries again never waits long.
    let leader = leader(&ctl);
    project.settings("quota-backend-bytes = 4294967296");
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains("quorum"), "{plan}");
    let done = Arc::new(AtomicBool::new(false));
    let (longest, writes) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| longest_gap(&ctl, &done));
        let end = Finally(&done);
        project.apply();
        drop(end);
        writer.join().expect("the writer")
    });
    assert!(writes > 3 && longest < Duration::from_secs(9), "{writes} writes, the longest gap was {longest:?}");
    project.no_changes();
    assert!(ctl.run(&["get", "greeting"]).contains("hello"));
    for (host, _) in &lab.hosts {
        lab.shell(host, "tr '\\0' '\\n' < /proc/$(systemctl show --property=MainPID --value etcd-main.service)/environ | grep -q QUOTA_BACKEND_BYTES=4294967296");
    }
    assert_ne!(leader, self::leader(&ctl), "the leader was restarted last, so another one leads now");

    the_state_is_lost(&project);

    project.must(0, &["destroy", "-auto-approve"]);
    lab.has_files(&before);
    for (host, _) in &lab.hosts {
        // A name without a file may linger until systemd tidies up (as long as it can't remove the control group); nothing may be loaded, run or have failed.
        lab.shell(host, "! systemctl list-units --all --plain --no-legend 'etcd-main*' | grep -v 'not-found inactive dead'");
    }
}

/// What it said of each resource is found again, keys and all, and nothing is changed for it.
fn the_state_is_lost(project: &Project) {
    let state = || -> serde_json::Value { serde_json::from_str(&project.must(0, &["state", "pull"])).expect("JSON") };
    let before = state();
    project.remove("karmaform.tfstate");
    let text = project.must(0, &["state", "rebuild"]);
    assert!(text.contains("No changes.") && !text.contains("PRIVATE KEY"), "{text}");
    project.no_changes();
    let after = state();
    assert_eq!(after["outputs"], before["outputs"]);
    let resources = |state: &serde_json::Value| state["resources"].as_array().expect("a list").clone();
    let without_what_commands_printed = |mut resource: serde_json::Value| {
        if resource["type"] == "ssh_command" {
            resource["instances"][0]["attributes"]["output"].take();
        }
        resource
    };
    let [before, after] = [before, after].map(|s| resources(&s).into_iter().map(without_what_commands_printed).collect::<Vec<_>>());
    assert_eq!(after.len(), before.len());
    for (after, before) in after.iter().zip(&before) {
        assert!(after == before, "{} is not as it was", before["name"]);
    }
}

/// The member that leads, by its endpoint.
fn leader(ctl: &Etcdctl<'_>) -> String {
    // The columns of its table are others in 3.6.
    let text = ctl.run(&["endpoint", "status", "--write-out=json"]);
    let all: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let leads = |one: &&serde_json::Value| one["Status"]["leader"] == one["Status"]["header"]["member_id"];
    let found = all.as_array().into_iter().flatten().find(leads);
    found.and_then(|one| one["Endpoint"].as_str()).unwrap_or_else(|| panic!("nobody leads:\n{text}")).to_owned()
}

/// The longest time between two writes that went through, and how many did.
fn longest_gap(ctl: &Etcdctl<'_>, done: &AtomicBool) -> (Duration, usize) {
    let (mut last, mut longest, mut writes) = (std::time::Instant::now(), Duration::ZERO, 0);
    while !done.load(Ordering::SeqCst) {
        if ctl.tries(&["put", "tick", &writes.to_string()]) {
            longest = longest.max(last.elapsed());
            last = std::time::Instant::now();
            writes += 1;
        }
        std::thread::sleep(Duration::from_millis(150));
    }
    (longest, writes)
}

fn modes_are_tight(lab: &Lab) {
    for (host, _) in &lab.hosts {
        let modes = lab.shell(host, "stat -c '%a %U %n' /etc/etcd/main/pki/*.key /var/lib/etcd/main /etc/etcd/main/pki/authority/*");
        for line in modes.lines() {
            let mode = match line {
                _ if line.contains("/authority/") => "600 root",
                _ if line.ends_with(".key") => "600 etcd",
                _ => "700 etcd",
            };
            assert!(line.starts_with(mode), "{host}: {line}");
        }
        let strays = lab.shell(
            host,
            "grep -rlE 'PRIVATE KEY' /tmp /var/tmp /run /etc --include='*' 2>/dev/null | grep -v -e '^/etc/ssh/' -e '/pki/' || true",
        );
        assert_eq!(strays, "", "{host}: private keys outside their place");
    }
}

#[test]
fn one_member_and_back() {
    let Some(lab) = Lab::fresh("one_member_and_back") else { return };
    let (host, etcd) = (&lab.hosts[..1], lab.etcd.last().expect("an etcd"));
    let before = lab.files(&host[0].0);
    let project = Project::etcd_with(&lab, &Given { hosts: host, etcd, more: "" });
    project.apply();
    project.no_changes();
    assert!(Etcdctl::new(&project, &etcd.1).run(&["endpoint", "health"]).contains("is healthy"));
    // A reboot must not be taken for the first start, and what runs after it is what was there before.
    lab.act("reboot", &host[0].0);
    std::thread::sleep(Duration::from_secs(3));
    project.no_changes();
    project.must(0, &["destroy", "-auto-approve"]);
    let now = lab.files(&host[0].0);
    assert!(now == before, "{}", crate::golden::difference(&before, &now));
}

#[test]
fn a_saved_plan_is_applied_once() {
    let Some(lab) = Lab::fresh("a_saved_plan_is_applied_once") else { return };
    let project = files_on_a_host(&lab);
    project.must(0, &["plan", "-out=first.kfplan"]);
    let text = project.must(0, &["apply", "first.kfplan"]);
    assert!(text.contains("3 added"), "{text}");
    assert_eq!(lab.shell("a", "cat /srv/greetings/today; systemctl is-active greeter"), "hello from a\nactive\n");
    let text = project.must(1, &["apply", "first.kfplan"]);
    assert!(text.contains("stale"), "{text}");
    project.no_changes();
    project.must(0, &["destroy", "-auto-approve"]);
    lab.shell("a", "test ! -e /srv/greetings -a ! -e /etc/systemd/system/greeter.service");
}

/// `examples/files-on-a-host` for the host `a`.
fn files_on_a_host(lab: &Lab) -> Project {
    let project = Project::new();
    let text = std::fs::read_to_string(crate::parts::root().join("examples/files-on-a-host/main.kf.hcl")).expect("the example");
    project.write("main.kf.hcl", &text);
    project.write(
        "karmaform.kfvars.hcl",
        &format!("address = \"{}\"\nprivate_key_file = \"{}\"\nknown_hosts_file = \"{}\"\n", lab.hosts[0].1, lab.key, lab.known_hosts),
    );
    project
}
