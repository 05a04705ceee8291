//! `kubernetes_object`: any object, by its manifest.

use karmaform_model::{
    Ask, Attribute, Block, BoxFuture, Change, Diagnostic, Diagnostics, Nesting, Object, Path, PlanContext, ReplaceOrder, ResourceSpec,
    ResourceType, Schema, Type, Value, default_plan,
};

use crate::act;
use crate::client::Client;
use crate::exposed;
use crate::look;
use crate::manifest;
use crate::service;
use crate::values::{bad_timeout, is_true, text};
use crate::wait_expression;

/// Its name.
pub(crate) const KIND: &str = "kubernetes_object";
const PROPAGATIONS: &[&str] = &["background", "foreground", "orphan"];

/// The type.
pub(crate) struct KubernetesObject {
    schema: Schema,
}

impl KubernetesObject {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let [addresses, node_ports] = service::types();
        let attributes = vec![
            Attribute::required(
                "cluster",
                Type::Any,
                "Connection to the cluster: the attribute `connection` of a `data \"kubernetes_cluster\"`.",
            ),
            Attribute::required(
                "manifest",
                Type::Any,
                "The object: an object, or `yamldecode(...)` of one YAML document. Only fields in it are managed. Without a namespace, \
                 namespaced objects are in \"default\". What has nothing but a name gets the label `app.kubernetes.io/managed-by`, since \
                 servers keep account of fields, and it has none.",
            ),
            Attribute::optional(
                "force",
                Type::Bool,
                "Whether to take fields over from other managers, and to take over an object that exists already.",
            )
            .or(false),
            Attribute::optional(
                "reclaim",
                Type::Bool,
                "Whether to take fields back that somebody else has changed since. Unlike with `force`, an object that karmaform did not make \
                 is not taken over.",
            )
            .write_only(),
            Attribute::optional(
                "exclusive",
                Type::Bool,
                "Whether nobody else may set fields of it: what others add to its specification or its data (a container, a variable of the \
                 environment, a key) is a difference, and is taken away. Labels, annotations and status are left to everybody, and so is what others complete: \
                 volumes, claims, accounts, their tokens, Services of the type LoadBalancer, aggregated ClusterRoles. An object with the annotation \
                 `karmaform.io/exclusive: \"false\"` is left to others, too.",
            )
            .write_only(),
            Attribute::optional(
                "shared",
                Type::Bool,
                "Whether it may exist already without karmaform having made it: then it is left as it is, and never changed or deleted. If \
                 it is not there, it is made, and managed as ever.",
            ),
            Attribute::optional(
                "keep",
                Type::Bool,
                "Whether to leave it in the cluster when this resource is destroyed: it is only forgotten.",
            ),
            Attribute::optional(
                "keep_if_used",
                Type::Bool,
                "Of a Namespace: whether to leave it in the cluster when this resource is destroyed as long as there is something of others in \
                 it: accounts, Secrets, ConfigMaps, workloads, pods or volumes. Several may share a Namespace so, and the last one takes it \
                 away.",
            ),
            Attribute::optional(
                "unique",
                Type::list(Type::String),
                "Fields in which no other object of its kind may have the same value, each a JSON pointer: `[\"/spec/id\"]`. Looked at when it \
                 is to be made.",
            )
            .write_only(),
            Attribute::optional(
                "expose",
                Type::map(Type::String),
                "Fields to read out of the object as it is in the cluster, by name, each a JSON pointer: `{ token = \"/data/token\" }`. What is \
                 no string is given as JSON.",
            ),
            Attribute::optional(
                "remake",
                Type::Bool,
                "Whether what the server does not change in place is changed by deleting the object without its dependents and making it anew, which then has \
                 them as before: a StatefulSet is made anew around its pods.",
            )
            .write_only(),
            Attribute::optional("replace_with", Type::String, "A text that replaces the object when it changes, whatever else changes.")
                .forces_replace(),
            Attribute::optional(
                "expect_kind",
                Type::Bool,
                "Whether the cluster must serve its kind when the plan is made. Unless it must, what brings the kind may be made in the \
                 same run.",
            )
            .write_only(),
            Attribute::optional(
                "propagation",
                Type::String,
                "What becomes of dependents when it is deleted: \"background\", \"foreground\" or \"orphan\".",
            )
            .or("background"),
            Attribute::optional(
                "timeout",
                Type::Number,
                "Seconds to wait for `wait`, and for a deletion to finish. 60 by default; 300 for the deletion of a Namespace, which waits for all that is in it.",
            ),
            Attribute::computed("object", Type::String, "Which object it is: \"Deployment.apps/namespace/name\", \"Namespace//name\".")
                .identity(),
            Attribute::computed("uid", Type::String, "Its UID."),
            Attribute::computed(
                "addresses",
                addresses,
                "Of a Service of the type LoadBalancer: the IP addresses and DNS names that it was given; else null.",
            ),
            Attribute::computed(
                "node_ports",
                node_ports,
                "Of a Service of the type NodePort or LoadBalancer: its ports on every node, in the order of its ports; else null.",
            ),
            Attribute::computed("exposed", exposed::ty(), "The fields that `expose` names; null for one that is not there.").secret(),
            Attribute::computed("adopted", Type::Bool, "True for a `shared` object that karmaform did not make; else null."),
            Attribute::computed("foreign", Type::Bool, "True for something that exists already and that karmaform did not make.")
                .volatile(),
            Attribute::computed("immutable", Type::String, "Why the wanted change can't be made in place; null if it can.").volatile(),
            Attribute::computed(
                "ready",
                Type::Bool,
                "Of what runs pods or serves an API: it is as wanted, all of it; null for other kinds.",
            )
            .volatile(),
            Attribute::computed("problem", Type::String, "Why it is not ready, in a few words.").volatile(),
            Attribute::computed(
                "care",
                Type::list(Type::String),
                "What it is in need of though it is as it was written, a sentence each: a Service of the type LoadBalancer has no address, a member of Karmada is cordoned.",
            )
            .volatile(),
            Attribute::computed(
                "missed",
                Type::String,
                "Of a CronJob: when its newest run was to be, RFC 3339, if that is over and was no success; else null.",
            )
            .volatile(),
            Attribute::computed(
                "unlisted",
                Type::Bool,
                "True if the pods that it runs or leads to could not be listed: what somebody did to these is not known; else null.",
            )
            .volatile(),
        ];
        let wait = Schema::new(
            "What to wait for after a change.",
            vec![
                Attribute::optional(
                    "rollout",
                    Type::Bool,
                    "Until a Deployment, StatefulSet or DaemonSet runs as wanted, all replicas of it, or a Job is complete.",
                ),
                Attribute::optional("address", Type::Bool, "Until a Service of the type LoadBalancer has an address."),
                Attribute::optional(
                    "condition",
                    Type::map(Type::String),
                    "Until these conditions have these statuses: `{ Established = \"True\" }`.",
                ),
                Attribute::optional(
                    "fields",
                    Type::map(Type::String),
                    "Until the fields at these paths have these values: `{ \"status.phase\" = \"Bound\" }`; \"*\" is any.",
                ),
                Attribute::optional(
                    "expression",
                    Type::String,
                    "Until this is true, in CEL: \"status.availableReplicas == spec.replicas\". `object` is the object as it is in the \
                     cluster; its fields (`status`, `spec`) can be named alone, too. As long as a field is not there, it is not true yet.",
                ),
            ],
        );
        let wait = Block { name: "wait", nesting: Nesting::Single, schema: wait };
        let schema = Schema::new("An object in a Kubernetes cluster.", attributes).with_blocks(vec![wait]).through("cluster");
        Self { schema: schema.shared_by("shared") }
    }
}

impl ResourceSpec for KubernetesObject {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn derived(&self, mut wanted: Object) -> Object {
        let Some(manifest) = wanted.get("manifest") else { return wanted };
        let name = manifest::called(manifest);
        let manifest = manifest::marked(manifest.clone());
        wanted.put("manifest", manifest);
        wanted.put("object", name);
        wanted
    }

    fn import_id(&self, wanted: &Object) -> Option<String> {
        let manifest = wanted.get("manifest")?;
        let part = |path: &[&str]| path.iter().try_fold(manifest, |value, name| value.get(name)).and_then(Value::as_str);
        let namespace = part(&["metadata", "namespace"]).map(|n| format!("namespace={n},")).unwrap_or_default();
        let (api_version, kind, name) = (part(&["apiVersion"])?, part(&["kind"])?, part(&["metadata", "name"])?);
        Some(format!("apiVersion={api_version},kind={kind},{namespace}name={name}"))
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let Some(wanted) = wanted else {
            return Ok(match before {
                Some(before) if stays(before) => Change::Forget { before: before.clone() },
                before => default_plan(&self.schema, before, None),
            });
        };
        let mut problems: Diagnostics = wanted.get("manifest").map(manifest::problems).unwrap_or_default().into_iter().collect();
        problems.extend(arguments(wanted));
        if !problems.is_empty() {
            return Err(problems);
        }
        let name = text(wanted, "object").unwrap_or("The object");
        let is_foreign = before.is_some_and(|b| is_true(b, "foreign"));
        if is_foreign && is_true(wanted, "shared") {
            return Ok(self.adoption(before.cloned().unwrap_or_default(), wanted));
        }
        if is_foreign && !is_true(wanted, "force") {
            return Err(act::foreign(name, wanted).into());
        }
        let filled = before.map(|b| comparable(&self.schema, b, wanted));
        let change = default_plan(&self.schema, filled.as_ref(), Some(wanted));
        let immutable = before.and_then(|b| text(b, "immutable"));
        let mut change = match (change, immutable) {
            (change @ Change::Update { .. }, Some(_)) if is_true(wanted, "remake") => change,
            (Change::Update { .. }, Some(why)) if is_true(wanted, "keep") => {
                let told = format!("{name} would have to be deleted and made anew, but `keep` is set. The server says: {why}");
                return Err(Diagnostic::error("Field can't be changed in place", told)
                    .with_hint("Leave the field as it is, or delete the object yourself.")
                    .into());
            }
            (Change::Update { before, .. }, Some(_)) => {
                let fresh = default_plan(&self.schema, None, Some(wanted));
                let after = fresh.after().cloned().unwrap_or_default();
                Change::Replace { before, after, order: ReplaceOrder::DestroyFirst, because: vec![Path::attribute("manifest")] }
            }
            // It is as it was written, but what was to be waited for has not come yet, or is not so any more.
            (Change::NoOp { object }, _) if waits_for_rollout(wanted) && before.and_then(|b| b.get("ready")?.as_bool()) == Some(false) => {
                Change::Update { before: before.cloned().unwrap_or_default(), after: object }
            }
            (Change::NoOp { object }, _) if before.is_some_and(|b| service::is_without_address(b, wanted)) => {
                Change::Update { before: before.cloned().unwrap_or_default(), after: object }
            }
            (change, _) => change,
        };
        service::foretell(&mut change);
        exposed::foretell(&mut change);
        // Whether a shared one is there by then is only known for certain when it is made.
        let is_open = is_true(wanted, "shared") && matches!(change, Change::Create { .. } | Change::Replace { .. });
        if let Some(after) = change.after_mut() {
            let adopted = if is_open { Value::unknown(Type::Bool) } else { Value::null(Type::Bool) };
            after.put("adopted", adopted);
        }
        Ok(change)
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        match change {
            Change::Update { after, .. } if is_true(after, "adopted") => vec!["is there already, and is left as it is".to_owned()],
            Change::Update { before, after }
                if waits_for_rollout(after) && karmaform_model::same(before.get("manifest"), after.get("manifest")) =>
            {
                let problem = text(before, "problem").unwrap_or("it is not ready");
                vec![format!("nothing changes, but it is waited for: {problem}")]
            }
            Change::Update { before, after }
                if service::is_without_address(before, after) && karmaform_model::same(before.get("manifest"), after.get("manifest")) =>
            {
                vec!["nothing changes, but it is waited for: nobody gave it an address yet".to_owned()]
            }
            _ => Vec::new(),
        }
    }
}

fn waits_for_rollout(wanted: &Object) -> bool {
    wanted.get("wait").and_then(Value::as_entries).is_some_and(|wait| is_true(wait, "rollout"))
}

/// True if it outlives its resource: it is to be kept, or it is not ours to delete.
pub(crate) fn stays(before: &Object) -> bool {
    ["keep", "adopted", "foreign"].iter().any(|name| is_true(before, name))
}

impl KubernetesObject {
    /// Of what is there, nothing is compared but where it is: it is taken to be as wanted.
    fn adoption(&self, mut before: Object, wanted: &Object) -> Change {
        let configurable = self.schema.attributes.iter().filter(|a| a.is_configurable() && !a.identity).map(|a| a.name);
        for name in configurable.chain(self.schema.blocks.iter().map(|b| b.name)).filter(|n| *n != "cluster") {
            match wanted.get(name) {
                Some(value) => drop(before.insert(name.to_owned(), value.clone())),
                None => drop(before.remove(name)),
            }
        }
        service::complete(&mut before);
        exposed::complete(&mut before, wanted);
        // Told by `apply` to a state that does not know it yet.
        before.insert("adopted".to_owned(), true.into());
        default_plan(&self.schema, Some(&before), Some(wanted))
    }
}

fn arguments(wanted: &Object) -> Option<Diagnostic> {
    if let Some(policy) = text(wanted, "propagation").filter(|p| !PROPAGATIONS.contains(p)) {
        let detail = format!("`propagation` is \"{policy}\", but must be one of {}.", PROPAGATIONS.join(", "));
        return Some(Diagnostic::error("Unknown propagation policy", detail));
    }
    if let Some(error) = exposed::problem(wanted) {
        return Some(error);
    }
    let expression = wanted.get("wait").and_then(Value::as_entries).and_then(|wait| text(wait, "expression"));
    expression.and_then(wait_expression::problem).or_else(|| bad_timeout(wanted))
}

/// What is compared with what is wanted.
fn comparable(schema: &Schema, before: &Object, wanted: &Object) -> Object {
    let mut before = schema.filled(before, wanted);
    // Whatever it was: now it is ours, or will be.
    before.put("adopted", Value::null(Type::Bool));
    service::complete(&mut before);
    exposed::complete(&mut before, wanted);
    before
}

impl ResourceType<Client> for KubernetesObject {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { look::observe(client, &[ask], None).await.pop().unwrap_or(Ok(None)) })
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            match (change.after(), change.before()) {
                (Some(after), _) => act::apply(client, change.before(), after).await.map(Some),
                (None, Some(before)) => act::delete(client, before).await.map(|()| None),
                (None, None) => Ok(None),
            }
        })
    }
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
