//! Asks a cluster why pods are not up, and what it says of other objects. Whoever may not ask for pods, events or logs is told less; nothing here fails.

use karmaform_model::redact;
use serde_json::Value as Json;

use crate::client::{Client, Place, Served};
use crate::pods::{LINES, decisive, ended, latest, latest_where, reason, selector, why};

/// Pods that are told of one by one.
const MOST: usize = 3;

/// Where the pods of a namespace are.
pub(crate) fn pods(namespace: &str) -> Place {
    core("Pod", "pods", namespace)
}

/// Where the StatefulSets of a namespace are.
pub(crate) fn stateful_sets(namespace: &str) -> Place {
    workloads("StatefulSet", "statefulsets", namespace)
}

/// Where its Deployments are.
pub(crate) fn deployments(namespace: &str) -> Place {
    workloads("Deployment", "deployments", namespace)
}

fn replica_sets(namespace: &str) -> Place {
    workloads("ReplicaSet", "replicasets", namespace)
}

fn workloads(kind: &str, plural: &str, namespace: &str) -> Place {
    Place { api_version: "apps/v1".to_owned(), ..core(kind, plural, namespace) }
}

/// Where the objects of one of Kubernetes' oldest kinds are.
fn core(kind: &str, plural: &str, namespace: &str) -> Place {
    let served = Served { kind: kind.to_owned(), plural: plural.to_owned(), namespaced: true };
    Place { api_version: "v1".to_owned(), served, namespace: Some(namespace.to_owned()) }
}

/// What keeps one pod from being up; none if it is.
pub(crate) async fn of_pod(client: &Client, pod: &Json, hidden: &[String]) -> Option<String> {
    // First without more questions: of a pod that is well nothing is asked.
    reason(pod, &[], None)?;
    let events = events(client, &pod["metadata"]).await;
    let mut log = None;
    if let (Some(ended), Some(namespace), Some(name)) =
        (ended(pod), pod["metadata"]["namespace"].as_str(), pod["metadata"]["name"].as_str())
    {
        let said = client.log(&pods(namespace), name, &ended.container, LINES, ended.previous).await;
        // A kubelet answers this way, with 200, when the log is gone already.
        log = said.ok().filter(|l| !l.starts_with("unable to retrieve container logs"));
    }
    reason(pod, &events, log.as_deref()).map(|told| redact(&told, hidden))
}

async fn events(client: &Client, metadata: &Json) -> Vec<Json> {
    let (Some(namespace), Some(uid)) = (metadata["namespace"].as_str(), metadata["uid"].as_str()) else { return Vec::new() };
    client.select(&core("Event", "events", namespace), "", &format!("involvedObject.uid={uid}")).await.unwrap_or_default()
}

/// The last warning that the cluster wrote about an object, in a sentence; none if there is none.
pub(crate) async fn last_warning(client: &Client, live: &Json, hidden: &[String]) -> Option<String> {
    let events = events(client, &live["metadata"]).await;
    let event = latest_where(&events, |e| e["type"] == "Warning")?;
    let told = format!("The last warning about it is {}{}", event["reason"].as_str()?, why(event["message"].as_str().unwrap_or_default()));
    Some(redact(&told, hidden))
}

/// True if a pod that decides a rollout was tried so often that waiting longer will hardly help.
pub(crate) async fn is_stuck(client: &Client, workload: &Json) -> bool {
    let (Some(namespace), Some(selector)) = (workload["metadata"]["namespace"].as_str(), selector(workload)) else { return false };
    let found = client.select(&pods(namespace), &selector, "").await.unwrap_or_default();
    decisive(workload, &found).into_iter().any(crate::pods::is_stuck)
}

/// True if the server refuses to make pods for a workload: a quota, a limit range, a webhook. That may change, but seldom by waiting.
pub(crate) async fn is_refused(client: &Client, workload: &Json) -> bool {
    if workload["kind"] == "Deployment" {
        return makes_none(workload) && is_of_now(client, workload).await;
    }
    // Of a StatefulSet or a DaemonSet only events tell.
    let (Some(namespace), Some(selector)) = (workload["metadata"]["namespace"].as_str(), selector(workload)) else { return false };
    if !client.select(&pods(namespace), &selector, "").await.is_ok_and(|found| found.is_empty()) {
        return false;
    }
    latest(&events(client, &workload["metadata"]).await, &["FailedCreate", "SuccessfulCreate"])
        .is_some_and(|e| e["reason"] == "FailedCreate")
}

/// True for a Deployment or a ReplicaSet that says that its pods can't be made.
fn makes_none(workload: &Json) -> bool {
    let conditions = workload["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|c| c["type"] == "ReplicaFailure" && c["status"] == "True")
}

/// True if what a Deployment says of its pods is said of those that are wanted now. It takes over what its ReplicaSets say, those of former revisions
/// among them, and it says nothing new before its controller has seen a change. Source: `getReplicaFailures`, `pkg/controller/deployment` in Kubernetes.
async fn is_of_now(client: &Client, deployment: &Json) -> bool {
    const REVISION: &str = "deployment.kubernetes.io/revision";
    let number = |value: &Json| value.as_i64().unwrap_or(0);
    if number(&deployment["status"]["observedGeneration"]) < number(&deployment["metadata"]["generation"]) {
        return false;
    }
    let (Some(namespace), Some(selector)) = (deployment["metadata"]["namespace"].as_str(), selector(deployment)) else { return true };
    // Who may not list them believes the Deployment.
    let Ok(sets) = client.select(&replica_sets(namespace), &selector, "").await else { return true };
    let (uid, revision) = (&deployment["metadata"]["uid"], &deployment["metadata"]["annotations"][REVISION]);
    let is_current = |set: &&Json| {
        let owners = set["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
        owners.iter().any(|owner| owner["uid"] == *uid) && set["metadata"]["annotations"][REVISION] == *revision
    };
    sets.iter().find(is_current).is_none_or(makes_none)
}

/// Why the server refused to make this pod of a StatefulSet when that was tried last, in a few words; none if it did not.
pub(crate) async fn not_made(client: &Client, namespace: &str, pod: &str) -> Option<String> {
    let (set, _) = pod.rsplit_once('-')?;
    let live = client.get(&stateful_sets(namespace), set).await.ok()??;
    let events = events(client, &live["metadata"]).await;
    let message = |e: &Json| e["message"].as_str().unwrap_or_default().to_owned();
    // `create Pod a-0 in StatefulSet a failed error: pods "a-0" is forbidden: ...`; its claim is told of with the same words in it.
    let of_it = format!("Pod {pod} in StatefulSet");
    let is_try = |e: &Json| e["reason"] == "FailedCreate" || e["reason"] == "SuccessfulCreate";
    let last = latest_where(&events, |e| is_try(e) && message(e).contains(&of_it))?;
    let said = message(last);
    let words = said.split_once(" failed error: ").map_or(said.as_str(), |(_, words)| words);
    (last["reason"] == "FailedCreate").then(|| format!("can't be made{}", why(words)))
}

/// What keeps the pods of a Deployment, StatefulSet, DaemonSet or Job from being up, in sentences; none if nothing can be told.
pub(crate) async fn of_workload(client: &Client, workload: &Json, hidden: &[String]) -> Option<String> {
    if !matches!(workload["kind"].as_str(), Some("Deployment" | "StatefulSet" | "DaemonSet" | "Job")) {
        return None;
    }
    let namespace = workload["metadata"]["namespace"].as_str()?;
    let found = client.select(&pods(namespace), &selector(workload)?, "").await.ok()?;
    let mut told: Vec<(String, String)> = Vec::new();
    let mut more = 0;
    for pod in decisive(workload, &found) {
        if told.len() == MOST {
            more += usize::from(reason(pod, &[], None).is_some());
            continue;
        }
        if let Some(why) = of_pod(client, pod, hidden).await {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            match told.iter_mut().find(|(_, told)| *told == why) {
                Some((names, _)) => names.push_str(&format!(", {name}")),
                None => told.push((name.to_owned(), why)),
            }
        }
    }
    let mut sentences: Vec<String> = told.into_iter().map(|(names, why)| format!("Pod {names} {why}")).collect();
    if more > 0 {
        sentences.push(format!("{more} more are not up either"));
    }
    if found.is_empty()
        && let Some(event) = latest(&events(client, &workload["metadata"]).await, &["FailedCreate"])
    {
        // Of a StatefulSet or a DaemonSet; a Deployment says it in its conditions.
        sentences.push(format!("Its pods can't be made{}", redact(&why(event["message"].as_str().unwrap_or_default()), hidden)));
    }
    (!sentences.is_empty()).then(|| sentences.join(". "))
}

#[cfg(test)]
#[path = "pods_why_tests.rs"]
mod tests;
