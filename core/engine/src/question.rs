//! The questions: which things can be asked for with what is known so far, and through which connection. Pure; asks nobody.

use std::collections::BTreeMap;

use karmaform_model::{Ask, Connection, Kind, ModeOfPlan, Object, Schema, Status, Value, to_json};

use crate::before::Before;
use crate::options::Options;
use crate::pool::connection_key;
use crate::values::is_wholly_known;
use crate::wanted::connection_id;

/// A question about one managed resource.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) node: usize,
    pub(crate) provider: String,
    pub(crate) connection: Option<(&'static str, Value)>,
    /// Names the client: equal ones are asked together.
    pub(crate) client: String,
    /// Names the question.
    pub(crate) key: String,
    pub(crate) ask: Ask,
}

/// A data source that can be read now.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) node: usize,
    pub(crate) arguments: Object,
}

/// Whether and what to ask.
pub(crate) enum Question {
    /// Nothing, now or later.
    Nothing,
    /// Nothing yet: what names it, or the way to it, may be known after the next answers.
    Later,
    /// This.
    Ask(Box<Look>),
}

/// What the instance's surroundings say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// All that it needs has its final answer.
    pub(crate) settled: bool,
    /// Something that it needs could not be looked at.
    pub(crate) failed: bool,
    /// It is to be taken over, so whatever is there is no stranger's.
    pub(crate) importing: bool,
}

/// Ways to things, by provider and what they reach: a connection in the state may have old credentials, one in the configuration has not.
pub(crate) type Ways = BTreeMap<(String, String), Value>;

/// Remembers a connection that the configuration gave.
pub(crate) fn remember_way(ways: &mut Ways, provider: &str, connection: &Value) {
    if let Some(id) = connection_id(connection).filter(|_| connection.is_wholly_known()) {
        ways.entry((provider.to_owned(), to_json(id).to_string())).or_insert_with(|| connection.clone());
    }
}

/// The same connection with fresh credentials, if the configuration has some.
pub(crate) fn fresh(ways: &Ways, provider: &str, connection: &Value) -> Value {
    let found = connection_id(connection).and_then(|id| ways.get(&(provider.to_owned(), to_json(id).to_string())));
    found.map_or_else(|| connection.clone(), |fresh| with_old_ends(fresh, connection))
}

/// A connection to several things by name (the members of a cluster) goes on leading to those that the configuration does not name any more:
/// who looks for one of them, or takes it away, has to reach it.
fn with_old_ends(fresh: &Value, stored: &Value) -> Value {
    let (Kind::Object(new), Some(old)) = (&fresh.kind, stored.as_entries()) else { return fresh.clone() };
    let ends = |value: &Value| value.as_entries().filter(|e| !e.is_empty() && e.values().all(|v| v.as_entries().is_some())).cloned();
    let mut merged = new.clone();
    for (name, value) in &mut merged {
        let (Some(mut all), Some(before)) = (ends(value), old.get(name).and_then(ends)) else { continue };
        let gone: Vec<_> = before.into_iter().filter(|(end, _)| !all.contains_key(end)).collect();
        if !gone.is_empty() {
            all.extend(gone);
            *value = Value::from(all).secret_if(value.secret);
        }
    }
    Value::from(merged).secret_if(fresh.secret)
}

/// The question about one instance. What is managed is asked for under the name that the state has for it, since that is the thing a
/// change would start from; the way to it is the configuration's if that leads to the same place.
pub(crate) fn question(
    node: usize,
    (provider, resource_type, schema): (&str, &str, &Schema),
    before: &Before,
    wanted: Option<&Object>,
    circumstances: Circumstances,
    (ways, options): (&Ways, &Options),
) -> Question {
    let is_trusted = matches!(before.status, Some(Status::Ready | Status::Tainted));
    let unasked = match before.status {
        _ if schema.state_only || schema.tries && !options.tries => true,
        None => options.mode != ModeOfPlan::Normal || !options.refresh,
        Some(_) => is_trusted && !options.refresh,
    };
    if unasked {
        return Question::Nothing;
    }
    let not_yet = if circumstances.settled { Question::Nothing } else { Question::Later };
    let Some(identity) = identity(schema, before, wanted) else { return not_yet };
    let connection = match schema.connection {
        Connection::Attribute(name) => {
            let known = |object: Option<&Object>| object?.get(name).filter(|v| v.is_wholly_known() && !v.is_null()).cloned();
            let (wanted_way, stored) = (known(wanted), known(before.memory.as_ref()));
            let way = match (wanted_way, stored) {
                (Some(way), None) => Some(way),
                (Some(way), Some(stored)) if connection_id(&way) == connection_id(&stored) => Some(way),
                (None, None) => None,
                (None, Some(_)) if wanted.is_some() && !circumstances.settled => return Question::Later,
                // The way is known to be broken; one more timeout would tell nothing new.
                (None, Some(_)) if circumstances.failed && options.mode == ModeOfPlan::Normal => return Question::Nothing,
                (_, Some(stored)) => Some(fresh(ways, provider, &stored)),
            };
            match way {
                Some(way) => Some((name, way)),
                None => return not_yet,
            }
        }
        _ => None,
    };
    // Of what an earlier run left open only what is seen counts, but a thing that nothing outside names can't be found without the memory.
    let known = match before.status {
        None | Some(Status::Unfinished) if circumstances.importing => Some(identity.clone()),
        _ => before.memory.clone().filter(|_| is_trusted || identity.is_empty()),
    };
    let ask = Ask {
        resource_type: resource_type.to_owned(),
        identity,
        known,
        wanted: wanted.filter(|_| options.mode == ModeOfPlan::Normal).cloned(),
        begun: before.status == Some(Status::Unfinished),
    };
    let client = connection_key(provider, &entries(connection.as_ref().map(|(_, v)| v)));
    let mut key = client.clone();
    for (name, value) in &ask.identity {
        key.push_str(&format!("\0{name}={}", to_json(value)));
    }
    Question::Ask(Box::new(Look { node, provider: provider.to_owned(), connection, client, key, ask }))
}

fn identity(schema: &Schema, before: &Before, wanted: Option<&Object>) -> Option<Object> {
    let stored = before.memory.as_ref().map(|m| schema.identity(m));
    let wanted = wanted.map(|w| schema.identity(w)).filter(is_wholly_known);
    let names_something = |identity: &Object| identity.values().any(|v| !v.is_null());
    match before.status {
        Some(Status::Ready | Status::Tainted) => stored,
        // What was planned but not known yet was stored as null.
        Some(Status::Unfinished) => {
            let stored = stored?;
            if stored.values().all(|v| !v.is_null()) { Some(stored) } else { wanted.filter(names_something) }
        }
        None => wanted.filter(names_something),
    }
}

/// A connection value as the object that a provider opens; empty if there is none.
pub(crate) fn entries(connection: Option<&Value>) -> Object {
    connection.and_then(Value::as_entries).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_way_leads_to_those_that_are_not_named_any_more() {
        let cluster = |key: &str, members: &[&str]| {
            let end = |name: &&str| ((*name).to_owned(), Value::object([("via", format!("{key} of {name}").as_str().into())]));
            let members: Object = members.iter().map(end).collect();
            Value::object([
                ("id", "c".into()),
                ("key", key.into()),
                ("members", members.into()),
                ("options", Value::object([("x", key.into())])),
            ])
        };
        let ways = Ways::from([(("etcd".to_owned(), "\"c\"".to_owned()), cluster("new", &["a"]))]);
        let way = fresh(&ways, "etcd", &cluster("old", &["a", "b"]));
        let via = |name: &str| way.get("members").and_then(|m| m.get(name)?.get("via")?.as_str().map(str::to_owned));
        assert_eq!((via("a").as_deref(), via("b").as_deref()), (Some("new of a"), Some("old of b")));
        assert_eq!(way.get("key").and_then(Value::as_str), Some("new"));
        assert_eq!(way.get("options"), cluster("new", &[]).get("options"));
        assert_eq!(fresh(&Ways::new(), "etcd", &cluster("old", &["b"])), cluster("old", &["b"]));
    }
}
