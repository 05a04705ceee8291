//! Looking at pods: one LIST per namespace; one GET where only one pod is asked for.

use std::collections::BTreeMap;

use futures::StreamExt;
use karmaform_model::{Ask, BoxFuture, Diagnostic, Object, Type, Value};
use serde_json::Value as Json;

use crate::client::Client;
use crate::pod::REVISION;
use crate::pods::{is_leaving, is_ready, reason, runs};
use crate::pods_by_hand;
use crate::pods_why::pods;
use crate::values::{object, text};

/// Namespaces at a time.
const AT_ONCE: usize = 8;

type Answer = Result<Option<Object>, Diagnostic>;

/// Answers all asks, in their order.
pub(crate) async fn observe(client: &Client, asks: &[&Ask]) -> Vec<Answer> {
    let mut groups: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    let unnamed = || Err(Diagnostic::error("Unreadable name of a pod", "A pod needs a `namespace` and a `name`."));
    let mut answers: Vec<Answer> = asks.iter().map(|_| unnamed()).collect();
    for (index, ask) in asks.iter().enumerate() {
        if let (Some(namespace), Some(name)) = (text(&ask.identity, "namespace"), text(&ask.identity, "name")) {
            groups.entry(namespace).or_default().push((index, name));
        }
    }
    let looks = groups.into_iter().map(|(namespace, names)| -> BoxFuture<'_, _> { Box::pin(look(client, namespace, names)) });
    let seen: Vec<Vec<(usize, Answer)>> = futures::stream::iter(looks.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await;
    for (index, answer) in seen.into_iter().flatten() {
        answers[index] = answer;
    }
    answers
}

async fn look(client: &Client, namespace: &str, names: Vec<(usize, &str)>) -> Vec<(usize, Answer)> {
    let place = pods(namespace);
    let mut list = None;
    if names.len() > 1 {
        match client.list(&place).await {
            Ok(found) => list = Some(found),
            // Who may not list may still get.
            Err(failure) if failure.code() == Some(403) => {}
            Err(failure) => {
                let told = failure.diagnostic(client.place(), &place.call("list", ""), &[]);
                return names.into_iter().map(|(index, _)| (index, Err(told.clone()))).collect();
            }
        }
    }
    let mut answers = Vec::with_capacity(names.len());
    for (index, name) in names {
        let found = match &list {
            Some(list) => Ok(list.iter().find(|p| p["metadata"]["name"] == *name).cloned()),
            None => client.get(&place, name).await.map_err(|f| f.diagnostic(client.place(), &place.call("get", name), &[])),
        };
        // One that is being deleted is not the one that is wanted: another will come.
        answers.push((
            index,
            match found.map(|pod| pod.filter(|p| !is_leaving(p))) {
                Ok(Some(pod)) => {
                    let mut told = seen(&pod);
                    if let Some(changed) = pods_by_hand::of_stateful_set(client, &pod).await {
                        told.insert("revision".to_owned(), format!("{}, and somebody gave it {}", revision(&pod), changed.image).into());
                    }
                    Ok(Some(told))
                }
                other => other.map(|_| None),
            },
        ));
    }
    answers
}

/// Of which revision a pod is; empty if it does not say.
pub(crate) fn revision(pod: &Json) -> &str {
    pod["metadata"]["annotations"][REVISION].as_str().unwrap_or_default()
}

/// Kubernetes calls a pod running while its only container waits to be started for the tenth time. This says what is so.
fn phase(pod: &Json) -> &str {
    let said = pod["status"]["phase"].as_str().unwrap_or_default();
    if said != "Running" || runs(pod) {
        return said;
    }
    let statuses = pod["status"]["containerStatuses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let states = statuses.iter().flat_map(|c| [&c["state"]["waiting"], &c["state"]["terminated"]]);
    states.filter_map(|s| s["reason"].as_str()).next().unwrap_or("NotRunning")
}

/// The last words of a container that ended with an error, of a pod that is not ready.
pub(crate) fn termination_message(pod: &Json) -> Option<&str> {
    let statuses = pod["status"]["containerStatuses"].as_array().filter(|_| !is_ready(pod))?;
    let ended = statuses.iter().flat_map(|c| [&c["state"]["terminated"], &c["lastState"]["terminated"]]);
    ended.filter(|t| t["exitCode"] != 0).find_map(|t| t["message"].as_str())
}

/// What is told of a pod.
pub(crate) fn seen(pod: &Json) -> Object {
    let of = |json: &Json| Value::from(json.as_str().unwrap_or_default());
    object([
        ("namespace", of(&pod["metadata"]["namespace"])),
        ("name", of(&pod["metadata"]["name"])),
        ("revision", revision(pod).into()),
        ("uid", of(&pod["metadata"]["uid"])),
        ("phase", phase(pod).into()),
        ("ready", is_ready(pod).into()),
        ("problem", reason(pod, &[], None).map_or_else(|| Value::null(Type::String), |r| r.as_str().into())),
        ("termination_message", termination_message(pod).map_or_else(|| Value::null(Type::String), Value::from)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_words_are_those_of_who_is_not_well_again() {
        let pod = |ready: &str, state: Json, last: Json| json!({ "status": { "conditions": [{ "type": "Ready", "status": ready }], "containerStatuses": [{ "state": state, "lastState": last }] } });
        let ended = || json!({ "terminated": { "exitCode": 1, "message": "no data" } });
        assert_eq!(termination_message(&pod("False", json!({ "waiting": {} }), ended())), Some("no data"));
        assert_eq!(termination_message(&pod("False", ended(), json!({}))), Some("no data"));
        assert_eq!(termination_message(&pod("True", json!({ "running": {} }), ended())), None);
        assert_eq!(termination_message(&pod("False", json!({ "terminated": { "exitCode": 0, "message": "well" } }), json!({}))), None);
    }

    #[test]
    fn a_pod_that_crashes_over_and_over_is_not_called_running() {
        let pod = |state: Json| json!({ "spec": { "containers": [{}] }, "status": { "phase": "Running", "containerStatuses": [{ "state": state }] } });
        assert_eq!(phase(&pod(json!({ "running": {} }))), "Running");
        assert_eq!(phase(&pod(json!({ "waiting": { "reason": "CrashLoopBackOff" } }))), "CrashLoopBackOff");
        assert_eq!(phase(&pod(json!({ "terminated": { "reason": "Error" } }))), "Error");
        assert_eq!(phase(&json!({ "status": { "phase": "Pending" } })), "Pending");
    }
}
