//! Looking at objects: one GET or LIST per kind and namespace, then what the server would make of what is wanted, if that is not there.

use std::collections::BTreeMap;

use futures::StreamExt;
use karmaform_model::{Ask, BoxFuture, Diagnostic, Object, Type, Value};
use serde_json::Value as Json;

use crate::act::{self, INVALID};
use crate::client::{Client, How, Place, Served};
use crate::cron;
use crate::exclusive;
use crate::exposed;
use crate::failure::{UNABLE, WEBHOOK};
use crate::fields;
use crate::known_place::known_place;
use crate::manifest;
use crate::membership_taints;
use crate::pods_by_hand;
use crate::question::{Question, question};
use crate::rights;
use crate::service;
use crate::shape::{respelled, same, trimmed};
use crate::surroundings::Surroundings;
use crate::twins;
use crate::unserved::unserved;
use crate::values::{by_name, object, secrets};
use crate::wait::health;

/// The namespace of namespaced objects whose manifest names none, as everywhere in Kubernetes.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

type Answer = Result<Option<Object>, Diagnostic>;

/// Permission to ask the server what it would make of something: a request with `dryRun`, which is a write to whoever audits. Only
/// `Provider::rehearse` gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rehearsal(());

impl Rehearsal {
    /// For `Provider::rehearse` alone.
    pub(crate) fn permitted() -> Self {
        Self(())
    }
}

/// Answers all asks, in their order.
pub(crate) async fn observe(client: &Client, asks: &[&Ask], rehearsal: Option<Rehearsal>) -> Vec<Answer> {
    let mut answers: Vec<Option<Answer>> = vec![None; asks.len()];
    let mut groups: BTreeMap<(String, String, String), Vec<Question>> = BTreeMap::new();
    for (index, ask) in asks.iter().enumerate() {
        let Some(question) = question(index, ask) else {
            let error = Diagnostic::error("Unreadable name of an object", "`object` is not of the form \"Kind.group/namespace/name\".");
            answers[index] = Some(Err(error));
            continue;
        };
        let version = question.wanted.as_ref().or(question.known.as_ref()).and_then(manifest::api_version);
        let version = version.map_or_else(|| format!("{}/", question.name.group), str::to_owned);
        groups.entry((version, question.name.kind.clone(), question.name.namespace.clone())).or_default().push(question);
    }
    let at_once = client.at_once().await;
    let surroundings = Surroundings::of(groups.values().flatten());
    let looks = groups.into_iter().map(|(group, questions)| -> BoxFuture<'_, _> { Box::pin(look(client, group, questions)) });
    let looks = futures::stream::iter(looks.collect::<Vec<_>>()).buffered(at_once).collect::<Vec<Vec<Seen>>>();
    let (seen, surroundings) = futures::join!(looks, surroundings.with_pods(client, at_once));
    let surroundings = &surroundings;
    let tells = seen.into_iter().flatten().map(|seen| -> BoxFuture<'_, _> {
        Box::pin(async move {
            let index = seen.question.index;
            match seen {
                Seen { question, found: Ok(Some((place, None))) } => match absent(client, &place, &question, rehearsal).await {
                    Absent::Refused(error) => (index, Err(*error), None),
                    Absent::Unproven => (index, Ok(None), Some(place)),
                    Absent::Makeable => (index, Ok(None), None),
                },
                seen => (index, tell(client, seen, (surroundings, rehearsal)).await, None),
            }
        })
    });
    let told: Vec<(usize, Answer, Option<Place>)> = futures::stream::iter(tells.collect::<Vec<_>>()).buffered(at_once).collect().await;
    let unproven: Vec<&Place> = told.iter().filter_map(|(.., place)| place.as_ref()).collect();
    // Whoever made another server may do anything there.
    let lacking = if client.is_through() || rehearsal.is_none() { None } else { rights::to_make(client, &unproven).await };
    for (index, answer, place) in told {
        answers[index] = Some(match &lacking {
            Some(error) if place.is_some() => Err(error.clone()),
            _ => answer,
        });
    }
    let lost = || Err(Diagnostic::error("An object could not be looked at", "Asking for it ended before there was an answer."));
    answers.into_iter().map(|a| a.unwrap_or_else(lost)).collect()
}

/// What was found for a question: where it would be (nothing if its kind is not served), and what is there.
struct Seen {
    question: Question,
    found: Result<Option<(Place, Option<Json>)>, Diagnostic>,
}

async fn look(client: &Client, (version, kind, namespace): (String, String, String), questions: Vec<Question>) -> Vec<Seen> {
    let all = |found: Result<Option<(Place, Option<Json>)>, Diagnostic>, questions: Vec<Question>| {
        questions.into_iter().map(|question| Seen { question, found: found.clone() }).collect()
    };
    let found = match questions.iter().any(|q| q.wanted.is_some()) {
        true => place(client, &version, &kind, &namespace).await,
        false => known_place(client, &version, &kind, &namespace).await,
    };
    let place = match found {
        Ok(Some(place)) => place,
        Ok(None) => return all(Ok(None), questions),
        Err(error) => return all(Err(error), questions),
    };
    let mut list = None;
    if questions.len() > 1 || questions.iter().any(|q| !q.unique.is_empty()) {
        match client.list(&place).await {
            Ok(items) => {
                list = Some(by_name(items));
            }
            // Who may not list may still get.
            Err(failure) if failure.code() == Some(403) => {}
            Err(failure) if failure.is_unserved() => return all(Ok(None), questions),
            Err(failure) => return all(Err(failure.diagnostic(client.place(), &place.call("list", ""), &[])), questions),
        }
    }
    let twins = match &list {
        Some(list) if questions.iter().any(|q| !q.unique.is_empty()) => twins::of(&questions, list),
        _ => questions.iter().map(|_| None).collect(),
    };
    let mut seen = Vec::with_capacity(questions.len());
    for (question, twin) in questions.into_iter().zip(twins) {
        if let Some(error) = twin {
            seen.push(Seen { question, found: Err(error) });
            continue;
        }
        let name = &question.name.name;
        let live = match &list {
            // Not taken out: two may ask for the same.
            Some(list) => Ok(list.get(name).cloned()),
            None => client.get(&place, name).await.map_err(|f| f.diagnostic(client.place(), &place.call("get", name), &[])),
        };
        seen.push(Seen { question, found: live.map(|live| Some((place.clone(), live))) });
    }
    seen
}

/// Where objects of a kind are; none if the server does not serve it. `version` is `apps/v1`, or `apps/` for the preferred one.
pub(crate) async fn place(client: &Client, version: &str, kind: &str, namespace: &str) -> Result<Option<Place>, Diagnostic> {
    let told = |failure: crate::failure::Failure| {
        failure.diagnostic(client.place(), &crate::failure::Call { resource: "API groups".into(), ..crate::failure::Call::none() }, &[])
    };
    let api_version = match version.strip_suffix('/') {
        Some(group) => match client.preferred(group).await.map_err(told)? {
            Some(version) => version,
            None => return Ok(None),
        },
        None => version.to_owned(),
    };
    let Some(served) = client.kind(&api_version, kind).await.map_err(told)? else { return Ok(None) };
    Ok(Some(located(api_version, served, namespace)))
}

/// The namespace of what names this one.
pub(crate) fn inside(namespace: &str) -> &str {
    if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace }
}

fn located(api_version: String, served: Served, namespace: &str) -> Place {
    let namespace = served.namespaced.then(|| inside(namespace).to_owned());
    Place { api_version, served, namespace }
}

/// What is known of something that is not there.
enum Absent {
    Refused(Box<Diagnostic>),
    /// The server would make it; or nobody wants it.
    Makeable,
    /// The server can't tell yet.
    Unproven,
}

async fn absent(client: &Client, place: &Place, question: &Question, rehearsal: Option<Rehearsal>) -> Absent {
    match &question.wanted {
        None => Absent::Makeable,
        Some(wanted) if wanted.is_wholly_known() => match dry_run(client, place, question, (wanted, rehearsal)).await {
            Dry::Refused { error, .. } => Absent::Refused(error),
            Dry::Made(_) | Dry::Immutable(_) => Absent::Makeable,
            Dry::Untold => Absent::Unproven,
        },
        Some(_) => Absent::Unproven,
    }
}

async fn tell(client: &Client, seen: Seen, (surroundings, rehearsal): (&Surroundings, Option<Rehearsal>)) -> Answer {
    let Seen { question, found } = seen;
    let Some((place, Some(live))) = found? else {
        return if question.expects_kind { Err(unserved(client, &question).await) } else { Ok(None) };
    };
    // Nothing can be planned for what is in it. Who only looks sees that it goes.
    let is_planned = question.wanted.is_some() && rehearsal.is_some();
    if is_planned && place.served.kind == "Namespace" && live["metadata"]["deletionTimestamp"].is_string() {
        return Err(act::leaving(&question.name.name, &live));
    }
    let owned = fields::ours(&live).or_else(|| {
        let manifest = question.known.as_ref().or(question.wanted.as_ref()).filter(|_| fields::is_untracked(&live))?;
        Some(fields::of_manifest(&manifest::request(manifest)))
    });
    let is_ours = question.is_known || owned.is_some();
    let mut told = object([
        ("object", question.name.to_string().into()),
        ("uid", live["metadata"]["uid"].as_str().unwrap_or_default().into()),
        ("foreign", (!is_ours).into()),
        ("adopted", Value::null(Type::Bool)),
        ("immutable", Value::null(Type::String)),
        ("ready", Value::null(Type::Bool)),
        ("problem", Value::null(Type::String)),
        ("care", Value::strings(care(&place, &live).into_iter().chain(surroundings.strangers(&place, &question, &live)))),
        ("missed", cron::missed(&place.served.kind, &live).map_or_else(|| Value::null(Type::String), Value::from)),
        ("unlisted", if surroundings.hides_pods(&place, question.exclusive) { true.into() } else { Value::null(Type::Bool) }),
    ]);
    told.extend(service::FACTS.map(str::to_owned).into_iter().zip(service::facts(&place, &live, question.memory.as_ref())));
    told.insert(exposed::EXPOSED.to_owned(), exposed::read(question.asked.as_ref(), &live));
    if let Some(health) = health(&place.served.kind, &live) {
        told.insert("ready".to_owned(), health.is_none().into());
        told.insert("problem".to_owned(), health.map_or_else(|| Value::null(Type::String), Value::from));
    }
    if !is_ours && question.shared {
        // Others make of it what they like; of what is remembered nothing drifts.
        told.insert("adopted".to_owned(), true.into());
        let manifest = question.known.as_ref().or(question.wanted.as_ref());
        told.extend(manifest.map(|m| ("manifest".to_owned(), m.clone())));
        return Ok(Some(told));
    }
    let owned = owned.unwrap_or_else(|| serde_json::json!({ ".": {} }));
    let (shown, immutable) = shown(client, &place, &question, (&live, &owned, is_ours), rehearsal).await?;
    let others = others(&place, &question, &live, rehearsal);
    let sealed = others.as_ref().filter(|o| rehearsal.is_some() && exclusive::is_sealed(o, &live));
    let sealed = sealed.map(|_| "field is immutable when `immutable` is set".to_owned());
    told.extend(immutable.or(sealed).map(|message| ("immutable".to_owned(), message.into())));
    let shown = match others {
        Some(others) => dressed(exclusive::shown_in(&manifest::request(&shown), &live, &others), &question, &place),
        None => shown,
    };
    let altered = if is_ours { surroundings.altered(&place, &question, &live) } else { Vec::new() };
    let shown = match altered.is_empty() {
        true => shown,
        false => dressed(pods_by_hand::shown_in(manifest::request(&shown), &altered), &question, &place),
    };
    told.insert("manifest".to_owned(), shown);
    Ok(Some(told))
}

/// What an object is in need of though it is as it should be.
fn care(place: &Place, live: &Json) -> Vec<String> {
    let since = live["metadata"]["deletionTimestamp"].as_str();
    let going = since.map(|since| format!("somebody deletes it, since {since}: it is gone as soon as nobody needs it any more"));
    service::care(place, live).into_iter().chain(membership_taints::cordoned(place, live)).chain(going).collect()
}

/// What others set in what is to be ours alone.
fn others(place: &Place, question: &Question, live: &Json, rehearsal: Option<Rehearsal>) -> Option<Json> {
    // Who plans compares with what is wanted by now; who only looks, with what was made.
    let wanted = question.wanted.as_ref().filter(|w| w.is_wholly_known());
    let planned = wanted.filter(|_| rehearsal.is_some());
    let manifest = planned.or(question.known.as_ref()).or(wanted).filter(|_| question.exclusive)?;
    let is_ours = question.is_known || fields::ours(live).is_some();
    exclusive::others(&place.served.kind, live, &manifest::request(manifest)).filter(|_| is_ours)
}

/// Of what is there what is ours, as the state or the configuration spell it; and why what is wanted can't be made of it in place.
async fn shown(
    client: &Client,
    place: &Place,
    question: &Question,
    (live, owned, is_ours): (&Json, &Json, bool),
    rehearsal: Option<Rehearsal>,
) -> Result<(Value, Option<String>), Diagnostic> {
    // What somebody changed and put back is not ours by the account any more, and as it should be.
    let own = |request: &Json| if is_ours { fields::union(owned, &fields::of_wanted(request, live)) } else { owned.clone() };
    let mine = |request: &Json| fields::content(&fields::project(live, &fields::with_empty(&own(request), request)));
    let is = |manifest: &&Value| {
        let request = manifest::request(manifest);
        same(&fields::content(&request), &mine(&request))
    };
    let remembered = question.known.as_ref().filter(|k| k.is_wholly_known()).filter(is);
    let Some(wanted) = question.wanted.as_ref().filter(|w| w.is_wholly_known()) else {
        let like = question.known.as_ref().or(question.wanted.as_ref()).map_or(Json::Null, manifest::request);
        return Ok((remembered.cloned().unwrap_or_else(|| dressed(mine(&like), question, place)), None));
    };
    if remembered == Some(wanted) || is(&wanted) {
        // For who plans there is nothing to do, whatever is remembered.
        let shown = remembered.filter(|_| rehearsal.is_none()).unwrap_or(wanted);
        return Ok((shown.clone(), None));
    }
    let request = manifest::request(wanted);
    let mut covered = fields::union(owned, &fields::of_wanted(&request, live));
    let (mut made, mut immutable) = (None, None);
    if is_ours || question.force {
        let dry = dry_run(client, place, question, (wanted, rehearsal)).await;
        // It can't be told what the server makes of it once that is taken away.
        let dry = match dry {
            Dry::Refused { code: Some(INVALID), .. }
                if fields::dropped(owned, &request, live).is_some() || others(place, question, live, rehearsal).is_some() =>
            {
                Dry::Untold
            }
            other => other,
        };
        match dry {
            Dry::Made(result) => {
                covered = fields::union(owned, &fields::ours(&result).unwrap_or(covered));
                made = Some(result);
            }
            Dry::Immutable(message) => immutable = Some(message),
            Dry::Refused { error, .. } => return Err(*error),
            Dry::Untold => {}
        }
    }
    let part = |whole: &Json| fields::content(&fields::project(whole, &covered));
    let shown = match (remembered, &made) {
        (_, Some(made)) if is_same_object(made, live) => wanted.clone(),
        (Some(remembered), _) => remembered.clone(),
        (None, Some(made)) => {
            let spelled = respelled(&part(live), &fields::content(&request), &part(made));
            let is = |manifest: &&Value| fields::content(&manifest::request(manifest)) == spelled;
            let found = question.known.as_ref().filter(is).or(Some(wanted).filter(is)).cloned();
            found.unwrap_or_else(|| dressed(spelled, question, place))
        }
        (None, None) if rehearsal.is_none() => {
            let like = question.known.as_ref().unwrap_or(wanted);
            dressed(trimmed(&part(live), &fields::content(&manifest::request(like))), question, place)
        }
        (None, None) => dressed(part(live), question, place),
    };
    Ok((shown, immutable))
}

/// As a manifest: with what names the object, as the state or the configuration spell it.
fn dressed(mut content: Json, question: &Question, place: &Place) -> Value {
    let like: Vec<&Value> = question.known.iter().chain(&question.wanted).collect();
    let version = like.first().and_then(|v| manifest::api_version(v)).unwrap_or(&place.api_version);
    content["apiVersion"] = version.into();
    content["kind"] = question.name.kind.as_str().into();
    content["metadata"]["name"] = question.name.name.as_str().into();
    if !question.name.namespace.is_empty() {
        content["metadata"]["namespace"] = question.name.namespace.as_str().into();
    }
    manifest::shown(content, &like)
}

enum Dry {
    Made(Json),
    /// In place it can't be.
    Immutable(String),
    Refused {
        error: Box<Diagnostic>,
        code: Option<u16>,
    },
    /// The server can't tell: a namespace or a kind is not there yet, or a webhook takes no dry runs.
    Untold,
}

async fn dry_run(client: &Client, place: &Place, question: &Question, (wanted, rehearsal): (&Value, Option<Rehearsal>)) -> Dry {
    let Some(Rehearsal(())) = rehearsal else { return Dry::Untold };
    let how = How { force: question.force, dry_run: true };
    let hidden = secrets(question.known.iter().chain([wanted]));
    let failure = match client.apply(place, &question.name.name, &manifest::request(wanted), how).await {
        Ok(made) => return Dry::Made(made),
        Err(failure) => failure,
    };
    if failure.is_unserved() || failure.code() == Some(404) || failure.takes_no_dry_run() {
        return Dry::Untold;
    }
    if let Some(error) = service::taken(client, place, &question.name.name, &failure).await {
        return Dry::Refused { code: None, error: Box::new(error) };
    }
    match failure.immutable(&hidden) {
        Some(message) => Dry::Immutable(message),
        None => match act::told(client, place, ("patch", &question.name.name), &failure, &hidden).await {
            // Webhooks of a server that karmaform manages may be what this very plan repairs.
            error if client.is_through() && (error.summary == UNABLE || error.summary == WEBHOOK) => Dry::Untold,
            error => Dry::Refused { code: failure.code(), error: Box::new(error) },
        },
    }
}

/// True if nothing would change but what the server counts.
fn is_same_object(a: &Json, b: &Json) -> bool {
    let stripped = |object: &Json| {
        let mut object = fields::content(object);
        if let Some(Json::Object(metadata)) = object.get_mut("metadata") {
            for counted in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(counted);
            }
        }
        object
    };
    stripped(a) == stripped(b)
}
