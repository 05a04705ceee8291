//! A real cluster that grows, loses a member's disk, loses a host, and shrinks, with a client at work all the time: what was acknowledged is
//! there, and every read is of the last write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Lab;
use super::project::{Etcdctl, Given};
use crate::parts::tell;
use crate::project::Project;

#[test]
fn members_come_and_go_under_a_client() {
    let Some(lab) = Lab::fresh("members_come_and_go_under_a_client") else { return };
    for etcd in lab.etcd.clone() {
        for (host, _) in &lab.hosts {
            lab.act("reset", host);
        }
        grows_and_shrinks(&lab, &etcd);
    }
}

fn grows_and_shrinks(lab: &Lab, etcd: &(String, String)) {
    let before = lab.all_files();
    let given = |count: usize| Given { hosts: &lab.hosts[..count], etcd, more: "" };
    let project = Project::etcd_with(lab, &given(lab.hosts.len()));
    let sized = |count: usize| project.variables(lab, &given(count));
    let main = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("the example");
    project.write("main.kf.hcl", &main.replacen("for_each ", "required = false\n  for_each ", 1));
    sized(1);
    project.apply();
    let client = Client::of(&project, lab, etcd);
    let most = lab.hosts.len();

    sized(most);
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    for words in [format!("{most} members instead of 1"), "who joins does not vote until it has caught up".to_owned()] {
        assert!(plan.contains(&words), "{words:?} is not in\n{plan}");
    }
    client.works_while("1 grows", || drop(project.apply()));
    project.no_changes();
    client.has_members(most);

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

    // Somebody takes one out by hand; its data is that of a member that is none any more.
    let id = client.id_of(&lab.hosts[2].0);
    // etcd refuses it for some seconds after a start.
    let until = Instant::now() + Duration::from_secs(60);
    while !client.ctl.tries(&["member", "remove", &id]) {
        assert!(Instant::now() < until, "it can't be removed");
        std::thread::sleep(Duration::from_millis(500));
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
    client.lead_by(&lab.hosts[1].0, lab);
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

/// Writes and reads, one after the other.
struct Client<'a> {
    ctl: Etcdctl<'a>,
    version: String,
}

impl<'a> Client<'a> {
    fn of(project: &'a Project, lab: &Lab, etcd: &(String, String)) -> Self {
        let endpoints = lab.hosts.iter().map(|(_, address)| format!("https://{address}:2379")).collect::<Vec<_>>().join(",");
        Self { ctl: Etcdctl::at(project, &etcd.1, endpoints), version: etcd.0.clone() }
    }

    /// Writes and reads until the work is done. Every read must give the last write that was acknowledged, or one that was tried after it.
    #[track_caller]
    fn works_while(&self, what: &str, work: impl FnOnce()) {
        let done = AtomicBool::new(false);
        let (writes, longest) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write(&done));
            let end = Finally(&done);
            work();
            drop(end);
            writer.join().expect("the client")
        });
        tell(&format!(
            "etcd {}, {what}: {writes} writes, none lost; the longest gap between two was {} ms",
            self.version,
            longest.as_millis()
        ));
        // An election and the time of a request that it catches; a graceful change is far below. More would be a cluster that was away.
        assert!(writes > 1 && longest < Duration::from_secs(9), "{what}: {writes} writes, the longest gap was {longest:?}");
    }

    fn write(&self, done: &AtomicBool) -> (usize, Duration) {
        let (mut last, mut longest, mut acknowledged, mut tried) = (Instant::now(), Duration::ZERO, Vec::new(), 0_usize);
        while !done.load(Ordering::SeqCst) {
            tried += 1;
            let began = acknowledged.last().copied().unwrap_or(0);
            if self.ctl.tries(&["put", "tick", &tried.to_string()]) && self.ctl.tries(&["put", &format!("ticks/{tried}"), "x"]) {
                longest = longest.max(last.elapsed());
                last = Instant::now();
                acknowledged.push(tried);
            }
            if let Some(seen) = self.ctl.value("tick") {
                assert!((began..=tried).contains(&seen), "{seen} was read, after {began} was acknowledged and {tried} was tried");
            }
        }
        let there = self.ctl.run(&["get", "ticks/", "--prefix", "--keys-only"]);
        for tick in &acknowledged {
            assert!(there.lines().any(|l| l == format!("ticks/{tick}")), "the write {tick} was acknowledged and is gone");
        }
        self.ctl.run(&["del", "ticks/", "--prefix"]);
        self.ctl.run(&["put", "tick", "0"]);
        (acknowledged.len(), longest)
    }

    #[track_caller]
    fn has_members(&self, count: usize) {
        let list = self.ctl.run(&["member", "list", "--write-out=simple"]);
        assert_eq!(list.lines().count(), count, "{list}");
        assert!(list.lines().all(|l| l.contains(", started, ") && l.ends_with("false")), "{list}");
    }

    fn id_of(&self, name: &str) -> String {
        let list = self.ctl.run(&["member", "list", "--write-out=simple"]);
        let line = list.lines().find(|l| l.split(", ").nth(2) == Some(name));
        line.unwrap_or_else(|| panic!("no member {name}:\n{list}")).split(", ").next().unwrap_or_default().to_owned()
    }

    /// Hands the lead to a member.
    fn lead_by(&self, name: &str, lab: &Lab) {
        let id = self.id_of(name);
        for (_, address) in &lab.hosts {
            self.ctl.tries(&[&format!("--endpoints=https://{address}:2379"), "move-leader", &id]);
        }
    }
}

/// Tells that it is over, however it ends.
struct Finally<'a>(&'a AtomicBool);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
