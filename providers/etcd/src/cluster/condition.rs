//! What a scene shows about each member: whether it works, what changes for it, and what that change does.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Change, ChildChange, ChildStep, Key, Object, Scene, Value, same};

use super::arguments::Arguments;
use super::kubernetes::LOST;
use super::moving;
use super::places::{formed_note, is_of_restoration, part, part_of, stateful_set, token};
use super::roster::{told, written_url};

/// Parts that etcd reads only at its next start. Changing one early would put it in effect whenever the member happens to restart. What removes a
/// member's traces at its end goes with them: it knows where the data is.
const AT_START: &[&str] = &["environment", "guard", "program", "traces", "unit", "pod"];

/// The part that runs a member: on a host, and on Kubernetes.
const RUNNERS: &[&str] = &["unit", "pod"];

/// Whether a member works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Reads go through it; or, where nobody could ask, its unit is active.
    Works,
    /// It does not run. Starting it can't take anything away from the cluster.
    Stopped,
    /// It runs, but did not answer well. It may still vote, so it is treated as if it did.
    Suspect,
    /// It is no member yet, or not any more: it starts only after the cluster was told of it.
    Joins,
}

/// One member's part of a scene.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) name: String,
    pub(crate) condition: Condition,
    pub(crate) leads: bool,
    /// It runs, and has taken no part since it was started: see [`start_anew`].
    pub(crate) waits: bool,
    /// Its parts with a change.
    pub(crate) changes: Vec<(&'a [ChildStep], &'a ChildChange<'a>)>,
}

impl Member<'_> {
    /// It is started or restarted.
    pub(crate) fn restarts(&self) -> bool {
        self.changes.iter().any(|(path, c)| RUNNERS.contains(&part_name(path)) && turns(c.change))
    }

    /// Something of it changes, on its host or in Kubernetes.
    pub(crate) fn is_touched(&self) -> bool {
        self.changes.iter().any(|(_, c)| is_outside(c))
    }

    /// Its certificates or their files are written anew.
    pub(crate) fn renews(&self) -> bool {
        self.changes.iter().any(|(path, _)| matches!(part_name(path), "pki" | "secret"))
    }

    /// What of it changes on its host or in Kubernetes.
    pub(crate) fn outside(&self) -> impl Iterator<Item = &[ChildStep]> {
        self.changes.iter().filter(|(_, c)| is_outside(c)).map(|(path, _)| *path)
    }

    /// What of that has no effect before the next start.
    pub(crate) fn at_start(&self) -> impl Iterator<Item = &[ChildStep]> {
        self.changes.iter().filter(|(path, c)| is_outside(c) && is_at_start(path, c)).map(|(path, _)| *path)
    }

    /// What repairs it on its host without any effect on what works. It is done for all members before any of them is restarted: one of them may
    /// be about to fail for want of it, and then there would be one too few.
    pub(crate) fn repairs(&self) -> impl Iterator<Item = &[ChildStep]> {
        let is_one =
            |path: &[ChildStep], c: &ChildChange<'_>| c.resource_type.starts_with("ssh_") && is_repair(c.change) && !is_at_start(path, c);
        self.changes.iter().filter(move |(path, c)| is_one(path, c)).map(|(path, _)| *path)
    }

    /// What can heal it as it runs: everything, unless it is restarted anyway.
    pub(crate) fn at_once(&self) -> impl Iterator<Item = &[ChildStep]> {
        let restarts = self.restarts();
        // A pod's change waits for its template, which may wait for the gate that these come before.
        let waits = move |path: &[ChildStep], c: &ChildChange<'_>| restarts && is_at_start(path, c) || part_name(path) == "pod";
        self.changes.iter().filter(move |(path, c)| is_outside(c) && !waits(path, c)).map(|(path, _)| *path)
    }
}

/// True for what has no effect before the next start, and for data that is moved, which nobody can do while the member runs.
fn is_at_start(path: &[ChildStep], change: &ChildChange<'_>) -> bool {
    AT_START.contains(&part_name(path)) || moving::is_data(path) && moving::moves(change)
}

/// True if this change of a unit or a pod starts or restarts it; that a unit is enabled again, for one, does not.
fn turns(change: &Change) -> bool {
    let Change::Update { before, after } = change else { return true };
    let is = |object: &Object, name: &str| object.get(name).and_then(Value::as_bool);
    is(before, "active") == Some(false)
        || is(before, "interrupted") == Some(true)
        || has_strangers(before, after)
        || ["content", "restart_triggers", "sha256", "revision"].iter().any(|name| !same(before.get(name), after.get(name)))
}

/// Files that change the unit go, and with them it was another one.
fn has_strangers(before: &Object, after: &Object) -> bool {
    let allowed = after.get("drop_ins").and_then(Value::as_items).unwrap_or_default();
    let there = ["drop_ins", "unlisted_drop_ins"].iter().filter_map(|name| before.get(name)?.as_items()).flatten();
    after.contains_key("drop_ins") && there.into_iter().any(|file| !allowed.contains(file))
}

/// What changes is who may do what with a thing, or that it is there at all: nothing that works can come to harm by it.
fn is_repair(change: &Change) -> bool {
    match change {
        Change::Create { .. } => true,
        Change::Update { before, after } => {
            ["content", "sha256", "content_sha256", "manifest"].iter().all(|n| same(before.get(n), after.get(n)))
        }
        _ => false,
    }
}

fn is_outside(change: &ChildChange<'_>) -> bool {
    ["ssh_", "kubernetes_"].iter().any(|provider| change.resource_type.starts_with(provider))
}

/// What runs a member, as far as it is in the scene.
pub(crate) fn runner(name: &str, scene: &Scene<'_>) -> Vec<ChildStep> {
    let paths = RUNNERS.iter().map(|r| part(name, r));
    paths.into_iter().find(|p| scene.children.contains_key(p)).unwrap_or_else(|| part(name, "unit"))
}

/// What tells whether a member works is in the scene. With `-target` on another part of it nobody looks, and it may be as well as ever.
pub(crate) fn is_looked_at(name: &str, scene: &Scene<'_>) -> bool {
    scene.children.contains_key(&part(name, "etcd")) || scene.children.contains_key(&runner(name, scene))
}

fn part_name(path: &[ChildStep]) -> &str {
    path.get(1).map_or("", |step| step.name.as_str())
}

/// The member that a path belongs to.
pub(crate) fn member_of(path: &[ChildStep]) -> Option<&str> {
    match path.first() {
        Some(ChildStep { name, key: Some(Key::Name(key)) }) if name == "member" => Some(key),
        _ => None,
    }
}

/// True if this is not a change.
pub(crate) fn is_unchanged(change: &Change) -> bool {
    matches!(change.action(), Action::NoOp | Action::Forget)
}

/// True if this part is in the scene, and changes.
pub(crate) fn changes(scene: &Scene<'_>, path: &[ChildStep]) -> bool {
    scene.children.get(path).is_some_and(|c| !is_unchanged(c.change))
}

/// The cluster was formed: from then on it has an identity and data to lose.
pub(crate) fn is_formed(scene: &Scene<'_>) -> bool {
    let has_id = scene.before.and_then(|b| b.get("cluster_id")).and_then(Value::as_str).is_some_and(|id| !id.is_empty());
    let is_noted = scene.children.get(&formed_note()).is_some_and(|c| c.in_state);
    has_id || is_noted || scene.children.values().any(|c| c.resource_type == "etcd_member" && c.in_state) || is_formed_unnoted(scene)
}

/// The run that formed it on hosts ended before it had noted that, and a member has lost its data since, or is being replaced for it. Its guard knows that it
/// was one, and would refuse it for ever as one that forms a cluster. That those that work hold the keys of this state makes them its cluster.
fn is_formed_unnoted(scene: &Scene<'_>) -> bool {
    let is_ours = scene.children.get(&token()).is_some_and(|c| c.in_state);
    let Some(list) = told(scene).filter(|_| is_ours) else { return false };
    let is_lost = |name: &str| has_data(scene, name) == Some(false) || is_hollow(scene, name);
    let is_replaced = |name: &str, url: &String| match list.iter().find(|entry| entry.urls.contains(url)) {
        None => true,
        Some(entry) => entry.learner || entry.started && is_lost(name),
    };
    scene.children.iter().any(|(path, child)| {
        let Some(name) = member_of(path).filter(|name| *path == part(name, "environment")) else { return false };
        let stays = child.change.after().is_some();
        stays && written_url(child.change).is_some_and(|url| is_replaced(name, &url))
    })
}

/// The members whose hosts do not answer, by name. Of what is new on a host nobody asked: one part that was asked for stands for all.
pub(crate) fn members_away<'s>(scene: &'s Scene<'_>) -> BTreeSet<&'s str> {
    let unseen = scene.children.iter().filter(|(_, child)| child.unseen && child.resource_type.starts_with("ssh_"));
    unseen.filter_map(|(path, _)| member_of(path)).collect()
}

/// The members in a scene, wanted or not, by name.
pub(crate) fn members<'a>(scene: &'a Scene<'a>) -> BTreeMap<String, Member<'a>> {
    let formed = is_formed(scene);
    let mut members: BTreeMap<String, Member<'a>> = BTreeMap::new();
    // Pods wait for the template, and the template for all Secrets and claims: these are no part of any member's turn then.
    let secrets_come_first = changes(scene, &stateful_set());
    for (path, child) in &scene.children {
        let Some(name) = member_of(path) else { continue };
        let member = members.entry(name.to_owned()).or_insert_with(|| Member {
            name: name.to_owned(),
            condition: condition(scene, name, formed),
            leads: seen(scene, &part(name, "etcd"), "leader").and_then(Value::as_bool) == Some(true),
            waits: false,
            changes: Vec::new(),
        });
        // What lists the members for a first start has no effect on one that has data: it may be written at any time. Saving the data does
        // nothing to a member, nor is what is left of a restoration or kept for a state that gets lost anything to it.
        let has_no_turn = match part_name(path) {
            "peers" | "snapshot" | "authority" => true,
            "secret" | "claim" | "volume" => secrets_come_first,
            _ => is_of_restoration(path),
        };
        if !is_unchanged(child.change) && !has_no_turn {
            member.changes.push((path, child));
        }
    }
    members
}

/// Nobody works, and there are members on hosts that wait since they were started until the others hear them: one that has a part in a majority waits for
/// a moment alone. Where such a one is to be restarted, that costs nothing, and it is what may bring the majority back: it is started like one that
/// does not run.
pub(crate) fn start_anew(scene: &Scene<'_>, wanted: &Arguments, members: &mut BTreeMap<String, Member<'_>>) {
    let healthy = |name: &String| seen(scene, &part(name, "etcd"), "healthy").and_then(Value::as_bool);
    let all_are_seen = wanted.members.keys().all(|name| scene.children.contains_key(&part(name, "etcd")));
    if wanted.kubernetes.is_some() || !all_are_seen || members.keys().any(|name| healthy(name) == Some(true)) {
        return;
    }
    let is = |name: &str, attribute: &str, state: &str| seen(scene, &part(name, "unit"), attribute).and_then(Value::as_str) == Some(state);
    let waits = |m: &&mut Member<'_>| {
        let is_starting = is(&m.name, "active_state", "activating") && is(&m.name, "sub_state", "start");
        m.condition == Condition::Suspect && m.restarts() && is_starting
    };
    for member in members.values_mut().filter(waits) {
        (member.condition, member.waits) = (Condition::Stopped, true);
    }
}

/// What was observed of a part.
pub(crate) fn seen<'a>(scene: &'a Scene<'_>, path: &[ChildStep], attribute: &str) -> Option<&'a Value> {
    scene.children.get(path)?.observed?.get(attribute)
}

fn condition(scene: &Scene<'_>, name: &str, formed: bool) -> Condition {
    let healthy = seen(scene, &part(name, "etcd"), "healthy").and_then(Value::as_bool);
    let runner = scene.children.get(&runner(name, scene));
    let state = |attribute: &str| runner?.observed?.get(attribute)?.as_str();
    // Whoever is being stopped answers for a moment more, and nobody need be there who starts it again.
    if healthy == Some(true) && state("active_state") != Some("deactivating") {
        return Condition::Works;
    }
    let Some(runner) = runner else { return Condition::Stopped };
    if runner.observed.is_none() {
        // Not there; or there, and nobody looked.
        return if runner.change.action() == Action::Create { Condition::Stopped } else { Condition::Works };
    }
    if runner.resource_type == "kubernetes_pod" {
        // "Running" is who runs at this moment. A container that ended and waits to be started again (`CrashLoopBackOff`) has to be told
        // from that, or a change that would mend it waited for its health.
        return match state("phase") {
            Some("Running") if !formed => Condition::Stopped,
            Some("Running" | "Unknown") if healthy.is_some() => Condition::Suspect,
            Some("Running" | "Unknown") => Condition::Works,
            _ => Condition::Stopped,
        };
    }
    match state("active_state") {
        Some("inactive" | "failed" | "deactivating") => Condition::Stopped,
        // It ended, and systemd waits before it tries again. Or the cluster was never formed, and it waits for its peers.
        Some("activating") if state("sub_state") == Some("auto-restart") || !formed => Condition::Stopped,
        Some("active" | "reloading") if healthy.is_none() => Condition::Works,
        _ => Condition::Suspect,
    }
}

/// Whether a member has data, or a volume that is not for anybody else; `None` if nobody looked.
pub(crate) fn has_data(scene: &Scene<'_>, name: &str) -> Option<bool> {
    if last_words(scene, name).is_some_and(|words| words.contains(LOST)) {
        return Some(false);
    }
    if let Some(claim) = scene.children.get(&part(name, "claim")) {
        return Some(claim.observed.is_some() || claim.change.action() != Action::Create);
    }
    if let Some(pod) = scene.children.get(&part(name, "pod")) {
        // Its data is in the pod. One that is there and says nothing of it has not tried to start yet, or goes on from it.
        return Some(pod.observed.is_some() || pod.change.action() != Action::Create);
    }
    let child = scene.children.get(&part_of(name, "directory", "data"))?;
    match child.observed {
        Some(seen) => seen.get("empty").and_then(Value::as_bool).map(|empty| !empty),
        None => matches!(child.change.action(), Action::Create).then_some(false),
    }
}

/// A part of a member's data is left on its host, and its log is not: its guard lets it start with that no more than with nothing.
pub(crate) fn is_hollow(scene: &Scene<'_>, name: &str) -> bool {
    seen(scene, &part_of(name, "directory", "data"), "hollow").and_then(Value::as_bool) == Some(true)
}

/// What a member in a pod said before it ended, if it is not well since.
pub(crate) fn last_words<'a>(scene: &'a Scene<'_>, name: &str) -> Option<&'a str> {
    let is_well = seen(scene, &part(name, "etcd"), "healthy").and_then(Value::as_bool) == Some(true);
    seen(scene, &part(name, "pod"), "termination_message").filter(|_| !is_well)?.as_str()
}

/// An attribute on the two sides of a change.
pub(crate) fn sides<'a>(change: &'a Change, attribute: &str) -> (Option<&'a Value>, Option<&'a Value>) {
    let get = |object: Option<&'a Object>| object.and_then(|o| o.get(attribute));
    (get(change.before()), get(change.after()))
}

/// An attribute is another one on the two sides, or not known on one of them.
pub(crate) fn differs(change: &Change, attribute: &str) -> bool {
    let (before, after) = sides(change, attribute);
    !same(before, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(entries: &[(&str, Value)]) -> Object {
        entries.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect()
    }

    #[test]
    fn drop_ins_that_go_are_a_restart() {
        let files = |name: &str, files: &[&str]| object(&[(name, Value::strings(files)), ("active", true.into())]);
        let check = |before: Object, after: Object, expected: bool| assert_eq!(turns(&Change::Update { before, after }), expected);
        check(files("drop_ins", &["x.conf"]), files("drop_ins", &[]), true);
        check(files("unlisted_drop_ins", &["x.conf"]), files("drop_ins", &[]), true);
        check(files("drop_ins", &["x.conf"]), files("drop_ins", &["x.conf"]), false);
        check(files("unlisted_drop_ins", &[]), files("drop_ins", &[]), false);
        check(files("unlisted_drop_ins", &["x.conf"]), object(&[("active", true.into())]), false);
    }

    #[test]
    fn who_is_being_stopped_does_not_work_though_it_still_answers() {
        let check = |active_state: &str, healthy: Option<bool>, expected: Condition| {
            let unit = object(&[("active_state", active_state.into())]);
            let etcd = healthy.map(|healthy| object(&[("healthy", healthy.into())]));
            let change = Change::NoOp { object: Object::new() };
            let child = |resource_type, observed| ChildChange { resource_type, change: &change, observed, in_state: true, unseen: false };
            let children =
                [(part("a", "unit"), child("ssh_systemd_unit", Some(&unit))), (part("a", "etcd"), child("etcd_member", etcd.as_ref()))];
            let address = "etcd_cluster.main".parse().expect("an address");
            let scene = Scene { address: &address, before: None, wanted: None, children: children.into() };
            assert_eq!(condition(&scene, "a", true), expected, "{active_state}, {healthy:?}");
        };
        check("active", Some(true), Condition::Works);
        check("active", Some(false), Condition::Suspect);
        check("active", None, Condition::Works);
        for healthy in [Some(true), Some(false), None] {
            check("deactivating", healthy, Condition::Stopped);
            if healthy != Some(true) {
                check("inactive", healthy, Condition::Stopped);
            }
        }
    }

    #[test]
    fn a_repair_changes_no_content() {
        let file = |content: &str, owner: &str| object(&[("content", content.into()), ("owner", owner.into())]);
        let update = |before: Object, after: Object| is_repair(&Change::Update { before, after });
        assert!(update(file("a", "root"), file("a", "etcd")));
        assert!(!update(file("a", "etcd"), file("b", "etcd")));
        assert!(is_repair(&Change::Create { after: file("a", "etcd") }));
        assert!(!is_repair(&Change::Delete { before: file("a", "etcd") }));
    }
}
