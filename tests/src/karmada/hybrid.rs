//! `examples/hybrid`: etcd on real hosts, and the control plane that uses it in a real cluster's pods.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::plane::{Kubectl, Plane, etcd_block};
use super::{Host, KARMADA, variable};
use crate::lab::Lab;
use crate::project::Project;

/// The example; each change of the second part is one of etcd's settings.
fn values(plane: &Plane<'_>, lab: &Lab, heartbeat: &str) {
    let Host { kube_version, namespace, crds, .. } = plane.host;
    let (etcd_version, etcd_source) = lab.etcd.last().expect("an etcd");
    let hosts: String = lab.hosts.iter().map(|(name, address)| format!("  {name} = \"{address}\"\n")).collect();
    let mut text = format!("hosts = {{\n{hosts}}}\nsettings = {{ heartbeat-interval = \"{heartbeat}\" }}\n");
    for (variable, value) in [
        ("private_key_file", lab.key.as_str()),
        ("known_hosts_file", &lab.known_hosts),
        ("etcd_version", etcd_version),
        ("etcd_source", etcd_source),
        ("kubeconfig", plane.host.kubeconfig()),
        ("namespace", namespace),
        ("karmada_version", KARMADA),
        ("kube_version", kube_version),
        ("crds", &crds.to_string_lossy()),
    ] {
        let _ = writeln!(text, "{variable} = {value:?}");
    }
    plane.project.write("karmaform.kfvars.hcl", &text);
}

#[test]
fn etcd_on_hosts_and_the_rest_in_pods() {
    const TEST: &str = "etcd_on_hosts_and_the_rest_in_pods";
    let Some(host) = Host::for_test(TEST, "kf-hybrid") else { return };
    let Some(lab) = Lab::fresh(TEST) else { return };
    lab.act("reach", &variable("KARMAFORM_TEST_KUBE_NAME").expect("the cluster's name"));
    let before = host.inventory();
    let files = lab.all_files();
    let plane = Plane { host: &host, project: Project::example("hybrid") };

    values(&plane, &lab, "100");
    plane.converge();
    let kubectl = plane.kubectl("kubeconfig");
    kubectl.run(&["get", "clusters.cluster.karmada.io"]);

    // One host of three is away: the control plane goes on, and nobody takes anything for lost.
    lab.act("kill", "b");
    // Where etcd's leader was there, a request is refused at the moment of the election.
    host.eventually("a namespace without b", || {
        kubectl.tries(&["create", "--validate=false", "namespace", "without-b"]) || kubectl.tries(&["get", "namespace", "without-b"])
    });
    let told = plane.project.must(0, &["plan", "-detailed-exitcode"]);
    assert!(told.contains("Warning: ") && told.contains("is taken to be so") && told.contains("No changes"), "{told}");
    lab.act("start", "b");
    // Where the leader of etcd was there, components have lost their leases, and start anew.
    let until = Instant::now() + Duration::from_secs(90);
    while plane.project.run(&["plan", "-detailed-exitcode"]).code == Some(2) && Instant::now() < until {
        std::thread::sleep(Duration::from_secs(2));
    }
    plane.project.no_changes();
    assert_eq!(kubectl.run(&["get", "namespace", "without-b", "-o=jsonpath={.status.phase}"]), "Active");

    // One member of etcd after the other gets a new setting, and the control plane's pods have nothing to do with that.
    values(&plane, &lab, "150");
    let planned = plane.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(!planned.contains("# karmada_control_plane."), "{planned}");
    plane.converge();
    kubectl.run(&["get", "namespace", "without-b"]);

    moved(&plane, &kubectl);
    restored(&plane, &kubectl);
    plane.project.must(0, &["destroy", "-auto-approve"]);
    host.is_as_before(&before);
    lab.has_files(&files);
}

/// etcd begins anew with what was saved, and so does all that remembers something of it.
fn restored(plane: &Plane<'_>, kubectl: &Kubectl<'_>) {
    let project = &plane.project;
    project.must(0, &["etcd", "snapshot", "etcd_cluster.main", "-out=saved.db"]);
    let manifest = std::fs::read_to_string(project.path().join("saved.db.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let sum = manifest["sha256"].as_str().expect("a sum");
    kubectl.run(&["create", "--validate=false", "namespace", "later"]);
    let main = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("the example");
    let head = "resource \"etcd_cluster\" \"main\" {\n";
    let block = format!("  restore {{\n    from   = \"saved.db\"\n    sha256 = \"{sum}\"\n  }}\n");
    project.write("main.kf.hcl", &main.replace(head, &format!("{head}{block}")));
    // Without those that are about to end.
    let shown = "-o=go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{\"\\n\"}}{{end}}{{end}}";
    let pods = || plane.host.run(&["-n", &plane.host.namespace, "get", "pods", shown]);
    let before = pods();
    project.must(0, &["apply", "-auto-approve", "-confirm=etcd_cluster.main"]);
    project.no_changes();
    let after = pods();
    let same: Vec<&str> = before.lines().filter(|pod| after.lines().any(|p| p == *pod)).collect();
    assert!(same.is_empty(), "these remember what was before: {same:?}");
    kubectl.run(&["get", "namespace", "without-b"]);
    assert!(!kubectl.run(&["get", "namespaces"]).contains("later"));
    // Nobody is disturbed when the block goes.
    project.write("main.kf.hcl", &main);
    let planned = project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(!planned.contains("# karmada_control_plane."), "{planned}");
    plane.converge();
    assert_eq!(pods(), after);
}

/// etcd goes from the hosts into pods, and to one that is nobody's `etcd_cluster` as far as the control plane knows; all that it keeps goes along.
fn moved(plane: &Plane<'_>, kubectl: &Kubectl<'_>) {
    let project = &plane.project;
    let main = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("the example");
    let both = format!("{main}{}", etcd_block(plane.host, "inside", ""));
    let uid = || kubectl.run(&["get", "namespace", "without-b", "-o=jsonpath={.metadata.uid}"]);
    let version =
        || kubectl.run(&["get", "namespace", "without-b", "-o=jsonpath={.metadata.resourceVersion}"]).parse::<u64>().expect("a number");
    let (identity, mut last) = (uid(), version());
    let outside = "{\n    endpoints      = etcd_cluster.main.client.endpoints\n    ca_certificate = etcd_cluster.main.client.ca_certificate\n    \
                   certificate    = etcd_cluster.main.client.certificate\n    private_key    = etcd_cluster.main.client.private_key\n  }";
    for (i, (to, etcd)) in [("pods", "etcd_cluster.inside.client"), ("hosts", outside)].into_iter().enumerate() {
        let name = format!("before-{to}");
        kubectl.run(&["create", "--validate=false", "namespace", &name]);
        project.write("main.kf.hcl", &both.replace("etcd_cluster.main.client", etcd));
        let plan = project.must(2, &["plan", "-detailed-exitcode"]);
        assert!(plan.contains("moves everything below /registry from the etcd at"), "{plan}");
        let applied = plane.converge();
        assert!(applied.contains("karmada_control_plane.main (the new etcd has everything): passed"), "{applied}");
        assert_eq!(uid(), identity);
        kubectl.run(&["get", "namespace", &name]);
        // Nobody who remembers a version of before takes an older one for a newer one.
        assert!(version() > last, "{} after {last}, move {i}", version());
        last = version();
    }
    // The same etcd under other words is no move.
    project.write("main.kf.hcl", &main);
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(!plan.contains("moves everything"), "{plan}");
    plane.converge();
    assert_eq!(uid(), identity);
}
