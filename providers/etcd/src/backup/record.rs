//! `etcd_backup_record`: what became of the backups of a cluster, as those who made them wrote it into etcd below `/karmaform.io/backups/NAME`.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use etcd_client::{DeleteOptions, GetOptions, Txn, TxnOp};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use karmaform_model::{Ask, Attribute, BoxFuture, Change, Diagnostic, Object, ResourceSpec, ResourceType, Schema, Type, Value};
use serde_json::Value as Json;

use crate::client::{Client, within};
use crate::look::reason;

/// Its name.
pub(crate) const KIND: &str = "etcd_backup_record";
/// The note of the newest backup that was proven.
pub(super) const LAST: &str = "last";
/// The note of why none was made since.
pub(super) const FAILED: &str = "failed";
/// A note from so far ahead is of a wrong clock, in seconds.
const AHEAD: i64 = 300;
/// How long one member is waited for before the next one is asked as well. Who works answers in a few milliseconds.
const PATIENCE: Duration = Duration::from_millis(500);
/// Seconds of an hour.
const HOUR: i64 = 3_600;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "What became of the backups of an etcd cluster, as an `etcd_backup` wrote it into the cluster: when the newest was made and proven, and why none was \
         made since.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("name", Type::String, "What the backups are called.").identity(),
            Attribute::required("max_age_hours", Type::Number, "How old the newest backup may be, in hours."),
            Attribute::optional(
                "store",
                Type::Any,
                "Where backups lie, if not on the hosts that make them: what `karmaform etcd backup list` and `get` reach them by.",
            ),
            Attribute::computed("healthy", Type::Bool, "The newest backup is proven and not too old, and none failed since.").volatile(),
            Attribute::computed("last", Type::String, "When the newest backup was made, RFC 3339.").volatile(),
            Attribute::computed("place", Type::String, "Where it is: `HOST:FILE`, or `s3://BUCKET/KEY`.").volatile(),
            Attribute::computed("revision", Type::Number, "The newest revision in it.").volatile(),
            Attribute::computed("error", Type::String, "Why it is not healthy, in a few words.").volatile(),
        ],
    )
    .through("cluster")
});

/// The resource type.
pub(crate) struct EtcdBackupRecord;

impl ResourceSpec for EtcdBackupRecord {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }
}

impl ResourceType<Client> for EtcdBackupRecord {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { Ok(observe(client, ask).await) })
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            match (change.before(), change.after()) {
                (_, Some(after)) => Ok(Some(after.clone())),
                // A record in an etcd that is gone hurts nobody, and must not keep the rest from being destroyed.
                (Some(before), None) => {
                    forget(client, name_of(before)).await;
                    Ok(None)
                }
                (None, None) => Ok(None),
            }
        })
    }
}

fn name_of(object: &Object) -> &str {
    object.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// What keys of these backups begin with.
pub(super) fn prefix(name: &str) -> String {
    format!("/karmaform.io/backups/{name}/")
}

/// What is in the record; of one that is in no state there is nothing to tell. Nobody answering is no error: then the state's memory stands.
pub(crate) async fn observe(client: &Client, ask: &Ask) -> Option<Object> {
    let known = ask.known.as_ref()?;
    let mut object = ask.identity.clone();
    let most =
        [Some(known), ask.wanted.as_ref()].into_iter().flatten().find_map(|o| o.get("max_age_hours")?.as_i64()).unwrap_or(i64::MAX / HOUR);
    let facts = match read(client, name_of(&ask.identity)).await {
        Ok(found) => judge(&found, now(), most),
        Err(why) => Facts { error: Some(format!("no member could be asked: {why}")), ..Facts::default() },
    };
    object.insert("healthy".to_owned(), facts.error.is_none().into());
    object.insert("last".to_owned(), facts.last.map_or_else(|| Value::null(Type::String), Value::from));
    object.insert("place".to_owned(), facts.place.map_or_else(|| Value::null(Type::String), Value::from));
    object.insert("revision".to_owned(), facts.revision.map_or_else(|| Value::null(Type::Number), Value::from));
    object.insert("error".to_owned(), facts.error.map_or_else(|| Value::null(Type::String), Value::from));
    Some(object)
}

/// The two notes.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) last: Option<Json>,
    pub(super) failed: Option<Json>,
}

/// What follows from them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    last: Option<String>,
    place: Option<String>,
    revision: Option<i64>,
    error: Option<String>,
}

/// `now` in seconds since 1970, `most` in hours.
fn judge(notes: &Notes, now: i64, most: i64) -> Facts {
    let epoch = |note: &Json| note["epoch"].as_i64().unwrap_or(0);
    let text = |note: &Json, name: &str| note[name].as_str().unwrap_or("?").to_owned();
    let last = notes.last.as_ref();
    let failed = notes.failed.as_ref().filter(|f| last.is_none_or(|l| epoch(l) <= epoch(f)));
    let age = last.map(|l| (now - epoch(l)) / HOUR);
    let error = match (failed, age) {
        _ if last.is_some_and(|l| !l["epoch"].is_i64()) => Some("somebody has written over the note of the newest backup".to_owned()),
        _ if last.is_some_and(|l| epoch(l) > now + AHEAD) => {
            Some("the newest backup is of a time that is still to come: a clock was wrong, or is".to_owned())
        }
        (Some(f), _) => Some(format!("the newest try failed on host {}: {}", text(f, "host"), text(f, "why"))),
        (None, None) => Some("there is no backup yet".to_owned()),
        (None, Some(hours)) if hours >= most => Some(format!("the newest backup is {hours} hours old, and {most} are allowed")),
        (None, Some(_)) => None,
    };
    Facts {
        last: last.map(|l| text(l, "created")),
        place: last.map(|l| match text(l, "file") {
            file if file.starts_with('/') => format!("{}:{file}", text(l, "host")),
            file => file,
        }),
        revision: last.and_then(|l| l["revision"].as_i64()),
        error,
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|d| i64::try_from(d.as_secs()).ok()).unwrap_or(0)
}

/// From the first member that answers. The next one is asked as soon as one takes long: those that hang must not add up.
pub(super) async fn read(client: &Client, name: &str) -> Result<Notes, String> {
    let prefix = prefix(name);
    let (mut members, mut asked, mut last) = (client.names().peekable(), FuturesUnordered::new(), "there is none".to_owned());
    loop {
        if let Some(member) = members.next() {
            asked.push(notes(client, member, &prefix));
        } else if asked.is_empty() {
            return Err(last);
        }
        let more = members.peek().is_some();
        let answer = tokio::select! {
            answer = asked.next() => answer,
            () = tokio::time::sleep(PATIENCE), if more => None,
        };
        match answer {
            Some(Ok(notes)) => return Ok(notes),
            Some(Err(why)) => last = why,
            None => {}
        }
    }
}

async fn notes(client: &Client, member: &str, prefix: &str) -> Result<Notes, String> {
    let mut connection = client.open(member).await?;
    let range = GetOptions::new().with_prefix();
    let found = within(connection.get(prefix, Some(range))).await.map_err(|e| reason(&e))?;
    let note = |key: &str| {
        let wanted = format!("{prefix}{key}");
        let value = found.kvs().iter().find(|kv| kv.key() == wanted.as_bytes())?;
        // What is no JSON is a note all the same, of nothing.
        Some(serde_json::from_slice(value.value()).unwrap_or(Json::Null))
    };
    Ok(Notes { last: note(LAST), failed: note(FAILED) })
}

/// The notes. A lock ends by itself, and whose the backups in a bucket are is true as long as they are there.
async fn forget(client: &Client, name: &str) {
    let told = [LAST, FAILED].map(|key| TxnOp::delete(format!("{}{key}", prefix(name)), None::<DeleteOptions>));
    for member in client.names() {
        if let Ok(mut connection) = client.open(member).await
            && within(connection.txn(Txn::new().and_then(told.clone()))).await.is_ok()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn age_and_failures_are_told() {
        let last = |epoch: i64| json!({ "epoch": epoch, "created": "T", "host": "a", "file": "/b/x.db", "revision": 7 });
        let failed = |epoch: i64| json!({ "epoch": epoch, "host": "b", "why": "no room" });
        let error = |last: Option<Json>, failed: Option<Json>| judge(&Notes { last, failed }, 100 * HOUR, 3).error;
        assert_eq!(error(None, None).as_deref(), Some("there is no backup yet"));
        assert_eq!(error(Some(last(98 * HOUR)), None), None);
        assert_eq!(error(Some(json!({})), None).as_deref(), Some("somebody has written over the note of the newest backup"));
        assert_eq!(error(Some(last(90 * HOUR)), None).as_deref(), Some("the newest backup is 10 hours old, and 3 are allowed"));
        assert_eq!(error(Some(last(98 * HOUR)), Some(failed(99 * HOUR))).as_deref(), Some("the newest try failed on host b: no room"));
        assert_eq!(error(Some(last(99 * HOUR)), Some(failed(98 * HOUR))), None);
        assert_eq!(error(Some(Json::Null), None).as_deref(), Some("somebody has written over the note of the newest backup"));
        assert!(error(Some(last(101 * HOUR)), None).unwrap().contains("still to come"));
        let facts = judge(&Notes { last: Some(last(99 * HOUR)), failed: None }, 100 * HOUR, 3);
        assert_eq!((facts.place.as_deref(), facts.revision), (Some("a:/b/x.db"), Some(7)));
    }
}
