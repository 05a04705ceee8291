//! `etcd_prefix`: whose the keys below a prefix are. A mark beside them says so to everyone who shares the etcd, and it outlives a state.

mod act;
mod copy;
mod ends;
mod look;
mod mark;
mod pages;
mod refuse;
mod revision;
mod since;

use std::sync::LazyLock;

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan,
};

use crate::client::Client;

pub(crate) use copy::{Copied, Halt, Scope, copy};
pub(crate) use ends::{Ends, Opened};
pub(crate) use look::observe;
pub(crate) use mark::{Mark, key as key_of, range as range_of};
pub(crate) use revision::{drop_history, raise};
pub(crate) use since::written_since;

/// Its name.
pub(crate) const KIND: &str = "etcd_prefix";

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "The keys of an etcd below a prefix, as somebody's own: what others keep there is not taken over unless that is asked for. A key \
         below `/karmaform.io/prefixes` says whose each prefix is.",
        vec![
            Attribute::required(
                "cluster",
                Type::Any,
                "The connection to the etcd: an object with `provider = \"etcd\"`, `id`, `endpoints` (URLs), `ca_certificate`, `certificate` \
                 and `private_key`.",
            ),
            Attribute::required("prefix", Type::String, "The prefix: it starts with \"/\" and does not end with it.").identity(),
            Attribute::required("owner", Type::String, "Whose it is, in words for others."),
            Attribute::required("owner_uid", Type::String, "What tells the owner from all others; not a secret."),
            Attribute::optional(
                "adopt",
                Type::Bool,
                "Whether to take over keys that are there already, and a prefix that is marked as somebody else's.",
            )
            .or(false)
            .write_only(),
            Attribute::optional(
                "is_copy",
                Type::Bool,
                "Whether it is taken for what comes from another etcd: it does not count until that is there.",
            )
            .or(false)
            .write_only(),
            Attribute::optional(
                "on_destroy",
                Type::String,
                "What happens to the keys below it when it is destroyed: `keep`, or `delete`. The mark goes in any case.",
            )
            .or("keep"),
            Attribute::computed(
                "checked",
                Type::Bool,
                "False if the etcd could not be asked from here when the prefix was taken: nobody looked whose it was, and it has no mark.",
            ),
            Attribute::computed("cluster_id", Type::String, "The id of the etcd cluster, in hexadecimal digits."),
            Attribute::computed("foreign", Type::Bool, "It is somebody else's, or nobody knows whose.").volatile(),
            Attribute::computed("keys", Type::Number, "How many keys are below it, where that was asked for.").volatile(),
            Attribute::computed("first_key", Type::String, "The first of them.").volatile(),
            Attribute::computed("overlaps", Type::list(Type::String), "What else is above or below it, in words.").volatile(),
            Attribute::computed("is_left", Type::Bool, "What counts was moved to another etcd.").volatile(),
            Attribute::computed("is_unfinished", Type::Bool, "What is below it is a copy from another etcd that does not count yet.").volatile(),
        ],
    )
    .through("cluster")
});

/// The resource type `etcd_prefix`.
pub(crate) struct EtcdPrefix;

impl ResourceSpec for EtcdPrefix {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let Some(wanted) = wanted else { return Ok(default_plan(&SCHEMA, before, None)) };
        if let Some(problem) = refuse::arguments(wanted) {
            return Err(problem.into());
        }
        let Some(before) = before else { return Ok(default_plan(&SCHEMA, None, Some(wanted))) };
        if let Some(refusal) = refuse::of_plan(before, wanted) {
            return Err(refusal.into());
        }
        // Of a lost state, and of what is adopted, only what etcd says was seen.
        Ok(default_plan(&SCHEMA, Some(&SCHEMA.filled(before, wanted)), Some(wanted)))
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        match change {
            Change::Delete { before } if text(before, "on_destroy") == Some("delete") && is_checked(before) => {
                vec![format!("deletes everything below {} in etcd", text(before, "prefix").unwrap_or("the prefix"))]
            }
            Change::Update { before, after } if text(before, "owner_uid") != text(after, "owner_uid") => {
                vec!["takes over what is below it".to_owned()]
            }
            _ => Vec::new(),
        }
    }
}

impl ResourceType<Client> for EtcdPrefix {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(observe(client, ask))
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            match (change.before(), change.after()) {
                (before, Some(after)) => act::take(client, before, after).await.map(Some),
                (Some(before), None) => act::leave(client, before).await.map(|()| None),
                (None, None) => Ok(None),
            }
        })
    }
}

fn text<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

fn is_true(object: &Object, name: &str) -> bool {
    object.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// Where nobody could ask, there is no mark either.
fn is_checked(known: &Object) -> bool {
    known.get("checked").and_then(Value::as_bool) != Some(false)
}

#[cfg(test)]
#[path = "prefix_tests.rs"]
mod tests;
