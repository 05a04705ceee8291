//! A client of etcd that writes and reads while something is done to its cluster, and says what it was given.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Lab;
use super::project::Etcdctl;
use crate::parts::tell;
use crate::project::Project;

/// Writes and reads, one after the other.
pub(crate) struct Client<'a> {
    pub(crate) ctl: Etcdctl<'a>,
}

impl<'a> Client<'a> {
    pub(super) fn of(project: &'a Project, lab: &Lab, etcd: &(String, String)) -> Self {
        let endpoints = lab.hosts.iter().map(|(_, address)| format!("https://{address}:2379")).collect::<Vec<_>>().join(",");
        Self { ctl: Etcdctl::at(project, &etcd.1, endpoints) }
    }

    /// Writes and reads until the work is done. Every read must give the last write that was acknowledged, or one that was tried after it.
    #[track_caller]
    pub(super) fn works_while(&self, what: &str, work: impl FnOnce()) {
        // An election and the time of a request that it catches; a graceful change is far below. More would be a cluster that was away.
        self.works_within(Duration::from_secs(9), what, work);
    }

    /// The same where something keeps it from working for a while, but no longer than this.
    #[track_caller]
    pub(crate) fn works_within(&self, limit: Duration, what: &str, work: impl FnOnce()) {
        let done = AtomicBool::new(false);
        let (writes, longest) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write(&done));
            let end = Finally(&done);
            work();
            drop(end);
            writer.join().expect("the client")
        });
        tell(&format!("{what}: {writes} writes, none lost; the longest gap between two was {} ms", longest.as_millis()));
        assert!(writes > 1 && longest < limit, "{what}: {writes} writes, the longest gap was {longest:?}");
    }

    fn write(&self, done: &AtomicBool) -> (usize, Duration) {
        let (mut last, mut longest, mut acknowledged, mut tried) = (Instant::now(), Duration::ZERO, Vec::new(), 0_usize);
        // What was not acknowledged may have been done, and that also later than what came after it: by a member that was paused.
        let mut unsure = BTreeSet::new();
        while !done.load(Ordering::SeqCst) {
            tried += 1;
            let began = acknowledged.last().copied().unwrap_or(0);
            if self.ctl.tries(&["put", "tick", &tried.to_string()]) && self.ctl.tries(&["put", &format!("ticks/{tried}"), "x"]) {
                longest = longest.max(last.elapsed());
                last = Instant::now();
                acknowledged.push(tried);
            } else {
                unsure.insert(tried);
            }
            // Each request is a process of its own: without a pause they would take the machine away from what is tested.
            std::thread::sleep(Duration::from_millis(150));
            if let Some(seen) = self.ctl.value("tick") {
                let may_be = (began..=tried).contains(&seen) || unsure.contains(&seen);
                assert!(may_be, "{seen} was read, after {began} was acknowledged and {tried} was tried");
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
    pub(crate) fn has_members(&self, count: usize) {
        let list = self.ctl.run(&["member", "list", "--write-out=simple"]);
        assert_eq!(list.lines().count(), count, "{list}");
        assert!(list.lines().all(|l| l.contains(", started, ") && l.ends_with("false")), "{list}");
    }

    pub(crate) fn id_of(&self, name: &str) -> String {
        let list = self.ctl.run(&["member", "list", "--write-out=simple"]);
        let line = list.lines().find(|l| l.split(", ").nth(2) == Some(name));
        line.unwrap_or_else(|| panic!("no member {name}:\n{list}")).split(", ").next().unwrap_or_default().to_owned()
    }

    /// Hands the lead to a member.
    pub(super) fn lead_by(&self, name: &str, lab: &Lab) {
        let id = self.id_of(name);
        for (_, address) in &lab.hosts {
            self.ctl.tries(&[&format!("--endpoints=https://{address}:2379"), "move-leader", &id]);
        }
    }
}

/// Tells that it is over, however it ends: who fails while another thread works for it would wait for that one for ever.
pub(crate) struct Finally<'a>(pub(crate) &'a AtomicBool);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
