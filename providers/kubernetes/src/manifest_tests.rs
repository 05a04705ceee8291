use super::*;
use karmaform_model::Type;
use serde_json::json;

fn value(json: Json) -> Value {
    implied_from_json(&json)
}

#[test]
fn a_manifest_names_its_object() {
    let deployment = value(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a", "namespace": "n" } }));
    let Named::Known(name) = named(&deployment) else { panic!() };
    assert_eq!(name.to_string(), "Deployment.apps/n/a");
    assert_eq!(Name::parse("Deployment.apps/n/a"), Some(name));
    let namespace = value(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a" } }));
    let Named::Known(name) = named(&namespace) else { panic!() };
    assert_eq!(name.to_string(), "Namespace//a");
    assert_eq!(Name::parse("Namespace//a"), Some(name));
    assert_eq!(Name::parse("ClusterRole.rbac.authorization.k8s.io//system:a/b").unwrap().name, "system:a/b");
    let mut later = Value::object([("apiVersion", "v1".into()), ("kind", "Pod".into())]);
    assert!(matches!(named(&later), Named::Wrong));
    later = Value::object([("apiVersion", "v1".into()), ("kind", "Pod".into()), ("metadata", Value::unknown(Type::Any))]);
    assert!(matches!(named(&later), Named::Later) && problems(&later).is_empty());
}

#[test]
fn what_is_not_one_object_is_refused_with_one_diagnostic_each() {
    let details = |json: Json| problems(&value(json)).iter().map(|d| d.detail.clone()).collect::<Vec<_>>();
    assert_eq!(details(json!("text")), ["`manifest` is no object."]);
    assert_eq!(details(json!({})).len(), 3);
    assert_eq!(details(json!({ "apiVersion": "v1", "kind": "List", "items": [] })), ["It is a list of objects."]);
    let mut manifest = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "generateName": "a-" }, "status": {} });
    assert_eq!(details(manifest.clone()).len(), 2);
    manifest["metadata"] = json!({ "name": "a" });
    manifest["status"] = Json::Null;
    assert_eq!(details(manifest), [""; 0]);
}

#[test]
fn secrets_are_marked_and_go_to_the_server_as_it_keeps_them() {
    let manifest = marked(value(
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a", "labels": null }, "stringData": { "k": "hunter22" } }),
    ));
    assert!(manifest.get("stringData").unwrap().secret && !format!("{manifest:?}").contains("hunter22"));
    let sent = request(&manifest);
    assert_eq!(sent, json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "data": { "k": "aHVudGVyMjI=" } }));
    let back = shown(sent, &[&manifest]);
    assert!(back.get("data").is_none());
    assert_eq!(back.get("stringData"), manifest.get("stringData"));
}

#[test]
fn ports_have_a_protocol_on_the_way_and_nulls_come_back() {
    let service = value(
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a", "labels": null }, "spec": { "ports": [{ "port": 80 }] } }),
    );
    let sent = request(&service);
    assert_eq!(sent["spec"]["ports"], json!([{ "port": 80, "protocol": "TCP" }]));
    assert_eq!(shown(sent, &[&service]), service);
}

#[test]
fn what_has_nothing_but_a_name_says_whose_it_is() {
    let labels = |json: Json| request(&value(json))["metadata"]["labels"].clone();
    let namespace = |more: Json| {
        let mut manifest = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a" } });
        manifest["metadata"]["annotations"] = more;
        manifest
    };
    assert_eq!(labels(namespace(Json::Null)), json!({ "app.kubernetes.io/managed-by": "karmaform" }));
    assert_eq!(labels(namespace(json!({}))), json!({ "app.kubernetes.io/managed-by": "karmaform" }));
    assert_eq!(labels(namespace(json!({ "a": "b" }))), Json::Null);
}
