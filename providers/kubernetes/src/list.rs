//! `kubernetes_list`: what is listed at a path of a server, as `kubectl get` would show it. It is never made, changed or deleted.
//!
//! Whoever plans a change of something else need not know it; so it is only asked for where a look is all that is wanted, or where what it
//! is in is to go.

use std::time::Duration;

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan,
};
use serde_json::Value as Json;

use crate::client::Client;
use crate::failure::Call;
use crate::values::{object, text};

/// Its name.
pub(crate) const KIND: &str = "kubernetes_list";
/// The longest wait for the list.
const LIMIT: Duration = Duration::from_secs(10);

/// The type.
pub(crate) struct KubernetesList {
    schema: Schema,
}

impl KubernetesList {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let attributes = vec![
            Attribute::required("cluster", Type::Any, "Connection to the cluster."),
            Attribute::required("path", Type::String, "What to list: \"/apis/GROUP/VERSION/PLURAL\".").identity(),
            Attribute::computed(
                "items",
                Type::list(Type::map(Type::String)),
                "What is there: for each the columns that `kubectl get` shows, by their names in lower case. Null if nobody answered.",
            )
            .volatile(),
            Attribute::computed("problem", Type::String, "Why it could not be listed.").volatile(),
        ];
        let doc = "What a server lists, to look at: nothing is made, changed or deleted, and no plan compares it.";
        Self { schema: Schema::new(doc, attributes).through("cluster") }
    }
}

impl ResourceSpec for KubernetesList {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let path = wanted.and_then(|w| text(w, "path"));
        if let Some(path) = path.filter(|p| !p.starts_with("/api") || p.contains(['?', '#', ' '])) {
            let detail = format!("`path` is \"{path}\", but must be a path like \"/apis/apps/v1/deployments\".");
            return Err(Diagnostic::error("Bad path", detail).into());
        }
        Ok(default_plan(&self.schema, before, wanted))
    }

    /// There is nothing that could have been lost.
    fn recovered(&self, wanted: &Object, _: &Object) -> Result<Option<Object>, Diagnostic> {
        Ok(Some(wanted.clone()))
    }
}

/// Answers all asks, in their order.
pub(crate) async fn observe(client: &Client, asks: &[&Ask]) -> Vec<Result<Option<Object>, Diagnostic>> {
    futures::future::join_all(asks.iter().map(|ask| look(client, ask))).await
}

async fn look(client: &Client, ask: &Ask) -> Result<Option<Object>, Diagnostic> {
    // To change something nobody has to know it.
    let is_asked = ask.wanted.is_none() || client.only_looks();
    let (Some(path), Some(known), true) = (text(&ask.identity, "path"), &ask.known, is_asked) else { return Ok(ask.known.clone()) };
    let (items, problem) = match client.table(path, LIMIT).await {
        Ok(answer) => (Value::list(Type::map(Type::String), rows(&answer)), Value::null(Type::String)),
        // Who looks for drift is told what can't be looked at. Where the kind is not there, or nobody answers, others tell it.
        Err(failure) if client.only_looks() && failure.code() == Some(403) => {
            return Err(failure.diagnostic(client.place(), &Call { verb: "list", ..Call::none() }, &[]));
        }
        Err(failure) => {
            let why = failure.diagnostic(client.place(), &Call::none(), &[]).detail;
            (Value::null(Type::list(Type::map(Type::String))), why.into())
        }
    };
    let mut seen = known.clone();
    seen.extend(object([("items", items), ("problem", problem)]));
    Ok(Some(seen))
}

/// The rows of a table, or of a list by a server that makes no tables.
fn rows(answer: &Json) -> Vec<Value> {
    let row = |cells: Vec<(String, String)>| Value::map(Type::String, cells.into_iter().map(|(n, v)| (n, v.into())).collect());
    let array = |value: &Json| value.as_array().cloned().unwrap_or_default();
    if answer["kind"] == "Table" {
        // Those of a higher priority are for `-o wide`.
        let columns = array(&answer["columnDefinitions"]);
        let names: Vec<Option<String>> = columns
            .iter()
            .map(|c| c["name"].as_str().filter(|_| c["priority"].as_i64().unwrap_or_default() == 0))
            .map(|n| n.map(|n| n.to_lowercase().replace([' ', '-'], "_")))
            .collect();
        let cell = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let cells = |r: &Json| names.iter().zip(array(&r["cells"])).filter_map(|(n, v)| Some((n.clone()?, cell(&v)))).collect();
        return array(&answer["rows"]).iter().map(|r| row(cells(r))).collect();
    }
    let of = |item: &Json| {
        let mut cells = vec![("name".to_owned(), item["metadata"]["name"].as_str().unwrap_or_default().to_owned())];
        let ready = array(&item["status"]["conditions"]).into_iter().find(|c| c["type"] == "Ready");
        cells.extend(ready.and_then(|c| Some(("ready".to_owned(), c["status"].as_str()?.to_owned()))));
        row(cells)
    };
    array(&answer["items"]).iter().map(of).collect()
}

impl ResourceType<Client> for KubernetesList {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(look(client, ask))
    }

    fn apply<'a>(&'a self, _: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { Ok(change.after().cloned()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_are_read_and_lists_too() {
        let table = json!({
            "kind": "Table",
            "columnDefinitions": [
                { "name": "Name", "priority": 0 }, { "name": "Mode" }, { "name": "API-Endpoint", "priority": 1 }, { "name": "Up To", "priority": 0 },
            ],
            "rows": [{ "cells": ["eu1", "Push", "https://x", 3] }],
        });
        let text = |v: &Value| karmaform_model::to_json(v);
        assert_eq!(rows(&table).iter().map(text).collect::<Vec<_>>(), [json!({ "name": "eu1", "mode": "Push", "up_to": "3" })]);
        let conditions = json!([{ "type": "Ready", "status": "False" }]);
        let list = json!({ "kind": "ClusterList", "items": [{ "metadata": { "name": "a" }, "status": { "conditions": conditions } }, { "metadata": { "name": "b" } }] });
        assert_eq!(rows(&list).iter().map(text).collect::<Vec<_>>(), [json!({ "name": "a", "ready": "False" }), json!({ "name": "b" })]);
        assert!(rows(&json!({ "kind": "Table", "rows": null })).is_empty());
    }

    #[tokio::test]
    async fn who_looks_for_drift_is_told_of_a_right_that_is_missing() {
        const REFUSAL: &str =
            "clusters is forbidden: User \"u\" cannot list resource \"clusters\" in API group \"cluster.karmada.io\" at the cluster scope";
        let path = object([("path", "/apis/cluster.karmada.io/v1alpha1/clusters".into())]);
        let ask = |wanted: bool| Ask {
            resource_type: KIND.to_owned(),
            identity: path.clone(),
            known: Some(path.clone()),
            wanted: wanted.then(|| path.clone()),
            begun: false,
        };
        let (client, _) = crate::mock::looking(|_, _| crate::mock::refused(403, REFUSAL)).await;
        let error = look(&client, &ask(true)).await.unwrap_err();
        assert_eq!(error.summary, "Right missing in the cluster");
        assert!(error.detail.contains("The right to list clusters.cluster.karmada.io is not given to \"u\""), "{error:?}");
        // Who destroys goes on without it, and says so.
        let (client, _) = crate::mock::client(|_, _| crate::mock::refused(403, REFUSAL)).await;
        let seen = look(&client, &ask(false)).await.unwrap().unwrap();
        assert!(text(&seen, "problem").is_some_and(|p| p.contains("list clusters")), "{seen:?}");
        let (client, _) = crate::mock::looking(|_, _| crate::mock::refused(404, "the server could not find the requested resource")).await;
        assert!(look(&client, &ask(true)).await.unwrap().unwrap()["items"].is_null());
    }

    #[test]
    fn what_is_listed_is_no_change() {
        let list = KubernetesList::new();
        let context = PlanContext { now: 0 };
        let before = object([("path", "/apis/a/v1/b".into()), ("items", Value::list(Type::map(Type::String), Vec::new()))]);
        let wanted = object([("path", "/apis/a/v1/b".into())]);
        assert!(list.plan(&context, Some(&before), Some(&wanted)).unwrap().is_no_op());
        let bad = object([("path", "/apis/a/v1/b?watch=1".into())]);
        assert!(list.plan(&context, None, Some(&bad)).is_err());
    }
}
