//! Looking: one request, to whichever endpoint answers first, and none that is waited for long.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Client as Connection, Error, GetOptions, Txn, TxnOp, TxnOpResponse};
use karmaform_model::{Ask, Diagnostic, Object, Type, Value};
use tokio::task::JoinSet;

use super::mark::{self, Mark};
use super::{is_checked, text};
use crate::client::{Client, within};
use crate::look::{is_permission_denied, reason};

/// The longest wait for an etcd that is reached straight from here: where only pods reach it, every plan would wait that long.
const LIMIT: Duration = Duration::from_secs(3);
/// And through another connection, which takes more steps.
const LIMIT_THROUGH: Duration = Duration::from_secs(6);
/// The next endpoint is tried beside the ones before when they have not answered for so long.
const STAGGER: Duration = Duration::from_millis(500);
/// So many marks are looked at.
const MOST_MARKS: i64 = 1000;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nobody answers; why, in a few words.
    Unreachable(String),
    /// It answers, and does not let us look.
    Denied,
}

/// What is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct There {
    pub(crate) cluster_id: String,
    /// The mark of the prefix itself.
    pub(crate) mark: Option<Mark>,
    /// Marks of prefixes above and below.
    pub(crate) around: Vec<Mark>,
    /// How many keys are below the prefix, and the first; only if asked for.
    pub(crate) keys: Option<(i64, String)>,
    /// A prefix above, of a Kubernetes API server; only if asked for.
    pub(crate) server_above: Option<String>,
}

/// Asks the endpoints one after the other, the next one soon if the one before does not answer; gives the first answer.
pub(crate) async fn ask<T: Send + 'static>(
    client: &Client,
    request: impl Fn(Connection) -> karmaform_model::BoxFuture<'static, Result<T, Error>> + Send + Sync + 'static,
) -> Result<T, Trouble> {
    let request = Arc::new(request);
    let mut running = JoinSet::new();
    for (name, i) in client.names().map(str::to_owned).zip(0u32..) {
        let (client, request) = (client.clone(), Arc::clone(&request));
        running.spawn(async move {
            tokio::time::sleep(STAGGER * i).await;
            let connection = client.open(&name).await.map_err(|why| Trouble::Unreachable(format!("{name}: {why}")))?;
            within(request(connection)).await.map_err(|error| match is_permission_denied(&error) {
                true => Trouble::Denied,
                false => Trouble::Unreachable(format!("{name}: {}", reason(&error))),
            })
        });
    }
    let limit = if client.is_through() { LIMIT_THROUGH } else { LIMIT };
    let end = tokio::time::Instant::now() + limit + STAGGER * u32::try_from(running.len().saturating_sub(1)).unwrap_or_default();
    let mut last = Trouble::Unreachable("no endpoint".to_owned());
    loop {
        match tokio::time::timeout_at(end, running.join_next()).await {
            Ok(Some(Ok(Ok(answer)))) => return Ok(answer),
            Ok(Some(Ok(Err(trouble @ Trouble::Denied)))) => return Err(trouble),
            Ok(Some(Ok(Err(trouble)))) => last = trouble,
            Ok(Some(Err(_))) => {}
            Ok(None) => return Err(last),
            Err(_) => return Err(Trouble::Unreachable(format!("no answer within {} s", limit.as_secs()))),
        }
    }
}

/// One look, in one request. Keys are only counted if that matters: it costs the server more the more there are.
pub(crate) async fn look(client: &Client, prefix: &str, counts: bool) -> Result<There, Trouble> {
    let wanted = prefix.to_owned();
    ask(client, move |mut connection| {
        let prefix = wanted.clone();
        Box::pin(async move {
            let (first, last) = mark::range(mark::ROOT);
            let marks = GetOptions::new().with_range(last).with_limit(MOST_MARKS);
            let mut operations = vec![TxnOp::get(first, Some(marks))];
            let above = mark::above(&prefix);
            if counts {
                let (first, last) = mark::range(&prefix);
                operations.push(TxnOp::get(first, Some(GetOptions::new().with_range(last).with_limit(1).with_keys_only())));
                // Every Kubernetes API server has it.
                let namespace = |p: &&str| TxnOp::get(format!("{p}/namespaces/default"), Some(GetOptions::new().with_count_only()));
                operations.extend(above.iter().map(namespace));
            }
            let answer = connection.txn(Txn::new().and_then(operations)).await?;
            let cluster_id = answer.header().map(|h| format!("{:x}", h.cluster_id())).unwrap_or_default();
            let mut there = There { cluster_id, ..There::default() };
            for (i, response) in answer.op_responses().into_iter().enumerate() {
                let TxnOpResponse::Get(got) = response else { continue };
                match i {
                    0 => {
                        let marks = got.kvs().iter().filter_map(|kv| Mark::read(kv.key(), kv.value(), kv.mod_revision()));
                        let (own, others): (Vec<_>, Vec<_>) = marks.partition(|m| m.prefix == prefix);
                        there.mark = own.into_iter().next();
                        there.around = others.into_iter().filter(|m| mark::overlap(&m.prefix, &prefix)).collect();
                    }
                    1 => {
                        let key = got.kvs().first().map(|kv| String::from_utf8_lossy(kv.key()).into_owned()).unwrap_or_default();
                        there.keys = Some((got.count(), key));
                    }
                    _ if got.count() > 0 => there.server_above = above.get(i - 2).map(|p| (*p).to_owned()),
                    _ => {}
                }
            }
            Ok(there)
        })
    })
    .await
}

/// What is there, as an object; `None` if the prefix is free.
pub(crate) async fn observe(client: &Client, ask: &Ask) -> Result<Option<Object>, Diagnostic> {
    let Some(prefix) = text(&ask.identity, "prefix") else { return Ok(None) };
    if mark::problem(prefix).is_some() {
        return Ok(ask.known.clone());
    }
    let known = ask.known.as_ref();
    if known.is_some_and(|k| !is_checked(k)) {
        return Ok(ask.known.clone());
    }
    // What will be deleted is counted, for whoever has to say yes to it.
    let is_going = ask.wanted.is_none() && known.is_some_and(|k| text(k, "on_destroy") == Some("delete"));
    let seen = match look(client, prefix, known.is_none() || is_going).await {
        Ok(there) if known.is_some_and(|k| is_strange(&there, k)) => look(client, prefix, true).await,
        other => other,
    };
    match seen {
        Ok(there) => Ok(object(prefix, &there, known)),
        // It may be something that the same plan makes or repairs.
        Err(Trouble::Unreachable(_)) if client.is_through() => Ok(ask.known.clone()),
        Err(trouble) => Err(unchecked(client, prefix, &trouble)),
    }
}

/// Another etcd than before, or one whose mark is gone or another's.
fn is_strange(there: &There, known: &Object) -> bool {
    text(known, "cluster_id").is_some_and(|id| id != there.cluster_id)
        || there.mark.as_ref().is_none_or(|m| Some(m.uid.as_str()) != text(known, "owner_uid"))
}

fn object(prefix: &str, there: &There, known: Option<&Object>) -> Option<Object> {
    let null = || Value::null(Type::String);
    let (count, first) = there.keys.clone().unwrap_or_default();
    let is_ours = there.mark.as_ref().is_some_and(|m| Some(m.uid.as_str()) == known.and_then(|k| text(k, "owner_uid")));
    let is_same_etcd = known.and_then(|k| text(k, "cluster_id")) == Some(there.cluster_id.as_str());
    // Of a prefix that is ours, others are kept away by its mark.
    let overlaps: Vec<String> = if is_ours { Vec::new() } else { overlaps(there) };
    if there.mark.is_none() && count == 0 && overlaps.is_empty() && !is_same_etcd {
        return None;
    }
    let is_foreign = !is_ours && (there.mark.is_some() || (count > 0 && !is_same_etcd));
    let of_mark = |part: fn(&Mark) -> &str| there.mark.as_ref().map_or_else(null, |m| part(m).into());
    Some(Object::from([
        ("prefix".to_owned(), prefix.into()),
        ("owner".to_owned(), of_mark(|m| &m.owner)),
        ("owner_uid".to_owned(), of_mark(|m| &m.uid)),
        ("checked".to_owned(), true.into()),
        ("cluster_id".to_owned(), there.cluster_id.as_str().into()),
        ("foreign".to_owned(), is_foreign.into()),
        ("keys".to_owned(), there.keys.as_ref().map_or_else(|| Value::null(Type::Number), |(n, _)| (*n).into())),
        ("first_key".to_owned(), if first.is_empty() { null() } else { first.into() }),
        ("overlaps".to_owned(), Value::strings(overlaps)),
        ("is_left".to_owned(), (is_ours && there.mark.as_ref().is_some_and(|m| !m.left_by.is_empty())).into()),
        ("is_unfinished".to_owned(), (is_ours && there.mark.as_ref().is_some_and(|m| m.is_copy)).into()),
    ]))
}

/// What is above or below the prefix, in words.
pub(crate) fn overlaps(there: &There) -> Vec<String> {
    let marks = there.around.iter().map(|m| format!("{}, which belongs to {}", m.prefix, m.whose()));
    let is_marked = |p: &&String| there.around.iter().any(|m| m.prefix == **p);
    let server =
        there.server_above.iter().filter(|p| !is_marked(p)).map(|p| format!("{p}, where a Kubernetes API server keeps its objects"));
    marks.chain(server).collect()
}

/// That nobody could look: worth a warning, and no more. Where only pods reach an etcd, nothing else can be said.
fn unchecked(client: &Client, prefix: &str, trouble: &Trouble) -> Diagnostic {
    let why = match trouble {
        Trouble::Unreachable(why) => format!("It does not answer from here ({why})."),
        Trouble::Denied => "It does not let this certificate read more than its own part.".to_owned(),
    };
    let names: Vec<&str> = client.names().collect();
    let detail = format!("Whose the keys below {prefix} in the etcd at {} are can't be told. {why}", names.join(", "));
    Diagnostic::warning("A prefix in etcd that could not be looked at", detail)
        .with_hint("Make certain that nobody else keeps data below it, or run this where the etcd can be reached.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(uid: &str) -> Mark {
        Mark {
            prefix: "/a".to_owned(),
            owner: "ns/x".to_owned(),
            uid: uid.to_owned(),
            is_copy: false,
            came_by: String::new(),
            compared_at: 0,
            left_by: String::new(),
            revision: 3,
        }
    }

    #[test]
    fn what_is_there_is_told_by_what_is_remembered() {
        let known = |uid: &str, etcd: &str| Object::from([("owner_uid".to_owned(), uid.into()), ("cluster_id".to_owned(), etcd.into())]);
        let there = |mark: Option<Mark>, keys: i64| There {
            cluster_id: "c1".to_owned(),
            mark,
            keys: Some((keys, if keys > 0 { "/a/k".to_owned() } else { String::new() })),
            ..There::default()
        };
        for (there, known, expected) in [
            (there(None, 0), None, None),
            (there(None, 2), None, Some(true)),
            (there(Some(mark("u")), 0), None, Some(true)),
            (there(Some(mark("u")), 2), Some(known("u", "c1")), Some(false)),
            // Restored elsewhere from a snapshot, with its mark.
            (there(Some(mark("u")), 2), Some(known("u", "c0")), Some(false)),
            (there(Some(mark("v")), 2), Some(known("u", "c1")), Some(true)),
            // Somebody took the mark away; it is the same etcd.
            (there(None, 2), Some(known("u", "c1")), Some(false)),
            // The endpoints are another etcd's now.
            (there(None, 2), Some(known("u", "c0")), Some(true)),
            (there(None, 0), Some(known("u", "c0")), None),
        ] {
            let found = object("/a", &there, known.as_ref());
            assert_eq!(found.and_then(|o| o["foreign"].as_bool()), expected, "{there:?} {known:?}");
        }
    }

    #[test]
    fn what_does_not_count_is_told() {
        let known = Object::from([("owner_uid".to_owned(), "u".into()), ("cluster_id".to_owned(), "c1".into())]);
        let facts = |mark: Mark| {
            let there = There { cluster_id: "c1".to_owned(), mark: Some(mark), ..There::default() };
            let seen = object("/a", &there, Some(&known)).unwrap();
            ["is_left", "is_unfinished"].map(|name| seen[name].as_bool())
        };
        assert_eq!(facts(mark("u")), [Some(false), Some(false)]);
        assert_eq!(facts(Mark { left_by: "m1".to_owned(), ..mark("u") }), [Some(true), Some(false)]);
        assert_eq!(facts(Mark { is_copy: true, ..mark("u") }), [Some(false), Some(true)]);
        assert_eq!(facts(Mark { is_copy: true, left_by: "m1".to_owned(), ..mark("v") }), [Some(false), Some(false)], "somebody else's");
    }

    #[test]
    fn others_above_and_below_are_named() {
        let around = vec![Mark { prefix: "/a/b".to_owned(), owner: String::new(), ..mark("u") }];
        let there = There { around, server_above: Some("/registry".to_owned()), ..There::default() };
        let found = object("/a", &there, None).unwrap();
        let overlaps = found["overlaps"].as_items().unwrap();
        assert_eq!(overlaps[0].as_str(), Some("/a/b, which belongs to somebody whom its mark does not name"));
        assert_eq!(overlaps[1].as_str(), Some("/registry, where a Kubernetes API server keeps its objects"));
    }
}
