//! What `drift` finds of a control plane in a real cluster: all that was done to it, by its right name, and nothing else; and that it only
//! reads, as the API servers themselves say.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::anew::what_is_made_anew_is_looked_at;
use super::cron::pipeline;
use super::plane::{Kubectl, Plane};
use super::requests::{AUDIT, only_reads};
use super::{Host, KARMADA, variable};
use crate::parts::tell;

/// What was done: the kind and the address that it must be found as.
pub(super) type Done = (&'static str, &'static str);

/// What is left behind is told at the control plane whose marks it has.
const EXTRA: Done = ("extra", "karmada_control_plane.main");
/// Made out by hand, as the account is used from outside; a pod has one anyway.
const TOKEN: &str = "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata:\n  name: karmaform-drift\n  \
                     namespace: karmaform\n  annotations: { kubernetes.io/service-account.name: karmaform-drift }\n";
const SIDECAR: &str = r#"{"spec":{"template":{"spec":{"containers":[{"name":"theirs","image":"karmaform.test/busybox:1","imagePullPolicy":"Never",
    "command":["sleep","600"]}]}}}}"#;
const WEBHOOK: &str = r#"{"webhooks":[{"name":"theirs.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Ignore",
    "clientConfig":{"url":"https://127.0.0.1:1/theirs"},"rules":[{"apiGroups":["theirs.example.com"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["x"]}]}]}"#;
const SUBJECT: &str =
    r#"[{"op":"add","path":"/subjects/-","value":{"kind":"User","name":"theirs","apiGroup":"rbac.authorization.k8s.io"}}]"#;
/// The lab's Kubernetes is as old as it is.
pub(super) const AGE: &str = "-ignore=karmada_control_plane.main::kube_version";

#[test]
fn what_was_done_outside_is_found_and_nothing_is_touched() {
    let name = "what_was_done_outside_is_found_and_nothing_is_touched";
    let Some(host) = Host::for_test(name, "kf-drift") else { return };
    let plane = Plane::example(&host, "demo");
    // What the stand-in keeps one process of it keeps.
    plane.with_block(&format!("{AUDIT}\ncomponent \"aggregated-apiserver\" {{\n  replicas = 1\n}}"));
    plane.converge();
    an_old_version_is_decay(&plane);
    is_found(&plane, &[]);

    let kubectl = plane.kubectl("kubeconfig");
    a_sick_member_is_decay(&plane, &kubectl);
    let mut done = damage(&plane, &kubectl);
    done.extend(left_behind(&plane, &kubectl));
    match variable("KARMAFORM_TEST_KUBE_AUDIT") {
        Some(log) => drop(only_reads(&plane, &log, || is_found(&plane, &done))),
        None => tell(&format!("*** SKIPPED (no audit log of the cluster in KARMAFORM_TEST_KUBE_AUDIT): the requests of {name}")),
    }
    // Nothing was repaired by looking; and it takes no more rights than the ready pipeline gives.
    who_may_only_read_finds_the_same(&plane, &done);
    plane.converge();
    is_found(&plane, &[EXTRA]);
    in_host(&plane, &["delete", "secret", "left"]);
    kubectl.run(&["-n", "karmada-system", "delete", "configmap", "left"]);
    kubectl.run(&["delete", "clusterrole", "left"]);
    is_found(&plane, &[]);
    what_is_made_anew_is_looked_at(&plane, &kubectl);
    plane.project.must(0, &["destroy", "-auto-approve"]);
}

/// What runs in the lab may be so old that nobody mends it any more, and everything else is told beside that.
fn an_old_version_is_decay(plane: &Plane<'_>) {
    let ended = plane.project.run(&["drift"]);
    let version = &plane.host.kube_version;
    let is_told = ended.text.contains("gets no patches any more") && ended.text.contains(&format!("kube_version: is {version:?}"));
    assert_eq!(ended.code, Some(if is_told { 3 } else { 0 }), "{}", ended.text);
    // 1.20 was mended until February 2022.
    assert!(is_told || !version.starts_with("1.20."), "{}", ended.text);
}

/// As the ServiceAccount of docs/pipelines, with the rights that it has there.
fn who_may_only_read_finds_the_same(plane: &Plane<'_>, done: &[Done]) {
    let documents = pipeline(&plane.host.namespace, &["PersistentVolumeClaim", "CronJob"]);
    let apply = |documents: &[String]| {
        plane.project.write("account.yaml", &documents.join("\n---\n"));
        plane.host.run(&["apply", "-f", &plane.project.path().join("account.yaml").to_string_lossy()]);
    };
    apply(&[documents.join("\n---\n"), TOKEN.to_owned()]);
    plane.project.write("account.kubeconfig", &kubeconfig(plane));
    let way = format!("kubeconfig={}", plane.project.path().join("account.kubeconfig").to_string_lossy());
    found(plane, &["-var", &way], done);
    // Without one of them it is said which, and nobody takes what can't be seen for gone.
    apply(&documents.iter().map(|d| d.replace("resources: [poddisruptionbudgets]", "resources: [nothings]")).collect::<Vec<_>>());
    let text = plane.project.run(&["drift", AGE, "-var", &way]).text;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.contains("poddisruptionbudgets") && line.contains("Unreachable: ") && line.contains("4 missing"), "{text}");
    plane.host.run(&["delete", "namespace", "karmaform"]);
    plane.host.run(&["delete", "clusterrole,clusterrolebinding", "karmaform-drift"]);
}

/// The cluster of the administrator's, with the account's token once there is one.
fn kubeconfig(plane: &Plane<'_>) -> String {
    let config: Value = serde_json::from_str(&plane.host.run(&["config", "view", "--raw", "-o", "json"])).expect("JSON");
    let until = Instant::now() + Duration::from_secs(30);
    let token = loop {
        let token = plane.host.run(&["-n", "karmaform", "get", "secret", "karmaform-drift", "-o", "jsonpath={.data.token}"]);
        if !token.is_empty() {
            break String::from_utf8(BASE64_STANDARD.decode(token).expect("base64")).expect("text");
        }
        assert!(Instant::now() < until, "the account has no token");
        std::thread::sleep(Duration::from_millis(200));
    };
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "drift",
        "clusters": [{ "name": "drift", "cluster": config["clusters"][0]["cluster"] }],
        "users": [{ "name": "drift", "user": { "token": token } }],
        "contexts": [{ "name": "drift", "context": { "cluster": "drift", "user": "drift" } }],
    })
    .to_string()
}

/// Nothing of ours is otherwise than it was made, and it needs care all the same.
fn a_sick_member_is_decay(plane: &Plane<'_>, kubectl: &Kubectl<'_>) {
    const MEMBER: &str = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: { name: sick }\nspec: { syncMode: Push }\n";
    plane.project.write("member.yaml", MEMBER);
    let file = plane.project.path().join("member.yaml").to_string_lossy().into_owned();
    kubectl.run(&["create", "--validate=false", "-f", &file]);
    let text = plane.project.must(3, &["drift", AGE]);
    assert!(text.contains("sick is not ready (Unknown)") && text.contains("No drift, but care is needed: 1 decay"), "{text}");
    kubectl.run(&["delete", "clusters.cluster.karmada.io", "sick"]);
}

/// The report says exactly this.
#[track_caller]
pub(super) fn is_found(plane: &Plane<'_>, done: &[Done]) {
    found(plane, &[], done);
}

#[track_caller]
fn found(plane: &Plane<'_>, flags: &[&str], done: &[Done]) {
    let arguments = [&["drift", "-json", AGE], flags].concat();
    let text = plane.project.must(if done.is_empty() { 0 } else { 2 }, &arguments);
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(!text.contains("PRIVATE KEY"), "{text}");
    let found = report["findings"].as_array().expect("findings").iter().filter(|f| f["ignored_by"].is_null());
    let found: BTreeSet<(String, String)> = found.map(|f| (word(f, "kind"), word(f, "address"))).collect();
    let expected = done.iter().map(|(kind, address)| ((*kind).to_owned(), (*address).to_owned()));
    assert_eq!(found, expected.collect(), "{text}");
}

fn word(finding: &Value, name: &str) -> String {
    finding[name].as_str().unwrap_or_default().to_owned()
}

pub(super) fn in_host(plane: &Plane<'_>, arguments: &[&str]) {
    plane.host.run(&[&["-n", &plane.host.namespace], arguments].concat());
}

/// What has the marks of the control plane, or of somebody else.
fn left_behind(plane: &Plane<'_>, kubectl: &Kubectl<'_>) -> Vec<Done> {
    const MANAGED: &str = "app.kubernetes.io/managed-by=karmaform";
    in_host(plane, &["create", "secret", "generic", "left"]);
    in_host(plane, &["label", "secret", "left", MANAGED, "app.kubernetes.io/instance=demo"]);
    in_host(plane, &["create", "configmap", "elsewhere"]);
    in_host(plane, &["label", "configmap", "elsewhere", MANAGED, "app.kubernetes.io/instance=another"]);
    kubectl.run(&["-n", "karmada-system", "create", "configmap", "left"]);
    kubectl.run(&["-n", "karmada-system", "label", "configmap", "left", MANAGED]);
    kubectl.run(&["create", "clusterrole", "left", "--verb=get", "--resource=configmaps"]);
    kubectl.run(&["label", "clusterrole", "left", MANAGED]);
    kubectl.run(&["-n", "karmada-cluster", "create", "configmap", "members"]);
    kubectl.run(&["-n", "karmada-cluster", "label", "configmap", "members", MANAGED, "karmada.io/system=true"]);
    vec![EXTRA]
}

/// On the host cluster and inside the Karmada API, all at once.
fn damage(plane: &Plane<'_>, kubectl: &Kubectl<'_>) -> Vec<Done> {
    let host = |arguments: &[&str]| in_host(plane, arguments);
    let image = format!("*=docker.io/karmada/karmada-webhook:v{KARMADA}");
    host(&["delete", "deployment", "demo-scheduler"]);
    host(&["scale", "deployment", "demo-controller-manager", "--replicas=0"]);
    host(&["set", "image", "deployment/demo-aggregated-apiserver", &image]);
    host(&["label", "--overwrite", "service/demo-webhook", "app.kubernetes.io/name=other"]);
    host(&["label", "--overwrite", "statefulset/demo-etcd", "app.kubernetes.io/managed-by=somebody"]);
    host(&["delete", "poddisruptionbudget", "demo-apiserver"]);
    host(&["delete", "secret", "demo-webhook"]);
    host(&["patch", "secret", "demo-scheduler", "--type=merge", "-p={\"stringData\":{\"ca.crt\":\"another\"}}"]);
    // What others add to what is ours, where nobody else has anything to say.
    host(&["set", "env", "deployment/demo-webhook", "THEIRS=1"]);
    host(&["patch", "deployment", "demo-kube-controller-manager", "--patch", SIDECAR]);
    host(&["patch", "deployment", "demo-apiserver", "--type=merge", "-p={\"spec\":{\"minReadySeconds\":1}}"]);
    host(&["patch", "service", "demo-aggregated-apiserver", "-p={\"spec\":{\"ports\":[{\"name\":\"theirs\",\"port\":9999}]}}"]);
    host(&["patch", "secret", "demo-controller-manager", "--type=merge", "-p={\"stringData\":{\"theirs\":\"1\"}}"]);
    host(&["patch", "service", "demo-apiserver", "--type=merge", "-p={\"spec\":{\"sessionAffinity\":\"ClientIP\"}}"]);
    // What is not ours is nobody's business.
    host(&["annotate", "deployment/demo-webhook", "somebody.example/note=theirs"]);
    host(&["patch", "deployment", "demo-webhook", "-p={\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"restarted\":\"1\"}}}}}"]);
    host(&["create", "configmap", "theirs"]);
    kubectl.run(&["delete", "validatingwebhookconfiguration", "validating-config"]);
    kubectl.run(&["label", "--overwrite", "mutatingwebhookconfiguration/mutating-config", "app.kubernetes.io/managed-by=somebody"]);
    kubectl.run(&["patch", "mutatingwebhookconfiguration", "mutating-config", "-p", WEBHOOK]);
    kubectl.run(&["patch", "clusterrole", "karmada-view", "--type=json", "-p=[{\"op\":\"remove\",\"path\":\"/rules/0\"}]"]);
    kubectl.run(&["patch", "clusterrolebinding", "system:karmada:scheduler", "--type=json", "-p", SUBJECT]);
    kubectl.run(&["patch", "apiservice", "v1alpha1.cluster.karmada.io", "--type=merge", "-p={\"spec\":{\"versionPriority\":11}}"]);
    kubectl.run(&["-n", "kube-public", "patch", "configmap", "cluster-info", "--type=merge", "-p={\"data\":{\"theirs\":\"1\"}}"]);
    kubectl.run(&["-n", "kube-public", "delete", "rolebinding", "system:karmada:bootstrap-signer-clusterinfo"]);
    kubectl.run(&["delete", "crd", "workloadrebalancers.apps.karmada.io"]);
    kubectl.run(&["label", "--overwrite", "crd/works.work.karmada.io", "somebody.example/note=theirs"]);
    kubectl.run(&["patch", "crd", "works.work.karmada.io", "--type=json", "-p=[{\"op\":\"remove\",\"path\":\"/spec/names/shortNames\"}]"]);
    vec![
        ("changed", "etcd_cluster.main/stateful_set"),
        ("changed", "karmada_control_plane.main/api[\"apiservice v1alpha1.cluster.karmada.io\"]"),
        ("changed", "karmada_control_plane.main/api[\"clusterrole karmada-view\"]"),
        ("changed", "karmada_control_plane.main/api[\"clusterrolebinding system:karmada:scheduler\"]"),
        ("changed", "karmada_control_plane.main/api[\"configmap cluster-info\"]"),
        ("changed", "karmada_control_plane.main/api[\"mutatingwebhookconfiguration mutating-config\"]"),
        ("changed", "karmada_control_plane.main/component[\"aggregated-apiserver\"]"),
        ("changed", "karmada_control_plane.main/component[\"apiserver\"]"),
        ("changed", "karmada_control_plane.main/component[\"controller-manager\"]"),
        ("changed", "karmada_control_plane.main/component[\"kube-controller-manager\"]"),
        ("changed", "karmada_control_plane.main/component[\"webhook\"]"),
        ("changed", "karmada_control_plane.main/crds"),
        ("changed", "karmada_control_plane.main/secret[\"controller-manager\"]"),
        ("changed", "karmada_control_plane.main/secret[\"scheduler\"]"),
        ("changed", "karmada_control_plane.main/service[\"aggregated-apiserver\"]"),
        ("changed", "karmada_control_plane.main/service[\"apiserver\"]"),
        ("changed", "karmada_control_plane.main/service[\"webhook\"]"),
        ("missing", "karmada_control_plane.main/api[\"rolebinding system:karmada:bootstrap-signer-clusterinfo\"]"),
        ("missing", "karmada_control_plane.main/api[\"validatingwebhookconfiguration validating-config\"]"),
        ("missing", "karmada_control_plane.main/component[\"scheduler\"]"),
        ("missing", "karmada_control_plane.main/disruption_budget[\"apiserver\"]"),
        ("missing", "karmada_control_plane.main/secret[\"webhook\"]"),
    ]
}
