//! What a plan without changes costs, counted by the API servers themselves: in the audit log of the host cluster's, which the lab keeps, and
//! in that of the Karmada API's, which goes to its pods' logs.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::plane::Plane;
use super::{Host, variable};
use crate::parts::tell;

/// To the host cluster's API server, ways to pods among them: the bound of a whole plane.
const TO_THE_HOST: usize = 20;
/// To the Karmada API: one per kind of what is in it.
const TO_KARMADA: usize = 12;
/// To both, with one member of etcd: there are 19 kinds of what is ours on the two, and no request lists two kinds; the rest are the host
/// cluster's facts, the pods that were made of these, and the ways to the pods.
const TO_BOTH: usize = 29;

/// Has the Karmada API say who asks it what.
pub(super) const AUDIT: &str = r#"audit {
  policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{ level: None, users: [system:anonymous] }, { level: Metadata }]\n"
}"#;

#[test]
fn a_plan_without_changes_asks_little() {
    let name = "a_plan_without_changes_asks_little";
    let Some(host) = Host::for_test(name, "kf-requests") else { return };
    let Some(log) = variable("KARMAFORM_TEST_KUBE_AUDIT") else {
        tell(&format!("*** SKIPPED (no audit log of the cluster in KARMAFORM_TEST_KUBE_AUDIT): {name}"));
        return;
    };
    let plane = Plane::example(&host, "demo");
    plane.with_block(AUDIT);
    plane.converge();
    let plain = counted(&plane, &log);
    let asked = |counted: &[BTreeMap<String, usize>; 2]| counted.clone().map(|c| c.values().sum::<usize>());
    tell(&format!("a plan without changes: {} requests to the host, {} to Karmada", asked(&plain)[0], asked(&plain)[1]));
    assert!(asked(&plain).iter().sum::<usize>() <= TO_BOTH, "{plain:#?}");
    for (counted, most) in plain.iter().zip([TO_THE_HOST, TO_KARMADA]) {
        // Nothing at all would mean that this test looks in the wrong place.
        assert!((5..=most).contains(&counted.values().sum()), "{counted:#?}");
    }

    plane.values("demo", "addons = [\"search\", \"descheduler\", \"metrics-adapter\"]");
    plane.converge();
    let more = counted(&plane, &log);
    assert_eq!(looks(&more), looks(&plain), "the cost follows kinds and not resources: {more:#?}");
    assert!(asked(&more)[0] <= TO_THE_HOST && asked(&more)[1] <= TO_KARMADA, "{more:#?}");
    plane.project.must(0, &["destroy", "-auto-approve"]);

    // Volumes and claims are two more kinds, and each member has a way to it. That nothing changed is told without trying anything.
    plane.values("demo", "etcd_members = 3\nstorage = \"hostPath\"\netcd_resources = {}");
    plane.converge();
    let large = counted(&plane, &log);
    tell(&format!("with three members on disks of their own: {} requests to the host", asked(&large)[0]));
    assert_eq!(looks(&large), [looks(&plain)[0] + 2, looks(&plain)[1]], "{large:#?}");
    // To each member, to one of them again for the prefix, to the Karmada API; and one may have to be tried again.
    assert!(asked(&large)[0] - looks(&large)[0] <= 3 + 1 + 1 + 1, "{large:#?}");
    plane.project.must(0, &["destroy", "-auto-approve"]);
}

/// How many there are but for ways to pods, of which one may have to be tried again, and for whether somebody is there, which is asked when one broke.
fn looks(counted: &[BTreeMap<String, usize>; 2]) -> [usize; 2] {
    let is_look = |request: &str| !request.contains("/portforward") && request != "get /readyz?";
    counted.each_ref().map(|c| c.iter().filter(|(request, _)| is_look(request)).map(|(_, n)| n).sum())
}

/// The requests of one plan, to the host and to Karmada, by verb and path.
fn counted(plane: &Plane<'_>, log: &str) -> [BTreeMap<String, usize>; 2] {
    only_reads(plane, log, || plane.project.no_changes())
}

/// The same of any command, which sends nothing but reads.
#[track_caller]
pub(super) fn only_reads(plane: &Plane<'_>, log: &str, command: impl FnOnce()) -> [BTreeMap<String, usize>; 2] {
    // What was asked before may still be on its way into the logs.
    settled(|| events(&fs::read_to_string(log).expect("the audit log"), "kubernetes-admin"));
    settled(|| events(&pods(plane).into_values().collect::<String>(), "system:karmada:admin"));
    let seen = fs::read_to_string(log).expect("the audit log").len();
    let before = pods(plane);
    command();
    let since = |text: String| text.get(seen..).unwrap_or_default().to_owned();
    let host = settled(|| events(&since(fs::read_to_string(log).expect("the audit log")), "kubernetes-admin"));
    let karmada = settled(|| {
        let new =
            pods(plane).into_iter().map(|(pod, text)| text.get(before.get(&pod).map_or(0, String::len)..).unwrap_or_default().to_owned());
        events(&new.collect::<String>(), "system:karmada:admin")
    });
    let tried = |request: &&String| !["get ", "list "].iter().any(|verb| request.starts_with(verb));
    let tried: Vec<_> = host.keys().chain(karmada.keys()).filter(tried).collect();
    assert!(tried.is_empty(), "this is to read only: {tried:#?}");
    [host, karmada]
}

/// What the pods of the Karmada API have said, by pod.
fn pods(plane: &Plane<'_>) -> BTreeMap<String, String> {
    let namespace = &plane.host.namespace;
    let names = plane.host.run(&["-n", namespace, "get", "pods", "-o", "name", "-l", "app.kubernetes.io/name=apiserver"]);
    names.split_whitespace().map(|pod| (pod.to_owned(), plane.host.run(&["-n", namespace, "logs", pod]))).collect()
}

/// A request is logged when it ends, and a way to a pod ends a moment after the plan.
fn settled(look: impl Fn() -> BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let started = Instant::now();
    let mut seen = look();
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = look();
        if now == seen || started.elapsed() > Duration::from_secs(20) {
            return now;
        }
        seen = now;
    }
}

/// Requests of this user that have ended, but for kubectl's.
fn events(text: &str, user: &str) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for event in text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()) {
        let is_kubectl = event["userAgent"].as_str().is_some_and(|a| a.starts_with("kubectl"));
        if event["kind"] == "Event" && event["stage"] == "ResponseComplete" && event["user"]["username"] == user && !is_kubectl {
            let words = ["verb", "requestURI"].map(|n| event[n].as_str().unwrap_or_default());
            *counted.entry(words.join(" ")).or_default() += 1;
        }
    }
    counted
}
