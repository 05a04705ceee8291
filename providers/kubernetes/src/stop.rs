//! The operation `kubernetes_stop`: a StatefulSet or a Deployment has no pods any more, and they are waited for. What a StatefulSet is when it has none is
//! put in place, so that nothing of before is made anew; a Deployment stays as it is, and has none.

use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type, implied_from_json};
use serde_json::{Value as Json, json};

use crate::act::located;
use crate::client::Client;
use crate::failure::Failure;
use crate::pods::is_leaving;
use crate::pods_why::{deployments, pods};
use crate::start::{patient, put};
use crate::values::{selector, text};

/// What to do about a pod on a node that is gone.
pub(crate) const IF_OFF: &str = "if that is off for good, remove the pod with `kubectl delete pod --force`";

/// How long a pod of a Deployment may take to end, in seconds: nobody can do anything meanwhile, and API servers wait a minute for watches, which others hold
/// as long as they can (`ShutdownTimeout` in `k8s.io/apiserver`). What was asked besides is answered long before.
const GRACE: u32 = 12;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Ends all pods of a StatefulSet, or of a Deployment.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::optional("manifest", Type::Any, "The StatefulSet with `replicas` of 0; it is karmaform's own."),
            Attribute::optional("deployment", Type::String, "The name of the Deployment."),
            Attribute::optional("namespace", Type::String, "The namespace that the Deployment is in."),
        ],
    )
    .through("cluster")
});

/// The operation `kubernetes_stop`.
pub(crate) struct KubernetesStop;

impl Operation<Client> for KubernetesStop {
    fn name(&self) -> &'static str {
        "kubernetes_stop"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            match (text(arguments, "namespace"), text(arguments, "deployment")) {
                (Some(namespace), Some(name)) => patient(end_deployment(client, namespace, name).await),
                _ => patient(attempt(client, arguments).await),
            }
        })
    }
}

/// Its template stays what it was: pods of it come back if nothing else becomes of it.
async fn end_deployment(client: &Client, namespace: &str, name: &str) -> Result<GateAnswer, Diagnostic> {
    let (deployments, place) = (deployments(namespace), pods(namespace));
    let told = |verb, f: Failure| f.diagnostic(client.place(), &deployments.call(verb, name), &[]);
    let Some(live) = client.get(&deployments, name).await.map_err(|f| told("get", f))? else {
        return Ok(GateAnswer::Passed("it is not there".to_owned()));
    };
    let live = match live["spec"]["replicas"].as_i64() {
        Some(0) => live,
        _ => client.patch(&deployments, name, &json!({ "spec": { "replicas": 0 } })).await.map_err(|f| told("patch", f))?,
    };
    let labels = implied_from_json(&live["spec"]["selector"]["matchLabels"]);
    let found = client.select(&place, &selector(Some(&labels)), "").await;
    let found = found.map_err(|f| f.diagnostic(client.place(), &place.call("list", ""), &[]))?;
    let is_of_it = |pod: &&Json| owner(pod, "ReplicaSet").is_some_and(|set| set.rsplit_once('-').is_some_and(|(of, _)| of == name));
    // What was evicted is only remembered.
    let runs = |pod: &&Json| !matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    let left: Vec<&Json> = found.iter().filter(is_of_it).filter(runs).collect();
    for pod in left.iter().filter(|pod| may_take(pod) > GRACE) {
        let (name, uid) = (pod["metadata"]["name"].as_str().unwrap_or_default(), pod["metadata"]["uid"].as_str());
        // Who may not delete pods waits as long as they take.
        let _ = client.delete_within(&place, name, uid, GRACE).await;
    }
    Ok(judged(left.into_iter().map(what).collect(), &live))
}

/// How long a pod may take to end, in seconds, as far as that was said yet.
fn may_take(pod: &Json) -> u32 {
    let seconds = pod["metadata"]["deletionGracePeriodSeconds"].as_u64();
    seconds.map_or(u32::MAX, |s| u32::try_from(s).unwrap_or(u32::MAX))
}

fn judged(left: Vec<String>, live: &Json) -> GateAnswer {
    match left.is_empty() {
        true if !knows(live) => GateAnswer::Waiting("who makes its pods has not heard of it".to_owned()),
        true => GateAnswer::Passed("no pod is left".to_owned()),
        false => GateAnswer::Waiting(left.join(", ")),
    }
}

async fn attempt(client: &Client, arguments: &Object) -> Result<GateAnswer, Diagnostic> {
    let Some(manifest) = arguments.get("manifest") else { return Ok(GateAnswer::Waiting("its manifest is not known".to_owned())) };
    put(client, manifest).await?;
    let (set_place, set) = located(client, manifest).await?;
    let place = pods(&set.namespace);
    let labels = manifest.get("spec").and_then(|s| s.get("selector")?.get("matchLabels"));
    let told = |f: Failure| f.diagnostic(client.place(), &place.call("list", ""), &[]);
    let found = client.select(&place, &selector(labels), "").await.map_err(told)?;
    let told = |f: Failure| f.diagnostic(client.place(), &set_place.call("get", &set.name), &[]);
    let live = client.get(&set_place, &set.name).await.map_err(told)?.unwrap_or_default();
    Ok(judged(found.iter().filter(|pod| is_of(pod, &set.name)).map(what).collect(), &live))
}

/// Its controller has seen that it is to have no pods: else it may make one yet.
fn knows(set: &Json) -> bool {
    let (observed, generation) = (set["status"]["observedGeneration"].as_i64(), set["metadata"]["generation"].as_i64());
    observed.is_some() && observed >= generation && set["status"]["replicas"].as_i64().unwrap_or(0) == 0
}

/// True for the pods that this StatefulSet made.
fn is_of(pod: &Json, set: &str) -> bool {
    owner(pod, "StatefulSet") == Some(set)
}

/// The owner of a pod, by its kind.
fn owner<'a>(pod: &'a Json, kind: &str) -> Option<&'a str> {
    let owners = pod["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    owners.iter().find(|owner| owner["kind"] == kind)?["name"].as_str()
}

/// A pod that is still there. Of one whose node is gone nobody says that it has ended (Kubernetes' documentation, "Force Delete StatefulSet Pods").
fn what(pod: &Json) -> String {
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let name = text(&pod["metadata"]["name"]);
    match (is_leaving(pod), text(&pod["spec"]["nodeName"])) {
        (true, node) if !node.is_empty() => format!("pod {name} is still ending on node {node}; {IF_OFF}"),
        _ => format!("pod {name} is still there"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn its_controller_has_to_know() {
        let set = |observed: Json, replicas: i64| json!({ "metadata": { "generation": 3 }, "status": { "observedGeneration": observed, "replicas": replicas } });
        assert!(knows(&set(json!(3), 0)));
        assert!(!knows(&set(json!(2), 0)) && !knows(&set(json!(3), 1)) && !knows(&set(Json::Null, 0)));
    }

    #[test]
    fn pods_that_may_take_long_are_given_less_time() {
        let pod = |seconds: Json| json!({ "metadata": { "deletionGracePeriodSeconds": seconds } });
        assert!(may_take(&pod(Json::Null)) > GRACE && may_take(&pod(json!(60))) > GRACE);
        assert!(may_take(&pod(json!(12))) <= GRACE && may_take(&pod(json!(0))) <= GRACE);
    }

    #[test]
    fn only_its_own_pods_count_and_a_node_that_is_gone_is_named() {
        let pod = |owner: Json, leaving: bool| {
            let mut pod = json!({ "metadata": { "name": "etcd-0", "ownerReferences": [owner] }, "spec": { "nodeName": "n1" } });
            if leaving {
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }
            pod
        };
        let set = json!({ "kind": "StatefulSet", "name": "etcd" });
        assert!(is_of(&pod(set.clone(), false), "etcd") && !is_of(&pod(set.clone(), false), "other"));
        assert!(!is_of(&pod(json!({ "kind": "Job", "name": "etcd" }), false), "etcd"));
        assert_eq!(what(&pod(set.clone(), false)), "pod etcd-0 is still there");
        assert!(what(&pod(set, true)).contains("on node n1"));
    }
}
