//! What a plan does to a cluster, in plain words.

mod moves;
mod restoration;

use std::collections::BTreeMap;

use karmaform_model::{Action, ChildStep, Margin, Risk, Scene, Value};

use super::arguments::Arguments;
use super::authorities;
use super::choreography::{Care, leader_last, quorum};
use super::condition::{Condition, Member, changes, is_formed, is_unchanged, sides};
use super::kubernetes::{Storage, saved};
use super::membership::Membership;
use super::moving::Moving;
use super::places::{Places, client_certificate, part, part_of, stateful_set};
use super::snapshot;
use super::upgrade::{Course, Upgrade, told};
use super::volumes;
use super::way::FIRST_WAY_DOWN;
use crate::care::bytes;

pub(crate) use restoration::{of_ended, of_restoration};

const DELETED: &str = "data of the cluster will be deleted with its volumes";

/// Of a change, or of making the cluster: in words, and what is to be counted.
pub(crate) fn of_change(
    scene: &Scene<'_>,
    wanted: &Arguments,
    members: &BTreeMap<String, Member<'_>>,
    membership: &Membership,
    (upgrade, moving): (Option<&Upgrade>, Option<&Moving>),
) -> (Vec<String>, Risk) {
    let mut lines = moves::of_moves(scene, wanted, members, membership);
    lines.extend(upgrade.into_iter().flat_map(|upgrade| of_upgrade(scene, wanted, upgrade)));
    if is_formed(scene) {
        lines.extend(told(scene, wanted, upgrade).map(of_told));
        lines.extend(authorities::lines(scene, wanted));
    }
    lines.extend(in_place(scene, wanted, members, (membership, moving)));
    let mut risk = risk_of_change(wanted, members, membership);
    let spare = |m: &Margin| m.up.saturating_sub(m.quorum);
    risk.margin = risk.margin.into_iter().chain(membership.margin).min_by_key(spare);
    (lines, risk)
}

/// Of room that is made.
pub(crate) fn of_care(care: &Care, wanted: &Arguments) -> Vec<String> {
    let mut lines = Vec::new();
    if care.is_full && care.is_empty() {
        lines.push(format!(
            "the cluster is full and takes no writes; room is made, and the alarm NOSPACE ends, when all members work (not there: {})",
            care.away.join(", ")
        ));
    } else if care.is_full {
        lines.push(
            "the cluster is full and takes no writes: all history but the newest is dropped, and the alarm NOSPACE ends when there is room"
                .to_owned(),
        );
    }
    let free = |(name, (all, in_use)): (&String, &(i64, i64))| format!("{name} ({} of {})", bytes(all - in_use), bytes(*all));
    let mut whose: Vec<_> = care.fragmented.iter().map(free).collect();
    if care.is_empty() && whose.is_empty() {
        return lines;
    }
    if care.is_empty() && !care.unseen.is_empty() {
        lines.push(format!(
            "leaves free pages as they are, as not all members are among the targets: {} (left out: {})",
            whose.join(", "),
            care.unseen.join(", ")
        ));
    } else if care.is_empty() {
        lines.push(format!(
            "leaves free pages as they are until all members work: {} (not there: {})",
            whose.join(", "),
            care.missing.join(", ")
        ));
    } else if !whose.is_empty() || !care.sent.is_empty() {
        whose.extend(care.sent.iter().map(|(name, leader)| format!("{name} (those that {leader} sends it)")));
        let alone = if wanted.members.len() == 1 { ": etcd is unavailable meanwhile" } else { ", one at a time, the leader last" };
        lines.push(format!("gives free pages back to the disk, seconds for each GiB: {}{alone}", whose.join(", ")));
    }
    lines
}

/// Of another version.
fn of_upgrade(scene: &Scene<'_>, wanted: &Arguments, upgrade: &Upgrade) -> Vec<String> {
    let (from, to) = (&upgrade.from, &wanted.version);
    let on = if upgrade.begun { format!(" on {}, as the others have it already", upgrade.members.join(", ")) } else { String::new() };
    let what = if (to.minor, to.patch) < (from.minor, from.patch) { "goes back" } else { "upgrades etcd" };
    let mut lines = vec![format!("{what} from {} to {}{on}", from.text, to.text)];
    if let (Some(_), Some(keeper)) = (&wanted.kubernetes, snapshot::keeper(wanted)) {
        if !upgrade.begun {
            lines.push(format!("saves a snapshot first, on the volume of {keeper} as {}", saved()));
        }
    } else if let Some(keeper) = snapshot::keeper(wanted)
        && changes(scene, &snapshot::of(keeper))
        && (to.minor >= from.minor || !upgrade.begun)
        // What is put back had nothing to lose.
        && !(upgrade.begun && scene.before.and_then(|b| b.get("version")?.as_str()) == Some(to.text.as_str()))
    {
        lines.push(format!("saves a snapshot first, on the host of {keeper} in {}", Places::of(wanted).snapshots));
    }
    if to.minor > from.minor && from.minor >= FIRST_WAY_DOWN {
        lines.push(format!(
            "the old `version` takes this back; once all members run 3.{} that begins with telling the cluster that it goes down",
            to.minor
        ));
    } else if to.minor > from.minor {
        lines.push(format!(
            "once all members run 3.{}, there is no way back to 3.{} but that snapshot; until then there is, by the old `version`",
            to.minor, from.minor
        ));
    }
    lines
}

/// Of what a cluster is told first.
fn of_told(told: Course) -> String {
    match told {
        Course::Down(minor) => format!(
            "tells the cluster first that it goes down to 3.{minor}, and waits until all members keep their data as that does; what only newer ones keep is gone then"
        ),
        Course::Stays => "tells the cluster that it does not go down after all".to_owned(),
    }
}

/// Of what happens to members as they are.
fn in_place(
    scene: &Scene<'_>,
    wanted: &Arguments,
    members: &BTreeMap<String, Member<'_>>,
    (membership, moving): (&Membership, Option<&Moving>),
) -> Vec<String> {
    let count = wanted.members.len();
    let mut lines = Vec::new();
    let with = |condition: Condition| members.values().filter(move |m| m.condition == condition && wanted.members.contains_key(&m.name));
    let starting: Vec<_> = with(Condition::Stopped).filter(|m| m.restarts()).map(|m| m.name.as_str()).collect();
    if !starting.is_empty() {
        if is_formed(scene) {
            lines.push(format!("starts {} {}", plural(starting.len(), "member"), starting.join(", ")));
        } else if starting.len() == count {
            lines.push(format!("forms a cluster of {count} {}: {}", plural(count, "member"), starting.join(", ")));
        } else {
            lines.push(format!("finishes forming the cluster: starts {}", starting.join(", ")));
        }
    }
    if !is_formed(scene) && count.is_multiple_of(2) {
        lines.push(format!(
            "{count} members tolerate {}, no more than {} would; an odd number is better",
            failures(count),
            plural_count(count - 1, "member")
        ));
    }
    if !is_formed(scene) {
        lines.extend(crowded(wanted));
        if wanted.kubernetes.as_ref().is_some_and(|k| k.storage == Storage::EmptyDir) {
            lines.push("data is in emptyDir volumes: a member loses it with its pod, and a single member with it the cluster".to_owned());
        }
    }
    lines.extend(growing(scene, wanted));
    let suspects: Vec<_> = with(Condition::Suspect).filter(|m| m.restarts()).map(|m| m.name.as_str()).collect();
    if !suspects.is_empty() {
        lines.push(format!("repairs by a restart, one at a time: {}", suspects.join(", ")));
    }
    let moves = |name: &str| moving.is_some_and(|moving| moving.members.contains_key(name));
    if let Some(moving) = moving {
        let down: Vec<_> = starting.iter().chain(&suspects).copied().filter(|name| moves(name)).collect();
        if !down.is_empty() {
            lines.push(format!("moves the data of {} from {} to {} before that", down.join(", "), moving.from(), moving.to));
        }
        let moved = leader_last(with(Condition::Works).filter(|m| m.restarts() && moves(&m.name)));
        lines.extend((!moved.is_empty()).then(|| moved_in_turn(moving, &moved, count)));
    }
    let joined = with(Condition::Joins).filter(|m| membership.keeps_its_pod(wanted, &m.name));
    let restarted = leader_last(with(Condition::Works).chain(joined).filter(|m| m.restarts() && !moves(&m.name)));
    if !restarted.is_empty() && membership.restarts_first {
        lines.push(format!("{}, before others leave", rolling(&restarted, membership.voters)));
    } else if !restarted.is_empty() {
        lines.push(rolling(&restarted, count));
    }
    let renewed = members.values().any(|m| m.renews() && m.condition != Condition::Stopped && !m.restarts());
    let client = scene.children.get(&client_certificate()).is_some_and(|c| c.in_state && !is_unchanged(c.change));
    if renewed {
        lines.push("no restart for new certificates: etcd reads them at the next handshake".to_owned());
    } else if client {
        lines.push("no restart: only the client certificate is made anew".to_owned());
    }
    lines
}

/// Of data that goes to another place, a member at a time.
fn moved_in_turn(moving: &Moving, members: &[&Member<'_>], count: usize) -> String {
    let way = format!("from {} to {} while it is stopped", moving.from(), moving.to);
    if count == 1 {
        return format!("moves the data of the only member {way}: etcd is unavailable meanwhile");
    }
    let whose = match members.len() {
        all if all == count => "each member",
        1 => "a member",
        _ => "members",
    };
    format!("moves the data of {whose} {way}, one at a time: {}", in_turn(members, count))
}

fn rolling(members: &[&Member<'_>], count: usize) -> String {
    if count == 1 {
        return "restart of the only member: etcd is unavailable meanwhile".to_owned();
    }
    format!("rolling restart, one member at a time: {}", in_turn(members, count))
}

/// Who, and what that leaves.
fn in_turn(members: &[&Member<'_>], count: usize) -> String {
    let names: Vec<_> = members.iter().map(|m| if m.leads { format!("the leader {}", m.name) } else { m.name.clone() }).collect();
    let list = match &names[..] {
        [rest @ .., last] if members.last().is_some_and(|m| m.leads) && !rest.is_empty() => format!("{}, then {last}", rest.join(", ")),
        all => all.join(", "),
    };
    let availability = if count > quorum(count) {
        format!("quorum kept {} of {count}", count - 1)
    } else {
        format!("{count} members have no spare, so etcd is unavailable during each restart")
    };
    format!("{list}; {availability}")
}

/// Volumes that are to be larger.
fn growing(scene: &Scene<'_>, wanted: &Arguments) -> Option<String> {
    let (before, place) = (scene.before?.get("kubernetes")?.as_entries()?, wanted.kubernetes.as_ref()?);
    let old = before.get("storage_size")?.as_str()?;
    let new = place.storage_size.as_str().filter(|new| *new != old && !volumes::is_other(before, place))?;
    Some(format!("volumes grow from {old} to {new}; nobody is restarted for it, and the StatefulSet is made anew around its pods"))
}

/// Members that share a node, where nodes are known.
fn crowded(wanted: &Arguments) -> Option<String> {
    let place = wanted.kubernetes.as_ref()?;
    let nodes = place.nodes.filter(|nodes| *nodes > 0 && *nodes < place.members)?;
    Some(format!("{} on {}: some of them fail together", plural_count(place.members, "member"), plural_count(nodes, "ready node")))
}

/// What a change risks: members are restarted one at a time, whatever else there is to do.
fn risk_of_change(wanted: &Arguments, members: &BTreeMap<String, Member<'_>>, membership: &Membership) -> Risk {
    let joining: Vec<&str> = membership.joining().collect();
    // Who joins works by the time that others are restarted, or nothing is.
    let of_it = || members.values().filter(|m| wanted.members.contains_key(&m.name) && !joining.contains(&m.name.as_str()));
    // Who is outside of the targets was not looked at, and is taken to be up.
    let works = wanted.members.len() - of_it().filter(|m| m.condition != Condition::Works).count();
    let restarts = |condition: Condition| of_it().any(|m| m.condition == condition && m.restarts());
    let count = wanted.members.len();
    let mut risk = Risk::default();
    if membership.restarts_first {
        // All of them work, or nobody would leave.
        let members = membership.voters;
        risk.margin = Some(Margin { members, up: members.saturating_sub(1), quorum: quorum(members) });
    } else if restarts(Condition::Works) || restarts(Condition::Suspect) {
        // One that works is restarted when all others do.
        let up = if restarts(Condition::Works) { works.min(count - 1) } else { works };
        risk.margin = Some(Margin { members: count, up, quorum: quorum(count) });
    }
    if count == 1 && restarts(Condition::Works) && wanted.kubernetes.as_ref().is_some_and(|k| k.storage == Storage::EmptyDir) {
        risk.data_loss.push("the only member loses its data with its pod".to_owned());
    }
    risk
}

/// Of a destruction on Kubernetes.
fn of_destroy_there(scene: &Scene<'_>, members: &BTreeMap<String, Member<'_>>) -> (Vec<String>, Risk) {
    let goes = |path: &[ChildStep]| scene.children.get(path).is_some_and(|c| matches!(c.change.action(), Action::Delete));
    let has = |part_name: &str| members.keys().any(|name| scene.children.contains_key(&part(name, part_name)));
    let is_kept = |path: &[ChildStep]| {
        let keep = scene.children.get(path).and_then(|c| sides(c.change, "keep").0);
        keep.and_then(Value::as_bool) == Some(true)
    };
    let deleted = members.keys().map(|name| part(name, "claim")).any(|claim| goes(&claim) && !is_kept(&claim)) && !has("volume");
    if !goes(&stateful_set()) {
        // What runs the members is gone already, or is not there any more; what they had may go all the same.
        let lines = if deleted { vec![DELETED.to_owned()] } else { Vec::new() };
        return (lines.clone(), Risk { data_loss: lines, ..Risk::default() });
    }
    let names = members.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let data = match (has("volume"), has("claim"), deleted) {
        (true, ..) => "data of the cluster stays on the disks of its nodes",
        (_, true, false) => "data of the cluster is kept in its volumes",
        (_, true, true) => DELETED,
        _ => "data of the cluster will be deleted with its pods",
    };
    let is_kept = has("volume") || has("claim") && !deleted;
    let risk = Risk {
        margin: Some(Margin { members: members.len(), up: 0, quorum: quorum(members.len()) }),
        data_loss: if is_kept { Vec::new() } else { vec![data.to_owned()] },
        ..Risk::default()
    };
    (vec![format!("stops the whole cluster: {names}"), data.to_owned()], risk)
}

/// Of a destruction: in words, and what is to be counted.
pub(crate) fn of_destroy(scene: &Scene<'_>, members: &BTreeMap<String, Member<'_>>) -> (Vec<String>, Risk) {
    let is_there = |name: &String| ["claim", "volume"].iter().any(|p| scene.children.contains_key(&part(name, p)));
    if scene.children.contains_key(&stateful_set()) || members.keys().any(is_there) {
        return of_destroy_there(scene, members);
    }
    let purged = |name: &&str| {
        scene.children.get(&part_of(name, "directory", "data")).is_some_and(|c| {
            matches!(c.change.action(), Action::Delete) && sides(c.change, "purge").0.and_then(Value::as_bool) != Some(false)
        })
    };
    let kept = |name: &&str| {
        scene.children.get(&part_of(name, "directory", "data")).is_some_and(|c| {
            matches!(c.change.action(), Action::Delete) && sides(c.change, "purge").0.and_then(Value::as_bool) == Some(false)
        })
    };
    let names: Vec<_> = members.keys().map(String::as_str).collect();
    let list = |names: Vec<&str>| names.join(", ");
    let deleted: Vec<_> = names.iter().copied().filter(purged).collect();
    let left: Vec<_> = names.iter().copied().filter(kept).collect();
    let mut lines = Vec::new();
    let stopped: Vec<_> = names.iter().copied().filter(|name| changes(scene, &part(name, "unit"))).collect();
    let all = scene.before.and_then(|b| b.get("hosts")).and_then(Value::as_entries).map_or(names.len(), |hosts| hosts.len());
    let mut risk = Risk::default();
    if !stopped.is_empty() {
        let is_down = |m: &&Member<'_>| m.condition != Condition::Works && !stopped.contains(&m.name.as_str());
        let down = stopped.len() + members.values().filter(is_down).count();
        risk.margin = Some(Margin { members: all, up: all.saturating_sub(down), quorum: quorum(all) });
    }
    if stopped.len() >= all && !stopped.is_empty() {
        lines.push(format!("stops the whole cluster: {}", list(stopped)));
    } else if !stopped.is_empty() {
        let left = all - stopped.len();
        let quorum = if left >= quorum(all) { "quorum kept" } else { "quorum lost: the cluster stops working" };
        lines.push(format!("stops {} {}; {left} of {all} stay, {quorum}", plural(stopped.len(), "member"), list(stopped)));
    }
    if !deleted.is_empty() {
        let line = format!("data of the cluster will be deleted on {}", list(deleted));
        risk.data_loss.push(line.clone());
        lines.push(line);
    }
    if !left.is_empty() {
        lines.push(format!("data of the cluster is kept on {}, moved aside", list(left)));
    }
    (lines, risk)
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

fn plural_count(count: usize, word: &str) -> String {
    format!("{count} {}", plural(count, word))
}

fn failures(members: usize) -> String {
    match (members - 1) / 2 {
        0 => "no failure".to_owned(),
        n => plural_count(n, "failure"),
    }
}
