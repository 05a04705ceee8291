//! Other CAs for an etcd in pods under a control plane: its API answers after each of the three changes, with what was in it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::Host;
use super::plane::{Kubectl, Plane};

/// A Secret that changes is seen in pods after a minute or so.
const SEEN_IN_PODS: Duration = Duration::from_secs(150);

#[test]
fn other_authorities_in_pods() {
    let Some(host) = Host::for_test("other_authorities_in_pods", "kf-rotation") else { return };
    let before = host.inventory();
    let plane = Plane::example(&host, "demo");
    plane.values("demo", "etcd_members = 3\nstorage = \"hostPath\"\netcd_resources = {}");
    let main = std::fs::read_to_string(plane.project.path().join("main.kf.hcl")).expect("the example");
    let has = |trusted: &str, signs_with: u8| {
        let block =
            format!("  version = var.etcd_version\n  authorities {{\n    trusted = [{trusted}]\n    signs_with = {signs_with}\n  }}\n");
        plane.project.write("main.kf.hcl", &main.replacen("  version = var.etcd_version\n", &block, 1));
    };
    plane.converge();
    let kubectl = plane.kubectl("kubeconfig");
    kubectl.run(&["create", "namespace", "from-before"]);
    let pods = || -> BTreeSet<String> {
        let list = host.run(&[
            "-n",
            &host.namespace,
            "get",
            "pods",
            "-l",
            "app.kubernetes.io/name=etcd",
            "-o",
            "jsonpath={.items[*].metadata.uid}",
        ]);
        list.split_whitespace().map(str::to_owned).collect()
    };
    for (trusted, signs_with, restarts) in [("1, 2", 1, true), ("1, 2", 2, false), ("2", 2, true)] {
        let running = pods();
        has(trusted, signs_with);
        planned_when_seen(&plane);
        plane.converge();
        let now = pods();
        assert_eq!(now.len(), 3, "[{trusted}] with {signs_with}");
        assert!(
            if restarts { now.is_disjoint(&running) } else { now == running },
            "[{trusted}] with {signs_with}: {running:?}, then {now:?}"
        );
        answers(&kubectl);
    }
    plane.project.must(0, &["destroy", "-auto-approve"]);
    host.is_as_before(&before);
}

/// As long as pods show certificates of before, no CA goes.
fn planned_when_seen(plane: &Plane<'_>) {
    let until = Instant::now() + SEEN_IN_PODS;
    loop {
        let planned = plane.project.run(&["plan"]);
        if planned.code == Some(0) {
            return;
        }
        assert!(planned.text.contains("Not all members are seen without that CA") && Instant::now() < until, "{}", planned.text);
        std::thread::sleep(Duration::from_secs(3));
    }
}

/// What was written before the change is there, and more can be.
fn answers(kubectl: &Kubectl<'_>) {
    let until = Instant::now() + SEEN_IN_PODS;
    let works = || {
        kubectl.tries(&["get", "namespace", "from-before"])
            && kubectl.tries(&["annotate", "--overwrite", "namespace", "from-before", "seen=yes"])
    };
    while !works() {
        assert!(Instant::now() < until, "the API does not answer any more");
        std::thread::sleep(Duration::from_secs(1));
    }
}
