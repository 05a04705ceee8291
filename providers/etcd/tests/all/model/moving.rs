//! What moving a directory does on a host.

use std::collections::BTreeSet;

use karmaform_model::{Change, Object, Value};

use super::host::Host;
use super::process::Process;
use super::things;

/// Where data is that has left a place and has not arrived anywhere.
fn left(place: &str) -> String {
    format!("{place}.karmaform-moved")
}

/// Moving was begun, and what was to do it was killed; `is_noted`: when the host had taken note of it; `has_left`: when the data had left its place, and
/// `has_arrived` when it was at the new one.
pub(crate) fn cut_off(host: &mut Host, change: &Change, is_noted: bool, has_left: bool, has_arrived: bool) {
    let path = |object: Option<&Object>| object.and_then(|o| things::identity("ssh_directory", o));
    // What had left is put back before anything else.
    let was_at = host.data_at.as_ref().map(|at| at.strip_suffix(".karmaform-moved").unwrap_or(at).to_owned());
    if is_noted {
        host.data_at.clone_from(&was_at);
    }
    let from = was_at.or_else(|| path(change.before()));
    let Some((to, from)) = path(change.after()).zip(from).filter(|(to, from)| to != from) else { return };
    if has_left {
        host.process = Process::Stopped;
        host.data_at = Some(if has_arrived { to.clone() } else { left(&from) });
    }
    if is_noted {
        note(host, &to, &from);
    }
}

fn note(host: &mut Host, one: &str, other: &str) {
    host.moving.insert(one.to_owned(), other.to_owned());
    host.moving.insert(other.to_owned(), one.to_owned());
}

/// Brings what is in it from wherever it may be.
pub(crate) fn carry(host: &mut Host, change: &Change) -> Result<(), String> {
    let is_one = |after: &&Object| after.get("moves").and_then(Value::as_bool) == Some(true);
    let Some(after) = change.after().filter(is_one) else { return Ok(()) };
    let path = |object: &Object| things::identity("ssh_directory", object);
    let to = path(after).unwrap_or_default();
    let told: Vec<String> = after
        .get("moves_from")
        .and_then(Value::as_items)
        .unwrap_or_default()
        .iter()
        .filter_map(|place| place.as_str().map(str::to_owned))
        .collect();
    let mut is_needed = !told.is_empty();
    let mut places: Vec<String> = change.before().and_then(path).into_iter().chain(told).collect();
    // What was begun was not with nothing.
    is_needed |= !places.is_empty() && host.moving.contains_key(&to);
    // The host knows what is under way between places, and where earlier moves brought what is not there.
    for n in 0.. {
        let Some(place) = places.get(n).cloned() else { break };
        let under_way = host.moving.get(&place).cloned().into_iter();
        let named = host.moving.iter().filter(|(_, other)| **other == place).map(|(one, _)| one.clone());
        let brought = host.moved.get(&place).filter(|_| !host.has_data_at(&place)).cloned();
        let linked: BTreeSet<String> = under_way.chain(named).chain(brought).filter(|other| !places.contains(other)).collect();
        places.extend(linked);
    }
    places.retain(|place| *place != to);
    // What left a place and did not arrive is put back first.
    for place in places.iter().chain([&to]) {
        if host.has_data_at(&left(place)) {
            host.data_at = Some(place.clone());
        }
    }
    let source = places.iter().find(|place| host.has_data_at(place)).cloned();
    if source.is_some() && host.has_no_room {
        note(host, &to, &source.unwrap_or_default());
        return Err("there is no room for a copy".to_owned());
    }
    match source {
        Some(_) => {
            host.process = Process::Stopped;
            host.data_at = Some(to.clone());
        }
        None if is_needed && !host.has_data_at(&to) => {
            host.moving.clear();
            host.moved.clear();
            return Err("there is nothing to move".to_owned());
        }
        None => {}
    }
    host.moved.remove(&to);
    for place in places {
        if host.has_data_at(&to) {
            host.moved.values_mut().filter(|other| **other == place).for_each(|other| other.clone_from(&to));
            host.moved.insert(place.clone(), to.clone());
        }
        host.things.remove(&("ssh_directory".to_owned(), place));
    }
    host.moving.clear();
    Ok(())
}

/// Where a directory was brought that was at a place of this name.
pub(crate) fn brought(host: &Host, identity: &Object) -> Option<Object> {
    host.moved.get(&things::identity("ssh_directory", identity)?).map(|place| on_its_way(place))
}

/// What is said of a directory that is on its way there, or from there.
pub(super) fn on_its_way(place: &str) -> Object {
    let seen: [(&str, Value); 3] = [("path", place.into()), ("empty", false.into()), ("moving", true.into())];
    seen.map(|(name, value)| (name.to_owned(), value)).into()
}
