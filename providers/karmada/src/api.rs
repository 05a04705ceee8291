//! The objects inside the Karmada API that make it Karmada: namespaces, roles, admission, aggregation, and what members register with.
//!
//! CRDs are not here, they come out of a release archive. Nothing here knows of the host cluster but the names of Services there, and nothing
//! knows how objects get into an API. What other tools keep in these objects (the signatures of tokens in `cluster-info`, the rules of
//! aggregated roles) is not named, so that it stays theirs.

mod aggregation;
mod bootstrap;
mod roles;
#[cfg(test)]
mod tests;
mod webhooks;

pub(crate) use bootstrap::AGENTS;
use karmaform_model::Arg;
use serde_json::{Map, Value as Json, json};

use crate::versions::{Component, Version};

/// The namespace of the Karmada API that Karmada's components use; its name is fixed in their certificates and defaults.
pub(crate) const SYSTEM_NAMESPACE: &str = "karmada-system";

/// The namespace of the Karmada API that has the credentials and the leases of members; its name is fixed in Karmada (`NamespaceClusterLease`).
pub(crate) const CLUSTER_NAMESPACE: &str = "karmada-cluster";

/// The group of all objects of role-based access control.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";

/// What the objects depend on.
pub(crate) struct Place<'a> {
    /// Where the API server finds a component: a name and a port.
    pub(crate) reached: &'a dyn Fn(Component) -> (String, i64),
    /// The version of Karmada.
    pub(crate) version: &'a Version,
    /// The certificate of the CA that signed what serves the Karmada API and its extensions, in PEM.
    pub(crate) ca: Arg,
    /// Where members that register themselves reach the Karmada API: `https://...`.
    pub(crate) server: Arg,
    /// The addons that run.
    pub(crate) addons: &'a [Component],
}

/// When an object can be made, and what it may break if it is there too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Before any component but the API server: they crash or are refused without.
    First,
    /// Once the webhook is ready: from then on nothing can be written if it does not answer.
    Webhooks,
    /// Once what serves them is ready: until then they make the API look broken.
    Aggregation,
    /// Any time after the first.
    Rest,
}

/// An object inside the Karmada API.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiObject {
    /// Its kind and name, unique among them: `namespace karmada-system`.
    pub(crate) key: String,
    /// The fields that karmaform owns.
    pub(crate) manifest: Arg,
    /// What to wait for after it is applied, as `kubernetes_object` takes it.
    pub(crate) wait: Option<Arg>,
    /// The keys of objects that come first.
    pub(crate) after: Vec<String>,
    /// When it can be made.
    pub(crate) stage: Stage,
}

/// Every object, in the order they are best read.
pub(crate) fn objects(place: &Place<'_>) -> Vec<ApiObject> {
    let mut objects = vec![namespace(SYSTEM_NAMESPACE), namespace(CLUSTER_NAMESPACE)];
    objects.extend(roles::components(place.addons));
    objects.extend(webhooks::configurations(place));
    objects.extend(aggregation::services(place));
    objects.extend(roles::people());
    objects.extend(bootstrap::objects(place));
    objects
}

/// Who a component is in the Karmada API: the user its client certificate must name. The API server is nobody there.
///
/// Kubernetes' own controller manager has a name that Kubernetes has roles for.
pub(crate) fn user(component: Component) -> String {
    match component {
        Component::KubeControllerManager => "system:kube-controller-manager".to_owned(),
        other => format!("system:karmada:{}", other.name()),
    }
}

/// A namespace of Karmada's own.
fn namespace(name: &str) -> ApiObject {
    object("v1", "Namespace", name, Labels::System, Stage::First)
}

/// Which labels an object has besides who manages it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Labels {
    /// None.
    Plain,
    /// Karmada's mark of what is its own: it has it on its namespaces and roles.
    System,
}

/// An object with nothing but its metadata.
fn object(api: &str, kind: &str, name: &str, labels: Labels, stage: Stage) -> ApiObject {
    let mut marks = Map::from_iter([("app.kubernetes.io/managed-by".to_owned(), json!("karmaform"))]);
    if labels == Labels::System {
        marks.insert("karmada.io/system".to_owned(), json!("true"));
    }
    let manifest = json!({ "apiVersion": api, "kind": kind, "metadata": { "name": name, "labels": marks } });
    ApiObject { key: key(kind, name), manifest: Arg::from_json(&manifest), wait: None, after: Vec::new(), stage }
}

/// The key of an object.
fn key(kind: &str, name: &str) -> String {
    format!("{} {name}", kind.to_lowercase())
}

impl ApiObject {
    /// With this part of its manifest.
    fn with(mut self, path: &[&str], part: &Json) -> Self {
        self.manifest.set(path, Arg::from_json(part));
        self
    }

    /// With this part of its manifest, made of what is known later.
    fn with_arg(mut self, path: &[&str], part: Arg) -> Self {
        self.manifest.set(path, part);
        self
    }

    /// In this namespace of the Karmada API.
    fn within(self, namespace: &str) -> Self {
        self.with(&["metadata", "namespace"], &json!(namespace))
    }

    /// With one more label.
    fn labelled(self, label: &str, value: &str) -> Self {
        self.with(&["metadata", "labels", label], &json!(value))
    }

    /// Made after these.
    fn after(mut self, keys: &[String]) -> Self {
        self.after.extend_from_slice(keys);
        self
    }
}
