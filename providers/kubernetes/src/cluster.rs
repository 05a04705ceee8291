//! `data "kubernetes_cluster"`: what a cluster is like, and the connection to it.

use karmaform_model::{Attribute, BoxFuture, DataSource, Diagnostic, Object, Schema, Type, Value};
use serde_json::Value as Json;

use crate::client::Client;
use crate::connection::{self, Options, Server};
use crate::failure::{Call, Failure};
use crate::rights;
use crate::values::{object, text};

/// The data source.
pub(crate) struct Cluster {
    schema: Schema,
}

impl Cluster {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let mut attributes = connection::attributes();
        attributes.push(Attribute::optional(
            "permissions",
            Type::list(Type::String),
            "Rights that are needed, each \"VERB RESOURCE[.GROUP][/SUBRESOURCE] [in NAMESPACE]\": \"create deployments.apps in karmada-system\", \
             \"get pods/portforward\".",
        ));
        let facts: [(&'static str, Type, &'static str); 7] = [
            (
                "connection",
                Type::Any,
                "Connection to the cluster, for the attribute `cluster` of the resources of this provider and for others.",
            ),
            (
                "reachable",
                Type::Bool,
                "False for a cluster that did not answer and need not (`required = false`); then its facts are null.",
            ),
            ("version", Type::String, "Version of the API server: \"1.20.2\"."),
            ("nodes", Type::list(node_type()), "Its nodes, by name: `name`, `ready`, and `architecture` as releases name it (\"amd64\")."),
            ("storage_classes", Type::list(Type::String), "Names of its storage classes, the default one first."),
            ("default_storage_class", Type::String, "Name of the default storage class; null if there is none."),
            ("missing_permissions", Type::list(Type::String), "Those of `permissions` that the cluster denies."),
        ];
        attributes.extend(facts.map(|(name, ty, doc)| Attribute::computed(name, ty, doc)));
        let mut schema = Schema::new("A Kubernetes cluster.", attributes);
        schema.connection = karmaform_model::Connection::Arguments;
        Self { schema }
    }
}

fn node_type() -> Type {
    Type::object([("name", Type::String), ("ready", Type::Bool), ("architecture", Type::String)])
}

impl DataSource<Client> for Cluster {
    fn name(&self) -> &'static str {
        "kubernetes_cluster"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async move {
            let permissions = arguments.get("permissions").and_then(Value::as_items).unwrap_or_default();
            let permissions = rights::read(&permissions.iter().filter_map(Value::as_str).collect::<Vec<_>>())?;
            let server = client.server();
            let asked = futures::join!(
                client.raw("/api/v1/namespaces/kube-system"),
                client.raw("/version"),
                client.raw("/api/v1/nodes"),
                client.raw("/apis/storage.k8s.io/v1/storageclasses"),
                rights::missing(client, &permissions),
            );
            let (namespace, version, nodes, classes, missing) = asked;
            if !connection::is_required(arguments)
                && let Err(failure) = &namespace
                && failure.is_trouble()
            {
                return Ok(absent(arguments, server));
            }
            let call =
                |resource: &str, name: &str, verb| Call { verb, resource: resource.to_owned(), namespace: None, name: name.to_owned() };
            let told = |call: Call| move |failure: Failure| failure.diagnostic(client.place(), &call, &[]);
            let namespace = namespace.map_err(told(call("namespaces", "kube-system", "get")))?;
            let version = version.map_err(told(call("version", "", "get")))?;
            let nodes = nodes.map_err(told(call("nodes", "", "list")))?;
            let classes = match classes {
                // A control plane without this group has no storage.
                Err(failure) if failure.code() == Some(404) => Json::Null,
                other => other.map_err(told(call("storageclasses", "", "list")))?,
            };
            let Some(id) = namespace["metadata"]["uid"].as_str() else {
                return Err(Diagnostic::error(
                    "Not a Kubernetes API server",
                    format!("{} has no usable namespace kube-system.", client.place()),
                ));
            };
            let mut object = arguments.clone();
            object.extend(facts(&version, &nodes, &classes));
            let version = text(&object, "version").unwrap_or_default().into();
            object.insert("reachable".to_owned(), true.into());
            object.insert("connection".to_owned(), Options::value(arguments, id.into(), version, server));
            object.insert("missing_permissions".to_owned(), Value::strings(missing?));
            Ok(object)
        })
    }
}

/// Of one that did not answer: which one it is nobody can say.
fn absent(arguments: &Object, server: &Server) -> Object {
    let mut object = arguments.clone();
    let none = |ty: &Type| Value::null(ty.clone());
    object.extend(self::object([
        ("reachable", false.into()),
        ("version", none(&Type::String)),
        ("nodes", none(&Type::list(node_type()))),
        ("storage_classes", none(&Type::list(Type::String))),
        ("default_storage_class", none(&Type::String)),
        ("missing_permissions", none(&Type::list(Type::String))),
    ]));
    let (id, version) = (Value::unknown_not_null(Type::String), none(&Type::String));
    object.insert("connection".to_owned(), Options::value(arguments, id, version, server));
    object
}

fn items(list: &Json) -> &[Json] {
    list["items"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn name(item: &Json) -> &str {
    item["metadata"]["name"].as_str().unwrap_or_default()
}

fn facts(version: &Json, nodes: &Json, classes: &Json) -> Object {
    let mut nodes: Vec<_> = items(nodes).iter().collect();
    nodes.sort_by_key(|n| name(n));
    let nodes = nodes.into_iter().map(|n| {
        let conditions = n["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ready = conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
        let architecture = n["status"]["nodeInfo"]["architecture"].as_str().unwrap_or_default();
        Value::object([("name", name(n).into()), ("ready", ready.into()), ("architecture", architecture.into())])
    });
    let is_default = |c: &Json| c["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true";
    let mut classes: Vec<(bool, &str)> = items(classes).iter().map(|c| (!is_default(c), name(c))).collect();
    classes.sort_unstable();
    let default = classes.first().filter(|(other, _)| !other).map(|(_, n)| Value::from(*n));
    object([
        ("version", version["gitVersion"].as_str().unwrap_or_default().trim_start_matches('v').into()),
        ("nodes", Value::list(node_type(), nodes.collect())),
        ("storage_classes", Value::strings(classes.iter().map(|(_, n)| n))),
        ("default_storage_class", default.unwrap_or_else(|| Value::null(Type::String))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn facts_are_read() {
        let node = |name: &str, ready: &str| json!({ "metadata": { "name": name }, "status": { "conditions": [{ "type": "Ready", "status": ready }], "nodeInfo": { "architecture": "arm64" } } });
        let class = |name: &str, default: &str| json!({ "metadata": { "name": name, "annotations": { "storageclass.kubernetes.io/is-default-class": default } } });
        let found = facts(
            &json!({ "gitVersion": "v1.20.2" }),
            &json!({ "items": [node("b", "Unknown"), node("a", "True")] }),
            &json!({ "items": [class("fast", "false"), class("slow", "true")] }),
        );
        assert_eq!(found["version"], "1.20.2".into());
        assert_eq!(found["storage_classes"], Value::strings(["slow", "fast"]));
        assert_eq!(found["default_storage_class"], "slow".into());
        let first = &found["nodes"].as_items().unwrap()[0];
        assert_eq!((first.get("name"), first.get("ready")), (Some(&"a".into()), Some(&true.into())));
        assert!(facts(&Json::Null, &Json::Null, &Json::Null)["default_storage_class"].is_null());
    }
}
