//! What a host name inside a cluster leads to: pods, each with the port in it. Asks as little as will do, and of what is not there says why.

use karmaform_model::Diagnostic;
use serde_json::Value as Json;

use crate::builtin;
use crate::client::{Client, Place};
use crate::failure::{Call, Failure};
use crate::rights::{self, Right};

/// The summary that says that the cluster answers, but has nothing to forward to (yet).
pub(crate) const NOTHING_THERE: &str = "Nothing to forward to";

/// What a host name inside a cluster means (<https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/>).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) namespace: String,
    service: String,
    /// This one and no other.
    pod: Option<String>,
    pub(crate) port: u16,
}

impl Target {
    /// None if it is no name of a Service or a pod.
    pub(crate) fn parse(host: &str, port: u16) -> Option<Self> {
        let parts: Vec<&str> = host.trim_end_matches('.').split('.').collect();
        let (pod, service, namespace) = match parts[..] {
            [pod, service, namespace, "svc", ..] => (Some(pod.to_owned()), service, namespace),
            [service, namespace, "svc", ..] => (None, service, namespace),
            _ => return None,
        };
        if parts.iter().any(|p| p.is_empty()) {
            return None;
        }
        Some(Self { namespace: namespace.to_owned(), service: service.to_owned(), pod, port })
    }
}

/// A pod, and the port in it.
pub(crate) type Door = (String, u16);

/// The pods to try. A pod that was asked for by its own name is not looked at: opening the way to it tells.
pub(crate) async fn candidates(client: &Client, target: &Target) -> Result<Vec<Door>, Diagnostic> {
    if let Some(name) = &target.pod {
        return Ok(vec![(name.clone(), target.port)]);
    }
    let endpoints = match get(client, "Endpoints", &target.namespace, &target.service).await {
        Err(failure) if failure.code() == Some(403) => return Err(denied(client, target, failure).await),
        other => other.map_err(|failure| told(client, "endpoints", target, failure))?,
    };
    if let Some(found) = endpoints.as_ref().and_then(|e| plain(target, e)) {
        return Ok(found);
    }
    let service = get(client, "Service", &target.namespace, &target.service).await;
    let service = service.map_err(|failure| told(client, "services", target, failure))?;
    behind(target, service.as_ref(), endpoints.as_ref()).map_err(nothing)
}

/// Why the way to a pod did not open.
pub(crate) async fn why(client: &Client, target: &Target, pod: &str, failure: Failure) -> Diagnostic {
    match failure.code() {
        Some(403) => no_right(target),
        Some(code) if code != 401 => {
            let reason = match get(client, "Pod", &target.namespace, pod).await {
                Ok(seen) => the_pod(target, pod, seen.as_ref()).err(),
                Err(_) => None,
            };
            let refused =
                || format!("The way to the pod \"{pod}\" in the namespace \"{}\" does not open: {}.", target.namespace, failure.message());
            nothing(reason.unwrap_or_else(refused))
        }
        _ => told(client, "pods/portforward", target, failure),
    }
}

fn told(client: &Client, resource: &str, target: &Target, failure: Failure) -> Diagnostic {
    let name = target.pod.as_ref().unwrap_or(&target.service).clone();
    let call = Call { verb: "get", resource: resource.to_owned(), namespace: Some(target.namespace.clone()), name };
    failure.diagnostic(client.place(), &call, &[])
}

/// Whoever lacks one right to it is told of the one that matters more, if that is missing too.
async fn denied(client: &Client, target: &Target, failure: Failure) -> Diagnostic {
    match rights::allowed(client, &Right::to_forward(&target.namespace)).await {
        Ok(false) => no_right(target),
        _ => told(client, "endpoints", target, failure),
    }
}

fn no_right(target: &Target) -> Diagnostic {
    Diagnostic::error(
        "Right missing in the cluster",
        format!("The right to get pods/portforward in the namespace \"{}\" is missing.", target.namespace),
    )
    .with_hint("Let a role grant \"get\" and \"create\" on \"pods/portforward\" to this user.")
}

fn nothing(detail: String) -> Diagnostic {
    Diagnostic::error(NOTHING_THERE, detail)
        .with_hint("See whether the pods of it run: `kubectl get pods`, `kubectl describe`.")
        // Pods come.
        .retryable()
}

async fn get(client: &Client, kind: &'static str, namespace: &str, name: &str) -> Result<Option<Json>, Failure> {
    let Some(served) = builtin::kind("v1", kind) else { return Ok(None) };
    let place = Place { api_version: "v1".to_owned(), served, namespace: Some(namespace.to_owned()) };
    client.get(&place, name).await
}

/// The ready pods, if the Service itself need not be asked which of their ports is meant: they have but one, and it is the one asked for.
fn plain(target: &Target, endpoints: &Json) -> Option<Vec<Door>> {
    let mut found = Vec::new();
    for subset in endpoints["subsets"].as_array()? {
        let [port] = subset["ports"].as_array()?.as_slice() else { return None };
        if port["port"] != target.port || port["protocol"] == "UDP" {
            return None;
        }
        for address in subset["addresses"].as_array().into_iter().flatten() {
            let pod = address["targetRef"]["name"].as_str().filter(|_| address["targetRef"]["kind"] == "Pod")?;
            found.push((pod.to_owned(), target.port));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// A pod that runs, ready or not; or why there is none.
fn the_pod(target: &Target, name: &str, pod: Option<&Json>) -> Result<Door, String> {
    let named = format!("pod \"{name}\" in the namespace \"{}\"", target.namespace);
    let Some(pod) = pod else { return Err(format!("There is no {named}.")) };
    match pod["status"]["phase"].as_str() {
        Some("Running") => Ok((name.to_owned(), target.port)),
        phase => Err(format!("The {named} does not run: it is {}.", phase.unwrap_or("new"))),
    }
}

/// The ready pods behind a Service; or why there are none.
fn behind(target: &Target, service: Option<&Json>, endpoints: Option<&Json>) -> Result<Vec<Door>, String> {
    let named = format!("Service \"{}\" in the namespace \"{}\"", target.service, target.namespace);
    let Some(service) = service else { return Err(format!("There is no {named}.")) };
    let items = |value: &Json| value.as_array().cloned().unwrap_or_default();
    // Its name leads to the pods themselves, so the port is theirs.
    let is_headless = service["spec"]["clusterIP"] == "None";
    let port = items(&service["spec"]["ports"]).into_iter().find(|p| p["port"] == target.port && p["protocol"] != "UDP");
    let Some(port) = port.or(is_headless.then_some(Json::Null)) else {
        return Err(format!("The {named} has no port {}.", target.port));
    };
    let name = |port: &Json| port["name"].as_str().unwrap_or_default().to_owned();
    let (mut found, mut unready, mut strangers) = (Vec::new(), 0, 0);
    for subset in endpoints.map(|e| items(&e["subsets"])).unwrap_or_default() {
        unready += items(&subset["notReadyAddresses"]).len();
        let of_subset =
            items(&subset["ports"]).iter().find(|p| name(p) == name(&port)).and_then(|p| u16::try_from(p["port"].as_u64()?).ok());
        let number = if is_headless { Some(target.port) } else { of_subset };
        let Some(number) = number else { continue };
        for address in items(&subset["addresses"]) {
            match address["targetRef"]["name"].as_str().filter(|_| address["targetRef"]["kind"] == "Pod") {
                Some(pod) => found.push((pod.to_owned(), number)),
                None => strangers += 1,
            }
        }
    }
    match (found.is_empty(), strangers, unready) {
        (false, ..) => Ok(found),
        (_, 1.., _) => Err(format!("What is behind the {named} are no pods, and only to pods there is a way.")),
        (.., 0) => Err(format!("There is no pod behind the {named}.")),
        (.., 1) => Err(format!("The pod behind the {named} is not ready.")),
        (.., many) => Err(format!("None of the {many} pods behind the {named} is ready.")),
    }
}

#[cfg(test)]
#[path = "forward_target_tests.rs"]
mod tests;
