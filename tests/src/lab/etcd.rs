//! `karmaform etcd` against a cluster on hosts, through the same way as everything else: looked at, saved, proven, cared for.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::Lab;
use super::project::{Etcdctl, Given};
use crate::project::Project;

const MAIN: &str = "etcd_cluster.main";

#[test]
fn a_cluster_on_hosts_is_cared_for_by_hand() {
    let Some(lab) = Lab::fresh("a_cluster_on_hosts_is_cared_for_by_hand") else { return };
    let etcd = lab.etcd.last().expect("an etcd");
    let project = Project::etcd_with(&lab, &Given { hosts: &lab.hosts, etcd, more: "" });
    project.apply();
    // Its programs are beside it now, for the drill, too.
    let ctl = Etcdctl::new(&project, &etcd.1);
    ctl.run(&["put", "greeting", "hello"]);
    let state = std::fs::read(project.path().join("karmaform.tfstate")).expect("a state");

    let status = json(&project, 0, &["etcd", "status", MAIN, "-json"]);
    let members = status["members"].as_array().expect("members");
    assert!(members.len() == 3 && members.iter().all(|m| m["healthy"] == true && m["version"] == etcd.0.as_str()), "{status:#}");
    assert!(members.iter().filter(|m| m["leader"] == true).count() == 1 && status["hash"]["agree"] == true, "{status:#}");
    let text = project.must(0, &["etcd", "status", MAIN]);
    assert!(text.contains("│ a") && text.contains("leader") && text.contains(": same"), "{text}");
    assert_eq!(json(&project, 0, &["etcd", "member", "list", MAIN, "-json"])["members"].as_array().map(Vec::len), Some(3));
    assert_eq!(json(&project, 0, &["etcd", "hashkv", MAIN, "-json"])["agree"], true);
    assert!(project.must(0, &["etcd", "alarm", "list", MAIN]).contains("No alarm is on"));

    saved_and_proven(&project);

    // Nobody agreed, so nothing happens.
    let cancelled = project.must(1, &["etcd", "move-leader", MAIN]);
    assert!(cancelled.contains("etcd-move-leader cancelled"), "{cancelled}");
    let moved = json(&project, 0, &["etcd", "move-leader", MAIN, "-json", "-auto-approve"]);
    assert_ne!(moved["from"], moved["to"]);
    assert!(project.must(0, &["etcd", "defrag", MAIN, "-auto-approve"]).contains("Nothing to do"));
    let done = json(&project, 0, &["etcd", "defrag", MAIN, "-force", "-json", "-auto-approve"]);
    assert_eq!(done["defragmented"].as_array().map(Vec::len), Some(3), "{done:#}");
    assert!(project.must(0, &["etcd", "alarm", "disarm", MAIN, "-auto-approve"]).contains("no alarm is on"));

    let unchanged = || state == std::fs::read(project.path().join("karmaform.tfstate")).expect("a state");
    assert!(unchanged(), "what is done by hand changes no state");

    a_full_one_may_grow(&project, &ctl);
    its_data_moves(&lab, &project, &ctl);
    let state = std::fs::read(project.path().join("karmaform.tfstate")).expect("a state");

    // One host's member is away: it is said, and what would hurt is refused.
    lab.shell("b", "systemctl stop etcd-main");
    let text = project.must(2, &["etcd", "status", MAIN]);
    assert!(text.contains("The cluster is not well") && text.contains("Member b: "), "{text}");
    let text = project.must(1, &["etcd", "defrag", MAIN, "-auto-approve"]);
    assert!(text.contains("The cluster is not whole") && text.contains("member b: "), "{text}");
    assert_eq!(json(&project, 1, &["etcd", "hashkv", MAIN, "-json"])["agree"], Value::Null);
    let after = std::fs::read(project.path().join("karmaform.tfstate")).expect("a state");
    assert!(state == after, "what is done by hand changes no state");
    project.must(0, &["destroy", "-auto-approve"]);
}

/// At its quota it takes no writes. A plan that lets it grow ends that, too.
fn a_full_one_may_grow(project: &Project, ctl: &Etcdctl<'_>) {
    project.settings("quota-backend-bytes = 20000000");
    project.apply();
    let value = "x".repeat(100_000);
    assert!((0..400).any(|i| !ctl.tries(&["put", &format!("full/{i}"), &value])), "it is not full");
    assert!(ctl.run(&["alarm", "list"]).contains("NOSPACE"));
    project.settings("quota-backend-bytes = 200000000");
    let plan = project.must(0, &["plan"]);
    assert!(plan.contains("the cluster is full and takes no writes") && plan.contains("the alarm NOSPACE ends"), "{plan}");
    project.apply();
    assert_eq!(ctl.run(&["alarm", "list"]).trim(), "");
    ctl.run(&["put", "room", "there"]);
    project.no_changes();
}

/// To another file system, killed in the middle, and gone on with: what was written is there, and nothing is left at the old place.
fn its_data_moves(lab: &Lab, project: &Project, ctl: &Etcdctl<'_>) {
    let mount = "mkdir -p /srv/disk && mount -t tmpfs -o size=2g,mode=755 none /srv/disk";
    lab.hosts.iter().for_each(|(host, _)| drop(lab.shell(host, mount)));
    let main = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("the example");
    project.write(
        "main.kf.hcl",
        &main.replacen(
            "resource \"etcd_cluster\" \"main\" {",
            "resource \"etcd_cluster\" \"main\" {\n  data_directory = \"/srv/disk/etcd\"",
            1,
        ),
    );
    let plan = project.must(0, &["plan"]);
    assert!(plan.contains("moves the data of each member from /var/lib/etcd/main to /srv/disk/etcd while it is stopped"), "{plan}");
    let is_there = |host: &str| lab.shell(host, "ls -d /srv/disk/etcd/member 2>/dev/null; true").contains("member");
    let apply = project.start(&["apply", "-auto-approve"]);
    let until = Instant::now() + Duration::from_secs(90);
    while !lab.hosts.iter().any(|(host, _)| is_there(host)) {
        assert!(Instant::now() < until, "no data moves");
        std::thread::sleep(Duration::from_millis(20));
    }
    apply.kill();
    project.apply();
    project.no_changes();
    assert!(lab.hosts.iter().all(|(host, _)| is_there(host)) && ctl.run(&["get", "greeting"]).contains("hello"));
    for (host, _) in &lab.hosts {
        lab.shell(
            host,
            "! ls -d /var/lib/etcd/main* /srv/disk/*.karmaform* 2>/dev/null && [ \"$(stat -c '%U %a' /srv/disk/etcd)\" = 'etcd 700' ]",
        );
    }
    // And back.
    project.write("main.kf.hcl", &main);
    project.apply();
    project.no_changes();
    assert!(ctl.run(&["get", "greeting"]).contains("hello"));
    lab.hosts.iter().for_each(|(host, _)| drop(lab.shell(host, "umount /srv/disk && rmdir /srv/disk")));
}

fn saved_and_proven(project: &Project) {
    let text = project.must(0, &["etcd", "snapshot", MAIN, "-out=s.db"]);
    assert!(text.contains("Keep with it") && text.contains("client_ca") && !text.contains("BEGIN"), "{text}");
    let manifest: Value = serde_json::from_slice(&std::fs::read(project.path().join("s.db.json")).expect("a manifest")).expect("JSON");
    assert_eq!((manifest["address"].as_str(), manifest["format_version"].as_str()), (Some(MAIN), Some("1.0")));
    let text = project.must(0, &["etcd", "verify", "s.db", "-drill", "-programs=."]);
    assert!(text.contains("with the keys and values that the member had"), "{text}");
    let proof = json(project, 0, &["etcd", "verify", "s.db", "-drill", "-programs=.", "-json"]);
    assert_eq!((&proof["drill"]["same_hash"], &proof["drill"]["keys"]), (&Value::Bool(true), &Value::from(1)));
    let file = project.path().join("s.db");
    let mut bytes = std::fs::read(&file).expect("a snapshot");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    let text = project.must(1, &["etcd", "verify", "s.db"]);
    assert!(text.contains("The snapshot is damaged"), "{text}");
    project.remove("s.db");
    project.remove("s.db.json");
}

#[track_caller]
fn json(project: &Project, code: i32, arguments: &[&str]) -> Value {
    let text = project.must(code, arguments);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}
