//! A real cluster that grows, goes to the next version, loses a member's disk, loses a host, and shrinks, with a client at work all the time: what
//! was acknowledged is there, and every read is of the last write.

use std::time::{Duration, Instant};

use super::Lab;
use super::client::Client;
use super::project::Given;
use crate::parts::tell;
use crate::project::Project;

#[test]
fn members_come_and_go_under_a_client() {
    let Some(lab) = Lab::fresh("members_come_and_go_under_a_client") else { return };
    let (old, new) = (lab.etcd.first().expect("an etcd"), lab.etcd.last().expect("an etcd"));
    let before = lab.all_files();
    let most = lab.hosts.len();
    let project = Project::etcd_with(&lab, &Given { hosts: &lab.hosts, etcd: old, more: "" });
    let of = |count: usize, etcd: &(String, String)| {
        project.variables(&lab, &Given { hosts: &lab.hosts[..count], etcd, more: "" });
    };
    let main = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("the example");
    project.write("main.kf.hcl", &main.replacen("for_each ", "required = false\n  for_each ", 1));
    of(1, old);
    project.apply();
    let client = Client::of(&project, &lab, new);

    of(most, old);
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    for words in [format!("{most} members instead of 1"), "who joins does not vote until it has caught up".to_owned()] {
        assert!(plan.contains(&words), "{words:?} is not in\n{plan}");
    }
    client.works_while("1 grows", || drop(project.apply()));
    project.no_changes();
    client.has_members(most);

    if old.0 == new.0 {
        tell("*** SKIPPED (one version of etcd alone): another version under the data of a cluster");
    } else {
        upgrade(&project, &lab, &client, &|etcd| of(most, etcd));
    }
    let sized = |count: usize| of(count, new);

    // A part alone can be put right: who is not among the targets is no reason to change members.
    let file = format!("etcd_cluster.main/member[\"{}\"]/pki[\"server.crt\"]", lab.hosts[1].0);
    lab.shell(&lab.hosts[1].0, "rm /etc/etcd/main/pki/server.crt");
    project.must(0, &["apply", "-auto-approve", &format!("-target={file}")]);
    project.no_changes();

    // A disk is lost; the member does not start by itself, and comes back as a new one.
    let lost = &lab.hosts[1].0;
    lab.shell(lost, "systemctl stop etcd-main.service; rm -rf /var/lib/etcd/main/*; ! systemctl start etcd-main.service || ! systemctl is-active etcd-main.service");
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains(&format!("replaces member {lost}: its data is gone")), "{plan}");
    client.works_while("a disk is lost", || drop(project.apply()));
    project.no_changes();
    client.has_members(most);

    // Somebody takes one out by hand, the leader; its data is that of a member that is none any more.
    client.lead_by(&lab.hosts[2].0, &lab);
    let id = client.id_of(&lab.hosts[2].0);
    client.ctl.removes(&id);
    let until = Instant::now() + Duration::from_secs(60);
    // Nobody has handed the lead over, and what was asked of it at that moment waits until it is given up.
    while !client.ctl.tries(&["put", "tick", "0"]) {
        assert!(Instant::now() < until, "the others do not go on");
    }
    client.works_while("one was removed by hand", || drop(project.apply()));
    project.no_changes();
    client.has_members(most);
    lab.shell(&lab.hosts[2].0, "ls -d /var/lib/etcd/main.replaced-*");

    // A host dies and is not wanted any more: its member leaves. What is on it stays in the state until it can be reached or is forgotten.
    let dead = &lab.hosts[most - 1].0;
    lab.act("kill", dead);
    sized(most - 1);
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains(&format!("removes member {dead}, which does not work")), "{plan}");
    client.works_while("a host is dead", || {
        let ended = project.run(&["apply", "-auto-approve"]);
        assert!(ended.code == Some(1) && ended.text.contains(dead.as_str()), "{}", ended.text);
    });
    client.has_members(most - 1);
    lab.act("start", dead);
    project.apply();
    project.no_changes();
    client.has_members(most - 1);

    // The leader is among those that go.
    client.lead_by(&lab.hosts[1].0, &lab);
    sized(1);
    client.works_while("one stays", || drop(project.apply()));
    project.no_changes();
    client.has_members(1);
    let fresh = lab.all_files();
    for (host, _) in &lab.hosts[1..] {
        assert!(fresh[host] == before[host], "something of a member that left is still on {host}");
    }
    project.must(0, &["destroy", "-auto-approve"]);
    lab.has_files(&before);
}

/// To the next version: not with programs that are another one; begun, killed and taken back; and done.
fn upgrade(project: &Project, lab: &Lab, client: &Client<'_>, to: &dyn Fn(&(String, String))) {
    let (old, new) = (lab.etcd.first().expect("an etcd"), lab.etcd.last().expect("an etcd"));
    let processes = || lab.hosts.iter().map(|(host, _)| lab.shell(host, "systemctl show -p MainPID etcd-main.service")).collect::<Vec<_>>();
    let running = processes();
    to(&(new.0.clone(), old.1.clone()));
    let refused = project.must(1, &["apply", "-auto-approve"]);
    assert!(refused.contains(&format!("is etcd {}, and `version` says {}", old.0, new.0)), "{refused}");
    assert_eq!(processes(), running, "a member was restarted with a program that is not what was asked for");

    to(new);
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    for words in [format!("upgrades etcd from {} to {}", old.0, new.0), "there is no way back to".to_owned()] {
        assert!(plan.contains(&words), "{words:?} is not in\n{plan}");
    }
    let has_new = |host: &str| lab.shell(host, "/opt/karmaform/etcd-main/etcd --version").contains(&format!("Version: {}\n", new.0));
    // By the file: to ask a program for its version takes longer than an upgrade may leave.
    let programs =
        || lab.hosts.iter().map(|(host, _)| lab.shell(host, "stat -L -c %i:%s /opt/karmaform/etcd-main/etcd")).collect::<Vec<_>>();
    let before = programs();
    client.works_while("an upgrade is killed", || {
        let apply = project.start(&["apply", "-auto-approve"]);
        let until = Instant::now() + Duration::from_secs(90);
        while programs() == before {
            assert!(Instant::now() < until, "no host gets the new program");
            std::thread::sleep(Duration::from_millis(50));
        }
        apply.kill();
    });
    to(old);
    client.works_while("it is taken back", || drop(project.apply()));
    project.no_changes();
    assert!(!lab.hosts.iter().any(|(host, _)| has_new(host)));
    to(new);
    client.works_while("it is done", || drop(project.apply()));
    project.no_changes();
    to(old);
    let refused = project.must(1, &["plan"]);
    assert!(refused.contains("There is no way back to that version"), "{refused}");
    to(new);

    // What was saved is what it was: etcd itself takes it.
    let saved = lab.shell(&lab.hosts[0].0, "ls -1t /var/lib/etcd/main.snapshots/before-*.db");
    let newest = saved.lines().next().expect("a snapshot");
    let restore =
        format!("ETCDCTL_API=3 /opt/karmaform/etcd-main/etcdctl snapshot restore {newest} --data-dir /run/restored >/dev/null 2>&1");
    lab.shell(&lab.hosts[0].0, &format!("{restore} && rm -r /run/restored"));
}
