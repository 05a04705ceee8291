//! `kubernetes_owner`: that an object is owned by another one, and goes when that goes. For objects that must be there before their owner is.

use std::collections::BTreeMap;

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, default_plan,
};
use serde_json::{Value as Json, json};

use crate::client::{Client, Place};
use crate::failure::Call;
use crate::look;
use crate::manifest::Name;
use crate::values::{by_name, text};

/// Its name.
pub(crate) const KIND: &str = "kubernetes_owner";

/// The type.
pub(crate) struct KubernetesOwner {
    schema: Schema,
}

impl KubernetesOwner {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let attributes = vec![
            Attribute::required("cluster", Type::Any, "Connection to the cluster."),
            Attribute::required("object", Type::String, "What is owned, as `kubernetes_object` names it: \"Secret/namespace/name\".")
                .identity(),
            Attribute::required(
                "owner",
                Type::String,
                "What owns it, as `kubernetes_object` names it: \"Deployment.apps/namespace/name\".",
            )
            .identity(),
            Attribute::optional(
                "object_uid",
                Type::String,
                "The UID of what is owned: another one of the same name is owned by nobody yet.",
            ),
            Attribute::required("api_version", Type::String, "The API version of the owner: \"apps/v1\"."),
            Attribute::required("uid", Type::String, "The UID of the owner."),
        ];
        let doc = "That an object is owned by another one in the same cluster: when that is deleted, the server deletes this one, too.";
        Self { schema: Schema::new(doc, attributes).through("cluster") }
    }
}

impl ResourceSpec for KubernetesOwner {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let given = |name: &'static str| Some((name, wanted.and_then(|w| text(w, name)).filter(|t| Name::parse(t).is_none())?));
        let bad: Diagnostics = ["object", "owner"]
            .into_iter()
            .filter_map(given)
            .map(|(name, text)| {
                let detail = format!("`{name}` is \"{text}\", and must be of the form \"Kind.group/namespace/name\".");
                Diagnostic::error("Unreadable name of an object", detail).with_hint(
                    "Write \"Pod/default/web\" for what is in the core group, \"Deployment.apps/default/web\" for what is in another.",
                )
            })
            .collect();
        if bad.has_errors() {
            return Err(bad);
        }
        Ok(match (before, wanted) {
            // It goes with what it is of.
            (Some(before), None) => Change::Forget { before: before.clone() },
            _ => default_plan(&self.schema, before, wanted),
        })
    }
}

/// Answers all asks, in their order: one LIST per kind and namespace.
pub(crate) async fn observe(client: &Client, asks: &[&Ask]) -> Vec<Result<Option<Object>, Diagnostic>> {
    let mut groups: BTreeMap<(String, String, String), Vec<usize>> = BTreeMap::new();
    let names: Vec<Option<Name>> = asks.iter().map(|ask| text(&ask.identity, "object").and_then(Name::parse)).collect();
    for (index, name) in names.iter().enumerate() {
        if let Some(name) = name {
            groups.entry((format!("{}/", name.group), name.kind.clone(), name.namespace.clone())).or_default().push(index);
        }
    }
    let looks = groups.iter().map(|((version, kind, namespace), indexes)| async move {
        let version = if version == "/" { "v1" } else { version };
        let found = async {
            let Some(place) = look::place(client, version, kind, namespace).await? else { return Ok(Vec::new()) };
            client.list(&place).await.map_err(|f| f.diagnostic(client.place(), &place.call("list", ""), &[]))
        };
        (found.await, indexes)
    });
    let mut answers: Vec<Result<Option<Object>, Diagnostic>> = asks.iter().map(|_| Ok(None)).collect();
    for (found, indexes) in futures::future::join_all(looks).await {
        let found: Result<BTreeMap<String, Json>, Diagnostic> = found.map(by_name);
        for index in indexes {
            answers[*index] = match (&found, &names[*index]) {
                (Ok(items), Some(name)) => Ok(items.get(&name.name).and_then(|live| told(asks[*index], live))),
                (Err(error), _) => Err(error.clone()),
                (_, None) => Ok(None),
            };
        }
    }
    answers
}

/// The reference to an owner of this name, if there is one.
fn told(ask: &Ask, live: &Json) -> Option<Object> {
    let owner = text(&ask.identity, "owner").and_then(Name::parse)?;
    let references = live["metadata"]["ownerReferences"].as_array()?;
    let found = references.iter().find(|r| r["kind"] == owner.kind && r["name"] == owner.name)?;
    let mut object = ask.identity.clone();
    for (name, field) in [("api_version", "apiVersion"), ("uid", "uid")] {
        object.insert(name.to_owned(), found[field].as_str().unwrap_or_default().into());
    }
    Some(object)
}

/// Sets the reference, beside those of others.
async fn apply(client: &Client, after: &Object) -> Result<Object, Diagnostic> {
    let broken = || Diagnostic::error("Unreadable name of an object", "It is not of the form \"Kind.group/namespace/name\".");
    let part = |name: &str| text(after, name).and_then(Name::parse).ok_or_else(broken);
    let (object, owner) = (part("object")?, part("owner")?);
    let version = if object.group.is_empty() { "v1".to_owned() } else { format!("{}/", object.group) };
    let gone = || Diagnostic::error("Object is gone", format!("{object} was there when the plan was made, and is not any more."));
    let place: Place = look::place(client, &version, &object.kind, &object.namespace).await?.ok_or_else(gone)?;
    let failed = |verb: &'static str, failure: crate::failure::Failure| {
        let call: Call = place.call(verb, &object.name);
        failure.diagnostic(client.place(), &call, &[])
    };
    let live = client.get(&place, &object.name).await.map_err(|f| failed("get", f))?.ok_or_else(gone)?;
    let mut references: Vec<Json> = live["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    references.retain(|r| r["kind"] != owner.kind || r["name"] != owner.name);
    let has_controller = references.iter().any(|r| r["controller"] == true);
    let mut reference =
        json!({ "apiVersion": text(after, "api_version"), "kind": owner.kind, "name": owner.name, "uid": text(after, "uid") });
    if !has_controller {
        reference["controller"] = true.into();
        reference["blockOwnerDeletion"] = true.into();
    }
    references.push(reference);
    let patch = json!({ "metadata": { "ownerReferences": references, "resourceVersion": live["metadata"]["resourceVersion"] } });
    client.patch(&place, &object.name, &patch).await.map_err(|f| failed("patch", f))?;
    Ok(after.clone())
}

impl ResourceType<Client> for KubernetesOwner {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { observe(client, &[ask]).await.pop().unwrap_or(Ok(None)) })
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            match change.after() {
                Some(after) => apply(client, after).await.map(Some),
                None => Ok(None),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::Value;

    fn ask() -> Ask {
        let identity = [("object", "Secret/ns/s"), ("owner", "Cluster.cluster.karmada.io//eu1")];
        let identity = identity.into_iter().map(|(n, v)| (n.to_owned(), Value::from(v))).collect();
        Ask { resource_type: KIND.to_owned(), identity, known: None, wanted: None, begun: false }
    }

    #[test]
    fn the_owner_is_found_among_others() {
        let other = json!({ "apiVersion": "v1", "kind": "Node", "name": "eu1", "uid": "1" });
        let owner = json!({ "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "name": "eu1", "uid": "2" });
        let live = |references: Json| json!({ "metadata": { "name": "s", "ownerReferences": references } });
        let found = told(&ask(), &live(json!([other, owner]))).unwrap();
        assert_eq!((found["uid"].as_str(), found["api_version"].as_str()), (Some("2"), Some("cluster.karmada.io/v1alpha1")));
        assert_eq!(told(&ask(), &live(json!([other]))), None);
        assert_eq!(told(&ask(), &live(Json::Null)), None);
    }

    #[test]
    fn it_goes_with_what_it_is_of() {
        let owner = KubernetesOwner::new();
        let before = ask().identity;
        let change = owner.plan(&PlanContext { now: 0 }, Some(&before), None).unwrap();
        assert!(matches!(change, Change::Forget { .. }));
        let bad = Object::from([("object".to_owned(), Value::from("x"))]);
        assert!(owner.plan(&PlanContext { now: 0 }, None, Some(&bad)).is_err());
    }
}
