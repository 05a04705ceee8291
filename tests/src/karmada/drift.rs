//! What `drift` finds of a control plane in a real cluster: all that was done to it, by its right name, and nothing else; and that it only
//! reads, as the API servers themselves say.

use std::collections::BTreeSet;

use serde_json::Value;

use super::plane::{Kubectl, Plane};
use super::requests::{AUDIT, only_reads};
use super::{Host, KARMADA, variable};
use crate::parts::tell;

/// What was done: the kind and the address that it must be found as.
type Done = (&'static str, &'static str);

#[test]
fn what_was_done_outside_is_found_and_nothing_is_touched() {
    let name = "what_was_done_outside_is_found_and_nothing_is_touched";
    let Some(host) = Host::for_test(name, "kf-drift") else { return };
    let plane = Plane::example(&host, "demo");
    // What the stand-in keeps one process of it keeps.
    plane.with_block(&format!("{AUDIT}\ncomponent \"aggregated-apiserver\" {{\n  replicas = 1\n}}"));
    plane.converge();
    is_found(&plane, &[]);

    let kubectl = plane.kubectl("kubeconfig");
    a_sick_member_is_decay(&plane, &kubectl);
    let done = damage(&plane, &kubectl);
    match variable("KARMAFORM_TEST_KUBE_AUDIT") {
        Some(log) => drop(only_reads(&plane, &log, || is_found(&plane, &done))),
        None => tell(&format!("*** SKIPPED (no audit log of the cluster in KARMAFORM_TEST_KUBE_AUDIT): the requests of {name}")),
    }
    // Nothing was repaired by looking.
    is_found(&plane, &done);
    plane.converge();
    is_found(&plane, &[]);
    plane.project.must(0, &["destroy", "-auto-approve"]);
}

/// Nothing of ours is otherwise than it was made, and it needs care all the same.
fn a_sick_member_is_decay(plane: &Plane<'_>, kubectl: &Kubectl<'_>) {
    const MEMBER: &str = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: { name: sick }\nspec: { syncMode: Push }\n";
    plane.project.write("member.yaml", MEMBER);
    let file = plane.project.path().join("member.yaml").to_string_lossy().into_owned();
    kubectl.run(&["create", "--validate=false", "-f", &file]);
    let text = plane.project.must(3, &["drift"]);
    assert!(text.contains("sick is not ready (Unknown)") && text.contains("No drift, but care is needed: 1 decay"), "{text}");
    kubectl.run(&["delete", "clusters.cluster.karmada.io", "sick"]);
}

/// The report says exactly this.
#[track_caller]
fn is_found(plane: &Plane<'_>, done: &[Done]) {
    let text = plane.project.must(if done.is_empty() { 0 } else { 2 }, &["drift", "-json"]);
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(!text.contains("PRIVATE KEY"), "{text}");
    let found = report["findings"].as_array().expect("findings").iter();
    let found: BTreeSet<(String, String)> = found.map(|f| (word(f, "kind"), word(f, "address"))).collect();
    let expected = done.iter().map(|(kind, address)| ((*kind).to_owned(), (*address).to_owned()));
    assert_eq!(found, expected.collect(), "{text}");
}

fn word(finding: &Value, name: &str) -> String {
    finding[name].as_str().unwrap_or_default().to_owned()
}

/// On the host cluster and inside the Karmada API, all at once.
fn damage(plane: &Plane<'_>, kubectl: &Kubectl<'_>) -> Vec<Done> {
    let namespace = ["-n", &plane.host.namespace];
    let host = |arguments: &[&str]| drop(plane.host.run(&[&namespace[..], arguments].concat()));
    let image = format!("*=docker.io/karmada/karmada-webhook:v{KARMADA}");
    host(&["delete", "deployment", "demo-scheduler"]);
    host(&["scale", "deployment", "demo-controller-manager", "--replicas=0"]);
    host(&["set", "image", "deployment/demo-aggregated-apiserver", &image]);
    host(&["label", "--overwrite", "service/demo-webhook", "app.kubernetes.io/name=other"]);
    host(&["label", "--overwrite", "statefulset/demo-etcd", "app.kubernetes.io/managed-by=somebody"]);
    host(&["delete", "poddisruptionbudget", "demo-apiserver"]);
    host(&["delete", "secret", "demo-webhook"]);
    host(&["patch", "secret", "demo-scheduler", "--type=merge", "-p={\"stringData\":{\"ca.crt\":\"another\"}}"]);
    // What is not ours is nobody's business.
    host(&["annotate", "deployment/demo-webhook", "somebody.example/note=theirs"]);
    host(&["create", "configmap", "theirs"]);
    kubectl.run(&["delete", "validatingwebhookconfiguration", "validating-config"]);
    kubectl.run(&["label", "--overwrite", "mutatingwebhookconfiguration/mutating-config", "app.kubernetes.io/managed-by=somebody"]);
    kubectl.run(&["delete", "crd", "workloadrebalancers.apps.karmada.io"]);
    kubectl.run(&["label", "--overwrite", "crd/works.work.karmada.io", "somebody.example/note=theirs"]);
    kubectl.run(&["patch", "crd", "works.work.karmada.io", "--type=json", "-p=[{\"op\":\"remove\",\"path\":\"/spec/names/shortNames\"}]"]);
    vec![
        ("changed", "etcd_cluster.main/stateful_set"),
        ("changed", "karmada_control_plane.main/api[\"mutatingwebhookconfiguration mutating-config\"]"),
        ("changed", "karmada_control_plane.main/component[\"aggregated-apiserver\"]"),
        ("changed", "karmada_control_plane.main/component[\"controller-manager\"]"),
        ("changed", "karmada_control_plane.main/crds"),
        ("changed", "karmada_control_plane.main/secret[\"scheduler\"]"),
        ("changed", "karmada_control_plane.main/service[\"webhook\"]"),
        ("missing", "karmada_control_plane.main/api[\"validatingwebhookconfiguration validating-config\"]"),
        ("missing", "karmada_control_plane.main/component[\"scheduler\"]"),
        ("missing", "karmada_control_plane.main/disruption_budget[\"apiserver\"]"),
        ("missing", "karmada_control_plane.main/secret[\"webhook\"]"),
    ]
}
