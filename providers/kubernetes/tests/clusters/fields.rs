//! What the server makes of fields is no drift.

use karmaform_model::{Action, Change, Value};
use serde_json::{Value as Json, json};

use crate::lab::{Lab, lab, object};

fn deployment(lab: &Lab, cpu: &str, image: &str) -> Json {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d", "namespace": lab.namespace, "labels": null },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "d" } }, "template": { "metadata": { "labels": { "app": "d" } }, "spec": {
            "securityContext": {}, "nodeSelector": {}, "volumes": [{ "name": "v", "emptyDir": {} }],
            "containers": [{ "name": "main", "image": image, "ports": [{ "containerPort": 80 }], "env": [{ "name": "A", "value": "" }],
                "resources": { "limits": { "cpu": cpu, "memory": "1024Mi" }, "requests": { "cpu": "0.5" } } }] } } } })
}

#[test]
fn quantities_and_defaults_are_no_drift() {
    let Some(lab) = lab("defaults") else { return };
    let state = lab.create(&lab.wanted(&deployment(&lab, "1000m", "a:1")));
    // the server looks at it again and again, and its controller writes status and an annotation
    let other = lab.wanted(&deployment(&lab, "1000m", "a:2"));
    let change = lab.plan(Some(&state), Some(&other)).unwrap();
    let Change::Update { before, .. } = &change else { panic!("{change:?}") };
    assert_eq!(before["manifest"], state["manifest"], "exactly one setting differs");
    let state = lab.step(Some(&state), Some(&other), Action::Update).unwrap();
    // a sidecar of somebody else's, in front of ours
    let sidecar = "[{\"op\":\"add\",\"path\":\"/spec/template/spec/containers/0\",\"value\":{\"name\":\"side\",\"image\":\"s\"}}]";
    lab.kubectl(&["-n", &lab.namespace, "patch", "deployment", "d", "--type=json", "-p", sidecar]);
    lab.step(Some(&state), Some(&other), Action::NoOp);
    // drift on one field of ours is shown as that, in our spelling of the rest
    lab.kubectl(&["-n", &lab.namespace, "set", "image", "deployment/d", "main=b:1"]);
    let mut forced = other.clone();
    forced.insert("force".into(), true.into());
    let change = lab.plan(Some(&state), Some(&forced)).unwrap();
    let Change::Update { before, .. } = &change else { panic!("{change:?}") };
    let image = |v: &Value| karmaform_model::to_json(v)["spec"]["template"]["spec"]["containers"].to_string();
    assert!(image(&before["manifest"]).contains("\"b:1\"") && image(&before["manifest"]).contains("1000m"), "{before:?}");
    lab.delete(&state);
}

#[test]
fn a_rollout_without_nodes_is_waited_for_in_vain() {
    let Some(lab) = lab("rollout") else { return };
    let mut wanted = lab.wanted(&deployment(&lab, "1", "a:1"));
    wanted.insert("wait".into(), object([("rollout", true.into())]).into());
    wanted.insert("timeout".into(), 2i64.into());
    let error = lab.apply(&Change::Create { after: wanted }).unwrap_err();
    assert_eq!(error.summary, "Waited in vain");
    assert!(
        error.detail.contains("0 of 1 replicas are available") && error.detail.contains("MinimumReplicasUnavailable"),
        "{}",
        error.detail
    );
}

#[test]
fn lists_of_every_kind_are_no_drift() {
    let Some(lab) = lab("lists") else { return };
    let meta = |name: &str| json!({ "name": name, "namespace": lab.namespace });
    let many = [
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": meta("s"), "spec": { "selector": { "a": "b" }, "ports": [
            { "name": "a", "port": 80, "targetPort": "web" }, { "name": "b", "port": 80, "protocol": "UDP" }] } }),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta("sa"), "imagePullSecrets": [{ "name": "x" }] }),
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta("r"), "rules": [
            { "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"] }] }),
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta("rb"), "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r" }, "subjects": [{ "kind": "ServiceAccount", "name": "sa" }] }),
        json!({ "apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": meta("p"), "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "a": "b" } } } }),
        json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta("st"), "spec": { "serviceName": "s", "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i", "readinessProbe": { "httpGet": { "path": "/", "port": 80 } } }] } },
            "volumeClaimTemplates": [{ "metadata": { "name": "d" }, "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1024Mi" } } } }] } }),
    ];
    for manifest in &many {
        let state = lab.create(&lab.wanted(manifest));
        lab.delete(&state);
    }
}
