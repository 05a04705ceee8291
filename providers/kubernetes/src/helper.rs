//! The operation `kubernetes_helper`: a pod that is there for as long as it is needed and is no part of any state. One that ended by itself, or was made for
//! something else, is made anew.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use jiff::Timestamp;
use karmaform_model::{Arg, Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type, Value, to_json};
use kube::api::PropagationPolicy;
use serde_json::{Value as Json, json};
use tokio::time::Instant;

use crate::act::located;
use crate::archive_source::sha256;
use crate::client::Client;
use crate::failure::Failure;
use crate::fields;
use crate::manifest::called;
use crate::pod::REVISION;
use crate::pod_look::revision;
use crate::pods::{is_leaving, lacks_image, runs};
use crate::pods_why;
use crate::start::{patient, put};
use crate::stop::IF_OFF;
use crate::values::text;

/// So long an image that can't be had may yet come, in seconds: more than one try.
const PATIENCE: i64 = 60;
const WRONG_IMAGE: &str = "If its image is a wrong one, correct that; then plan and apply go on from here.";
/// So many digits of a sum tell one manifest from another.
const DIGITS: usize = 12;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Sees to it that a pod of its own runs, or that it is gone.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("manifest", Type::Any, "The Pod, with its namespace."),
            Attribute::optional(
                "beside",
                Type::String,
                "A pod in its namespace with the same volume: where that is, it has to be, too. It takes the place of an `affinity` for nodes and pods.",
            ),
            Attribute::optional("present", Type::Bool, "Whether it is to run, or to be gone.").or(true),
            Attribute::optional("patience", Type::Number, "After so many seconds it is gone on without it; unless written it has to run."),
        ],
    )
    .through("cluster")
});

/// The operation `kubernetes_helper`.
#[derive(Default)]
pub(crate) struct KubernetesHelper {
    /// Since when this run has asked for those that need not run.
    since: Mutex<BTreeMap<String, Instant>>,
}

impl Operation<Client> for KubernetesHelper {
    fn name(&self) -> &'static str {
        "kubernetes_helper"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            match patient(attempt(client, arguments).await) {
                Ok(GateAnswer::Waiting(why)) if self.is_over(client, arguments) => Ok(GateAnswer::Passed(format!("without it: {why}"))),
                Err(told) if number(arguments, "patience").is_some() => Ok(GateAnswer::Passed(format!("without it: {}", told.detail))),
                answer => answer,
            }
        })
    }
}

impl KubernetesHelper {
    /// It was waited for long enough.
    fn is_over(&self, client: &Client, arguments: &Object) -> bool {
        let Some(patience) = number(arguments, "patience").and_then(|n| u64::try_from(n).ok()) else { return false };
        let name = arguments.get("manifest").map(called).and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.entry(format!("{} {name}", client.place())).or_insert_with(Instant::now).elapsed().as_secs() >= patience
    }
}

fn number(arguments: &Object, name: &str) -> Option<i64> {
    arguments.get(name).and_then(Value::as_i64)
}

async fn attempt(client: &Client, arguments: &Object) -> Result<GateAnswer, Diagnostic> {
    let waiting = |why: &str| Ok(GateAnswer::Waiting(why.to_owned()));
    let Some(written) = arguments.get("manifest") else { return waiting("its manifest is not known") };
    let is_wanted = arguments.get("present").and_then(Value::as_bool) != Some(false);
    let (place, name) = located(client, written).await?;
    let told = |verb: &'static str, name: &str, failure: Failure| failure.diagnostic(client.place(), &place.call(verb, name), &[]);
    let beside = match text(arguments, "beside").filter(|_| is_wanted) {
        Some(other) => client.get(&place, other).await.map_err(|f| told("get", other, f))?,
        None => None,
    };
    let node = beside.as_ref().and_then(|pod| pod["spec"]["nodeName"].as_str()).unwrap_or_default();
    let Some(live) = client.get(&place, &name.name).await.map_err(|f| told("get", &name.name, f))? else {
        if !is_wanted {
            return Ok(GateAnswer::Passed("it is gone".to_owned()));
        }
        put(client, &placed(written, node)).await?;
        return waiting("it was made just now");
    };
    if fields::ours(&live).is_none() {
        return Err(Diagnostic::error("A pod is somebody else's", format!("{name} is there, and karmaform has not made it."))
            .with_hint("Find out what it is for, and remove it if nobody needs it."));
    }
    let its_node = live["spec"]["nodeName"].as_str().unwrap_or_default();
    if is_leaving(&live) {
        return waiting(&format!("pod {} is still ending on node {its_node}; {IF_OFF}", name.name));
    }
    let phase = live["status"]["phase"].as_str().unwrap_or_default();
    // One that runs is where it can be.
    let is_same =
        revision(&live) == sum(written, node) || runs(&live) && revision(&live).split('-').next() == sum(written, "").split('-').next();
    if !is_wanted || matches!(phase, "Succeeded" | "Failed") || !is_same {
        let uid = live["metadata"]["uid"].as_str();
        let deleted = client.delete(&place, &name.name, uid, PropagationPolicy::Background).await;
        deleted.map_err(|f| told("delete", &name.name, f))?;
        if let Some(words) = last_words(&live).filter(|_| is_wanted && is_same) {
            let detail = format!("{name} ended by itself: {words}.");
            return Err(Diagnostic::error("A pod does not go on", detail).with_hint(WRONG_IMAGE));
        }
        return waiting("the one of before is removed");
    }
    if runs(&live) {
        return Ok(GateAnswer::Passed("it runs".to_owned()));
    }
    let why = pods_why::of_pod(client, &live, &[]).await.unwrap_or_else(|| "is not running yet".to_owned());
    if lacks_image(&live) && is_tried(&live, Timestamp::now()) {
        // The next one tries at once what this one would wait for longer and longer.
        let deleted = client.delete(&place, &name.name, live["metadata"]["uid"].as_str(), PropagationPolicy::Background).await;
        deleted.map_err(|f| told("delete", &name.name, f))?;
        return Err(Diagnostic::error("A pod does not go on", format!("{name} {}.", why.trim_end_matches('.'))).with_hint(WRONG_IMAGE));
    }
    match (text(arguments, "beside"), node.is_empty()) {
        (Some(other), false) if its_node.is_empty() => {
            waiting(&format!("it {why}; its volume is where pod {other} is, on node {node}: {IF_OFF}"))
        }
        _ => waiting(&format!("it {why}")),
    }
}

/// It is old enough for its image to have been asked for more than once.
fn is_tried(pod: &Json, now: Timestamp) -> bool {
    let made = pod["metadata"]["creationTimestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    made.is_some_and(|made| now.as_second() > made.as_second() + PATIENCE)
}

/// Why its program ended, if that is what ended the pod, and no deadline and no node.
fn last_words(pod: &Json) -> Option<&str> {
    let is_ended = pod["status"]["phase"] == "Failed" && pod["status"]["reason"].as_str().is_none_or(str::is_empty);
    let of = |list: &str| pod["status"][list].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut all = of("initContainerStatuses").iter().chain(of("containerStatuses")).map(|c| &c["state"]["terminated"]);
    let failed = all.find(|ended| is_ended && ended["exitCode"].as_i64().is_some_and(|code| code != 0))?;
    let said = failed["message"].as_str().and_then(|m| m.lines().map(str::trim).rfind(|line| !line.is_empty()));
    Some(said.or(failed["reason"].as_str()).unwrap_or("it does not say why").trim_end_matches('.'))
}

/// What tells a pod made of this, for this node, from others: two sums. What it asks for of a node is nothing that one which runs is told from others by.
fn sum(manifest: &Value, node: &str) -> String {
    let digits = |text: &str| sha256(text.as_bytes()).chars().take(DIGITS).collect::<String>();
    let mut json: Json = to_json(manifest);
    for list in ["initContainers", "containers"] {
        let containers = json["spec"][list].as_array_mut().into_iter().flatten();
        containers.filter_map(Json::as_object_mut).for_each(|container| drop(container.remove("resources")));
    }
    format!("{}-{}", digits(&json.to_string()), digits(node))
}

/// The manifest that says so itself, for this node; without one it is as it was written. The scheduler chooses all the same, so that volumes count; but a
/// node that takes no others has taken the pod that it is to be beside.
fn placed(manifest: &Value, node: &str) -> Value {
    let mut json: Json = to_json(manifest);
    if !node.is_empty() && json["spec"].is_object() {
        let spec = &mut json["spec"];
        let field = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
        let terms = json!([{ "matchFields": [field] }]);
        spec["affinity"] = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } } });
        spec.as_object_mut().map(|spec| spec.remove("nodeSelector"));
        let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
        tolerations.push(json!({ "operator": "Exists", "effect": "NoSchedule" }));
        spec["tolerations"] = tolerations.into();
    }
    let mut arg = Arg::from_json(&json);
    arg.set(&["metadata", "annotations", REVISION], sum(manifest, node).into());
    arg.resolve(&|_, _| Value::null(Type::Any))
}

#[cfg(test)]
mod tests {
    use karmaform_model::implied_from_json;

    use super::*;

    #[test]
    fn a_program_that_ended_says_why_and_a_deadline_is_no_failure() {
        let pod = |reason: &str, state: Json| json!({ "status": { "phase": "Failed", "reason": reason, "containerStatuses": [{ "state": state }] } });
        let ended = |code: i64| json!({ "terminated": { "exitCode": code, "message": "one\nno library.\n", "reason": "Error" } });
        assert_eq!(last_words(&pod("", ended(127))), Some("no library"));
        assert_eq!(last_words(&pod("", ended(0))), None);
        assert_eq!(last_words(&pod("DeadlineExceeded", ended(137))), None);
        assert_eq!(last_words(&json!({ "status": { "phase": "Running" } })), None);
    }

    #[test]
    fn pods_of_other_manifests_and_nodes_are_told_apart() {
        let of = |image: &str, cpu: &str| {
            let containers = json!([{ "image": image, "resources": { "requests": { "cpu": cpu } } }]);
            let spec = json!({ "containers": containers, "affinity": { "podAntiAffinity": {} }, "nodeSelector": { "a": "b" } });
            implied_from_json(&json!({ "kind": "Pod", "metadata": { "name": "p" }, "spec": spec }))
        };
        let pod = |image: &str| of(image, "1");
        assert_eq!(sum(&of("a", "1"), ""), sum(&of("a", "2"), ""));
        let made = to_json(&placed(&pod("a"), ""));
        assert_eq!(made["metadata"]["annotations"][REVISION], sum(&pod("a"), ""));
        assert!(made["spec"]["affinity"]["podAntiAffinity"].is_object());
        let there = to_json(&placed(&pod("a"), "n1"));
        assert!(there["spec"]["affinity"]["nodeAffinity"].is_object() && there["spec"]["affinity"].get("podAntiAffinity").is_none());
        assert!(there["spec"].get("nodeSelector").is_none() && there["spec"]["tolerations"][0]["effect"] == "NoSchedule");
        let (here, elsewhere) = (sum(&pod("a"), "n1"), sum(&pod("a"), "n2"));
        assert!(here != elsewhere && here.split('-').next() == elsewhere.split('-').next() && sum(&pod("b"), "n1") != here);
    }

    #[tokio::test]
    async fn a_pod_of_others_is_left_alone_and_one_that_ended_is_told_with_its_words() {
        let written = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "n" },
            "spec": { "containers": [{ "name": "c", "image": "a" }] } });
        let manifest = implied_from_json(&written);
        let mut live = written.clone();
        live["metadata"]["annotations"] = json!({ REVISION: sum(&manifest, "") });
        let ended = json!([{ "state": { "terminated": { "exitCode": 127, "message": "no library.\n" } } }]);
        live["status"] = json!({ "phase": "Failed", "containerStatuses": ended });
        let mut ours = live.clone();
        ours["metadata"]["managedFields"] = json!([{ "manager": crate::client::MANAGER, "operation": "Apply", "fieldsV1": {} }]);
        let arguments = crate::values::object([("manifest", manifest)]);
        for (live, summary, words, is_deleted) in [
            (live, "A pod is somebody else's", "karmaform has not made it", false),
            (ours, "A pod does not go on", "ended by itself: no library.", true),
        ] {
            let (client, seen) = crate::mock::client(move |_, _| (200, live.clone())).await;
            let why = KubernetesHelper::default().attempt(&client, &arguments).await.unwrap_err();
            assert_eq!(why.summary, summary);
            assert!(why.detail.contains("Pod/n/p") && why.detail.contains(words) && !why.hints.is_empty(), "{why:?}");
            assert_eq!(seen.lock().unwrap().iter().any(|asked| asked == "DELETE /api/v1/namespaces/n/pods/p"), is_deleted, "{summary}");
        }
    }

    #[tokio::test]
    async fn a_pod_whose_image_can_not_be_had_is_given_up_and_not_left_there() {
        let written = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "n" },
            "spec": { "containers": [{ "name": "c", "image": "a" }] } });
        let manifest = implied_from_json(&written);
        let mut live = written;
        live["metadata"]["annotations"] = json!({ REVISION: sum(&manifest, "") });
        live["metadata"]["managedFields"] = json!([{ "manager": crate::client::MANAGER, "operation": "Apply", "fieldsV1": {} }]);
        let waiting = json!([{ "name": "c", "image": "a", "state": { "waiting": { "reason": "ImagePullBackOff" } } }]);
        live["status"] = json!({ "phase": "Pending", "containerStatuses": waiting });
        let arguments = crate::values::object([("manifest", manifest)]);
        for (made, is_given_up) in [("2020-01-01T00:00:00Z".to_owned(), true), (Timestamp::now().to_string(), false)] {
            live["metadata"]["creationTimestamp"] = made.into();
            let pod = live.clone();
            let (client, seen) = crate::mock::client(move |_, _| (200, pod.clone())).await;
            let answer = KubernetesHelper::default().attempt(&client, &arguments).await;
            let deleted = seen.lock().unwrap().iter().any(|asked| asked == "DELETE /api/v1/namespaces/n/pods/p");
            assert_eq!((answer.is_err(), deleted), (is_given_up, is_given_up), "{answer:?}");
            if let Err(why) = answer {
                assert_eq!(why.summary, "A pod does not go on");
                assert!(why.detail.starts_with("Pod/n/p can't get the image \"a\"") && why.hints == [WRONG_IMAGE], "{why:?}");
            }
        }
    }
}
