//! A directory that is moved with what is in it, where others are deleted and made anew. Its old place is known from the state; from whoever knows
//! of a run that was cut off before; and from the host itself, which remembers what was begun.

use std::time::Duration;

use karmaform_model::{Ask, Attribute, Change, Diagnostic, Diagnostics, Object, Schema, Type, Value, default_plan};

use super::{KIND, seen_there};
use crate::checks::{is_protected, path_problem, unit_problem};
use crate::look::{Look, PathKind, PathSeen, Seen};
use crate::owned::{ADOPTED, MOVED, MOVING};
use crate::script::quote;
use crate::typed::{comparable, is_foreign};
use crate::values::{boolean, object, text};

/// The functions that move.
const FUNCTIONS: &str = include_str!("move.sh");

/// Ends a deletion of what is on its way to another place, or from there: what is there may be all that there is of it.
pub(super) const STAYS: &str = r#"if is_owned moving "$path"; then fail moving "$path"; fi
"#;

/// With a directory goes what the host remembers of how it got there.
pub(super) const FORGET: &str = r#"
if [ -f "$kf_owned" ]; then
  while IFS=$kf_tab read -r _kind _from _to _whose <&5; do
    if [ "$_kind" = moved ] && [ "$_to" = "$path" ]; then disown moved "$_from"; fi
  done 5<"$kf_owned"
fi
"#;

/// What must be free besides where it is copied to, in KiB.
const SPARE: u32 = 64 << 10;

/// How long moving may take, in seconds: a copy of some 100 GiB.
const LIMIT: u64 = 3_600;

/// The attributes that say how.
pub(super) fn attributes() -> Vec<Attribute> {
    let texts = || Type::list(Type::String);
    vec![
        Attribute::optional(
            "moves",
            Type::Bool,
            "Whether another `path` moves it with everything in it. Without it, it is deleted and made anew. Within a file system it is renamed; \
             between two it is copied, and deleted where it was when the copy is whole.",
        )
        .write_only(),
        Attribute::optional(
            "moves_from",
            texts(),
            "Other places where it may be: of a run that was cut off the state does not say where it began. If something is in none of them, and \
             not in `path` either, that is an error.",
        )
        .write_only(),
        Attribute::optional(
            "moves_with",
            texts(),
            "Endings of what stands beside it and moves with it: \"snapshots\" for what is called as `path` with \".snapshots\" behind it. `*` stands for any text.",
        )
        .write_only(),
        Attribute::optional(
            "stopped_unit",
            Type::String,
            "Unit of systemd that uses it. It is stopped before it is moved, and whoever moves it starts it again.",
        )
        .write_only(),
        Attribute::computed("moving", Type::Bool, "True if moving it was begun and has not ended.").volatile(),
        Attribute::computed("occupied", Type::Bool, "True if something is where it is to be moved to.").volatile(),
    ]
}

/// What is wrong with them.
///
/// # Errors
/// What no host would take.
pub(super) fn check(wanted: &Object) -> Result<(), Diagnostics> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
    if let Some(bad) = items(wanted, "moves_with").find(|e| e.is_empty() || !e.chars().all(plain)) {
        let detail = format!("\"{bad}\" in \"moves_with\" is no ending of a name: letters, digits, \"_\", \"-\", \".\" and \"*\".");
        return Err(Diagnostic::error("Bad ending", detail).into());
    }
    let places = items(wanted, "moves_from").filter_map(|place| Some((place, path_problem(place)?))).next();
    if let Some((place, problem)) = places {
        return Err(Diagnostic::error("Bad path", format!("\"{place}\" in \"moves_from\" {problem}.")).into());
    }
    if let Some(place) = items(wanted, "moves_from").find(|place| is_protected(place)) {
        return Err(Diagnostic::error("Protected path", format!("{place} is part of the system and is not moved.")).into());
    }
    if let Some(problem) = text(wanted, "stopped_unit").and_then(unit_problem) {
        return Err(Diagnostic::error("Bad name of a unit", format!("The value of \"stopped_unit\" {problem}.")).into());
    }
    Ok(())
}

fn items<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = &'a str> {
    object.get(name).and_then(Value::as_items).unwrap_or_default().iter().filter_map(Value::as_str)
}

/// True if another path moves it.
pub(super) fn moves(wanted: &Object) -> bool {
    boolean(wanted, "moves") == Some(true)
}

/// Where it is to be, if that is another place.
fn target<'a>(path: &str, wanted: &'a Object) -> Option<&'a str> {
    text(wanted, "path").filter(|to| moves(wanted) && *to != path)
}

/// Refuses to delete, or to make anew, what is on its way.
///
/// # Errors
/// It is.
pub(super) fn may_go(before: &Object) -> Result<(), Diagnostics> {
    if boolean(before, "moving") != Some(true) {
        return Ok(());
    }
    let path = text(before, "path").unwrap_or("the directory");
    let detail = format!(
        "{path} is on its way to another place, or from there: an apply that moved it was cut off. What it holds may be at either."
    );
    Err(Diagnostic::error("A directory that is being moved can't be deleted", detail)
        .with_hint("Apply the configuration that moves it, or the path from before with `moves = true`; then delete it.")
        .into())
}

/// The change, if it is at another place than it is wanted at.
pub(super) fn plan(schema: &Schema, before: &Object, wanted: &Object) -> Option<Result<Change, Diagnostics>> {
    let to = target(text(before, "path")?, wanted)?;
    if boolean(before, "occupied") == Some(true) {
        let (from, place) = (text(before, "path")?, crate::connection::place_of(wanted));
        let detail = format!("The directory {from} on {place} is to be moved to {to}, and something is there already.");
        let hint = if is_foreign(before) {
            format!(
                "If it is what was in {from}, move it back by hand, and apply with the `path` from before: the host has forgotten whose it is."
            )
        } else {
            "If an apply that moved it was cut off, apply with the `path` from before, and the same `stopped_unit`; then move it again."
                .to_owned()
        };
        return Some(Err(Diagnostic::error("Something is at the new place", detail)
            .with_hint(hint)
            .with_hint("If it is somebody else's, choose another place. An empty directory, as of a disk that was mounted there, is used as it is.")
            .into()));
    }
    // What is at the place that an earlier run did not get to is not ours, and stays.
    if is_foreign(before) {
        return Some(Ok(default_plan(schema, None, Some(wanted))));
    }
    let mut compared = comparable(schema, before, wanted);
    compared.insert("path".to_owned(), to.into());
    Some(Ok(match default_plan(schema, Some(&compared), Some(wanted)) {
        Change::NoOp { object: after } | Change::Update { after, .. } => Change::Update { before: before.clone(), after },
        // To another host nothing is moved.
        _ => default_plan(schema, Some(before), Some(wanted)),
    }))
}

/// What is looked at besides the place where the state has it.
pub(super) fn looks(ask: &Ask) -> Vec<Look> {
    let path = text(&ask.identity, "path").zip(ask.wanted.as_ref());
    let to = path.and_then(|(path, wanted)| target(path, wanted));
    to.map(|path| Look::Directory { path: path.to_owned() }).into_iter().collect()
}

/// What is there, given what was seen at the place that the state has.
///
/// # Errors
/// Something could not be looked at.
pub(super) fn answer(seen: &Seen, ask: &Ask, there: Option<Object>) -> Result<Option<Object>, Diagnostic> {
    let path = text(&ask.identity, "path").unwrap_or_default();
    let there = match there {
        Some(there) if !is_made_again(seen, path)? => Some(there),
        there => brought(seen, ask, path).or(there),
    };
    let Some((wanted, to)) = ask.wanted.as_ref().and_then(|wanted| Some((wanted, target(path, wanted)?))) else { return Ok(there) };
    let Some(found) = seen.path(to)? else { return Ok(there) };
    let has_something = found.kind != PathKind::Directory || !found.empty;
    match there {
        // It is there already, or still.
        there
            if there.as_ref().is_none_or(|there| is_foreign(there) || text(there, "path") == Some(to))
                && is_ours(seen, to)
                && found.kind == PathKind::Directory =>
        {
            let mut object = seen_now(seen, found, to, ask.known.as_ref());
            object.insert("foreign".to_owned(), false.into());
            Ok(Some(object))
        }
        Some(mut object) => {
            // What a move began with, or has come so far, is no obstacle to it.
            let is_of_it =
                boolean(&object, "moving") == Some(true) && noted(seen, MOVING, to).is_some_and(|(_, unit)| unit == unit_of(wanted));
            object.insert("occupied".to_owned(), (has_something && !is_of_it).into());
            Ok(Some(object))
        }
        // It may be this one's all the same, whatever the host has forgotten: nobody is to be told that it is lost.
        None if has_something && is_in_state(ask) => {
            let lost = [("path", path.into()), ("empty", false.into()), ("foreign", true.into()), ("occupied", true.into())];
            Ok(Some(object(lost)))
        }
        None => Ok(None),
    }
}

/// It was made or taken over for one of ours, or is on its way.
fn is_ours(seen: &Seen, path: &str) -> bool {
    [KIND, ADOPTED, MOVING].iter().any(|kind| seen.owned.has(kind, path))
}

fn is_in_state(ask: &Ask) -> bool {
    ask.begun || ask.known.is_some()
}

/// What was seen at a place. Where something is on its way to or from, an empty one does not say that it is lost.
pub(super) fn seen_now(seen: &Seen, found: &PathSeen, path: &str, known: Option<&Object>) -> Object {
    let is_moving = seen.owned.has(MOVING, path);
    let mut object = seen_there(found, path, known);
    object.insert("moving".to_owned(), is_moving.into());
    object.insert("empty".to_owned(), (found.empty && !is_moving).into());
    object
}

/// What the host notes of a place: the other one, and the unit that uses what goes from one to the other.
fn noted<'a>(seen: &'a Seen, kind: &str, place: &str) -> Option<(&'a str, &'a str)> {
    let note = seen.owned.note(kind, place)?;
    Some(note.split_once('\t').unwrap_or((note, "")))
}

fn unit_of(wanted: &Object) -> &str {
    text(wanted, "stopped_unit").unwrap_or_default()
}

/// An empty directory that nobody of ours has made: it says nothing of what was there before.
fn is_made_again(seen: &Seen, path: &str) -> Result<bool, Diagnostic> {
    Ok(!is_ours(seen, path) && seen.path(path)?.is_some_and(|found| found.kind == PathKind::Directory && found.empty))
}

/// Where it is, of which the state has not heard. Of what the state does not have at all the note is another one's, who was here before.
fn brought(seen: &Seen, ask: &Ask, path: &str) -> Option<Object> {
    let (place, unit) = noted(seen, MOVED, path).filter(|_| is_in_state(ask))?;
    let is_its = ask.wanted.as_ref().is_none_or(|wanted| !moves(wanted) || unit_of(wanted) == unit);
    is_its.then(|| on_its_way(place))
}

/// What is said of a place that something is on its way to or from, and where nothing is just now.
pub(super) fn under_way(seen: &Seen, path: &str) -> Option<Object> {
    seen.owned.has(MOVING, path).then(|| on_its_way(path))
}

fn on_its_way(place: &str) -> Object {
    object([("path", place.into()), ("empty", false.into()), ("foreign", false.into()), ("moving", true.into())])
}

/// Where it may be.
pub(super) fn sources(change: &Change) -> Vec<String> {
    let Some(after) = change.after().filter(|after| moves(after)) else { return Vec::new() };
    let path = text(after, "path").unwrap_or_default();
    let mut places: Vec<String> = Vec::new();
    for place in change.before().and_then(|b| text(b, "path")).into_iter().chain(items(after, "moves_from")) {
        if place != path && !places.iter().any(|p| p == place) {
            places.push(place.to_owned());
        }
    }
    places
}

/// How long that may take; `None`: as long as any change.
pub(super) fn limit(change: &Change) -> Option<Duration> {
    change.after().filter(|after| moves(after)).map(|_| Duration::from_secs(LIMIT))
}

/// The part of the script that moves it; empty where none is moved. `path` is set. What the host remembers of an earlier run only it can tell.
pub(super) fn script(change: &Change) -> String {
    let Some(after) = change.after().filter(|after| moves(after)) else { return String::new() };
    let mut places = sources(change);
    let is_begun = change.before().and_then(|before| boolean(before, "moving")) == Some(true);
    let needed = items(after, "moves_from").next().is_some() || is_begun;
    // What was begun and is taken back is known to the host, under the place where it is to stay.
    let path = text(after, "path");
    places.extend(path.filter(|path| change.before().and_then(|b| text(b, "path")) == Some(path)).map(str::to_owned));
    let places: Vec<String> = places.iter().map(|p| quote(p)).collect();
    let endings: Vec<&str> = items(after, "moves_with").collect();
    format!(
        "unit={}\nneeded={needed}\nendings={}\nspare={SPARE}\n{FUNCTIONS}\n(\n\
         if command -v flock >/dev/null 2>&1; then take_lock 30 7 || fail locked; fi\nmove {}\n) 7<\"${{kf_lock:-/var}}\" || exit\n",
        quote(text(after, "stopped_unit").unwrap_or_default()),
        quote(&endings.join(" ")),
        places.join(" "),
    )
}

/// What it means, in words.
pub(super) fn impact(change: &Change) -> Option<String> {
    let (before, after) = (change.before()?, change.after().filter(|after| moves(after))?);
    let (from, to) = (text(before, "path")?, text(after, "path")?);
    let unit = text(after, "stopped_unit").map(|unit| format!("stops {unit} and ")).unwrap_or_default();
    let place = crate::connection::place_of(after);
    (from != to && !matches!(change, Change::Replace { .. })).then(|| format!("{unit}moves {from} to {to} on {place}"))
}

#[cfg(test)]
mod tests;
