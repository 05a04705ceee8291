//! Why pods are not up, on a node.

use std::time::{Duration, Instant};

use karmaform_model::{Action, Change, Object, Value};
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

/// As composites write theirs, and waited for.
fn own(lab: &Lab, manifest: &Json) -> Object {
    let mut wanted = lab.wanted(manifest);
    wanted.extend(object([("exclusive", true.into()), ("reclaim", true.into()), ("timeout", 30i64.into())]));
    if manifest["kind"] != "Service" {
        wanted.insert("wait".into(), object([("rollout", true.into())]).into());
    }
    wanted
}

fn pods(lab: &Lab, selector: &str) -> Vec<Json> {
    let found: Json = serde_json::from_str(&lab.kubectl(&["-n", &lab.namespace, "get", "pods", "-l", selector, "-o", "json"])).unwrap();
    found["items"].as_array().unwrap().clone()
}

fn name(pod: &Json) -> &str {
    pod["metadata"]["name"].as_str().unwrap()
}

#[test]
fn a_pod_with_an_image_of_somebody_elses_is_made_anew() {
    let Some(lab) = lab_with_node("by-hand") else { return };
    let command = json!({ "command": ["/bin/sh", "-c", "exec sleep 3600"] });
    for kind in ["Deployment", "StatefulSet"] {
        let mut manifest = workload(&lab, kind, "w", &command);
        manifest["spec"]["replicas"] = 2.into();
        let wanted = own(&lab, &manifest);
        let state = lab.create(&wanted);
        let before = pods(&lab, "app=w");
        let altered = name(&before[0]).to_owned();
        lab.kubectl(&["-n", &lab.namespace, "set", "image", &format!("pod/{altered}"), "main=karmaform.test/theirs:1"]);
        let seen = lab.observe(Some(&state), Some(&wanted)).unwrap().unwrap();
        let shown = karmaform_model::to_json(&seen["manifest"]).to_string();
        check(&shown, &[&format!("karmaform.test/theirs:1 (in the pod {altered})")]);
        let change = lab.plan(Some(&state), Some(&wanted)).unwrap();
        assert_eq!(change.action(), Action::Update, "{change:?}");
        lab.apply(&change).unwrap();
        assert!(pods(&lab, "app=w").iter().all(|p| p["spec"]["containers"][0]["image"] == IMAGE));
        // The other one goes on.
        assert!(pods(&lab, "app=w").iter().any(|p| p["metadata"]["uid"] == before[1]["metadata"]["uid"]));
        lab.step(Some(&state), Some(&wanted), Action::NoOp);
        lab.delete(&state);
        let until = Instant::now() + Duration::from_secs(60);
        while !pods(&lab, "app=w").is_empty() {
            assert!(Instant::now() < until, "its pods do not end");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
fn a_pod_that_somebody_puts_behind_a_service_is_told() {
    let Some(lab) = lab_with_node("stranger") else { return };
    let manifest = workload(&lab, "Deployment", "w", &json!({ "command": ["/bin/sh", "-c", "exec sleep 3600"] }));
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "w", "namespace": lab.namespace },
        "spec": { "selector": { "app": "w" }, "ports": [{ "port": 80 }] } });
    let wanted = [own(&lab, &manifest), own(&lab, &service)];
    let states = wanted.clone().map(|w| lab.create(&w));
    let care = || {
        let asks = [0, 1].map(|i| lab.ask(Some(&states[i]), Some(&wanted[i])));
        let seen = lab.observe_all(&asks).remove(1).unwrap().unwrap();
        seen["care"].as_items().unwrap().iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(care().is_empty());
    lab.kubectl(&["-n", &lab.namespace, "run", "theirs", "--labels=app=w", "--image", IMAGE, "--image-pull-policy=Never"]);
    check(&care().join("; "), &["it leads to the pod theirs, too"]);
    lab.kubectl(&["-n", &lab.namespace, "delete", "pod", "theirs", "--grace-period=0", "--force"]);
    assert!(care().is_empty());
    states.iter().for_each(|s| lab.delete(s));
}

/// The data is where it was, for the next claim of that name.
#[test]
fn a_volume_whose_claim_is_gone_is_there_for_the_next_one() {
    let Some(lab) = lab_with_node("released") else { return };
    let of = lab.namespace.as_str();
    let volume = json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": of }, "spec": {
        "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": { "path": "/nowhere", "type": "DirectoryOrCreate" },
        "claimRef": { "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "data", "namespace": of } } });
    let mut wanted = lab.wanted(&volume);
    wanted.extend(object([("exclusive", true.into()), ("reclaim", true.into())]));
    let state = lab.create(&wanted);
    let claim = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data", "namespace": of }, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": { "requests": { "storage": "1Gi" } } } });
    let is = |phase: &str| {
        let until = Instant::now() + Duration::from_secs(30);
        while lab.kubectl(&["get", "pv", of, "-o", "jsonpath={.status.phase}"]) != phase {
            assert!(Instant::now() < until, "it is not {phase}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    lab.kubectl_with(&["create", "-f", "-"], &claim);
    is("Bound");
    lab.step(Some(&state), Some(&wanted), Action::NoOp);
    lab.kubectl(&["-n", of, "delete", "pvc", "data"]);
    is("Released");
    let state = lab.step(Some(&state), Some(&wanted), Action::Update).unwrap();
    is("Available");
    lab.step(Some(&state), Some(&wanted), Action::NoOp);
    lab.kubectl_with(&["create", "-f", "-"], &claim);
    is("Bound");
    lab.kubectl(&["-n", of, "delete", "pvc", "data"]);
    lab.delete(&state);
}
