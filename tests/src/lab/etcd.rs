//! `karmaform etcd` against a cluster on hosts, through the same way as everything else: looked at, saved, proven, cared for.

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
    let state = std::fs::read(project.path().join("karmaform.tfstate")).expect("a state");

    // One host's member is away: it is said, and what would hurt is refused.
    lab.shell("b", "systemctl stop etcd-main");
    let text = project.must(2, &["etcd", "status", MAIN]);
    assert!(text.contains("Member b: "), "{text}");
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
