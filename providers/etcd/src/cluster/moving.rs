//! Another `data_directory` under a cluster that was formed: each member's data is moved while that member is stopped, in its turn of a rolling restart.
//! The directory itself does it (`moves` of an `ssh_directory`); here is told from where, and what has to be so before the first member stops.

use std::collections::BTreeMap;

use karmaform_model::{Action, ChildChange, ChildStep, Diagnostic, Diagnostics, Point, Scene, Told, Type, Value};

use super::arguments::Arguments;
use super::choreography::Order;
use super::condition::{Condition, Member, changes, differs, member_of, members_away, seen, sides};
use super::membership::Membership;
use super::places::{default_data_directory, is_of_restoration, part, part_of};
use super::upgrade::Upgrade;

/// What stands beside the data under its name and goes with it: what was saved before upgrades, what there was before restorations, and what replaced
/// members left. Not what an earlier cluster left (`kept-TIME`), which is not this one's.
pub(crate) const BESIDE: &[&str] = &["snapshots", "before-*", "replaced-*"];

/// The data of members goes to another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moving {
    /// The members whose data is not there yet, each with the places where it may be.
    pub(crate) members: BTreeMap<String, Vec<String>>,
    /// Where it goes.
    pub(crate) to: String,
    /// A run before began this.
    pub(crate) begun: bool,
}

impl Moving {
    /// Where it comes from, in words.
    pub(crate) fn from(&self) -> String {
        let mut places: Vec<&str> = self.members.values().filter_map(|places| places.first()).map(String::as_str).collect();
        places.sort_unstable();
        places.dedup();
        places.join(" or ")
    }
}

fn directory(member: &str) -> Vec<ChildStep> {
    part_of(member, "directory", "data")
}

/// True for the directory with a member's data.
pub(crate) fn is_data(path: &[ChildStep]) -> bool {
    member_of(path).is_some_and(|name| path == directory(name))
}

/// True if this change of that directory is a move, or goes on with one. Where a run that was cut off has brought it the host says.
pub(crate) fn moves(child: &ChildChange<'_>) -> bool {
    match child.change.action() {
        // It is there, and nobody remembers that it is this one's.
        Action::Create => child.in_state && child.observed.is_some(),
        Action::Update => is_under_way(child) || differs(child.change, "path"),
        _ => false,
    }
}

/// Where the last apply that ended had all data.
fn recorded(scene: &Scene<'_>) -> Option<String> {
    let written = scene.before?.get("data_directory").filter(|v| !v.is_null());
    match written {
        Some(written) => written.as_str().map(str::to_owned),
        None => Some(default_data_directory(&super::cluster_name(scene.address))),
    }
}

/// Where the member last started, as its guard says: of moves that ended on its host, and of which the state has only the next that did not.
fn guarded(scene: &Scene<'_>, name: &str) -> Option<String> {
    let (before, _) = sides(scene.children.get(&part(name, "guard"))?.change, "content");
    before?.as_str()?.lines().find_map(|line| line.strip_prefix("data=")).map(str::to_owned)
}

/// Where the data of a member may be besides the place where it is to be.
fn sources(scene: &Scene<'_>, name: &str, child: &ChildChange<'_>) -> Vec<String> {
    let (before, after) = sides(child.change, "path");
    let before = before.and_then(Value::as_str).map(str::to_owned);
    let mut places: Vec<String> = Vec::new();
    for place in before.into_iter().chain(guarded(scene, name)).chain(recorded(scene)) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.retain(|place| after.and_then(Value::as_str) != Some(place));
    places
}

/// What is to be moved; `None`: nothing, or no more.
pub(crate) fn moving(scene: &Scene<'_>, wanted: &Arguments) -> Option<Moving> {
    if wanted.kubernetes.is_some() {
        return None;
    }
    let child = |name: &String| scene.children.get(&directory(name)).filter(|c| c.in_state);
    let of = |name: &String| {
        let places = sources(scene, name, child(name).filter(|c| moves(c))?);
        (!places.is_empty()).then(|| (name.clone(), places))
    };
    let members: BTreeMap<String, Vec<String>> = wanted.members.keys().filter_map(of).collect();
    let is_there = |name: &String| child(name).is_some_and(|c| !moves(c));
    let is_begun = |c: &ChildChange<'_>| c.change.action() == Action::Create && moves(c) || is_under_way(c);
    // The record is written when a whole apply has ended: who is elsewhere was brought there by one that has not.
    let recorded = recorded(scene);
    let was_brought = |places: &Vec<String>| places.first() != recorded.as_ref();
    let begun = wanted.members.keys().any(|name| is_there(name) || child(name).is_some_and(is_begun)) || members.values().any(was_brought);
    (!members.is_empty()).then(|| Moving { members, to: wanted.data_directory.clone(), begun })
}

/// A cluster is not destroyed while a member's data has moved and its files have not followed: what cleans up beside the data is among them.
///
/// # Errors
/// There is such a member.
pub(super) fn may_end(scene: &Scene<'_>) -> Result<(), Diagnostics> {
    let mut ahead: Vec<(&str, &str)> = Vec::new();
    for (path, child) in scene.children.iter().filter(|(path, child)| is_data(path) && child.observed.is_some()) {
        let Some(name) = member_of(path) else { continue };
        let at = sides(child.change, "path").0.and_then(Value::as_str);
        ahead.extend(at.filter(|at| guarded(scene, name).is_some_and(|guarded| guarded != *at)).map(|at| (name, at)));
    }
    let Some((_, at)) = ahead.first() else { return Ok(()) };
    let names: Vec<&str> = ahead.iter().map(|(name, _)| *name).collect();
    let detail =
        format!("An apply that moved data was cut off: that of {} is in {at}, and what cleans up there does not know.", names.join(", "));
    Err(Diagnostic::error("A cluster whose data is half-way can't be destroyed", detail)
        .at(scene.address)
        .with_hint("Apply first, with the new `data_directory` or the one from before; then destroy it.")
        .into())
}

/// The host remembers that it was begun.
fn is_under_way(child: &ChildChange<'_>) -> bool {
    child.observed.and_then(|o| o.get("moving")?.as_bool()) == Some(true)
}

/// What no move can do.
pub(super) fn check(scene: &Scene<'_>, wanted: &Arguments) -> Option<Diagnostic> {
    let moving = moving(scene, wanted)?;
    let (from, to) = (moving.from(), &moving.to);
    let back = format!("Put `data_directory` back to \"{from}\".");
    let places = || moving.members.values().flatten();
    if let Some(place) = places().find(|place| overlap(place, to)) {
        return Some(
            Diagnostic::error(
                "A data directory can't be moved into itself",
                format!("The data is in {place}, beside which other things of the cluster have its name, and would be in {to}: one of the two is within the other, or among those."),
            )
            .with_hint("Take a place of its own, as a directory of a disk that was mounted for it."),
        );
    }
    if wanted.restore.is_some() || scene.children.keys().any(|path| is_of_restoration(path)) {
        return Some(
            Diagnostic::error(
                "Data can't be moved together with a restoration",
                format!("What a restoration needs is beside the data, and the data would go from {from} to {to}."),
            )
            .with_hint(if moving.begun {
                "Take the block `restore` out and apply, so that all data is in one place; then restore.".to_owned()
            } else {
                back
            })
            .with_hint("When the restoration has ended well, take the block `restore` out and apply; then move the data."),
        );
    }
    None
}

/// One is within the other, or is called as what stands beside the other.
fn overlap(one: &str, other: &str) -> bool {
    const BESIDE: [&str; 7] = ["snapshots", "before-", "replaced-", "restore", "kept-", "lock", "part"];
    let is_of = |path: &str, base: &str| {
        let Some(rest) = path.strip_prefix(base) else { return false };
        rest.starts_with('/') || rest.strip_prefix('.').is_some_and(|rest| BESIDE.iter().any(|ending| rest.starts_with(ending)))
    };
    is_of(one, other) || is_of(other, one)
}

/// What has to be so before the first member stops.
///
/// # Errors
/// It is not, or something else is to be done that costs a member meanwhile.
pub(super) fn may_begin(
    (scene, wanted): (&Scene<'_>, &Arguments),
    moving: &Moving,
    members: &BTreeMap<String, Member<'_>>,
    membership: &Membership,
    upgrade: Option<&Upgrade>,
) -> Result<(), Diagnostics> {
    let back = format!("Put `data_directory` back to \"{}\"", moving.from());
    let mut found = Diagnostics::new();
    let unseen: Vec<&str> =
        moving.members.keys().filter(|name| !scene.children.contains_key(&part(name, "unit"))).map(String::as_str).collect();
    if !unseen.is_empty() {
        let detail = format!("A member is stopped while its data is moved, and what runs {} is not among the targets.", unseen.join(", "));
        return Err(Diagnostic::error("Data is moved only together with its member", detail)
            .with_hint("Plan without `-target`, or with the member as a whole as the target.")
            .into());
    }
    if upgrade.is_some() {
        found.push(
            Diagnostic::error(
                "Data can't be moved together with another version",
                "The way back from another version leads through what was saved before it, beside the data.",
            )
            .with_hint(format!("{back} and apply the version first, or the other way round.")),
        );
    }
    if moving.begun {
        // Whoever is lost meanwhile has to be replaced, or nothing would ever go on; but by those that stay up.
        let silent: Vec<&str> = moving
            .members
            .keys()
            .filter(|n| members.get(*n).is_some_and(|m| m.condition == Condition::Suspect))
            .map(String::as_str)
            .collect();
        if !membership.moves.is_empty() && !silent.is_empty() {
            let detail = format!(
                "A member is to be replaced, and {} can't be stopped meanwhile: without an answer of a majority nobody takes its place.",
                silent.join(", ")
            );
            found.push(
                Diagnostic::error("Not all members work", detail)
                    .with_hint(format!("{back}, plan and apply, so that they are repaired; then move the data.")),
            );
        }
        return if found.is_empty() { Ok(()) } else { Err(found) };
    }
    if !membership.moves.is_empty() {
        found.push(
            Diagnostic::error("Members can't come and go while data is moved", "Each of the two takes one member of what is to spare.")
                .with_hint(format!("{back}, plan and apply the change of members first, or the other way round.")),
        );
    } else {
        let away = members_away(scene);
        let is_well = |m: &Member<'_>| {
            let healthy = seen(scene, &part(&m.name, "etcd"), "healthy").and_then(Value::as_bool);
            m.condition == Condition::Works && healthy != Some(false) && !away.contains(m.name.as_str())
        };
        let down: Vec<&str> =
            members.values().filter(|m| wanted.members.contains_key(&m.name) && !is_well(m)).map(|m| m.name.as_str()).collect();
        if !down.is_empty() {
            let verb = if down.len() == 1 { "does" } else { "do" };
            let detail = format!("Data is moved only when every member works, and {} {verb} not.", down.join(", "));
            found.push(
                Diagnostic::error("Not all members work", detail)
                    .with_hint(format!("{back}, plan and apply, so that they are repaired; then move the data.")),
            );
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

impl Order<'_> {
    /// The directory of a member goes first in its turn: from then on nothing starts at the old place. Then comes what cleans up there,
    /// what says where the data is, and last the guard: as long as it looks at the old place it lets nobody start at all.
    pub(super) fn move_data(&mut self, moving: &Moving) {
        for (name, places) in &moving.members {
            let data = directory(name);
            let after = ["traces", "environment", "guard"].map(|what| part(name, what));
            let steps: Vec<_> = [data.clone()].into_iter().chain(after).filter(|path| changes(self.scene, path)).collect();
            for pair in steps.windows(2) {
                self.order(Point::Child(pair[0].clone()), Point::Child(pair[1].clone()));
            }
            // Who takes part again as a new member may have nothing.
            if self.members.get(name).is_some_and(|m| m.condition != Condition::Joins) {
                let value = Value::list(Type::String, places.iter().map(|place| place.as_str().into()).collect());
                self.choreography.told.push(Told { child: data, attribute: "moves_from", value });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_in_each_other() {
        for (one, other, expected) in [
            ("/var/lib/etcd/main", "/srv/etcd", false),
            ("/var/lib/etcd/main", "/var/lib/etcd/main2", false),
            ("/var/lib/etcd/main", "/var/lib/etcd/main.new", false),
            ("/var/lib/etcd/main", "/var/lib/etcd/main/data", true),
            ("/var/lib/etcd/main/data", "/var/lib/etcd/main", true),
            ("/var/lib/etcd/main", "/var/lib/etcd/main.snapshots", true),
            ("/srv/etcd.before-1/x", "/srv/etcd", true),
        ] {
            assert_eq!(overlap(one, other), expected, "{one} {other}");
        }
    }
}
