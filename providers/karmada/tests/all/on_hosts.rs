//! A control plane on hosts: what it expands into, how it is placed, what is refused, and in which order it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::{self, children, expand, later, path};
use karmaform_model::{Object, Value, implied_from_json, to_json};
use serde_json::{Value as Json, json};

/// The arguments on these hosts, with more of them.
pub(crate) fn on(hosts: &[&str], more: &Json) -> Object {
    let mut base = to_json(&common::arguments().into());
    let entries = base.as_object_mut().unwrap();
    entries.remove("kubernetes");
    let host = |i: usize| {
        let address = format!("10.0.0.{}", 11 + i);
        json!({ "connection": { "provider": "ssh", "id": format!("{address}:22"), "address": address }, "os": "debian",
                "architecture": "amd64", "systemd_version": 252, "clock_offset": 0, "listening_ports": [22],
                "interfaces": { address.as_str(): "eth0" } })
    };
    let hosts: serde_json::Map<_, _> = hosts.iter().enumerate().map(|(i, name)| ((*name).to_owned(), host(i))).collect();
    entries.insert("hosts".to_owned(), hosts.into());
    fn merge(base: &mut Json, more: &Json) {
        match (base, more) {
            (Json::Object(base), Json::Object(more)) => {
                more.iter().for_each(|(n, v)| merge(base.entry(n.clone()).or_insert(Json::Null), v))
            }
            (base, more) => *base = more.clone(),
        }
    }
    merge(&mut base, more);
    implied_from_json(&base).as_entries().unwrap().clone()
}

pub(crate) fn plain() -> Object {
    on(&["a", "b", "c"], &json!({}))
}

/// Compares with a file; `BLESS=1` writes it.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "{name}: read the difference, then bless it with BLESS=1");
}

#[test]
fn units_and_names() {
    let all = children(&on(&["a", "b"], &json!({ "addon": { "search": {}, "metrics-adapter": {}, "descheduler": {} } })));
    // As the helper of the tests names siblings by their first step, parts of a host are looked at one by one.
    let content = |child: &str| all[child]["content"].as_str().unwrap().to_owned();
    golden("host-unit-apiserver.service", &content("host[\"a\"]/unit[\"apiserver\"]"));
    golden("host-unit-scheduler.service", &content("host[\"a\"]/unit[\"scheduler\"]"));
    golden("host-names.json", &(serde_json::to_string_pretty(&all["host[\"b\"]/names"]).unwrap() + "\n"));
    let mut flags = String::new();
    for (name, child) in all.iter().filter(|(n, _)| n.starts_with("host[\"a\"]/unit[")) {
        let text = child["content"].as_str().unwrap();
        let lines =
            text.lines().filter_map(|l| l.trim().strip_prefix("\"--")).map(|l| format!("  --{}\n", l.trim_end_matches(['\\', ' ', '"'])));
        flags.push_str(&format!("{name}\n{}", lines.collect::<String>()));
    }
    golden("host-flags.txt", &flags);
}

#[test]
fn components_are_asked_how_they_are() {
    let all = children(&on(&["a"], &json!({ "addon": { "search": {} }, "ports": { "scheduler-health": 20351 } })));
    let health = |component: &str| all[&format!("host[\"a\"]/unit[\"{component}\"]")]["health"].clone();
    assert_eq!(health("apiserver"), "https://127.0.0.1:5443/readyz");
    assert_eq!(health("kube-controller-manager"), "https://127.0.0.1:10257/healthz");
    assert_eq!(health("scheduler"), "http://127.0.0.1:20351/healthz");
    assert_eq!(health("search"), Json::Null);
}

#[test]
fn hosts_of_ipv6_have_services_of_ipv6() {
    let at = |addresses: Json, more: Json| {
        let mut all = json!({ "addresses": addresses });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        on(&["a", "b"], &all)
    };
    let six = json!({ "a": "fd00::b", "b": "FD00:0::C" });
    let flags = |arguments: &Object| children(arguments)["host[\"b\"]/unit[\"apiserver\"]"]["content"].as_str().unwrap().to_owned();
    let text = flags(&at(six.clone(), json!({})));
    for flag in ["--advertise-address=fd00::c", "--bind-address=::", "--service-cluster-ip-range=fd00:10:96::/112"] {
        assert!(text.contains(flag), "no {flag} in {text}");
    }
    let text = flags(&at(six.clone(), json!({ "service_subnet": "fd11::/112,10.11.0.0/16" })));
    assert!(text.contains("--service-cluster-ip-range=fd11::/112,10.11.0.0/16"), "{text}");
    assert!(flags(&plain()).contains("--service-cluster-ip-range=10.96.0.0/12"));
    for (arguments, expected) in [
        (at(json!({ "a": "fd00::b" }), json!({})), "\"b\" in `hosts` is reached at 10.0.0.12, and \"a\" at fd00::b."),
        (at(six.clone(), json!({ "service_subnet": "10.11.0.0/16" })), "the hosts' addresses are of IPv6"),
        (at(json!({}), json!({ "service_subnet": "fd11::/112,10.11.0.0/16" })), "the hosts' addresses are of IPv4"),
    ] {
        let found: Vec<_> = expand(&arguments).err().into_iter().flatten().map(|d| d.detail).collect();
        assert!(found.iter().any(|d| d.contains(expected)), "no {expected} in {found:?}");
    }
}

#[test]
fn every_component_is_alone_with_its_keys() {
    let all = children(&plain());
    for (name, child) in all.iter().filter(|(n, _)| n.contains("/file[")) {
        let component = name.split("/file[\"").nth(1).unwrap().split('/').next().unwrap();
        assert_eq!((child["mode"].as_str(), child["owner"].as_str()), (Some("0600"), Some(format!("prod-{component}").as_str())), "{name}");
        assert_eq!(child["path"].as_str().unwrap().rsplit_once('/').unwrap().0, format!("/etc/karmada/prod/{component}"), "{name}");
    }
    for (name, child) in all.iter().filter(|(n, _)| n.contains("/authority[") || n.ends_with("/kubeconfig")) {
        assert_eq!((child["mode"].as_str(), child["owner"].as_str()), (Some("0600"), Some("root")), "{name}");
    }
    let keys: Vec<_> = all.keys().filter(|n| n.contains("/file[") && n.contains("agent-ca.key")).collect();
    assert!(
        !keys.is_empty() && keys.iter().all(|n| n.contains("kube-controller-manager/")),
        "only the signer has the key of agents' certificates: {keys:?}"
    );
    // Long names of users are none.
    let long = children(&on(&["a"], &json!({ "name": "a-name-of-exactly-forty-characters-or-so" })));
    for (name, child) in long.iter().filter(|(n, _)| n.contains("/user[")) {
        assert!(child["name"].as_str().unwrap().len() <= 31, "{name}: {child}");
    }
}

#[test]
fn nothing_of_a_cluster_is_left_and_paths_are_whole() {
    let all = children(&plain());
    let text = serde_json::to_string(&all).unwrap();
    for word in ["POD_IP", "/etc/karmada/pki", "/etc/karmada/config"] {
        assert!(!text.contains(word), "{word}");
    }
    let kinds: BTreeSet<_> = expand(&plain()).unwrap().children.into_iter().map(|c| c.resource_type).collect();
    let expected = [
        "etcd_prefix",
        "kubernetes_archive",
        "kubernetes_list",
        "kubernetes_object",
        "ssh_artifact",
        "ssh_directory",
        "ssh_file",
        "ssh_hosts_entries",
        "ssh_systemd_unit",
        "ssh_user",
        "tls_ca",
        "tls_certificate",
        "tls_private_key",
    ];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    assert_eq!(all["api[\"apiservice v1alpha1.cluster.karmada.io\"]"]["manifest"]["spec"]["service"]["port"], 7443);
    let hooks = serde_json::to_string(&all["api[\"mutatingwebhookconfiguration mutating-config\"]"]).unwrap();
    assert!(hooks.contains("https://prod-webhook.karmada-system.svc:8443/mutate-") && !hooks.contains(":443/"), "{hooks}");
    assert!(serde_json::to_string(&all["crds"]["overrides"]).unwrap().contains("https://prod-webhook.karmada-system.svc:8443/convert"));
    assert_eq!(all["certificate[\"apiserver\"]"]["names"], json!(["10.0.0.11", "10.0.0.12", "10.0.0.13"]));
}

#[test]
fn the_same_children_whatever_is_known() {
    let paths = |arguments: &Object| {
        expand(arguments).unwrap().children.iter().map(|c| (path(&c.path), c.resource_type.clone())).collect::<Vec<_>>()
    };
    let expected = paths(&plain());
    let mut open = plain();
    let host = |known: bool| if known { json!({ "provider": "ssh", "id": "x" }) } else { Json::Null };
    let hosts: Object = ["a", "b", "c"]
        .map(|n| {
            (
                n.to_owned(),
                if n == "a" { later() } else { Value::object([("connection", later()), ("os", implied_from_json(&host(true)))]) },
            )
        })
        .into();
    open.insert("hosts".to_owned(), hosts.into());
    open.insert("etcd".to_owned(), later());
    open.insert("kube_source".to_owned(), later());
    assert_eq!(paths(&open), expected);
}

#[test]
fn programs_come_from_where_it_is_said() {
    let source = |more: &Json, child: &str| {
        let release = if child.starts_with("kube") { "kube-1.36.2" } else { "karmada-1.19.0" };
        let made = children(&on(&["a"], more)).remove(&format!("host[\"a\"]/program[\"{release}/{child}\"]")).unwrap();
        ["source", "member", "platform"].map(|n| made[n].as_str().unwrap_or_default().to_owned()).join(" ")
    };
    assert_eq!(source(&json!({}), "karmada-scheduler"), "oci://docker.io/karmada/karmada-scheduler:v1.19.0 karmada-scheduler linux/amd64");
    let mirror =
        json!({ "kube_registry": "r.example/k8s", "component": { "apiserver": { "digest": format!("sha256:{}", "ab".repeat(32)) } } });
    assert!(source(&mirror, "kube-apiserver").starts_with("oci://r.example/k8s/kube-apiserver:v1.36.2@sha256:abab"));
    let archive = json!({ "kube_source": "/srv/kubernetes-server-linux-{arch}.tar.gz", "karmada_source": "https://x/{version}/{program}" });
    assert_eq!(source(&archive, "kube-apiserver"), "/srv/kubernetes-server-linux-amd64.tar.gz kube-apiserver ");
    assert_eq!(source(&archive, "karmada-webhook"), "https://x/1.19.0/karmada-webhook  ");
    let tagged = json!({ "karmada_source": "/a.tgz", "component": { "scheduler": { "tag": "v1.19.0-mine" } } });
    assert!(source(&tagged, "karmada-scheduler").starts_with("oci://docker.io/karmada/karmada-scheduler:v1.19.0-mine "));
    let own = json!({ "karmada_source": "/a.tgz", "component": { "scheduler": { "source": "/b" } } });
    assert_eq!(source(&own, "karmada-scheduler"), "/b  ");
    let sums = json!({ "kube_source": "https://x/{program}", "kube_source_sha256": "https://x/v{version}/{arch}/{program}.sha256" });
    let made = children(&on(&["a"], &sums)).remove("host[\"a\"]/program[\"kube-1.36.2/kube-apiserver\"]").unwrap();
    assert_eq!(made["sha256"], "https://x/v1.36.2/amd64/kube-apiserver.sha256");
}

#[test]
fn people_are_told_of_each_host_or_of_what_is_in_front() {
    let kubeconfig =
        |more: &Json| expand(&on(&["a", "b"], more)).unwrap().outputs["kubeconfig"].resolve(&common::lookup).as_str().unwrap().to_owned();
    let each = kubeconfig(&json!({}));
    for line in
        ["    server: https://10.0.0.11:5443\n", "- name: prod-b\n", "    server: https://10.0.0.12:5443\n", "current-context: prod\n"]
    {
        assert!(each.contains(line), "{line} is not in\n{each}");
    }
    // Agents of members know all of them by one name; what is in front of them is enough.
    let addresses = |hosts: &[&str], more: &Json| {
        let connection = expand(&on(hosts, more)).unwrap().outputs["connection"].resolve(&common::lookup);
        connection.get("addresses").map(to_json)
    };
    assert_eq!(addresses(&["a", "b"], &json!({})), Some(json!(["10.0.0.11", "10.0.0.12"])));
    let one = json!({ "component": { "apiserver": { "hosts": ["b"] } } });
    assert_eq!((addresses(&["a", "b"], &one), addresses(&["a"], &json!({}))), (None, None));
    assert_eq!(addresses(&["a", "b"], &json!({ "load_balancer": { "vip": "10.0.0.100" } })), None);
    let balanced = kubeconfig(&json!({ "load_balancer": { "address": "karmada.example.org", "port": 443 } }));
    assert!(balanced.contains("server: https://karmada.example.org:443\n") && !balanced.contains("prod-b"), "{balanced}");
    let all = children(&on(&["a"], &json!({ "load_balancer": { "address": "karmada.example.org" } })));
    assert_eq!(all["certificate[\"apiserver\"]"]["names"], json!(["10.0.0.11", "karmada.example.org"]));
    assert!(all["host[\"a\"]/unit[\"apiserver\"]"]["content"].as_str().unwrap().contains("shutdown-delay-duration=10s"));
}

#[test]
fn a_name_of_ones_own_takes_the_place_of_entries() {
    let all = children(&on(&["a", "b"], &json!({ "dns_name": "karmada.internal", "addon": { "search": {} } })));
    assert!(!all.keys().any(|n| n.ends_with("/names")));
    for role in ["apiserver", "webhook", "aggregated-apiserver", "search"] {
        let names = &all[&format!("certificate[\"{role}\"]")]["dns_names"];
        assert!(names.as_array().unwrap().contains(&json!("karmada.internal")), "{role}: {names}");
    }
    let hooks = all["api[\"mutatingwebhookconfiguration mutating-config\"]"].to_string();
    assert!(hooks.contains("https://karmada.internal:8443/mutate-"), "{hooks}");
    assert_eq!(all["api[\"service karmada-search\"]"]["manifest"]["spec"]["externalName"], "karmada.internal");
    // Who works with another address is started anew.
    let triggers = |more: &Json| children(&on(&["a"], more))["host[\"a\"]/unit[\"webhook\"]"]["restart_triggers"].clone();
    assert_ne!(triggers(&json!({})), triggers(&json!({ "ports": { "apiserver": 6443 } })));
}

#[test]
fn a_load_balancer_of_ours() {
    let vip = json!({ "load_balancer": { "vip": "10.0.0.100" } });
    let all = children(&on(&["a", "b", "c"], &vip));
    let content = |child: &str| all[child]["content"].as_str().unwrap().to_owned();
    golden("host-haproxy.cfg", &content("host[\"a\"]/file[\"load-balancer/haproxy.cfg\"]"));
    golden("host-keepalived.conf", &content("host[\"b\"]/file[\"load-balancer/keepalived.conf\"]"));
    golden("host-unit-haproxy.service", &content("host[\"a\"]/unit[\"haproxy\"]"));
    golden("host-unit-keepalived.service", &content("host[\"a\"]/unit[\"keepalived\"]"));
    assert_eq!(all["host[\"c\"]/package[\"keepalived\"]"]["name"], "keepalived");
    let health = |unit: &str| all[&format!("host[\"a\"]/unit[\"{unit}\"]")]["health"].clone();
    assert_eq!((health("keepalived"), health("haproxy")), (json!("https://10.0.0.100:6443/readyz"), Json::Null));
    let v6 = |vip: &str| {
        children(&on(&["a"], &json!({ "addresses": { "a": "fd00::b" }, "load_balancer": { "vip": vip, "interface": "eth0" } })))
    };
    let spelled = v6("fd00::100");
    assert_eq!(spelled["host[\"a\"]/unit[\"keepalived\"]"]["health"], "https://[fd00::100]:6443/readyz");
    assert_eq!(spelled, v6("FD00:0:0::0100"), "however it is written");
    assert_eq!(all["certificate[\"apiserver\"]"]["names"], json!(["10.0.0.11", "10.0.0.12", "10.0.0.13", "10.0.0.100"]));
    let outputs = expand(&on(&["a", "b"], &vip)).unwrap().outputs;
    assert_eq!(outputs["endpoint"].resolve(&|_, _| later()).as_str(), Some("https://10.0.0.100:6443"));

    // With programs of the user's no package is asked for; and it is where the API servers are.
    let more = json!({ "load_balancer": { "vip": "10.0.0.100", "haproxy_source": "/srv/haproxy-{arch}", "interface": "bond0" },
                       "component": { "apiserver": { "hosts": ["b"] } } });
    let all = children(&on(&["a", "b"], &more));
    let names: Vec<_> = all.keys().filter(|n| n.contains("haproxy") || n.contains("keepalived")).cloned().collect();
    let expected = [
        "file[\"load-balancer/haproxy.cfg\"]",
        "file[\"load-balancer/keepalived.conf\"]",
        "package[\"keepalived\"]",
        "program[\"haproxy\"]",
        "unit[\"haproxy\"]",
        "unit[\"keepalived\"]",
        "user[\"haproxy\"]",
    ];
    assert_eq!(names, expected.map(|n| format!("host[\"b\"]/{n}")));
    let program = &all["host[\"b\"]/program[\"haproxy\"]"];
    assert_eq!(program["source"], "/srv/haproxy-amd64");
    // A new program is tried with the configuration that it will have, and a new configuration by the program that will read it.
    let configuration = |name: &str| all[&format!("host[\"b\"]/file[\"load-balancer/{name}\"]")].clone();
    let trial = program["check"].as_str().unwrap();
    assert!(trial.contains(configuration("haproxy.cfg")["content"].as_str().unwrap()) && trial.contains("\"$FILE\" -c -q -f "), "{trial}");
    assert_eq!(configuration("haproxy.cfg")["check"], "/opt/karmaform/karmada-prod/load-balancer/haproxy -c -q -f \"$FILE\"");
    assert_eq!(configuration("keepalived.conf")["check"], "/usr/sbin/keepalived --config-test -f \"$FILE\"");
    let keepalived = all["host[\"b\"]/file[\"load-balancer/keepalived.conf\"]"]["content"].as_str().unwrap();
    assert!(keepalived.contains("interface bond0\n") && !keepalived.contains("unicast_peer"), "{keepalived}");
}

#[test]
fn components_are_placed() {
    let placed = on(&["a", "b", "c"], &json!({ "component": { "scheduler": { "hosts": ["b"] }, "webhook": { "hosts": ["b", "c"] } } }));
    let all = children(&placed);
    let units = |component: &str| -> Vec<char> {
        all.keys().filter(|n| n.ends_with(&format!("/unit[\"{component}\"]"))).filter_map(|n| n.chars().nth(6)).collect()
    };
    assert_eq!((units("scheduler"), units("webhook"), units("apiserver")), (vec!['b'], vec!['b', 'c'], vec!['a', 'b', 'c']));
    // Where there is no webhook the others' are called.
    let lines = &all["host[\"a\"]/names"]["entries"];
    let with_webhook: Vec<_> = lines
        .as_array()
        .unwrap()
        .iter()
        .filter(|l| l["names"].to_string().contains("webhook"))
        .map(|l| l["address"].as_str().unwrap())
        .collect();
    assert_eq!(with_webhook, ["10.0.0.12", "10.0.0.13"]);
}

#[test]
fn what_can_not_be_is_refused() {
    let check = |more: &Json, words: &str| {
        let text = match expand(&on(&["a", "b"], more)) {
            Ok(_) => String::new(),
            Err(found) => found.iter().map(|d| format!("{} {} {}\n", d.summary, d.detail, d.hints.join(" "))).collect(),
        };
        assert!(text.contains(words), "{more}: {text}");
    };
    check(&json!({ "kubernetes": { "cluster": { "connection": { "provider": "kubernetes", "id": "x" } } } }), "one of them");
    check(&json!({ "service": { "type": "NodePort" } }), "is for a control plane in a cluster");
    check(&json!({ "component": { "scheduler": { "replicas": 2 } } }), "is for pods");
    check(&json!({ "component": { "scheduler": { "hosts": ["x"] } } }), "is no host of this control plane");
    check(&json!({ "component": { "scheduler": { "unit": { "User": "root" } } } }), "which karmaform sets itself");
    check(&json!({ "ports": { "apiserver": 8443 } }), "listen on 8443 both");
    check(&json!({ "ports": { "apiserver": 443 } }), "below 1024");
    check(&json!({ "ports": { "api": 6443 } }), "there are apiserver");
    check(&json!({ "hosts": { "a": { "connection": { "provider": "kubernetes" } } } }), "which is no host");
    check(&json!({ "hosts": { "b": { "connection": { "id": "10.0.0.11:22" } } } }), "same host");
    check(&json!({ "hosts": { "a": { "systemd_version": 239 } } }), "has systemd 239");
    check(&json!({ "hosts": { "a": { "architecture": "arm" } } }), "of the architecture arm");
    check(&json!({ "addresses": { "x": "10.0.0.1" } }), "`hosts` has none");
    check(&json!({ "addresses": { "b": "10.0.0.11" } }), "both be reached at 10.0.0.11");
    let several = json!({ "b": { "connection": { "address": "b.example" }, "addresses": ["10.0.0.5", "172.17.0.1"] } });
    check(&json!({ "hosts": several }), "has several of its own");
    let balancer = |block: Json| json!({ "load_balancer": block });
    check(&balancer(json!({})), "must be written");
    check(&balancer(json!({ "vip": "10.0.0.9", "address": "x.example" })), "are both there");
    check(&balancer(json!({ "vip": "x.example" })), "is no IP address");
    check(&balancer(json!({ "vip": "10.0.0.12" })), "which is the address of the host \"b\" itself");
    check(&balancer(json!({ "vip": "fd00::9" })), "but the host \"a\" has 10.0.0.11");
    check(&balancer(json!({ "vip": "10.0.0.9", "port": 5443 })), "is the port of \"apiserver\"");
    check(&balancer(json!({ "vip": "10.0.0.9", "port": 443 })), "no right to listen");
    check(&balancer(json!({ "vip": "10.0.0.9", "interface": "eth0 {" })), "no name of a network interface");
    check(&balancer(json!({ "address": "x.example", "router_id": 7 })), "which has a `vip`");
    let mut closed = json!({ "component": { "apiserver": { "extra_args": { "anonymous_auth": "false" } } } });
    assert!(expand(&on(&["a", "b"], &closed)).is_ok(), "nobody asks");
    closed["load_balancer"] = json!({ "address": "x.example" });
    assert!(expand(&on(&["a", "b"], &closed)).is_ok(), "it may look whether somebody listens, and no more");
    closed["load_balancer"] = json!({ "vip": "10.0.0.9" });
    check(&closed, "haproxy asks without credentials");
    check(
        &json!({ "hosts": { "b": { "interfaces": { "10.0.0.12": null } } }, "load_balancer": { "vip": "10.0.0.9" } }),
        "must be written: none",
    );
    let named = json!({ "b": { "connection": { "address": "b.example", "required": false }, "addresses": ["10.0.0.5"] } });
    check(&json!({ "hosts": named }), "need not answer");
    check(&json!({ "kube_source_sha256": "ab" }), "which is not there");
    check(&json!({ "component": { "scheduler": { "source_sha256": "ab" } } }), "which is not there");
    let cluster = common::with(&json!({ "component": { "scheduler": { "source": "/x" } } }));
    assert!(expand(&cluster).unwrap_err().iter().any(|d| d.detail.contains("is for hosts")));
}

#[test]
fn what_is_put_down_before_etcd_is_there_knows_nothing_of_it() {
    let more = json!({ "addon": { "search": {}, "descheduler": {} }, "load_balancer": { "vip": "10.0.0.9" } });
    let known = on(&["a", "b", "c"], &more);
    let mut unknown = known.clone();
    unknown.insert("etcd".to_owned(), later());
    let of = |arguments: &Object| -> BTreeMap<String, karmaform_model::Child> {
        expand(arguments).unwrap().children.into_iter().map(|c| (path(&c.path), c)).collect()
    };
    let (with, without) = (of(&known), of(&unknown));
    let apart: BTreeSet<&String> = with.iter().filter(|(_, c)| c.apart == ["etcd"]).map(|(name, _)| name).collect();
    for name in &apart {
        assert_eq!(with[*name], without[*name], "{name} is made before etcd is known");
        // Nothing that waits for etcd comes before a program, which takes longest.
        if !["/program[", "/directory[", "/user["].iter().any(|part| name.contains(part)) {
            continue;
        }
        let mut needed = with[*name].after.clone();
        with[*name].arguments.values().for_each(|a| a.references(&mut needed));
        for other in needed {
            assert!(apart.contains(&path(&other)), "{name} needs {}", path(&other));
        }
    }
    let waits = |part: &str| with.keys().filter(|n| n.contains(part)).all(|n| !apart.contains(n));
    assert!(waits("/unit[") && waits("/file[\"apiserver/etcd") && waits("api["), "{apart:?}");
    let early = |part: &str| with.keys().filter(|n| n.contains(part)).all(|n| apart.contains(n));
    assert!(early("/program[") && early("/user[") && early("/directory[") && early("/names"), "{apart:?}");
}
