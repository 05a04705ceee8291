//! `etcd_member`: a member as the cluster itself knows it. It is made by starting it; this type reads its ids and its health.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan, same,
};

use crate::care;
use crate::client::Client;
use crate::look::{Known, Look, REFUSED, look, look_at};

/// How often members that are in an election are looked at once more, a second apart.
const ELECTION: usize = 3;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "A member of an etcd cluster, as the cluster knows it. Starting and stopping it is its unit's part.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("name", Type::String, "The member's name.").identity(),
            Attribute::optional(
                "restoration",
                Type::String,
                "The restoration that its data is from; with another one it is another member.",
            ),
            Attribute::optional(
                "defragment",
                Type::Bool,
                "Whether a plan is to give its free pages back where they are more than those in use, and to end its alarm NOSPACE.",
            )
            .write_only(),
            Attribute::optional(
                "minor",
                Type::Number,
                "With `etcd_cluster`: the second number of the version that it is to run; where its cluster was told to go down to a lower one, a plan gives that up.",
            )
            .write_only(),
            Attribute::optional("peer", Type::String, "With `etcd_cluster`: where the others are to reach it; that they are told otherwise is told.").write_only(),
            Attribute::computed("member_id", Type::String, "The member's id, in hexadecimal digits as `etcdctl` shows it."),
            Attribute::computed("cluster_id", Type::String, "The cluster's id, in hexadecimal digits."),
            Attribute::computed("peer_url", Type::String, "Where the other members reach it; several are separated by commas."),
            Attribute::computed("client_url", Type::String, "Where clients reach it; several are separated by commas."),
            Attribute::computed(
                "nonvoter",
                Type::Bool,
                "It has no vote: a learner that was not promoted, or one that the cluster has removed.",
            ),
            Attribute::computed("healthy", Type::Bool, "A linearizable read went through it just now.").volatile(),
            Attribute::computed("leader", Type::Bool, "It is the leader just now.").volatile(),
            Attribute::computed("version", Type::String, "The version that it runs.").volatile(),
            Attribute::computed("goes_down_to", Type::Number, "The second number of the version that its cluster was told to go down to.")
                .volatile(),
            Attribute::computed("alarms", Type::list(Type::String), "Its alarms: `NOSPACE`, `CORRUPT`; at one member also those of members that do not answer, or are gone.").volatile(),
            Attribute::computed("size_bytes", Type::Number, "The size of its database, in bytes.").volatile(),
            Attribute::computed("size_in_use_bytes", Type::Number, "What of that is not free, in bytes.").volatile(),
            Attribute::computed("care", Type::list(Type::String), "What it is in need of though it works, a sentence each.").volatile(),
            Attribute::computed("error", Type::String, "Why it is not healthy, in a few words.").volatile(),
            Attribute::computed("roster", Type::list(roster_entry()), "The members that it knows.").volatile(),
        ],
    )
    .through("cluster")
});

/// A member as another one knows it.
fn roster_entry() -> Type {
    Type::object([
        ("id", Type::String),
        ("name", Type::String),
        ("peer_urls", Type::list(Type::String)),
        ("learner", Type::Bool),
        ("started", Type::Bool),
    ])
}

/// The resource type `etcd_member`.
pub(crate) struct EtcdMember;

impl ResourceSpec for EtcdMember {
    fn name(&self) -> &'static str {
        "etcd_member"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    /// What does not vote is to be brought back into the cluster, with another id. What is restored has other ids, and is in another cluster. What needs
    /// room is changed though nothing that is kept of it differs.
    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let change = default_plan(&SCHEMA, before, wanted);
        let is_out = before.and_then(|b| b.get("nonvoter")).and_then(Value::as_bool) == Some(true);
        Ok(match change {
            Change::NoOp { object } if is_out && wanted.is_some() => {
                let mut after = object.clone();
                after.insert("nonvoter".to_owned(), false.into());
                after.insert("member_id".to_owned(), Value::unknown_not_null(Type::String));
                Change::Update { before: object, after }
            }
            Change::NoOp { object } if wanted.is_some_and(|w| is(w, "defragment")) && before.is_some_and(needs_room) => {
                Change::Update { before: object.clone(), after: object }
            }
            Change::NoOp { object } if wanted.zip(before).is_some_and(|(wanted, seen)| goes_too_far_down(wanted, seen)) => {
                Change::Update { before: object.clone(), after: object }
            }
            Change::Update { before, mut after } if is_restored(&before, &after) => {
                let ids = ["member_id", "cluster_id"].map(|name| (name.to_owned(), Value::unknown_not_null(Type::String)));
                after.extend(ids);
                Change::Update { before, after }
            }
            change => change,
        })
    }
}

fn is(object: &Object, name: &str) -> bool {
    object.get(name).and_then(Value::as_bool) == Some(true)
}

/// It works, and its cluster was told to go down to a version below the one that is wanted.
fn goes_too_far_down(wanted: &Object, seen: &Object) -> bool {
    let minor = |object: &Object, name: &str| object.get(name).and_then(Value::as_i64);
    is(seen, "healthy") && minor(seen, "goes_down_to").zip(minor(wanted, "minor")).is_some_and(|(to, wanted)| to < wanted)
}

/// It works, and has many free pages or none at all.
fn needs_room(seen: &Object) -> bool {
    let bytes = |name: &str| seen.get(name).and_then(Value::as_i64).unwrap_or(0);
    let alarms: Vec<&str> = seen.get("alarms").and_then(Value::as_items).unwrap_or_default().iter().filter_map(Value::as_str).collect();
    let is_fragmented = care::is_fragmented(bytes("size_bytes"), bytes("size_in_use_bytes"));
    is(seen, "healthy") && !alarms.contains(&"CORRUPT") && (is_fragmented || alarms.contains(&"NOSPACE"))
}

/// Its data is from another restoration. That a note of an old one goes changes nothing.
fn is_restored(before: &Object, after: &Object) -> bool {
    let of = |object: &Object| object.get("restoration").filter(|v| !v.is_null()).cloned();
    of(after).is_some_and(|now| !same(of(before).as_ref(), Some(&now)))
}

impl ResourceType<Client> for EtcdMember {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let answers = observe(client, &[ask]).await;
            answers.into_iter().next().unwrap_or(Ok(None))
        })
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(after) = change.after() else { return Ok(None) };
            let name = name_of(after)?;
            let seen = look(client, name).await;
            let trouble = match &seen {
                Ok(look) => look.trouble().or_else(|| look.hides_members().then(|| REFUSED.to_owned())),
                Err(why) => Some(why.clone()),
            };
            match (seen, trouble) {
                (Ok(look), None) => {
                    let mut object = after.clone();
                    object.extend(facts(&look));
                    object.extend(moment(&look));
                    object.insert("nonvoter".to_owned(), false.into());
                    Ok(Some(object))
                }
                (_, why) => Err(Diagnostic::error(
                    "An etcd member is not healthy",
                    format!(
                        "The ids of the member \"{name}\" of {} can only be read while it takes part in its cluster: {}.",
                        client.id(),
                        why.unwrap_or_default()
                    ),
                )
                .with_hint("Look at the log of its unit on its host with `journalctl`, then apply again.")
                .retryable()),
            }
        })
    }
}

fn name_of(object: &Object) -> Result<&str, Diagnostic> {
    object
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(|| Diagnostic::error("An etcd member without a name", "The name must be known before the member can be looked at."))
}

/// Looks at members of one cluster, all at once; then what they say of each other.
pub(crate) async fn observe(client: &Client, asks: &[&Ask]) -> Vec<Result<Option<Object>, Diagnostic>> {
    let names: Vec<Result<&str, Diagnostic>> = asks.iter().map(|ask| name_of(&ask.identity)).collect();
    let (mut looks, mut silent) = (BTreeMap::new(), BTreeMap::new());
    for (name, seen) in settled(client, &names).await {
        match seen {
            Ok(look) => drop(looks.insert(name, look)),
            Err(why) => drop(silent.insert(name, why)),
        }
    }
    // A connection by URLs alone knows no names, and so no strangers.
    let known = names.iter().flatten().copied().chain(client.names()).collect();
    let mut care = care::care(&looks, &known, client.quota());
    let orphaned = care::orphaned(&looks, &names.iter().flatten().copied().collect(), &known);
    if client.only_looks() {
        let (unlike, users) = tokio::join!(care::unlike(client, &looks), care::users(client, &looks));
        for (name, line) in unlike.into_iter().chain(users) {
            care.entry(name).or_default().push(line);
        }
    }
    let answers = asks.iter().zip(names).map(|(ask, name)| {
        let name = name?;
        match (looks.get(name), silent.get(name)) {
            (Some(look), _) => {
                let more = orphaned.iter().filter(|(at, _)| *at == name).flat_map(|(_, alarms)| alarms.iter().copied());
                Ok(seen(ask, look, care.remove(name).unwrap_or_default()).map(|object| with_alarms(object, more)))
            }
            (None, Some(why)) => Ok(unseen(ask, why, &looks, care.remove(name).unwrap_or_default())),
            (None, None) => Err(Diagnostic::error("A member could not be looked at", "Asking it ended before there was an answer.")),
        }
    });
    answers.collect()
}

/// Looks until what is seen is no election: members that answer, and none of which can be read. One takes about a second (etcd's default of its
/// `election-timeout`), and who looks in the middle of it would take a cluster that is well for one that has lost its majority.
async fn settled(client: &Client, names: &[Result<&str, Diagnostic>]) -> BTreeMap<String, Result<Look, String>> {
    let mut tries = ELECTION;
    loop {
        let looks = look_at(client, names.iter().flatten().map(|n| (*n).to_owned())).await;
        let answer = looks.values().filter(|l| l.is_ok()).count();
        let works = looks.values().flatten().any(|look| look.trouble().is_none());
        if works || tries == 0 || answer <= looks.len() / 2 || looks.len() == 1 {
            return looks;
        }
        tries -= 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn seen(ask: &Ask, look: &Look, care: Vec<String>) -> Option<Object> {
    let mut object = ask.identity.clone();
    // Without a quorum there is no member list, nor for whom etcd refuses; the ids that the state remembers are the better answer then.
    if look.read.is_ok() && !look.hides_members() {
        object.extend(facts(look));
    } else if ask.known.is_none() {
        return None;
    }
    object.extend(moment(look));
    object.insert("nonvoter".to_owned(), look.learner.into());
    let should = ask.wanted.as_ref().or(ask.known.as_ref()).and_then(|o| o.get("peer")?.as_str());
    // Where it was when it was looked at last: what the configuration says by now may be another place, where it is not.
    let was_there = |should: &&str| {
        ask.known.as_ref().and_then(|k| k.get("peer_url")?.as_str()).is_some_and(|known| known.split(',').any(|url| url == *should))
    };
    let elsewhere = should.filter(was_there).and_then(|should| elsewhere(look, should));
    object.insert("care".to_owned(), Value::strings(care.into_iter().chain(elsewhere)));
    Some(object)
}

/// The same with alarms of others that nobody else tells of.
fn with_alarms<'a>(mut object: Object, more: impl Iterator<Item = &'a str>) -> Object {
    let own = object.get("alarms").and_then(Value::as_items).unwrap_or_default().iter().filter_map(Value::as_str);
    let all: BTreeSet<String> = own.map(str::to_owned).chain(more.map(str::to_owned)).collect();
    object.insert("alarms".to_owned(), Value::strings(all));
    object
}

/// What is wrong if its cluster has it at other URLs alone than where it is.
fn elsewhere(look: &Look, should: &str) -> Option<String> {
    let urls = look.own().map(|own| &own.peer_urls).filter(|urls| !urls.is_empty() && !urls.iter().any(|url| url == should))?;
    let put_back = format!("etcdctl member update {:x} --peer-urls={should}", look.member_id);
    Some(format!("its cluster has it at {}, and it is at {should}: `{put_back}` says so", urls.join(",")))
}

/// A member that does not answer is down, not gone: what the state knows stays, with `healthy` false. One that was never known and does not
/// answer is not there yet.
fn unseen(ask: &Ask, why: &str, others: &BTreeMap<String, Look>, care: Vec<String>) -> Option<Object> {
    let known = ask.known.as_ref()?;
    let is_removed = known.get("member_id").and_then(Value::as_str).is_some_and(|id| care::is_removed(id, others));
    let why = if is_removed { "its cluster has removed it" } else { why };
    let mut object = ask.identity.clone();
    if is_removed {
        object.insert("nonvoter".to_owned(), true.into());
    }
    object.insert("healthy".to_owned(), false.into());
    object.insert("leader".to_owned(), false.into());
    object.insert("error".to_owned(), why.into());
    object.insert("care".to_owned(), Value::strings(care));
    Some(object)
}

fn facts(look: &Look) -> Object {
    let own = look.own();
    let urls = |urls: Option<&Vec<String>>| Value::from(urls.map(|u| u.join(",")).unwrap_or_default());
    Object::from([
        ("member_id".to_owned(), hexadecimal(look.member_id)),
        ("cluster_id".to_owned(), hexadecimal(look.cluster_id)),
        ("peer_url".to_owned(), urls(own.map(|m| &m.peer_urls))),
        ("client_url".to_owned(), urls(own.map(|m| &m.client_urls))),
    ])
}

fn moment(look: &Look) -> Object {
    let trouble = look.trouble();
    let alarms = look.alarms.iter().filter(|(member, _)| *member == look.member_id).map(|(_, name)| name);
    Object::from([
        ("healthy".to_owned(), trouble.is_none().into()),
        ("leader".to_owned(), (look.leader != 0 && look.leader == look.member_id).into()),
        ("version".to_owned(), look.version.as_str().into()),
        ("goes_down_to".to_owned(), look.goes_down_to.map_or_else(|| Value::null(Type::Number), |minor| i64::from(minor).into())),
        ("alarms".to_owned(), Value::strings(alarms)),
        ("size_bytes".to_owned(), look.size.into()),
        ("size_in_use_bytes".to_owned(), look.in_use.into()),
        ("care".to_owned(), Value::strings(Vec::<String>::new())),
        ("error".to_owned(), trouble.map_or_else(|| Value::null(Type::String), Value::from)),
        ("roster".to_owned(), roster(look)),
    ])
}

fn roster(look: &Look) -> Value {
    let entry = |known: &Known| {
        Value::object([
            ("id", hexadecimal(known.id)),
            ("name", known.name.as_str().into()),
            ("peer_urls", Value::strings(&known.peer_urls)),
            ("learner", known.learner.into()),
            ("started", known.has_started().into()),
        ])
    };
    Value::list(roster_entry(), look.members.iter().map(entry).collect())
}

fn hexadecimal(id: u64) -> Value {
    format!("{id:x}").into()
}

#[cfg(test)]
mod tests;
