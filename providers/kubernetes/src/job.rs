//! `kubernetes_job`: a Job that runs to its end once, and again when something changes. What it has done is in no object that could be compared, so that it
//! ran is remembered by the state alone; one that failed did not, and the next apply runs it again.

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan, same,
};

use crate::act;
use crate::client::Client;
use crate::fields;
use crate::manifest::{self, Named, named};
use crate::values::{bad_timeout, object, text};

/// Its name.
pub(crate) const KIND: &str = "kubernetes_job";
/// Seconds; unless the Job itself has a deadline, nothing else ends the wait.
const TIMEOUT: i64 = 600;

/// So long a Job that ended must be there, in seconds.
const SEEN: i64 = 60;

/// The type.
pub(crate) struct KubernetesJob {
    schema: Schema,
}

impl KubernetesJob {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let attributes = vec![
            Attribute::required("cluster", Type::Any, "Connection to the cluster."),
            Attribute::required(
                "manifest",
                Type::Any,
                "The Job: `apiVersion`, `kind`, `metadata` with `name` and `namespace`, `spec`. Another one runs in place of the one of before.",
            ),
            Attribute::optional("triggers", Type::map(Type::String), "Values whose change runs it again."),
            Attribute::optional("timeout", Type::Number, "Seconds to wait until it is complete.").or(TIMEOUT),
            Attribute::computed("object", Type::String, "Which object it is: \"Job.batch/namespace/name\".").identity(),
        ];
        let doc = "A Job that runs to its end once, and again when its manifest or `triggers` change. It is there until it runs again, or is destroyed.";
        // One that failed is in the cluster, and is to go with the rest.
        Self { schema: Schema::new(doc, attributes).through("cluster").leaves_note() }
    }
}

/// True if the difference is one that runs it again.
fn runs_again(before: &Object, after: &Object) -> bool {
    ["manifest", "triggers"].iter().any(|name| !same(before.get(name), after.get(name)))
}

impl ResourceSpec for KubernetesJob {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn derived(&self, mut wanted: Object) -> Object {
        let name = wanted.get("manifest").map_or_else(|| Value::null(Type::String), manifest::called);
        wanted.put("object", name);
        wanted
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let Some(wanted) = wanted else { return Ok(default_plan(&self.schema, before, None)) };
        let mut found: Diagnostics = bad_timeout(wanted).into_iter().collect();
        if let Some(written) = wanted.get("manifest") {
            manifest::problems(written).into_iter().for_each(|problem| found.push(problem));
            if let Named::Known(name) = named(written)
                && name.kind != "Job"
            {
                let detail = format!("`manifest` is that of a {}, which does not run to an end.", name.kind);
                found.push(Diagnostic::error("Not a Job", detail).with_hint("Use `kubernetes_object` for it."));
            }
        }
        let ttl = wanted.get("manifest").and_then(|m| m.get("spec")?.get("ttlSecondsAfterFinished")?.as_i64());
        if ttl.is_some_and(|seconds| seconds < SEEN) {
            let detail = format!("`ttlSecondsAfterFinished` is below {SEEN}: the Job would be gone before anybody saw how it ended.");
            found.push(Diagnostic::error("A Job that nobody sees end", detail).with_hint("Raise it, or leave it out."));
        }
        if found.has_errors() {
            return Err(found);
        }
        // How long to wait is no reason to run it again.
        let before = before.map(|b| {
            let mut before = b.clone();
            before.extend(wanted.get("timeout").map(|t| ("timeout".to_owned(), t.clone())));
            before
        });
        Ok(default_plan(&self.schema, before.as_ref(), Some(wanted)))
    }

    /// Nothing in the cluster tells for sure that it ran as it would now.
    fn recovered(&self, wanted: &Object, _: &Object) -> Result<Option<Object>, Diagnostic> {
        Ok(Some(wanted.clone()))
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        match change {
            Change::Update { before, after } if runs_again(before, after) => {
                vec![format!("runs {} again", text(after, "object").unwrap_or("the Job"))]
            }
            _ => Vec::new(),
        }
    }
}

impl ResourceType<Client> for KubernetesJob {
    /// The state is believed.
    fn observe<'a>(&'a self, _: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(std::future::ready(Ok(ask.known.clone())))
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            match (change.before(), change.after()) {
                (Some(before), Some(after)) if !runs_again(before, after) => Ok(Some(after.clone())),
                (before, Some(after)) => {
                    if let Some(before) = before {
                        remove(client, before).await?;
                    }
                    // What a run has left that did not come to its end.
                    remove(client, after).await?;
                    act::apply(client, None, &running(after)).await.map(|_| Some(after.clone()))
                }
                (Some(before), None) => remove(client, before).await.map(|()| None),
                (None, None) => Ok(None),
            }
        })
    }
}

/// As an object that is waited for.
fn running(job: &Object) -> Object {
    // What somebody else made is never taken over.
    let mut made = object([("wait", Value::object([("rollout", true.into())])), ("reclaim", true.into())]);
    made.extend(["manifest", "timeout"].iter().filter_map(|name| Some(((*name).to_owned(), job.get(name)?.clone()))));
    made
}

/// Deletes it with its pods, and waits until they are gone: the next one is not to run beside them. One that somebody else made stays.
async fn remove(client: &Client, job: &Object) -> Result<(), Diagnostic> {
    let Some(written) = job.get("manifest") else { return Ok(()) };
    let (place, name) = act::located(client, written).await?;
    let told = |f: crate::failure::Failure| f.diagnostic(client.place(), &place.call("get", &name.name), &[]);
    let Some(live) = client.get(&place, &name.name).await.map_err(told)? else { return Ok(()) };
    if fields::ours(&live).is_none() {
        return Ok(());
    }
    let mut gone = running(job);
    gone.insert("object".to_owned(), name.to_string().into());
    gone.insert("uid".to_owned(), live["metadata"]["uid"].as_str().unwrap_or_default().into());
    gone.insert("propagation".to_owned(), "foreground".into());
    act::delete(client, &gone).await
}

#[cfg(test)]
mod tests {
    use karmaform_model::implied_from_json;
    use serde_json::{Value as Json, json};

    use super::*;

    fn job(image: &str, trigger: &str) -> Object {
        let manifest =
            json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "j", "namespace": "n" }, "spec": { "image": image } });
        of(&manifest, trigger)
    }

    fn of(manifest: &Json, trigger: &str) -> Object {
        object([
            ("manifest", implied_from_json(manifest)),
            ("triggers", Value::map(Type::String, [("t".to_owned(), trigger.into())].into())),
            ("timeout", 60i64.into()),
        ])
    }

    fn planned(before: Option<&Object>, wanted: &Object) -> Result<Change, Diagnostics> {
        let job = KubernetesJob::new();
        job.plan(&PlanContext { now: 0 }, before, Some(&job.derived(wanted.clone())))
    }

    #[test]
    fn it_runs_again_when_something_changes_and_only_then() {
        let made = planned(None, &job("a", "1")).unwrap();
        let was = made.after().cloned().unwrap();
        assert_eq!(text(&was, "object"), Some("Job.batch/n/j"));
        let longer = object([("timeout", 90i64.into())]);
        for (wanted, runs) in [
            (job("a", "1"), false),
            (job("b", "1"), true),
            (job("a", "2"), true),
            (Object::from_iter(job("a", "1").into_iter().chain(longer)), false),
        ] {
            let change = planned(Some(&was), &wanted).unwrap();
            assert_eq!(!KubernetesJob::new().impact(&change).is_empty(), runs, "{change:?}");
            assert_eq!(matches!(change, Change::Update { .. }), runs, "{change:?}");
        }
    }

    #[test]
    fn what_does_not_end_is_refused() {
        let wrong =
            planned(None, &of(&json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" } }), "1")).unwrap_err();
        assert_eq!(wrong.iter().next().unwrap().summary, "Not a Job");
        assert!(planned(None, &of(&json!({ "kind": "Job" }), "1")).is_err());
    }
}
