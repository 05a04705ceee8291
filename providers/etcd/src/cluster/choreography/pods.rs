//! Members in pods: who joins gets its pod when the cluster knows it, and how many pods there are follows who is a member.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Arg, GateSpec, Point, Scene, Type, Value};

use super::Order;
use crate::cluster::condition::{changes, has_data, last_words, member_of, seen};
use crate::cluster::kubernetes::children::{claim_manifest, to_close, to_start};
use crate::cluster::kubernetes::{Kubernetes, REMOVED, Storage};
use crate::cluster::places::{disruption_budget, formed_note, part, stateful_set};

/// How long a pod may take until it runs, in seconds: mostly the time to pull its image.
const START_LIMIT: u64 = 300;
/// How long two objects may take to be written, in seconds.
const WRITE_LIMIT: u64 = 60;

impl Order<'_> {
    /// The cluster knows the member: it comes on the list of those that start without data, and gets its pod.
    pub(super) fn start_pod(&mut self, place: &Kubernetes, name: &str, list: &str, replaces: bool, through: &BTreeSet<String>) {
        let scene = self.scene;
        let added = self.last.as_ref().map(|(added, _)| added.clone());
        let of_it = scene.children.keys().filter(|path| member_of(path) == Some(name));
        let before = of_it
            .filter(|path| !path.get(1).is_some_and(|step| ["pod", "etcd"].contains(&step.name.as_str())))
            .chain([&formed_note()])
            .cloned()
            .collect::<Vec<_>>();
        for path in before {
            added.iter().for_each(|added| self.before_gate(&path, added));
        }
        // While others wait for their turn their pods stay: they fail, and harm nobody.
        let has_pod = |name: &&String| scene.children.get(&part(name, "pod")).is_some_and(|pod| pod.observed.is_some());
        let there = self.wanted.members.keys().filter(has_pod).chain(through).map(String::as_str).chain([name]);
        let replicas = there.filter_map(|name| place.ordinal(name)).max().map_or(0, |last| last + 1);
        let mut arguments = BTreeMap::from([
            ("manifests".to_owned(), Arg::List(to_start(self.wanted, place, list, replicas))),
            ("namespace".to_owned(), place.namespace.clone().into()),
            ("pod".to_owned(), name.into()),
        ]);
        let uid = seen(scene, &part(name, "pod"), "uid").filter(|uid| uid.as_str().is_some());
        arguments.insert("replaces".to_owned(), uid.cloned().unwrap_or_else(|| Value::null(Type::String)).into());
        if makes_claim_anew(scene, place, name, replaces) {
            arguments.insert("claim".to_owned(), claim_manifest(place, name));
        }
        self.act(place, format!("member[\"{name}\"] starts"), arguments, START_LIMIT);
    }

    /// From now on nobody starts without data again.
    pub(super) fn close_list(&mut self, place: &Kubernetes, name: &str) {
        let arguments = BTreeMap::from([("manifests".to_owned(), Arg::List(to_close(place)))]);
        self.act(place, format!("member[\"{name}\"] starts with its data alone from now on"), arguments, WRITE_LIMIT);
    }

    fn act(&mut self, place: &Kubernetes, name: String, mut arguments: BTreeMap<String, Arg>, limit: u64) {
        arguments.insert("cluster".to_owned(), place.connection.clone().into());
        self.choreography.gates.push(GateSpec { name: name.clone(), gate: "kubernetes_start".to_owned(), arguments, limit, acts: true });
        if let Some((previous, _)) = &self.last {
            self.order(Point::Gate(previous.clone()), Point::Gate(name.clone()));
        }
        self.last = Some((name, BTreeSet::new()));
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

    /// The StatefulSet and what goes by its size come last: what they say by then is so.
    pub(super) fn follow_with_pods(&mut self) {
        let Some((last, _)) = self.last.clone().filter(|_| self.wanted.kubernetes.is_some()) else { return };
        for path in [stateful_set(), disruption_budget()] {
            self.gate_before(&path, &last);
        }
    }
}

/// A volume in which there is something of a member that the cluster does not know any more. It can't start with that; what is lost is in
/// none, and what was just made has nothing in it.
pub(crate) fn makes_claim_anew(scene: &Scene<'_>, place: &Kubernetes, name: &str, replaces: bool) -> bool {
    let is_there = scene.children.get(&part(name, "claim")).is_some_and(|c| c.in_state && c.observed.is_some());
    let was_removed = last_words(scene, name).is_some_and(|words| words.contains(REMOVED));
    is_there && matches!(place.storage, Storage::Class(_)) && (was_removed || replaces && has_data(scene, name) == Some(true))
}
