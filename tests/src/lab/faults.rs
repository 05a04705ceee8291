//! Faults while members come and go and settings roll: a member killed or paused, the network cut between two hosts, a disk full, karmaform killed. The
//! client loses nothing that was acknowledged, all that it was answered is as if one store had answered, and once the fault is over the same command
//! ends well.
//!
//! The same three each time, unless `KARMAFORM_KILLS` says how many by chance (`make kill`: 50); `KARMAFORM_SEED` repeats a run.
//!
//! A clock that jumps is not among them: the hosts have this machine's one clock. `failures.rs` has a host whose `date` is two days off.

use std::time::{Duration, Instant};

use super::Lab;
use super::client::Client;
use super::project::Given;
use crate::parts::{kills, kills_from, tell};
use crate::project::Project;

/// What is done each time, and to which host: by their places in the list, of which the first is always a member.
const USUAL: [(Fault, usize); 3] = [(Fault::Kill, 0), (Fault::Pause, 1), (Fault::Full, 0)];
/// Sizes and moments of those.
const USUAL_SEED: u64 = 7;
/// How long a member is paused, or a network is cut, in seconds.
const SECONDS: std::ops::Range<u64> = 2..12;
/// How long a disk is full, at least: it takes a while until somebody misses what is full.
const FULL: Duration = Duration::from_secs(8);
/// How long the client may be kept from writing: for the longest fault, until systemd has started who ended and members have found each other, and for
/// a request that was caught by that.
const PATIENCE: Duration = Duration::from_secs(60);

/// When a fault is over: systemd waits 5 s before it starts a member again.
const OVER: Duration = Duration::from_secs(20);

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

const FAULTS: [Fault; 5] = [Fault::Kill, Fault::Pause, Fault::Cut, Fault::Full, Fault::Ours];

#[test]
fn faults_while_members_change() {
    let Some(lab) = Lab::fresh("faults_while_members_change") else { return };
    let is_asked_for = std::env::var_os("KARMAFORM_KILLS").is_some();
    let (rounds, mut random) = if is_asked_for { kills(USUAL.len()) } else { kills_from(USUAL.len(), USUAL_SEED) };
    lab.hosts.iter().for_each(|(host, _)| drop(lab.shell(host, MOUNT)));
    let etcd = lab.etcd.last().expect("an etcd").clone();
    let project = Project::etcd_with(&lab, &Given { hosts: &lab.hosts, etcd: &etcd, more: "" });
    project.apply();
    let client = Client::of(&project, &lab, &etcd);
    let mut size = lab.hosts.len();
    for round in 0..rounds {
        let sizes: Vec<usize> = (1..=lab.hosts.len()).filter(|s| *s != size).collect();
        size = sizes[random.usize(..sizes.len())];
        project.variables(&lab, &Given { hosts: &lab.hosts[..size], etcd: &etcd, more: "" });
        project.settings(&format!("snapshot-count = {}", 5_000 + round));
        let by_chance = FAULTS[random.usize(..FAULTS.len())];
        let (moment, lasts) = (Duration::from_millis(random.u64(500..9_000)), Duration::from_secs(random.u64(SECONDS)));
        let (host, other) = (random.usize(..lab.hosts.len()), random.usize(1..lab.hosts.len()));
        let (fault, one) = if is_asked_for { (by_chance, host) } else { USUAL[round % USUAL.len()] };
        let other = (one + other) % lab.hosts.len();
        let hosts = [&lab.hosts[one], &lab.hosts[other]];
        let what = format!("fault {}: {fault:?} at {hosts:?} {moment:?} after the way to {size} members began, for {lasts:?}", round + 1);
        tell(&what);
        client.works_within(PATIENCE, &what, || {
            let running = project.start(&["apply", "-auto-approve"]);
            std::thread::sleep(moment);
            let (code, text) = if let Fault::Ours = fault {
                (None, running.kill())
            } else {
                strike(&lab, &client, fault, hosts, lasts);
                let ended = running.end();
                (ended.code, ended.text)
            };
            assert!(matches!(code, None | Some(0 | 1)) && !text.contains("panicked"), "{what}\n{text}");
            // A member that was killed is away for some seconds more, and what it could cost to go on then is refused.
            let until = Instant::now() + OVER;
            let mut again = project.run(&["apply", "-auto-approve"]);
            while again.code != Some(0) && Instant::now() < until {
                again = project.run(&["apply", "-auto-approve"]);
            }
            assert_eq!(again.code, Some(0), "{what}\n--- that run ---\n{text}\n--- the last after it ---\n{}", again.text);
        });
        project.no_changes();
        client.has_members(size);
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
