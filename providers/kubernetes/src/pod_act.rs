//! Waiting until a pod of the wanted revision runs, after deleting the one of another revision.

use std::time::Duration;

use karmaform_model::{Diagnostic, Object, Value};
use kube::api::PropagationPolicy;
use serde_json::Value as Json;
use tokio::time::{Instant, sleep};

use crate::act::seconds;
use crate::client::Client;
use crate::pod::{REVISION, says};
use crate::pod_look::{revision, termination_message};
use crate::pods::{is_leaving, runs};
use crate::pods_by_hand;
use crate::pods_why::{self, pods, stateful_sets};
use crate::values::text;

/// Between two looks: a pod that can start is up within seconds, and others may wait for it to be restarted in turn.
const PAUSE: Duration = Duration::from_millis(200);
/// The schema's default, for states that were written without it.
const TIMEOUT: u64 = 120;

/// Waits until the pod runs at the wanted revision; one that was there before is deleted first if it is of another one, or said that it will never
/// start. Gives the pod as it is.
pub(crate) async fn up(client: &Client, after: &Object, before: Option<&Object>) -> Result<Object, Diagnostic> {
    let may_restart = before.is_some();
    let (Some(namespace), Some(name), Some(wanted)) = (text(after, "namespace"), text(after, "name"), text(after, "revision")) else {
        return Err(Diagnostic::error("Pod is not named", "A pod needs a `namespace`, a `name` and a `revision`."));
    };
    let place = pods(namespace);
    let limit = seconds(after, TIMEOUT);
    let end = Instant::now() + limit;
    let mut deleted: Option<String> = None;
    loop {
        let found = client.get(&place, name).await;
        let by_hand = match &found {
            Ok(Some(pod)) if !is_leaving(pod) => pods_by_hand::of_stateful_set(client, pod).await,
            _ => None,
        };
        let waiting = match found {
            Ok(None) => Waiting::For(missing(deleted.is_some())),
            Ok(Some(pod)) if is_leaving(&pod) => Waiting::For("the old one is still ending".to_owned()),
            // Of another revision it goes as all those do.
            Ok(Some(pod)) if revision(&pod) == wanted && !runs(&pod) && says(termination_message(&pod), text(after, "renew_on")) => {
                let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                let is_that = before.and_then(|b| text(b, "uid")) == Some(uid.as_str());
                match &deleted {
                    None if is_that => {
                        let gone = client.delete(&place, name, Some(&uid), PropagationPolicy::Background).await;
                        gone.map_err(|f| f.diagnostic(client.place(), &place.call("delete", name), &[]))?;
                        deleted = Some(uid);
                        Waiting::For("the old one is still ending".to_owned())
                    }
                    Some(old) if *old == uid => Waiting::For("the old one is still ending".to_owned()),
                    // Waiting does not help.
                    _ => return Err(never_starts(name, text(after, "renew_on").unwrap_or_default())),
                }
            }
            Ok(Some(pod)) if revision(&pod) == wanted && by_hand.is_none() => {
                if runs(&pod) {
                    return Ok(done(after, &pod));
                }
                Waiting::Pod(pod)
            }
            Ok(Some(pod)) => {
                let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                let what = by_hand.map_or_else(|| other(&pod), |changed| format!("somebody gave it {}", changed.image));
                match &deleted {
                    _ if !may_restart => Waiting::For(what),
                    Some(old) if *old != uid => return Err(still_other(name, &what)),
                    Some(_) => Waiting::For("the old one is still ending".to_owned()),
                    None => match owner(client, namespace, &pod, wanted).await {
                        Err(told) => return Err(told),
                        Ok(false) => {
                            Waiting::For("its StatefulSet can't be seen, or its controller has not seen the new template yet".to_owned())
                        }
                        Ok(true) => {
                            // No grace period: the pod's own is what its programs need.
                            let gone = client.delete(&place, name, Some(&uid), PropagationPolicy::Background).await;
                            match gone.map_err(|f| f.diagnostic(client.place(), &place.call("delete", name), &[])) {
                                // Another one has its name by now; look again.
                                Ok(false) => {}
                                Ok(true) => deleted = Some(uid),
                                Err(error) => return Err(error),
                            }
                            Waiting::For("the old one is still ending".to_owned())
                        }
                    },
                }
            }
            Err(failure) => {
                let told = failure.diagnostic(client.place(), &place.call("get", name), &[]);
                if !told.retryable {
                    return Err(told);
                }
                Waiting::For(told.detail.trim_end_matches('.').to_owned())
            }
        };
        if Instant::now() >= end {
            let why = match waiting {
                Waiting::For(why) => why,
                Waiting::Pod(pod) => {
                    let why = pods_why::of_pod(client, &pod, &[]).await;
                    format!("it {}", why.unwrap_or_else(|| "is not running yet".to_owned()))
                }
            };
            let told = format!("Pod {name} of {namespace} does not run at the revision \"{wanted}\" after {} s: {why}.", limit.as_secs());
            return Err(Diagnostic::error("Pod does not come up", told)
                .with_hint("Mend what is said to be wrong, then apply again.")
                .with_hint("Or raise `timeout`, if it only needs longer."));
        }
        sleep(PAUSE.min(end.saturating_duration_since(Instant::now()))).await;
    }
}

fn never_starts(name: &str, words: &str) -> Diagnostic {
    Diagnostic::error("Pod will not start", format!("The program in pod {name} ends, since it has lost what it needs: \"{words}\"."))
        .with_hint("Plan again: what else was done may be what its turn was waiting for.")
}

enum Waiting {
    For(String),
    Pod(Json),
}

fn missing(was_deleted: bool) -> String {
    let made = if was_deleted { "no new one was made" } else { "it is not there" };
    format!("{made}; its StatefulSet may be missing, or have too few replicas, or wait for another of its pods")
}

fn other(pod: &Json) -> String {
    match revision(pod) {
        "" => format!("the one that is there has no annotation {REVISION}"),
        revision => format!("the one that is there is of the revision \"{revision}\""),
    }
}

fn still_other(name: &str, what: &str) -> Diagnostic {
    Diagnostic::error("Pod is of another revision", format!("Pod {name} was deleted, but of its successor this is true: {what}."))
        .with_hint(format!("Let the StatefulSet's pod template have the wanted annotation {REVISION}, and let this resource depend on it."))
}

/// Whether the StatefulSet of a pod would make one of the wanted revision in its place; false if its controller may not know the newest
/// template yet. An error if it would not: then deleting the pod would only harm.
async fn owner(client: &Client, namespace: &str, pod: &Json, wanted: &str) -> Result<bool, Diagnostic> {
    let owners = pod["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    let set = owners.iter().find(|o| o["kind"] == "StatefulSet").and_then(|o| o["name"].as_str());
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let Some(set) = set else {
        let told = format!("Pod {pod_name} belongs to no StatefulSet: nobody would make it anew after it was deleted.");
        return Err(Diagnostic::error("Pod can't be restarted", told)
            .with_hint("Name a pod of a StatefulSet; or make this one anew yourself, with the wanted revision."));
    };
    let live = match client.get(&stateful_sets(namespace), set).await {
        Ok(Some(live)) => live,
        // Who may not see it is believed to know what is wanted.
        Err(failure) if failure.code() == Some(403) => return Ok(true),
        // Nothing is deleted unseen.
        Ok(None) | Err(_) => return Ok(false),
    };
    let template = live["spec"]["template"]["metadata"]["annotations"][REVISION].as_str().unwrap_or_default();
    if template != wanted {
        let told = format!(
            "Pod {pod_name} should be of the revision \"{wanted}\", but the pod template of its StatefulSet {set} has \"{template}\" in the \
             annotation {REVISION}. It was not restarted."
        );
        return Err(Diagnostic::error("Pod would not get the wanted revision", told)
            .with_hint("Let the pod template have the wanted revision, and let this resource depend on it."));
    }
    let seen = live["status"]["observedGeneration"].as_i64().unwrap_or(0);
    Ok(seen >= live["metadata"]["generation"].as_i64().unwrap_or(0))
}

fn done(after: &Object, pod: &Json) -> Object {
    let mut object = after.clone();
    object.insert("uid".to_owned(), Value::from(pod["metadata"]["uid"].as_str().unwrap_or_default()));
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_will_never_start_says_its_own_words() {
        let why = never_starts("etcd-0", "no data");
        assert_eq!(why.summary, "Pod will not start");
        assert_eq!(why.detail, "The program in pod etcd-0 ends, since it has lost what it needs: \"no data\".");
    }

    #[test]
    fn a_successor_of_another_revision_is_named_with_its_own() {
        let pod = serde_json::json!({ "metadata": { "annotations": { REVISION: "1" } } });
        let why = still_other("etcd-0", &other(&pod));
        assert_eq!(why.summary, "Pod is of another revision");
        assert!(why.detail.ends_with("the one that is there is of the revision \"1\"."), "{}", why.detail);
    }

    #[tokio::test]
    async fn a_pod_that_nobody_makes_anew_is_not_deleted() {
        let pod = serde_json::json!({ "metadata": { "name": "p", "uid": "1", "annotations": { REVISION: "1" } } });
        let (client, seen) = crate::mock::client(move |_, _| (200, pod.clone())).await;
        let wanted = crate::values::object([("namespace", "n".into()), ("name", "p".into()), ("revision", "2".into())]);
        let why = up(&client, &wanted, Some(&wanted)).await.unwrap_err();
        assert_eq!(why.summary, "Pod can't be restarted");
        assert!(why.detail.starts_with("Pod p belongs to no StatefulSet") && !why.hints.is_empty(), "{why:?}");
        assert!(seen.lock().unwrap().iter().all(|asked| asked.starts_with("GET ")), "{seen:?}");
    }
}
