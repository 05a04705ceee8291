//! Other CAs in place of those that a real cluster was made with, with a client at work all the time that has what the last apply gave it.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use super::Lab;
use super::client::Client;
use super::project::Given;
use crate::project::Project;

/// What a client shows.
const FILES: [&str; 2] = ["client_certificate", "client_key"];

#[test]
fn other_authorities_under_a_client() {
    let Some(lab) = Lab::fresh("other_authorities_under_a_client") else { return };
    let before = lab.all_files();
    let etcd = lab.etcd.last().expect("an etcd");
    let project = Project::etcd_with(&lab, &Given { hosts: &lab.hosts[..3], etcd, more: "" });
    let main = fs::read_to_string(project.path().join("main.kf.hcl")).expect("the example");
    let with = |more: &str| {
        project.write("main.kf.hcl", &main.replacen("  settings = var.settings\n", &format!("  settings = var.settings\n{more}"), 1))
    };
    let has = |trusted: &str, signs_with: u8| {
        with(&format!("  authorities {{\n    trusted = [{trusted}]\n    signs_with = {signs_with}\n  }}\n"))
    };
    let processes =
        || lab.hosts[..3].iter().map(|(host, _)| lab.shell(host, "systemctl show -p MainPID etcd-main.service")).collect::<BTreeSet<_>>();
    let refused = |words: &str| {
        let text = project.must(1, &["plan"]);
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    };
    project.apply();
    let first = Client::of(&project, &lab, etcd);
    for file in FILES {
        fs::copy(project.path().join(file), project.path().join(format!("first-{file}"))).expect("a copy");
    }

    // The same CA once more: what it has signed stays valid, and the client does not notice.
    with("  ca_validity_hours = 80000\n");
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains("renews CA 1 of clients and servers with the same key"), "{plan}");
    first.works_while("a CA is renewed", || drop(project.apply()));
    project.no_changes();
    with("");
    first.works_while("and once more", || drop(project.apply()));

    has("1, 2", 2);
    refused("Nobody trusts that CA yet");
    has("1, 2", 1);
    let (running, client) = (processes(), Client::of(&project, &lab, etcd));
    client.works_while("a second CA is trusted", || drop(project.apply()));
    project.no_changes();
    assert!(processes().is_disjoint(&running), "somebody was not restarted");

    // A state that was lost in the middle of it: both CAs are with the cluster.
    project.remove("karmaform.tfstate");
    let text = project.must(0, &["state", "rebuild"]);
    assert!(text.contains("No changes.") && !text.contains("PRIVATE KEY"), "{text}");
    project.no_changes();

    has("2", 2);
    refused("A CA that is in use can't be dropped");
    has("1, 2", 2);
    let (running, client) = (processes(), Client::of(&project, &lab, etcd));
    client.works_while("the second CA signs", || drop(project.apply()));
    project.no_changes();
    assert_eq!(processes(), running, "new certificates need no restart");
    // Who has only what the last apply gave it goes on.
    assert!(is_served(&project, &client, "first-"), "a client of before is refused too early");

    has("2", 2);
    let client = Client::of(&project, &lab, etcd);
    client.works_while("the first CA goes, and the run is killed", || {
        let apply = project.start(&["apply", "-auto-approve"]);
        let until = Instant::now() + Duration::from_secs(90);
        while processes().is_superset(&running) {
            assert!(Instant::now() < until, "nobody is restarted");
            std::thread::sleep(Duration::from_millis(50));
        }
        apply.kill();
    });
    client.works_while("it is gone on with", || drop(project.apply()));
    project.no_changes();
    let after = Client::of(&project, &lab, etcd);
    assert!(after.ctl.tries(&["put", "tick", "0"]), "the new client is refused");
    assert!(!is_served(&project, &after, "first-"), "a client of a CA that is not trusted any more is served");
    for (host, _) in &lab.hosts[..3] {
        lab.shell(host, "cd /etc/etcd/main/pki; test ! -e authority/client-ca.key -a -e authority/client-ca-2.key; grep -c BEGIN client-ca.crt | grep -qx 1");
    }
    let member = project.must(0, &["etcd", "status", "etcd_cluster.main"]);
    assert!(!member.contains("Error"), "{member}");
    project.must(0, &["destroy", "-auto-approve"]);
    lab.has_files(&before);
}

/// A client with another certificate is served.
fn is_served(project: &Project, client: &Client<'_>, prefix: &str) -> bool {
    let swap = |from: &str, to: &str| {
        for file in FILES {
            fs::copy(project.path().join(format!("{from}{file}")), project.path().join(format!("{to}{file}"))).expect("a copy");
        }
    };
    swap("", "now-");
    swap(prefix, "");
    let is_served = client.ctl.tries(&["get", "tick"]);
    swap("now-", "");
    is_served
}
