//! Applying and deleting the objects of an archive: many at a time, kinds and namespaces before what needs them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use karmaform_model::{BoxFuture, Diagnostic, Object, Value};
use tokio::time::Instant;

use crate::act::{self, seconds};
use crate::archive::{AS_WANTED, MISSING, exist, texts, words};
use crate::archive_look::rendered;
use crate::archive_source::Downloads;
use crate::client::Client;
use crate::fields;
use crate::look::place;
use crate::manifest::{self, Name};
use crate::values::{is_true, object, secrets, text};
use crate::wait;

/// Requests at a time.
const AT_ONCE: usize = 8;
/// The schema's default, for states that were written without it.
const TIMEOUT: u64 = 120;

/// True for what others need before they can be made.
fn is_first(name: &str) -> bool {
    Name::parse(name).is_some_and(|n| matches!(n.kind.as_str(), "Namespace" | "CustomResourceDefinition"))
}

/// Applies all objects and waits for their conditions. Gives what is there now.
pub(crate) async fn apply(
    client: &Client,
    downloads: &Arc<Downloads>,
    before: Option<&Object>,
    after: &Object,
) -> Result<Object, Diagnostic> {
    let manifests = rendered(downloads, after).await?;
    let limit = seconds(after, TIMEOUT);
    let end = Instant::now() + limit;
    let ours: Vec<&String> = words(before, "objects").filter(|(_, w)| *w != MISSING).map(|(n, _)| n).collect();
    let is_checked = |name: &String| is_true(after, "force") || ours.contains(&name);
    let condition = after.get("wait_condition").filter(|c| c.as_entries().is_some_and(|e| !e.is_empty()));
    // All is looked at before anything is changed.
    let unchecked: BTreeMap<&String, &Value> = manifests.iter().filter(|(name, _)| !is_checked(name)).collect();
    let checks = unchecked.into_iter().map(|(name, manifest)| -> BoxFuture<'_, _> { Box::pin(is_foreign(client, name, manifest)) });
    let checked = together(checks.collect()).await?;
    let foreign: Vec<&str> = checked.iter().flatten().map(String::as_str).collect();
    if !foreign.is_empty() {
        return Err(exist(&foreign));
    }
    for first in [true, false] {
        let chosen: Vec<(&String, &Value)> = manifests.iter().filter(|(name, _)| is_first(name) == first).collect();
        let set = chosen.iter().map(|(_, manifest)| -> BoxFuture<'_, _> { Box::pin(one(client, manifest)) });
        let uids = together(set.collect()).await?;
        let Some(condition) = condition else { continue };
        // A namespace has no conditions while all is well with it.
        let waited = chosen.iter().zip(&uids).filter(|((name, _), _)| !name.starts_with("Namespace/"));
        let waits = waited.map(|((name, manifest), uid)| -> BoxFuture<'_, _> {
            let left = end.saturating_duration_since(Instant::now());
            Box::pin(wait_for(client, name, manifest, uid, condition, left))
        });
        together(waits.collect()).await?;
    }
    let mut now = after.clone();
    now.insert("objects".to_owned(), texts(manifests.into_keys().map(|name| (name, AS_WANTED))));
    Ok(now)
}

/// Runs these, some at a time, all to their end; the first error tells how many more there are.
async fn together<T: Send>(jobs: Vec<BoxFuture<'_, Result<T, Diagnostic>>>) -> Result<Vec<T>, Diagnostic> {
    let results: Vec<Result<T, Diagnostic>> = futures::stream::iter(jobs).buffered(AT_ONCE).collect().await;
    let failed = results.iter().filter(|r| r.is_err()).count();
    let done: Result<Vec<T>, Diagnostic> = results.into_iter().collect();
    done.map_err(|mut error| {
        if failed > 1 {
            error.detail.push_str(&format!(" {} more objects of the archive failed as well.", failed - 1));
        }
        error
    })
}

/// The name of an object that is there and not ours.
async fn is_foreign(client: &Client, name: &str, wanted: &Value) -> Result<Option<String>, Diagnostic> {
    let Some(parsed) = Name::parse(name) else { return Ok(None) };
    let version = manifest::api_version(wanted).unwrap_or_default();
    let Some(place) = place(client, version, &parsed.kind, &parsed.namespace).await? else { return Ok(None) };
    let live = client.get(&place, &parsed.name).await.map_err(|f| f.diagnostic(client.place(), &place.call("get", &parsed.name), &[]))?;
    Ok(live.filter(|live| fields::ours(live).is_none()).map(|_| name.to_owned()))
}

/// Applies one; gives its UID.
async fn one(client: &Client, manifest: &Value) -> Result<String, Diagnostic> {
    let wanted = object([("manifest", manifest.clone()), ("force", true.into())]);
    let made = act::apply(client, Some(&wanted), &wanted).await?;
    Ok(text(&made, "uid").unwrap_or_default().to_owned())
}

async fn wait_for(client: &Client, name: &str, manifest: &Value, uid: &str, condition: &Value, left: Duration) -> Result<(), Diagnostic> {
    let Some(name) = Name::parse(name) else { return Ok(()) };
    let version = manifest::api_version(manifest).unwrap_or_default();
    let Some(place) = place(client, version, &name.kind, &name.namespace).await? else { return Ok(()) };
    let wanted = object([("condition", condition.clone())]);
    wait::until(client, &place, &name, &uid.into(), &wanted, left, &secrets([manifest])).await.map(drop)
}

/// Deletes all objects that the state names: what needs kinds and namespaces goes before these.
pub(crate) async fn delete(client: &Client, before: &Object) -> Result<(), Diagnostic> {
    for first in [false, true] {
        let chosen = words(Some(before), "objects").filter(|(name, _)| is_first(name) == first);
        let jobs = chosen.map(|(name, _)| -> BoxFuture<'_, _> {
            let mut gone = object([("object", name.as_str().into())]);
            gone.extend(before.get("timeout").map(|t| ("timeout".to_owned(), t.clone())));
            Box::pin(async move { act::delete(client, &gone).await })
        });
        together(jobs.collect()).await?;
    }
    Ok(())
}
