//! Why a pod is not up, in a few words, from what the cluster says of it. Pure: what to ask for is `pods_why`'s part.
//!
//! Facts: the states and reasons of containers (`kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle`), and the events that kubelet,
//! scheduler and controllers write.

use serde_json::Value as Json;

/// The longest piece of somebody else's message.
const LONGEST: usize = 300;
/// Lines of a log that are told.
pub(crate) const LINES: i64 = 5;

/// A container whose last words would tell more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Its name.
    pub(crate) container: String,
    /// It has been started again since.
    pub(crate) previous: bool,
}

/// Reasons of events on the way up.
const STARTING: &[&str] = &[
    "FailedScheduling",
    "Scheduled",
    "FailedMount",
    "FailedAttachVolume",
    "FailedMapVolume",
    "SuccessfulAttachVolume",
    "FailedCreatePodSandBox",
    "Pulling",
    "Pulled",
    "Created",
    "Started",
];

fn items(json: &Json) -> &[Json] {
    json.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(json: &'a Json, name: &str) -> &'a str {
    json[name].as_str().unwrap_or_default()
}

/// The containers' statuses, in the order in which they start.
fn containers(pod: &Json) -> impl Iterator<Item = &Json> {
    items(&pod["status"]["initContainerStatuses"]).iter().chain(items(&pod["status"]["containerStatuses"]))
}

fn condition<'a>(pod: &'a Json, kind: &str) -> Option<&'a Json> {
    items(&pod["status"]["conditions"]).iter().find(|c| c["type"] == kind)
}

/// True if it takes part: all of it is ready, and it is not on its way out.
pub(crate) fn is_ready(pod: &Json) -> bool {
    !is_leaving(pod) && condition(pod, "Ready").is_some_and(|c| c["status"] == "True")
}

/// True if it is on its way out.
pub(crate) fn is_leaving(pod: &Json) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

/// After so many restarts a container waits for minutes between two of them.
const MANY_RESTARTS: i64 = 5;

/// True if all its containers run, ready or not.
pub(crate) fn runs(pod: &Json) -> bool {
    let statuses = items(&pod["status"]["containerStatuses"]);
    let all = items(&pod["spec"]["containers"]).len();
    !is_leaving(pod)
        && pod["status"]["phase"] == "Running"
        && statuses.len() >= all
        && statuses.iter().all(|c| c["state"]["running"].is_object())
}

/// The container that ended and keeps the pod from being up; its log says why.
pub(crate) fn ended(pod: &Json) -> Option<Ended> {
    let found = |status: &Json| {
        let container = text(status, "name").to_owned();
        let failed = |state: &Json| state["terminated"].is_object() && state["terminated"]["exitCode"] != 0;
        if failed(&status["state"]) {
            return Some(Ended { container, previous: false });
        }
        // A log is there until the container after the next is started.
        (status["ready"] != true && failed(&status["lastState"])).then_some(Ended { container, previous: true })
    };
    containers(pod).find_map(found)
}

/// What keeps a pod from being up; none if it is. `events` are those of this pod, `log` the last lines of the container in [`ended`].
pub(crate) fn reason(pod: &Json, events: &[Json], log: Option<&str>) -> Option<String> {
    if is_leaving(pod) {
        return Some("is being deleted".to_owned());
    }
    if is_ready(pod) || pod["status"]["phase"] == "Succeeded" {
        return None;
    }
    if let Some(told) = condition(pod, "PodScheduled").filter(|c| c["status"] == "False") {
        return Some(format!("can't be scheduled{}", why(text(told, "message"))));
    }
    if pod["status"]["phase"] == "Failed" && !text(&pod["status"], "reason").is_empty() {
        return Some(format!("failed: {}{}", text(&pod["status"], "reason"), why(text(&pod["status"], "message"))));
    }
    let stuck = containers(pod).find_map(|status| container(status, events, log));
    if stuck.is_some() {
        return stuck;
    }
    // A mount that worked at the second try is no reason any more: what came last counts.
    if let Some(event) = latest(events, STARTING).filter(|_| !containers(pod).any(|c| c["state"]["running"].is_object())) {
        match text(event, "reason") {
            "FailedMount" | "FailedAttachVolume" | "FailedMapVolume" => {
                return Some(format!("has a volume that can't be mounted{}", why(text(event, "message"))));
            }
            reason if reason.starts_with("Failed") => return Some(format!("can't be started{}", why(text(event, "message")))),
            _ => return Some(format!("is being started{}", why(text(event, "message")))),
        }
    }
    let waiting = containers(pod).find(|c| c["ready"] != true && c["state"]["running"].is_object());
    if let Some(status) = waiting {
        let name = text(status, "name");
        // `Readiness probe failed: ...`, `Startup probe failed: ...`
        let probe = latest(events, &["Unhealthy", "ProbeWarning"]).map(|e| text(e, "message"));
        return Some(match probe {
            Some(probe) => format!("runs, but its container \"{name}\" is not ready{}", why(probe)),
            None => format!("runs, but its container \"{name}\" is not ready yet"),
        });
    }
    if let Some(gate) = condition(pod, "Ready").filter(|c| c["reason"] == "ReadinessGatesNotReady") {
        return Some(format!("is not ready{}", why(text(gate, "message"))));
    }
    let phase = text(&pod["status"], "phase");
    Some(if phase.is_empty() || phase == "Pending" { "is being started".to_owned() } else { format!("is {phase}, and not ready") })
}

/// What is wrong with a container, if anything is.
fn container(status: &Json, events: &[Json], log: Option<&str>) -> Option<String> {
    let name = text(status, "name");
    let waiting = &status["state"]["waiting"];
    match text(waiting, "reason") {
        // Both are the usual way up.
        "" | "ContainerCreating" | "PodInitializing" => {}
        "CrashLoopBackOff" => return Some(crash(status, &status["lastState"]["terminated"], log)),
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" | "RegistryUnavailable" | "ImageInspectError" => {
            let message = text(waiting, "message");
            // While it waits for the next try, older kubelets say only that it waits; the event has the cause.
            let cause = latest_where(events, |e| e["reason"] == "Failed" && text(e, "message").contains("pull"));
            let cause = cause.map(|e| text(e, "message")).filter(|_| text(waiting, "reason") != "InvalidImageName").unwrap_or(message);
            let cause = if cause.is_empty() { text(waiting, "reason") } else { cause };
            return Some(format!("can't get the image \"{}\" of its container \"{name}\"{}", text(status, "image"), why(cause)));
        }
        reason => {
            return Some(format!("has a container \"{name}\" that can't be started: {reason}{}", why(text(waiting, "message"))));
        }
    }
    let ended = &status["state"]["terminated"];
    if ended.is_object() && ended["exitCode"] != 0 {
        return Some(crash(status, ended, log));
    }
    let before = &status["lastState"]["terminated"];
    let again = status["ready"] != true && status["restartCount"].as_i64().unwrap_or(0) > 0 && before["exitCode"] != 0;
    (again && before.is_object()).then(|| crash(status, before, log))
}

fn crash(status: &Json, ended: &Json, log: Option<&str>) -> String {
    let mut told = format!("has a container \"{}\" that ends", text(status, "name"));
    if let Some(code) = ended["exitCode"].as_i64() {
        told.push_str(&format!(" with code {code}"));
    }
    // `Error` says nothing that the code does not say.
    match text(ended, "reason") {
        "" | "Error" | "Completed" => {}
        reason => told.push_str(&format!(" ({reason})")),
    }
    match status["restartCount"].as_i64() {
        Some(count) if count > 0 => told.push_str(&format!(", started again {count} time{}", if count == 1 { "" } else { "s" })),
        _ => {}
    }
    let log = log.map(str::trim).filter(|l| !l.is_empty()).unwrap_or_else(|| text(ended, "message").trim());
    let lines: Vec<String> = log.lines().map(|l| short(l.trim())).filter(|l| !l.is_empty()).collect();
    let from = lines.len().saturating_sub(LINES as usize);
    if !lines.is_empty() {
        told.push_str(&format!("; it said last: {}", lines[from..].join(" | ")));
    }
    told
}

/// The latest event with one of these reasons.
pub(crate) fn latest<'a>(events: &'a [Json], reasons: &[&str]) -> Option<&'a Json> {
    latest_where(events, |e| reasons.contains(&text(e, "reason")))
}

/// The last of those that are chosen.
pub(crate) fn latest_where(events: &[Json], chosen: impl Fn(&Json) -> bool) -> Option<&Json> {
    // RFC 3339 times of one clock sort as texts; which of the fields is set depends on who wrote the event.
    let time = |e: &Json| {
        let times = [&e["series"]["lastObservedTime"], &e["lastTimestamp"], &e["eventTime"], &e["metadata"]["creationTimestamp"]];
        times.iter().find_map(|t| t.as_str()).unwrap_or_default().to_owned()
    };
    events.iter().filter(|e| chosen(e)).max_by_key(|e| time(e))
}

/// `: message`, short and without a full stop; nothing if there is none.
pub(crate) fn why(message: &str) -> String {
    let words = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.trim_end_matches('.');
    if words.is_empty() { String::new() } else { format!(": {}", short(words)) }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// True for a pod that has been tried so often that another try will hardly help: an image that can't be had, a program that ends each time.
pub(crate) fn is_stuck(pod: &Json) -> bool {
    let is_tried_often = |status: &Json| status["restartCount"].as_i64().unwrap_or(0) >= MANY_RESTARTS;
    lacks_image(pod) || containers(pod).any(|status| waits_for(status, &["CrashLoopBackOff"]) && is_tried_often(status))
}

/// True for a pod with an image that could not be had when it was last asked for, once or often.
pub(crate) fn lacks_image(pod: &Json) -> bool {
    containers(pod).any(|status| waits_for(status, &["ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"]))
}

/// True for a container that waits for one of these reasons.
fn waits_for(status: &Json, reasons: &[&str]) -> bool {
    status["state"]["waiting"]["reason"].as_str().is_some_and(|reason| reasons.contains(&reason))
}

/// Those pods of a workload whose fate decides a rollout: of the wanted revision if that can be told, else the youngest kind; none that leaves.
pub(crate) fn decisive<'a>(workload: &Json, pods: &'a [Json]) -> Vec<&'a Json> {
    let label = |pod: &'a Json, name: &str| pod["metadata"]["labels"][name].as_str();
    let staying = || pods.iter().filter(|p| !is_leaving(p));
    let hash = match workload["kind"].as_str() {
        Some("Deployment") => {
            let youngest = staying().max_by_key(|p| text(&p["metadata"], "creationTimestamp"));
            youngest.and_then(|p| label(p, "pod-template-hash")).map(|h| ("pod-template-hash", h))
        }
        // An old pod may be the one that is in the way of the next new one, so the old ones stay in.
        _ => None,
    };
    let mut chosen: Vec<&Json> = staying().filter(|p| hash.is_none_or(|(name, hash)| label(p, name) == Some(hash))).collect();
    chosen.sort_by_key(|p| text(&p["metadata"], "name"));
    chosen
}

/// A workload's selector as it stands in a query; none if it has none.
pub(crate) fn selector(workload: &Json) -> Option<String> {
    let selector = &workload["spec"]["selector"];
    let mut parts: Vec<String> = Vec::new();
    for (name, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push(format!("{name}={}", value.as_str()?));
    }
    for one in items(&selector["matchExpressions"]) {
        let (key, values) = (text(one, "key"), items(&one["values"]).iter().filter_map(Json::as_str).collect::<Vec<_>>().join(","));
        parts.push(match text(one, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    (!parts.is_empty()).then(|| parts.join(","))
}

#[cfg(test)]
#[path = "pods_tests.rs"]
mod tests;
