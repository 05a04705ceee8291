//! What a Service is reached by from outside: the addresses that a load balancer gave it, and its ports on nodes.
//!
//! Both are the cluster's to give. They are remembered, so that what is made of them (a certificate, a kubeconfig) changes when they do; what
//! a plan showed of them stays so until the next plan.

use karmaform_model::{Change, Diagnostic, Object, Type, Value, implied_from_json, same};
use serde_json::Value as Json;

use crate::client::{Client, Place, Served};
use crate::failure::Failure;
use crate::values::is_true;

/// The attributes.
pub(crate) const FACTS: [&str; 2] = ["addresses", "node_ports"];
/// The type of a Service with an address of its own outside.
const BALANCED: &str = "LoadBalancer";
/// The types with ports on nodes. A load balancer has them too, unless `allocateLoadBalancerNodePorts` is false.
const ON_NODES: [&str; 2] = ["NodePort", BALANCED];

/// The types of the attributes.
pub(crate) fn types() -> [Type; 2] {
    [Type::list(Type::String), Type::list(Type::Number)]
}

fn nothing() -> [Value; 2] {
    types().map(Value::null)
}

/// Nothing where an earlier version told nothing: it is not open.
pub(crate) fn complete(before: &mut Object) {
    for (name, none) in FACTS.into_iter().zip(nothing()) {
        if !before.contains_key(name) {
            before.insert(name.to_owned(), none);
        }
    }
}

/// The values of the attributes, as they are; null for what is no Service or has none. What is known stays in its order. In a list objects
/// don't say what they are.
pub(crate) fn facts(place: &Place, live: &Json, known: Option<&Object>) -> [Value; 2] {
    if place.served.kind != "Service" || place.api_version != "v1" {
        return nothing();
    }
    read(live, known)
}

fn read(live: &Json, known: Option<&Object>) -> [Value; 2] {
    let is_of = |types: &[&str]| live["spec"]["type"].as_str().is_some_and(|t| types.contains(&t));
    let items = |list: &Json| list.as_array().cloned().unwrap_or_default();
    let text = |of: &Json, name: &str| of[name].as_str().filter(|t| !t.is_empty()).map(str::to_owned);
    let given = items(&live["status"]["loadBalancer"]["ingress"]);
    let addresses: Vec<_> =
        given.iter().filter(|_| is_of(&[BALANCED])).filter_map(|i| text(i, "ip").or_else(|| text(i, "hostname"))).collect();
    let numbers: Vec<_> = items(&live["spec"]["ports"]).iter().map(|p| p["nodePort"].clone()).filter(|p| p.as_i64() > Some(0)).collect();
    let numbers: Vec<Value> = numbers.iter().filter(|_| is_of(&ON_NODES)).map(implied_from_json).collect();
    let [no_addresses, no_ports] = nothing();
    [
        if addresses.is_empty() { no_addresses } else { in_known_order(addresses, known) },
        if numbers.is_empty() { no_ports } else { Value::list(Type::Number, numbers) },
    ]
}

/// Load balancers give their addresses in any order; the first is in kubeconfigs.
fn in_known_order(addresses: Vec<String>, known: Option<&Object>) -> Value {
    let sorted = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort();
        list
    };
    let before: Option<Vec<String>> =
        known.and_then(|k| k.get(FACTS[0])?.as_items()).map(|items| items.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect());
    match before {
        Some(before) if sorted(&before) == sorted(&addresses) => Value::strings(before),
        _ => Value::strings(addresses),
    }
}

/// What keeps a Service from being reached by an address; nothing if it is not of the type that gets one.
pub(crate) fn missing(live: &Json) -> Option<String> {
    let is_balanced = live["kind"] == "Service" && live["spec"]["type"] == BALANCED;
    (is_balanced && read(live, None)[0].is_null()).then(|| "nobody gave it an address".to_owned())
}

/// What a Service is in need of though it is as it was written: an address that nobody gave it, or that was taken away. In a list objects don't
/// say what they are.
pub(crate) fn care(place: &Place, live: &Json) -> Vec<String> {
    let [addresses, _] = facts(place, live, None);
    let is_balanced = place.served.kind == "Service" && place.api_version == "v1" && live["spec"]["type"] == BALANCED;
    if is_balanced && addresses.is_null() {
        vec!["nobody gives it an address, so it is not reached from outside".to_owned()]
    } else {
        Vec::new()
    }
}

/// True if an address is to be waited for.
pub(crate) fn waits(wanted: &Object) -> bool {
    wanted.get("wait").and_then(Value::as_entries).is_some_and(|wait| is_true(wait, "address"))
}

/// True if an address is to be waited for, and was not there.
pub(crate) fn is_without_address(before: &Object, wanted: &Object) -> bool {
    let is_missing = before.get(FACTS[0]).is_none_or(Value::is_null);
    is_missing && waits(wanted) && wanted.get("manifest").is_some_and(|m| is_of(m, &[BALANCED]) == Some(true))
}

/// Whether a manifest is of a Service of one of these types; none if that is not known yet.
fn is_of(manifest: &Value, types: &[&str]) -> Option<bool> {
    let part = |path: &[&str]| {
        path.iter().try_fold(manifest, |here, step| if here.is_unknown() { Some(here) } else { here.get(step) }).filter(|v| !v.is_null())
    };
    let word = |path: &[&str], default: &'static str| match part(path) {
        Some(value) if value.is_unknown() => None,
        Some(value) => Some(value.as_str().unwrap_or_default().to_owned()),
        None => Some(default.to_owned()),
    };
    let (version, kind, ty) = (word(&["apiVersion"], ""), word(&["kind"], ""), word(&["spec", "type"], "ClusterIP"));
    if [(&version, "v1"), (&kind, "Service")].iter().any(|(is, should)| is.as_deref().is_some_and(|is| is != *should)) {
        return Some(false);
    }
    match (version, kind, ty) {
        (Some(_), Some(_), Some(ty)) => Some(types.contains(&ty.as_str())),
        _ => None,
    }
}

/// Tells of a change what can be told of the attributes before it is made: that there are none, that they stay, or nothing.
pub(crate) fn foretell(change: &mut Change) {
    let Some(wanted) = change.after().cloned() else { return };
    let Some(manifest) = wanted.get("manifest") else { return };
    let before = match &change {
        Change::Update { before, .. } => Some(before.clone()),
        Change::Create { .. } | Change::Replace { .. } => None,
        _ => return,
    };
    let [addresses, node_ports] = nothing();
    let [of_addresses, of_ports] = types();
    let was = |name: &str| before.as_ref().and_then(|b| b.get(name)).cloned();
    let stays = |paths: &[&str]| {
        let old = before.as_ref().and_then(|b| b.get("manifest"));
        let part = |manifest: Option<&Value>, path: &str| path.split('.').try_fold(manifest?.clone(), |here, step| here.get(step).cloned());
        old.is_some() && paths.iter().all(|p| same(part(old, p).as_ref(), part(Some(manifest), p).as_ref()))
    };
    let addresses = match is_of(manifest, &[BALANCED]) {
        Some(false) => addresses,
        Some(true) if stays(&["spec.type"]) && !before.as_ref().is_some_and(|b| is_without_address(b, &wanted)) => {
            was(FACTS[0]).unwrap_or(addresses)
        }
        _ => Value::unknown(of_addresses),
    };
    let node_ports = match is_of(manifest, &ON_NODES) {
        Some(false) => node_ports,
        Some(true) if stays(&["spec.type", "spec.ports", "spec.allocateLoadBalancerNodePorts"]) => was(FACTS[1]).unwrap_or(node_ports),
        _ => Value::unknown(of_ports),
    };
    if let Some(after) = change.after_mut() {
        FACTS.into_iter().zip([addresses, node_ports]).for_each(|(name, value)| after.put(name, value));
    }
}

/// What a refused node port means, and who has it; none if the refusal is about something else.
pub(crate) async fn taken(client: &Client, place: &Place, name: &str, failure: &Failure) -> Option<Diagnostic> {
    let port = taken_port(failure.message()).filter(|_| place.served.kind == "Service" && failure.code() == Some(422))?;
    let everywhere = Place { namespace: None, served: Served { namespaced: true, ..place.served.clone() }, ..place.clone() };
    let all = client.list(&everywhere).await.unwrap_or_default();
    let has = |service: &&Json| service["spec"]["ports"].as_array().into_iter().flatten().any(|p| p["nodePort"] == port);
    let who = match all.iter().find(has).map(|s| (s["metadata"]["namespace"].as_str(), s["metadata"]["name"].as_str())) {
        Some((Some(namespace), Some(name))) => format!("the Service \"{name}\" in the namespace \"{namespace}\" has"),
        _ => "another Service of the cluster has".to_owned(),
    };
    let detail = format!("The Service \"{name}\" is to have the port {port} on every node, but {who} it already.");
    let error = Diagnostic::error("Node port is taken", detail);
    Some(error.with_hint("Choose another one, or leave it out: then the cluster chooses one that is free."))
}

/// The port in `spec.ports[0].nodePort: Invalid value: 30443: provided port is already allocated`, the words of kube-apiserver's allocator.
fn taken_port(message: &str) -> Option<i64> {
    let before = message.split("provided port is already allocated").next().filter(|b| b.len() < message.len())?;
    before.rsplit_once("Invalid value: ")?.1.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
