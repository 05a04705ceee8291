//! The ways to the API server: which address people get, which names its certificate has, and what hands connections on to it.

use crate::common::{self, arguments, children, differing, expand, later, manifest, path, with};
use karmaform_model::{Arg, ChildStep, Object, Type, Value, to_json};
use serde_json::{Value as Json, json};

/// What the cluster gave the Service.
fn given(step: &[ChildStep], attribute: &str) -> Value {
    match (path(step).as_str(), attribute) {
        ("service[\"apiserver\"]", "addresses") => Value::strings(["fd00::7", "lb.example.org"]),
        ("service[\"apiserver\"]", "node_ports") => Value::list(Type::Number, vec![31_443i64.into()]),
        _ => common::lookup(step, attribute),
    }
}

/// The endpoint, which is in all three places where people find it.
fn endpoint(json: &Json) -> String {
    let expansion = expand(&with(json)).unwrap();
    let endpoint = expansion.outputs["endpoint"].resolve(&given).as_str().expect("a text").to_owned();
    let text = |arg: &Arg| format!("{}", to_json(&arg.resolve(&given)));
    let manifest = |name: &str| text(&expansion.children.iter().find(|c| path(&c.path) == name).unwrap().arguments["manifest"]);
    assert!(text(&expansion.outputs["kubeconfig"]).contains(&format!("server: {endpoint}\\n")), "{endpoint}");
    assert!(manifest("kubeconfig_secret").contains(&format!("server: {endpoint}\\n")), "{endpoint}");
    assert!(manifest("api[\"configmap cluster-info\"]").contains(&format!("server: \\\"{endpoint}\\\"\\n")), "{endpoint}");
    endpoint
}

#[test]
fn people_get_the_first_name_that_leads_there() {
    let service = |json: Json| json!({ "service": json });
    let inside = "https://prod-apiserver.karmada-system.svc.cluster.local:5443";
    for (arguments, expected) in [
        (json!({}), inside),
        (service(json!({ "type": "NodePort" })), inside),
        (service(json!({ "names": ["k.example.org", "x"] })), "https://k.example.org:5443"),
        (service(json!({ "names": ["fd00::1"], "external_port": 443 })), "https://[fd00::1]:443"),
        (service(json!({ "type": "NodePort", "names": ["n"], "node_port": 32_443 })), "https://n:32443"),
        (service(json!({ "type": "NodePort", "names": ["n"] })), "https://n:31443"),
        (service(json!({ "type": "NodePort", "names": ["n"], "node_port": 32_443, "external_port": 6443 })), "https://n:6443"),
        (service(json!({ "type": "LoadBalancer" })), "https://[fd00::7]:5443"),
        (service(json!({ "type": "LoadBalancer", "external_port": 443 })), "https://[fd00::7]:443"),
        (service(json!({ "type": "LoadBalancer", "names": ["k.example.org"] })), "https://k.example.org:5443"),
        (json!({ "ingress": { "host": "i.example.org" } }), "https://i.example.org:443"),
        (
            json!({ "ingress": { "host": "i.example.org", "port": 8443 }, "service": { "type": "LoadBalancer" } }),
            "https://i.example.org:8443",
        ),
        (json!({ "tls_route": { "hosts": ["r.example.org"], "gateway": { "name": "g" } } }), "https://r.example.org:443"),
        (json!({ "ingress": { "host": "i.example.org" }, "service": { "names": ["k.example.org"] } }), "https://k.example.org:5443"),
    ] {
        assert_eq!(endpoint(&arguments), expected, "{arguments}");
    }
}

#[test]
fn the_certificate_has_every_name_that_leads_there() {
    let arguments = with(&json!({
        "service": { "type": "LoadBalancer", "names": ["k.example.org"] },
        "ingress": { "host": "i.example.org" },
        "tls_route": { "hosts": ["r.example.org", "*.r.example.org"], "gateway": { "name": "g" } },
    }));
    let certificate = children(&arguments)["certificate[\"apiserver\"]"].clone();
    let names = certificate["dns_names"].to_string();
    for name in ["k.example.org", "i.example.org", "r.example.org", "*.r.example.org"] {
        assert!(names.contains(&format!("\"{name}\"")), "{name}: {names}");
    }
    assert_eq!(certificate["names"], "<service[apiserver].addresses>");
    assert!(children(&arguments)["service[\"apiserver\"]"]["wait"]["address"].as_bool().unwrap());
    for (name, child) in children(&arguments) {
        assert_eq!(child.get("names").is_some(), name == "certificate[\"apiserver\"]", "{name}");
    }
    let plain = children(&common::arguments());
    assert!(plain["certificate[\"apiserver\"]"].get("names").is_none() && plain["service[\"apiserver\"]"].get("wait").is_none());
}

/// The paths of the children whose arguments are made of what the cluster gives.
fn made_of(arguments: &Object, attribute: &str) -> Vec<String> {
    let seen = |child: &karmaform_model::Child| {
        let used = std::cell::Cell::new(false);
        let look = |step: &[ChildStep], name: &str| {
            used.set(used.get() || name == attribute);
            given(step, name)
        };
        child.arguments.values().for_each(|a| drop(a.resolve(&look)));
        used.get()
    };
    expand(arguments).unwrap().children.iter().filter(|c| seen(c)).map(|c| path(&c.path)).collect()
}

#[test]
fn another_address_changes_the_certificate_and_what_people_are_told() {
    let balanced = with(&json!({ "service": { "type": "LoadBalancer" } }));
    let expected = ["certificate[\"apiserver\"]", "kubeconfig_secret", "api[\"configmap cluster-info\"]"];
    assert_eq!(made_of(&balanced, "addresses"), expected);
    let named = with(&json!({ "service": { "type": "LoadBalancer", "names": ["k.example.org"] } }));
    assert_eq!(made_of(&named, "addresses"), ["certificate[\"apiserver\"]"]);
    let node = with(&json!({ "service": { "type": "NodePort", "names": ["n"] } }));
    assert_eq!(made_of(&node, "node_ports"), ["kubeconfig_secret", "api[\"configmap cluster-info\"]"]);
    let fixed = with(&json!({ "service": { "type": "NodePort", "names": ["n"], "node_port": 32_443 } }));
    assert_eq!(made_of(&fixed, "node_ports"), [""; 0]);
}

#[test]
fn an_ingress_hands_tls_on() {
    let plain = with(&json!({ "ingress": { "host": "i.example.org" } }));
    let made = manifest(&plain, "ingress");
    assert_eq!(
        made,
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {
                "name": "prod-apiserver",
                "namespace": "karmada-system",
                "labels": manifest(&plain, "service[\"apiserver\"]")["metadata"]["labels"],
                "annotations": { "nginx.ingress.kubernetes.io/ssl-passthrough": "true" },
            },
            "spec": {
                "rules": [{ "host": "i.example.org", "http": { "paths": [{ "path": "/", "pathType": "Prefix",
                    "backend": { "service": { "name": "prod-apiserver", "port": { "number": 5443 } } } }] } }],
                "tls": [{ "hosts": ["i.example.org"] }],
            },
        })
    );
    assert_eq!(manifest(&plain, "service[\"apiserver\"]")["spec"]["ports"][0]["port"], 5443, "where the Ingress sends to");
    let own = with(&json!({ "ingress": { "host": "i.example.org", "class_name": "haproxy", "annotations": { "a/b": "c" } } }));
    let made = manifest(&own, "ingress");
    assert_eq!((&made["spec"]["ingressClassName"], &made["metadata"]["annotations"]), (&json!("haproxy"), &json!({ "a/b": "c" })));
    assert!(
        differing(&arguments(), &plain)
            .iter()
            .all(|c| ["ingress", "certificate[\"apiserver\"]", "kubeconfig_secret"].contains(&c.as_str()) || c.contains("cluster-info")),
        "{:?}",
        differing(&arguments(), &plain)
    );
    let mut open = own.clone();
    let mut ingress = open["ingress"].as_entries().unwrap().clone();
    ingress.insert("annotations".into(), later());
    open.insert("ingress".into(), ingress.into());
    assert_eq!(expand(&open).unwrap().children.len(), expand(&own).unwrap().children.len());
}

#[test]
fn a_route_hands_tls_on_and_its_kind_must_be_there() {
    let gateway = json!({ "name": "g", "namespace": "gateways", "section_name": "tls" });
    let arguments = with(&json!({ "tls_route": { "hosts": ["r.example.org"], "gateway": gateway, "api_version": "v1alpha2" } }));
    let child = children(&arguments)["tls_route"].clone();
    assert_eq!(child["expect_kind"], true);
    let made = &child["manifest"];
    assert_eq!((&made["apiVersion"], &made["kind"]), (&json!("gateway.networking.k8s.io/v1alpha2"), &json!("TLSRoute")));
    assert_eq!(
        made["spec"],
        json!({
            "hostnames": ["r.example.org"],
            "parentRefs": [{ "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g", "namespace": "gateways", "sectionName": "tls" }],
            "rules": [{ "backendRefs": [{ "name": "prod-apiserver", "port": 5443 }] }],
        })
    );
    let default = with(&json!({ "tls_route": { "hosts": ["r.example.org"], "gateway": { "name": "g" } } }));
    assert_eq!(manifest(&default, "tls_route")["apiVersion"], "gateway.networking.k8s.io/v1");
}
