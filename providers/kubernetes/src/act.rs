//! Making, changing and deleting one object.

use std::time::Duration;

use karmaform_model::{Diagnostic, Object, Value};
use kube::api::PropagationPolicy;
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep};

use crate::client::{Client, How, Place};
use crate::exclusive;
use crate::exposed;
use crate::failure::{Failure, TERMINATING, terminating};
use crate::fields;
use crate::known_place::known_place;
use crate::look::place;
use crate::manifest::{self, Name, Named, named};
use crate::pods_by_hand;
use crate::service;
use crate::used;
use crate::values::{is_true, secrets, text};
use crate::wait;

/// Between two looks at something that is on its way out.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);
/// So often others may be faster.
const TAKE_OVERS: u32 = 10;
/// The server can't make sense of what would come out.
pub(crate) const INVALID: u16 = 422;
/// The server does not take this kind of patch for that kind of object.
const UNSUPPORTED: u16 = 415;
/// The schema's default, for states that were written without it.
const TIMEOUT: u64 = 60;
/// Seconds in which a namespace must be gone, where nothing else is said: each pod in it may take its time to end.
const NAMESPACE_TIMEOUT: u64 = 300;

/// The refusal to take over what is not ours.
pub(crate) fn foreign(name: &str, wanted: &Object) -> Diagnostic {
    let error = Diagnostic::error("Exists already", format!("{name} is in the cluster already, and karmaform did not make it."))
        .with_hint("Delete it, or give the object another name.");
    // Who only takes back what was its own would not take it over.
    if is_true(wanted, "reclaim") { error } else { error.with_hint("Or set `force = true` to take it over.") }
}

/// What a failed change means. Of a namespace that is on its way out it says what that waits for.
pub(crate) async fn told(
    client: &Client,
    place: &Place,
    (verb, name): (&'static str, &str),
    failure: &Failure,
    hidden: &[String],
) -> Diagnostic {
    let error = failure.diagnostic(client.place(), &place.call(verb, name), hidden);
    let Some(namespace) = place.namespace.as_deref().filter(|_| error.summary == TERMINATING) else { return error };
    let found = client.kind("v1", "Namespace").await.ok().flatten();
    let Some(served) = found else { return error };
    let place = Place { api_version: "v1".to_owned(), served, namespace: None };
    match client.get(&place, namespace).await {
        Ok(Some(live)) => leaving(namespace, &live),
        _ => error,
    }
}

/// A namespace that is on its way out can't be used, whatever for.
pub(crate) fn leaving(namespace: &str, live: &Json) -> Diagnostic {
    let mut error = terminating(namespace);
    error.detail.push_str(&held(live));
    error
}

/// What a namespace waits for, in its own words: ` It waits: ...`
fn held(live: &Json) -> String {
    let conditions = live["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let messages = conditions.iter().filter(|c| c["status"] == "True").filter_map(|c| c["message"].as_str());
    let messages: Vec<&str> = messages.map(|m| m.trim_end_matches([' ', '.', ','])).filter(|m| !m.is_empty()).collect();
    if messages.is_empty() { String::new() } else { format!(" Of what is in it the server says: {}.", messages.join("; ")) }
}

fn timeout(object: &Object) -> Duration {
    seconds(object, TIMEOUT)
}

/// An object's `timeout`.
pub(crate) fn seconds(object: &Object, default: u64) -> Duration {
    seconds_of(object, "timeout", default)
}

/// An attribute that is a time in seconds.
pub(crate) fn seconds_of(object: &Object, name: &str, default: u64) -> Duration {
    let seconds = object.get(name).and_then(Value::as_number).map(karmaform_model::Number::as_f64);
    seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()).unwrap_or(Duration::from_secs(default))
}

fn unreadable() -> Diagnostic {
    Diagnostic::error("Manifest is not of one object", "It does not say which object it is.")
}

/// Where the object of a manifest is, and what it is called.
pub(crate) async fn located(client: &Client, manifest: &Value) -> Result<(Place, Name), Diagnostic> {
    let Named::Known(name) = named(manifest) else { return Err(unreadable()) };
    let version = manifest::api_version(manifest).unwrap_or_default();
    let found = place(client, version, &name.kind, &name.namespace).await?;
    let unserved = || {
        let told = format!("{} serves no {} of {version}.", client.place(), name.kind);
        Diagnostic::error("Kind is not known to the cluster", told)
            .with_hint("If a custom resource definition brings it, let this resource depend on it, and let that wait for `Established`.")
            // A definition takes a moment until it is served.
            .retryable()
    };
    Ok((found.ok_or_else(unserved)?, name))
}

/// Applies a manifest, and waits for what is to be waited for. Gives the object as it is now.
pub(crate) async fn apply(client: &Client, before: Option<&Object>, after: &Object) -> Result<Object, Diagnostic> {
    let is_new = before.is_none();
    let manifest = after.get("manifest").ok_or_else(unreadable)?;
    let (place, name) = located(client, manifest).await?;
    let hidden = secrets([manifest]);
    let told = |verb: &'static str, failure: Failure| failure.diagnostic(client.place(), &place.call(verb, &name.name), &hidden);
    let (force, shared) = (is_true(after, "force"), is_true(after, "shared"));
    if is_true(after, "adopted") {
        return match client.get(&place, &name.name).await.map_err(|f| told("get", f))? {
            Some(live) => Ok(now(after, &name, (&place, &live), true)),
            None => Err(Diagnostic::error("Object is gone", format!("{name} was there when the plan was made, and is not any more."))
                .with_hint("Plan again: then it will be made.")),
        };
    }
    if is_new && (shared || !force) {
        let there = client.get(&place, &name.name).await.map_err(|f| told("get", f))?;
        match there {
            Some(live) if fields::ours(&live).is_none() && !fields::is_untracked(&live) => {
                return if shared { Ok(now(after, &name, (&place, &live), true)) } else { Err(foreign(&name.to_string(), after)) };
            }
            Some(live) => drop(until_made_way(client, &place, &name, live, after).await?),
            None => {}
        }
    }
    // Somebody else's object was refused above.
    let how = How { force: force || is_true(after, "reclaim"), dry_run: false };
    let request = manifest::request(manifest);
    // What is taken away as a whole is taken away field by field, and of some a hull is left, with what servers fill in.
    let hulls = match is_new {
        true => None,
        false => {
            let live = match client.get(&place, &name.name).await.map_err(|f| told("get", f))? {
                Some(live) => until_made_way(client, &place, &name, live, after).await?,
                None => None,
            };
            live.and_then(|live| fields::dropped(&fields::ours(&live)?, &request, &live))
        }
    };
    if !is_new && is_true(after, "exclusive") {
        take_over(client, &place, &name, &request).await.map_err(|f| told("patch", f))?;
    }
    let mut applied = client.apply(&place, &name.name, &request, how).await;
    if !is_new && applied.as_ref().is_err_and(|f| f.code() == Some(INVALID)) {
        let live = client.get(&place, &name.name).await.map_err(|f| told("get", f))?.unwrap_or_default();
        if let Some(patch) = fields::ours(&live).and_then(|owned| fields::dropped(&owned, &request, &live)) {
            client.strip(&place, &live, patch).await.map_err(|f| told("patch", f))?;
            applied = client.apply(&place, &name.name, &request, how).await;
        }
    }
    if !is_new && is_true(after, "remake") && applied.as_ref().is_err_and(|f| f.immutable(&hidden).is_some()) {
        let mut old = after.clone();
        old.insert("propagation".to_owned(), "orphan".into());
        delete(client, &old).await?;
        applied = client.apply(&place, &name.name, &request, how).await;
    }
    // What was ours and somebody else's at once is theirs alone now.
    if is_true(after, "exclusive") && applied.as_ref().is_ok_and(|live| exclusive::others(&place.served.kind, live, &request).is_some()) {
        take_over(client, &place, &name, &request).await.map_err(|f| told("patch", f))?;
        applied = client.apply(&place, &name.name, &request, how).await;
    }
    let mut live = match applied {
        Ok(live) => live,
        Err(failure) => return Err(refused(client, &place, &name, failure, &hidden).await),
    };
    if let Some(dropped) = hulls {
        live = without_hulls(client, &place, &name, &dropped, live).await.map_err(|f| told("patch", f))?;
    }
    if !is_new
        && is_true(after, "exclusive")
        && pods_by_hand::is_workload(&name.kind)
        && pods_by_hand::renew(client, (&name.kind, &live), before, after).await?
    {
        live = client.get(&place, &name.name).await.map_err(|f| told("get", f))?.unwrap_or(live);
    }
    if let Some(wanted) = after.get("wait").and_then(Value::as_entries) {
        let uid = live["metadata"]["uid"].clone();
        live = wait::until(client, &place, &name, &uid, wanted, timeout(after), &hidden).await?;
    }
    Ok(now(after, &name, (&place, &live), false))
}

/// What is on its way out takes changes, and all of them go with it. So its end is waited for, and it is made anew then. Gives it back if it stays.
async fn until_made_way(client: &Client, place: &Place, name: &Name, live: Json, after: &Object) -> Result<Option<Json>, Diagnostic> {
    if !live["metadata"]["deletionTimestamp"].is_string() {
        return Ok(Some(live));
    }
    until_gone(client, place, name, live["metadata"]["uid"].as_str(), limit(name, after)).await?;
    Ok(None)
}

/// Takes away what is left of what was [`fields::dropped`] and belongs to nobody. Once that was applied, only here it is known what it was: a controller
/// that writes to the same object meanwhile is no reason to give up.
async fn without_hulls(client: &Client, place: &Place, name: &Name, dropped: &Json, mut live: Json) -> Result<Json, Failure> {
    let mut tries = 0;
    while let Some(patch) = fields::hulls(dropped, &live) {
        tries += 1;
        match client.strip(place, &live, patch).await {
            Ok(stripped) => return Ok(stripped),
            // Custom resources take no such patches, and nothing is made of what is left of them.
            Err(failure) if failure.code() == Some(UNSUPPORTED) => break,
            Err(failure) if failure.code() == Some(409) && tries < TAKE_OVERS => {
                sleep(PAUSE).await;
                live = client.get(place, &name.name).await?.unwrap_or(live);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(live)
}

/// What others set in an object becomes ours, so that the next apply takes it away.
async fn take_over(client: &Client, place: &Place, name: &Name, wanted: &Json) -> Result<(), Failure> {
    let mut tries = 0;
    loop {
        let Some(live) = client.get(place, &name.name).await? else { return Ok(()) };
        let Some(account) = exclusive::taken_over(&place.served.kind, &live, wanted) else { return Ok(()) };
        tries += 1;
        // Only if it is still as it was seen.
        let metadata = json!({ "resourceVersion": live["metadata"]["resourceVersion"], "managedFields": account });
        match client.patch(place, &name.name, &json!({ "metadata": metadata })).await {
            // Controllers write to the same object.
            Err(failure) if failure.code() == Some(409) && tries < TAKE_OVERS => sleep(PAUSE).await,
            done => return done.map(|_| ()),
        }
    }
}

async fn refused(client: &Client, place: &Place, name: &Name, failure: Failure, hidden: &[String]) -> Diagnostic {
    if let Some(error) = service::taken(client, place, &name.name, &failure).await {
        return error;
    }
    match failure.immutable(hidden) {
        Some(message) => Diagnostic::error("Field can't be changed in place", format!("The server says: {message}."))
            .with_hint("Plan again with `-replace` of this resource."),
        None => told(client, place, ("patch", &name.name), &failure, hidden).await,
    }
}

/// What was wanted, with what is known of it now.
fn now(after: &Object, name: &Name, (place, live): (&Place, &Json), adopted: bool) -> Object {
    let mut object = after.clone();
    object.insert("object".to_owned(), name.to_string().into());
    object.insert("uid".to_owned(), live["metadata"]["uid"].as_str().unwrap_or_default().into());
    // What was told ahead is kept: if it is another by now, the next plan says so, with all that follows.
    for (fact, value) in service::FACTS.into_iter().zip(service::facts(place, live, None)) {
        if after.get(fact).is_none_or(Value::is_unknown) {
            object.insert(fact.to_owned(), value);
        }
    }
    if after.get(exposed::EXPOSED).is_none_or(Value::is_unknown) {
        object.insert(exposed::EXPOSED.to_owned(), exposed::read(Some(after), live));
    }
    object.insert("foreign".to_owned(), adopted.into());
    object.insert("adopted".to_owned(), if adopted { true.into() } else { Value::null(karmaform_model::Type::Bool) });
    object.insert("immutable".to_owned(), Value::null(karmaform_model::Type::String));
    object
}

/// Deletes an object and waits until it is gone.
pub(crate) async fn delete(client: &Client, before: &Object) -> Result<(), Diagnostic> {
    let Some(name) = text(before, "object").and_then(Name::parse) else { return Ok(()) };
    // The first half of a replacement, by another name or in another cluster. What somebody else made goes where that was asked for by `force`.
    if ["keep", "adopted"].iter().any(|name| is_true(before, name)) {
        return Ok(());
    }
    let version = before.get("manifest").and_then(manifest::api_version).map_or_else(|| format!("{}/", name.group), str::to_owned);
    let Some(place) = known_place(client, &version, &name.kind, &name.namespace).await? else { return Ok(()) };
    if name.kind == "Namespace" && is_true(before, "keep_if_used") && used::is_used(client, &name.name).await? {
        return Ok(());
    }
    let policy = match text(before, "propagation") {
        Some("foreground") => PropagationPolicy::Foreground,
        Some("orphan") => PropagationPolicy::Orphan,
        _ => PropagationPolicy::Background,
    };
    let uid = text(before, "uid").filter(|u| !u.is_empty());
    let told = |verb: &'static str, failure: Failure| failure.diagnostic(client.place(), &place.call(verb, &name.name), &[]);
    if !client.delete(&place, &name.name, uid, policy).await.map_err(|f| told("delete", f))? {
        return Ok(());
    }
    until_gone(client, &place, &name, uid, limit(&name, before)).await
}

/// How long the end of an object is waited for.
fn limit(name: &Name, object: &Object) -> Duration {
    if name.kind == "Namespace" { seconds(object, NAMESPACE_TIMEOUT) } else { timeout(object) }
}

/// Waits until what is deleted is gone.
async fn until_gone(client: &Client, place: &Place, name: &Name, uid: Option<&str>, limit: Duration) -> Result<(), Diagnostic> {
    let told = |failure: Failure| failure.diagnostic(client.place(), &place.call("get", &name.name), &[]);
    let end = Instant::now() + limit;
    let mut first = None;
    loop {
        let Some(live) = client.get(place, &name.name).await.map_err(told)? else { return Ok(()) };
        let now = live["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        // Another one under the same name is not ours to wait for.
        if *first.get_or_insert_with(|| uid.map_or_else(|| now.clone(), str::to_owned)) != now {
            return Ok(());
        }
        if Instant::now() >= end {
            return Err(remains(name, place, &live, limit));
        }
        sleep(PAUSE).await;
    }
}

fn remains(name: &Name, place: &Place, live: &Json, limit: Duration) -> Diagnostic {
    let of = |list: &Json| {
        let texts = list.as_array().into_iter().flatten().filter_map(Json::as_str).map(|f| format!("\"{f}\""));
        texts.collect::<Vec<_>>().join(", ")
    };
    // Namespaces keep theirs in the specification.
    let finalizers =
        [&live["metadata"]["finalizers"], &live["spec"]["finalizers"]].map(of).into_iter().filter(|f| !f.is_empty()).collect::<Vec<_>>();
    let why = if finalizers.is_empty() {
        "It has no finalizers: the server is still at it.".to_owned()
    } else {
        format!("It waits for its finalizers: {}.", finalizers.join(", "))
    };
    let held = if place.served.kind == "Namespace" { held(live) } else { String::new() };
    Diagnostic::error(
        "Deletion does not finish",
        format!("{name} is marked as deleted, but is still there after {} s. {why}{held}", limit.as_secs()),
    )
    .with_hint("See whether the controllers that remove these finalizers run; then apply again.")
    .with_hint("Or raise `timeout`.")
}

#[cfg(test)]
#[path = "act_tests.rs"]
mod tests;
