//! What somebody did to pods by hand: another image in one, which the server takes and no controller ever notices, and a pod that nobody made for a
//! Service of ours and that has the labels it looks for.
//!
//! A server keeps account of who set which field of a pod, too. What admission changes when a pod is made (a mirror's address, a digest) is in the
//! account of who made it; so only what was set later, by somebody else, is anybody's hand.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use karmaform_model::{Diagnostic, Object};
use kube::api::PropagationPolicy;
use serde_json::Value as Json;
use tokio::time::{Instant, sleep};

use crate::act::{PAUSE, seconds_of};
use crate::client::{Client, MANAGER};
use crate::exclusive::is_open;
use crate::failure::Failure;
use crate::manifest::{self, MANAGED_BY, Name};
use crate::pods::{is_leaving, is_ready, selector};
use crate::pods_why::{pods, stateful_sets};

/// What makes pods and replaces those that go.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];
/// Seconds in which one ends and its successor is ready, unless the resource says otherwise.
const ENDING: u64 = 60;

/// The pods of some namespaces; of one in which they may not be listed nothing is known.
pub(crate) type Pods = BTreeMap<String, Vec<Json>>;

/// True for what makes pods.
pub(crate) fn is_workload(kind: &str) -> bool {
    WORKLOADS.contains(&kind)
}

/// Lists them, once per namespace.
pub(crate) async fn listed(client: &Client, namespaces: BTreeSet<String>, at_once: usize) -> Pods {
    let lists = namespaces.into_iter().map(|namespace| async { (client.list(&pods(&namespace)).await, namespace) });
    let lists: Vec<_> = futures::stream::iter(lists).buffered(at_once.max(1)).collect().await;
    lists.into_iter().filter_map(|(found, namespace)| Some((namespace, found.ok()?))).collect()
}

/// A container that runs another image than the one it was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    /// "containers" or "initContainers".
    field: &'static str,
    container: String,
    pub(crate) image: String,
}

/// What of a pod somebody gave another image than its template (a pod's specification) has.
pub(crate) fn changed(pod: &Json, template: &Json) -> Vec<Changed> {
    let is_other = |one: &Changed| {
        let should = template[one.field].as_array().into_iter().flatten().find(|c| c["name"] == one.container.as_str());
        should.is_some_and(|c| c["image"] != one.image.as_str())
    };
    by_hand(pod).filter(is_other).collect()
}

/// The containers of a pod whose images somebody has set, if only to what they were.
fn by_hand(pod: &Json) -> impl Iterator<Item = Changed> {
    let of = |field: &'static str| pod["spec"][field].as_array().into_iter().flatten().map(move |container| (field, container));
    let containers = ["containers", "initContainers"].into_iter().flat_map(of);
    let named = containers.filter_map(|(field, c)| Some((field, c["name"].as_str()?, c["image"].as_str()?)));
    let set = named.filter(|(field, name, _)| is_by_hand(pod, field, name));
    set.map(|(field, name, image)| Changed { field, container: name.to_owned(), image: image.to_owned() })
}

/// True if somebody set the image of a container who did not make the pod. Who makes one sets all of it.
fn is_by_hand(pod: &Json, field: &str, container: &str) -> bool {
    let key = format!("k:{{\"name\":\"{container}\"}}");
    let accounts = pod["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let specs = accounts.iter().map(|account| &account["fieldsV1"]["f:spec"]);
    specs.filter(|spec| spec["f:restartPolicy"].is_null()).any(|spec| spec[format!("f:{field}")][&key]["f:image"].is_object())
}

/// The pods of a workload whose image somebody changed, of those that were made of its template as it is now. Those of `OnDelete` are others' to
/// restart, and to look at.
pub(crate) fn altered<'a>(kind: &str, workload: &Json, pods: &'a [Json]) -> Vec<(&'a Json, Vec<Changed>)> {
    if workload["spec"]["updateStrategy"]["type"] == "OnDelete" || is_rolling(kind, workload) || is_open(workload) {
        return Vec::new();
    }
    let hash = |pod: &Json| pod["metadata"]["labels"]["controller-revision-hash"].clone();
    let of_now = |pod: &Json| kind != "StatefulSet" || hash(pod) == workload["status"]["updateRevision"];
    let name = workload["metadata"]["name"].as_str().unwrap_or_default();
    let staying = pods.iter().filter(|p| !is_leaving(p) && is_of(p, kind, name) && of_now(p));
    let found = staying.map(|pod| (pod, changed(pod, &workload["spec"]["template"]["spec"])));
    found.filter(|(_, changed)| !changed.is_empty()).collect()
}

/// True as long as there are pods of another template, or nobody knows whether there are.
fn is_rolling(kind: &str, workload: &Json) -> bool {
    let status = |name: &str| workload["status"][name].as_i64().unwrap_or(0);
    status("observedGeneration") < workload["metadata"]["generation"].as_i64().unwrap_or(0)
        || match kind {
            "Deployment" => status("updatedReplicas") < status("replicas"),
            "DaemonSet" => status("updatedNumberScheduled") < status("currentNumberScheduled"),
            _ => false,
        }
}

/// True for a pod that a workload made, or a ReplicaSet of it.
fn is_of(pod: &Json, kind: &str, name: &str) -> bool {
    owner(pod).is_some_and(|(by, of)| match kind {
        "Deployment" => by == "ReplicaSet" && is_replica_set_of(pod, of, name),
        _ => by == kind && of == name,
    })
}

/// A ReplicaSet is called as its Deployment, with the sum of its template.
fn is_replica_set_of(pod: &Json, name: &str, deployment: &str) -> bool {
    let sum = pod["metadata"]["labels"]["pod-template-hash"].as_str();
    name.strip_prefix(deployment).and_then(|rest| rest.strip_prefix('-')).is_some_and(|rest| sum.is_none_or(|sum| sum == rest))
}

fn owner(pod: &Json) -> Option<(&str, &str)> {
    let owner = pod["metadata"]["ownerReferences"].as_array()?.iter().find(|o| o["controller"] == true)?;
    Some((owner["kind"].as_str()?, owner["name"].as_str()?))
}

/// How a pod is named beside its image.
fn in_the_pod(pod: &Json) -> String {
    format!("(in the pod {})", pod["metadata"]["name"].as_str().unwrap_or_default())
}

/// A workload's manifest as its pods are: where some have another image, each such with the name of its pod.
pub(crate) fn shown_in(mut manifest: Json, altered: &[(&Json, Vec<Changed>)]) -> Json {
    let mut images: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (pod, changed) in altered {
        for Changed { field, container, image } in changed {
            images.entry((field, container)).or_default().push(format!("{image} {}", in_the_pod(pod)));
        }
    }
    for ((field, container), images) in images {
        let containers = manifest["spec"]["template"]["spec"].get_mut(field).and_then(Json::as_array_mut);
        if let Some(one) = containers.into_iter().flatten().find(|c| c["name"] == container) {
            one["image"] = images.join(", ").into();
        }
    }
    manifest
}

/// Deletes those that the plan has shown, one by one, so that their workload makes them anew; the next one once a successor is ready. True if there were
/// any. What keeps one from coming up is for whoever waits for the workload to tell.
pub(crate) async fn renew(
    client: &Client,
    (kind, live): (&str, &Json),
    before: Option<&Object>,
    after: &Object,
) -> Result<bool, Diagnostic> {
    let planned = before.and_then(|b| b.get("manifest")).map(|m| manifest::request(m).to_string()).unwrap_or_default();
    if !planned.contains("(in the pod ") {
        return Ok(false);
    }
    let text = |json: &Json, field: &str| json["metadata"][field].as_str().unwrap_or_default().to_owned();
    let place = pods(&text(live, "namespace"));
    let Some(labels) = selector(live) else { return Ok(false) };
    let told = |verb: &'static str, name: &str, f: Failure| f.diagnostic(client.place(), &place.call(verb, name), &[]);
    let mut found = match client.labelled(&place, &labels).await {
        Ok(found) => found,
        Err(failure) => return Err(told("list", "", failure)),
    };
    let altered = altered(kind, live, &found).into_iter().filter(|(pod, _)| planned.contains(&in_the_pod(pod)));
    let altered: Vec<(String, String)> = altered.map(|(p, _)| (text(p, "name"), text(p, "uid"))).collect();
    for (name, uid) in &altered {
        let before: BTreeSet<String> = found.iter().map(|p| text(p, "uid")).collect();
        client.delete(&place, name, Some(uid), PropagationPolicy::Background).await.map_err(|f| told("delete", name, f))?;
        let until = Instant::now() + seconds_of(after, "timeout", ENDING);
        let is_new = |pod: &Json| is_of(pod, kind, &text(live, "name")) && !before.contains(&text(pod, "uid")) && is_ready(pod);
        while found.iter().any(|p| text(p, "uid") == *uid) || !found.iter().any(is_new) {
            if Instant::now() >= until {
                return Ok(true);
            }
            sleep(PAUSE).await;
            found = client.labelled(&place, &labels).await.map_err(|f| told("list", "", f))?;
        }
    }
    Ok(!altered.is_empty())
}

/// What somebody gave a pod of a StatefulSet with `OnDelete`; asked of its owner only where somebody has set an image at all.
pub(crate) async fn of_stateful_set(client: &Client, pod: &Json) -> Option<Changed> {
    by_hand(pod).next()?;
    let ("StatefulSet", name) = owner(pod)? else { return None };
    let live = client.get(&stateful_sets(pod["metadata"]["namespace"].as_str()?), name).await.ok()??;
    changed(pod, &live["spec"]["template"]["spec"]).into_iter().next()
}

/// Pods that a Service leads to and that none of these workloads made.
pub(crate) fn strangers<'a>(service: &Json, pods: &'a [Json], workloads: &[Name]) -> Vec<&'a str> {
    let Some(wanted) = service["spec"]["selector"].as_object().filter(|s| !s.is_empty() && !is_open(service)) else { return Vec::new() };
    let leads_to = |pod: &Json| wanted.iter().all(|(label, value)| pod["metadata"]["labels"][label] == *value);
    let is_done = |pod: &Json| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    // What a Job or somebody else's workload of ours has made says so by its labels.
    let is_marked = |pod: &Json| owner(pod).is_some() && pod["metadata"]["labels"][MANAGED_BY] == MANAGER;
    let is_ours = |pod: &Json| is_marked(pod) || workloads.iter().any(|w| is_of(pod, &w.kind, &w.name));
    let chosen: Vec<&Json> = pods.iter().filter(|p| !is_leaving(p) && !is_done(p) && leads_to(p)).collect();
    // A Service of pods that are somebody else's altogether says so itself.
    if !chosen.iter().any(|p| is_ours(p)) {
        return Vec::new();
    }
    chosen.into_iter().filter(|p| !is_ours(p)).filter_map(|p| p["metadata"]["name"].as_str()).collect()
}

#[cfg(test)]
#[path = "pods_by_hand_tests.rs"]
mod tests;
