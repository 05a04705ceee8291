//! What it means that members come and go, in plain words.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Scene, Value};

use super::{failures, plural, plural_count};
use crate::cluster::arguments::Arguments;
use crate::cluster::choreography::makes_claim_anew;
use crate::cluster::condition::{Member, has_data, sides};
use crate::cluster::kubernetes::Storage;
use crate::cluster::membership::{Membership, Move};
use crate::cluster::places::{part, part_of};
use crate::cluster::volumes;

/// Lines on the moves.
pub(super) fn of_moves(
    scene: &Scene<'_>,
    wanted: &Arguments,
    members: &BTreeMap<String, Member<'_>>,
    membership: &Membership,
) -> Vec<String> {
    let count = wanted.members.len();
    let mut lines = Vec::new();
    if !membership.waiting.is_empty() {
        let (names, their) = (membership.waiting.join(", "), if membership.waiting.len() == 1 { "its" } else { "their" });
        lines.push(format!("{names} lost {their} data; once a majority of the others works, the next plan replaces {their} membership"));
    }
    if membership.moves.is_empty() {
        return lines;
    }
    let joining: BTreeSet<&str> = membership.joining().collect();
    let leaves = |wanted: bool| {
        let moves = membership
            .moves
            .iter()
            .filter_map(|m| if let Move::Leave { name, alive, .. } = m { Some((name.as_str(), *alive)) } else { None });
        moves.filter(|(_, alive)| *alive == wanted).map(|(name, _)| name).collect::<Vec<_>>()
    };
    let moved: Vec<&str> = volumes::in_turn(scene, membership).collect();
    let (mut dead, mut alive) = (leaves(false), leaves(true));
    [&mut dead, &mut alive].into_iter().for_each(|names| names.retain(|name| !moved.contains(name)));
    let list = |names: &[&str]| names.join(", ");
    if membership.voters != count {
        lines.push(format!("{} instead of {}", plural_count(count, "member"), membership.voters));
    }
    let replaced: Vec<&str> = dead.iter().copied().filter(|name| joining.contains(name)).collect();
    let gone: Vec<&str> = dead.iter().copied().filter(|name| !joining.contains(name)).collect();
    if !gone.is_empty() {
        lines.push(format!(
            "removes {} {}, which {} not work",
            plural(gone.len(), "member"),
            list(&gone),
            if gone.len() == 1 { "does" } else { "do" }
        ));
    }
    if !replaced.is_empty() {
        let whose = if replaced.len() == 1 { "its" } else { "their" };
        lines.push(format!(
            "replaces {} {}: {whose} data is gone, so {whose} old membership ends and a new one begins",
            plural(replaced.len(), "member"),
            list(&replaced)
        ));
    }
    let new: Vec<&str> = joining.iter().copied().filter(|name| !replaced.contains(name) && !moved.contains(name)).collect();
    if !new.is_empty() {
        lines.push(format!("adds {} {}", plural(new.len(), "member"), list(&new)));
    }
    if !joining.is_empty() {
        lines.push("who joins does not vote until it has caught up; one at a time".to_owned());
    }
    let named = |name: &&str| if members.get(*name).is_some_and(|m| m.leads) { format!("the leader {name}") } else { (*name).to_owned() };
    if let (Some(Storage::Class(class)), false) = (wanted.kubernetes.as_ref().map(|place| &place.storage), moved.is_empty()) {
        let names: Vec<String> = moved.iter().map(named).collect();
        lines.push(format!(
            "new volumes of \"{class}\" for {} {}, one at a time: each leaves the cluster, and joins it anew with an empty volume",
            plural(moved.len(), "member"),
            names.join(", "),
        ));
        lines.push("the claims that they had are deleted, and volumes with them as their class says".to_owned());
    }
    if !alive.is_empty() {
        let names: Vec<String> = alive.iter().map(named).collect();
        lines.push(format!("removes {} {}, one at a time; the lead moves before", plural(alive.len(), "member"), names.join(", ")));
    }
    let is_left = |name: &&str| {
        let takes = |m: &Move| matches!(m, Move::Join { name: n, replaces: Some(_), initial_cluster: Some(_), .. } if n == name);
        membership.moves.iter().any(takes) && has_data(scene, name) == Some(true)
    };
    let left: Vec<&str> = joining.iter().copied().filter(is_left).collect();
    let anew = |step: &Move| match (step, &wanted.kubernetes) {
        (Move::Join { name, has_data, .. }, Some(place)) if !moved.contains(&name.as_str()) => {
            makes_claim_anew(scene, place, name, *has_data).then_some(name.clone())
        }
        _ => None,
    };
    let anew: Vec<String> = membership.moves.iter().filter_map(anew).collect();
    if !anew.is_empty() {
        lines.push(format!("the volume of {} is made anew: what may be in it is of no member", anew.join(", ")));
    }
    if !left.is_empty() && wanted.kubernetes.is_none() {
        lines.push(format!("old data on {} is moved aside", list(&left)));
    }
    if let Some(margin) = membership.margin {
        let spare = match margin.up.saturating_sub(margin.quorum) {
            0 if margin.members == 1 => "one member alone tolerates no failure".to_owned(),
            0 => "no failure is tolerated then".to_owned(),
            _ => format!("quorum kept, it takes {}", margin.quorum),
        };
        lines.push(format!("at the worst moment {} of {} are up; {spare}", margin.up, plural_count(margin.members, "member")));
    }
    if count.is_multiple_of(2) {
        let tolerated = failures(count);
        lines.push(format!(
            "{count} members tolerate {tolerated}, no more than {} would; an odd number is better",
            plural_count(count - 1, "member")
        ));
    }
    let who_leaves: Vec<&str> = gone.iter().chain(&alive).copied().collect();
    lines.extend(wanted.kubernetes.as_ref().and_then(|place| left_in(scene, &place.storage, &who_leaves)));
    for (purged, words) in [(true, "will be deleted"), (false, "is kept, moved aside")] {
        let goes = |name: &&str| {
            let data = scene.children.get(&part_of(name, "directory", "data"));
            data.is_some_and(|c| {
                matches!(c.change.action(), Action::Delete)
                    && (sides(c.change, "purge").0.and_then(Value::as_bool) != Some(false)) == purged
            })
        };
        let names: Vec<&str> = gone.iter().chain(&alive).copied().filter(goes).collect();
        if !names.is_empty() {
            lines.push(format!("data of the members that leave {words} on {}", list(&names)));
        }
    }
    lines
}

/// What becomes of the data of those that leave, in pods.
fn left_in(scene: &Scene<'_>, storage: &Storage, names: &[&str]) -> Option<String> {
    let kept = |name: &&str| {
        let claim = scene.children.get(&part(name, "claim")).filter(|c| matches!(c.change.action(), Action::Delete))?;
        Some(sides(claim.change, "keep").0.and_then(Value::as_bool) == Some(true))
    };
    let kept: Vec<bool> = names.iter().filter_map(kept).collect();
    let what = match storage {
        Storage::EmptyDir if !names.is_empty() => "will be deleted with their pods",
        _ if kept.is_empty() => return None,
        Storage::HostPath { .. } => "stays on the disks of their nodes",
        _ if kept.iter().all(|kept| *kept) => "is kept in their volumes",
        _ => "will be deleted with their volumes",
    };
    Some(format!("data of the members that leave {what}"))
}
