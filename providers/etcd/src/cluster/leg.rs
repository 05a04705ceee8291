//! What a plan brings about that goes to the first version on the way to another one ([`super::way`]): its programs, and settings that it knows.

use karmaform_model::{Diagnostic, Diagnostics, Leg, LegHint, Marks, Object, Type, Value};

use super::hosts::is_sha256;
use super::restore::Restore;
use super::way::{between, floor};
use crate::versions::{VERSION, Version, settings_for};

/// The last minor version that reads what 3.5 writes into its log (measured: 3.7.1 ends with "unmarshal should never fail" on a log of 3.6.14 in which
/// there is some; etcd PR 21263). It is out of a log once a member has saved a snapshot behind it, by default after 10,000 entries.
const LAST_OF_OLD_LOGS: u32 = 6;

/// The setting after how many entries a member saves a snapshot of its own and begins its log anew. 1 is what etcd's guide to 3.6 has for the like.
const SNAPSHOTS: &str = "snapshot-count";

/// What is taken out of a release's archive, by its resource type.
const PROGRAMS: &str = "ssh_artifact";

/// What an entry of `through` may say.
const PLACES: [&str; 3] = ["source", "source_sha256", "image"];

/// The first leg, where the way leads over another version, or where members have to let go of what they have in their logs. `None`: one plan does it, or
/// nobody says where programs are.
pub(crate) fn first(before: &Object, wanted: &Object) -> Option<Leg> {
    let (from, to) = (version(before)?, version(wanted)?);
    if Restore::name_in(wanted).is_some() && Restore::name_in(wanted) != Restore::name_in(before) {
        // What is restored begins with whatever version takes it.
        return None;
    }
    let mut way = between(&from, &to, &known(wanted)?).into_iter();
    let Some(first) = way.next() else { return clean(before, wanted, (&from, &to)) };
    let then: Vec<String> = way.map(|version| version.text).chain([to.text.clone()]).map(|version| format!("then to {version}")).collect();
    let how = if leaves_old_logs(&first, &to) { format!(" (with `{SNAPSHOTS}` 1 until it goes on)") } else { String::new() };
    let rest = format!("etcd goes to {} first{how}, {}", first.text, then.join(", "));
    Some(Leg { wanted: at(wanted, &first, &to)?, rest, hint: hint(wanted, &from, &first, &to) })
}

/// Why the archive of a version is wanted that nobody has written. `None`: `through` says it, or it is in an image, which is looked for later.
fn hint(wanted: &Object, from: &Version, first: &Version, to: &Version) -> Option<LegHint> {
    let through = wanted.get("through").and_then(Value::as_entries);
    let is_given = |name: &str| wanted.get(name).is_some_and(|v| !v.is_null());
    if through.is_some_and(|said| said.contains_key(&first.text)) || is_given("kubernetes") {
        return None;
    }
    let text = format!(
        "etcd {} is a step on the way from {} to {}: put its archive where `source` has it by that number, or write into `through` where it, or \
         a newer 3.{}, is.",
        first.text, from.text, to.text, first.minor
    );
    Some(LegHint { kind: PROGRAMS, text })
}

/// The arguments at each version that `through` names; `None` for one of which they can't be told.
pub(crate) fn all(wanted: &Object) -> Vec<Option<Object>> {
    if wanted.get("through").is_none_or(Value::is_null) {
        return Vec::new();
    }
    match version(wanted).zip(known(wanted)) {
        Some((to, known)) => known.iter().map(|version| at(wanted, version, &to)).collect(),
        None => vec![None],
    }
}

/// The minor version 3.7 ends on some logs of 3.6; with this setting applied there is none such.
pub(crate) fn has_old_logs(before: Option<&Object>, from: &Version, to: &Version) -> bool {
    let kept = before.and_then(|b| b.get("settings")?.as_entries()?.get(SNAPSHOTS)?.as_str());
    leaves_old_logs(from, to) && kept != Some("1")
}

/// From the last version that reads the logs of 3.5 to one that does not.
fn leaves_old_logs(from: &Version, to: &Version) -> bool {
    from.minor == LAST_OF_OLD_LOGS && to.minor > LAST_OF_OLD_LOGS
}

fn version(object: &Object) -> Option<Version> {
    Version::parse(object.get("version")?.as_str()?).ok()
}

/// The versions in `through`; `None`: they are not known.
fn known(wanted: &Object) -> Option<Vec<Version>> {
    let Some(through) = wanted.get("through").filter(|v| !v.is_null()) else { return Some(Vec::new()) };
    Some(through.as_entries()?.keys().filter_map(|text| Version::parse(text).ok()).collect())
}

/// The arguments at a version on the way. `None`: nobody says where its programs are.
fn at(wanted: &Object, first: &Version, to: &Version) -> Option<Object> {
    let through = wanted.get("through");
    let said = through.and_then(Value::as_entries).and_then(|all| all.get(&first.text)).and_then(Value::as_entries);
    let marks = through.map(Value::all_marks).unwrap_or_default();
    let of = |object: &Object, name: &str| place(object.get(name), said.and_then(|said| said.get(name)), marks, (to, first));
    let mut leg = wanted.clone();
    leg.insert("version".to_owned(), first.text.as_str().into());
    match wanted.get("kubernetes").and_then(Value::as_entries) {
        Some(block) => {
            let mut block = block.clone();
            let given = block.get("image").filter(|v| !v.is_null());
            // Who builds images by a number of their own may not have built that one, and a digest is of one image; `through` says it then.
            let is_by_release = given.and_then(Value::as_str).is_some_and(|image| !image.contains('@') && image.ends_with(&to.text));
            if said.is_none() && !is_by_release || said.is_some_and(|said| said.get("image").is_none_or(Value::is_null)) && given.is_some()
            {
                return None;
            }
            let image = of(&block, "image")?;
            block.insert("image".to_owned(), image);
            leg.insert("kubernetes".to_owned(), block.into());
        }
        None => {
            leg.insert("source".to_owned(), of(wanted, "source").filter(|v| !v.is_null())?);
            // A file of sums without a number in its name has those of all archives beside it.
            let sums = wanted.get("source_sha256").filter(|v| !v.as_str().is_some_and(is_sha256) && said.is_some());
            leg.insert("source_sha256".to_owned(), of(wanted, "source_sha256").or_else(|| sums.cloned())?);
        }
    }
    leg.insert("settings".to_owned(), settings_at(wanted, first, to)?);
    Some(leg)
}

/// The same version as before, with which members let go of what 3.5 has left in their logs, before they go where nobody can read that any more.
fn clean(before: &Object, wanted: &Object, (from, to): (&Version, &Version)) -> Option<Leg> {
    if !has_old_logs(Some(before), from, to) {
        return None;
    }
    let mut leg = wanted.clone();
    for name in ["version", "source", "source_sha256"] {
        leg.insert(name.to_owned(), before.get(name).cloned().unwrap_or_else(|| Value::null(Type::String)));
    }
    if let Some(mut block) = wanted.get("kubernetes").and_then(Value::as_entries).cloned() {
        for name in ["image", "registry"] {
            let was = before.get("kubernetes").and_then(|was| was.get(name)).cloned();
            block.insert(name.to_owned(), was.unwrap_or_else(|| Value::null(Type::String)));
        }
        leg.insert("kubernetes".to_owned(), block.into());
    }
    leg.insert("settings".to_owned(), settings_at(wanted, from, to)?);
    let rest = format!(
        "members of etcd {} begin their logs anew first (`{SNAPSHOTS}` is 1 until then), as {} ends at its start on what 3.5 has left there; then they go to it",
        from.text, to.text
    );
    Some(Leg { wanted: leg, rest, hint: None })
}

/// Settings as a version on the way knows them. The last that reads the logs of 3.5 keeps them short where one comes that does not. `None`: they are not known.
fn settings_at(wanted: &Object, first: &Version, to: &Version) -> Option<Value> {
    let given = wanted.get("settings").filter(|v| !v.is_null());
    let mut settings = match given {
        Some(given) => settings_for(given.as_entries()?, first.minor)?,
        None => Object::new(),
    };
    if leaves_old_logs(first, to) {
        settings.insert(SNAPSHOTS.to_owned(), "1".into());
    }
    if given.is_none() && settings.is_empty() {
        return Some(Value::null(Type::map(Type::String)));
    }
    let marks = given.map(Value::marks).unwrap_or_default();
    Some(Value::map(Type::String, settings.into_iter().collect()).marked(marks))
}

/// A text of one version for another: what is said, or the same with the other number where the number is in it. `None`: it can't be told.
fn place(text: Option<&Value>, said: Option<&Value>, marks: Marks, (is, other): (&Version, &Version)) -> Option<Value> {
    if let Some(said) = said.filter(|v| !v.is_null()) {
        return Some(said.clone().marked(marks));
    }
    let Some(text) = text.filter(|v| !v.is_null()) else { return Some(Value::null(Type::String)) };
    let named = text.as_str()?;
    let written = with_version(named, &is.text, &other.text).or_else(|| named.contains(VERSION).then(|| named.to_owned()))?;
    Some(Value::from(written).marked(text.marks()))
}

/// A path or a URL with another version in place of one; whom a URL asks stays the same. `None`: that one is not in it.
fn with_version(text: &str, is: &str, other: &str) -> Option<String> {
    let path = text.find("://").map_or(0, |at| text[at + 3..].find('/').map_or(text.len(), |slash| at + 3 + slash));
    let (host, path) = text.split_at(path);
    let mut out = host.to_owned();
    let (mut rest, mut found) = (path, false);
    while let Some(at) = rest.find(is) {
        let (head, tail) = (&rest[..at], &rest[at + is.len()..]);
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let stands_alone = !head.ends_with(is_number) && !tail.starts_with(|c: char| c.is_ascii_digit());
        let goes_on = tail.strip_prefix('.').is_some_and(|t| t.starts_with(|c: char| c.is_ascii_digit()));
        let is_it = stands_alone && !goes_on;
        found |= is_it;
        out.push_str(head);
        out.push_str(if is_it { other } else { is });
        rest = tail;
    }
    out.push_str(rest);
    found.then_some(out)
}

/// Finds what is wrong with `through`.
pub(crate) fn check(object: &Object, found: &mut Diagnostics) {
    let Some(through) = object.get("through").filter(|v| !v.is_null()) else { return };
    let wrong = |detail: String| Diagnostic::error("A version on the way that can't be used", detail);
    let Some(entries) = through.as_entries().filter(|_| through.is_wholly_known()) else {
        found.push(match through.is_wholly_known() {
            true => wrong("`through` is a map by version, each with where that is.".to_owned())
                .with_hint("Write, for one, `through = { \"3.5.33\" = { source = \"etcd-v3.5.33-linux-amd64.tar.gz\" } }`."),
            false => super::arguments::not_known("through"),
        });
        return;
    };
    let block = object.get("kubernetes").and_then(Value::as_entries);
    let sum = object.get("source_sha256").and_then(Value::as_str);
    for (text, said) in entries {
        let version = match Version::parse(text) {
            Ok(version) => version,
            Err(why) => {
                found.push(wrong(format!("`through` has \"{text}\". {why}")));
                continue;
            }
        };
        let given = said.as_entries();
        let is_text = |(name, value): (&String, &Value)| PLACES.contains(&name.as_str()) && (value.is_null() || value.as_str().is_some());
        if !given.is_some_and(|given| given.iter().all(is_text)) {
            found.push(wrong(format!(
                "What `through` says of {text} is not one of {}, each a text.",
                PLACES.map(|p| format!("`{p}`")).join(", ")
            )));
            continue;
        }
        let has = |name: &str| given.and_then(|given| given.get(name)).is_some_and(|v| !v.is_null());
        let lowest = floor(version.minor + 1).filter(|lowest| version.patch < *lowest);
        if let Some(lowest) = lowest {
            found.push(wrong(format!(
                "`through` has {text}, and 3.{} takes over from 3.{}.{lowest} on.",
                version.minor + 1,
                version.minor
            )));
        }
        let needed = if block.is_some() { "image" } else { "source" };
        // Without an image it follows the version.
        if !has(needed) && block.is_none_or(|block| block.get("image").is_some_and(|v| !v.is_null())) {
            found.push(
                wrong(format!("`through` says nothing of where etcd {text} is."))
                    .with_hint(format!("Write `{needed}` into it, or leave it out of `through`.")),
            );
        }
        if block.is_none() && sum.is_some_and(is_sha256) && !has("source_sha256") {
            found.push(
                wrong(format!("`source_sha256` is the sum of one archive, and `through` has none for etcd {text}."))
                    .with_hint("Write `source_sha256` into it, too."),
            );
        }
    }
}

#[cfg(test)]
mod tests;
