//! A model of one Kubernetes namespace with an etcd cluster, for tests: objects by name, a StatefulSet controller and a kubelet, volumes, and
//! what etcd makes of all that; and what must never happen.
//!
//! Time passes in [`World::settle`]: then missing pods are made, containers that ended are started again, and members find each other. With
//! `eager` set, pods are made and started right after each step as well: the other end of what a real cluster may do between two steps.
//!
//! Knows nothing of plans and orders.

mod members;
mod objects;
mod outside;
mod pod;
mod restore;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use karmaform_model::Value;
use objects::Thing;
use serde_json::Value as Json;

use crate::model::{roster, shared, trust};

pub(crate) use pod::{Data, Pod, Process};
pub(crate) use restore::Beside;
use roster::{Known, Roster};
use shared::Shared;
pub(crate) use trust::Client;

/// What names an object: its kind and its name.
pub(crate) type Name = (String, String);

/// A namespace, and what was seen to go wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct World {
    /// Objects by name.
    pub(crate) objects: Shared<BTreeMap<Name, Thing>>,
    /// Pods of the StatefulSet.
    pub(crate) pods: BTreeMap<String, Pod>,
    /// Data by what holds it: `claim NAME` or `node PATH`.
    pub(crate) disks: BTreeMap<String, Data>,
    /// What is beside the data, by what holds it.
    pub(crate) beside: BTreeMap<String, Beside>,
    /// Pods that help to restore.
    pub(crate) helpers: BTreeSet<String>,
    /// Members that ever had data of the cluster that was formed.
    pub(crate) had_data: BTreeSet<String>,
    /// The cluster that was formed, and whom it knows.
    pub(crate) formed: Option<Roster>,
    /// The leader's name.
    pub(crate) leader: Option<String>,
    /// What must never happen, and did.
    pub(crate) violations: Vec<String>,
    /// Members that a step of ours took down and that are not back.
    pub(crate) down_by_us: BTreeSet<String>,
    /// The cluster is being destroyed: members may go.
    pub(crate) destroying: bool,
    /// Something interfered after a gate had seen the members healthy; then a lost quorum is not our doing.
    pub(crate) disturbed: bool,
    /// A gate passed in this run.
    pub(crate) was_looked_at: bool,
    /// Controllers and kubelets act right after each step, and not only when time passes.
    pub(crate) eager: bool,
    /// A crash ends the container alone, and the kubelet starts it again; else the whole pod is evicted.
    pub(crate) soft_crash: bool,
    /// Who uses the cluster.
    pub(crate) clients: Vec<Client>,
    /// The client certificate that the state has.
    ours: Option<String>,
    made: u64,
    /// At which minor version of the cluster its data was saved last.
    saved: Option<u32>,
    /// No snapshot can be written.
    pub(crate) has_no_room: bool,
    /// In this member's volume there is none.
    pub(crate) no_room_of: Option<String>,
    /// etcd has just changed its members: it takes no other change for some seconds.
    moved: bool,
}

impl World {
    /// An object's manifest.
    pub(crate) fn manifest(&self, kind: &str, name: &str) -> Option<&Json> {
        self.objects.get(&(kind.to_owned(), name.to_owned())).map(|thing| &**thing.manifest())
    }

    /// The one StatefulSet.
    pub(crate) fn stateful_set(&self) -> Option<&Rc<Json>> {
        self.objects.iter().find(|((kind, _), _)| kind == "StatefulSet").map(|(_, thing)| thing.manifest())
    }

    fn quorum(&self) -> usize {
        self.formed.as_ref().map_or(0, Roster::majority)
    }

    /// Where the others reach a member.
    pub(crate) fn url(member: &str) -> String {
        format!("https://{member}.etcd-main.karmada.svc:2380")
    }

    /// What the formed cluster knows of a member, if its data is of that.
    fn known(&self, member: &str) -> Option<&Known> {
        let (roster, data) = (self.formed.as_ref()?, self.data_of(member)?);
        roster.members.get(&Self::url(member)).filter(|known| data.cluster == roster.id && known.incarnation == data.incarnation)
    }

    /// Members that take part in the formed cluster, learners among them. Without the headless Service nobody finds anybody.
    fn taking_part(&self) -> impl Iterator<Item = (&String, &Known)> {
        let is_named = self.stateful_set().is_none_or(|set| {
            let service = set["spec"]["serviceName"].as_str().unwrap_or_default();
            self.objects.contains_key(&("Service".to_owned(), service.to_owned()))
        });
        let has_joined = |pod: &Pod| matches!(&pod.process, Process::Running { joined: true, .. });
        let pods = self.pods.iter().filter(move |(_, pod)| is_named && has_joined(pod));
        pods.filter_map(|(name, _)| Some((name, self.known(name)?)))
    }

    /// Those of them that vote.
    fn voting(&self) -> impl Iterator<Item = &String> {
        self.taking_part().filter(|(_, known)| !known.learner).map(|(name, _)| name)
    }

    /// Their names.
    pub(crate) fn alive(&self) -> BTreeSet<String> {
        self.voting().cloned().collect()
    }

    /// The formed cluster has a quorum.
    pub(crate) fn has_quorum(&self) -> bool {
        self.formed.is_some() && self.voting().count() >= self.quorum()
    }

    /// Time passes.
    pub(crate) fn settle(&mut self) {
        self.controllers();
        let mut clusters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, pod) in &self.pods {
            if let Process::Running { cluster, .. } = &pod.process {
                clusters.entry(cluster.clone()).or_default().push(name.clone());
            }
        }
        for (cluster, running) in clusters {
            let Some(data) = running.first().and_then(|name| self.data_of(name)) else { continue };
            let members = data.members.clone();
            match &self.formed {
                None if running.len() < members.len() / 2 + 1 => continue,
                None => {
                    self.formed = Some(self.begun(&cluster, &members, &running));
                    self.had_data = running.iter().cloned().collect();
                }
                Some(roster) if roster.id == cluster => {}
                Some(_) if running.len() < members.len() / 2 + 1 => continue,
                Some(_) if self.follows(&cluster) => {
                    self.formed = Some(self.begun(&cluster, &members, &running));
                    self.had_data = running.iter().cloned().collect();
                }
                Some(roster) => self.violations.push(format!("a second cluster {cluster} beside {}", roster.id)),
            }
            let votes = |name: &&String| self.known(name).is_some_and(|known| !known.learner);
            let has_majority = running.iter().filter(votes).count() >= self.quorum();
            for name in &running {
                let is_known = self.known(name).is_some();
                let Some(pod) = self.pods.get_mut(name) else { continue };
                match &mut pod.process {
                    // The others tell it.
                    Process::Running { .. } if !is_known && has_majority => pod.process = Process::Ended(members::REMOVED.to_owned()),
                    Process::Running { joined, .. } if is_known && has_majority => {
                        *joined = true;
                        self.down_by_us.remove(name);
                        self.had_data.insert(name.clone());
                    }
                    _ => {}
                }
            }
        }
        self.notes_who_is_refused();
        let alive = self.alive();
        self.leaves_a_version(&alive);
        if !self.has_quorum() {
            self.leader = None;
        } else if !self.leader.as_ref().is_some_and(|l| alive.contains(l)) {
            self.leader = alive.first().cloned();
        }
    }

    /// A cluster that begins with these.
    fn begun(&self, cluster: &str, members: &BTreeSet<String>, running: &[String]) -> Roster {
        let known = |name: &String| (Self::url(name), Known { incarnation: 0, learner: false, name: Some(name.clone()) });
        let version = running.first().and_then(|name| self.pods[name].minor());
        Roster { id: cluster.to_owned(), members: members.iter().map(known).collect(), version, goes_down_to: None }
    }

    /// Once all members are of a newer version, the cluster is, and there is no way back.
    fn leaves_a_version(&mut self, alive: &BTreeSet<String>) {
        let minors = alive.iter().filter_map(|name| self.pods.get(name)?.minor()).collect();
        if let Some(roster) = self.formed.as_mut().filter(|r| r.voters() == alive.len()) {
            roster.monitor(&minors);
        }
    }

    /// The StatefulSet controller makes what is missing, from the template as it is now; the kubelet starts what does not run.
    fn controllers(&mut self) {
        if let Some(set) = self.stateful_set().cloned() {
            let name = set["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let replicas = set["spec"]["replicas"].as_u64().unwrap_or(1);
            let wanted: Vec<String> = (0..replicas).map(|i| format!("{name}-{i}")).collect();
            self.pods.retain(|pod, _| wanted.contains(pod));
            for pod in wanted {
                for claim in set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten() {
                    self.claim(claim, &pod, &set["metadata"]["namespace"]);
                }
                if !self.pods.contains_key(&pod) {
                    self.made += 1;
                    let uid = format!("uid-{}", self.made);
                    self.pods.insert(pod, Pod::new(uid, &set["spec"]["template"]));
                }
            }
        }
        for name in self.pods.keys().cloned().collect::<Vec<_>>() {
            self.start(&name);
        }
    }

    /// A pod's container ends by itself, or the whole pod is evicted.
    pub(crate) fn crash(&mut self, member: &str) {
        self.disturbed |= self.was_looked_at;
        if self.soft_crash {
            if let Some(pod) = self.pods.get_mut(member) {
                pod.process = Process::Ended("killed".to_owned());
            }
        } else {
            self.pods.remove(member);
        }
    }

    /// A member's volume loses all that was on it.
    pub(crate) fn wipe(&mut self, member: &str) {
        if let Some(disk) = self.disk_of(member) {
            self.disks.remove(&disk);
        }
        if let Some(pod) = self.pods.get_mut(member) {
            pod.data = None;
            pod.process = Process::Ended("its data is gone".to_owned());
        }
    }

    /// Removes an object, as `kubectl delete --cascade=orphan` would.
    pub(crate) fn remove(&mut self, kind: &str, name: &str) {
        assert!(self.objects.remove(&(kind.to_owned(), name.to_owned())).is_some(), "no {kind} {name}");
    }

    /// A read goes through this member, and its certificates are those of the CA.
    pub(crate) fn is_healthy(&self, member: &str) -> bool {
        self.has_quorum() && self.voting().any(|name| name == member) && self.has_certificates(member)
    }

    /// What is left: objects, pods, and data.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let objects = self.objects.keys().map(|(kind, name)| format!("{kind} {name}"));
        let pods = self.pods.keys().map(|name| format!("pod {name}"));
        let data = self.disks.keys().map(|disk| format!("data on {disk}"));
        objects.chain(pods).chain(data).chain(self.helpers.iter().map(|name| format!("helper {name}"))).collect()
    }

    /// Changes a part of an object by hand.
    pub(crate) fn edit(&mut self, kind: &str, name: &str, path: &[&str], part: Value) {
        let thing = self.objects.get_mut(&(kind.to_owned(), name.to_owned())).expect("an object to edit");
        let mut manifest = karmaform_model::Arg::from_json(thing.manifest());
        manifest.set(path, part.into());
        let mut object = thing.attributes().clone();
        object.insert("manifest".to_owned(), manifest.resolve(&|_, _| Value::null(karmaform_model::Type::Any)));
        *thing = object.into();
    }
}
