//! The probe of a membership: a ConfigMap that goes through policy, binding and Work to the member, and whose status comes back. It proves
//! more than the member's condition does: that controllers, scheduler, webhook and rights do their work for it.

use std::time::Duration;

use karmaform_model::Diagnostic;
use kube::api::PropagationPolicy;
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep};

use crate::client::{Client, How, Place};
use crate::look;
use crate::membership::{FIRST_PAUSE, WORKS, works_of};

/// The namespace that every cluster has, and Karmada propagates to.
const NAMESPACE: &str = "default";
/// The longest wait for one part of the way.
const LIMIT: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Sends it, waits until it is back, and takes it away again. Gives the time of each part: "bound 0.12 s, Work 0.20 s, ...".
pub(crate) async fn send(client: &Client, member: &str) -> Result<String, Diagnostic> {
    send_within(client, member, LIMIT).await
}

async fn send_within(client: &Client, member: &str, limit: Duration) -> Result<String, Diagnostic> {
    let name = probe_name(member);
    let map = place_of(client, "v1", "ConfigMap", NAMESPACE).await?;
    let policy = place_of(client, "policy.karmada.io/v1alpha1", "PropagationPolicy", NAMESPACE).await?;
    let told = async {
        let how = How { force: true, dry_run: false };
        let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": NAMESPACE }, "data": { "member": member } });
        let start = Instant::now();
        put(client, &map, &name, &manifest, how).await?;
        let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": NAMESPACE });
        let placed = json!({ "apiVersion": policy.api_version, "kind": "PropagationPolicy", "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": { "resourceSelectors": [selector], "placement": { "clusterAffinity": { "clusterNames": [member] }, "clusterTolerations": [{ "operator": "Exists" }] } } });
        put(client, &policy, &name, &placed, how).await?;
        way(client, member, &name, (start, limit)).await
    };
    let told = told.await;
    // Whatever came of it: nothing is left.
    let cleared = futures::join!(take_away(client, &policy, &name), take_away(client, &map, &name));
    let told = told?;
    cleared.0?;
    cleared.1?;
    Ok(told)
}

/// Where its objects are.
async fn place_of(client: &Client, version: &str, kind: &str, namespace: &str) -> Result<Place, Diagnostic> {
    let missing = || {
        Diagnostic::error("Kind is not known to the cluster", format!("{} serves no {kind} of {version}.", client.place()))
            .with_hint("Every Karmada control plane serves it: see whether the connection leads to one.")
    };
    look::place(client, version, kind, namespace).await?.ok_or_else(missing)
}

fn probe_name(member: &str) -> String {
    format!("karmaform-verify-{member}")
}

/// Takes away what a probe left that was killed.
pub(crate) async fn clear(client: &Client, member: &str) -> Result<(), Diagnostic> {
    for (version, kind) in [("policy.karmada.io/v1alpha1", "PropagationPolicy"), ("v1", "ConfigMap")] {
        if let Some(place) = look::place(client, version, kind, NAMESPACE).await? {
            take_away(client, &place, &probe_name(member)).await?;
        }
    }
    Ok(())
}

async fn put(client: &Client, place: &Place, name: &str, manifest: &Json, how: How) -> Result<(), Diagnostic> {
    let failed = |f: crate::failure::Failure| f.diagnostic(client.place(), &place.call("patch", name), &[]);
    client.apply(place, name, manifest, how).await.map(drop).map_err(failed)
}

/// Takes away what may be there. To look first costs less than a refusal, where nobody may delete what is not there.
pub(crate) async fn take_away(client: &Client, place: &Place, name: &str) -> Result<(), Diagnostic> {
    let failed = |f: crate::failure::Failure| f.diagnostic(client.place(), &place.call("delete", name), &[]);
    if client.get(place, name).await.map_err(failed)?.is_none() {
        return Ok(());
    }
    client.delete(place, name, None, PropagationPolicy::Background).await.map(drop).map_err(failed)
}

/// Follows it: bound to the member, a Work made, the Work applied, the status seen in the binding.
async fn way(client: &Client, member: &str, name: &str, (start, limit): (Instant, Duration)) -> Result<String, Diagnostic> {
    // `names.GenerateBindingName`: kind and name.
    let binding_name = format!("{name}-configmap");
    let bindings = place_of(client, "work.karmada.io/v1alpha2", "ResourceBinding", NAMESPACE).await?;
    let works = place_of(client, WORKS, "Work", &works_of(member)).await?;
    let mut times = Vec::new();
    let mut hop = |what: &str| times.push(format!("{what} {:.2} s", start.elapsed().as_secs_f64()));
    let is_bound = |b: &Json| b["spec"]["clusters"].as_array().is_some_and(|c| c.iter().any(|c| c["name"] == member));
    until((client, &bindings, limit), Which::Named(&binding_name), "was not bound to the member: see karmada-scheduler", is_bound).await?;
    hop("bound");
    let is_mine = |w: &Json| w["spec"]["workload"]["manifests"].as_array().is_some_and(|m| m.iter().any(|m| m["metadata"]["name"] == name));
    until((client, &works, limit), Which::Any, "had no Work made of it: see karmada-controller-manager", is_mine).await?;
    hop("Work");
    let is_applied = |w: &Json| {
        let conditions = w["status"]["conditions"].as_array();
        is_mine(w) && conditions.is_some_and(|c| c.iter().any(|c| c["type"] == "Applied" && c["status"] == "True"))
    };
    until((client, &works, limit), Which::Any, "was not made in the member: see the rights there and the way to it", is_applied).await?;
    hop("in the member");
    let is_back = |b: &Json| {
        let items = b["status"]["aggregatedStatus"].as_array();
        items.is_some_and(|i| i.iter().any(|i| i["clusterName"] == member && i["applied"] == true))
    };
    until((client, &bindings, limit), Which::Named(&binding_name), "did not tell its status back", is_back).await?;
    hop("back");
    Ok(times.join(", "))
}

enum Which<'a> {
    Named(&'a str),
    Any,
}

async fn until(
    (client, place, limit): (&Client, &Place, Duration),
    which: Which<'_>,
    what: &str,
    is_so: impl Fn(&Json) -> bool,
) -> Result<(), Diagnostic> {
    let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
    let seen = loop {
        let found = match which {
            Which::Named(name) => client.get(place, name).await.map(|live| live.into_iter().collect()),
            Which::Any => client.list(place).await,
        };
        let seen: Vec<Json> = found.map_err(|f| f.diagnostic(client.place(), &place.call("list", ""), &[]))?;
        if seen.iter().any(&is_so) {
            return Ok(());
        }
        if start.elapsed() >= limit {
            break seen;
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE);
    };
    let conditions = seen.iter().flat_map(|s| s["status"]["conditions"].as_array().into_iter().flatten());
    let bad = conditions.filter(|c| c["status"] == "False").filter_map(|c| c["message"].as_str()).next();
    let said = bad.map(|m| format!(" The control plane says: {}.", m.trim_end_matches('.'))).unwrap_or_default();
    let detail = format!("The member is ready, but after {} s the ConfigMap that was sent to it {what}.{said}", limit.as_secs());
    Err(Diagnostic::error("Nothing arrives at the member", detail)
        .with_hint("Mend that, then apply again: it is sent anew. Without `verify` nothing is sent."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock;

    /// A plane that serves these groups and never does anything.
    async fn told(groups: &'static [&str]) -> (Diagnostic, Vec<String>) {
        let kinds = [("Cluster", "clusters", false), ("PropagationPolicy", "propagationpolicies", true)];
        let kinds = [&kinds[..], &[("ResourceBinding", "resourcebindings", true), ("Work", "works", true)]].concat();
        let (client, seen) = mock::client(move |method, path| match path.strip_prefix("/apis/") {
            Some(group) if groups.contains(&group) => mock::group(&kinds),
            Some(_) if method == "GET" && path.ends_with("-configmap") => {
                let condition = json!({ "type": "Scheduled", "status": "False", "message": "no cluster fits." });
                (200, json!({ "status": { "conditions": [condition] } }))
            }
            Some(path) if !path.contains("/namespaces/") => mock::missing(),
            _ => (200, json!({ "metadata": { "name": "x" } })),
        })
        .await;
        let why = send_within(&client, "eu1", Duration::ZERO).await.unwrap_err();
        let seen = seen.lock().unwrap().iter().filter(|asked| asked.starts_with("DELETE ")).cloned().collect();
        (why, seen)
    }

    #[tokio::test]
    async fn what_does_not_arrive_is_told_with_how_far_it_came_and_taken_away() {
        let (why, deleted) = told(&["policy.karmada.io/v1alpha1", "work.karmada.io/v1alpha2", "work.karmada.io/v1alpha1"]).await;
        assert_eq!(why.summary, "Nothing arrives at the member");
        assert!(why.detail.contains("was not bound to the member: see karmada-scheduler"), "{}", why.detail);
        assert!(why.detail.ends_with("The control plane says: no cluster fits."), "{}", why.detail);
        assert!(why.hints[0].contains("apply again"), "{why:?}");
        assert_eq!(deleted.len(), 2, "{deleted:?}");
    }

    #[tokio::test]
    async fn what_is_no_karmada_says_which_kind_it_does_not_serve() {
        let (why, deleted) = told(&["policy.karmada.io/v1alpha1", "work.karmada.io/v1alpha2"]).await;
        assert_eq!(why.summary, "Kind is not known to the cluster");
        assert!(why.detail.ends_with("serves no Work of work.karmada.io/v1alpha1.") && why.hints[0].contains("Karmada"), "{why:?}");
        assert_eq!(deleted.len(), 2, "{deleted:?}");
    }
}
