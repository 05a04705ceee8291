//! Faults while members in pods come and go and settings roll: a member killed or paused, its pod deleted, the network cut between two pods, karmaform
//! killed. The same as on hosts (`lab/faults.rs`), but for the full disk: a node that is one machine with others can't be filled for one of them.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Host;
use super::etcd_members::{Cluster, client};
use crate::lab::rounds::{Limits, Rounds};

/// What is done each time, and to whom: by the number of the pod, of which the first is always there.
const USUAL: &[(Fault, usize)] = &[(Fault::Kill, 0), (Fault::Pause, 1)];
const FAULTS: &[Fault] = &[Fault::Kill, Fault::Pause, Fault::Delete, Fault::Cut, Fault::Ours];
/// How many members there are to begin with, and at most.
const MEMBERS: usize = 3;
/// A kubelet waits 10 s before it starts a container again that has ended twice, and then twice as long each time.
const LIMITS: Limits = Limits { gap: Duration::from_secs(60), over: Duration::from_secs(120) };

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The process of a member ends.
    Kill,
    /// It stands still for a while.
    Pause,
    /// Its pod is deleted, as by an eviction.
    Delete,
    /// Two pods don't hear each other for a while.
    Cut,
    /// karmaform itself ends.
    Ours,
}

#[test]
fn faults_while_members_in_pods_change() {
    let Some(host) = Host::for_test("faults_while_members_in_pods_change", "kf-member-faults") else { return };
    let before = host.inventory();
    let mut rounds = Rounds::new(FAULTS, USUAL, MEMBERS);
    // Whoever joins gets a new one, and a join that was cut off may have had one.
    let cluster = Cluster::with_volumes(&host, MEMBERS + 2 * MEMBERS * rounds.count);
    cluster.of_with(MEMBERS, &host.etcd_version, ("", ""));
    cluster.converge();
    let client = client(&cluster);
    for number in 0..rounds.count {
        let round = rounds.next(number);
        let settings = format!("  settings = {{ snapshot-count = {} }}\n", 5_000 + number);
        cluster.of_with(round.size, &host.etcd_version, ("", &settings));
        let happens = || strike(&host, round.fault, round.at, round.lasts);
        round.run(number, &cluster.project, &client, &LIMITS, (!matches!(round.fault, Fault::Ours)).then_some(happens));
    }
    cluster.project.must(0, &["destroy", "-auto-approve"]);
    cluster.gone();
    host.is_as_before(&before);
}

/// Does it, and ends it. Where nobody runs nothing happens.
fn strike(host: &Host, fault: Fault, at: [usize; 2], lasts: Duration) {
    let one = process(host, at[0]);
    match fault {
        Fault::Kill => signal("KILL", one),
        Fault::Pause => {
            signal("STOP", one);
            std::thread::sleep(lasts);
            signal("CONT", one);
        }
        Fault::Delete => {
            let pod = format!("etcd-{}", at[0]);
            host.run(&["-n", &host.namespace, "delete", "pod", &pod, "--wait=false", "--ignore-not-found"]);
        }
        Fault::Cut => {
            let sides = [(at[0], at[1]), (at[1], at[0])].map(|(from, to)| Some((network(process(host, from)?)?, address(host, to)?)));
            let route = |verb: &str| sides.iter().flatten().for_each(|(network, address)| run_in(network, verb, address));
            route("add");
            std::thread::sleep(lasts);
            route("del");
        }
        Fault::Ours => {}
    }
}

/// The process of a member, as this machine numbers it: who is in a pod is seen from outside.
fn process(host: &Host, member: usize) -> Option<u32> {
    let (name, own) = (format!("--name=etcd-{member}"), format!(".etcd.{}.svc:2380", host.namespace));
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut processes = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    processes.find(|id| {
        let line = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let mut words = line.split('\0');
        words.clone().any(|w| w == name) && words.any(|w| w.starts_with("--initial-advertise-peer-urls=") && w.ends_with(&own))
    })
}

fn signal(signal: &str, process: Option<u32>) {
    if let Some(process) = process {
        // It may have ended by now.
        let _ = Command::new("kill").args(["-s", signal, &process.to_string()]).stderr(Stdio::null()).status();
    }
}

/// A process's network, which stays the pod's own when that process is followed by another one.
fn network(process: u32) -> Option<File> {
    File::open(format!("/proc/{process}/ns/net")).ok()
}

fn address(host: &Host, member: usize) -> Option<String> {
    let pod = format!("etcd-{member}");
    let told = host.run(&["-n", &host.namespace, "get", "pod", &pod, "--ignore-not-found", "-o=jsonpath={.status.podIP}"]);
    Some(told.trim().to_owned()).filter(|address| !address.is_empty())
}

/// A route that leads nowhere is added in this network, or taken out.
fn run_in(network: &File, verb: &str, address: &str) {
    let place = format!("--net=/proc/{}/fd/{}", std::process::id(), network.as_raw_fd());
    let status = Command::new("nsenter").args([&place, "ip", "route", verb, "blackhole", &format!("{address}/32")]).status();
    assert!(status.is_ok_and(|s| s.success()), "ip route {verb} blackhole {address}");
}
