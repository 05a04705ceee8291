use super::*;
use crate::client::Served;
use crate::object::KubernetesObject;
use crate::values::object;
use karmaform_model::{Action, PlanContext, ResourceSpec as _, to_json};
use serde_json::json;

fn live(ty: &str, ingress: Json) -> Json {
    json!({ "apiVersion": "v1", "kind": "Service", "spec": { "type": ty, "ports": [{ "nodePort": 30443 }, { "port": 80 }] },
        "status": { "loadBalancer": { "ingress": ingress } } })
}

fn manifest(spec: Json) -> Json {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s", "namespace": "n" }, "spec": spec })
}

fn wanted(manifest: Json) -> Object {
    let cluster = Value::object([("provider", "kubernetes".into()), ("id", "u".into())]);
    let wait = Value::object([("address", true.into())]);
    KubernetesObject::new().derived(object([("cluster", cluster), ("manifest", implied_from_json(&manifest)), ("wait", wait)]))
}

fn plan(before: Option<&Object>, wanted: &Object) -> Change {
    KubernetesObject::new().plan(&PlanContext { now: 0 }, before, Some(wanted)).unwrap()
}

/// As it is remembered after an apply.
fn made(manifest: Json, addresses: &[&str]) -> Object {
    let mut made = wanted(manifest);
    made.extend(object([("uid", "u".into()), ("node_ports", Value::list(Type::Number, vec![30443i64.into()]))]));
    made.extend((!addresses.is_empty()).then(|| ("addresses".to_owned(), Value::strings(addresses.iter().copied()))));
    made
}

#[test]
fn addresses_and_node_ports_are_read() {
    let of = |kind: &str, live: Json, known: Option<&Object>| {
        let served = Served { kind: kind.to_owned(), plural: "services".to_owned(), namespaced: true };
        let place = Place { api_version: "v1".to_owned(), served, namespace: Some("n".to_owned()) };
        Json::from(facts(&place, &live, known).map(|v| to_json(&v)).to_vec()).to_string()
    };
    let text = |live: Json, known: Option<&Object>| of("Service", live, known);
    let ingress = json!([{ "ip": "192.0.2.7" }, { "hostname": "lb.example.org", "ip": "" }]);
    assert_eq!(text(live("LoadBalancer", ingress.clone()), None), r#"[["192.0.2.7","lb.example.org"],[30443]]"#);
    let known = object([("addresses", Value::strings(["lb.example.org", "192.0.2.7"]))]);
    assert_eq!(text(live("LoadBalancer", ingress.clone()), Some(&known)), r#"[["lb.example.org","192.0.2.7"],[30443]]"#);
    let other = object([("addresses", Value::strings(["lb.example.org"]))]);
    assert_eq!(text(live("LoadBalancer", ingress.clone()), Some(&other)), r#"[["192.0.2.7","lb.example.org"],[30443]]"#);
    assert_eq!(text(live("NodePort", ingress.clone()), None), "[null,[30443]]");
    assert_eq!(text(live("ClusterIP", ingress), None), "[null,null]");
    assert_eq!(of("ConfigMap", live("LoadBalancer", json!([{ "ip": "192.0.2.7" }])), None), "[null,null]");
    assert!(missing(&live("LoadBalancer", json!([]))).is_some() && missing(&live("NodePort", json!([]))).is_none());
    assert_eq!(missing(&live("LoadBalancer", json!([{ "ip": "192.0.2.7" }]))), None);
}

#[test]
fn a_load_balancer_that_nobody_gives_an_address_is_in_need_of_care() {
    let of = |kind: &str, version: &str, live: Json| {
        let served = Served { kind: kind.to_owned(), plural: "services".to_owned(), namespaced: true };
        care(&Place { api_version: version.to_owned(), served, namespace: Some("n".to_owned()) }, &live)
    };
    let told = "nobody gives it an address, so it is not reached from outside";
    assert_eq!(of("Service", "v1", live("LoadBalancer", json!([]))), [told]);
    assert_eq!(of("Service", "v1", json!({ "spec": { "type": "LoadBalancer" } })), [told], "in a list, before anybody looked at it");
    assert!(of("Service", "v1", live("LoadBalancer", json!([{ "ip": "192.0.2.7" }]))).is_empty());
    assert!(of("Service", "v1", live("NodePort", json!([]))).is_empty());
    assert!(of("Service", "serving.knative.dev/v1", live("LoadBalancer", json!([]))).is_empty(), "a namesake");
}

#[test]
fn what_is_not_known_yet_is_only_told_of_what_will_have_it() {
    let ahead = |manifest: Json| {
        let change = plan(None, &wanted(manifest));
        let after = change.after().unwrap().clone();
        FACTS.map(|f| if after[f].is_unknown() { "later" } else { "null" }).join(" ")
    };
    assert_eq!(ahead(manifest(json!({ "type": "LoadBalancer" }))), "later later");
    assert_eq!(ahead(manifest(json!({ "type": "NodePort" }))), "null later");
    assert_eq!(ahead(manifest(json!({}))), "null null");
    assert_eq!(ahead(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } })), "null null");
    let unknown = Value::object([("apiVersion", "v1".into()), ("kind", "Service".into()), ("spec", Value::unknown(Type::Any))]);
    assert_eq!(is_of(&unknown, &ON_NODES), None);
    assert_eq!(is_of(&Value::unknown(Type::Any), &ON_NODES), None);
}

#[test]
fn addresses_stay_while_nothing_says_otherwise() {
    let spec = |annotation: &str, ty: &str| {
        let mut manifest = manifest(json!({ "type": ty, "ports": [{ "port": 443 }] }));
        manifest["metadata"]["annotations"] = json!({ "a": annotation });
        manifest
    };
    let before = made(spec("1", "LoadBalancer"), &["192.0.2.7"]);
    assert_eq!(plan(Some(&before), &wanted(spec("1", "LoadBalancer"))).action(), Action::NoOp);
    let other = plan(Some(&before), &wanted(spec("2", "LoadBalancer")));
    assert_eq!((other.action(), &other.after().unwrap()["addresses"]), (Action::Update, &Value::strings(["192.0.2.7"])));
    let gone = plan(Some(&before), &wanted(spec("1", "ClusterIP")));
    assert!(FACTS.iter().all(|f| gone.after().unwrap()[*f].is_null()), "{gone:?}");
    let node = plan(Some(&before), &wanted(spec("1", "NodePort")));
    assert!(node.after().unwrap()["addresses"].is_null() && node.after().unwrap()["node_ports"].is_unknown());
    let from_node = made(spec("1", "NodePort"), &[]);
    assert!(plan(Some(&from_node), &wanted(spec("1", "LoadBalancer"))).after().unwrap()["addresses"].is_unknown());
}

#[test]
fn an_address_that_has_not_come_is_waited_for_again() {
    let balanced = manifest(json!({ "type": "LoadBalancer" }));
    let again = plan(Some(&made(balanced.clone(), &[])), &wanted(balanced.clone()));
    assert_eq!(again.action(), Action::Update);
    assert!(again.after().unwrap()["addresses"].is_unknown());
    assert!(KubernetesObject::new().impact(&again)[0].contains("nobody gave it an address"));
    let mut unwaited = wanted(balanced.clone());
    unwaited.remove("wait");
    let mut before = made(balanced, &[]);
    before.remove("wait");
    assert_eq!(plan(Some(&before), &unwaited).action(), Action::NoOp);
}

#[test]
fn the_port_that_is_taken_is_read_out_of_the_refusal() {
    let message = "Service \"s\" is invalid: spec.ports[0].nodePort: Invalid value: 30443: provided port is already allocated";
    assert_eq!(taken_port(message), Some(30443));
    assert_eq!(
        taken_port("Service \"s\" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range"),
        None
    );
}
