//! `kubernetes_pod`: a pod that a StatefulSet makes, at the revision that is wanted. It is restarted here, and made and deleted there.
//!
//! With the update strategy `OnDelete` a StatefulSet leaves it to others when a pod takes over a new template: whoever deletes the pod gets
//! the new one (`kubernetes.io/docs/concepts/workloads/controllers/statefulset`, section "Update strategies").

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan,
};

use crate::client::Client;
use crate::pod_act;
use crate::pod_look;
use crate::values::{bad_timeout, text};

/// Its name.
pub(crate) const KIND: &str = "kubernetes_pod";
/// The annotation that says of which revision a pod is.
pub(crate) const REVISION: &str = "karmaform.io/revision";
/// Seconds; a pod has up to 30 s to end, unless it says otherwise, and then its successor starts.
const TIMEOUT: i64 = 120;

/// The type.
pub(crate) struct KubernetesPod {
    schema: Schema,
}

impl KubernetesPod {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let attributes = vec![
            Attribute::required("cluster", Type::Any, "Connection to the cluster."),
            Attribute::required("namespace", Type::String, "The namespace of the pod.").identity(),
            Attribute::required("name", Type::String, "The pod's name: that of its StatefulSet, and its number.").identity(),
            Attribute::required(
                "revision",
                Type::String,
                "What the annotation `karmaform.io/revision` of the pod must be. Where it is something else, the pod is deleted, so that \
                 its StatefulSet makes a new one.",
            ),
            Attribute::optional(
                "renew_on",
                Type::String,
                "A text that is in what the pod's program leaves as its last words when it will never start as it is: such a pod is deleted, too.",
            ),
            Attribute::optional("timeout", Type::Number, "Seconds to wait until the pod runs.").or(TIMEOUT),
            Attribute::computed("uid", Type::String, "Its UID."),
            Attribute::computed("phase", Type::String, "Its phase: \"Pending\", \"Running\".").volatile(),
            Attribute::computed("ready", Type::Bool, "True if all of it is ready.").volatile(),
            Attribute::computed("problem", Type::String, "What keeps it from being ready; null if nothing does.").volatile(),
            Attribute::computed(
                "termination_message",
                Type::String,
                "What its program left as its last words, if it ended and is not ready since; null otherwise.",
            )
            .volatile(),
        ];
        let doc =
            "A pod that a StatefulSet makes, at a revision. A change of the revision restarts it; destroying leaves it to its StatefulSet.";
        Self { schema: Schema::new(doc, attributes).through("cluster") }
    }
}

impl ResourceSpec for KubernetesPod {
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
        // How long to wait and what to look out for is no property of the pod, and no reason to restart it.
        let before = before.map(|b| {
            let mut before = b.clone();
            before.extend(["timeout", "renew_on"].iter().filter_map(|name| Some(((*name).to_owned(), wanted.get(name)?.clone()))));
            before
        });
        let mut change = default_plan(&self.schema, before.as_ref(), Some(wanted));
        if let (Change::NoOp { object }, Some(before)) = (&change, before.filter(will_never_start)) {
            change = Change::Update { before, after: object.clone() };
        }
        if let Change::Update { after, .. } = &mut change {
            // It will be another pod.
            after.insert("uid".to_owned(), Value::unknown(Type::String));
        }
        Ok(change)
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        match change {
            // Else the state only learns of it.
            Change::Update { before, after } if text(before, "revision") != text(after, "revision") || will_never_start(before) => {
                vec![format!("restarts pod {}", text(after, "name").unwrap_or_default())]
            }
            _ => Vec::new(),
        }
    }
}

/// Its program said so before it ended.
fn will_never_start(pod: &Object) -> bool {
    says(text(pod, "termination_message"), text(pod, "renew_on"))
}

/// Last words have this in them.
pub(crate) fn says(words: Option<&str>, what: Option<&str>) -> bool {
    what.filter(|what| !what.is_empty()).zip(words).is_some_and(|(what, words)| words.contains(what))
}

impl ResourceType<Client> for KubernetesPod {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { pod_look::observe(client, &[ask]).await.pop().unwrap_or(Ok(None)) })
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            match change {
                Change::Create { after } => pod_act::up(client, after, None).await.map(Some),
                Change::Update { before, after } => pod_act::up(client, after, Some(before)).await.map(Some),
                // Its StatefulSet deletes it.
                _ => Ok(None),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::object;
    use karmaform_model::Action;

    fn wanted(revision: &str, timeout: i64) -> Object {
        let cluster = Value::object([("provider", "kubernetes".into()), ("id", "u".into())]);
        let parts = [("cluster", cluster), ("namespace", "n".into()), ("name", "etcd-0".into()), ("revision", revision.into())];
        let mut object = object(parts);
        object.insert("timeout".to_owned(), timeout.into());
        object
    }

    #[test]
    fn who_said_that_it_will_never_start_is_made_anew() {
        let spec = KubernetesPod::new();
        let mut wanted = wanted("1", 120);
        wanted.insert("renew_on".into(), "no data".into());
        let mut before = wanted.clone();
        before.remove("renew_on");
        before.insert("uid".into(), "u1".into());
        let plan = |before: &Object| spec.plan(&PlanContext { now: 0 }, Some(before), Some(&wanted)).unwrap();
        assert_eq!(plan(&before).action(), Action::NoOp, "what to look out for is no reason by itself");
        before.insert("termination_message".into(), "fatal: no data, no start".into());
        let update = plan(&before);
        assert_eq!((update.action(), spec.impact(&update)), (Action::Update, vec!["restarts pod etcd-0".to_owned()]));
        assert!(update.after().unwrap()["uid"].is_unknown());
        before.insert("termination_message".into(), "killed".into());
        assert_eq!(plan(&before).action(), Action::NoOp);
    }

    #[test]
    fn only_another_revision_restarts() {
        let spec = KubernetesPod::new();
        let plan = |before: &Object, wanted: &Object| spec.plan(&PlanContext { now: 0 }, Some(before), Some(wanted)).unwrap();
        let mut before = wanted("1", 120);
        before.insert("uid".into(), "u1".into());
        assert_eq!(plan(&before, &wanted("1", 120)).action(), Action::NoOp);
        assert_eq!(plan(&before, &wanted("1", 60)).action(), Action::NoOp, "how long to wait is no reason to restart");
        let update = plan(&before, &wanted("2", 120));
        assert_eq!((update.action(), spec.impact(&update)), (Action::Update, vec!["restarts pod etcd-0".to_owned()]));
        assert!(update.after().unwrap()["uid"].is_unknown());
        assert!(spec.plan(&PlanContext { now: 0 }, None, Some(&wanted("1", -1))).is_err());
    }
}
