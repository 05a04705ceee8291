//! A client of etcd that writes and reads while something is done to its cluster, and says what it was given.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::Lab;
use super::history::{Done, NOTHING, Operation, judge};
use super::project::Etcdctl;
use crate::parts::{tell, url};
use crate::project::Project;

/// The key that is written again and again. All others are written once.
const LAST: &str = "last";
/// What is written to those.
const THERE: usize = 1;
/// Each request is a process of its own: without pauses they would take the machine away from what is tested.
const PAUSE: Duration = Duration::from_millis(150);

/// Writes and reads: one thread does both by turns, another one reads.
pub(crate) struct Client<'a> {
    pub(crate) ctl: Etcdctl<'a>,
}

/// One time of being at work.
struct Session {
    began: Instant,
    /// All its keys begin so, and no others: what of an earlier session is done late is none of this one's.
    prefix: String,
}

impl Session {
    fn new() -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_micros());
        Self { began: Instant::now(), prefix: format!("ticks/{now}/") }
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

impl<'a> Client<'a> {
    pub(super) fn of(project: &'a Project, lab: &Lab, etcd: &(String, String)) -> Self {
        let endpoints = lab.hosts.iter().map(|(_, address)| url(address, 2379)).collect::<Vec<_>>().join(",");
        Self { ctl: Etcdctl::at(project, &etcd.1, endpoints) }
    }

    /// Writes and reads until the work is done. All that was answered must be as if one store had done one thing after the other.
    #[track_caller]
    pub(super) fn works_while(&self, what: &str, work: impl FnOnce()) {
        // An election and the time of a request that it catches; a graceful change is far below. More would be a cluster that was away.
        self.works_within(Duration::from_secs(9), what, work);
    }

    /// The same where something keeps it from working for a while, but no longer than this.
    #[track_caller]
    pub(crate) fn works_within(&self, limit: Duration, what: &str, work: impl FnOnce()) {
        let (done, session) = (AtomicBool::new(false), Session::new());
        let ((mut history, longest), others) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write(&session, &done));
            let reader = scope.spawn(|| self.read(&session, &done));
            let end = Finally(&done);
            work();
            drop(end);
            (writer.join().expect("the writer"), reader.join().expect("the reader"))
        });
        history.extend(others);
        let reads = history.iter().filter(|o| matches!(o.done, Done::Read { .. })).count();
        let is_acknowledged = |o: &&Operation| o.key != LAST && matches!(o.done, Done::Write { acknowledged: Some(_), .. });
        let writes = history.iter().filter(is_acknowledged).count();
        let at_the_end = self.what_is_there(&session, &history);
        history.extend(at_the_end);
        if let Err(why) = judge(&history) {
            panic!("{what}: of {writes} writes and {reads} reads the history is not linearizable: {why}");
        }
        let gap = longest.as_millis();
        tell(&format!("{what}: {writes} writes, none lost, {reads} reads, history linearizable; longest gap between two writes {gap} ms"));
        assert!(writes > 1 && reads > 0 && longest < limit, "{what}: {writes} writes, {reads} reads, the longest gap was {longest:?}");
        self.ctl.run(&["del", &session.prefix, "--prefix"]);
    }

    /// Writes by turns what was there before and what was not, and reads. With the longest time from one acknowledged write to the next, or to the end.
    fn write(&self, session: &Session, done: &AtomicBool) -> (Vec<Operation>, Duration) {
        let (mut last, mut longest, mut history) = (Instant::now(), Duration::ZERO, Vec::new());
        for number in 1.. {
            if done.load(Ordering::SeqCst) {
                break;
            }
            if self.puts(session, LAST, number, &mut history) && self.puts(session, &number.to_string(), THERE, &mut history) {
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            std::thread::sleep(PAUSE);
            history.extend(self.gets(session, LAST));
        }
        // What was not over by the end counts, too.
        (history, longest.max(last.elapsed()))
    }

    /// Reads while somebody else writes.
    fn read(&self, session: &Session, done: &AtomicBool) -> Vec<Operation> {
        let mut history = Vec::new();
        while !done.load(Ordering::SeqCst) {
            history.extend(self.gets(session, LAST));
            std::thread::sleep(2 * PAUSE);
        }
        history
    }

    /// True if it was acknowledged. If not it may have been done, or will be: by a member that was paused, say.
    fn puts(&self, session: &Session, key: &str, value: usize, history: &mut Vec<Operation>) -> bool {
        let began = session.began.elapsed();
        let is_acknowledged = self.ctl.tries(&["put", &session.key(key), &value.to_string()]);
        let acknowledged = is_acknowledged.then(|| session.began.elapsed());
        history.push(Operation { key: key.to_owned(), began, done: Done::Write { value, acknowledged } });
        is_acknowledged
    }

    /// `None`: nobody answered.
    fn gets(&self, session: &Session, key: &str) -> Option<Operation> {
        let began = session.began.elapsed();
        // etcd's reads are linearizable unless they are asked not to be.
        let value = self.ctl.value(&session.key(key))?;
        Some(Operation { key: key.to_owned(), began, done: Done::Read { value, answered: session.began.elapsed() } })
    }

    /// Reads all keys that were written once, at one moment.
    #[track_caller]
    fn what_is_there(&self, session: &Session, history: &[Operation]) -> Vec<Operation> {
        let began = session.began.elapsed();
        let text = self.ctl.run(&["get", &session.prefix, "--prefix", "--keys-only"]);
        let answered = session.began.elapsed();
        let there: BTreeSet<&str> = text.lines().collect();
        let once = history.iter().filter(|o| o.key != LAST && matches!(o.done, Done::Write { .. }));
        once.map(|o| {
            let value = if there.contains(session.key(&o.key).as_str()) { THERE } else { NOTHING };
            Operation { key: o.key.clone(), began, done: Done::Read { value, answered } }
        })
        .collect()
    }

    /// Any member may answer, and one may learn of the last change a moment after the others.
    #[track_caller]
    pub(crate) fn has_members(&self, count: usize) {
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            let list = self.ctl.run(&["member", "list", "--write-out=simple"]);
            let is_full = list.lines().all(|l| l.contains(", started, ") && l.ends_with("false"));
            if is_full && list.lines().count() == count {
                return;
            }
            assert!(Instant::now() < until, "{list}");
            std::thread::sleep(PAUSE);
        }
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
            self.ctl.tries(&[&format!("--endpoints={}", url(address, 2379)), "move-leader", &id]);
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
