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
use crate::pod_node::nowhere_to_start;
use crate::pods::{is_leaving, lacks_image, runs};
use crate::pods_by_hand;
use crate::pods_why::{self, pods, stateful_sets};
use crate::values::text;

/// Between two looks: a pod that can start is up within seconds, and others may wait for it to be restarted in turn.
const PAUSE: Duration = Duration::from_millis(200);
/// So long an image that can't be had may yet come, from the first try on: there are more by then.
const PATIENCE: Duration = Duration::from_secs(30);
/// The schema's default, for states that were written without it.
const TIMEOUT: u64 = 120;

/// Waits until the pod runs at the wanted revision; one that was there before is deleted first if it is of another one, or said that it will never
/// start. Gives the pod as it is.
pub(crate) async fn up(client: &Client, after: &Object, before: Option<&Object>) -> Result<Object, Diagnostic> {
    up_within(client, after, before, PATIENCE).await
}

async fn up_within(client: &Client, after: &Object, before: Option<&Object>, patience: Duration) -> Result<Object, Diagnostic> {
    let may_restart = before.is_some();
    let (Some(namespace), Some(name), Some(wanted)) = (text(after, "namespace"), text(after, "name"), text(after, "revision")) else {
        return Err(Diagnostic::error("Pod is not named", "A pod needs a `namespace`, a `name` and a `revision`."));
    };
    let place = pods(namespace);
    let limit = seconds(after, TIMEOUT);
    let start = Instant::now();
    let mut deleted: Option<String> = None;
    let mut unpulled: Option<Instant> = None;
    loop {
        let found = client.get(&place, name).await;
        let by_hand = match &found {
            Ok(Some(pod)) if !is_leaving(pod) => pods_by_hand::of_stateful_set(client, pod).await,
            _ => None,
        };
        let waiting = match found {
            Ok(None) => Waiting::Made { was_deleted: deleted.is_some() },
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
                            if let Some(told) = nowhere_to_start(client, &pod).await {
                                return Err(told);
                            }
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
        let since = start.elapsed();
        // From the first time on that it is seen: the pod of before may have taken long to end, and this one its time to get its volume.
        let is_given_up = match &waiting {
            Waiting::Pod(pod) if lacks_image(pod) => unpulled.get_or_insert_with(Instant::now).elapsed() >= patience,
            _ => false,
        };
        if since >= limit || is_given_up {
            let why = match waiting {
                Waiting::For(why) => why,
                Waiting::Made { was_deleted } => match pods_why::not_made(client, namespace, name).await {
                    Some(why) => format!("it {why}"),
                    None => missing(was_deleted),
                },
                Waiting::Pod(pod) => {
                    let why = pods_why::of_pod(client, &pod, &[]).await;
                    format!("it {}", why.unwrap_or_else(|| "is not running yet".to_owned()))
                }
            };
            let told = format!("Pod {name} of {namespace} does not run at the revision \"{wanted}\" after {} s: {why}.", since.as_secs());
            return Err(Diagnostic::error("Pod does not come up", told)
                .with_hint("Mend what is said to be wrong, then apply again.")
                .with_hint("Or raise `timeout`, if it only needs longer."));
        }
        sleep(PAUSE.min(limit.saturating_sub(since))).await;
    }
}

fn never_starts(name: &str, words: &str) -> Diagnostic {
    Diagnostic::error("Pod will not start", format!("The program in pod {name} ends, since it has lost what it needs: \"{words}\"."))
        .with_hint("Plan again: what else was done may be what its turn was waiting for.")
}

enum Waiting {
    For(String),
    /// Until somebody makes it.
    Made {
        was_deleted: bool,
    },
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
    use std::sync::atomic::{AtomicUsize, Ordering};

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

    /// What is told of a pod that does not come up.
    async fn down(answer: impl Fn(&str) -> (u16, serde_json::Value) + Send + Sync + 'static, timeout: i64) -> Diagnostic {
        let (client, _) = crate::mock::client(move |_, path| answer(path)).await;
        let wanted = crate::values::object([
            ("namespace", "n".into()),
            ("name", "etcd-0".into()),
            ("revision", "1".into()),
            ("timeout", timeout.into()),
        ]);
        up_within(&client, &wanted, None, Duration::ZERO).await.unwrap_err()
    }

    #[tokio::test]
    async fn an_image_that_can_not_be_had_is_not_waited_for_to_the_end() {
        let status = serde_json::json!([{ "name": "etcd", "image": "r/etcd:1", "state": { "waiting": { "reason": "ImagePullBackOff" } } }]);
        let pod = serde_json::json!({ "metadata": { "name": "etcd-0", "namespace": "n", "annotations": { REVISION: "1" } },
            "status": { "phase": "Pending", "containerStatuses": status } });
        let why = down(move |_| (200, pod.clone()), 60).await;
        assert_eq!(why.summary, "Pod does not come up");
        assert!(why.detail.contains("after 0 s: it can't get the image \"r/etcd:1\""), "{}", why.detail);
    }

    #[tokio::test]
    async fn an_image_is_waited_for_from_its_first_try_on() {
        let status = serde_json::json!([{ "name": "etcd", "image": "r/etcd:1", "state": { "waiting": { "reason": "ImagePullBackOff" } } }]);
        let ends = serde_json::json!({ "metadata": { "name": "etcd-0", "namespace": "n", "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        let made = serde_json::json!({ "metadata": { "name": "etcd-0", "namespace": "n", "annotations": { REVISION: "1" } },
            "status": { "phase": "Pending", "containerStatuses": status } });
        let looks = AtomicUsize::new(0);
        // The one of before takes longer to end than anybody waits for an image.
        let answer = move |_: &str, path: &str| match path {
            "/api/v1/namespaces/n/pods/etcd-0" if looks.fetch_add(1, Ordering::Relaxed) < 4 => (200, ends.clone()),
            "/api/v1/namespaces/n/pods/etcd-0" => (200, made.clone()),
            _ => crate::mock::missing(),
        };
        let (client, seen) = crate::mock::client(answer).await;
        let wanted = crate::values::object([("namespace", "n".into()), ("name", "etcd-0".into()), ("revision", "1".into())]);
        let why = up_within(&client, &wanted, None, PAUSE * 2).await.unwrap_err();
        assert_eq!(why.summary, "Pod does not come up");
        let asked = seen.lock().unwrap().iter().filter(|asked| asked.ends_with("/pods/etcd-0")).count();
        assert!(asked > 5, "it was given up at the first look: {asked}");
    }

    #[tokio::test]
    async fn a_pod_that_the_server_refuses_is_told_with_why() {
        let event =
            |reason: &str, message: &str, at: &str| serde_json::json!({ "reason": reason, "message": message, "lastTimestamp": at });
        let refusal = "create Pod etcd-0 in StatefulSet etcd failed error: pods \"etcd-0\" is forbidden: exceeded quota: few";
        let made = event("SuccessfulCreate", "create Pod etcd-0 in StatefulSet etcd successful", "2026-01-01T00:00:00Z");
        let other = event("SuccessfulCreate", "create Pod etcd-1 in StatefulSet etcd successful", "2026-01-03T00:00:00Z");
        let refused = event("FailedCreate", refusal, "2026-01-02T00:00:00Z");
        for (events, told) in [
            (vec![made.clone(), refused, other.clone()], "it can't be made: pods \"etcd-0\" is forbidden: exceeded quota: few."),
            (vec![made, other], "wait for another of its pods."),
        ] {
            let events = serde_json::json!({ "items": events });
            let why = down(
                move |path| match path {
                    "/api/v1/namespaces/n/events" => (200, events.clone()),
                    "/apis/apps/v1/namespaces/n/statefulsets/etcd" => {
                        (200, serde_json::json!({ "metadata": { "name": "etcd", "namespace": "n", "uid": "s" } }))
                    }
                    _ => crate::mock::missing(),
                },
                0,
            )
            .await;
            assert!(why.detail.ends_with(told), "{}", why.detail);
        }
    }
}
