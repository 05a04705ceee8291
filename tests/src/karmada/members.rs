//! Members of a real Karmada: one in push mode and one in pull mode, with a workload that gets there, through drift, rotation and leaving.
//!
//! The stand-in of Karmada's programs propagates nothing, so this takes the real ones.

use std::collections::BTreeSet;

use super::plane::{Kubectl, Plane};
use super::{Host, variable};
use crate::members::planes::Cluster;

/// A ConfigMap with a word, and the policy that brings it to the members.
pub(crate) fn workload(name: &str, word: &str, spread: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: ConfigMap
metadata: {{ name: {name}, namespace: default }}
data: {{ word: {word} }}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {{ name: {name}, namespace: default }}
spec:
  resourceSelectors: [{{ apiVersion: v1, kind: ConfigMap, name: {name} }}]
  placement: {{ clusterAffinity: {{ clusterNames: [push, pull] }}, spreadConstraints: [{spread}] }}
---
"#
    )
}

/// Brings it to one member only.
const TO_ONE: &str = "{ spreadByField: cluster, minGroups: 1, maxGroups: 1 }";

/// What a control plane must be told so that what runs in a tainted member goes to another one, at once.
const FAILOVER: &str = r#"component "controller-manager" {
  feature_gates = { Failover = true }
  extra_args = {
    enable-no-execute-taint-eviction     = "true"
    no-execute-taint-eviction-purge-mode = "Directly"
  }
}"#;
/// A member that is to be left by what runs in it.
const TAINT: &str = "taints = [{ key = \"maintenance\", effect = \"NoExecute\" }]";

/// The example and its members, each with more in its block. The host cluster is one, for it alone has a node for an agent.
fn members(plane: &Plane<'_>, push: &Cluster, [more, more_of_pull]: [&str; 2]) {
    let Host { namespace, .. } = plane.host;
    let text = format!(
        r#"
data "kubernetes_cluster" "push" {{
  kubeconfig_file = {:?}
}}
resource "karmada_member" "push" {{
  control_plane = karmada_control_plane.main
  cluster       = data.kubernetes_cluster.push
  verify        = true
  preflight {{
    image = "karmaform.test/busybox:1"
  }}
  {more}
}}
resource "karmada_member" "pull" {{
  control_plane      = karmada_control_plane.main
  cluster            = data.kubernetes_cluster.host
  allow_host_cluster = true
  mode               = "pull"
  verify             = true
  agent {{
    server   = karmada_control_plane.main.endpoint
    replicas = 1
  }}
  preflight {{
    image     = "karmaform.test/busybox:1"
    namespace = "{namespace}"
  }}
  {more_of_pull}
}}
"#,
        push.kubeconfig
    );
    plane.project.write("members.kf.hcl", &text);
}

#[test]
fn real_members_join_work_and_leave() {
    const TEST: &str = "real_members_join_work_and_leave";
    if variable("KARMAFORM_TEST_KARMADA_BIN").is_none() {
        crate::parts::tell(&format!("*** SKIPPED (no programs of Karmada itself in KARMAFORM_TEST_KARMADA_BIN): {TEST}"));
        return;
    }
    let Some(host) = Host::for_test(TEST, "kf-members") else { return };
    let before = host.inventory();
    let push = Cluster::up("push");
    let before_push: BTreeSet<_> = push.inventory().into_keys().collect();
    let plane = Plane::example(&host, "fleet");

    // A control plane and its members from one configuration, and from nothing.
    plane.with_block(FAILOVER);
    members(&plane, &push, ["", ""]);
    plane.converge();
    let kubectl = plane.kubectl("kubeconfig");
    for name in ["push", "pull"] {
        assert_eq!(kubectl.condition("cluster.cluster.karmada.io", name, "Ready"), "True", "{name}");
    }
    plane.project.write("workload.yaml", &(workload("shown", "first", "") + &workload("moving", "moving", TO_ONE)));
    // The server's own description of its kinds, which kubectl would check it by, is not there for a while after CRDs were made.
    kubectl.run(&["create", "--validate=false", "-f", &plane.project.path().join("workload.yaml").to_string_lossy()]);
    arrives(&host, &push, "first");

    drift_is_repaired(&plane, &push, &kubectl);

    // That the control plane would not reach it at a new address is in the plan.
    let nowhere = format!("{}:1", push.server().rsplit_once(':').expect("a port").0);
    members(&plane, &push, [&format!("api_endpoint = {nowhere:?}"), ""]);
    let text = plane.project.must(1, &["plan"]);
    assert!(text.contains("No way to the server from there") && text.contains(&nowhere), "{text}");

    // New tokens are an update, and what is changed afterwards arrives with them.
    let rotated = "rotation = \"2\"";
    members(&plane, &push, [rotated, ""]);
    let text = plane.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(!text.contains("moves:"), "{text}");
    plane.converge();
    says(&kubectl, "third");
    arrives(&host, &push, "third");

    // What is in one of them goes to the other when its own is tainted, and back, after all that.
    for _ in 0..2 {
        members(&plane, &push, [rotated, ""]);
        plane.converge();
        let placed = || kubectl.run(&["get", "resourcebinding", "moving-configmap", "-o=jsonpath={.spec.clusters[*].name}"]);
        let from = placed();
        assert!(["push", "pull"].contains(&from.as_str()), "{from:?}");
        let push_tainted = format!("{rotated}\n{TAINT}");
        let (tainted, other) = if from == "push" { ([push_tainted.as_str(), ""], "pull") } else { ([rotated, TAINT], "push") };
        members(&plane, &push, tainted);
        plane.converge();
        host.eventually(&format!("from {from:?} to {other:?}"), || placed() == other);
        let expected = if other == "push" { ["moving", ""] } else { ["", "moving"] };
        host.eventually("what moved is there and nowhere else", || {
            [push.run(&word_of("moving")), host.run(&word_of("moving"))] == expected
        });
    }

    // Both leave; then nothing of what was propagated is left.
    plane.project.remove("members.kf.hcl");
    plane.converge();
    push.run(&["get", "namespace", "default"]);
    host.eventually("all is gone from the member", || push.inventory().into_keys().collect::<BTreeSet<_>>() == before_push);
    plane.project.must(0, &["destroy", "-auto-approve"]);
    host.is_as_before(&before);
}

fn says(kubectl: &Kubectl<'_>, word: &str) {
    kubectl.run(&["patch", "configmap", "shown", "--type=merge", "-p", &format!("{{\"data\":{{\"word\":\"{word}\"}}}}")]);
}

/// Prints the word of a workload, if it is there.
fn word_of(name: &str) -> [&str; 6] {
    ["-n=default", "get", "configmap", name, "--ignore-not-found", "-o=jsonpath={.data.word}"]
}

/// The workload is in both members as it should be.
#[track_caller]
pub(crate) fn arrives(host: &Host, push: &Cluster, word: &str) {
    host.eventually(&format!("\"{word}\" is in the member in push mode"), || push.run(&word_of("shown")) == word);
    host.eventually(&format!("\"{word}\" is in the member in pull mode"), || host.run(&word_of("shown")) == word);
}

fn drift_is_repaired(plane: &Plane<'_>, push: &Cluster, kubectl: &Kubectl<'_>) {
    let agent = plane.host.run(&["-n=karmada-cluster", "get", "deployment", "-o=jsonpath={.items[0].metadata.name}"]);
    let role = push.run(&["get", "clusterrolebinding", "-o=name"]);
    let role = role.lines().find(|l| l.contains("/karmada-push-") && !l.contains("impersonator")).expect("the rights of the control plane");
    plane.host.run(&["-n=karmada-cluster", "scale", "deployment", &agent, "--replicas=0"]);
    push.run(&["delete", role]);
    kubectl.run(&["-n=karmada-cluster", "patch", "secret", "push", "--type=merge", "-p={\"stringData\":{\"token\":\"x\"}}"]);
    let text = plane.project.must(2, &["plan", "-detailed-exitcode"]);
    let changed: BTreeSet<_> = text.split_whitespace().filter(|w| w.starts_with("karmada_member.") && w.contains('/')).collect();
    let parts = ["pull/agent", "push/role_binding[\"controller\"]", "push/secret[\"controller\"]"];
    let parts: BTreeSet<_> = parts.iter().map(|p| format!("karmada_member.{p}")).collect();
    assert_eq!(changed, parts.iter().map(String::as_str).collect(), "{text}");
    plane.converge();
    says(kubectl, "second");
    arrives(plane.host, push, "second");

    // What an agent made can be deleted with it; the member stays one.
    plane.host.run(&["-n=karmada-cluster", "delete", "deployment", &agent]);
    plane.converge();
    assert_eq!(kubectl.condition("cluster.cluster.karmada.io", "pull", "Ready"), "True");
}
