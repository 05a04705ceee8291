//! Services: addresses that come and go, and ports on nodes.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use karmaform_model::{Action, Change, Object, Value, to_json};
use serde_json::{Value as Json, json};

use crate::lab::{Lab, lab, object};

fn service(lab: &Lab, name: &str, spec: Json) -> Object {
    let mut spec = spec;
    spec["selector"] = json!({ "app": name });
    lab.wanted(&json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": lab.namespace }, "spec": spec }))
}

fn balanced(lab: &Lab, annotation: &str, seconds: i64) -> Object {
    let mut wanted = service(lab, "lb", json!({ "type": "LoadBalancer", "ports": [{ "port": 443 }] }));
    let mut manifest = to_json(&wanted["manifest"]);
    manifest["metadata"]["annotations"] = json!({ "a": annotation });
    wanted.insert("manifest".into(), karmaform_model::implied_from_json(&manifest));
    wanted.insert("wait".into(), object([("address", true.into())]).into());
    wanted.insert("timeout".into(), seconds.into());
    wanted
}

/// What a controller does that has load balancers to give.
fn give(lab: &Lab, ingress: &Json) {
    let path = format!("/api/v1/namespaces/{}/services/lb", lab.namespace);
    let end = Instant::now() + Duration::from_secs(20);
    let mut live = loop {
        let found = lab.kubectl(&["-n", &lab.namespace, "get", "services", "-o", "json", "--field-selector", "metadata.name=lb"]);
        let found: Json = serde_json::from_str(&found).unwrap();
        if found["items"][0].is_object() {
            break found["items"][0].clone();
        }
        assert!(Instant::now() < end, "the Service was never made");
        sleep(Duration::from_millis(100));
    };
    live["status"] = json!({ "loadBalancer": { "ingress": ingress } });
    lab.kubectl_with(&["replace", "--raw", &format!("{path}/status"), "-f", "-"], &live);
}

#[test]
fn the_address_of_a_load_balancer_is_waited_for_and_remembered() {
    let Some(lab) = lab("load_balancer") else { return };
    // Nobody gives it one.
    let error = lab.apply(&Change::Create { after: balanced(&lab, "1", 2) }).unwrap_err();
    assert_eq!(error.summary, "Waited in vain");
    assert!(error.detail.contains("nobody gave it an address") && error.hints[0].contains("LoadBalancer"), "{error:?}");
    let event = json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "lb.1", "namespace": lab.namespace }, "type": "Warning",
        "reason": "SyncLoadBalancerFailed", "message": "quota of addresses exceeded", "lastTimestamp": "2026-01-01T00:00:00Z",
        "involvedObject": { "kind": "Service", "namespace": lab.namespace, "name": "lb",
            "uid": lab.kubectl(&["-n", &lab.namespace, "get", "service", "lb", "-o", "jsonpath={.metadata.uid}"]) } });
    lab.kubectl_with(&["create", "-f", "-"], &event);
    let error = lab.apply(&Change::Create { after: balanced(&lab, "1", 2) }).unwrap_err();
    assert!(error.detail.contains("SyncLoadBalancerFailed: quota of addresses exceeded"), "{error:?}");
    // It is there, but it is waited for again.
    let again = lab.plan(None, Some(&balanced(&lab, "1", 20))).unwrap();
    assert!(again.action() == Action::Update && again.after().unwrap()["addresses"].is_unknown(), "{again:?}");
    let state = scope(|scope| {
        let giver = scope.spawn(|| {
            sleep(Duration::from_secs(1));
            give(&lab, &json!([{ "ip": "192.0.2.7" }, { "hostname": "lb.example.org" }]));
        });
        let state = lab.apply(&again).unwrap().unwrap();
        giver.join().unwrap();
        state
    });
    let both = Value::strings(["192.0.2.7", "lb.example.org"]);
    assert_eq!(state["addresses"], both);
    assert!(state["node_ports"].as_items().is_some_and(|p| p.len() == 1), "{state:?}");
    let wanted = balanced(&lab, "1", 20);
    lab.step(Some(&state), Some(&wanted), Action::NoOp);
    lab.step(None, Some(&wanted), Action::NoOp);
    // In a list of several objects say less of themselves.
    let all = lab.observe_all(&[lab.ask(Some(&state), Some(&wanted)), lab.ask(None, Some(&service(&lab, "other", json!({}))))]);
    assert_eq!(all[0].clone().unwrap().unwrap()["addresses"], both);
    // The status is no field of ours, and its order is none.
    give(&lab, &json!([{ "hostname": "lb.example.org" }, { "ip": "192.0.2.7" }]));
    let seen = lab.observe(Some(&state), Some(&wanted)).unwrap().unwrap();
    assert_eq!((&seen["addresses"], &seen["manifest"]), (&both, &state["manifest"]));
    let state = lab.step(Some(&state), Some(&balanced(&lab, "2", 20)), Action::Update).unwrap();
    assert_eq!(state["addresses"], both, "what the plan showed stays");
    // Another address is no change of the Service, and its dependents see it.
    give(&lab, &json!([{ "ip": "192.0.2.8" }]));
    let change = lab.plan(Some(&state), Some(&balanced(&lab, "2", 20))).unwrap();
    assert_eq!((change.action(), &change.after().unwrap()["addresses"]), (Action::NoOp, &Value::strings(["192.0.2.8"])));
    lab.delete(&state);
}

#[test]
fn a_node_port_is_told_and_one_that_is_taken_is_refused_in_the_plan() {
    let Some(lab) = lab("node_port") else { return };
    let free = service(&lab, "free", json!({ "type": "NodePort", "ports": [{ "port": 443 }] }));
    assert!(lab.plan(None, Some(&free)).unwrap().after().unwrap()["node_ports"].is_unknown());
    let state = lab.create(&free);
    let port = state["node_ports"].as_items().and_then(|p| p[0].as_i64()).expect("a port");
    let fixed = |name: &str| service(&lab, name, json!({ "type": "NodePort", "ports": [{ "port": 443, "nodePort": port }] }));
    let error = lab.plan(None, Some(&fixed("other"))).unwrap_err();
    assert_eq!(error.summary, "Node port is taken");
    assert!(error.detail.contains(&format!("port {port} on every node, but the Service \"free\"")), "{error:?}");
    assert_eq!(lab.apply(&Change::Create { after: fixed("other") }).unwrap_err().summary, "Node port is taken", "it may come in between");
    // The one that it has may be fixed.
    let own = lab.step(Some(&state), Some(&fixed("free")), Action::NoOp).unwrap();
    let none = service(&lab, "free", json!({ "type": "ClusterIP", "ports": [{ "port": 443 }] }));
    let state = lab.step(Some(&own), Some(&none), Action::Update).unwrap();
    assert!(state["node_ports"].is_null() && state["addresses"].is_null());
}

#[test]
fn a_kind_that_must_be_there_is_missed_in_the_plan() {
    let Some(lab) = lab("expected") else { return };
    let of = |version: &str, kind: &str| {
        let manifest = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "a", "namespace": lab.namespace } });
        let mut wanted = lab.wanted(&manifest);
        wanted.insert("expect_kind".into(), true.into());
        wanted
    };
    let error = lab.plan(None, Some(&of("gateway.example.com/v1", "TLSRoute"))).unwrap_err();
    assert_eq!(error.summary, "Kind is not known to the cluster");
    assert!(error.detail.contains("serves no TLSRoute of gateway.example.com/v1") && error.hints[0].contains("Install"), "{error:?}");
    let error = lab.plan(None, Some(&of("autoscaling/v7", "HorizontalPodAutoscaler"))).unwrap_err();
    assert!(error.hints[0].contains("autoscaling/v1"), "{error:?}");
    assert_eq!(lab.plan(None, Some(&of("v1", "ConfigMap"))).unwrap().action(), Action::Create);
}
