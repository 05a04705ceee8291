//! Leaving a Karmada control plane: what was propagated first, then the Cluster object; bounded, and cut off at the end if that is allowed.
//!
//! Karmada's controllers do the work (`pkg/controllers/cluster`, `execution`): they delete what was propagated, then the Works, then the
//! namespace of these, and then let the Cluster object go. Each of them may wait for a member that never answers again.

use std::time::Duration;

use futures::StreamExt as _;
use karmaform_model::{BoxFuture, Diagnostic, Object};
use kube::api::PropagationPolicy;
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep};

use crate::act::seconds_of;
use crate::client::{Client, Place};
use crate::failure::Failure;
use crate::membership::{FIRST_PAUSE, LEASES, PAUSE, clusters, condition, is_pulled, propagated, works};
use crate::values::{is_true, text};
use crate::{look, membership_probe};

/// Seconds until a member has left.
const LEAVE_TIMEOUT: u64 = 60;
/// At most, after the Works were cut off: until the controllers have let go by themselves.
const LAST_WAIT: Duration = Duration::from_secs(10);
/// A short limit has only this part of itself for that.
const LAST_PART: u32 = 4;
/// Holds the rights of an agent while it leaves.
const HOLD: &str = "karmaform.io/leaving";
/// So many are named in a message.
const MOST: usize = 5;

/// One member on its way out.
struct Leaving<'a> {
    client: &'a Client,
    name: &'a str,
    place: Place,
    uid: Option<&'a str>,
}

/// Takes the member out of the plane. Safe to repeat.
pub(crate) async fn leave(client: &Client, before: &Object) -> Result<(), Diagnostic> {
    let name = text(before, "name").unwrap_or_default();
    let Some(place) = clusters(client).await? else { return Ok(()) };
    let leaving = Leaving { client, name, place, uid: text(before, "uid").filter(|u| !u.is_empty()) };
    match leaving.any().await? {
        // Somebody else joined one of this name since.
        Some(live) if !leaving.is_same(&live) => return Ok(()),
        Some(live) => leaving.go(before, &live).await?,
        None => {}
    }
    membership_probe::clear(client, name).await?;
    clear_lease(client, name).await
}

/// With `force`: how long it is waited before the Works are cut off, and then before the Cluster is. As much as the second remains of the
/// limit for the requests of the cut, so that all of it ends within it.
fn waits(limit: Duration) -> (Duration, Duration) {
    let last = LAST_WAIT.min(limit / LAST_PART);
    (limit - 2 * last, last)
}

/// The lease of a member in pull mode, which nobody renews any more.
async fn clear_lease(client: &Client, name: &str) -> Result<(), Diagnostic> {
    let Some(place) = look::place(client, "coordination.k8s.io/v1", "Lease", LEASES).await? else { return Ok(()) };
    membership_probe::take_away(client, &place, name).await
}

impl Leaving<'_> {
    fn told(&self, verb: &'static str, failure: Failure) -> Diagnostic {
        failure.diagnostic(self.client.place(), &self.place.call(verb, self.name), &[])
    }

    /// Deletes it, and sees to it that it goes.
    async fn go(&self, before: &Object, live: &Json) -> Result<(), Diagnostic> {
        if is_true(before, "keep_resources") {
            // What Karmada itself brought to the member goes with it all the same.
            let is_brought = |work: &Json| !propagated(std::slice::from_ref(work)).is_empty();
            self.patch_works(&json!({ "spec": { "preserveResourcesOnDeletion": true } }), is_brought).await?;
        }
        let limit = seconds_of(before, "leave_timeout", LEAVE_TIMEOUT);
        if !is_true(before, "force") && !is_true(before, "keep_resources") {
            self.until_ready(limit).await?;
        }
        let is_pulled = is_pulled(live);
        if is_pulled {
            self.hold_rights(&json!([HOLD])).await?;
        }
        let deleted = self.client.delete(&self.place, self.name, self.uid, PropagationPolicy::Background).await;
        if !deleted.map_err(|f| self.told("delete", f))? {
            return if is_pulled { self.hold_rights(&Json::Null).await } else { Ok(()) };
        }
        if is_true(before, "force") {
            let (first, last) = waits(limit);
            return if self.wait(first).await?.is_some() { self.cut(last).await } else { Ok(()) };
        }
        let Some(live) = self.wait(limit).await? else { return Ok(()) };
        Err(self.held(&live, limit).await)
    }

    /// In a member that is not ready Karmada deletes nothing: its Works are let go, and what they brought stays there, unseen. So that is waited
    /// for. Source: `handleWorkDelete`, `pkg/controllers/execution` in karmada.
    async fn until_ready(&self, limit: Duration) -> Result<(), Diagnostic> {
        let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let Some(live) = self.live().await? else { return Ok(()) };
            let works = self.works().await?.map(|(_, works)| works).unwrap_or_default();
            let stays = would_stay(&live, &works);
            if stays.is_empty() {
                return Ok(());
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                let (listed, why) = (listed(&stays), condition(&live, "Ready").1);
                let detail = format!("Karmada deletes nothing in a member that is not ready, so this would stay there: {listed}. {why}.");
                return Err(Diagnostic::error("Member is not ready to leave", detail)
                    .with_hint("Nothing was changed: it is a member as before. When it is ready again, run this again.")
                    .with_hint("If all that may stay there, set `force = true` for this member, apply that, and remove it then."));
            }
            sleep(pause.min(left)).await;
            pause = (pause * 2).min(PAUSE);
        }
    }

    /// An agent has its rights on Works from a role in their namespace. With the Cluster object that namespace is deleted, the role first of
    /// all, and then the agent could let no Work go. So what gives the rights is held until the Works are gone; null lets it go.
    async fn hold_rights(&self, finalizers: &Json) -> Result<(), Diagnostic> {
        let name = format!("system:karmada:{}:agent-work", self.name);
        for kind in ["Role", "RoleBinding"] {
            let namespace = format!("karmada-es-{}", self.name);
            let Some(place) = look::place(self.client, "rbac.authorization.k8s.io/v1", kind, &namespace).await? else { continue };
            let patch = json!({ "metadata": { "finalizers": finalizers } });
            match self.client.patch(&place, &name, &patch).await {
                // It is not there: nothing is held. Or it is on its way out, and can't be held any more.
                Err(failure) if matches!(failure.code(), Some(404 | 403 | 422)) => {}
                done => drop(done.map_err(|f| f.diagnostic(self.client.place(), &place.call("patch", &name), &[]))?),
            }
        }
        Ok(())
    }

    /// The Cluster object of this name.
    async fn any(&self) -> Result<Option<Json>, Diagnostic> {
        self.client.get(&self.place, self.name).await.map_err(|f| self.told("get", f))
    }

    fn is_same(&self, live: &Json) -> bool {
        self.uid.is_none_or(|uid| live["metadata"]["uid"] == uid)
    }

    /// It, if it is still there, and still the same.
    async fn live(&self) -> Result<Option<Json>, Diagnostic> {
        Ok(self.any().await?.filter(|live| self.is_same(live)))
    }

    /// Waits until it is gone; gives what is left of it if it is not.
    async fn wait(&self, limit: Duration) -> Result<Option<Json>, Diagnostic> {
        let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let Some(live) = self.live().await? else { return Ok(None) };
            if is_pulled(&live) && self.works().await?.is_none_or(|(_, works)| works.is_empty()) {
                self.hold_rights(&Json::Null).await?;
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(Some(live));
            }
            sleep(pause.min(left)).await;
            pause = (pause * 2).min(PAUSE);
        }
    }

    /// Its Works, as they are now.
    async fn works(&self) -> Result<Option<(Place, Vec<Json>)>, Diagnostic> {
        let Some(place) = works(self.client, self.name).await? else { return Ok(None) };
        let found = self.client.list(&place).await;
        let found = found.map_err(|f| f.diagnostic(self.client.place(), &place.call("list", ""), &[]))?;
        Ok(Some((place, found)))
    }

    async fn patch_works(&self, patch: &Json, chosen: impl Fn(&Json) -> bool) -> Result<(), Diagnostic> {
        let Some((place, works)) = self.works().await? else { return Ok(()) };
        let names: Vec<String> =
            works.iter().filter(|w| chosen(w)).filter_map(|w| Some(w["metadata"]["name"].as_str()?.to_owned())).collect();
        let place = &place;
        let patches = names.iter().map(|name| -> BoxFuture<'_, Result<(), Diagnostic>> {
            Box::pin(async move {
                match self.client.patch(place, name, patch).await {
                    Err(failure) if failure.code() != Some(404) => {
                        Err(failure.diagnostic(self.client.place(), &place.call("patch", name), &[]))
                    }
                    // Gone meanwhile.
                    _ => Ok(()),
                }
            })
        });
        let at_once = self.client.at_once().await;
        let done: Vec<Result<(), Diagnostic>> = futures::stream::iter(patches.collect::<Vec<_>>()).buffered(at_once).collect().await;
        done.into_iter().collect()
    }

    /// Takes away what everybody waits for: first the finalizers of Works, so that their namespace can go, then, `last` later, that of the
    /// Cluster.
    async fn cut(&self, last: Duration) -> Result<(), Diagnostic> {
        let is_held = |object: &Json| object["metadata"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
        let freed = json!({ "metadata": { "finalizers": null } });
        self.patch_works(&freed, is_held).await?;
        self.hold_rights(&Json::Null).await?;
        if self.wait(last).await?.is_none() {
            return Ok(());
        }
        match self.client.patch(&self.place, self.name, &freed).await {
            Err(failure) if failure.code() != Some(404) => return Err(self.told("patch", failure)),
            _ => {}
        }
        match self.wait(LAST_WAIT).await? {
            None => Ok(()),
            Some(live) => Err(self.held(&live, LAST_WAIT).await),
        }
    }

    /// What it still waits for, as far as that can be seen.
    async fn held(&self, live: &Json, limit: Duration) -> Diagnostic {
        let mut seen = Vec::new();
        let (status, why) = condition(live, "Ready");
        if status != "True" {
            seen.push(format!("of the member it says: {why}"));
        }
        if let Ok(Some((_, works))) = self.works().await
            && !works.is_empty()
        {
            let names = propagated(&works);
            let of = if names.is_empty() { String::new() } else { format!(" ({})", listed(&names)) };
            seen.push(format!("{} Works are still there{of}", works.len()));
        }
        if live["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
            seen.push("no controller seems to look after it".to_owned());
        }
        let seen = if seen.is_empty() { String::new() } else { format!(" What is seen: {}.", seen.join("; ")) };
        let name = self.name;
        let detail = format!("Cluster \"{name}\" is marked as deleted, but is still there after {} s.{seen}", limit.as_secs());
        Diagnostic::error("Member does not leave", detail)
            .with_hint("If the member comes back, run this again: it goes on where it stands.")
            .with_hint("If it is gone for good, set `force = true` for this member, apply that, and remove it then.")
            .with_hint("See whether karmada-controller-manager runs: it does what a leaving member needs.")
    }
}

/// What was brought to a member and would stay in it if it left now. One that leaves already is not held up any more, and what never got there
/// holds up nobody.
fn would_stay(live: &Json, works: &[Json]) -> Vec<String> {
    if live["metadata"]["deletionTimestamp"].is_string() || condition(live, "Ready").0 == "True" {
        return Vec::new();
    }
    // Of one whose last change failed some is there all the same; what is meant to stay holds up nobody.
    let has_something = |work: &&Json| {
        condition(work, "Applied").0 == "True" || work["status"]["manifestStatuses"].as_array().is_some_and(|a| !a.is_empty())
    };
    let is_meant_to_stay = |work: &&Json| work["spec"]["preserveResourcesOnDeletion"] == true;
    let applied = works.iter().filter(has_something).filter(|work| !is_meant_to_stay(work)).cloned();
    propagated(&applied.collect::<Vec<_>>())
}

/// The first of them.
fn listed(names: &[String]) -> String {
    let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
    format!("{}{more}", names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_got_there_and_would_be_left_is_waited_for() {
        let member =
            |ready: &str| json!({ "metadata": { "name": "a" }, "status": { "conditions": [{ "type": "Ready", "status": ready }] } });
        let work = |name: &str, applied: &str, labels: Json| {
            let manifest =
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "n", "labels": labels } });
            json!({ "spec": { "workload": { "manifests": [manifest] } }, "status": { "conditions": [{ "type": "Applied", "status": applied }] } })
        };
        let works = [
            work("there", "True", Json::Null),
            work("never", "False", Json::Null),
            work("own", "True", json!({ "karmada.io/system": "true" })),
        ];
        for (ready, stays) in [("True", 0), ("False", 1), ("Unknown", 1)] {
            let found = would_stay(&member(ready), &works);
            assert_eq!(found.len(), stays, "{ready}: {found:?}");
            assert!(found.iter().all(|name| name.contains("there")), "{found:?}");
        }
        let mut half = work("there", "False", Json::Null);
        half["status"]["manifestStatuses"] = json!([{ "identifier": {} }]);
        assert_eq!(
            would_stay(&member("False"), std::slice::from_ref(&half)).len(),
            1,
            "its last change failed, and what was there before is"
        );
        half["spec"]["preserveResourcesOnDeletion"] = json!(true);
        assert_eq!(would_stay(&member("False"), &[half]), Vec::<String>::new(), "it is meant to stay");
        let mut leaves = member("Unknown");
        leaves["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(would_stay(&leaves, &works), Vec::<String>::new());
        assert_eq!(would_stay(&member("Unknown"), &works[1..]), Vec::<String>::new());
    }

    #[test]
    fn a_cut_ends_within_the_limit() {
        let waits = |limit| {
            let (first, last) = waits(Duration::from_secs(limit));
            (first.as_secs_f32(), last.as_secs_f32())
        };
        assert_eq!([0, 10, 60, 3600].map(waits), [(0.0, 0.0), (5.0, 2.5), (40.0, 10.0), (3580.0, 10.0)]);
    }
}
