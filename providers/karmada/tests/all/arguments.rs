//! Arguments that are refused, each with its message.

use crate::common::{address, arguments, expand, later, with, with_value};
use karmaform_model::{Object, Type, Value};
use serde_json::{Value as Json, json};

fn refused_object(arguments: &Object, summary: &str, words: &str) {
    let Err(found) = expand(arguments) else { panic!("not refused: {words}") };
    let text = |d: &karmaform_model::Diagnostic| format!("{} {}", d.detail, d.hints.join(" "));
    assert!(found.iter().any(|d| d.summary == summary && text(d).contains(words)), "{summary}, {words}: {found:?}");
    for diagnostic in found.iter() {
        assert!(diagnostic.detail.ends_with('.') && !diagnostic.summary.ends_with('.'), "{diagnostic:?}");
        assert_eq!(diagnostic.address, Some(address()));
    }
}

fn refused(json: Json, summary: &str, words: &str) {
    refused_object(&with(&json), summary, words);
}

const UNUSABLE: &str = "An argument that can't be used";

#[test]
fn names_and_places() {
    for name in ["Prod", "a b", "-a", "a-", "9a", "", &"a".repeat(41)] {
        refused(json!({ "name": name }), UNUSABLE, "`name` must");
    }
    refused(json!({ "kubernetes": { "namespace": "a.b" } }), UNUSABLE, "`kubernetes.namespace` is not the name");
    refused(json!({ "kubernetes": { "cluster": { "connection": { "provider": "ssh" } } } }), UNUSABLE, "no Kubernetes cluster");
    refused(json!({ "kubernetes": null }), "Nowhere to run", "Write `kubernetes {");
    refused(json!({ "cluster_domain": "a..b" }), UNUSABLE, "no DNS domain");
    refused(json!({ "service_subnet": "10.0.0.0" }), UNUSABLE, "no address range");
    refused(json!({ "karmada_registry": "https://x" }), UNUSABLE, "no registry");
    refused(json!({ "image_pull_policy": "Sometimes" }), UNUSABLE, "\"IfNotPresent\", \"Always\", \"Never\"");
    for name in
        ["name", "version", "kube_version", "cluster_domain", "service_subnet", "component", "addon", "defaults", "service", "install_crds"]
    {
        refused_object(&with_value(name, later()), "A value that must be known when planning", &format!("`{name}` decides"));
    }
    let replicas = Value::map(Type::Any, [("scheduler".to_owned(), Value::object([("replicas", later())]))].into());
    refused_object(&with_value("component", replicas), "A value that must be known when planning", "`replicas` of component \"scheduler\"");
}

#[test]
fn versions_and_crds() {
    refused(json!({ "version": "one" }), "A Karmada version that can't be used", "three numbers");
    refused(json!({ "version": null }), UNUSABLE, "`version` is missing");
    refused(json!({ "kube_version": "36" }), UNUSABLE, "no version of Kubernetes");
    refused(json!({ "crds": null }), "No CRDs", "`install_crds = false`");
    refused(json!({ "install_crds": false }), "CRDs given and not wanted", "Remove one");
    let without = expand(&with(&json!({ "crds": null, "install_crds": false }))).unwrap();
    assert!(without.children.iter().all(|c| c.path[0].name != "crds"));
}

#[test]
fn etcd() {
    refused(json!({ "etcd": null }), UNUSABLE, "has no list `endpoints`");
    refused(json!({ "etcd": { "endpoints": [] } }), UNUSABLE, "no endpoints");
    refused(json!({ "etcd": { "endpoints": ["http://a:2379"] } }), UNUSABLE, "start with \"https://\"");
    refused(json!({ "etcd": { "certificate": null } }), UNUSABLE, "has no `certificate`");
    for prefix in ["x", "/", "/x/", "/a b"] {
        refused(json!({ "etcd": { "prefix": prefix } }), UNUSABLE, "`prefix` that can't be used");
    }
}

#[test]
fn exposure_and_certificates() {
    refused(json!({ "service": { "type": "Ingress" } }), UNUSABLE, "\"ClusterIP\", \"NodePort\", \"LoadBalancer\"");
    refused(json!({ "service": { "type": "NodePort", "node_port": 80 } }), UNUSABLE, "from 30000 to 32767");
    refused(json!({ "service": { "node_port": 32443 } }), UNUSABLE, "ClusterIP has none");
    refused(json!({ "service": { "load_balancer_class": "x" } }), UNUSABLE, "not of the type LoadBalancer");
    refused(json!({ "service": { "names": ["https://x"] } }), UNUSABLE, "no DNS name");
    refused(json!({ "service": { "names": ["*.x"] } }), UNUSABLE, "wildcard");
    refused(json!({ "certificates": { "sans": ["a b"] } }), UNUSABLE, "`certificates.sans` has");
    refused(json!({ "certificates": { "ca_certificate": "x" } }), "Half a certificate authority", "`certificates.ca_private_key` is not");
    refused(json!({ "certificates": { "ca_private_key": "x" } }), "Half a certificate authority", "`certificates.ca_certificate` is not");
    refused(json!({ "certificates": { "validity_hours": 10 } }), "Certificates that would be renewed at once", "about a third");
    refused(json!({ "certificates": { "ca_validity_hours": 100 } }), UNUSABLE, "can't outlive");
}

#[test]
fn ways_in() {
    refused(json!({ "service": { "external_port": 443 } }), "A port without a name", "`service.names`");
    refused(json!({ "service": { "type": "NodePort", "external_port": 443 } }), "A port without a name", "no `service.names`");
    refused(json!({ "service": { "external_port": 0, "names": ["x"] } }), UNUSABLE, "from 1 to 65535");
    let ingress = |more: Json| {
        let mut ingress = json!({ "host": "k.example.org" });
        ingress.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "ingress": ingress })
    };
    refused(json!({ "ingress": {} }), UNUSABLE, "`ingress.host` is missing");
    for host in ["192.0.2.7", "*.example.org", "https://x", "fd00::1"] {
        refused(ingress(json!({ "host": host })), UNUSABLE, "`ingress.host` is no DNS name");
    }
    refused(ingress(json!({ "port": 70_000 })), UNUSABLE, "from 1 to 65535");
    let route = |more: Json| {
        let mut route = json!({ "hosts": ["k.example.org"], "gateway": { "name": "g" } });
        route.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "tls_route": route })
    };
    refused(route(json!({ "hosts": [] })), UNUSABLE, "`tls_route.hosts` is missing or empty");
    refused(route(json!({ "hosts": null })), UNUSABLE, "`tls_route.hosts` is missing or empty");
    refused(route(json!({ "hosts": ["192.0.2.7"] })), UNUSABLE, "no DNS name");
    refused(route(json!({ "hosts": ["*.example.org", "k.example.org"] })), UNUSABLE, "wildcard");
    refused(route(json!({ "api_version": "v1beta1" })), UNUSABLE, "\"v1\", \"v1alpha3\", \"v1alpha2\"");
    refused(route(json!({ "gateway": null })), UNUSABLE, "`tls_route.gateway.name` is missing");
    refused(route(json!({ "gateway": { "name": "g", "namespace": "a.b" } })), UNUSABLE, "`tls_route.gateway.namespace` is not the name");
    refused_object(
        &with_value("ingress", Value::object([("host", later())])),
        "A value that must be known when planning",
        "`ingress.host`",
    );
    // One mistake is told once.
    let Err(found) = expand(&with(&json!({ "ingress": {}, "tls_route": {} }))) else { panic!() };
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(expand(&with(&route(json!({ "hosts": ["k.example.org", "*.k.example.org"] })))).is_ok());
}

#[test]
fn extras() {
    refused(json!({ "encryption": {} }), "One of two ways to encrypt", "either");
    refused(json!({ "encryption": { "keys": [] } }), UNUSABLE, "nothing would be encrypted");
    refused(json!({ "encryption": { "keys": [{ "name": "a", "secret": "hunter22" }] } }), UNUSABLE, "32 bytes in base64");
    refused(json!({ "oidc": { "issuer_url": "http://x", "client_id": "y" } }), UNUSABLE, "https://");
    refused(json!({ "audit": { "policy": "x" } }), UNUSABLE, "no `rules`");
    let closed = |value: &str| json!({ "component": { "apiserver": { "extra_args": { "anonymous-auth": value } } } });
    refused(closed("False"), "A flag that can't be used", "the probes of its pods ask without credentials");
    assert!(expand(&with(&closed("true"))).is_ok());
    let Err(found) = expand(&with(&json!({ "encryption": { "keys": [{ "name": "a", "secret": "hunter22" }] } }))) else { panic!() };
    assert!(!format!("{found:?}").contains("hunter22"));
}

#[test]
fn components() {
    let of = |settings: Json| json!({ "component": { "scheduler": settings } });
    refused(json!({ "component": { "scheduller": {} } }), "Unknown component", "Did you mean \"scheduler\"?");
    refused(json!({ "component": { "search": {} } }), "Not a block `component`", "Write `addon \"search\"`");
    refused(json!({ "addon": { "webhook": {} } }), "Not a block `addon`", "Write `component \"webhook\"`");
    refused(json!({ "addon": { "metricsadapter": {} } }), "Unknown addon", "Did you mean \"metrics-adapter\"?");
    refused(json!({ "component": { "controller-manager": {}, "controller_manager": {} } }), "A component twice", "controller-manager");
    refused(of(json!({ "replicas": -1 })), UNUSABLE, "`replicas` of component \"scheduler\" must be a whole number from 0");
    refused(of(json!({ "replicas": 1.5 })), UNUSABLE, "whole number");
    refused(of(json!({ "image": "x:v1" })), UNUSABLE, "the arguments `tag` and `digest`");
    refused(of(json!({ "tag": "a b" })), UNUSABLE, "not the tag");
    refused(of(json!({ "digest": "sha256:1" })), UNUSABLE, "64 hexadecimal digits");
    refused(of(json!({ "labels": { "a b": "c" } })), UNUSABLE, "no label");
    refused(of(json!({ "labels": { "app.kubernetes.io/name": "c" } })), UNUSABLE, "for itself");
    refused(of(json!({ "annotations": { "karmaform.io/restart": "c" } })), UNUSABLE, "for itself");
    refused(of(json!({ "resources": [] })), UNUSABLE, "must be an object");
    refused(of(json!({ "tolerations": {} })), UNUSABLE, "must be a list of objects");
    refused(of(json!({ "sidecars": [{ "image": "x" }] })), UNUSABLE, "without a `name`");
    refused(of(json!({ "patch": { "metadata": { "name": "x" } } })), UNUSABLE, "`metadata.name`, which can't be changed");
    refused(of(json!({ "patch": { "spec": { "selector": {} } } })), UNUSABLE, "`spec.selector`, which can't be changed");
    for budget in
        [json!(true), json!({}), json!({ "min_available": 1, "max_unavailable": 1 }), json!({ "min_available": "x" }), json!({ "most": 1 })]
    {
        refused(of(json!({ "disruption_budget": budget })), UNUSABLE, "a number or a percentage");
    }
    refused(json!({ "defaults": { "replicas": 1000 } }), UNUSABLE, "`defaults.replicas`");
}

#[test]
fn flags_and_gates() {
    let flags = "A flag that can't be used";
    let of = |args: Json| json!({ "component": { "controller-manager": { "extra_args": args } } });
    refused(of(json!({ "--v": "4" })), flags, "Write `v`.");
    refused(of(json!({ "v=4": "" })), flags, "not the name of a flag");
    refused(of(json!({ "v": "4\n5" })), flags, "line break");
    refused(of(json!({ "etcd-prefix": "/x" })), flags, "Write `prefix` in `etcd`");
    refused(of(json!({ "failover-eviction-timeout": "5m" })), flags, "controller-manager");
    let both = json!({ "component": { "controller-manager": { "extra_args": { "feature-gates": "Failover=true" }, "feature_gates": { "Failover": true } } } });
    refused(both, flags, "would hide the other");
    let gates = "A feature gate that can't be used";
    refused(json!({ "component": { "controller-manager": { "feature_gates": { "Failovr": true } } } }), gates, "controller-manager");
    assert!(expand(&arguments()).is_ok());
}

#[test]
fn everything_wrong_is_said_at_once() {
    let Err(found) = expand(&with(&json!({ "name": "A", "service_subnet": "x", "crds": null, "component": { "x": {} } }))) else {
        panic!()
    };
    assert_eq!(found.len(), 4, "{found:?}");
}
