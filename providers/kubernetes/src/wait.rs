//! Waiting until an object is as it should be: a rollout, conditions, fields, an expression. Bounded, and says what was seen last.

use std::time::Duration;

use karmaform_model::{Diagnostic, Object, Value};
use serde_json::Value as Json;
use tokio::time::{Instant, sleep};

use crate::client::{Client, Place};
use crate::manifest::Name;
use crate::pods_why;
use crate::service;
use crate::values::{is_true, text};
use crate::wait_expression;

/// So long nobody asks whether a rollout can still come to a good end; images are pulled meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks: short at first, since what controllers only write down is there at once; then longer and longer up to this.
const PAUSE: Duration = Duration::from_millis(500);
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// Looks until all of it is so, and gives the object as it was seen then.
pub(crate) async fn until(
    client: &Client,
    place: &Place,
    name: &Name,
    uid: &Json,
    wanted: &Object,
    limit: Duration,
    hidden: &[String],
) -> Result<Json, Diagnostic> {
    let start = Instant::now();
    let end = start + limit;
    let mut next_look = start + PATIENCE / 3;
    let mut seen_last: Option<Json> = None;
    let mut pause = FIRST_PAUSE;
    loop {
        let waiting = match client.get(place, &name.name).await {
            Ok(Some(live)) if live["metadata"]["uid"] == *uid => match not_yet(&live, wanted).await? {
                None => return Ok(live),
                Some(missing) => {
                    let seen = conditions(&live, |c| !c["message"].is_null() || c["status"] != "True");
                    seen_last = Some(live);
                    if seen.is_empty() { missing } else { format!("{missing}. {seen}") }
                }
            },
            Ok(_) => {
                return Err(Diagnostic::error(
                    "Change did not last",
                    format!("{name} is not there any more right after it was applied. Something else removes it."),
                ));
            }
            Err(failure) => {
                let told = failure.diagnostic(client.place(), &place.call("get", &name.name), &[]);
                if !told.retryable {
                    return Err(told);
                }
                told.detail.trim_end_matches('.').to_owned()
            }
        };
        let is_rollout = is_true(wanted, "rollout");
        let mut is_over = Instant::now() >= end || (is_rollout && seen_last.as_ref().is_some_and(has_failed));
        if is_rollout && !is_over && Instant::now() >= next_look {
            next_look = Instant::now() + PATIENCE / 3;
            if let Some(live) = &seen_last {
                let is_late = start.elapsed() >= PATIENCE;
                is_over = pods_why::is_refused(client, live).await || (is_late && pods_why::is_stuck(client, live).await);
            }
        }
        if is_over {
            let mut told = format!("{name} was applied, but after {} s {waiting}.", start.elapsed().as_secs());
            // A pod that crashes may yet come up with something that it needs; so it is waited for until it was tried often.
            let why = match &seen_last {
                Some(live) if is_rollout => pods_why::of_workload(client, live, hidden).await,
                Some(live) => pods_why::last_warning(client, live, hidden).await,
                None => None,
            };
            told.extend(why.map(|why| format!(" {}.", why.trim_end_matches('.'))));
            let error = Diagnostic::error("Waited in vain", told);
            let error = match seen_last.is_some_and(|live| is_true(wanted, "address") && service::missing(&live).is_some()) {
                true => error.with_hint("See whether something in this cluster gives addresses to Services of the type LoadBalancer."),
                false => error,
            };
            return Err(error.with_hint("Or raise `timeout`, if it only needs longer."));
        }
        sleep(pause.min(end.saturating_duration_since(Instant::now()))).await;
        pause = (pause * 2).min(PAUSE);
    }
}

/// What is not so yet, the expression among it; none if all is.
async fn not_yet(live: &Json, wanted: &Object) -> Result<Option<String>, Diagnostic> {
    let missing = missing(live, wanted);
    let Some(expression) = text(wanted, "expression").filter(|_| missing.is_none()) else { return Ok(missing) };
    let (expression, live) = (expression.to_owned(), live.clone());
    let told = tokio::task::spawn_blocking(move || wait_expression::missing(&expression, &live)).await;
    told.unwrap_or_else(|_| Err(Diagnostic::error("Expression was not evaluated", "Evaluating it ended before there was an answer.")))
}

/// What is not so yet; none if all is.
fn missing(live: &Json, wanted: &Object) -> Option<String> {
    if is_true(wanted, "rollout")
        && let Some(missing) = rollout(live["kind"].as_str().unwrap_or_default(), live)
    {
        return Some(missing);
    }
    if is_true(wanted, "address")
        && let Some(missing) = service::missing(live)
    {
        return Some(missing);
    }
    for (name, status) in entries(wanted, "condition") {
        let conditions = live["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let found = conditions.iter().find(|c| c["type"] == *name).and_then(|c| c["status"].as_str());
        if found != Some(status) {
            return Some(format!("its condition {name} is {}, not {status}", found.unwrap_or("not there")));
        }
    }
    for (path, value) in entries(wanted, "fields") {
        let found = at(live, path).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).filter(|v| !v.is_empty());
        if found.is_none() || (value != "*" && found.as_deref() != Some(value)) {
            return Some(format!("its {path} is not {}", if value == "*" { "there" } else { value }));
        }
    }
    None
}

fn entries<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
    object.get(name).and_then(Value::as_entries).into_iter().flatten().filter_map(|(n, v)| Some((n, v.as_str()?)))
}

/// `status.ingress.0.ip`; null is as nothing.
fn at<'a>(live: &'a Json, path: &str) -> Option<&'a Json> {
    path.split('.')
        .try_fold(live, |here, step| match here {
            Json::Array(items) => items.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        })
        .filter(|v| !v.is_null())
}

fn rollout(kind: &str, live: &Json) -> Option<String> {
    let status = &live["status"];
    let number = |name: &str| status[name].as_i64().unwrap_or(0);
    if kind == "Job" {
        // It is at its end or not, and no controller notes which generation it has seen.
        let is_complete = has_condition(live, "Complete");
        return (!is_complete).then(|| format!("{} of its pods have come to their end", number("succeeded")));
    }
    if number("observedGeneration") < live["metadata"]["generation"].as_i64().unwrap_or(0) {
        return Some("its controller has not seen the change yet".to_owned());
    }
    let replicas = live["spec"]["replicas"].as_i64().unwrap_or(1);
    let few = |have: i64, of: i64, what: &str| (have < of).then(|| format!("{have} of {of} replicas are {what}"));
    match kind {
        "Deployment" => few(number("updatedReplicas"), replicas, "of the new revision")
            .or_else(|| (number("replicas") > number("updatedReplicas")).then(|| "replicas of the old revision still run".to_owned()))
            .or_else(|| few(number("availableReplicas"), replicas, "available")),
        "StatefulSet" => few(number("readyReplicas"), replicas, "ready").or_else(|| {
            let strategy = &live["spec"]["updateStrategy"];
            // Somebody else deletes the old pods, whenever that is right; until then the two revisions differ.
            if strategy["type"] == "OnDelete" {
                return None;
            }
            // Pods below the partition keep their revision.
            let new = (replicas - strategy["rollingUpdate"]["partition"].as_i64().unwrap_or(0)).max(0);
            let moving = status["updateRevision"] != status["currentRevision"] && number("updatedReplicas") < new;
            moving.then(|| format!("{} of {new} replicas are of the new revision", number("updatedReplicas")))
        }),
        "DaemonSet" => {
            let nodes = number("desiredNumberScheduled");
            few(number("updatedNumberScheduled"), nodes, "of the new revision")
                .or_else(|| few(number("numberAvailable"), nodes, "available"))
        }
        _ => None,
    }
}

/// True of a Job that is at its end and not a good one.
fn has_failed(live: &Json) -> bool {
    live["kind"] == "Job" && has_condition(live, "Failed")
}

fn has_condition(live: &Json, name: &str) -> bool {
    let conditions = live["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|c| c["type"] == name && c["status"] == "True")
}

/// What keeps something that runs or serves from being well; `None` outside for what is neither.
pub(crate) fn health(kind: &str, live: &Json) -> Option<Option<String>> {
    match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" => Some(rollout(kind, live)),
        "APIService" => Some((!has_condition(live, "Available")).then(|| conditions_or_silence(live))),
        _ => None,
    }
}

fn conditions_or_silence(live: &Json) -> String {
    let said = conditions(live, |c| c["status"] != "True");
    if said.is_empty() { "it says nothing of itself yet".to_owned() } else { said }
}

/// Conditions of an object in words, with their reasons.
pub(crate) fn conditions(live: &Json, filter: impl Fn(&Json) -> bool) -> String {
    let list = live["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let words = list.iter().filter(|c| filter(c)).map(|c| {
        let text = |name: &str| c[name].as_str().unwrap_or_default();
        let why = [text("reason"), text("message")].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(": ");
        let why = if why.is_empty() { why } else { format!(" ({})", why.trim_end_matches('.')) };
        format!("{} is {}{why}", text("type"), text("status"))
    });
    words.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::object;
    use karmaform_model::{Type, implied_from_json};
    use serde_json::json;

    #[test]
    fn a_rollout_is_done_when_every_replica_is_new_and_available() {
        let deployment = |generation: i64, updated: i64, all: i64, available: i64| {
            json!({ "kind": "Deployment", "metadata": { "generation": 2 }, "spec": { "replicas": 2 },
                "status": { "observedGeneration": generation, "updatedReplicas": updated, "replicas": all, "availableReplicas": available } })
        };
        assert!(rollout("Deployment", &deployment(1, 2, 2, 2)).unwrap().contains("not seen"));
        assert_eq!(rollout("Deployment", &deployment(2, 1, 2, 2)).unwrap(), "1 of 2 replicas are of the new revision");
        assert!(rollout("Deployment", &deployment(2, 2, 3, 2)).unwrap().contains("old revision"));
        assert_eq!(rollout("Deployment", &deployment(2, 2, 2, 1)).unwrap(), "1 of 2 replicas are available");
        assert_eq!(rollout("Deployment", &deployment(2, 2, 2, 2)), None);
    }

    #[test]
    fn a_job_is_done_when_it_is_complete() {
        let job = |condition: &str| json!({ "kind": "Job", "metadata": { "generation": 1 }, "status": { "conditions": [{ "type": condition, "status": "True" }] } });
        assert_eq!(rollout("Job", &job("Complete")), None);
        assert_eq!(rollout("Job", &job("Suspended")).unwrap(), "0 of its pods have come to their end");
        assert!(has_failed(&job("Failed")) && !has_failed(&job("Complete")));
        assert_eq!(health("Job", &job("Failed")), None);
    }

    #[test]
    fn a_stateful_set_whose_pods_others_delete_is_done_when_all_are_ready() {
        let set = |strategy: Json, ready: i64, updated: i64| {
            json!({ "kind": "StatefulSet", "metadata": { "generation": 2 }, "spec": { "replicas": 3, "updateStrategy": strategy },
                "status": { "observedGeneration": 2, "readyReplicas": ready, "updatedReplicas": updated, "currentRevision": "a", "updateRevision": "b" } })
        };
        let partition = json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 2 } });
        assert_eq!(rollout("StatefulSet", &set(json!({ "type": "OnDelete" }), 3, 0)), None);
        assert_eq!(rollout("StatefulSet", &set(json!({ "type": "OnDelete" }), 2, 0)).unwrap(), "2 of 3 replicas are ready");
        assert_eq!(
            rollout("StatefulSet", &set(json!({ "type": "RollingUpdate" }), 3, 1)).unwrap(),
            "1 of 3 replicas are of the new revision"
        );
        assert_eq!(rollout("StatefulSet", &set(partition.clone(), 3, 0)).unwrap(), "0 of 1 replicas are of the new revision");
        assert_eq!(rollout("StatefulSet", &set(partition, 3, 1)), None);
    }

    #[test]
    fn what_runs_or_serves_is_well_or_says_why_not() {
        let service =
            |status: &str| json!({ "status": { "conditions": [{ "type": "Available", "status": status, "reason": "MissingEndpoints" }] } });
        assert_eq!(health("APIService", &service("True")), Some(None));
        assert_eq!(health("APIService", &service("False")).flatten().unwrap(), "Available is False (MissingEndpoints)");
        assert_eq!(health("APIService", &json!({})).flatten().unwrap(), "it says nothing of itself yet");
        assert_eq!(health("ConfigMap", &json!({})), None);
    }

    #[test]
    fn conditions_and_fields_are_waited_for() {
        let live = json!({ "status": { "phase": "Active", "list": [{ "n": 3 }], "conditions": [{ "type": "Ready", "status": "False", "reason": "Pulling" }] } });
        let map = |json: Json| karmaform_model::convert(&implied_from_json(&json), &Type::map(Type::String)).unwrap();
        let check = |name: &str, json: Json| missing(&live, &object([(name, map(json))]));
        assert_eq!(check("condition", json!({ "Ready": "True" })).unwrap(), "its condition Ready is False, not True");
        assert_eq!(check("condition", json!({ "Gone": "True" })).unwrap(), "its condition Gone is not there, not True");
        assert_eq!(check("condition", json!({ "Ready": "False" })), None);
        assert_eq!(check("fields", json!({ "status.phase": "Active", "status.list.0.n": "3", "status.list": "*" })), None);
        assert_eq!(check("fields", json!({ "status.gone": "*" })).unwrap(), "its status.gone is not there");
        assert_eq!(conditions(&live, |_| true), "Ready is False (Pulling)");
    }
}
