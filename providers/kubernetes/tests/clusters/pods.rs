//! Why pods are not up, on a node.

use karmaform_model::{Change, Value};
use serde_json::{Value as Json, json};

use crate::lab::{LACKING, Lab, lab_with_node, object};

/// Of the image that is always there.
pub(crate) const IMAGE: &str = "karmaform.test/busybox:1";

fn workload(lab: &Lab, kind: &str, name: &str, container: &Json) -> Json {
    let mut main = json!({ "name": "main", "image": IMAGE });
    for (name, value) in container.as_object().unwrap() {
        main[name] = value.clone();
    }
    let mut spec = json!({ "replicas": 1, "selector": { "matchLabels": { "app": name } }, "template": { "metadata": { "labels": { "app": name } },
        "spec": { "terminationGracePeriodSeconds": 0, "containers": [main] } } });
    if kind == "StatefulSet" {
        spec["serviceName"] = name.into();
    }
    json!({ "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name, "namespace": lab.namespace }, "spec": spec })
}

/// What is said when it does not come up within so many seconds.
fn said(lab: &Lab, manifest: &Json, seconds: i64) -> String {
    let mut wanted = lab.wanted(manifest);
    wanted.insert("wait".into(), object([("rollout", true.into())]).into());
    wanted.insert("timeout".into(), seconds.into());
    let error = lab.apply(&Change::Create { after: wanted }).unwrap_err();
    assert_eq!(error.summary, "Waited in vain", "{error:?}");
    error.detail
}

#[track_caller]
fn check(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
}

#[test]
fn a_rollout_that_does_not_come_up_says_why() {
    let Some(lab) = lab_with_node("why") else { return };
    let image = workload(&lab, "Deployment", "image", &json!({ "image": "karmaform.test/none:1" }));
    check(
        &said(&lab, &image, 5),
        &["Pod image-", "can't get the image \"karmaform.test/none:1\" of its container \"main\": Failed to pull"],
    );
    let large = workload(&lab, "StatefulSet", "large", &json!({ "resources": { "requests": { "cpu": "900" } } }));
    check(
        &said(&lab, &large, 2),
        &["0 of 1 replicas are ready", "Pod large-0 can't be scheduled: 0/1 nodes are available", "Insufficient cpu"],
    );
    let mut crash = workload(&lab, "Deployment", "crash", &json!({ "command": ["/bin/sh", "-c", "echo first; echo no way >&2; exit 7"] }));
    // What runs is ready at once where nothing asks it, and on a busy machine it is seen in that moment.
    crash["spec"]["minReadySeconds"] = 5.into();
    let crash = said(&lab, &crash, 8);
    check(&crash, &["container \"main\" that ends with code 7, started again", "it said last: ", "no way"]);
    let mut volume = workload(&lab, "StatefulSet", "volume", &json!({}));
    volume["spec"]["template"]["spec"]["volumes"] = json!([{ "name": "v", "secret": { "secretName": "not-there" } }]);
    volume["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = json!([{ "name": "v", "mountPath": "/v" }]);
    check(&said(&lab, &volume, 4), &["Pod volume-0 has a volume that can't be mounted", "not-there"]);
    let config = workload(&lab, "DaemonSet", "config", &json!({ "envFrom": [{ "secretRef": { "name": "not-there" } }] }));
    let mut config = config;
    config["spec"].as_object_mut().unwrap().remove("replicas");
    check(&said(&lab, &config, 5), &["can't be started: CreateContainerConfigError", "not-there"]);
    let probe = json!({ "readinessProbe": { "exec": { "command": ["/bin/sh", "-c", "echo not yet; exit 1"] }, "periodSeconds": 1 } });
    let probe = workload(&lab, "Deployment", "probe", &probe);
    check(&said(&lab, &probe, 6), &["its container \"main\" is not ready: Readiness probe failed: not yet"]);
}

#[test]
fn a_stateful_set_with_on_delete_rolls_out_while_old_pods_run() {
    let Some(lab) = lab_with_node("on-delete") else { return };
    let set = |revision: &str| {
        let mut set = workload(&lab, "StatefulSet", "s", &json!({}));
        set["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
        set["spec"]["template"]["metadata"]["annotations"] = json!({ "example.com/revision": revision });
        let mut wanted = lab.wanted(&set);
        wanted.insert("wait".into(), object([("rollout", true.into())]).into());
        wanted.insert("timeout".into(), Value::from(20i64));
        wanted
    };
    let state = lab.create(&set("1"));
    lab.step(Some(&state), Some(&set("2")), karmaform_model::Action::Update);
}

#[test]
fn an_image_that_is_nowhere_is_refused_before_anything_is_done() {
    let Some(lab) = lab_with_node("nowhere") else { return };
    let wanted = |name: &str, image: &str| lab.wanted(&workload(&lab, "Deployment", name, &json!({ "image": image })));
    let asks = [("a", LACKING), ("b", LACKING), ("c", "karmaform.test/unheard-of:1"), ("d", IMAGE)];
    let asks = asks.map(|(name, image)| lab.ask(None, Some(&wanted(name, image))));
    let [a, b, c, d] = &lab.observe_all(&asks)[..] else { panic!() };
    let error = a.clone().unwrap_err();
    assert_eq!(error.summary, "Image does not exist");
    check(&error.detail, &[LACKING, "no node of", "would never start"]);
    assert_eq!((b, c, d), (&Ok(None), &Ok(None), &Ok(None)), "told of once, and of nothing that nobody is sure of");
    // What runs is not asked for again: tags come and go.
    let state = lab.create(&wanted("d", IMAGE));
    let mut before = state.clone();
    before.insert("manifest".into(), wanted("d", LACKING)["manifest"].clone());
    assert!(lab.observe(Some(&before), Some(&wanted("d", LACKING))).is_ok());
    assert!(lab.observe(Some(&state), Some(&wanted("d", LACKING))).is_err());
    lab.delete(&state);
}
