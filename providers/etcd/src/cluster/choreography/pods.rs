//! Members in pods: who joins gets its pod when the cluster knows it, and how many pods there are follows who is a member.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Arg, ChildStep, GateSpec, Point, Scene, Told, Value};

use super::versions::AFTER_SAVING;
use super::{BEFORE_LIMIT, Order};
use crate::cluster::condition::{changes, member_of, seen};
use crate::cluster::kubernetes::children::{claim_manifest, claim_name, save_command, to_close, to_start};
use crate::cluster::kubernetes::{Kubernetes, Storage};
use crate::cluster::places::{disruption_budget, formed_note, part, stateful_set};
use crate::cluster::refusals;
use crate::cluster::snapshot;
use crate::cluster::upgrade::Upgrade;
use crate::cluster::volumes;

/// How long a pod may take until it runs, in seconds: mostly the time to pull its image.
const START_LIMIT: u64 = 300;
/// How long volumes may take to grow, in seconds: clouds take minutes.
const GROW_LIMIT: u64 = 900;
/// How long two objects may take to be written, in seconds.
const WRITE_LIMIT: u64 = 60;

impl Order<'_> {
    /// The cluster knows the member: it comes on the list of those that start without data, and gets its pod.
    pub(super) fn start_pod(&mut self, place: &Kubernetes, name: &str, list: &str, has_data: bool, through: &BTreeSet<String>) {
        let scene = self.scene;
        let added = self.last.as_ref().map(|(added, _)| added.clone());
        // The one that it had goes by the operation that starts it.
        let claim = part(name, "claim");
        let follows = |path: &Vec<ChildStep>| *path == claim && volumes::is_on_another(scene, name);
        let is_before =
            |path: &&Vec<ChildStep>| !path.get(1).is_some_and(|step| ["pod", "etcd"].contains(&step.name.as_str())) && !follows(path);
        let of_it = scene.children.keys().filter(|path| member_of(path) == Some(name)).filter(is_before);
        for path in of_it.chain([&formed_note()]) {
            added.iter().for_each(|added| self.before_gate(path, added));
        }
        // While others wait for their turn their pods stay: they fail, and harm nobody.
        let has_pod = |name: &&String| scene.children.get(&part(name, "pod")).is_some_and(|pod| pod.observed.is_some());
        let there = self.wanted.members.keys().filter(has_pod).chain(through).map(String::as_str).chain([name]);
        let replicas = there.filter_map(|name| place.ordinal(name)).max().map_or(0, |last| last + 1);
        let mut arguments = BTreeMap::from([
            ("cluster".to_owned(), place.connection.clone().into()),
            ("manifests".to_owned(), Arg::List(to_start(self.wanted, place, list, replicas))),
            ("namespace".to_owned(), place.namespace.clone().into()),
            ("pod".to_owned(), name.into()),
        ]);
        if volumes::begins(scene) {
            arguments.insert("remake".to_owned(), true.into());
        }
        let uid =
            |of_it: &str| seen(scene, &part(name, of_it), "uid").filter(|uid| uid.as_str().is_some_and(|uid| !uid.is_empty())).cloned();
        if let Some(uid) = uid("pod").filter(|_| !has_data) {
            arguments.insert("replaces".to_owned(), uid.into());
        }
        if let Some(uid) = uid("claim").filter(|_| makes_claim_anew(scene, place, name, has_data)) {
            arguments.insert("claim".to_owned(), claim_manifest(place, name));
            arguments.insert("replaces_claim".to_owned(), uid.into());
        }
        if matches!(place.storage, Storage::HostPath { .. }) && !has_data {
            // etcd ends like that where the cluster has removed the member that its data is of.
            let folder = place.host_path();
            let what = format!(
                "Probably there is data of a member that was removed in its volume, below {folder} on its node. If its log says so, remove that, and apply again"
            );
            arguments.insert("ends_well".to_owned(), what.into());
        }
        let starts = format!("member[\"{name}\"] starts");
        self.operate_with(&starts, "kubernetes_start", arguments, START_LIMIT);
        if follows(&claim) {
            self.gate_before(&claim, &starts);
        }
    }

    /// A claim that asks for another volume is no reason to delete the one that is there: who does that has looked at the cluster before.
    pub(super) fn keep_claims(&mut self) {
        let claims = self.wanted.members.keys().map(|name| part(name, "claim"));
        let is_changed = |path: &Vec<ChildStep>| self.scene.children.get(path).is_some_and(|c| c.change.action() == Action::Update);
        let told =
            claims.filter(|path| self.formed && is_changed(path)).map(|child| Told { child, attribute: "remake", value: false.into() });
        self.choreography.told.extend(told.collect::<Vec<_>>());
    }

    /// What the data is is saved before any pod is of another version, and when all members were seen healthy. Who goes on with an upgrade has what
    /// was saved when it was begun.
    pub(super) fn save_in_pod(&mut self, upgrade: &Upgrade) {
        let (Some(place), Some(keeper)) = (&self.wanted.kubernetes, snapshot::keeper(self.wanted)) else { return };
        let Some(first) = self.looks().into_iter().next() else { return };
        if upgrade.begun {
            return;
        }
        let saved = format!("member[\"{keeper}\"] saves a snapshot");
        let arguments = BTreeMap::from([
            ("cluster".to_owned(), place.connection.clone().into()),
            ("namespace".to_owned(), place.namespace.clone().into()),
            ("pod".to_owned(), keeper.into()),
            ("container".to_owned(), "etcd".into()),
            ("command".to_owned(), Value::strings(save_command(keeper)).into()),
            ("timeout".to_owned(), snapshot::LIMIT.into()),
        ]);
        self.add_operation(&saved, "kubernetes_exec", arguments, u64::try_from(snapshot::LIMIT).unwrap_or(u64::MAX));
        self.order(first, Point::Gate(saved.clone()));
        // It may have taken long.
        let (name, last) = (AFTER_SAVING.to_owned(), self.last.take());
        self.gate(&name, self.all(), BEFORE_LIMIT);
        self.last = last;
        self.order(Point::Gate(saved), Point::Gate(name.clone()));
        for path in self.wanted.members.keys().map(|member| part(member, "pod")).chain([stateful_set()]) {
            self.gate_before(&path, &name);
        }
    }

    /// Volumes have their new size before it is said that all is done, and before the StatefulSet is made anew with it.
    pub(super) fn grow_volumes(&mut self) {
        let (scene, Some(place)) = (self.scene, &self.wanted.kubernetes) else { return };
        let grows = |name: &String| {
            let is_changed = scene.children.get(&part(name, "claim")).is_some_and(|c| c.change.action() == Action::Update);
            is_changed && !volumes::is_on_another(scene, name)
        };
        // As long as the StatefulSet asks for the old size a run before has not seen all of them grow.
        if (!refusals::grows(scene) || volumes::begins(scene)) && !self.wanted.members.keys().any(grows) {
            return;
        }
        let members: Vec<&String> = self.wanted.members.keys().collect();
        let gate = "the volumes have grown";
        let arguments = BTreeMap::from([
            ("cluster".to_owned(), place.connection.clone().into()),
            ("namespace".to_owned(), place.namespace.clone().into()),
            ("claims".to_owned(), Value::strings(members.iter().map(|name| claim_name(name))).into()),
        ]);
        let spec = GateSpec { name: gate.to_owned(), gate: "kubernetes_grown".to_owned(), arguments, limit: GROW_LIMIT, acts: false };
        self.choreography.gates.push(spec);
        members.iter().for_each(|name| self.before_gate(&part(name, "claim"), gate));
        self.gate_before(&stateful_set(), gate);
    }

    /// From now on nobody starts without data again.
    pub(super) fn close_list(&mut self, place: &Kubernetes, name: &str) {
        let arguments =
            BTreeMap::from([("cluster".to_owned(), place.connection.clone().into()), ("manifests".to_owned(), Arg::List(to_close(place)))]);
        let closed = format!("member[\"{name}\"] starts with its data alone from now on");
        self.operate_with(&closed, "kubernetes_start", arguments, WRITE_LIMIT);
    }

    /// Who left has its pod until then, and its volume longer.
    pub(super) fn pod_after(&mut self, name: &str, left: &str) {
        if self.wanted.kubernetes.is_none() {
            return;
        }
        let goes = ["pod", "secret", "claim", "volume"].map(|of_it| part(name, of_it));
        for path in goes.iter().chain([&stateful_set()]) {
            self.gate_before(path, left);
        }
        if !self.wanted.members.contains_key(name) && changes(self.scene, &stateful_set()) {
            for path in goes.into_iter().filter(|path| changes(self.scene, path)) {
                self.order(Point::Child(stateful_set()), Point::Child(path));
            }
        }
    }

    /// The StatefulSet comes last: what it says by then is so. How many may be evicted is said before there are more members, and after there are fewer.
    pub(super) fn follow_with_pods(&mut self, first: &str) {
        let Some((last, _)) = self.last.clone().filter(|_| self.wanted.kubernetes.is_some()) else { return };
        self.gate_before(&stateful_set(), &last);
        match self.wanted.members.len() > self.membership.voters {
            true => self.before_gate(&disruption_budget(), first),
            false => self.gate_before(&disruption_budget(), &last),
        }
    }
}

/// A volume that was there before its member is one. What may be in it is of one that the cluster does not know any more, and etcd can't start with that; who
/// is known to have lost all has nothing in it. And one of another class than it is to be.
pub(crate) fn makes_claim_anew(scene: &Scene<'_>, place: &Kubernetes, name: &str, has_data: bool) -> bool {
    let is_there = scene.children.get(&part(name, "claim")).is_some_and(|c| c.in_state && c.observed.is_some());
    if volumes::is_on_another(scene, name) {
        return !has_data;
    }
    is_there && !has_data && matches!(place.storage, Storage::Class(_)) && crate::cluster::condition::has_data(scene, name) == Some(true)
}
