//! Members of a real Karmada on hosts: one in push mode with its estimator on a host, one in pull mode; what is propagated gets there while one
//! host after the other dies and comes back, and through an upgrade.
//!
//! The stand-in of Karmada's programs propagates nothing, so this takes the real ones.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use super::site::{EVERYBODYS, Site};
use super::{KARMADA, PROGRAMS, for_test, variable};
use crate::karmada::Host;
use crate::karmada::members::{arrives, workload};
use crate::members::planes::Cluster;
use crate::parts::tell;

/// How long leaders of Karmada's controllers may take to be others, and what they do then.
const PATIENCE: Duration = Duration::from_secs(90);
/// Where the estimator counts what it is asked.
const METRICS: &str = "127.0.0.1:10399";
/// The next version.
const NEXT: &str = "1.19.1";

/// Something that is counted before it is placed.
const COUNTED: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: { name: counted, namespace: default }
spec:
  replicas: 2
  selector: { matchLabels: { app: counted } }
  template:
    metadata: { labels: { app: counted } }
    spec:
      containers:
        - name: sleeps
          image: karmaform.test/busybox:1
          imagePullPolicy: Never
          resources: { requests: { cpu: 10m } }
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: { name: counted, namespace: default }
spec:
  resourceSelectors: [{ apiVersion: apps/v1, kind: Deployment, name: counted }]
  placement:
    clusterAffinity: { clusterNames: [push, pull] }
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: { dynamicWeight: AvailableReplicas }
"#;

fn members(site: &Site<'_>, push: &Cluster, pull: &Host, karmada: &str) {
    let estimator = |host: &str, port: u16, more: &str| {
        format!(
            "estimator {{\n    host       = data.ssh_host.cp[{host:?}]\n    port       = {port}\n    source     = \"{karmada}/karmada-scheduler-estimator\"\n\
             {more}  }}"
        )
    };
    let text = format!(
        r#"
data "kubernetes_cluster" "push" {{
  kubeconfig_file = {:?}
}}
data "kubernetes_cluster" "pull" {{
  kubeconfig_file = {:?}
}}
resource "karmada_member" "push" {{
  control_plane = karmada_control_plane.main
  cluster       = data.kubernetes_cluster.push
  verify        = true
  {}
}}
resource "karmada_member" "pull" {{
  control_plane = karmada_control_plane.main
  cluster       = data.kubernetes_cluster.pull
  mode          = "pull"
  verify        = true
  agent {{
    image    = "docker.io/karmada/karmada-agent:v{KARMADA}"
    replicas = 1
  }}
  {}
}}
"#,
        push.kubeconfig,
        pull.kubeconfig(),
        estimator("a", 10352, ""),
        estimator("b", 10353, &format!("    extra_args = {{ metrics-bind-address = \"{METRICS}\" }}\n")),
    );
    site.project.write("members.kf.hcl", &text);
}

#[test]
fn real_members_of_a_control_plane_on_hosts() {
    const TEST: &str = "real_members_of_a_control_plane_on_hosts";
    let Some(karmada) = variable("KARMAFORM_TEST_KARMADA_BIN") else {
        tell(&format!("*** SKIPPED (no programs of Karmada itself in KARMAFORM_TEST_KARMADA_BIN): {TEST}"));
        return;
    };
    let Some(pull) = Host::for_test(TEST, "kf-unused") else { return };
    let Some((lab, parts)) = for_test(TEST) else { return };
    let push = Cluster::up("hostspush");
    for cluster in [&push.name, &variable("KARMAFORM_TEST_KUBE_NAME").expect("the cluster's name")] {
        lab.act("reach", cluster);
    }
    let before = lab.all_files();
    let (before_push, before_pull): (BTreeSet<_>, _) = (push.inventory().into_keys().collect(), pull.inventory());
    let site = Site::example(&lab, &parts, 3);

    site.with_block("scheduler_estimators = true");
    members(&site, &push, &pull, &karmada);
    site.converge();
    site.project.write("workload.yaml", &(workload("shown", "first", "") + COUNTED));
    let file = site.project.path().join("workload.yaml").to_string_lossy().into_owned();
    site.ask(EVERYBODYS, &["create", "--validate=false", "-f", &file]);
    arrives(&pull, &push, "first");
    is_counted(&site, &pull);

    for (host, _) in &lab.hosts {
        lab.act("kill", host);
        let at = if site.vip.is_some() {
            EVERYBODYS
        } else {
            lab.hosts.iter().map(|(h, _)| h.as_str()).find(|h| h != host).expect("another host")
        };
        site.answers_within(PATIENCE, at, &["get", "--raw", "/readyz"]);
        let word = format!("without-{host}");
        says(&site, at, &word);
        arrives(&pull, &push, &word);
        lab.act("start", host);
        site.answers_within(PATIENCE, host, &["get", "clusters.cluster.karmada.io"]);
        site.project.apply();
        site.project.no_changes();
    }

    // One patch on: other programs under another version.
    let next = tempfile::tempdir().expect("a directory");
    for program in PROGRAMS.map(|p| format!("karmada-{p}")) {
        another(&Path::new(&karmada).join(&program), &next.path().join(&program));
    }
    site.values(3, &format!("karmada_version = {NEXT:?}\nkarmada_source = \"{}/{{program}}\"", next.path().display()));
    let planned = site.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(planned.contains("one host at a time"), "{planned}");
    site.converge();
    says(&site, EVERYBODYS, "upgraded");
    arrives(&pull, &push, "upgraded");

    site.project.must(0, &["destroy", "-auto-approve"]);
    lab.has_files(&before);
    pull.eventually("all is gone from the member", || push.inventory().into_keys().collect::<BTreeSet<_>>() == before_push);
    pull.is_as_before(&before_pull);
}

/// A program that does the same and is not the same: what comes after its end is not read.
fn another(from: &Path, to: &Path) {
    std::fs::copy(from, to).expect("a copy");
    let mut file = std::fs::OpenOptions::new().append(true).open(to).expect("the copy");
    file.write_all(b"one patch on\n").expect("written");
}

fn says(site: &Site<'_>, at: &str, word: &str) {
    site.ask(at, &["patch", "configmap", "shown", "--type=merge", "-p", &format!("{{\"data\":{{\"word\":\"{word}\"}}}}")]);
}

/// The Deployment is where there is a node, and the scheduler asks the estimators for it.
#[track_caller]
fn is_counted(site: &Site<'_>, pull: &Host) {
    let ready = ["-n=default", "get", "deployment", "counted", "--ignore-not-found", "-o=jsonpath={.status.readyReplicas}"];
    pull.eventually("both replicas are where there is a node", || pull.run(&ready) == "2");
    let port = METRICS.rsplit_once(':').expect("a port").1;
    let request = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf \"GET /metrics HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3");
    let asked = format!("bash -c '{request}' | grep '^karmada_scheduler_estimator_estimating_request_total.*success' || true");
    // What was placed before the scheduler was connected to it was placed without it.
    for replicas in (1..=2).cycle().take(60) {
        site.ask(EVERYBODYS, &["scale", "deployment", "counted", &format!("--replicas={replicas}")]);
        if !site.lab.shell("b", &asked).is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    panic!("the estimator was never asked");
}
