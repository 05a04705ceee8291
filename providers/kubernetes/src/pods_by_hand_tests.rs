use super::*;
use serde_json::json;

fn pod(name: &str, owner: Json, image: &str, hand: Option<&str>) -> Json {
    let container = |fields: Json| json!({ "f:containers": { "k:{\"name\":\"main\"}": fields } });
    let mut made = container(json!({ ".": {}, "f:name": {}, "f:image": {} }));
    made["f:restartPolicy"] = json!({});
    let mut accounts = vec![
        json!({ "manager": "kube-controller-manager", "fieldsV1": { "f:spec": made } }),
        json!({ "manager": "kubelet", "fieldsV1": { "f:status": { "f:phase": {} } }, "subresource": "status" }),
    ];
    accounts.extend(hand.map(|who| json!({ "manager": who, "fieldsV1": { "f:spec": container(json!({ "f:image": {} })) } })));
    let labels = json!({ "app": "web", "pod-template-hash": "abc", "controller-revision-hash": "r1" });
    json!({ "metadata": { "name": name, "labels": labels, "ownerReferences": [owner], "managedFields": accounts },
        "spec": { "containers": [{ "name": "main", "image": image }] }, "status": { "phase": "Running" } })
}

fn of(kind: &str, name: &str) -> Json {
    json!({ "kind": kind, "name": name, "controller": true })
}

fn workload(name: &str) -> Json {
    json!({ "metadata": { "name": name }, "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": "web:1" }] } } } })
}

#[test]
fn an_image_that_somebody_set_in_a_pod_is_told_with_the_pod() {
    let deployment = workload("web");
    let replicas = || of("ReplicaSet", "web-abc");
    let pods = [
        pod("web-abc-1", replicas(), "web:2", Some("kubectl-set")),
        // A registry's mirror, by whoever looks at pods when they are made.
        pod("web-abc-2", replicas(), "mirror/web:1", None),
        // Changed and put back.
        pod("web-abc-3", replicas(), "web:1", Some("kubectl-set")),
        pod("web-canary-abc-1", of("ReplicaSet", "web-canary-abc"), "web:2", Some("kubectl-set")),
    ];
    let found = altered("Deployment", &deployment, &pods);
    assert_eq!(found.iter().map(|(p, _)| p["metadata"]["name"].as_str().unwrap()).collect::<Vec<_>>(), ["web-abc-1"]);
    let shown = shown_in(deployment.clone(), &found);
    assert_eq!(shown["spec"]["template"]["spec"]["containers"][0]["image"], "web:2 (in the pod web-abc-1)");
    let mut rolling = deployment;
    rolling["status"] = json!({ "updatedReplicas": 1, "replicas": 2 });
    assert!(altered("Deployment", &rolling, &pods).is_empty());
    let mut set = workload("web");
    set["status"]["updateRevision"] = json!("r1");
    let of_set = [pod("web-0", of("StatefulSet", "web"), "web:2", Some("kubectl-edit"))];
    assert_eq!(altered("StatefulSet", &set, &of_set).len(), 1);
    let mut newer = set.clone();
    newer["status"]["updateRevision"] = json!("r2");
    assert!(altered("StatefulSet", &newer, &of_set).is_empty(), "it is of an older template");
    let mut on_delete = set;
    on_delete["spec"]["updateStrategy"]["type"] = json!("OnDelete");
    assert!(altered("StatefulSet", &on_delete, &of_set).is_empty());
}

#[test]
fn who_is_behind_a_service_and_nobodys_is_told() {
    let service = json!({ "spec": { "selector": { "app": "web" } } });
    let name = |kind: &str, name: &str| Name { kind: kind.into(), group: "apps".into(), namespace: "n".into(), name: name.into() };
    let mut rogue = pod("rogue", of("ReplicaSet", "rogue-abc"), "x", None);
    let ours = pod("web-abc-1", of("ReplicaSet", "web-abc"), "web:1", None);
    let workloads = [name("Deployment", "web"), name("StatefulSet", "other")];
    assert_eq!(strangers(&service, &[rogue.clone(), ours.clone()], &workloads), ["rogue"]);
    assert!(strangers(&service, &[rogue.clone()], &workloads).is_empty(), "a Service of somebody else's pods");
    rogue["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(strangers(&service, &[ours.clone(), rogue.clone()], &workloads), ["rogue"]);
    rogue["status"]["phase"] = json!("Succeeded");
    assert!(strangers(&service, &[ours.clone(), rogue.clone()], &workloads).is_empty());
    rogue["status"]["phase"] = json!("Running");
    rogue["metadata"]["labels"]["app"] = json!("else");
    assert!(strangers(&service, &[ours, rogue], &workloads).is_empty());
    assert!(strangers(&json!({ "spec": {} }), &[], &workloads).is_empty());
}
