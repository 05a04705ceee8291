//! The operation `kubernetes_stop`: a StatefulSet has no pods any more. What it is when it has none is put in place, so that nothing of before is made
//! anew, and its pods are waited for.

use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type};
use serde_json::Value as Json;

use crate::act::located;
use crate::client::Client;
use crate::failure::Failure;
use crate::pods::is_leaving;
use crate::pods_why::pods;
use crate::start::{patient, put};
use crate::values::selector;

/// What to do about a pod on a node that is gone.
pub(crate) const IF_OFF: &str = "if that is off for good, remove the pod with `kubectl delete pod --force`";

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Ends all pods of a StatefulSet.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("manifest", Type::Any, "The StatefulSet with `replicas` of 0; it is karmaform's own."),
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
        Box::pin(async move { patient(attempt(client, arguments).await) })
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
    let left: Vec<String> = found.iter().filter(|pod| is_of(pod, &set.name)).map(what).collect();
    Ok(match left.is_empty() {
        true if !knows(&live) => GateAnswer::Waiting("who makes its pods has not heard of it".to_owned()),
        true => GateAnswer::Passed("no pod is left".to_owned()),
        false => GateAnswer::Waiting(left.join(", ")),
    })
}

/// Its controller has seen that it is to have no pods: else it may make one yet.
fn knows(set: &Json) -> bool {
    let (observed, generation) = (set["status"]["observedGeneration"].as_i64(), set["metadata"]["generation"].as_i64());
    observed.is_some() && observed >= generation && set["status"]["replicas"].as_i64().unwrap_or(0) == 0
}

/// True for the pods that this StatefulSet made.
fn is_of(pod: &Json, set: &str) -> bool {
    let owners = pod["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    owners.iter().any(|owner| owner["kind"] == "StatefulSet" && owner["name"] == set)
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
