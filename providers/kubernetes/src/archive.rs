//! `kubernetes_archive`: a set of objects out of an archive of manifests, custom resource definitions for one, as one resource.

use std::sync::Arc;

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan, same,
};

use crate::archive_act;
use crate::archive_look;
use crate::archive_source::Downloads;
use crate::client::Client;
use crate::manifest::Name;
use crate::values::{bad_timeout, is_true};

/// Its name.
pub(crate) const KIND: &str = "kubernetes_archive";
/// Words of an object.
pub(crate) const AS_WANTED: &str = "as wanted";
/// It is not there.
pub(crate) const MISSING: &str = "missing";
/// It is there, otherwise.
pub(crate) const DIFFERENT: &str = "different";
/// What the manifests are made of.
const INPUTS: &[&str] = &["source", "sha256", "include", "patches", "substitutions", "overrides"];

/// The type.
pub(crate) struct KubernetesArchive {
    schema: Schema,
    pub(crate) downloads: Arc<Downloads>,
}

impl KubernetesArchive {
    /// With its schema, and nothing downloaded.
    pub(crate) fn new() -> Self {
        let texts = || Type::map(Type::String);
        let attributes = vec![
            Attribute::required("cluster", Type::Any, "Connection to the cluster."),
            Attribute::required("name", Type::String, "A name for the set of objects: \"karmada-crds\". It stays when `source` changes.")
                .identity(),
            Attribute::required("source", Type::String, "The archive, a .tar.gz: a path on this machine, or a file or https URL."),
            Attribute::optional("sha256", Type::String, "The SHA-256 sum of the archive, in hexadecimal; nothing of another one is used."),
            Attribute::optional("include", Type::String, "Only manifests whose path in the archive begins so: \"crds/bases/\"."),
            Attribute::optional(
                "patches",
                Type::String,
                "Files whose path begins so are partial manifests, merged into the one of the same kind and name: \"crds/patches/\".",
            ),
            Attribute::optional("substitutions", texts(), "What `{{key}}` in the files stands for."),
            Attribute::optional("overrides", Type::Any, "More partial manifests, as objects; they are merged last."),
            Attribute::optional("wait_condition", texts(), "Until all objects have these conditions: `{ Established = \"True\" }`."),
            Attribute::optional(
                "force",
                Type::Bool,
                "Whether to take over objects that exist already and that karmaform did not make. Fields of its own objects are always set.",
            ),
            Attribute::optional("timeout", Type::Number, "Seconds to wait for `wait_condition`, and for a deletion to finish.").or(120i64),
            Attribute::computed(
                "objects",
                texts(),
                "How each object is: \"as wanted\", \"missing\" or \"different\". What an older archive had and this one has not is left in \
                 the cluster, and is not among them.",
            ),
            Attribute::computed("seen", texts(), "The same, of the archive that is wanted now.").volatile(),
            Attribute::computed("foreign", Type::list(Type::String), "Objects that exist already and that karmaform did not make.")
                .volatile(),
            Attribute::computed(
                "care",
                Type::list(Type::String),
                "What its objects are in need of though they are as wanted, a sentence each: somebody deletes one, and something keeps it.",
            )
            .volatile(),
        ];
        let schema = Schema::new("Objects of an archive of manifests, in a Kubernetes cluster.", attributes).through("cluster");
        Self { schema, downloads: Arc::default() }
    }
}

/// True if what the manifests are made of is wholly known.
pub(crate) fn is_readable(object: &Object) -> bool {
    INPUTS.iter().all(|name| object.get(name).is_none_or(Value::is_wholly_known))
}

/// True if two sides speak of the same manifests.
pub(crate) fn same_inputs(a: &Object, b: &Object) -> bool {
    INPUTS.iter().all(|name| same(a.get(name), b.get(name)))
}

/// Objects and their words.
pub(crate) fn words<'a>(object: Option<&'a Object>, name: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
    let entries = object.and_then(|o| o.get(name)).and_then(Value::as_entries);
    entries.into_iter().flatten().map(|(n, v)| (n, v.as_str().unwrap_or_default()))
}

/// A map of texts.
pub(crate) fn texts(parts: impl IntoIterator<Item = (String, &'static str)>) -> Value {
    Value::map(Type::String, parts.into_iter().map(|(n, v)| (n, Value::from(v))).collect())
}

impl ResourceSpec for KubernetesArchive {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let Some(wanted) = wanted else { return Ok(default_plan(&self.schema, before, None)) };
        if let Some(problem) = bad_timeout(wanted) {
            return Err(problem.into());
        }
        let Some(before) = before else { return Ok(default_plan(&self.schema, None, Some(wanted))) };
        let foreign: Vec<&str> = before.get("foreign").and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str).collect();
        if !foreign.is_empty() && !is_true(wanted, "force") {
            return Err(exist(&foreign).into());
        }
        // What the objects are like was looked at.
        let mut filled = self.schema.filled(before, wanted);
        let seen = before.get("seen").filter(|s| s.as_entries().is_some());
        if let Some(seen) = seen {
            filled.insert("objects".to_owned(), seen.clone());
        }
        let is_told = is_readable(wanted) && (seen.is_some() || same_inputs(before, wanted));
        let objects = if is_told {
            texts(words(Some(&filled), "objects").map(|(name, _)| (name.clone(), AS_WANTED)))
        } else {
            Value::unknown(Type::map(Type::String))
        };
        let mut wanted = wanted.clone();
        wanted.insert("objects".to_owned(), objects);
        Ok(default_plan(&self.schema, Some(&filled), Some(&wanted)))
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        let count = |word: &str| words(change.before(), "objects").filter(|(_, w)| *w == word).count();
        let objects = |n: usize| if n == 1 { "1 object".to_owned() } else { format!("{n} objects") };
        match change {
            Change::Update { .. } => {
                let parts = [("makes", count(MISSING)), ("changes", count(DIFFERENT))];
                parts.into_iter().filter(|(_, n)| *n > 0).map(|(verb, n)| format!("{verb} {}", objects(n))).collect()
            }
            Change::Delete { before } | Change::Replace { before, .. } => {
                let there: Vec<&String> = words(Some(before), "objects").filter(|(_, w)| *w != MISSING).map(|(n, _)| n).collect();
                let kinds = there.iter().any(|n| Name::parse(n).is_some_and(|n| n.kind == "CustomResourceDefinition"));
                let data = if kinds { ", and everything of these kinds with them" } else { "" };
                vec![format!("deletes {}{data}", objects(there.len()))]
            }
            _ => Vec::new(),
        }
    }
}

/// The refusal to take over what is not ours.
pub(crate) fn exist(names: &[&str]) -> Diagnostic {
    let more = if names.len() > 3 { format!(" and {} more", names.len() - 3) } else { String::new() };
    let shown = names.iter().take(3).copied().collect::<Vec<_>>().join(", ");
    Diagnostic::error("Exists already", format!("In the cluster already, and not made by karmaform: {shown}{more}."))
        .with_hint("Set `force = true` to take them over.")
}

impl ResourceType<Client> for KubernetesArchive {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { archive_look::observe(client, self, &[ask], None).await.pop().unwrap_or(Ok(None)) })
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            match (change.after(), change.before()) {
                (Some(after), before) => archive_act::apply(client, &self.downloads, before, after).await.map(Some),
                (None, Some(before)) => archive_act::delete(client, before).await.map(|()| None),
                (None, None) => Ok(None),
            }
        })
    }
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
