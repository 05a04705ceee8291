//! What somebody makes anew, puts back, or deletes while something keeps it: `drift` says what is otherwise and nothing else, and apply repairs it.

use serde_json::{Value, json};

use super::drift::{Done, in_host, is_found};
use super::plane::{Kubectl, Plane};

/// Written back whole, as `kubectl get -o json | kubectl replace --force` does: the object is another one, and the account of its fields is somebody else's.
fn replaced(plane: &Plane<'_>, kind: &str, name: &str, change: impl Fn(&mut Value)) {
    let mut object = plane.host.object(kind, name);
    change(&mut object);
    plane.project.write("anew.json", &object.to_string());
    in_host(plane, &["replace", "--force", "-f", &plane.project.path().join("anew.json").to_string_lossy()]);
}

pub(super) fn what_is_made_anew_is_looked_at(plane: &Plane<'_>, kubectl: &Kubectl<'_>) {
    put_back(plane, kubectl);
    is_found(plane, &[]);

    replaced(plane, "deployment", "demo-scheduler", |deployment| {
        deployment["spec"]["minReadySeconds"] = json!(1);
        deployment["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{ "name": "THEIRS", "value": "1" }]);
    });
    replaced(plane, "secret", "demo-controller-manager", |secret| secret["data"]["theirs"] = json!("MQ=="));
    replaced(plane, "service", "demo-aggregated-apiserver", |service| service["spec"]["externalIPs"] = json!(["10.9.9.3"]));
    // With nothing else in it.
    replaced(plane, "service", "demo-webhook", |_| ());
    replaced(plane, "secret", "demo-webhook", |_| ());
    kubectl.run(&["label", "clusterrole", "karmada-view", "rbac.authorization.k8s.io/aggregate-to-edit=true"]);
    in_host(plane, &["rollout", "status", "deployment/demo-scheduler"]);
    let done: [Done; 4] = [
        ("changed", "karmada_control_plane.main/api[\"clusterrole karmada-view\"]"),
        ("changed", "karmada_control_plane.main/component[\"scheduler\"]"),
        ("changed", "karmada_control_plane.main/secret[\"controller-manager\"]"),
        ("changed", "karmada_control_plane.main/service[\"aggregated-apiserver\"]"),
    ];
    is_found(plane, &done);
    plane.converge();
    is_found(plane, &[]);
    let deployment = plane.host.object("deployment", "demo-scheduler");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert!(deployment["spec"]["minReadySeconds"].is_null() && !container.to_string().contains("THEIRS"), "{deployment:#}");
    assert!(plane.host.object("service", "demo-aggregated-apiserver")["spec"]["externalIPs"].is_null());
    assert!(plane.host.object("secret", "demo-controller-manager")["data"]["theirs"].is_null());

    pods_are_looked_at(plane);

    // No field of it can be changed any more, so another one takes its place.
    in_host(plane, &["patch", "secret", "demo-webhook", "--type=merge", "-p={\"immutable\":true}"]);
    is_found(plane, &[("changed", "karmada_control_plane.main/secret[\"webhook\"]")]);
    plane.converge();
    is_found(plane, &[]);

    // As long as something keeps it, it is there and works.
    in_host(plane, &["patch", "secret", "demo-webhook", "--type=merge", "-p={\"metadata\":{\"finalizers\":[\"example.com/theirs\"]}}"]);
    in_host(plane, &["delete", "secret", "demo-webhook", "--wait=false"]);
    let text = plane.project.must(3, &["drift", super::drift::AGE]);
    assert!(text.contains("secret[\"webhook\"]") && text.contains("somebody deletes it, since 20"), "{text}");
    in_host(plane, &["patch", "secret", "demo-webhook", "--type=merge", "-p={\"metadata\":{\"finalizers\":null}}"]);
    is_found(plane, &[("missing", "karmada_control_plane.main/secret[\"webhook\"]")]);
    plane.converge();
    is_found(plane, &[]);
}

/// What was changed and put back is as it was.
fn put_back(plane: &Plane<'_>, kubectl: &Kubectl<'_>) {
    let deployment = plane.host.object("deployment", "demo-controller-manager");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let image = |image: &str| format!("{}={image}", container["name"].as_str().expect("a name"));
    let own = container["image"].as_str().expect("an image");
    in_host(plane, &["set", "image", "deployment/demo-controller-manager", &image("docker.io/karmada/theirs:v1")]);
    in_host(plane, &["set", "image", "deployment/demo-controller-manager", &image(own)]);
    for replicas in [2, deployment["spec"]["replicas"].as_i64().expect("a number")] {
        let patch = format!("-p={{\"spec\":{{\"replicas\":{replicas}}}}}");
        in_host(plane, &["patch", "deployment", "demo-controller-manager", "--type=merge", &patch]);
    }
    for policy in ["Ignore", "Fail"] {
        let patch = format!("-p=[{{\"op\":\"replace\",\"path\":\"/webhooks/0/failurePolicy\",\"value\":\"{policy}\"}}]");
        kubectl.run(&["patch", "mutatingwebhookconfiguration", "mutating-config", "--type=json", &patch]);
    }
    in_host(plane, &["rollout", "status", "deployment/demo-controller-manager"]);
}

/// What somebody does to one pod no controller ever notices.
fn pods_are_looked_at(plane: &Plane<'_>) {
    let pod = |component: &str| {
        let label = format!("app.kubernetes.io/name={component}");
        let found = plane.host.run(&["-n", &plane.host.namespace, "get", "pods", "-l", &label, "-o", "json"]);
        let found: Value = serde_json::from_str(&found).expect("JSON");
        let staying = found["items"].as_array().into_iter().flatten().find(|p| p["metadata"]["deletionTimestamp"].is_null());
        format!("pod/{}", staying.unwrap_or_else(|| panic!("no pod of {component}"))["metadata"]["name"].as_str().expect("its name"))
    };
    let scheduler = pod("scheduler");
    in_host(plane, &["set", "image", &scheduler, "*=karmaform.test/theirs:1"]);
    is_found(plane, &[("changed", "karmada_control_plane.main/component[\"scheduler\"]")]);
    let text = plane.project.must(2, &["plan", "-detailed-exitcode"]);
    let name = scheduler.trim_start_matches("pod/");
    assert!(text.contains(&format!("karmaform.test/theirs:1 (in the pod {name})")), "{text}");
    plane.converge();
    is_found(plane, &[]);
    assert!(!plane.host.run(&["-n", &plane.host.namespace, "get", "pods", "-o", "json"]).contains("karmaform.test/theirs"));

    // One that its ReplicaSet has lost goes on beside the one that takes its place.
    let webhook = pod("webhook");
    in_host(plane, &["label", "--overwrite", &webhook, "pod-template-hash=theirs"]);
    let ready = "jsonpath={range .items[*].status.containerStatuses[*]}{.ready} {end}";
    let count = || plane.host.run(&["-n", &plane.host.namespace, "get", "pods", "-l", "app.kubernetes.io/name=webhook", "-o", ready]);
    let replicas = plane.host.object("deployment", "demo-webhook")["spec"]["replicas"].as_u64().expect("a number");
    plane.host.eventually("another pod takes its place", || {
        let all = count();
        !all.contains("false") && all.split_whitespace().count() as u64 == replicas + 1
    });
    is_found(plane, &[("extra", "karmada_control_plane.main"), ("decay", "karmada_control_plane.main/service[\"webhook\"]")]);
    in_host(plane, &["delete", &webhook, "--wait=false"]);
    plane.host.eventually("it is gone", || {
        !plane.host.run(&["-n", &plane.host.namespace, "get", "pods", "-o", "name"]).contains(webhook.as_str())
    });
    is_found(plane, &[]);
}
