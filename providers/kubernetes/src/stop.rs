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
use crate::start::put;

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
        Box::pin(async move {
            match attempt(client, arguments).await {
                Err(told) if told.retryable => Ok(GateAnswer::Waiting(told.detail.trim_end_matches('.').to_owned())),
                answer => answer,
            }
        })
    }
}

async fn attempt(client: &Client, arguments: &Object) -> Result<GateAnswer, Diagnostic> {
    let Some(manifest) = arguments.get("manifest") else { return Ok(GateAnswer::Waiting("its manifest is not known".to_owned())) };
    put(client, manifest).await?;
    let (_, set) = located(client, manifest).await?;
    let place = pods(&set.namespace);
    let labels = manifest.get("spec").and_then(|s| s.get("selector")?.get("matchLabels")?.as_entries());
    let labels: Vec<String> =
        labels.into_iter().flatten().filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?))).collect();
    let told = |f: Failure| f.diagnostic(client.place(), &place.call("list", ""), &[]);
    let found = client.select(&place, &labels.join(","), "").await.map_err(told)?;
    let left: Vec<String> = found.iter().filter(|pod| is_of(pod, &set.name)).map(what).collect();
    Ok(match left.is_empty() {
        true => GateAnswer::Passed("no pod is left".to_owned()),
        false => GateAnswer::Waiting(left.join(", ")),
    })
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
        (true, node) if !node.is_empty() => {
            format!("pod {name} is still ending on node {node}; if that is off for good, remove the pod with `kubectl delete pod --force`")
        }
        _ => format!("pod {name} is still there"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
