//! A control plane from nothing, through addons, settings and damage, and away again.

use super::plane::{Kubectl, Plane};
use super::{Host, KARMADA};
use crate::lab::secrets;

const POLICY: &str = r#"
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: { name: probe, namespace: default }
spec:
  resourceSelectors: [{ apiVersion: apps/v1, kind: Deployment }]
  placement: { clusterAffinity: { clusterNames: [one] } }
"#;

#[test]
fn from_nothing_to_a_control_plane_and_back() {
    let Some(host) = Host::for_test("from_nothing_to_a_control_plane_and_back", "kf-life") else { return };
    let before = host.inventory();
    let plane = Plane::example(&host, "demo");

    let plan = plane.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains("0 to change, 0 to destroy"), "{plan}");
    let applied = plane.converge();
    secrets::none_in(&plane.project, &[("plan", &plan), ("apply", &applied)]);

    let kubectl = plane.kubectl("kubeconfig");
    the_api_is_karmadas(&plane, &kubectl);
    all_pods_run(&host);
    addons_come_and_go(&plane, &kubectl);
    one_setting_at_a_time(&plane);
    damage_is_repaired(&plane, &kubectl);

    // The state is lost: everything that it knew is in the host cluster and in the Karmada API.
    plane.project.remove("karmaform.tfstate");
    let text = plane.project.must(0, &["state", "rebuild"]);
    assert!(text.contains("No changes.") && !text.contains("PRIVATE KEY"), "{text}");
    plane.project.no_changes();

    plane.project.must(0, &["destroy", "-auto-approve"]);
    host.is_as_before(&before);
}

fn the_api_is_karmadas(plane: &Plane<'_>, kubectl: &Kubectl<'_>) {
    assert_eq!(kubectl.condition("apiservice", "v1alpha1.cluster.karmada.io", "Available"), "True");
    kubectl.run(&["get", "clusters.cluster.karmada.io"]);
    assert_eq!(kubectl.count(&["get", "crds", "-o", "name"]), 19);
    // Asks the conversion webhook where there is something to convert, and in any case for both versions.
    kubectl.run(&["get", "resourcebindings.v1alpha1.work.karmada.io", "--all-namespaces"]);
    // Goes through both kinds of admission.
    plane.project.write("policy.yaml", POLICY);
    let file = plane.project.path().join("policy.yaml").to_string_lossy().into_owned();
    kubectl.run(&["create", "--validate=false", "-f", &file]);
    kubectl.run(&["delete", "-f", &file]);
    plane.project.no_changes();
}

/// Pods have no rights on the host cluster, and all of them run.
fn all_pods_run(host: &Host) {
    let text = host.run(&["-n", &host.namespace, "get", "deployments", "-o", "json"]);
    let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for deployment in all["items"].as_array().expect("a list") {
        let pod = &deployment["spec"]["template"]["spec"];
        let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
        assert_eq!(pod["automountServiceAccountToken"], false, "{name}");
        let desired = deployment["spec"]["replicas"].as_i64();
        assert_eq!(deployment["status"]["readyReplicas"].as_i64(), desired, "{name}: {}", deployment["status"]);
    }
}

fn addons_come_and_go(plane: &Plane<'_>, kubectl: &Kubectl<'_>) {
    let apis = ["v1alpha1.search.karmada.io", "v1beta1.metrics.k8s.io", "v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"];
    let deployments = || plane.host.run(&["-n", &plane.host.namespace, "get", "deployments", "-o", "name"]);
    plane.values("demo", "addons = [\"search\", \"descheduler\", \"metrics-adapter\"]");
    plane.converge();
    for api in apis {
        assert_eq!(kubectl.condition("apiservice", api, "Available"), "True", "{api}");
    }
    let with = deployments();
    for addon in ["search", "descheduler", "metrics-adapter"] {
        assert!(with.contains(&format!("demo-{addon}")), "{with}");
    }
    plane.values("demo", "");
    plane.converge();
    let served = kubectl.run(&["get", "apiservices", "-o", "name"]);
    assert!(apis.iter().all(|api| !served.contains(api)), "{served}");
    assert_eq!(deployments().lines().count() + 3, with.lines().count());
}

fn one_setting_at_a_time(plane: &Plane<'_>) {
    let scheduler = || plane.host.object("deployment", "demo-scheduler")["spec"].clone();
    let settings = [
        ("replicas = 3", "/replicas", "3"),
        ("extra_args = { v = \"4\" }", "/template/spec/containers/0/args", "--v=4"),
        ("resources = { requests = { cpu = \"15m\" } }", "/template/spec/containers/0/resources/requests/cpu", "15m"),
    ];
    for (setting, ..) in settings {
        plane.with_block(&format!("component \"scheduler\" {{\n  {setting}\n}}"));
        plane.plans_only("scheduler");
    }
    // Each rollout takes its time, so all of them are made in one.
    plane.with_block(&format!("component \"scheduler\" {{\n  {}\n}}", settings.map(|(setting, ..)| setting).join("\n  ")));
    plane.converge();
    for (setting, pointer, expected) in settings {
        let found = scheduler().pointer(pointer).map(ToString::to_string).unwrap_or_default();
        assert!(found.contains(expected), "{setting}: {found}");
    }
    plane.with_block("");
    plane.converge();
    // What the real program would not understand is said before anything is done.
    plane.with_block("component \"scheduler\" {\n  extra_args = { no-such-flag = \"1\" }\n}");
    let refused = plane.project.must(1, &["plan"]);
    assert!(refused.contains("no-such-flag"), "{refused}");
    plane.with_block("");
}

fn damage_is_repaired(plane: &Plane<'_>, kubectl: &Kubectl<'_>) {
    // On the host cluster, and inside the Karmada API.
    plane.host.run(&["-n", &plane.host.namespace, "delete", "deployment", "demo-scheduler"]);
    kubectl.run(&["delete", "validatingwebhookconfiguration", "validating-config"]);
    let text = plane.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(text.contains("2 to add, 0 to change, 0 to destroy"), "{text}");
    plane.converge();
    // On fields of ours, whoever says that they are theirs now.
    let namespace = ["-n", &plane.host.namespace];
    let container = plane.host.object("deployment", "demo-scheduler")["spec"]["template"]["spec"]["containers"][0]["name"].clone();
    let image = format!("{}=docker.io/karmada/karmada-webhook:v{KARMADA}", container.as_str().unwrap_or_default());
    plane.host.run(&[&namespace[..], &["set", "image", "deployment/demo-scheduler", &image]].concat());
    plane.host.run(&[&namespace[..], &["label", "--overwrite", "service/demo-etcd", "app.kubernetes.io/name=other"]].concat());
    kubectl.run(&["label", "--overwrite", "validatingwebhookconfiguration/validating-config", "app.kubernetes.io/managed-by=somebody"]);
    let text = plane.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(text.contains("0 to add, 3 to change, 0 to destroy") && text.contains("karmada-webhook"), "{text}");
    plane.converge();
    // The API server itself: a plan works without it, too.
    plane.host.run(&["-n", &plane.host.namespace, "delete", "deployment", "demo-apiserver"]);
    plane.plans_only("apiserver");
    plane.converge();
    kubectl.run(&["get", "clusters.cluster.karmada.io"]);
}
