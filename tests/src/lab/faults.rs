//! Faults while members come and go and settings roll: a member killed or paused, the network cut between two hosts, karmaform killed. The client
//! loses nothing that was acknowledged, and once the fault is over the same command ends well.
//!
//! The same two each time, unless `KARMAFORM_KILLS` says how many by chance (`make kill`: 50); `KARMAFORM_SEED` repeats a run.

use std::time::{Duration, Instant};

use super::Lab;
use super::client::Client;
use super::project::Given;
use crate::parts::{kills, kills_from, tell};
use crate::project::Project;

const USUAL: usize = 2;
/// A member that is killed, and one that is paused.
const USUAL_SEED: u64 = 7;
/// How long a member is paused, or a network is cut, in seconds.
const SECONDS: std::ops::Range<u64> = 2..12;
/// How long the client may be kept from writing: for the longest fault, and until members have found each other after it.
const PATIENCE: Duration = Duration::from_secs(45);

/// When a fault is over: systemd waits 5 s before it starts a member again.
const OVER: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The process of a member ends.
    Kill,
    /// It stands still for a while, and its address answers.
    Pause,
    /// Two hosts don't hear each other for a while.
    Cut,
    /// karmaform itself ends.
    Ours,
}

const FAULTS: [Fault; 4] = [Fault::Kill, Fault::Pause, Fault::Cut, Fault::Ours];

#[test]
fn faults_while_members_change() {
    let Some(lab) = Lab::fresh("faults_while_members_change") else { return };
    let is_asked_for = std::env::var_os("KARMAFORM_KILLS").is_some();
    let (rounds, mut random) = if is_asked_for { kills(USUAL) } else { kills_from(USUAL, USUAL_SEED) };
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
        let fault = FAULTS[(round + random.usize(..FAULTS.len())) % FAULTS.len()];
        let (moment, lasts) = (Duration::from_millis(random.u64(500..9_000)), Duration::from_secs(random.u64(SECONDS)));
        let (one, other) = (random.usize(..lab.hosts.len()), random.usize(1..lab.hosts.len()));
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
                strike(&lab, fault, hosts, lasts);
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
fn strike(lab: &Lab, fault: Fault, [one, other]: [&(String, String); 2], lasts: Duration) {
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
        Fault::Ours => {}
    }
}
