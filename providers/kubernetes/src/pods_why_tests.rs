use serde_json::json;

use super::*;
use crate::mock;

const REVISION: &str = "deployment.kubernetes.io/revision";

/// Of a revision of the Deployment `d`, which says whether its pods can't be made.
fn of_revision(kind: &str, revision: &str, fails: bool) -> Json {
    let status = if fails { "True" } else { "False" };
    json!({
        "kind": kind,
        "metadata": {
            "namespace": "n", "uid": kind, "generation": 2, "annotations": { REVISION: revision },
            "ownerReferences": [{ "uid": "Deployment" }],
        },
        "spec": { "selector": { "matchLabels": { "app": "d" } } },
        "status": { "observedGeneration": 2, "conditions": [{ "type": "ReplicaFailure", "status": status }] },
    })
}

async fn refused(deployment: &Json, answer: (u16, Json)) -> bool {
    let (client, seen) = mock::client(move |_, _| answer.clone()).await;
    let refused = is_refused(&client, deployment).await;
    assert!(seen.lock().unwrap().iter().all(|asked| asked == "GET /apis/apps/v1/namespaces/n/replicasets"), "{seen:?}");
    refused
}

#[tokio::test]
async fn what_a_former_revision_failed_with_is_no_failure_of_this_one() {
    let sets = |now: bool| (200, json!({ "items": [of_revision("ReplicaSet", "1", true), of_revision("ReplicaSet", "2", now)] }));
    let fails = of_revision("Deployment", "2", true);
    assert!(refused(&fails, sets(true)).await);
    assert!(!refused(&fails, sets(false)).await, "only the one before it failed");
    assert!(!refused(&of_revision("Deployment", "2", false), sets(true)).await);
    let mut strangers = of_revision("ReplicaSet", "2", false);
    strangers["metadata"]["ownerReferences"][0]["uid"] = "other".into();
    assert!(refused(&fails, (200, json!({ "items": [strangers] }))).await, "it is another Deployment's");
    assert!(refused(&fails, mock::refused(403, "forbidden")).await, "who may not ask believes the Deployment");
    let mut unseen = fails;
    unseen["metadata"]["generation"] = 3.into();
    assert!(!refused(&unseen, sets(true)).await, "that was said before the change");
}
