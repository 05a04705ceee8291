//! What a restoration does to a cluster, in plain words.

use std::collections::BTreeMap;

use karmaform_model::{Action, Choreography, Margin, Object, Risk, Scene, Value};

use super::super::arguments::Arguments;
use super::super::choreography::quorum;
use super::super::condition::{Member, is_formed, sides};
use super::super::kubernetes::helper;
use super::super::places::{Places, part, part_of, stateful_set};
use super::super::restore::{Ended, Restoration};

/// In words, and what is to be counted. What is given up has to be confirmed; a new cluster gives up nothing.
pub(crate) fn of_restoration(
    scene: &Scene<'_>,
    wanted: &Arguments,
    members: &BTreeMap<String, Member<'_>>,
    restoration: &Restoration,
) -> (Vec<String>, Risk) {
    let list = |names: &mut dyn Iterator<Item = &String>| names.cloned().collect::<Vec<_>>().join(", ");
    let what = &restoration.what;
    let file = what.from.as_str().filter(|_| !what.from.contains_secret()).unwrap_or("a snapshot");
    let file = restoration.choice.as_ref().map_or_else(|| format!("{file} (SHA-256 {}...)", short(&what.sha256)), in_bucket);
    let all = list(&mut wanted.members.keys());
    let pending = list(&mut restoration.pending.iter());
    let leaving = || members.keys().filter(|name| !wanted.members.contains_key(*name));
    let mut data_loss = Vec::new();
    let mut leave = Vec::new();
    if leaving().next().is_some() {
        let end = if wanted.keeps_data { "kept, moved aside" } else { "deleted" };
        let line = format!("{} leave with it: their data is {end} when the others work with what was restored", list(&mut leaving()));
        data_loss.extend((!wanted.keeps_data).then(|| line.clone()));
        leave.push(line);
    }
    let down = Margin { members: wanted.members.len(), up: 0, quorum: quorum(wanted.members.len()) };
    if restoration.has_started {
        let anew = |name: &String| scene.children.get(&part(name, "pod")).is_some_and(|pod| pod.change.action() == Action::Update);
        let restarts = wanted.members.keys().any(anew);
        let mut lines = vec![format!("goes on with the restoration from {file}: it is in place, and {all} start with it")];
        lines.extend(restarts.then(|| "makes pods that run anew at once: etcd is unavailable until they have started".to_owned()));
        lines.extend(leave);
        return (lines, Risk { margin: restarts.then_some(down), data_loss, ..Risk::default() });
    }
    if !is_formed(scene) {
        let mut lines = vec![format!("forms a cluster that begins with what is in {file}: {all}")];
        let is_there = scene.children.get(&stateful_set()).is_some_and(|set| set.observed.is_some());
        lines.extend(is_there.then(|| "stops what was started of it before".to_owned()));
        return (lines, Risk::default());
    }
    let done = restoration.pending.len() < wanted.members.len();
    let begun = if done { format!("goes on with the restoration, on {pending}") } else { format!("restores {all}") };
    let loss = format!("{begun}, from {file}: what was written since that was saved is lost");
    let mut lines =
        vec![loss.clone(), "stops all members at once: etcd is unavailable until they have started with what was restored".to_owned()];
    data_loss.insert(0, loss);
    lines.extend(leave);
    let is_away = |name: &&String| scene.children.get(&part(name, "unit")).is_some_and(|c| c.unseen);
    let away = list(&mut leaving().filter(is_away));
    if !away.is_empty() {
        lines.push(format!(
            "{away} can't be reached, and nobody waits for it to stop: what is left there must not run any more, or clients find the old cluster"
        ));
    }
    lines.push(match what.bump_of(&wanted.version) {
        0 if what.bump == 0 => "the revision goes back, as `bump_revision` is 0: restart whoever watches or caches".to_owned(),
        0 => format!("the revision goes back, as etcd {} can't raise it: restart whoever watches or caches", wanted.version.text),
        bump => format!("the revision is raised by {bump}, so that whoever watches or caches begins anew"),
    });
    let until = if wanted.keeps_data { "" } else { ", until the block `restore` is taken out" };
    lines.push(format!("data of before is kept in {}{until}", before(wanted)));
    (lines, Risk { margin: Some(down), data_loss, confirm: Some("restores etcd from a snapshot".to_owned()) })
}

fn short(sum: &str) -> &str {
    sum.get(..12).unwrap_or_default()
}

/// A backup that was chosen, as its manifest tells of it.
fn in_bucket(choice: &Object) -> String {
    let text = |name: &str| choice.get(name).and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str| choice.get(name).and_then(Value::as_i64).unwrap_or_default();
    let encrypted = if choice.get("encrypted").and_then(Value::as_bool) == Some(true) { ", encrypted" } else { "" };
    format!(
        "{} (of {}, revision {}, etcd {}, {} bytes{encrypted}, SHA-256 {}...)",
        text("place"),
        text("created"),
        number("revision"),
        text("etcd_version"),
        number("size"),
        short(text("sha256")),
    )
}

/// Adds what it means that the block is taken out.
pub(crate) fn of_ended(scene: &Scene<'_>, wanted: &Arguments, ended: Ended, choreography: &mut Choreography) {
    let is_removed = |path| {
        let child = scene.children.get(&path).filter(|child| child.change.action() == Action::Delete);
        child.is_some_and(|child| sides(child.change, "undo").0.is_some_and(|undo| !undo.is_null()))
    };
    let removes = match &wanted.kubernetes {
        Some(_) => ended == Ended::Well && !wanted.keeps_data,
        None => wanted.members.keys().any(|name| is_removed(part_of(name, "restore", "before"))),
    };
    if removes {
        let line = format!("deletes data of before the restoration, in {}", before(wanted));
        choreography.risk.data_loss.push(line.clone());
        choreography.impact.push(line);
    }
    if ended == Ended::GivenUp {
        choreography.impact.push(format!(
            "gives up the restoration: members go on with what they have, and what was before it, if anything, stays in {}",
            before(wanted)
        ));
    }
}

/// Where data of before is.
fn before(wanted: &Arguments) -> String {
    match &wanted.kubernetes {
        Some(_) => format!("{}.before-* of each volume", helper::data()),
        None => format!("{}.before-*", Places::of(wanted).data),
    }
}
