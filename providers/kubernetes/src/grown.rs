//! The gate `kubernetes_grown`: volumes have the size that their claims ask for. Who makes volumes makes them larger when it comes to that, and some file
//! systems grow only at a pod's next start (Kubernetes' documentation, "Expanding Persistent Volumes Claims").

use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, Gate, GateAnswer, Object, Schema, Type, Value};
use serde_json::Value as Json;

use crate::client::Client;
use crate::failure::Failure;
use crate::look::place;
use crate::shape::quantity;
use crate::values::text;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Waits until volumes have the size that their claims ask for.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("namespace", Type::String, "The claims' namespace."),
            Attribute::required("claims", Type::list(Type::String), "Their names."),
        ],
    )
    .through("cluster")
});

/// The gate `kubernetes_grown`.
pub(crate) struct KubernetesGrown;

impl Gate<Client> for KubernetesGrown {
    fn name(&self) -> &'static str {
        "kubernetes_grown"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn check<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            Ok(match look(client, arguments).await {
                Ok(waiting) if waiting.is_empty() => GateAnswer::Passed("they have it".to_owned()),
                Ok(waiting) => GateAnswer::Waiting(waiting.join(", ")),
                Err(problem) => GateAnswer::Waiting(problem.detail.trim_end_matches('.').to_owned()),
            })
        })
    }
}

/// What each claim waits for that has not its size yet.
async fn look(client: &Client, arguments: &Object) -> Result<Vec<String>, Diagnostic> {
    let namespace = text(arguments, "namespace").unwrap_or_default();
    let Some(place) = place(client, "v1", "PersistentVolumeClaim", namespace).await? else { return Ok(Vec::new()) };
    let mut waiting = Vec::new();
    for name in arguments.get("claims").and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str) {
        let told = |failure: Failure| failure.diagnostic(client.place(), &place.call("get", name), &[]);
        let live = client.get(&place, name).await.map_err(told)?;
        waiting.extend(live.and_then(|live| small(&live)).map(|why| format!("{name} {why}")));
    }
    Ok(waiting)
}

/// Why it is not as large as it is to be; `None`: it is, or it has no volume yet.
fn small(claim: &Json) -> Option<String> {
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let (has, wanted) = (text(&claim["status"]["capacity"]["storage"]), text(&claim["spec"]["resources"]["requests"]["storage"]));
    if claim["status"]["phase"] != "Bound" || quantity(&has)? >= quantity(&wanted)? {
        return None;
    }
    let conditions = claim["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let at = conditions.iter().find(|c| c["status"] == "True");
    let why = at.map(|c| (text(&c["type"]), text(&c["message"])));
    Some(match why {
        Some((kind, message)) if message.is_empty() => format!("has {has} of {wanted} ({kind})"),
        Some((kind, message)) => format!("has {has} of {wanted} ({kind}: {message})"),
        None => format!("has {has} of {wanted}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_volume_that_has_not_its_size_yet_says_why() {
        let claim = |has: &str, conditions: Json| {
            json!({ "spec": { "resources": { "requests": { "storage": "20Gi" } } },
                "status": { "phase": "Bound", "capacity": { "storage": has }, "conditions": conditions } })
        };
        assert_eq!(small(&claim("20480Mi", json!([]))), None);
        assert_eq!(small(&claim("30Gi", json!(null))), None);
        assert_eq!(small(&claim("10Gi", json!(null))).as_deref(), Some("has 10Gi of 20Gi"));
        let pending = json!([{ "type": "FileSystemResizePending", "status": "True", "message": "waiting for a pod" }]);
        assert_eq!(small(&claim("10Gi", pending)).as_deref(), Some("has 10Gi of 20Gi (FileSystemResizePending: waiting for a pod)"));
        let mut unbound = claim("10Gi", json!(null));
        unbound["status"]["phase"] = "Pending".into();
        assert_eq!(small(&unbound), None);
    }
}
