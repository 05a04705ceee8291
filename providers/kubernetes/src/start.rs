//! The operation `kubernetes_start`: what a pod of a StatefulSet starts with is put in place, and the pod is there and runs. One that was there
//! before goes first, and with it the claim of its volume, where that is to be a new one too.
//!
//! Pods are made by their StatefulSet, so its `replicas` are among what is put in place; a pod that failed before is deleted, since the kubelet waits
//! longer and longer before it tries again (`kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle`, section "Container restarts").

use std::sync::LazyLock;

use jiff::Timestamp;
use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type, Value};
use kube::api::PropagationPolicy;
use serde_json::Value as Json;

use crate::act::located;
use crate::client::{Client, How};
use crate::failure::Failure;
use crate::manifest;
use crate::pods::{is_leaving, is_ready, runs};
use crate::pods_why::{self, pods};
use crate::values::{is_true, text};

/// How long after its time to end a pod is waited for, in seconds; clocks differ.
const OVERDUE: i64 = 60;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Puts objects in place that a pod of a StatefulSet starts with, and waits until it runs.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("manifests", Type::Any, "The objects, in this order; all of them are karmaform's own."),
            Attribute::optional(
                "remake",
                Type::Bool,
                "Whether one of them that the server does not change in place is deleted without its dependents, and made anew: a StatefulSet around its pods.",
            ),
            Attribute::optional("namespace", Type::String, "The namespace of the pod."),
            Attribute::optional("pod", Type::String, "The pod's name; without it nothing is waited for."),
            Attribute::optional(
                "replaces",
                Type::String,
                "The UID of the pod that was there before; it goes unless it runs and never failed.",
            ),
            Attribute::optional("claim", Type::Any, "The manifest of its claim, where that is made anew, and its pod with it."),
            Attribute::optional("replaces_claim", Type::String, "The UID of the claim that goes for it."),
            Attribute::optional("ends_well", Type::String, "What it means if its program ends again and again without an error."),
        ],
    )
    .through("cluster")
});

/// The operation `kubernetes_start`.
pub(crate) struct KubernetesStart;

impl Operation<Client> for KubernetesStart {
    fn name(&self) -> &'static str {
        "kubernetes_start"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move { patient(attempt(client, arguments).await) })
    }
}

/// What may be otherwise a moment later is waited for.
pub(crate) fn patient(answer: Result<GateAnswer, Diagnostic>) -> Result<GateAnswer, Diagnostic> {
    match answer {
        Err(told) if told.retryable => Ok(GateAnswer::Waiting(told.detail.trim_end_matches('.').to_owned())),
        answer => answer,
    }
}

async fn attempt(client: &Client, arguments: &Object) -> Result<GateAnswer, Diagnostic> {
    for manifest in arguments.get("manifests").and_then(Value::as_items).unwrap_or_default() {
        if let Some(why) = put_or_remake(client, manifest, is_true(arguments, "remake")).await? {
            return Ok(GateAnswer::Waiting(why));
        }
    }
    let (Some(namespace), Some(name)) = (text(arguments, "namespace"), text(arguments, "pod")) else {
        return Ok(GateAnswer::Passed("in place".to_owned()));
    };
    let place = pods(namespace);
    let told = |verb: &'static str, failure: Failure| failure.diagnostic(client.place(), &place.call(verb, name), &[]);
    let is_claim_old = match arguments.get("claim").filter(|c| !c.is_null()) {
        Some(claim) => !renew(client, claim, text(arguments, "replaces_claim")).await?,
        None => false,
    };
    let Some(pod) = client.get(&place, name).await.map_err(|f| told("get", f))? else {
        let refused = pods_why::not_made(client, namespace, name).await;
        return Ok(GateAnswer::Waiting(refused.map_or_else(|| format!("there is no pod {name} yet"), |why| format!("pod {name} {why}"))));
    };
    let uid = pod["metadata"]["uid"].as_str();
    if is_leaving(&pod) {
        // Whatever it still does, it is of no use to anybody, and its volume is to be another one.
        if is_claim_old && uid == text(arguments, "replaces") && is_overdue(&pod, Timestamp::now()) {
            client.delete_at_once(&place, name, uid).await.map_err(|f| told("delete", f))?;
        }
        return Ok(GateAnswer::Waiting("the pod of before is still ending".to_owned()));
    }
    let is_old = is_claim_old || uid.is_some() && uid == text(arguments, "replaces") && !(runs(&pod) && restarts(&pod) == 0);
    if !is_old && runs(&pod) {
        return Ok(GateAnswer::Passed(format!("pod {name} runs")));
    }
    if let (Some(what), true) = (text(arguments, "ends_well"), !is_old && ended_well(&pod)) {
        return Err(Diagnostic::error("A pod ends without an error", format!("Pod {name} of {namespace} does not go on. {what}.")));
    }
    // A claim stays as long as its pod. One that was made since is left alone, however often it fails: it would be another one to whoever has to find
    // it by its name first, and what it starts with is read at each start.
    if is_old {
        client.delete(&place, name, uid, PropagationPolicy::Background).await.map_err(|f| told("delete", f))?;
        return Ok(GateAnswer::Waiting("the pod of before is made anew".to_owned()));
    }
    let why = pods_why::of_pod(client, &pod, &[]).await.unwrap_or_else(|| "is not running yet".to_owned());
    Ok(GateAnswer::Waiting(format!("pod {name} {why}")))
}

fn containers(pod: &Json) -> &[Json] {
    pod["status"]["containerStatuses"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn restarts(pod: &Json) -> i64 {
    containers(pod).iter().filter_map(|c| c["restartCount"].as_i64()).sum()
}

/// It ended and waits before it is started again.
fn has_failed(pod: &Json) -> bool {
    !is_ready(pod) && containers(pod).iter().any(|c| c["state"]["waiting"]["reason"] == "CrashLoopBackOff")
}

/// It did so, and calls that no failure.
fn ended_well(pod: &Json) -> bool {
    has_failed(pod) && containers(pod).iter().any(|c| c["lastState"]["terminated"]["exitCode"] == 0)
}

/// Makes an object, or makes it like this.
pub(crate) async fn put(client: &Client, manifest: &Value) -> Result<(), Diagnostic> {
    put_or_remake(client, manifest, false).await.map(drop)
}

/// The same; with `remakes`, what the server does not change in place goes without its dependents. Gives what is waited for until it can be made.
async fn put_or_remake(client: &Client, manifest: &Value, remakes: bool) -> Result<Option<String>, Diagnostic> {
    let manifest = manifest::marked(manifest.clone());
    let (place, name) = located(client, &manifest).await?;
    let told = |verb: &'static str, failure: Failure| failure.diagnostic(client.place(), &place.call(verb, &name.name), &[]);
    match client.apply(&place, &name.name, &manifest::request(&manifest), How { force: true, dry_run: false }).await {
        Ok(_) => Ok(None),
        Err(failure) if remakes && failure.immutable(&[]).is_some() => {
            client.delete(&place, &name.name, None, PropagationPolicy::Orphan).await.map_err(|f| told("delete", f))?;
            Ok(Some(format!("{name} is made anew around what it has")))
        }
        Err(failure) => Err(told("patch", failure)),
    }
}

/// Makes it once the one of before is gone. False as long as that is there.
async fn renew(client: &Client, manifest: &Value, old: Option<&str>) -> Result<bool, Diagnostic> {
    let (place, name) = located(client, manifest).await?;
    let told = |verb: &'static str, failure: Failure| failure.diagnostic(client.place(), &place.call(verb, &name.name), &[]);
    match client.get(&place, &name.name).await.map_err(|f| told("get", f))? {
        Some(live) if is_leaving(&live) => Ok(false),
        Some(live) if old.is_some() && live["metadata"]["uid"].as_str() == old => {
            client.delete(&place, &name.name, old, PropagationPolicy::Background).await.map_err(|f| told("delete", f))?;
            Ok(false)
        }
        _ => put(client, manifest).await.map(|()| true),
    }
}

/// Its time to end is over, and its node has not said that it has: the node is gone, or hangs.
fn is_overdue(pod: &Json, now: Timestamp) -> bool {
    let ends = pod["metadata"]["deletionTimestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    ends.is_some_and(|ends| now.as_second() > ends.as_second() + OVERDUE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_that_says_nothing_keeps_no_pod() {
        let pod = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        let at = |text: &str| is_overdue(&pod, text.parse().unwrap());
        assert!(!at("2026-01-01T00:00:59Z") && at("2026-01-01T00:01:01Z"));
        assert!(!is_overdue(&json!({ "metadata": {} }), Timestamp::now()));
    }

    #[test]
    fn who_waits_to_be_started_again_has_failed() {
        let pod = |state: Json| json!({ "status": { "containerStatuses": [{ "state": state }] } });
        assert!(has_failed(&pod(json!({ "waiting": { "reason": "CrashLoopBackOff" } }))));
        assert!(!has_failed(&pod(json!({ "waiting": { "reason": "ContainerCreating" } }))));
        assert!(!has_failed(&pod(json!({ "running": {} }))));
        assert!(!has_failed(&json!({})));
        let ended = |code: i64| {
            let status =
                json!({ "state": { "waiting": { "reason": "CrashLoopBackOff" } }, "lastState": { "terminated": { "exitCode": code } } });
            ended_well(&json!({ "status": { "containerStatuses": [status] } }))
        };
        assert!(ended(0) && !ended(1));
    }

    #[tokio::test]
    async fn a_pod_that_ends_well_again_and_again_is_told_with_what_it_means() {
        let status = json!({ "state": { "waiting": { "reason": "CrashLoopBackOff" } }, "lastState": { "terminated": { "exitCode": 0 } } });
        let pod = json!({ "metadata": { "name": "etcd-0", "uid": "1" }, "status": { "phase": "Running", "containerStatuses": [status] } });
        let (client, _) = crate::mock::client(move |_, _| (200, pod.clone())).await;
        let meaning = "The cluster has removed this member";
        let mut arguments = crate::values::object([("namespace", "n".into()), ("pod", "etcd-0".into()), ("ends_well", meaning.into())]);
        let why = KubernetesStart.attempt(&client, &arguments).await.unwrap_err();
        assert_eq!(why.summary, "A pod ends without an error");
        assert_eq!(why.detail, "Pod etcd-0 of n does not go on. The cluster has removed this member.");
        arguments.remove("ends_well");
        assert!(matches!(KubernetesStart.attempt(&client, &arguments).await, Ok(GateAnswer::Waiting(_))), "it is nothing to others");
    }

    #[tokio::test]
    async fn a_pod_that_the_server_refuses_is_told_with_why() {
        let refusal = "create Pod etcd-0 in StatefulSet etcd failed error: pods \"etcd-0\" is forbidden: exceeded quota: few";
        let events = json!({ "items": [{ "reason": "FailedCreate", "message": refusal, "lastTimestamp": "2026-01-01T00:00:00Z" }] });
        let (client, _) = crate::mock::client(move |_, path| match path {
            "/api/v1/namespaces/n/events" => (200, events.clone()),
            "/apis/apps/v1/namespaces/n/statefulsets/etcd" => (200, json!({ "metadata": { "namespace": "n", "uid": "s" } })),
            _ => crate::mock::missing(),
        })
        .await;
        let arguments = crate::values::object([("namespace", "n".into()), ("pod", "etcd-0".into())]);
        let told = KubernetesStart.attempt(&client, &arguments).await.unwrap();
        let words = "pod etcd-0 can't be made: pods \"etcd-0\" is forbidden: exceeded quota: few";
        assert_eq!(told, GateAnswer::Waiting(words.to_owned()));
    }
}
