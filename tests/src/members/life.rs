//! Two members from nothing, through changes and damage, and away again with what was propagated to one of them.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use karmaform_model::{Snapshot, Status};
use serde_json::{Value, json};

use super::fleet::Fleet;
use super::planes::{Cluster, Planes, written};
use super::{eventually, is_in_every_namespace};

/// Runs it all.
pub(super) fn members_join_change_and_leave(planes: &Planes) {
    let Planes { p1, m1, m2, .. } = planes;
    let before = [m1, m2].map(|m| m.inventory());
    let before_p1 = p1.inventory();
    let fleet = Fleet::new(p1);
    let gold = json!({ "region": "eu", "zones": ["a", "b"], "labels": { "tier": "gold" } });
    let write = |of_m1: &Value, of_m2: &Value| {
        fleet.members(&[("m1", &m1.kubeconfig, of_m1.clone()), ("m2", &m2.kubeconfig, of_m2.clone())]);
    };
    write(&gold, &json!({}));
    fleet.converge();
    for (name, member, more) in [("m1", m1, &gold), ("m2", m2, &json!({ "labels": {} }))] {
        is_joined(p1, name, member, more);
    }

    changes_are_made_in_place(&fleet, p1, &|of_m1| write(of_m1, &json!({})));
    write(&gold, &json!({}));
    fleet.converge();
    damage_is_repaired(&fleet, p1, m1);
    fleet.members(&[("m1", &m1.kubeconfig, gold.clone()), ("m2", &m2.kubeconfig, json!({})), ("twin", &m1.kubeconfig, json!({}))]);
    let refused = fleet.project.must(1, &["plan"]);
    assert!(refused.contains("The same is there under another name") && refused.contains("\"m1\""), "{refused}");

    write(&gold, &json!({ "keep_resources": true }));
    fleet.plans(&["update m2/membership"]);
    fleet.converge();
    for (name, member) in [("m1", m1), ("m2", m2)] {
        propagate(p1, name, member);
    }
    fleet.project.no_changes();
    fleet.members(&[]);
    let planned = fleet.plan(&[]);
    assert_eq!(planned.impact("m1"), ["leaves; is deleted in the member: ConfigMap default/propagated"], "{}", planned.text);
    let stays = "leaves; stays in the member, and nobody looks after it any more: ConfigMap default/propagated";
    assert_eq!(planned.impact("m2"), [stays], "{}", planned.text);
    fleet.project.must(0, &["apply", "saved"]);
    fleet.project.no_changes();
    assert_eq!(m1.get(PROPAGATED), None);
    assert_eq!(m2.object(PROPAGATED)["data"], json!({ "k": "v" }));
    m2.run(&["delete", "configmap", "propagated"]);
    m1.is_as_before(&before[0]);
    m2.is_as_before(&before[1]);
    // The namespace of credentials is Karmada's own, and empty.
    let left = || p1.more_than(&before_p1).into_iter().filter(|path| !is_in_every_namespace(path)).collect::<BTreeSet<_>>();
    eventually("the plane lets go of everything", || left().len() <= 1);
    assert!(left().iter().all(|path| path == "namespaces//karmada-cluster"), "{:?}", left());
}

const PROPAGATED: &str = "/api/v1/namespaces/default/configmaps/propagated";

/// What Karmada does to bring something to a member.
pub(super) fn propagate(plane: &Cluster, name: &str, member: &Cluster) {
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "propagated", "namespace": "default" }, "data": { "k": "v" } });
    member.create(&map);
    // Source: `ExecutionControllerFinalizer`, `pkg/util/constants.go` in karmada.
    let metadata =
        json!({ "name": "propagated", "namespace": format!("karmada-es-{name}"), "finalizers": ["karmada.io/execution-controller"] });
    plane.create(&json!({ "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": metadata,
        "spec": { "workload": { "manifests": [map] } } }));
}

fn decoded(value: &Value) -> String {
    String::from_utf8(BASE64_STANDARD.decode(value.as_str().unwrap_or_default()).expect("base64")).expect("text")
}

/// The token in a Secret of the plane, and whether it lets into the member at the Cluster's address: with all rights, with none, or not.
#[track_caller]
pub(super) fn rights(plane: &Cluster, name: &str, secret: &str) -> Option<bool> {
    let authority = written(&decoded(&plane.secret(name)["data"]["caBundle"]));
    let token = decoded(&plane.secret(secret)["data"]["token"]);
    let server = plane.cluster(name)["spec"]["apiEndpoint"].as_str().unwrap_or_default().to_owned();
    let (is_allowed, said) = plane.asks(&server, &token, authority.path(), &["auth", "can-i", "*", "*"]);
    match said.split_whitespace().find(|word| ["yes", "no"].contains(word)) {
        Some(word) => Some(is_allowed && word == "yes"),
        None => {
            assert!(said.contains("Unauthorized") || said.contains("must be logged in"), "{said}");
            None
        }
    }
}

/// What joining made in the plane, and that its accounts work.
#[track_caller]
fn is_joined(plane: &Cluster, name: &str, member: &Cluster, more: &Value) {
    let cluster = plane.cluster(name);
    let spec = &cluster["spec"];
    assert_eq!(spec["id"], member.object("/api/v1/namespaces/kube-system")["metadata"]["uid"]);
    assert_eq!(spec["apiEndpoint"], member.server());
    assert_eq!(spec["syncMode"], "Push");
    for field in ["region", "zones"] {
        assert_eq!(spec.get(field), more.get(field), "{field}: {spec:#}");
    }
    let mut labels = more["labels"].clone();
    labels["app.kubernetes.io/managed-by"] = "karmaform".into();
    assert_eq!(cluster["metadata"]["labels"], labels);
    let secrets = [("secretRef", name.to_owned()), ("impersonatorSecretRef", format!("{name}-impersonator"))];
    for (field, secret) in &secrets {
        assert_eq!(spec[field], json!({ "namespace": "karmada-cluster", "name": secret }));
        let owners = plane.secret(secret)["metadata"]["ownerReferences"].clone();
        let owner = json!([{ "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "name": name,
            "uid": cluster["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true }]);
        assert_eq!(owners, owner, "{secret}");
    }
    assert_eq!(rights(plane, name, name), Some(true));
    // That one may do what Karmada allows it one day.
    assert_eq!(rights(plane, name, &secrets[1].1), Some(false));
}

fn changes_are_made_in_place(fleet: &Fleet, plane: &Cluster, write: &dyn Fn(&Value)) {
    let uid = plane.cluster("m1")["metadata"]["uid"].clone();
    let foreign = json!({ "key": "cluster.karmada.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z" });
    let patch = json!({ "spec": { "taints": [foreign] } }).to_string();
    plane.run(&["patch", "clusters.cluster.karmada.io", "m1", "--type=merge", "-p", &patch]);
    fleet.project.no_changes();
    let mine = json!({ "key": "mine", "value": "x", "effect": "NoSchedule" });
    write(&json!({ "region": "us", "zones": ["a", "b"], "labels": { "team": "b" }, "taints": [mine] }));
    fleet.plans(&["update m1/cluster", "update m1/membership"]);
    fleet.converge();
    let cluster = plane.cluster("m1");
    assert_eq!(cluster["metadata"]["uid"], uid);
    assert_eq!(cluster["metadata"]["labels"], json!({ "app.kubernetes.io/managed-by": "karmaform", "team": "b" }));
    assert_eq!((&cluster["spec"]["region"], &cluster["spec"]["zones"]), (&json!("us"), &json!(["a", "b"])));
    assert_eq!(cluster["spec"]["taints"], json!([foreign, mine]));
    let noted = || plane.cluster("m1")["metadata"]["annotations"]["karmaform.io/taints"].clone();
    // One's own is taken away again, and somebody else's is not; also if the first try was killed before it came to that.
    for killed in [false, true] {
        write(&json!({ "region": "us", "zones": ["a", "b"], "labels": { "team": "b" }, "taints": [mine] }));
        fleet.converge();
        assert_eq!(noted(), json!(r#"[{"effect":"NoSchedule","key":"mine"}]"#));
        write(&json!({ "region": "us", "zones": ["a", "b"], "labels": { "team": "b" } }));
        fleet.plans(&["update m1/membership"]);
        if killed {
            leaves_taints_unfinished(fleet);
        }
        fleet.converge();
        assert_eq!(plane.cluster("m1")["spec"]["taints"], json!([foreign]));
        assert_eq!(noted(), Value::Null);
    }
    assert_eq!(plane.cluster("m1")["metadata"]["uid"], uid);
}

/// The state as a run leaves it that is killed before it takes the member's taints away.
fn leaves_taints_unfinished(fleet: &Fleet) {
    let path = fleet.project.path().join("karmaform.tfstate");
    let mut state = Snapshot::from_text(&std::fs::read_to_string(&path).expect("a state")).expect("a state");
    let membership = state.resources.iter_mut().find(|(address, _)| address.to_string().ends_with("[\"m1\"]/membership"));
    let (_, membership) = membership.expect("the member's membership");
    membership.status = Status::Unfinished;
    membership.attributes.insert("taints".to_owned(), Value::Null);
    std::fs::write(path, state.to_text()).expect("written");
}

/// Each damage is in the plan, alone, and is repaired.
fn damage_is_repaired(fleet: &Fleet, plane: &Cluster, member: &Cluster) {
    let tokens = || ["m1", "m1-impersonator"].map(|s| plane.secret(s)["data"]["token"].clone());
    let mark = account(member);
    // What only follows from a damage is in the plan, and is no drift of its own.
    let repaired = |changes: &[&str], drift: &[&str]| {
        fleet.drifts(drift);
        fleet.plans(changes);
        fleet.converge();
        fleet.drifts(&[]);
        assert_eq!(rights(plane, "m1", "m1"), Some(true));
    };
    plane.run(&["label", "clusters.cluster.karmada.io", "m1", "tier=stolen", "--overwrite"]);
    repaired(&["update m1/cluster"], &["changed m1/cluster"]);
    assert_eq!(plane.cluster("m1")["metadata"]["labels"]["tier"], "gold");

    // Another way than ours, which nobody wrote.
    let elsewhere = r#"{"spec":{"insecureSkipTLSVerification":true,"proxyURL":"http://127.0.0.1:1"}}"#;
    plane.run(&["patch", "clusters.cluster.karmada.io", "m1", "--type=merge", "-p", elsewhere]);
    repaired(&["update m1/cluster"], &["changed m1/cluster"]);
    let spec = plane.cluster("m1")["spec"].clone();
    assert!(spec["insecureSkipTLSVerification"].is_null() && spec["proxyURL"].is_null(), "{spec:#}");

    member.run(&["delete", "clusterrolebinding", &mark]);
    assert_eq!(rights(plane, "m1", "m1"), Some(false));
    repaired(&["create m1/role_binding[controller]"], &["missing m1/role_binding[controller]"]);

    let good = tokens();
    plane.run(&["-n", "karmada-cluster", "patch", "secret", "m1", "--type=merge", "-p", r#"{"data":{"token":"Z2FyYmFnZQ=="}}"#]);
    assert_eq!(rights(plane, "m1", "m1"), None);
    repaired(&["update m1/secret[controller]"], &["changed m1/secret[controller]"]);
    assert_eq!(tokens(), good);

    // What the token is in goes. Made again under its name it is the same one, for nothing in it tells when it was made.
    member.run(&["-n", "karmada-cluster", "delete", "secret", &mark]);
    eventually("a token without its Secret is refused", || rights(plane, "m1", "m1").is_none());
    repaired(&["create m1/token[controller]", "update m1/secret[controller]"], &["missing m1/token[controller]"]);
    // A new account has a new one.
    member.run(&["-n", "karmada-cluster", "delete", "serviceaccount", &mark]);
    let token = format!("/api/v1/namespaces/karmada-cluster/secrets/{mark}");
    eventually("the token goes with its account", || member.get(&token).is_none());
    let damage = ["missing m1/account[controller]", "missing m1/token[controller]"];
    repaired(&["create m1/account[controller]", "create m1/token[controller]", "update m1/secret[controller]"], &damage);
    let next = tokens();
    assert!(next[0] != good[0] && next[1] == good[1]);

    let uid = plane.cluster("m1")["metadata"]["uid"].clone();
    plane.run(&["delete", "clusters.cluster.karmada.io", "m1", "--timeout=60s"]);
    // The server takes what the Cluster owns.
    let left = || plane.inventory().into_keys().filter(|path| path.starts_with("secrets/karmada-cluster/m1")).count();
    eventually("its Secrets go with the Cluster", || left() == 0);
    let changes = [
        "create m1/cluster",
        "create m1/owner[controller]",
        "create m1/owner[impersonator]",
        "create m1/secret[controller]",
        "create m1/secret[impersonator]",
        "update m1/membership",
    ];
    let damage = changes.map(|c| c.replace("create", "missing"));
    repaired(&changes, &damage[..5].iter().map(String::as_str).collect::<Vec<_>>());
    assert_ne!(plane.cluster("m1")["metadata"]["uid"], uid);
    assert_eq!(tokens(), next);

    // The same, and somebody makes the Cluster anew as it was: it is another one, which the member joins.
    let mut cluster = plane.cluster("m1");
    plane.run(&["delete", "clusters.cluster.karmada.io", "m1", "--timeout=60s"]);
    eventually("its Secrets go with the Cluster", || left() == 0);
    ["uid", "resourceVersion", "managedFields", "creationTimestamp", "generation", "finalizers"].iter().for_each(|field| {
        cluster["metadata"].as_object_mut().expect("metadata").remove(*field);
    });
    fleet.project.write("cluster.json", &cluster.to_string());
    plane.run(&["create", "-f", &fleet.project.path().join("cluster.json").to_string_lossy()]);
    let damage = [&damage[1..5], &["changed m1/membership".to_owned()]].concat();
    repaired(&changes[1..], &damage.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(tokens(), next);
}

/// What the control plane's account in a member is called, with its mark; there is one control plane.
#[track_caller]
fn account(member: &Cluster) -> String {
    let roles: BTreeMap<String, String> = member.inventory();
    let mut found = roles.keys().filter_map(|path| path.strip_prefix("clusterroles//").filter(|name| name.starts_with("karmada-m1-")));
    let name = found.next().expect("a role of the control plane").to_owned();
    assert_eq!(found.next(), None);
    name
}
