//! What is told of members that don't become ready, or don't leave.

use karmaform_model::{Change, Diagnostic, Object, ResourceType as _, Value};
use serde_json::{Value as Json, json};

use crate::membership::KarmadaMembership;
use crate::mock::{self, Seen};
use crate::values::object;

/// A plane with this Cluster object and these Works, if there are any, which never changes anything.
async fn told(live: Option<Json>, works: Json, change: Change) -> (Diagnostic, Seen) {
    let (client, seen) = mock::client(move |method, path| match (method, path) {
        (_, "/apis/cluster.karmada.io/v1alpha1") => mock::group(&[("Cluster", "clusters", false)]),
        (_, "/apis/work.karmada.io/v1alpha1") => mock::group(&[("Work", "works", true)]),
        (_, "/apis/cluster.karmada.io/v1alpha1/clusters/eu1") => live.clone().map_or_else(mock::missing, |live| (200, live)),
        (_, "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-eu1/works") => (200, json!({ "items": works })),
        _ => mock::missing(),
    })
    .await;
    (KarmadaMembership::new().apply(&client, &change).await.unwrap_err(), seen)
}

fn member(limit: i64) -> Object {
    let limit = || Value::from(limit);
    object([("name", "eu1".into()), ("uid", "1".into()), ("timeout", limit()), ("leave_timeout", limit())])
}

fn cluster(ready: &str) -> Json {
    let condition = json!({ "type": "Ready", "status": ready, "reason": "ClusterNotReachable", "message": "no route." });
    json!({ "metadata": { "name": "eu1", "uid": "1", "finalizers": ["karmada.io/x"] }, "status": { "conditions": [condition] } })
}

#[tokio::test]
async fn a_member_that_is_removed_while_it_joins_is_not_waited_for() {
    let (why, _) = told(None, json!([]), Change::Create { after: member(60) }).await;
    assert_eq!(why.summary, "Cluster object is gone");
    assert!(why.detail.starts_with("Cluster \"eu1\" is not there any more"), "{}", why.detail);
    assert!(why.hints[0].contains("apply again"), "{why:?}");
}

#[tokio::test]
async fn a_member_that_does_not_become_ready_says_what_the_plane_says() {
    let (why, _) = told(Some(cluster("False")), json!([]), Change::Create { after: member(0) }).await;
    assert_eq!(why.summary, "Member does not become ready");
    assert!(why.detail.ends_with("it can't be used: Ready is False (ClusterNotReachable): no route."), "{}", why.detail);
    assert!(why.hints[0].contains("reach the member") && why.hints[1].contains("`timeout`"), "{why:?}");
}

#[tokio::test]
async fn a_member_that_can_not_be_cleared_does_not_leave() {
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "web", "namespace": "shop" } });
    let work = json!({ "metadata": { "name": "w" }, "spec": { "workload": { "manifests": [manifest] } },
        "status": { "conditions": [{ "type": "Applied", "status": "True" }] } });
    let (why, seen) = told(Some(cluster("False")), json!([work]), Change::Delete { before: member(0) }).await;
    assert_eq!(why.summary, "Member is not ready to leave");
    assert!(why.detail.contains("this would stay there: ConfigMap shop/web. Ready is False"), "{}", why.detail);
    assert!(why.hints[0].contains("Nothing was changed") && why.hints[1].contains("`force = true`"), "{why:?}");
    assert!(seen.lock().unwrap().iter().all(|asked| asked.starts_with("GET ")), "{seen:?}");
}

#[tokio::test]
async fn a_member_that_stays_says_what_it_waits_for() {
    let (why, seen) = told(Some(cluster("Unknown")), json!([{ "metadata": { "name": "w" } }]), Change::Delete { before: member(0) }).await;
    assert_eq!(why.summary, "Member does not leave");
    assert!(why.detail.starts_with("Cluster \"eu1\" is marked as deleted, but is still there after 0 s."), "{}", why.detail);
    assert!(why.detail.contains("Ready is Unknown") && why.detail.contains("1 Works are still there"), "{}", why.detail);
    assert!(why.hints.iter().any(|hint| hint.contains("`force = true`")), "{why:?}");
    assert!(seen.lock().unwrap().iter().any(|asked| asked.starts_with("DELETE ")), "{seen:?}");
}
