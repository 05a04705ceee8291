//! `karmada_membership`: that a cluster is a member of a Karmada control plane. It is made once the plane says that the member is ready, and
//! deleted by leaving: what was propagated goes first, or stays, and nobody waits for ever for a member that is gone.
//!
//! The Cluster object itself, its credentials and its rights are objects as any other.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan, same,
};
use serde_json::Value as Json;
use tokio::time::{Instant, sleep};

use crate::act::seconds;
use crate::client::{Client, Place};
use crate::failure::Failure;
use crate::values::{bad_seconds, by_name, is_true, object, text};
use crate::{look, membership_leave, membership_probe, membership_taints};

/// Its name.
pub(crate) const KIND: &str = "karmada_membership";
/// The API of members, since Karmada 0.1 (`pkg/apis/cluster/v1alpha1`).
const CLUSTERS: &str = "cluster.karmada.io/v1alpha1";
/// And of what is to be done on them (`pkg/apis/work/v1alpha1`).
pub(crate) const WORKS: &str = "work.karmada.io/v1alpha1";
/// The conditions of a member that can be used (`pkg/apis/cluster/v1alpha1/types.go`).
const CONDITIONS: [&str; 2] = ["Ready", "CompleteAPIEnablements"];
/// Where agents keep their leases. Source: `NamespaceClusterLease`, `pkg/util/constants.go` in karmada.
pub(crate) const LEASES: &str = "karmada-cluster";
/// Seconds until a member is ready. The plane looks at it at once, and then every 10 s.
const READY_TIMEOUT: u64 = 120;
/// Between two looks: short at first.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(50);
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// The type.
pub(crate) struct KarmadaMembership {
    schema: Schema,
}

impl KarmadaMembership {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let attributes = vec![
            Attribute::required("cluster", Type::Any, "Connection to the Karmada API."),
            Attribute::required("name", Type::String, "The name of the Cluster object.").identity(),
            Attribute::required("uid", Type::String, "The UID of the Cluster object; with another one it is joined anew."),
            Attribute::optional("replace_with", Type::String, "A text that makes the member leave and join anew when it changes.")
                .forces_replace(),
            Attribute::optional(
                "taints",
                Type::list(membership_taints::ty()),
                "Taints of the Cluster object. Those that others set stay as they are.",
            ),
            Attribute::optional(
                "keep_resources",
                Type::Bool,
                "Whether what was propagated to the member stays there when it leaves. Otherwise it is deleted there first.",
            )
            .or(false),
            Attribute::optional(
                "force",
                Type::Bool,
                "Whether it may leave without the member: what the plane waits for in vain is cut off within `leave_timeout`.",
            )
            .or(false),
            Attribute::optional("timeout", Type::Number, "Seconds to wait until the member is ready; 120 by default."),
            Attribute::optional("leave_timeout", Type::Number, "Seconds to wait until the member has left; 60 by default."),
            Attribute::optional(
                "verify",
                Type::Bool,
                "Whether to send a ConfigMap through the plane to the member, and to wait until it is back, when it is made or changed.",
            )
            .or(false),
            Attribute::computed("verified", Type::String, "How long that ConfigMap took for each part of its way; null if none was sent."),
            Attribute::computed("ready", Type::String, "When it is to leave: the status of the member's condition Ready.").volatile(),
            Attribute::computed("problem", Type::String, "When it is to leave: why it is not ready.").volatile(),
            Attribute::computed(
                "resources",
                Type::list(Type::String),
                "When it is to leave: what was propagated to it, each \"Kind.group namespace/name\". Null if that could not be seen.",
            )
            .volatile(),
        ];
        let doc = "That a cluster is a member of a Karmada control plane: made when the member is ready, deleted by leaving.";
        Self { schema: Schema::new(doc, attributes).through("cluster") }
    }
}

impl ResourceSpec for KarmadaMembership {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let bad = |name: &&str| wanted.and_then(|w| bad_seconds(w, name));
        if let Some(problem) = ["timeout", "leave_timeout"].iter().find_map(bad) {
            return Err(problem.into());
        }
        let mut change = default_plan(&self.schema, before, wanted);
        let is_sent = joins(&change) || change.after().is_some_and(|after| verifies_now(before, after));
        if let (false, Some(after)) = (change.is_no_op(), change.after_mut()) {
            match is_true(after, "verify") {
                true if is_sent => drop(after.insert("verified".to_owned(), Value::unknown(Type::String))),
                true => {}
                false => drop(after.insert("verified".to_owned(), Value::null(Type::String))),
            }
        }
        Ok(change)
    }

    /// Whatever is joined is a member.
    fn recovered(&self, wanted: &Object, _: &Object) -> Result<Option<Object>, Diagnostic> {
        Ok(Some(wanted.clone()))
    }
}

/// True for a change after which the member must be ready; others only say how it is to leave, which must be possible while it is not.
fn joins(change: &Change) -> bool {
    match change {
        Change::Update { before, after } => !same(before.get("uid"), after.get("uid")),
        other => other.after().is_some() && !other.is_no_op(),
    }
}

/// True if a ConfigMap is to be sent that was not before.
fn verifies_now(before: Option<&Object>, after: &Object) -> bool {
    is_true(after, "verify") && !before.is_some_and(|b| is_true(b, "verify"))
}

/// The Cluster objects' place; none if the plane does not serve them.
pub(crate) async fn clusters(client: &Client) -> Result<Option<Place>, Diagnostic> {
    look::place(client, CLUSTERS, "Cluster", "").await
}

/// The place of the Works of a member. Its namespace's name is fixed in Karmada (`GenerateExecutionSpaceName`).
pub(crate) async fn works(client: &Client, member: &str) -> Result<Option<Place>, Diagnostic> {
    look::place(client, WORKS, "Work", &works_of(member)).await
}

/// The namespace of these.
pub(crate) fn works_of(member: &str) -> String {
    format!("karmada-es-{member}")
}

/// Answers all asks, in their order. Whether a member stays is not asked: its Cluster object is. Taints are, with one LIST for all.
pub(crate) async fn observe(client: &Client, asks: &[&Ask]) -> Vec<Result<Option<Object>, Diagnostic>> {
    let at_once = client.at_once().await;
    let stays = |ask: &&&Ask| ask.wanted.is_some() && membership_taints::are_of_interest(ask.known.as_ref(), ask.wanted.as_ref());
    let list = if asks.iter().any(|a| stays(&a)) { Some(listed(client).await) } else { None };
    let looks = asks.iter().map(|ask| -> BoxFuture<'_, _> {
        match &list {
            Some(list) if stays(&ask) => Box::pin(std::future::ready(tainted(ask, list))),
            _ => Box::pin(look(client, ask)),
        }
    });
    futures::stream::iter(looks.collect::<Vec<_>>()).buffered(at_once).collect().await
}

async fn listed(client: &Client) -> Result<BTreeMap<String, Json>, Diagnostic> {
    let Some(place) = clusters(client).await? else { return Ok(BTreeMap::new()) };
    client.list(&place).await.map(by_name).map_err(|f| f.diagnostic(client.place(), &place.call("list", ""), &[]))
}

fn tainted(ask: &Ask, list: &Result<BTreeMap<String, Json>, Diagnostic>) -> Result<Option<Object>, Diagnostic> {
    let (list, Some(known)) = (list.as_ref().map_err(Clone::clone)?, &ask.known) else { return Ok(None) };
    let mut seen = known.clone();
    if let Some(live) = text(&ask.identity, "name").and_then(|name| list.get(name)) {
        seen.insert(membership_taints::TAINTS.to_owned(), membership_taints::seen(live, Some(known), ask.wanted.as_ref()));
    }
    Ok(Some(seen))
}

async fn look(client: &Client, ask: &Ask) -> Result<Option<Object>, Diagnostic> {
    let (None, Some(name)) = (&ask.wanted, text(&ask.identity, "name")) else { return Ok(ask.known.clone()) };
    let told = |place: &Place, verb, failure: Failure| failure.diagnostic(client.place(), &place.call(verb, name), &[]);
    // One that an earlier run did not finish leaves as any other.
    let mut seen = ask.known.clone().unwrap_or_else(|| ask.identity.clone());
    let Some(place) = clusters(client).await? else { return Ok(Some(seen)) };
    let Some(live) = client.get(&place, name).await.map_err(|f| told(&place, "get", f))? else { return Ok(Some(seen)) };
    let (ready, problem) = condition(&live, CONDITIONS[0]);
    let problem = if ready == "True" { Value::null(Type::String) } else { problem.into() };
    seen.extend(object([("ready", ready.into()), ("problem", problem)]));
    if let Some(place) = works(client, name).await? {
        let works = client.list(&place).await.map_err(|f| told(&place, "list", f))?;
        seen.insert("resources".to_owned(), Value::strings(propagated(&works)));
    }
    Ok(Some(seen))
}

/// True for a member whose agent fetches what is to be done.
pub(crate) fn is_pulled(live: &Json) -> bool {
    live["spec"]["syncMode"] == "Pull"
}

/// What Works bring to a member, each "Kind.group namespace/name", without what Karmada itself keeps there.
pub(crate) fn propagated(works: &[Json]) -> Vec<String> {
    let manifests = works.iter().flat_map(|w| w["spec"]["workload"]["manifests"].as_array().into_iter().flatten());
    let is_own = |m: &&Json| m["metadata"]["labels"]["karmada.io/system"] == "true";
    let mut found: Vec<String> = manifests.filter(|m| !is_own(m)).map(named).collect();
    found.sort();
    found.dedup();
    found
}

fn named(manifest: &Json) -> String {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&manifest["apiVersion"]), text(&manifest["kind"]));
    let group = version.split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
    let (namespace, name) = (text(&manifest["metadata"]["namespace"]), text(&manifest["metadata"]["name"]));
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{kind}{group} {namespace}{slash}{name}")
}

/// A condition's status, and why it is not "True".
pub(crate) fn condition(live: &Json, name: &str) -> (String, String) {
    let found = live["status"]["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == name);
    let Some(found) = found else {
        return ("Unknown".to_owned(), format!("the control plane has not looked at it yet ({name} is not there)"));
    };
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("status"), format!("{name} is {} ({}): {}", text("status"), text("reason"), text("message").trim_end_matches('.')))
}

/// Why an agent seems not to be at work: it renews a lease, and what it once said of its member stays said when it is gone. Source:
/// `initLeaseController`, `pkg/controllers/status` in karmada. None for a member that has no agent.
async fn asleep(client: &Client, name: &str, live: &Json) -> Result<Option<String>, Diagnostic> {
    if !is_pulled(live) {
        return Ok(None);
    }
    let Some(place) = look::place(client, "coordination.k8s.io/v1", "Lease", LEASES).await? else { return Ok(None) };
    let lease = client.get(&place, name).await.map_err(|f| f.diagnostic(client.place(), &place.call("get", name), &[]))?;
    Ok(stale(lease.as_ref(), Timestamp::now().as_second()))
}

/// Why a lease says that nobody is there; clocks may differ by as long as it lasts.
fn stale(lease: Option<&Json>, now: i64) -> Option<String> {
    let Some(lease) = lease else { return Some("its agent has no lease yet".to_owned()) };
    let lasts = lease["spec"]["leaseDurationSeconds"].as_i64().unwrap_or(40);
    let renewed = lease["spec"]["renewTime"].as_str().and_then(|t| t.parse::<Timestamp>().ok()).map_or(0, Timestamp::as_second);
    (now - renewed > 2 * lasts).then(|| format!("its agent has not renewed its lease for {} s", now - renewed))
}

/// True for a Cluster object that is on its way out: it will never be ready.
async fn is_leaving(client: &Client, after: &Object) -> Result<bool, Diagnostic> {
    let (Some(place), Some(name)) = (clusters(client).await?, text(after, "name")) else { return Ok(false) };
    let live = client.get(&place, name).await.map_err(|f| f.diagnostic(client.place(), &place.call("get", name), &[]))?;
    Ok(live.is_some_and(|live| live["metadata"]["deletionTimestamp"].is_string()))
}

/// Without what nobody found out.
fn settled(mut object: Object) -> Object {
    if object.get("verified").is_none_or(Value::is_unknown) {
        object.insert("verified".to_owned(), Value::null(Type::String));
    }
    object
}

/// Waits until the plane says that the member can be used.
async fn until_ready(client: &Client, after: &Object) -> Result<(), Diagnostic> {
    let name = text(after, "name").unwrap_or_default();
    let limit = seconds(after, READY_TIMEOUT);
    let gone = |what: &str| {
        Diagnostic::error("Cluster object is gone", format!("{what} Somebody else removes it."))
            .with_hint("See who does (\"kubectl get clusters\" on the control plane shows what is left), then plan and apply again.")
    };
    let Some(place) = clusters(client).await? else { return Err(gone("The control plane serves no Cluster objects.")) };
    let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        let waiting = match client.get(&place, name).await {
            Ok(Some(live)) if text(after, "uid").is_none_or(|uid| live["metadata"]["uid"] == uid) => {
                let not_yet = CONDITIONS.into_iter().map(|c| condition(&live, c)).find(|(status, _)| status != "True");
                match not_yet {
                    None => match asleep(client, name, &live).await? {
                        None => return Ok(()),
                        Some(why) => why,
                    },
                    Some((_, why)) => why,
                }
            }
            Ok(_) => return Err(gone(&format!("Cluster \"{name}\" is not there any more right after it was joined."))),
            Err(failure) => {
                let told = failure.diagnostic(client.place(), &place.call("get", name), &[]);
                if !told.retryable {
                    return Err(told);
                }
                told.detail.trim_end_matches('.').to_owned()
            }
        };
        if start.elapsed() >= limit {
            let detail = format!("Cluster \"{name}\" is joined, but after {} s it can't be used: {waiting}.", limit.as_secs());
            return Err(Diagnostic::error("Member does not become ready", detail)
                .with_hint("See whether the control plane's controllers run, and reach the member at the address it is joined with.")
                .with_hint("Or raise `timeout`."));
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE);
    }
}

impl ResourceType<Client> for KarmadaMembership {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(look(client, ask))
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(after) = change.after() else {
                let Some(before) = change.before() else { return Ok(None) };
                return membership_leave::leave(client, before).await.map(|()| None);
            };
            if let (Some(place), Some(name)) = (clusters(client).await?, text(after, "name")) {
                membership_taints::write(client, &place, name, change.before(), after).await?;
            }
            let mut made = after.clone();
            if is_leaving(client, after).await? {
                // How it leaves can still be said: it goes on with the next try.
                return Ok(Some(settled(made)));
            }
            let is_sent = verifies_now(change.before(), after);
            if joins(change) || is_sent {
                until_ready(client, after).await?;
            }
            if is_true(after, "verify") && (joins(change) || is_sent) {
                let times = membership_probe::send(client, text(after, "name").unwrap_or_default()).await?;
                made.insert("verified".to_owned(), times.into());
            }
            Ok(Some(made))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_propagated_is_named() {
        let manifest = |version: &str, kind: &str, namespace: &str, name: &str| json!({ "apiVersion": version, "kind": kind, "metadata": { "namespace": namespace, "name": name } });
        let own = json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "x", "labels": { "karmada.io/system": "true" } } });
        let work = |manifests: Json| json!({ "spec": { "workload": { "manifests": manifests } } });
        let works = [
            work(json!([manifest("apps/v1", "Deployment", "default", "web"), own])),
            work(json!([manifest("v1", "Namespace", "", "shop"), manifest("apps/v1", "Deployment", "default", "web")])),
            json!({}),
        ];
        assert_eq!(propagated(&works), ["Deployment.apps default/web", "Namespace shop"]);
    }

    #[test]
    fn an_agent_that_renews_no_lease_is_not_there() {
        let lease = |at: &str| json!({ "spec": { "leaseDurationSeconds": 40, "renewTime": at } });
        let now = "2026-01-01T00:02:00Z".parse::<Timestamp>().unwrap().as_second();
        assert_eq!(stale(Some(&lease("2026-01-01T00:01:50.123456Z")), now), None);
        assert_eq!(stale(Some(&lease("2026-01-01T00:00:00.000000Z")), now).unwrap(), "its agent has not renewed its lease for 120 s");
        assert!(stale(None, now).is_some());
    }

    #[test]
    fn conditions_say_why() {
        let live = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "ClusterNotReachable", "message": "no route." }] } });
        assert_eq!(condition(&live, "Ready"), ("False".to_owned(), "Ready is False (ClusterNotReachable): no route".to_owned()));
        assert_eq!(condition(&Json::Null, "Ready").0, "Unknown");
    }

    #[test]
    fn another_cluster_object_is_another_membership() {
        let membership = KarmadaMembership::new();
        let of = |uid: &str, verify: bool| {
            object([
                ("name", "eu1".into()),
                ("uid", uid.into()),
                ("verify", verify.into()),
                ("keep_resources", false.into()),
                ("force", false.into()),
                ("verified", "x".into()),
            ])
        };
        let plan = |before: &Object, wanted: &Object| membership.plan(&PlanContext { now: 0 }, Some(before), Some(wanted)).unwrap();
        assert!(plan(&of("1", true), &of("1", true)).is_no_op());
        let change = plan(&of("1", true), &of("2", true));
        assert!(matches!(change, Change::Update { .. }) && change.after().unwrap()["verified"].is_unknown());
        assert!(plan(&of("1", true), &of("1", false)).after().unwrap()["verified"].is_null());
    }
}
