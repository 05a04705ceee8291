//! Real clusters that begin anew with a snapshot: back to an older version, after damage, full, killed on the way, from the one member that is
//! left, and new ones.

use std::process::Command;
use std::time::{Duration, Instant};

use super::Lab;
use super::client::Client;
use super::drift::finds;
use super::project::{Etcdctl, Given};
use crate::parts::tell;
use crate::project::Project;

const CLUSTER: &str = "etcd_cluster.main";
const CONFIRMED: &[&str] = &["apply", "-auto-approve", "-confirm=etcd_cluster.main"];

#[test]
fn clusters_begin_anew_with_what_was_saved() {
    let Some(lab) = Lab::fresh("clusters_begin_anew_with_what_was_saved") else { return };
    let before = lab.all_files();
    let etcd = lab.etcd.last().expect("an etcd");
    let site = Site::new(&lab);
    if lab.etcd.len() > 1 {
        back_to_an_older_version(&site);
    } else {
        tell("*** SKIPPED (one version of etcd alone): the way back to an older version");
    }
    site.given(&lab.hosts, etcd, "");
    site.project.apply();
    let client = Client::of(&site.project, &lab, etcd);

    what_is_damaged_stops_nobody(&site, &client);
    killed_on_the_way(&site, &client);
    a_full_one_has_room_again(&site, &client);
    the_last_one_is_enough(&site, &client);
    who_is_dead_leaves(&site, &client);

    site.project.must(0, &["destroy", "-auto-approve"]);
    lab.has_files(&before);
    // A new cluster has nothing to lose, and begins with what another one had.
    site.restores("full.db", "elsewhere");
    site.given(&lab.hosts[..1], etcd, "quota-backend-bytes = 500000000");
    site.project.apply();
    site.project.no_changes();
    // It has authorities of its own.
    let ctl = Etcdctl::new(&site.project, &etcd.1);
    assert_eq!(ctl.run(&["get", "k", "--print-value-only"]).trim(), "full");
    site.project.must(0, &["destroy", "-auto-approve"]);
    lab.has_files(&before);
}

/// The example, with a block more.
struct Site<'a> {
    lab: &'a Lab,
    project: Project,
    main: String,
}

impl<'a> Site<'a> {
    fn new(lab: &'a Lab) -> Self {
        let project = Project::example("etcd-on-hosts");
        let main = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("the example");
        let main = main.replacen("for_each ", "required = false\n  for_each ", 1);
        Self { lab, project, main }
    }

    fn given(&self, hosts: &[(String, String)], etcd: &(String, String), settings: &str) {
        self.project.variables(self.lab, &Given { hosts, etcd, more: "" });
        self.project.settings(settings);
    }

    /// With a block that restores this file.
    fn restores(&self, file: &str, id: &str) {
        let output = Command::new("sha256sum").arg(self.project.path().join(file)).output().expect("sha256sum");
        let sum = String::from_utf8_lossy(&output.stdout).get(..64).expect("a sum").to_owned();
        let block = format!("  restore {{\n    from   = \"{file}\"\n    sha256 = \"{sum}\"\n    id     = \"{id}\"\n  }}\n");
        let head = "resource \"etcd_cluster\" \"main\" {\n";
        assert!(self.main.contains(head));
        self.project.write("main.kf.hcl", &self.main.replace(head, &format!("{head}{block}")));
    }

    fn without_block(&self) {
        self.project.write("main.kf.hcl", &self.main);
    }

    fn saves(&self, file: &str, more: &[&str]) {
        self.project.must(0, &[&["etcd", "snapshot", CLUSTER, &format!("-out={file}")], more].concat());
    }

    /// Who runs as the members.
    fn processes(&self) -> Vec<String> {
        self.lab.hosts.iter().map(|(host, _)| self.lab.shell(host, "systemctl show -p MainPID etcd-main")).collect()
    }

    /// What was there before lies beside the data.
    fn kept(&self, host: &str) -> usize {
        self.lab.shell(host, "ls -d /var/lib/etcd/main.before-* 2>/dev/null | wc -l").trim().parse().expect("a number")
    }
}

/// Once all members run the next version, only its own data brings the old one back.
fn back_to_an_older_version(site: &Site<'_>) {
    let (lab, project) = (site.lab, &site.project);
    let (old, new) = (lab.etcd.first().expect("an etcd"), lab.etcd.last().expect("an etcd"));
    site.given(&lab.hosts, old, "");
    project.apply();
    let ctl = Etcdctl::new(project, &old.1);
    ctl.run(&["put", "k", "old"]);
    site.saves("old.db", &[]);
    site.given(&lab.hosts, new, "");
    project.apply();
    ctl.run(&["put", "k", "new"]);
    site.given(&lab.hosts, old, "");
    let refused = project.must(1, &["plan"]);
    assert!(refused.contains("There is no way back to that version"), "{refused}");
    site.restores("old.db", "");
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains(&format!("the revision goes back, as etcd {} can't raise it", old.0)), "{plan}");
    project.must(0, CONFIRMED);
    project.no_changes();
    assert_eq!(ctl.run(&["get", "k", "--print-value-only"]).trim(), "old");
    let status = ctl.run(&["endpoint", "status"]);
    assert_eq!(status.matches(&format!(", {}, ", old.0)).count(), lab.hosts.len(), "{status}");
    site.without_block();
    project.apply();
    project.no_changes();
}

/// Nobody agreed, or the file is not what it should be: then the cluster goes on.
fn what_is_damaged_stops_nobody(site: &Site<'_>, client: &Client<'_>) {
    client.ctl.run(&["put", "k", "saved"]);
    site.saves("saved.db", &[]);
    client.ctl.run(&["put", "k", "later"]);
    client.ctl.run(&["put", "later", "x"]);
    site.restores("saved.db", "");
    let refused = site.project.must(1, &["apply", "-auto-approve"]);
    assert!(refused.contains("Not confirmed") && refused.contains("-confirm=etcd_cluster.main"), "{refused}");
    site.project.must(0, &["plan", "-out=restore.plan"]);
    let refused = site.project.must(1, &["apply", "restore.plan"]);
    assert!(refused.contains("Not confirmed"), "{refused}");

    let mut bytes = std::fs::read(site.project.path().join("saved.db")).expect("a snapshot");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(site.project.path().join("damaged.db"), bytes).expect("a file");
    site.restores("damaged.db", "");
    client.works_while("a damaged snapshot", || {
        let failed = site.project.must(1, CONFIRMED);
        assert!(failed.contains("Command failed") && failed.contains("no whole snapshot"), "{failed}");
    });
    assert_eq!(client.ctl.run(&["get", "k", "--print-value-only"]).trim(), "later");
    // It is given up, and nothing of it stays.
    site.without_block();
    let plan = site.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains("gives up the restoration"), "{plan}");
    let running = site.processes();
    site.project.apply();
    site.project.no_changes();
    assert_eq!(site.processes(), running);
    for (host, _) in &site.lab.hosts {
        site.lab.shell(host, "! ls -d /var/lib/etcd/main.restore");
    }
}

/// Killed at several moments, the last of them after everybody has stopped; then done. Whoever watches begins anew.
fn killed_on_the_way(site: &Site<'_>, client: &Client<'_>) {
    site.restores("saved.db", "");
    let is_stopped = |host: &str| !site.lab.shell(host, "systemctl show -p ActiveState --value etcd-main").trim().eq("active");
    for moment in ["made ready", "stopped"] {
        let apply = site.project.start(CONFIRMED);
        let until = Instant::now() + Duration::from_secs(60);
        let is_there = |host: &str| match moment {
            "made ready" => site.lab.shell(host, "ls -d /var/lib/etcd/main.restore/new-* 2>/dev/null || true").contains("new-"),
            _ => is_stopped(host),
        };
        while !site.lab.hosts.iter().any(|(host, _)| is_there(host)) {
            assert!(Instant::now() < until, "nothing is {moment}");
        }
        apply.kill();
    }
    // Members were stopped for it: it is not to be forgotten now, nor to go on as another one.
    site.without_block();
    let refused = site.project.must(1, &["plan"]);
    assert!(refused.contains("A restoration has begun and has not ended"), "{refused}");
    site.restores("saved.db", "");
    site.given(&site.lab.hosts[1..], site.lab.etcd.last().expect("an etcd"), "");
    let refused = site.project.must(1, &["plan"]);
    assert!(refused.contains("A restoration that has begun can't be changed"), "{refused}");
    site.given(&site.lab.hosts, site.lab.etcd.last().expect("an etcd"), "");
    let begun = Instant::now();
    site.project.must(0, CONFIRMED);
    tell(&format!("what was killed is done {:.1} s later", begun.elapsed().as_secs_f64()));
    site.project.no_changes();
    finds(&site.project, &[]);
    client.has_members(site.lab.hosts.len());
    assert_eq!(client.ctl.run(&["get", "k", "--print-value-only"]).trim(), "saved");
    assert_eq!(client.ctl.run(&["get", "later", "--print-value-only"]).trim(), "");
    let json = client.ctl.run(&["get", "k", "--write-out=json"]);
    let json: serde_json::Value = serde_json::from_str(json.lines().next().expect("a line")).expect("JSON");
    assert!(json["header"]["revision"].as_i64().is_some_and(|r| r > 1_000_000_000), "{json}");
    assert!(!client.ctl.tries(&["get", "k", "--rev=5"]), "what was before must be compacted");
    for (host, _) in &site.lab.hosts {
        assert_eq!(site.kept(host), 1, "{host}");
    }
    site.without_block();
    let running = site.processes();
    let plan = site.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains("deletes data of before the restoration"), "{plan}");
    client.works_while("the block goes", || drop(site.project.apply()));
    site.project.no_changes();
    assert_eq!(site.processes(), running);
    for (host, _) in &site.lab.hosts {
        assert_eq!(site.kept(host), 0, "{host}");
    }
}

/// A snapshot of a cluster that took no writes any more brings the alarm along.
fn a_full_one_has_room_again(site: &Site<'_>, client: &Client<'_>) {
    let etcd = site.lab.etcd.last().expect("an etcd");
    site.given(&site.lab.hosts, etcd, "quota-backend-bytes = 20000000");
    site.project.apply();
    client.ctl.run(&["put", "k", "full"]);
    let value = "x".repeat(100_000);
    let full = (0..400).any(|i| !client.ctl.tries(&["put", &format!("full/{i}"), &value]));
    assert!(full && client.ctl.run(&["alarm", "list"]).contains("NOSPACE"));
    site.saves("full.db", &["-force"]);
    site.restores("full.db", "");
    site.given(&site.lab.hosts, etcd, "quota-backend-bytes = 500000000");
    site.project.must(0, CONFIRMED);
    site.project.no_changes();
    assert_eq!(client.ctl.run(&["alarm", "list"]).trim(), "");
    client.ctl.run(&["put", "room", "x"]);
    site.without_block();
    site.project.apply();
}

/// Two of three lose their disks. What the third has is saved, and is what the others begin with.
fn the_last_one_is_enough(site: &Site<'_>, client: &Client<'_>) {
    let last = &site.lab.hosts[0].0;
    client.ctl.run(&["put", "last", "there"]);
    for (host, _) in &site.lab.hosts[1..] {
        site.lab.shell(host, "systemctl stop etcd-main; rm -rf /var/lib/etcd/main/*");
    }
    let refused = site.project.must(1, &["plan"]);
    assert!(refused.contains("has lost its majority"), "{refused}");
    site.saves("last.db", &[&format!("-member={last}"), "-force"]);
    site.restores("last.db", "rescue");
    site.project.must(0, CONFIRMED);
    site.project.no_changes();
    client.has_members(site.lab.hosts.len());
    assert_eq!(client.ctl.run(&["get", "last", "--print-value-only"]).trim(), "there");
    finds(&site.project, &[]);
}

/// Nobody waits for the host of a member that leaves, and what is left there goes when it is back.
fn who_is_dead_leaves(site: &Site<'_>, client: &Client<'_>) {
    let (stay, dead) = site.lab.hosts.split_at(2);
    let (dead, etcd) = (&dead[0].0, site.lab.etcd.last().expect("an etcd"));
    client.ctl.run(&["put", "dead", "no"]);
    site.saves("two.db", &[]);
    site.lab.act("kill", dead);
    site.given(stay, etcd, "");
    site.restores("two.db", "two");
    let plan = site.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains(&format!("{dead} can't be reached, and nobody waits for it to stop")), "{plan}");
    let ended = site.project.run(CONFIRMED);
    assert!(ended.code == Some(1) && ended.text.contains(dead.as_str()), "{}", ended.text);
    client.has_members(2);
    assert_eq!(client.ctl.run(&["get", "dead", "--print-value-only"]).trim(), "no");
    site.lab.act("start", dead);
    site.project.must(0, CONFIRMED);
    site.project.no_changes();
    client.has_members(2);
    assert!(!site.lab.shell(dead, "ls -d /var/lib/etcd/main* /etc/etcd/main 2>/dev/null || true").contains("main"));
}
