//! The gate `kubernetes_accepts`: an API server takes an object, with all that it asks on the way: admission webhooks above all.

use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, Gate, GateAnswer, Object, Schema, Type};

use crate::client::{Client, How};
use crate::look::place;
use crate::manifest::{self, Named, named};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Waits until a cluster accepts an object. It is only a dry run: nothing is made.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("manifest", Type::Any, "The object."),
        ],
    )
    .through("cluster")
});

/// The gate `kubernetes_accepts`.
pub(crate) struct KubernetesAccepts;

impl Gate<Client> for KubernetesAccepts {
    fn name(&self) -> &'static str {
        "kubernetes_accepts"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn check<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            Ok(match accepts(client, arguments).await {
                Ok(name) => GateAnswer::Passed(format!("{name} would be accepted")),
                Err(problem) => GateAnswer::Waiting(problem.detail.trim_end_matches('.').to_owned()),
            })
        })
    }
}

async fn accepts(client: &Client, arguments: &Object) -> Result<String, Diagnostic> {
    let wrong = || Diagnostic::error("Manifest is not of one object", "The object to be accepted has no known kind and name.");
    let manifest = arguments.get("manifest").ok_or_else(wrong)?;
    let Named::Known(name) = named(manifest) else { return Err(wrong()) };
    let version = manifest::api_version(manifest).unwrap_or_default();
    let Some(place) = place(client, version, &name.kind, &name.namespace).await? else {
        return Err(Diagnostic::error("Kind is not known to the cluster", format!("{} is not served yet", name.kind)));
    };
    // Nobody owns what is never made.
    let how = How { force: true, dry_run: true };
    let answer = client.apply(&place, &name.name, &manifest::request(manifest), how).await;
    answer.map_err(|failure| failure.diagnostic(client.place(), &place.call("patch", &name.name), &[]))?;
    Ok(name.to_string())
}
