//! What a control plane expands into: the objects on the host cluster, the same children whatever is known, and what each setting changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::{address, arguments, children, composite, differing, expand, later, lookup, manifest, path, with, with_value};
use karmaform_model::{Address, ChildStep, Expansion, Object, Value, to_json};
use serde_json::{Value as Json, json};

/// Compares with a file; `BLESS=1` writes it.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "{name}: read the difference, then bless it with BLESS=1");
}

fn golden_manifest(name: &str, arguments: &Object, child: &str) {
    golden(name, &(serde_json::to_string_pretty(&manifest(arguments, child)).unwrap() + "\n"));
}

#[test]
fn objects_on_the_host_cluster() {
    let plain = arguments();
    for component in ["apiserver", "kube-controller-manager", "aggregated-apiserver", "controller-manager", "scheduler", "webhook"] {
        golden_manifest(&format!("deployment-{component}.json"), &plain, &format!("component[\"{component}\"]"));
    }
    golden_manifest("service-apiserver.json", &plain, "service[\"apiserver\"]");
    golden_manifest("disruption-budget-scheduler.json", &plain, "disruption_budget[\"scheduler\"]");
    let addons = with(&json!({ "addon": { "search": {}, "metrics-adapter": {}, "descheduler": {} } }));
    for component in ["search", "metrics-adapter", "descheduler"] {
        let args = &manifest(&addons, &format!("component[\"{component}\"]"))["spec"]["template"]["spec"]["containers"][0]["args"];
        let lines: Vec<_> = args.as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
        golden(&format!("args-{component}.txt"), &(lines.join("\n") + "\n"));
    }
    let secrets: BTreeMap<_, _> = children(&addons)
        .into_iter()
        .filter(|(name, _)| name.starts_with("secret[") || name == "kubeconfig_secret")
        .map(|(name, child)| (name, child["manifest"]["stringData"].clone()))
        .collect();
    golden("secrets.json", &(serde_json::to_string_pretty(&secrets).unwrap() + "\n"));
}

#[test]
fn a_plane_with_everything() {
    let apiserver = json!({
        "replicas": 3, "tag": "v1.36.2-fips", "digest": format!("sha256:{}", "ab".repeat(32)),
        "extra_args": { "v": "4", "max-requests-inflight": null, "authorization-mode": "RBAC" },
        "feature_gates": { "B": false, "A": true },
        "resources": { "requests": { "cpu": "250m" } }, "annotations": { "x": "y" }, "node_selector": { "pool": "cp" },
        "affinity": { "nodeAffinity": {} }, "topology_spread": [], "priority_class": "high",
        "disruption_budget": { "min_available": "50%" },
        "extra_volumes": [{ "name": "log", "emptyDir": {} }], "extra_volume_mounts": [{ "name": "log", "mountPath": "/log" }],
        "sidecars": [{ "name": "tail", "image": "busybox" }],
        "patch": { "spec": { "minReadySeconds": 5, "template": { "spec": { "terminationGracePeriodSeconds": null,
            "containers": [{ "name": "tail", "args": ["-f"] }] } } } },
    });
    let everything = with(&json!({
        "name": "eu", "cluster_domain": "corp.example", "service_subnet": "10.200.0.0/16",
        "etcd": { "prefix": "/registry/eu" },
        "kubernetes": { "namespace": "fleet" },
        "karmada_registry": "mirror.example/karmada", "kube_registry": "mirror.example/k8s",
        "image_pull_secrets": ["mirror"], "image_pull_policy": "Always",
        "service": { "type": "LoadBalancer", "annotations": { "a/b": "c" }, "load_balancer_class": "x", "names": ["karmada.example.org", "192.0.2.7"] },
        "oidc": { "issuer_url": "https://id.example", "client_id": "karmada", "groups_claim": "groups", "ca_certificate": "OIDC CA",
                  "required_claims": { "a": "1", "b": "2" } },
        "audit": { "policy": "rules: []" },
        "encryption": { "keys": [{ "name": "k1", "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=" }] },
        "defaults": { "labels": { "team": "fleet" }, "tolerations": [{ "operator": "Exists" }] },
        "component": { "apiserver": apiserver },
    }));
    golden_manifest("everything-apiserver.json", &everything, "component[\"apiserver\"]");
    golden_manifest("everything-service.json", &everything, "service[\"apiserver\"]");
    golden_manifest("everything-config.json", &everything, "secret[\"apiserver-config\"]");
    let expansion = expand(&everything).unwrap();
    let kubeconfig = expansion.outputs["kubeconfig"].resolve(&lookup);
    assert!(kubeconfig.secret && kubeconfig.as_str().unwrap().contains("server: https://karmada.example.org:5443\n"));
    let names = children(&everything)["certificate[\"apiserver\"]"].clone();
    assert_eq!(names["ip_addresses"], json!(["127.0.0.1", "192.0.2.7"]));
    assert!(names["dns_names"].as_array().unwrap().contains(&json!("karmada.example.org")));
    assert!(names["dns_names"].as_array().unwrap().contains(&json!("eu-apiserver.fleet.svc.corp.example")));
}

#[test]
fn the_connection_goes_through_the_host_cluster() {
    let connection = to_json(&expand(&arguments()).unwrap().outputs["connection"].resolve(&lookup));
    let expected = json!({
        "provider": "kubernetes",
        "id": "karmada_control_plane.prod",
        "address": "https://prod-apiserver.karmada-system.svc.cluster.local:5443",
        "karmada_version": "1.19.0",
        "namespace": "karmada-system",
        "estimator_service_prefix": "prod-estimator",
        "ca_certificate": "<ca.certificate>",
        "client_certificate": "<certificate[admin].certificate>",
        "client_key": "<certificate[admin].private_key>",
        "via": { "provider": "kubernetes", "id": "host" },
    });
    assert_eq!(connection, expected);
}

#[test]
fn servers_are_verified_by_the_names_they_are_called_by() {
    let names = |role: &str| {
        let addons = with(&json!({ "addon": { "search": {}, "metrics_adapter": {} } }));
        let child = children(&addons).remove(&format!("certificate[\"{role}\"]")).unwrap();
        child["dns_names"].as_array().unwrap().iter().map(|n| n.as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert!(names("apiserver").contains("prod-apiserver.karmada-system.svc.cluster.local"));
    assert_eq!(names("webhook"), "prod-webhook.karmada-system.svc prod-webhook.karmada-system.svc.cluster.local");
    for component in ["aggregated-apiserver", "search", "metrics-adapter"] {
        assert!(names(component).contains(&format!("karmada-{component}.karmada-system.svc")), "{component}");
        assert!(names(component).contains(&format!("prod-{component}.karmada-system.svc.cluster.local")), "{component}");
    }
}

#[test]
fn only_the_administrator_is_in_the_group_that_may_everything() {
    let all = children(&arguments());
    let certificates = all.iter().filter(|(name, _)| name.starts_with("certificate["));
    for (name, child) in certificates {
        let groups = child["organizations"].as_array().unwrap();
        assert_eq!(*groups == [json!("system:masters")], name == "certificate[\"admin\"]", "{name}");
        assert_eq!(child["usages"].as_array().unwrap().len(), 1, "{name}");
    }
    assert_eq!(all["certificate[\"scheduler-client\"]"]["common_name"], "system:karmada:scheduler");
    assert_eq!(all["certificate[\"kube-controller-manager-client\"]"]["common_name"], "system:kube-controller-manager");
}

#[test]
fn no_key_of_an_authority_is_in_a_pod_but_that_for_agents() {
    let own = with(&json!({ "certificates": { "ca_certificate": "OWN CA", "ca_private_key": "OWN KEY" }, "addon": { "search": {} } }));
    for arguments in [with(&json!({ "addon": { "search": {} } })), own] {
        let mut all = children(&arguments);
        // The Secret that has them is for whoever must make a lost state anew, and for no pod.
        let kept = all.remove("authority_secret").unwrap();
        let kept_name = kept["manifest"]["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(all.values().all(|c| c["manifest"]["kind"] == "Secret" || !c.to_string().contains(&kept_name)), "{kept_name} is used");
        assert!(!kept.to_string().contains("OWN"), "what the configuration has is not kept");
        let without = with(&json!({ "certificates": { "keep_authority": false } }));
        assert!(!children(&without).contains_key("authority_secret"));
        for (name, child) in all.iter().filter(|(_, c)| c["manifest"]["kind"] == "Secret") {
            let text = child.to_string();
            for ca in ["<ca.private_key>", "<front_proxy_ca.private_key>", "OWN KEY"] {
                assert!(!text.contains(ca), "{ca} in {name}");
            }
            assert_eq!(text.contains("<agent_ca.private_key>"), name == "secret[\"kube-controller-manager\"]", "{name}");
            let has_sa_key = text.contains("<service_account_key.private_key>");
            assert_eq!(has_sa_key, name == "secret[\"kube-controller-manager\"]" || name == "secret[\"apiserver\"]", "{name}");
        }
    }
}

#[test]
fn keys_are_secret_wherever_they_go() {
    let own =
        with(&json!({ "certificates": { "ca_certificate": "OWN CA", "ca_private_key": "OWN KEY" }, "encryption": { "config": "KEYS" } }));
    let expansion = expand(&own).unwrap();
    for (at, what) in
        [("secret[\"apiserver\"]", "etcd.key"), ("secret[\"apiserver-config\"]", "encryption.yaml"), ("secret[\"apiserver\"]", "sa.key")]
    {
        let child = expansion.children.iter().find(|c| path(&c.path) == at).unwrap();
        let manifest = child.arguments["manifest"].resolve(&lookup);
        assert!(manifest.get("stringData").unwrap().get(what).unwrap().secret, "{at} {what}");
    }
    assert!(
        !format!("{expansion:?}").contains("OWN KEY")
            && !format!("{expansion:?}").contains("ETCD KEY")
            && !format!("{expansion:?}").contains("KEYS")
    );
}

/// A child's path, its type, the names of its arguments, and what comes before it.
type Shape = (String, String, BTreeSet<String>, Vec<Vec<ChildStep>>);

fn shape(expansion: &Expansion) -> Vec<Shape> {
    let children = expansion.children.iter();
    children.map(|c| (path(&c.path), c.resource_type.clone(), c.arguments.keys().cloned().collect(), c.after.clone())).collect()
}

#[test]
fn the_same_children_whatever_is_known() {
    let known = with(&json!({
        "crds_sha256": "ab",
        "certificates": { "validity_hours": 1000, "renew_before_hours": 100, "ca_certificate": "C", "ca_private_key": "K" },
        "audit": { "policy": "rules: []" }, "encryption": { "config": "x" },
        "oidc": { "issuer_url": "https://x", "client_id": "y", "required_claims": { "a": "b" } },
        "component": { "scheduler": { "labels": { "a": "b" }, "extra_args": { "v": "1" }, "patch": { "spec": {} }, "sidecars": [], "affinity": {},
            "image": "x", "tag": "y", "annotations": { "a": "b" } } },
    }));
    let expected = shape(&expand(&known).unwrap());
    for target in [
        &["etcd"][..],
        &["etcd", "endpoints"],
        &["etcd", "certificate"],
        &["etcd", "prefix"],
        &["crds"],
        &["crds_sha256"],
        &["kubernetes", "cluster"],
        &["kubernetes", "cluster", "connection"],
        &["kubernetes", "cluster", "version"],
        &["certificates", "validity_hours"],
        &["certificates", "ca_certificate"],
        &["certificates", "ca_private_key"],
        &["audit", "policy"],
        &["encryption", "config"],
        &["oidc", "issuer_url"],
        &["oidc", "required_claims"],
        &["component", "scheduler", "labels"],
        &["component", "scheduler", "extra_args"],
        &["component", "scheduler", "patch"],
        &["component", "scheduler", "sidecars"],
        &["component", "scheduler", "affinity"],
        &["component", "scheduler", "image"],
        &["component", "scheduler", "tag"],
        &["component", "scheduler", "annotations"],
        &["component", "scheduler", "extra_args", "v"],
    ] {
        let unknown = forget(&known.clone().into(), target).as_entries().unwrap().clone();
        let expansion = expand(&unknown).unwrap_or_else(|e| panic!("{target:?}: {e:?}"));
        assert_eq!(shape(&expansion), expected, "{target:?}");
        for child in &expansion.children {
            let manifest = child.arguments.get("manifest").map(|m| m.resolve(&lookup));
            if let Some(manifest) = manifest.filter(|_| child.path[0].name != "api") {
                let name = manifest.get("metadata").and_then(|m| m.get("name")).and_then(Value::as_str);
                assert!(name.is_some(), "{target:?}: which object {} is must be known", path(&child.path));
            }
        }
    }
}

/// The same value with the part at this path known after apply.
fn forget(value: &Value, at: &[&str]) -> Value {
    let Some((step, rest)) = at.split_first() else { return later() };
    let mut entries = value.as_entries().cloned().unwrap_or_default();
    let part = entries.get(step).map_or_else(later, |v| forget(v, rest));
    entries.insert((*step).to_owned(), part);
    entries.into()
}

#[test]
fn each_setting_changes_what_it_is_for() {
    let check = |json: Json, expected: &[&str]| {
        let changed = differing(&arguments(), &with(&json));
        assert_eq!(changed, expected, "{json}");
    };
    let scheduler = ["component[\"scheduler\"]"];
    check(json!({ "component": { "scheduler": { "extra_args": { "v": "4" } } } }), &scheduler);
    check(json!({ "component": { "scheduler": { "replicas": 3 } } }), &scheduler);
    check(json!({ "component": { "scheduler": { "replicas": 1 } } }), &["component[\"scheduler\"]", "disruption_budget[\"scheduler\"]"]);
    check(json!({ "component": { "scheduler": { "disruption_budget": false } } }), &["disruption_budget[\"scheduler\"]"]);
    check(json!({ "component": { "scheduler": { "resources": { "requests": { "cpu": "1" } } } } }), &scheduler);
    check(
        json!({ "component": { "controller_manager": { "feature_gates": { "Failover": true } } } }),
        &["component[\"controller-manager\"]"],
    );
    check(json!({ "component": { "scheduler": { "patch": { "spec": { "paused": true } } } } }), &scheduler);
    check(json!({ "scheduler_estimators": true }), &scheduler);
    check(json!({ "audit": { "policy": "rules: []" } }), &["component[\"apiserver\"]", "secret[\"apiserver-config\"]"]);
    check(json!({ "oidc": { "issuer_url": "https://x", "client_id": "y" } }), &["component[\"apiserver\"]"]);
    check(json!({ "service": { "type": "NodePort", "node_port": 32443 } }), &["service[\"apiserver\"]"]);
    check(json!({ "certificates": { "sans": ["x.example"] } }), &["certificate[\"apiserver\"]"]);
    check(json!({ "kube_registry": "mirror.example" }), &["component[\"apiserver\"]", "component[\"kube-controller-manager\"]"]);
    check(
        json!({ "etcd": { "certificate": "NEW", "private_key": "NEW" } }),
        // The prefix only by the way it is looked at, which is no change of it.
        &[
            "component[\"aggregated-apiserver\"]",
            "component[\"apiserver\"]",
            "etcd_prefix",
            "secret[\"aggregated-apiserver\"]",
            "secret[\"apiserver\"]",
        ],
    );
    let karmada = differing(&arguments(), &with(&json!({ "karmada_registry": "mirror.example" })));
    assert!(karmada.iter().all(|c| c.starts_with("component[") && !c.contains("kube-") && c != "component[\"apiserver\"]"), "{karmada:?}");
    let all = differing(&arguments(), &with(&json!({ "defaults": { "labels": { "a": "b" } } })));
    assert_eq!(all.iter().filter(|c| c.starts_with("component[")).count(), 6);
    let search = differing(&arguments(), &with(&json!({ "addon": { "search": {} } })));
    assert!(search.iter().all(|c| c.contains("search")), "{search:?}");
    assert!(search.iter().any(|c| c == "component[\"search\"]") && search.iter().any(|c| c.starts_with("api[")), "{search:?}");
}

#[test]
fn gates_in_defaults_are_for_those_that_have_them() {
    let gates = with(&json!({ "defaults": { "feature_gates": { "Failover": true } } }));
    let args = |component: &str| manifest(&gates, &format!("component[\"{component}\"]")).to_string();
    assert!(args("controller-manager").contains("--feature-gates=Failover=true"));
}

#[test]
fn a_null_takes_a_flag_away_and_own_flags_go_before() {
    let changed =
        with(&json!({ "component": { "controller-manager": { "extra_args": { "cluster-status-update-frequency": null, "v": "9" } } } }));
    let args = &manifest(&changed, "component[\"controller-manager\"]")["spec"]["template"]["spec"]["containers"][0]["args"];
    let text = args.to_string();
    assert!(!text.contains("cluster-status-update-frequency") && text.contains("--v=9"));
    let sorted = args.as_array().unwrap().windows(2).all(|w| w[0].as_str() <= w[1].as_str());
    assert!(sorted, "{args}");
}

#[test]
fn two_planes_in_a_namespace_share_nothing() {
    let names = |name: &str| -> BTreeSet<String> {
        let all = composite().expand(&Address::managed("karmada_control_plane", name), &arguments()).unwrap();
        let of = |c: &karmaform_model::Child| {
            let manifest = c.arguments.get("manifest")?.resolve(&lookup);
            let on_host = c.path[0].name != "api" && c.path[0].name != "namespace";
            on_host.then(|| {
                format!(
                    "{} {}",
                    manifest.get("kind").unwrap().as_str().unwrap(),
                    manifest.get("metadata").unwrap().get("name").unwrap().as_str().unwrap()
                )
            })
        };
        all.children.iter().filter_map(of).collect()
    };
    let (a, b) = (names("a"), names("b"));
    assert!(a.len() > 20 && a.is_disjoint(&b));
    let selectors =
        |name: &str| manifest(&with(&json!({ "name": name })), "component[\"scheduler\"]")["spec"]["selector"]["matchLabels"].clone();
    assert_ne!(selectors("a"), selectors("b"));
}

#[test]
fn children_come_after_what_they_need() {
    let wanted = json!({ "addon": { "search": {} }, "audit": { "policy": "rules: []" }, "kubernetes": { "create_namespace": true } });
    let expansion = expand(&with(&wanted)).unwrap();
    let after: BTreeMap<String, BTreeSet<String>> = expansion
        .children
        .iter()
        .map(|c| {
            let mut needs = c.after.clone();
            c.arguments.values().for_each(|a| a.references(&mut needs));
            (path(&c.path), needs.iter().map(|p| path(p)).collect())
        })
        .collect();
    // Everything named is there, and nothing waits for itself.
    let mut order: Vec<&String> = Vec::new();
    while order.len() < after.len() {
        let ready: Vec<_> =
            after.iter().filter(|(n, a)| !order.contains(n) && a.iter().all(|x| order.contains(&x))).map(|(n, _)| n).collect();
        assert!(
            !ready.is_empty(),
            "these wait for each other, or for nobody: {:?}",
            after.keys().filter(|n| !order.contains(n)).collect::<Vec<_>>()
        );
        order.extend(ready);
    }
    let place = |name: &str| order.iter().position(|n| n.as_str() == name).unwrap_or_else(|| panic!("no {name}"));
    let before = |a: &str, b: &str| assert!(place(a) < place(b), "{a} before {b}");
    before("namespace", "secret[\"apiserver\"]");
    before("secret[\"apiserver-config\"]", "component[\"apiserver\"]");
    before("component[\"apiserver\"]", "crds");
    before("crds", "component[\"controller-manager\"]");
    let clusters = order
        .iter()
        .find(|n| n.starts_with("api[") && n.contains("cluster.karmada.io") && n.to_lowercase().contains("apiservice"))
        .unwrap();
    before("component[\"aggregated-apiserver\"]", clusters);
    before(clusters, "component[\"scheduler\"]");
    before(clusters, "component[\"search\"]");
    assert!(after["component[\"webhook\"]"].contains("crds") && !after["component[\"aggregated-apiserver\"]"].contains("crds"));
}

#[test]
fn old_host_clusters_get_the_budget_that_they_know() {
    let version = |version: Value| {
        let cluster = Value::object([
            ("connection", Value::object([("provider", "kubernetes".into()), ("id", "host".into())])),
            ("version", version),
        ]);
        let arguments = with_value("kubernetes", Value::object([("cluster", cluster)]));
        manifest(&arguments, "disruption_budget[\"webhook\"]")["apiVersion"].clone()
    };
    assert_eq!(version("1.20.2".into()), "policy/v1beta1");
    assert_eq!(version("1.21.0".into()), "policy/v1");
    assert_eq!(version(later()), "policy/v1");
    let connection = Value::object([("provider", "kubernetes".into()), ("id", "host".into()), ("version", "1.19.3".into())]);
    let arguments = with_value("kubernetes", Value::object([("cluster", connection)]));
    assert_eq!(manifest(&arguments, "disruption_budget[\"webhook\"]")["apiVersion"], "policy/v1beta1");
    assert_eq!(address().to_string(), "karmada_control_plane.prod");
}
