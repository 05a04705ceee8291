//! In which order a cluster in pods is restored. A helper beside each member puts what is restored into its volume while the old cluster still serves; all
//! pods end; the helpers change the data over and go; the StatefulSet starts all members.
//!
//! All of it is operations, which find by looking what is done already: a run that was cut off is gone on with by doing all of them again.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Arg, ChildChange, ChildStep, GateSpec, Point, Scene};

use super::order::{ENDS, HEALTHY, SERVES};
use super::{Ended, Restoration};
use crate::cluster::arguments::Arguments;
use crate::cluster::choreography::{BEFORE_LIMIT, Order};
use crate::cluster::condition::{changes, is_formed, member_of};
use crate::cluster::kubernetes::children::scaled;
use crate::cluster::kubernetes::{Kubernetes, helper, program};
use crate::cluster::places::{formed_note, is_record_of_restoration, part, restoring, starting, stateful_set, stopping};
use crate::cluster::preflight::quota;

/// How long a helper may take until it runs or is gone, in seconds: mostly the time to pull its images; a volume may come from a node that is gone.
const HELPER_LIMIT: u64 = 600;
/// How long a snapshot may take to be sent and restored, in seconds: 8 GiB to each of three members at 20 Mbit/s. What stands still is told earlier.
const PREPARE_LIMIT: i64 = 3 * 3_600;
/// How long pods may take to end, in seconds: each has 60 s to hand over its leadership.
const STOP_LIMIT: u64 = 180;
/// How long one object may take to be written, in seconds.
const WRITE_LIMIT: u64 = 60;
/// How long renaming two folders may take, in seconds.
const SWITCH_LIMIT: i64 = 120;
/// How long data of before may take to be removed, in seconds: 8 GiB in few files.
const REMOVAL_LIMIT: i64 = 300;
/// How long what is left of a restoration that was given up is tried to be reached, in seconds: what kept it from going on may do so still.
const PATIENCE: i64 = 60;

const STOPPED: &str = "all members are stopped";
const STARTED: &str = "all members start";

impl Order<'_> {
    /// The whole of it, or what is left of it when members may have started. Whatever else changes is done with it.
    pub(in crate::cluster) fn restore_in_pods(&mut self, place: &Kubernetes, restoration: &Restoration) {
        let scene = self.scene;
        let set = scene.children.get(&stateful_set());
        let has_pods = is_formed(scene) || set.is_some_and(|set| set.in_state || set.observed.is_some());
        if has_pods {
            self.scale(place, STARTED, "kubernetes_start", place.members, WRITE_LIMIT);
        }
        if !restoration.has_started {
            self.put_in_place(place, restoration, has_pods);
        }
        self.last = has_pods.then(|| (STARTED.to_owned(), BTreeSet::new()));
        self.see_restored();
        let first = if restoration.has_started { STARTED } else { STOPPED };
        self.around_the_start(has_pods.then_some(first));
        self.note_restored();
        if restoration.has_started {
            // What another one has left that came no further.
            self.end_in_pods(place, Ended::Never);
        }
    }

    /// To the moment at which members start.
    fn put_in_place(&mut self, place: &Kubernetes, restoration: &Restoration, has_pods: bool) {
        let (scene, wanted) = (self.scene, self.wanted);
        let token = || Arg::Text(vec!["-token=".into(), Arg::child(&restoring(&restoration.what), "id")]);
        let image: Arg = restoration.what.program_image.clone().into();
        if has_pods {
            self.scale(place, STOPPED, "kubernetes_stop", 0, STOP_LIMIT);
            self.before_gate(&stopping(), STOPPED);
        }
        let ready: Vec<String> =
            wanted.members.keys().map(|name| format!("member[\"{name}\"] has a restored copy beside its data")).collect();
        for (name, is_ready) in wanted.members.keys().zip(&ready) {
            let helped = self.helper_comes(place, name, "has a helper", &image, &[]);
            // What is there of it has to be known by who destroys it.
            for path in ["claim", "volume"].map(|of_it| part(name, of_it)).into_iter().chain([restoring(&restoration.what)]) {
                self.before_gate(&path, &helped);
            }
            let arguments = [vec!["prepare".into(), helper::data().into(), token()], restoration.asked(wanted, name)].concat();
            let source = [("source", restoration.what.source()), ("sha256", restoration.what.sum())];
            self.in_helper(place, (name, is_ready), arguments, PREPARE_LIMIT, &source);
            // It may have ended meanwhile.
            let helped_still = self.helper_comes(place, name, "has its helper still", &image, &[]);
            let switched = format!("member[\"{name}\"] has what was restored");
            self.in_helper(place, (name, &switched), vec!["switch".into(), helper::data().into(), token()], SWITCH_LIMIT, &[]);
            let gone = self.helper_goes(place, name, &[]);
            // Nobody stops before all are ready, and nobody changes over before all have stopped, and that is noted.
            self.one_after_the_other(&[&helped, is_ready]);
            let stop = has_pods.then_some(STOPPED);
            for ready in &ready {
                self.gate_before(&stopping(), ready);
                self.one_after_the_other(&[&[ready.as_str()], stop.as_slice(), &[&helped_still, &switched, &gone]].concat());
            }
            self.before_gate(&stopping(), &helped_still);
            self.gate_before(&starting(), &gone);
            match has_pods {
                true => self.one_after_the_other(&[&gone, STARTED]),
                false => self.gate_before(&stateful_set(), &gone),
            }
        }
        match has_pods {
            true => self.before_gate(&starting(), STARTED),
            false if changes(scene, &starting()) && changes(scene, &stateful_set()) => {
                self.order(Point::Child(starting()), Point::Child(stateful_set()));
            }
            false => {}
        }
    }

    /// What members start with is there before any of them stops: what can fail fails while the old cluster serves. Pods are those of by then, and what was of
    /// who is not wanted any more goes when the others work. `first`: the first that happens to pods that are there.
    fn around_the_start(&mut self, first: Option<&str>) {
        let scene = self.scene;
        self.helpers_of_leaving(HELPER_LIMIT);
        for (path, child) in &scene.children {
            let is_pod = path.get(1).is_some_and(|step| step.name == "pod");
            let is_left = member_of(path).is_some_and(|name| !self.wanted.members.contains_key(name));
            let is_deleted = child.change.action() == Action::Delete;
            match child.resource_type {
                // What is known of one before, too: until then the block may be that of it again.
                _ if is_left || is_deleted && is_record_of_restoration(path) => self.gate_before(path, HEALTHY),
                "kubernetes_object" | "kubernetes_pod" if is_deleted => {}
                "kubernetes_object" | "kubernetes_pod" if is_pod || *path == stateful_set() => {
                    if first.is_some() {
                        self.gate_before(path, STARTED);
                    }
                    self.before_gate(path, SERVES);
                }
                "kubernetes_object" if *path == formed_note() && !is_formed(scene) => self.gate_before(path, HEALTHY),
                "kubernetes_object" => first.iter().for_each(|first| self.before_gate(path, first)),
                _ => {}
            }
        }
    }

    /// The block was taken out, or is that of an earlier one again: what there was before goes when all work without it, or what was made ready for a
    /// restoration that never came.
    pub(in crate::cluster) fn end_in_pods(&mut self, place: &Kubernetes, ended: Ended) {
        let (scene, wanted) = (self.scene, self.wanted);
        let is_deleted = |path: &&Vec<ChildStep>| {
            is_record_of_restoration(path) && scene.children.get(*path).is_some_and(|c| c.change.action() == Action::Delete)
        };
        let records: Vec<_> = scene.children.keys().filter(is_deleted).collect();
        let image = records.iter().find_map(|path| scene.children.get(*path)?.change.before()?.get("input")?.get("program_image").cloned());
        let Some(image) = image.map(Arg::from) else { return };
        let is_over = ended == Ended::Well && !wanted.keeps_data;
        if is_over && self.last.as_ref().is_none_or(|(_, seen)| *seen != self.all()) {
            self.gate_in_turn(ENDS, self.all(), BEFORE_LIMIT);
        }
        let last = self.last.as_ref().map(|(last, _)| last.clone());
        let patience: &[(&str, Arg)] = if is_over { &[] } else { &[("patience", PATIENCE.into())] };
        self.helpers_of_leaving(HELPER_LIMIT);
        for name in wanted.members.keys() {
            let helped = self.helper_comes(place, name, "has a helper", &image, patience);
            let (what, tidy) = match is_over {
                true => ("has nothing of before any more", vec!["tidy".into(), helper::data().into()]),
                false => ("has nothing that was made ready", vec!["tidy".into(), helper::data().into(), "-keep-before".into()]),
            };
            let tidied = format!("member[\"{name}\"] {what}");
            self.in_helper(place, (name, &tidied), tidy, REMOVAL_LIMIT, &[("required", is_over.into())]);
            let gone = self.helper_goes(place, name, patience);
            let all: Vec<&str> = last.iter().chain([&helped, &tidied, &gone]).map(String::as_str).collect();
            self.one_after_the_other(&all);
            // As long as the state remembers it, it is done again.
            records.iter().for_each(|path| self.gate_before(path, &gone));
        }
    }

    /// A restoration that did not come to its end has left helpers, and a claim stays as long as a pod uses it.
    fn helpers_of_leaving(&mut self, limit: u64) {
        for (spec, claim) in helpers_in_the_way(self.scene, limit) {
            if member_of(&claim).is_none_or(|name| self.wanted.members.contains_key(name)) {
                continue;
            }
            self.gate_before(&claim, &spec.name);
            self.choreography.gates.push(spec);
        }
    }

    fn one_after_the_other(&mut self, gates: &[&str]) {
        for (first, second) in gates.iter().zip(gates.iter().skip(1)) {
            self.order(Point::Gate((*first).to_owned()), Point::Gate((*second).to_owned()));
        }
    }

    /// The StatefulSet as it is wanted, with so many pods.
    fn scale(&mut self, place: &Kubernetes, gate: &str, operation: &str, replicas: usize, limit: u64) {
        let manifest = scaled(self.wanted, place, replicas);
        let manifest = if operation == "kubernetes_stop" { ("manifest", manifest) } else { ("manifests", Arg::List(vec![manifest])) };
        self.add_operation(gate, operation, arguments(place, [manifest]), limit);
    }

    fn helper_comes(&mut self, place: &Kubernetes, member: &str, has: &str, image: &Arg, more: &[(&str, Arg)]) -> String {
        let has_pod = self.scene.children.get(&part(member, "pod")).is_some_and(|pod| pod.observed.is_some());
        let gate = format!("member[\"{member}\"] {has}");
        let manifest = helper::manifest(place, member, image, has_pod);
        let mut told = arguments(place, [("manifest", manifest), ("beside", member.into())]);
        told.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.add_operation(&gate, "kubernetes_helper", told, HELPER_LIMIT);
        gate
    }

    fn helper_goes(&mut self, place: &Kubernetes, member: &str, more: &[(&str, Arg)]) -> String {
        let gate = gone(member);
        let mut told = arguments(place, [("manifest", helper::named(&place.namespace, member)), ("present", false.into())]);
        told.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.add_operation(&gate, "kubernetes_helper", told, HELPER_LIMIT);
        gate
    }

    /// Runs karmaform in a member's helper.
    fn in_helper(&mut self, place: &Kubernetes, (member, gate): (&str, &str), told: Vec<Arg>, limit: i64, more: &[(&str, Arg)]) {
        let command = [vec![program::installed().into(), "etcd".into(), "restore".into()], told].concat();
        let mut told = arguments(
            place,
            [
                ("namespace", place.namespace.clone().into()),
                ("pod", helper::name(member).into()),
                ("container", helper::CONTAINER.into()),
                ("command", Arg::List(command)),
                ("timeout", limit.into()),
                // It finds what is done, and waits for one that still does it.
                ("again", true.into()),
            ],
        );
        told.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.add_operation(gate, "kubernetes_exec", told, limit.unsigned_abs());
    }
}

impl Restoration {
    /// What a member's helper is told of what it makes ready.
    fn asked(&self, wanted: &Arguments, member: &str) -> Vec<Arg> {
        let all: Vec<String> = self.urls.iter().map(|(name, url)| format!("{name}={url}")).collect();
        let url = self.urls.get(member).cloned().unwrap_or_default();
        let sum = match &self.what.shelved {
            None => format!("-sha256={}", self.what.sha256).into(),
            Some(_) => Arg::Text(vec!["-sha256=".into(), self.what.sum()]),
        };
        let more = [
            ("member", member.to_owned()),
            ("members", all.join(",")),
            ("url", url),
            ("bump-revision", self.what.bump_of(&wanted.version).to_string()),
            ("quota", quota(wanted).to_string()),
        ]
        .map(|(name, value)| format!("-{name}={value}").into());
        std::iter::once(sum).chain(more).collect()
    }
}

fn gone(member: &str) -> String {
    format!("member[\"{member}\"] has no helper any more")
}

/// Operations that end helpers of claims that are deleted, each with the claim, where a restoration may have left some.
pub(in crate::cluster) fn helpers_in_the_way(scene: &Scene<'_>, limit: u64) -> Vec<(GateSpec, Vec<ChildStep>)> {
    let is_known = scene.children.iter().any(|(path, child)| child.in_state && is_record_of_restoration(path));
    let of = |(path, child): (&Vec<ChildStep>, &ChildChange<'_>)| {
        let member = member_of(path).filter(|name| is_known && *path == part(name, "claim") && child.change.action() == Action::Delete)?;
        let before = child.change.before()?;
        let namespace = before.get("manifest")?.get("metadata")?.get("namespace")?.clone();
        let told = [
            ("cluster", before.get("cluster")?.clone().into()),
            ("manifest", helper::named(&namespace, member)),
            ("present", false.into()),
        ];
        let arguments = told.map(|(name, value): (&str, Arg)| (name.to_owned(), value)).into();
        Some((GateSpec { name: gone(member), gate: "kubernetes_helper".to_owned(), arguments, limit, acts: true }, path.clone()))
    };
    scene.children.iter().filter_map(of).collect()
}

fn arguments<const N: usize>(place: &Kubernetes, more: [(&str, Arg); N]) -> BTreeMap<String, Arg> {
    let cluster = [("cluster", place.connection.clone().into())];
    cluster.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect()
}
