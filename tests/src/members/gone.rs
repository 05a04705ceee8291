//! A member that does not answer: its API server is stopped, so that connections to it are taken and nothing ever comes back.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fleet::Fleet;
use super::life::propagate;
use super::planes::{Cluster, Planes};
use super::{eventually, is_in_every_namespace};
use crate::parts::tell;

/// Seconds until it has left.
const LEAVE_TIMEOUT: u64 = 3;
/// No command may need longer: the way to a server that is silent, the limit, and what is cut off after it.
const LONGEST: Duration = Duration::from_secs(75);

/// An API server that does not go on until this is dropped.
struct Stopped(String);

impl Stopped {
    fn new(cluster: &Cluster) -> Self {
        let file = format!("/run/karmaform-kube/{}/pids/kube-apiserver", cluster.name);
        let words = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
        let stopped = Self(words.split_whitespace().next().expect("a process").to_owned());
        stopped.signal("-STOP");
        stopped
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.0]).status();
        assert!(status.is_ok_and(|s| s.success()) || std::thread::panicking(), "kill {signal} {}", self.0);
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}

/// Runs it all.
pub(super) fn a_dead_member_leaves_by_force_alone(planes: &Planes) {
    let Planes { p2, m2, .. } = planes;
    p2.has_namespace();
    let (before, before_p2) = (m2.inventory(), p2.inventory());
    let fleet = Fleet::new(p2);
    let member = |more: Value| fleet.members(&[("m2", &m2.kubeconfig, more)]);
    member(json!({ "leave_timeout": LEAVE_TIMEOUT }));
    fleet.converge();
    propagate(p2, "m2", m2);
    let joined = p2.inventory();

    let dead = Stopped::new(m2);
    let plan = timed("plan", &fleet, &["plan", "-detailed-exitcode"], 0);
    assert!(plan.contains("No changes") && plan.contains("Warning: Cluster is unreachable"), "{plan}");
    assert_eq!(plan.matches("Warning: ").count(), 1, "{plan}");
    let told = timed("drift", &fleet, &["drift"], 1);
    assert!(told.contains("Unreachable: ") && !told.contains("Missing: ") && !told.contains("Extra: "), "{told}");
    eventually("the plane knows that it is dead", || p2.cluster("m2")["status"]["conditions"][0]["status"] == "False");

    // Half gone is worse than there: nothing is done at all.
    fleet.members(&[]);
    let refused = timed("refused", &fleet, &["apply", "-auto-approve"], 1);
    assert!(refused.contains("the member answers") && refused.contains("force = true"), "{refused}");
    assert_eq!(p2.inventory(), joined);
    assert_eq!(p2.cluster("m2")["metadata"]["deletionTimestamp"], Value::Null);

    member(json!({ "leave_timeout": LEAVE_TIMEOUT, "force": true }));
    timed("force", &fleet, &["apply", "-auto-approve"], 0);
    fleet.members(&[]);
    let planned = fleet.plan(&[]);
    let impact = planned.impact("m2");
    timed("leaves", &fleet, &["apply", "saved"], 0);
    p2.is_as_before(&before_p2);
    fleet.project.no_changes();

    drop(dead);
    eventually("the member answers again", || m2.api.get("/readyz").is_ok_and(|answer| answer.is_some()));
    let commands: Vec<&str> = impact.iter().filter_map(|line| line.trim().strip_prefix("kubectl ")).collect();
    let named: BTreeSet<String> = commands.iter().filter_map(|c| path_of(c)).collect();
    let left = m2.more_than(&before).into_iter().filter(|path| !comes_by_itself(path)).collect::<BTreeSet<_>>();
    assert_eq!(named, left, "{impact:#?}");
    for command in commands {
        let words = command.split(" (").next().unwrap_or_default().split_whitespace();
        m2.run(&words.chain(["--ignore-not-found"]).collect::<Vec<_>>());
    }
    m2.is_as_before(&before);
}

/// Runs a command, which ends with this code and in time.
#[track_caller]
fn timed(what: &str, fleet: &Fleet, arguments: &[&str], code: i32) -> String {
    let started = Instant::now();
    let text = fleet.project.must(code, arguments);
    tell(&format!("members, gone: {what} {:.1?}", started.elapsed()));
    assert!(started.elapsed() < LONGEST, "{:?}\n{text}", started.elapsed());
    text
}

/// What the server puts into a namespace, or gives an account.
fn comes_by_itself(path: &str) -> bool {
    is_in_every_namespace(path) || path.starts_with("secrets/karmada-cluster/") && path.contains("-token-")
}

/// What a command deletes, as the inventory has it; nothing of what Karmada's own controllers bring to a member, which are not here.
fn path_of(command: &str) -> Option<String> {
    let words: Vec<&str> = command.split(" (").next().unwrap_or_default().split_whitespace().collect();
    let (namespace, kind, name) = match words[..] {
        ["delete", "-n", namespace, kind, name] => (namespace, kind, name),
        ["delete", kind, name] => ("", kind, name),
        _ => panic!("{command}"),
    };
    let kind = kind.split('.').next().unwrap_or_default();
    (name != "karmada-impersonator").then(|| format!("{kind}s/{namespace}/{name}"))
}
