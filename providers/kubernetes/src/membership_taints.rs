//! Taints of a Cluster object. The list is one field to the server, and Karmada's controllers write to it as well: so it is read, changed and
//! written back, and only what was wanted, or once was, is looked at. An annotation says which those are: a run that was killed while it took
//! some away has left no other note of them.

use karmaform_model::{Diagnostic, Object, ObjectAttribute, Type, Value, implied_from_json, to_json};
use serde_json::{Value as Json, json};

use crate::client::{Client, Place};
use crate::failure::Failure;

/// The attribute.
pub(crate) const TAINTS: &str = "taints";
/// The annotation with what is ours, as a list of `key` and `effect`.
const NOTE: &str = "karmaform.io/taints";
/// What `karmadactl cordon` leaves. Source: `TaintClusterUnscheduler`, `pkg/apis/cluster/v1alpha1/well_known_constants.go` in karmada.
const CORDON: &str = "cluster.karmada.io/unschedulable";
/// How often a change that lost a race is tried again.
const TRIES: u32 = 5;

/// The type of one taint.
pub(crate) fn ty() -> Type {
    let parts = [
        ("key", ObjectAttribute::required(Type::String)),
        ("value", ObjectAttribute::optional(Type::String)),
        ("effect", ObjectAttribute::required(Type::String)),
    ];
    Type::Object(parts.into_iter().map(|(n, a)| (n.to_owned(), a)).collect())
}

/// The taints that an object's attribute names.
fn named(object: Option<&Object>) -> Vec<Json> {
    let items = object.and_then(|o| o.get(TAINTS)).and_then(Value::as_items).unwrap_or_default();
    items.iter().map(to_json).collect()
}

/// True if there is anything to look at.
pub(crate) fn are_of_interest(known: Option<&Object>, wanted: Option<&Object>) -> bool {
    !named(known).is_empty() || !named(wanted).is_empty()
}

/// A taint is known by its key and its effect.
fn is_same(a: &Json, b: &Json) -> bool {
    a["key"] == b["key"] && a["effect"] == b["effect"]
}

fn live(cluster: &Json) -> Vec<Json> {
    cluster["spec"]["taints"].as_array().cloned().unwrap_or_default()
}

/// Those that the annotation names.
fn noted(cluster: &Json) -> Vec<Json> {
    let note = cluster["metadata"]["annotations"][NOTE].as_str();
    note.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The annotation for these; null if there are none.
fn note(taints: &[Json]) -> Json {
    let parts: Vec<_> = taints.iter().map(|t| json!({ "key": t["key"], "effect": t["effect"] })).collect();
    if parts.is_empty() { Json::Null } else { Json::Array(parts).to_string().into() }
}

/// What is to be said of a member that somebody took out of scheduling by hand: all that runs there goes on, and nothing new comes. A configuration
/// can't ask for that: `taints` of a member takes no key of Karmada's own.
pub(crate) fn cordoned(place: &Place, cluster: &Json) -> Option<String> {
    let is_member = place.served.kind == "Cluster" && place.api_version.starts_with("cluster.karmada.io/");
    (is_member && live(cluster).iter().any(|taint| taint["key"] == CORDON)).then(|| {
        let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
        format!("somebody cordoned it, so nothing new is scheduled to it: `karmadactl uncordon {name}` ends that")
    })
}

/// What is there of those that are wanted or once were, in the order of what is wanted.
pub(crate) fn seen(cluster: &Json, known: Option<&Object>, wanted: Option<&Object>) -> Value {
    let there = live(cluster);
    let mut found: Vec<Json> = Vec::new();
    for taint in named(wanted).iter().chain(&named(known)).chain(&noted(cluster)) {
        if let Some(live) = there.iter().find(|l| is_same(l, taint)).filter(|l| !found.iter().any(|f| is_same(f, l))) {
            // An empty value is as none.
            let value = match live["value"].as_str() {
                Some(text) if !text.is_empty() => json!(text),
                _ if taint["value"] == "" => json!(""),
                _ => Json::Null,
            };
            found.push(json!({ "key": live["key"], "value": value, "effect": live["effect"] }));
        }
    }
    let is_unset = wanted.and_then(|w| w.get(TAINTS)).or_else(|| known?.get(TAINTS)).is_none_or(Value::is_null);
    if found.is_empty() && is_unset { Value::null(Type::list(ty())) } else { implied_from_json(&Json::Array(found)) }
}

/// Writes those that are wanted beside those of others; those that were wanted before and are not any more are taken away.
pub(crate) async fn write(client: &Client, place: &Place, name: &str, before: Option<&Object>, after: &Object) -> Result<(), Diagnostic> {
    let (known, wanted) = (named(before), named(Some(after)));
    // Of what an earlier run did not finish only the annotation may tell.
    if before.is_some() && known.is_empty() && wanted.is_empty() {
        return Ok(());
    }
    let told = |verb, failure: Failure| failure.diagnostic(client.place(), &place.call(verb, name), &[]);
    let mut tries = 0;
    loop {
        tries += 1;
        let Some(cluster) = client.get(place, name).await.map_err(|f| told("get", f))? else { return Ok(()) };
        let (there, noted) = (live(&cluster), noted(&cluster));
        if known.is_empty() && noted.is_empty() && wanted.is_empty() {
            return Ok(());
        }
        let is_ours = |taint: &Json| known.iter().chain(&noted).chain(&wanted).any(|w| is_same(w, taint));
        let mut next: Vec<Json> = there.iter().filter(|t| !is_ours(t)).cloned().collect();
        for taint in &wanted {
            let mut made = json!({ "key": taint["key"], "effect": taint["effect"] });
            if taint["value"].is_string() {
                made["value"] = taint["value"].clone();
            }
            let since = there.iter().find(|t| is_same(t, taint)).map(|t| t["timeAdded"].clone()).filter(|t| !t.is_null());
            if let Some(since) = since {
                made["timeAdded"] = since;
            }
            next.push(made);
        }
        let patch = json!({
            "metadata": { "resourceVersion": cluster["metadata"]["resourceVersion"], "annotations": { NOTE: note(&wanted) } },
            "spec": { "taints": next },
        });
        match client.patch(place, name, &patch).await {
            Err(failure) if failure.is_race() && tries < TRIES => {}
            done => return done.map(drop).map_err(|f| told("patch", f)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Served;

    fn object(taints: &Json) -> Object {
        Object::from([(TAINTS.to_owned(), implied_from_json(taints))])
    }

    #[test]
    fn who_was_cordoned_is_told() {
        let served = Served { kind: "Cluster".to_owned(), plural: "clusters".to_owned(), namespaced: false };
        let place = Place { api_version: "cluster.karmada.io/v1alpha1".to_owned(), served, namespace: None };
        let taint = |key: &str| json!({ "key": key, "effect": "NoSchedule" });
        let cluster = |taint: &Json| json!({ "metadata": { "name": "m1" }, "spec": { "taints": [taint] } });
        let cordon = cluster(&taint(CORDON));
        assert!(cordoned(&place, &cordon).unwrap().contains("`karmadactl uncordon m1`"));
        assert_eq!(cordoned(&place, &cluster(&taint("cluster.karmada.io/not-ready"))), None);
        let other = Place { api_version: "cluster.example/v1".to_owned(), ..place };
        assert_eq!(cordoned(&other, &cordon), None);
    }

    #[test]
    fn others_taints_are_not_seen() {
        let cluster = json!({ "spec": { "taints": [
            { "key": "cluster.karmada.io/not-ready", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z" },
            { "key": "mine", "value": "x", "effect": "NoExecute" },
            { "key": "bare", "effect": "NoSchedule" },
        ] } });
        let wanted = object(
            &json!([{ "key": "mine", "value": "x", "effect": "NoExecute" }, { "key": "bare", "value": null, "effect": "NoSchedule" }]),
        );
        assert_eq!(to_json(&seen(&cluster, None, Some(&wanted))), to_json(&wanted[TAINTS]));
        let gone = seen(&json!({ "spec": {} }), Some(&wanted), Some(&wanted));
        assert_eq!(to_json(&gone), json!([]));
        assert!(seen(&cluster, None, Some(&Object::new())).is_null());
        let once = seen(&cluster, Some(&wanted), Some(&Object::new()));
        assert_eq!(once.as_items().map(<[Value]>::len), Some(2), "what was wanted once is still there");
        let mut annotated = cluster;
        annotated["metadata"]["annotations"][NOTE] = note(&named(Some(&wanted))[1..]);
        let noted = seen(&annotated, None, Some(&Object::new()));
        assert_eq!(to_json(&noted), json!([{ "key": "bare", "value": null, "effect": "NoSchedule" }]), "what is noted as ours");
        assert_eq!(note(&[]), Json::Null);
    }
}
