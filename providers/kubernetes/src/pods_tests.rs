use super::*;
use serde_json::json;

fn pod(status: Json) -> Json {
    json!({ "metadata": { "name": "a-0", "namespace": "n" }, "spec": { "containers": [{ "name": "main" }] }, "status": status })
}

fn waiting(reason: &str, message: &str) -> Json {
    pod(json!({ "phase": "Pending", "containerStatuses": [{ "name": "main", "image": "r/x:1", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": reason, "message": message } } }] }))
}

fn event(reason: &str, message: &str, time: &str) -> Json {
    json!({ "reason": reason, "message": message, "lastTimestamp": time })
}

fn check(pod: &Json, events: &[Json], log: Option<&str>, expected: &str) {
    assert_eq!(reason(pod, events, log).as_deref().unwrap_or("up"), expected);
}

#[test]
fn a_pod_without_a_node_says_what_the_scheduler_says() {
    let conditions = json!([{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient cpu." }]);
    check(
        &pod(json!({ "phase": "Pending", "conditions": conditions })),
        &[],
        None,
        "can't be scheduled: 0/1 nodes are available: 1 Insufficient cpu",
    );
}

#[test]
fn images_are_named_with_the_cause() {
    let told = "can't get the image \"r/x:1\" of its container \"main\": Failed to pull image \"r/x:1\": no such host";
    let events = [
        event("Failed", "Error: ErrImagePull", "2026-01-01T00:00:09Z"),
        event("Failed", "Failed to pull image \"r/x:1\": timeout", "2026-01-01T00:00:01Z"),
        event("Failed", "Failed to pull image \"r/x:1\": no such host", "2026-01-01T00:00:05Z"),
    ];
    check(&waiting("ImagePullBackOff", "Back-off pulling image \"r/x:1\""), &events, None, told);
    let invalid = "can't get the image \"r/x:1\" of its container \"main\": couldn't parse image reference";
    check(&waiting("InvalidImageName", "couldn't parse image reference"), &events, None, invalid);
}

#[test]
fn a_container_that_ends_says_its_last_words() {
    let crashed = pod(json!({ "phase": "Running", "containerStatuses": [{ "name": "main", "ready": false, "restartCount": 4,
        "state": { "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 40s" } },
        "lastState": { "terminated": { "exitCode": 3, "reason": "Error" } } }] }));
    assert_eq!(ended(&crashed), Some(Ended { container: "main".into(), previous: true }));
    let told = "has a container \"main\" that ends with code 3, started again 4 times";
    check(&crashed, &[], None, told);
    check(&crashed, &[], Some("1\n2\n3\n4\n5\nboom \n\n"), &format!("{told}; it said last: 2 | 3 | 4 | 5 | boom"));
    let killed = pod(json!({ "phase": "Running", "containerStatuses": [{ "name": "main", "ready": false, "restartCount": 0,
        "state": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } } }] }));
    assert!(!ended(&killed).unwrap().previous);
    check(&killed, &[], None, "has a container \"main\" that ends with code 137 (OOMKilled)");
    let recovered =
        pod(json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }], "containerStatuses": [{ "name": "main",
        "ready": true, "restartCount": 4, "state": { "running": {} }, "lastState": { "terminated": { "exitCode": 3 } } }] }));
    assert_eq!(ended(&recovered), None);
    check(&recovered, &[], None, "up");
}

#[test]
fn what_stands_in_the_way_of_a_start() {
    let config = "has a container \"main\" that can't be started: CreateContainerConfigError: secret \"s\" not found";
    check(&waiting("CreateContainerConfigError", "secret \"s\" not found"), &[], None, config);
    check(&waiting("ContainerCreating", ""), &[], None, "is being started");
    let mount = [event("FailedMount", "MountVolume.SetUp failed for volume \"v\" : secret \"s\" not found", "")];
    let told = "has a volume that can't be mounted: MountVolume.SetUp failed for volume \"v\" : secret \"s\" not found";
    check(&waiting("ContainerCreating", ""), &mount, None, told);
    let pulling = [mount[0].clone(), event("Pulling", "Pulling image \"r/x:1\"", "2026-01-01T00:00:01Z")];
    check(&waiting("ContainerCreating", ""), &pulling, None, "is being started: Pulling image \"r/x:1\"");
    let mut leaving = waiting("ContainerCreating", "");
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    check(&leaving, &mount, None, "is being deleted");
}

#[test]
fn a_probe_that_fails_is_quoted() {
    let running = pod(json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "False" }],
        "containerStatuses": [{ "name": "main", "ready": false, "restartCount": 0, "state": { "running": {} } }] }));
    let events = [
        event("Unhealthy", "Readiness probe failed: first", "2026-01-01T00:00:01Z"),
        event("Unhealthy", "Readiness probe failed: second", "2026-01-01T00:00:02Z"),
    ];
    check(&running, &events, None, "runs, but its container \"main\" is not ready: Readiness probe failed: second");
    check(&running, &[], None, "runs, but its container \"main\" is not ready yet");
    assert!(runs(&running) && !is_ready(&running));
    assert!(!runs(&waiting("ContainerCreating", "")));
}

#[test]
fn only_pods_of_the_new_revision_count() {
    let pod = |name: &str, hash: &str, time: &str| json!({ "metadata": { "name": name, "labels": { "pod-template-hash": hash }, "creationTimestamp": time } });
    let mut leaving = pod("d-c", "3", "2026-01-01T00:00:09Z");
    leaving["metadata"]["deletionTimestamp"] = "x".into();
    let pods = [pod("d-b", "2", "2026-01-01T00:00:02Z"), pod("d-a", "1", "2026-01-01T00:00:01Z"), leaving];
    let names = |kind: &str| {
        let chosen = decisive(&json!({ "kind": kind }), &pods);
        chosen.iter().map(|p| text(&p["metadata"], "name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("Deployment"), ["d-b"]);
    assert_eq!(names("DaemonSet"), ["d-a", "d-b"]);
}

#[test]
fn selectors_in_queries() {
    let workload = json!({ "spec": { "selector": { "matchLabels": { "a": "b" }, "matchExpressions": [
        { "key": "c", "operator": "In", "values": ["d", "e"] }, { "key": "f", "operator": "DoesNotExist" }] } } });
    assert_eq!(selector(&workload).as_deref(), Some("a=b,c in (d,e),!f"));
    assert_eq!(selector(&json!({ "spec": { "selector": {} } })), None, "an empty selector would choose all pods there are");
}

#[test]
fn long_messages_are_cut_between_characters() {
    let message = "ä".repeat(400);
    assert_eq!(why(&message).chars().count(), 2 + LONGEST + 3);
}

#[test]
fn a_pod_that_was_tried_often_is_stuck() {
    let pod = |reason: &str, restarts: i64| json!({ "status": { "containerStatuses": [{ "restartCount": restarts, "state": { "waiting": { "reason": reason } } }] } });
    assert!(is_stuck(&pod("ImagePullBackOff", 0)) && is_stuck(&pod("CrashLoopBackOff", 5)));
    assert!(lacks_image(&pod("ErrImageNeverPull", 0)) && !lacks_image(&pod("CrashLoopBackOff", 5)));
    assert!(!is_stuck(&pod("ErrImagePull", 0)) && !is_stuck(&pod("CrashLoopBackOff", 4)) && !is_stuck(&pod("ContainerCreating", 0)));
}
