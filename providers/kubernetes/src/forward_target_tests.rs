use super::*;
use serde_json::json;

fn target(host: &str) -> Target {
    Target::parse(host, 443).unwrap()
}

#[test]
fn hosts_are_services_and_pods_of_services() {
    let check = |host: &str, expected: Option<(&str, &str, Option<&str>)>| {
        let found = Target::parse(host, 1);
        let parts = found.as_ref().map(|t| (t.service.as_str(), t.namespace.as_str(), t.pod.as_deref()));
        assert_eq!(parts, expected, "{host}");
    };
    check("api.ns.svc", Some(("api", "ns", None)));
    check("api.ns.svc.cluster.local", Some(("api", "ns", None)));
    check("api.ns.svc.cluster.local.", Some(("api", "ns", None)));
    check("etcd-0.etcd.ns.svc", Some(("etcd", "ns", Some("etcd-0"))));
    check("etcd-0.etcd.ns.svc.example.com", Some(("etcd", "ns", Some("etcd-0"))));
    check("etcd-0.etcd.svc.svc", Some(("etcd", "svc", Some("etcd-0"))));
    for host in ["", "api", "api.ns", "10.0.0.1", "example.com", "api..svc", "a.b.c.d.svc"] {
        check(host, None);
    }
}

fn service(ports: &Json) -> Json {
    json!({ "spec": { "clusterIP": "10.0.0.1", "ports": ports } })
}

fn pod(name: &str) -> Json {
    json!({ "ip": "10.1.0.1", "targetRef": { "kind": "Pod", "name": name } })
}

#[test]
fn a_port_of_a_service_is_a_port_of_its_ready_pods() {
    let target = target("api.ns.svc");
    let endpoints = json!({ "subsets": [
        { "addresses": [pod("a"), pod("b")], "notReadyAddresses": [pod("c")], "ports": [{ "name": "metrics", "port": 9 }, { "name": "https", "port": 5443 }] },
        { "addresses": [pod("d")], "ports": [{ "name": "https", "port": 6443 }] },
        { "addresses": [pod("e")], "ports": [{ "name": "metrics", "port": 9 }] },
    ] });
    let named =
        service(&json!([{ "name": "metrics", "port": 80, "targetPort": "m" }, { "name": "https", "port": 443, "targetPort": "h" }]));
    let found = behind(&target, Some(&named), Some(&endpoints)).unwrap();
    assert_eq!(found, [("a".to_owned(), 5443), ("b".to_owned(), 5443), ("d".to_owned(), 6443)]);
    let nameless = service(&json!([{ "port": 443, "protocol": "TCP" }]));
    let one = json!({ "subsets": [{ "addresses": [pod("a")], "ports": [{ "port": 8443 }] }] });
    assert_eq!(behind(&target, Some(&nameless), Some(&one)), Ok(vec![("a".to_owned(), 8443)]));
    let headless = json!({ "spec": { "clusterIP": "None", "ports": [{ "port": 443, "targetPort": 8443 }] } });
    assert_eq!(behind(&target, Some(&headless), Some(&one)), Ok(vec![("a".to_owned(), 443)]), "its name leads to the pod itself");
}

#[test]
fn what_is_not_there_is_named() {
    let target = target("api.ns.svc");
    let good = service(&json!([{ "port": 443 }]));
    let check = |service: Option<&Json>, subsets: &Json, part: &str| {
        let error = behind(&target, service, Some(&json!({ "subsets": subsets }))).unwrap_err();
        assert!(error.contains(part) && error.contains("Service \"api\" in the namespace \"ns\""), "{error}");
    };
    check(None, &json!([]), "There is no Service");
    check(Some(&good), &json!([]), "no pod behind");
    check(Some(&good), &Json::Null, "no pod behind");
    check(Some(&service(&json!([{ "port": 80 }]))), &json!([]), "has no port 443");
    check(Some(&good), &json!([{ "notReadyAddresses": [pod("a")], "ports": [{ "port": 1 }] }]), "is not ready");
    check(Some(&good), &json!([{ "notReadyAddresses": [pod("a"), pod("b")], "ports": [{ "port": 1 }] }]), "None of the 2 pods");
    check(Some(&good), &json!([{ "addresses": [{ "ip": "10.9.0.1" }], "ports": [{ "port": 1 }] }]), "are no pods");
    let phase = |phase: &str| the_pod(&target, "p", Some(&json!({ "status": { "phase": phase } })));
    assert_eq!(phase("Running"), Ok(("p".to_owned(), 443)), "ready or not");
    assert!(phase("Pending").unwrap_err().contains("does not run: it is Pending"));
    assert!(the_pod(&target, "p", None).unwrap_err().contains("There is no pod \"p\""));
}
