//! `docs/pipelines/kubernetes-cronjob.yaml` as it stands there, in a cluster: its account, its roles, a pod without rights and with a root that can't be
//! written. Only what a lab has not is taken out: a disk for the reports, and its time of day.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Host, variable};
use crate::parts::root;
use crate::project::Project;

const NAMESPACE: &str = "kf-cron";
/// The state is where the job is; from outside it is reached by a kubeconfig.
const BACKEND: &str =
    "karmaform {\n  backend \"kubernetes\" {\n    secret_suffix = \"drift\"\n    namespace     = \"karmaform\"\n    WAY\n  }\n}\n";
const CONFIG: &str = r#"
variable "kubeconfig" {
  type    = string
  default = null
}

data "kubernetes_cluster" "host" {
  kubeconfig_file = var.kubeconfig
}

resource "kubernetes_object" "one" {
  cluster = data.kubernetes_cluster.host.connection
  manifest = {
    apiVersion = "v1"
    kind       = "ConfigMap"
    metadata   = { name = "one", namespace = "kf-cron" }
    data       = { greeting = "hello" }
  }
}
"#;
/// As docs/pipelines/README.md says it, for a state in the cluster.
const READS_STATE: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: karmaform-state, namespace: karmaform }
rules: [{ apiGroups: [""], resources: [secrets], verbs: [get, list] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: karmaform-state, namespace: karmaform }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: karmaform-state }
subjects: [{ kind: ServiceAccount, name: karmaform-drift, namespace: karmaform }]
"#;

#[test]
fn the_ready_cron_job_tells_of_drift() {
    let Some(host) = Host::for_test("the_ready_cron_job_tells_of_drift", NAMESPACE) else { return };
    image();
    // What a run has left that did not come to its end.
    host.run(&["delete", "namespace", NAMESPACE, "karmaform", "--ignore-not-found"]);
    host.run(&["create", "namespace", NAMESPACE]);
    install(&host);
    let project = Project::new();
    project.write("main.kf.hcl", CONFIG);
    project.write("backend.kf.hcl", &BACKEND.replace("WAY", &format!("config_path = {:?}", host.kubeconfig())));
    project.must(0, &["init"]);
    let way = format!("kubeconfig={}", host.kubeconfig());
    project.must(0, &["apply", "-auto-approve", "-var", &way]);
    let inside = Project::new();
    inside.write("main.kf.hcl", CONFIG);
    inside.write("backend.kf.hcl", &BACKEND.replace("WAY", "in_cluster_config = true"));
    let files = ["main", "backend"].map(|n| format!("--from-file={}", inside.path().join(format!("{n}.kf.hcl")).display()));
    in_job(&host, &["create", "configmap", "karmaform", &files[0], &files[1]]);

    let (code, log) = runs(&host, "clean");
    assert!(code == 0 && log.contains("No drift: 1 resource is as it should be."), "{code}\n{log}");
    host.run(&["-n", NAMESPACE, "patch", "configmap", "one", "--type=merge", "-p={\"data\":{\"greeting\":\"bye\"}}"]);
    let (code, log) = runs(&host, "drifted");
    assert!(code == 2 && log.contains("manifest.data.greeting: is \"bye\", should be \"hello\""), "{code}\n{log}");

    project.must(0, &["destroy", "-auto-approve", "-var", &way]);
    host.run(&["delete", "namespace", NAMESPACE, "karmaform"]);
    host.run(&["delete", "clusterrole,clusterrolebinding", "karmaform-drift"]);
}

/// The image that the file names, on the node.
pub(super) fn image() {
    put_there("image", &[]);
}

/// `pipelines.sh VERB NAME KARMAFORM ...`
pub(super) fn put_there(verb: &str, more: &[&str]) {
    let script = Path::new(&variable("KARMAFORM_TEST_KUBE").expect("the lab's script")).with_file_name("pipelines.sh");
    let name = variable("KARMAFORM_TEST_KUBE_NAME").expect("the cluster's name");
    let command = [verb, &name, env!("CARGO_BIN_EXE_karmaform-under-test")];
    let status = Command::new(script).args(command).args(more).stdin(Stdio::null()).status();
    assert!(status.is_ok_and(|s| s.success()), "pipelines.sh {verb}");
}

/// The documents of the file but for those of these kinds, with what it has to read in this namespace.
pub(super) fn pipeline(namespace: &str, without: &[&str]) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs/pipelines/kubernetes-cronjob.yaml")).expect("the pipeline");
    let is_wanted = |d: &&str| !without.iter().any(|kind| d.contains(&format!("kind: {kind}\n")));
    let there = |d: &str| d.replace("namespace: karmada-system", &format!("namespace: {namespace}"));
    text.split("\n---\n").filter(is_wanted).map(there).collect()
}

/// Everything in the file, but for the disk.
fn install(host: &Host) {
    let mut documents = pipeline(NAMESPACE, &["PersistentVolumeClaim"]);
    documents.push(READS_STATE.to_owned());
    let disk = "persistentVolumeClaim:\n                claimName: karmaform-drift";
    let mut text = documents.join("\n---\n");
    assert!(text.contains(disk), "{text}");
    text = text.replace(disk, "emptyDir: {}");
    // As it was before 1.21. What counts is the cluster of the node, whatever the Kubernetes is that other tests run in its pods.
    if variable("KARMAFORM_TEST_KUBE_VERSION").is_some_and(|version| version.starts_with("1.20.")) {
        text = text.replace("apiVersion: batch/v1\nkind: CronJob", "apiVersion: batch/v1beta1\nkind: CronJob");
    }
    let files = Project::new();
    files.write("job.yaml", &text);
    host.run(&["apply", "-f", &files.path().join("job.yaml").to_string_lossy()]);
}

#[track_caller]
fn in_job(host: &Host, arguments: &[&str]) -> String {
    host.run(&[&["-n", "karmaform"], arguments].concat())
}

/// Runs the job now: its pod's exit code, and what it printed.
#[track_caller]
fn runs(host: &Host, name: &str) -> (i64, String) {
    in_job(host, &["create", "job", name, "--from=cronjob/karmaform-drift"]);
    let selector = format!("--selector=job-name={name}");
    let pod = || -> Value { serde_json::from_str(&in_job(host, &["get", "pods", &selector, "-o", "json"])).expect("JSON") };
    let code = |pod: &Value| pod["items"][0]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].as_i64();
    host.eventually(&format!("the job {name} ends"), || code(&pod()).is_some());
    let state = |condition: &str| in_job(host, &["get", "job", name, "-o", &format!("jsonpath={{.status.{condition}}}")]);
    let code = code(&pod()).expect("ended");
    host.eventually("the job says how it ended", || state(if code == 0 { "succeeded" } else { "failed" }) == "1");
    (code, in_job(host, &["logs", &selector, "--tail=-1"]))
}
