//! The gate `kubernetes_runs`: all Deployments of a namespace that labels choose run as they are wanted.

use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, Gate, GateAnswer, Object, Schema, Type};
use serde_json::Value as Json;

use crate::client::{Client, Place};
use crate::look::place;
use crate::values::{selector, text};
use crate::wait::health;

/// What is looked at.
const KIND: &str = "Deployment";

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Waits until all Deployments of a namespace that labels choose run as they are wanted. What lost something that it needs may have \
         ended, and is started again.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("namespace", Type::String, "Their namespace."),
            Attribute::required("labels", Type::map(Type::String), "The labels that they have."),
        ],
    )
    .through("cluster")
});

/// The gate `kubernetes_runs`.
pub(crate) struct KubernetesRuns;

impl Gate<Client> for KubernetesRuns {
    fn name(&self) -> &'static str {
        "kubernetes_runs"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn check<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            Ok(match look(client, arguments).await {
                Ok(deployments) => answer(&deployments),
                Err(problem) => GateAnswer::Waiting(problem.detail.trim_end_matches('.').to_owned()),
            })
        })
    }
}

async fn look(client: &Client, arguments: &Object) -> Result<Vec<Json>, Diagnostic> {
    let namespace = text(arguments, "namespace").unwrap_or_default();
    let place: Option<Place> = place(client, "apps/v1", KIND, namespace).await?;
    let Some(place) = place else { return Ok(Vec::new()) };
    let found = client.select(&place, &selector(arguments.get("labels")), "").await;
    found.map_err(|failure| failure.diagnostic(client.place(), &place.call("list", ""), &[]))
}

fn answer(deployments: &[Json]) -> GateAnswer {
    let problem = |live: &Json| {
        let problem = health(KIND, live).flatten()?;
        Some(format!("{}: {problem}", live["metadata"]["name"].as_str().unwrap_or_default()))
    };
    match deployments.iter().find_map(problem) {
        Some(problem) => GateAnswer::Waiting(problem),
        None => GateAnswer::Passed(format!("{} of {0} run", deployments.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_that_does_not_run_is_named() {
        let deployment = |name: &str, available: i64| {
            json!({ "metadata": { "name": name, "generation": 1 }, "spec": { "replicas": 1 },
                "status": { "observedGeneration": 1, "updatedReplicas": 1, "replicas": 1, "availableReplicas": available } })
        };
        assert_eq!(answer(&[deployment("a", 1), deployment("b", 1)]), GateAnswer::Passed("2 of 2 run".into()));
        let GateAnswer::Waiting(problem) = answer(&[deployment("a", 1), deployment("b", 0)]) else { panic!() };
        assert!(problem.starts_with("b: "), "{problem}");
    }
}
