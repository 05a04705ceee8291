//! Faults while members come and go and settings roll: a member killed or paused, the network cut between two hosts, a disk full, karmaform killed. The
//! client loses nothing that was acknowledged, all that it was answered is as if one store had answered, and once the fault is over the same command
//! ends well. In pods: `karmada/etcd_faults.rs`.
//!
//! A clock that jumps is not among them: the hosts have this machine's one clock. `failures.rs` has a host whose `date` is two days off.

use std::time::{Duration, Instant};

use super::Lab;
use super::client::Client;
use super::project::Given;
use super::rounds::{Limits, Rounds};
use crate::parts::tell;
use crate::project::Project;

/// What is done each time, and to which host: by their places in the list, of which the first is always a member.
const USUAL: &[(Fault, usize)] = &[(Fault::Kill, 0), (Fault::Pause, 1), (Fault::Full, 0)];
/// How long a disk is full, at least: it takes a while until somebody misses what is full.
const FULL: Duration = Duration::from_secs(8);
/// The client may be kept from writing for the longest fault, until systemd has started who ended and members have found each other, and for a request
/// that was caught by that. systemd waits 5 s before it starts a member again.
const LIMITS: Limits = Limits { gap: Duration::from_secs(60), over: Duration::from_secs(20) };

/// Where the data of all members is, below which is nothing else: a file system of its own, so that nothing but etcd suffers when it is full. It has room
/// for the log's files of 64 MB each, for what is written to fill a database, and for data that was put aside; and more than the 256 MiB without
/// which a plan makes no member.
const DATA: &str = "/var/lib/etcd";
const MOUNT: &str = "mkdir -p /var/lib/etcd && mount -t tmpfs -o size=1g,mode=755 kf-data /var/lib/etcd";
/// So many values are written while a disk is full. A log has its next file beforehand, and a database up to 16 MiB more than it needs just now
/// (bbolt's `AllocSize`): with less nobody would notice.
const VALUES: usize = 20;
/// The size of each, in bytes: below etcd's limit of 1.5 MiB for a request.
const VALUE: usize = 1_000_000;

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The process of a member ends.
    Kill,
    /// It stands still for a while, and its address answers.
    Pause,
    /// Two hosts don't hear each other for a while.
    Cut,
    /// The disk with a member's data is full for a while.
    Full,
    /// karmaform itself ends.
    Ours,
}

const FAULTS: &[Fault] = &[Fault::Kill, Fault::Pause, Fault::Cut, Fault::Full, Fault::Ours];

#[test]
fn faults_while_members_change() {
    let Some(lab) = Lab::fresh("faults_while_members_change") else { return };
    let mut rounds = Rounds::new(FAULTS, USUAL, lab.hosts.len());
    lab.hosts.iter().for_each(|(host, _)| drop(lab.shell(host, MOUNT)));
    let etcd = lab.etcd.last().expect("an etcd").clone();
    let project = Project::etcd_with(&lab, &Given { hosts: &lab.hosts, etcd: &etcd, more: "" });
    project.apply();
    let client = Client::of(&project, &lab, &etcd);
    for number in 0..rounds.count {
        let round = rounds.next(number);
        project.variables(&lab, &Given { hosts: &lab.hosts[..round.size], etcd: &etcd, more: "" });
        project.settings(&format!("snapshot-count = {}", 5_000 + number));
        let happens = || strike(&lab, &client, round.fault, round.at.map(|place| &lab.hosts[place]), round.lasts);
        round.run(number, &project, &client, &LIMITS, (!matches!(round.fault, Fault::Ours)).then_some(happens));
    }
    project.must(0, &["destroy", "-auto-approve"]);
}

/// Does it, and ends it.
fn strike(lab: &Lab, client: &Client<'_>, fault: Fault, [one, other]: [&(String, String); 2], lasts: Duration) {
    // Nothing may run there, or not any more.
    let signal = |signal: &str| lab.shell(&one.0, &format!("systemctl kill -s {signal} etcd-main.service 2>/dev/null || :"));
    let route = |verb: &str| {
        for (host, address) in [(&one.0, &other.1), (&other.0, &one.1)] {
            lab.shell(host, &format!("ip route {verb} blackhole {address}/32"));
        }
    };
    match fault {
        Fault::Kill => drop(signal("KILL")),
        Fault::Pause => {
            signal("STOP");
            std::thread::sleep(lasts);
            signal("CONT");
        }
        Fault::Cut => {
            route("add");
            std::thread::sleep(lasts);
            route("del");
        }
        Fault::Full => full(lab, client, &one.0, lasts.max(FULL)),
        Fault::Ours => {}
    }
}

/// Fills the disk of a host, and frees it. A member that needs more than it has ends then, and systemd starts it again and again.
fn full(lab: &Lab, client: &Client<'_>, host: &str, lasts: Duration) {
    let until = Instant::now() + lasts;
    lab.shell(host, &format!("cat /dev/zero >{DATA}/fill 2>/dev/null || :"));
    let value = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(value.path(), "x".repeat(VALUE)).expect("written");
    for key in (0..VALUES).map(|i| format!("large/{i}")).take_while(|_| Instant::now() < until) {
        client.ctl.tries_file(&key, value.path());
    }
    std::thread::sleep(until.saturating_duration_since(Instant::now()));
    // Counted since somebody started it last.
    let again = lab.shell(host, &format!("systemctl show -p NRestarts --value etcd-main.service; rm {DATA}/fill"));
    tell(&format!("the disk of {host} was full, and its member was started again {} times", again.trim()));
}
