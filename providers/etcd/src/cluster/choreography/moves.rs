//! Members of a cluster that was formed join and leave, and what each is started with.

use std::collections::BTreeSet;

use karmaform_model::{ChildStep, Point, Told, Type, Value};

use super::{BEFORE_LIMIT, Order};
use crate::cluster::condition::{Member, seen};
use crate::cluster::membership::Move;
use crate::cluster::places::part;
use crate::cluster::render::{JOINS, JOINS_EMPTY};
use crate::cluster::{restore, volumes};

/// How long etcd may refuse a change of members, in seconds: it does so for 5 s after any connection between members came up.
const MEMBERSHIP_LIMIT: u64 = 60;
/// How long a learner may take to catch up, in seconds, and what comes on top for each gigabyte (facts measured: 1 s for 200 MB on a fast network).
const CATCH_UP_LIMIT: (u64, u64) = (180, 120);

impl Order<'_> {
    /// Members join and leave, one at a time, each behind a gate that has seen all others healthy.
    pub(super) fn change_members(&mut self) {
        if self.membership.moves.is_empty() {
            return;
        }
        let mut through: BTreeSet<String> = self.membership.up.union(&self.membership.leaving).cloned().collect();
        if self.last.as_ref().is_none_or(|(_, seen)| !through.is_subset(seen)) {
            self.gate_in_turn("healthy before members change", through.clone(), BEFORE_LIMIT);
        }
        let first = self.last.as_ref().map(|(name, _)| name.clone()).unwrap_or_default();
        for step in &self.membership.moves {
            let (begun, joined) = (self.choreography.gates.len(), self.noted.last().cloned());
            match step {
                Move::Leave { name, id, url, alive } => {
                    through.remove(name);
                    self.leave(name, id.as_deref(), url, *alive, &through);
                }
                Move::Join { name, url, replaces, initial_cluster, has_data } => {
                    self.join(name, url, replaces.as_deref(), initial_cluster.as_deref(), *has_data, &through);
                    through.insert(name.clone());
                    self.voters.insert(name.clone());
                    let gate = format!("healthy with member[\"{name}\"]");
                    self.gate_after(&gate, through.clone());
                    if self.wanted.kubernetes.is_some() {
                        self.gate_before(&part(name, "etcd"), &gate);
                        self.noted.push(name.clone());
                    }
                }
            }
            // Who has joined is known to the state before anybody else comes or goes: whoever goes on from here has to ask it.
            if let (Some(joined), Some(gate)) = (joined, self.choreography.gates.get(begun).map(|gate| gate.name.clone())) {
                self.before_gate(&part(&joined, "etcd"), &gate);
            }
        }
        self.follow_with_pods(&first);
    }

    /// The cluster is told that a member leaves; then its process may end.
    pub(super) fn leave(&mut self, name: &str, id: Option<&str>, url: &str, alive: bool, through: &BTreeSet<String>) {
        let shown = id.unwrap_or("if it is one");
        let operation = format!("member[\"{name}\"] ({shown}) leaves the cluster");
        let id = id.map_or_else(|| Value::null(Type::String), Value::from);
        // One that is wanted and leaves has lost its data, as it seemed when the plan was made.
        let is_lost = !alive && self.wanted.members.contains_key(name) && !volumes::is_on_another(self.scene, name);
        let arguments = [("name", name.into()), ("member_id", id.into()), ("peer_url", url.into()), ("is_lost", is_lost.into())];
        self.operate(&operation, "etcd_leave", through, arguments, MEMBERSHIP_LIMIT);
        // What tells of it stays as long: a run that ends before it has left must find it again.
        for of_it in ["unit", "etcd"] {
            self.order(Point::Gate(operation.clone()), Point::Child(part(name, of_it)));
        }
        self.pod_after(name, &operation);
        self.gate_after(&format!("healthy without member[\"{name}\"] ({shown})"), through.clone());
    }

    /// The cluster is told of a member; it is started with the list of all; it is promoted when it has caught up. What can be put on its host
    /// before is put there before.
    pub(super) fn join(
        &mut self,
        name: &str,
        url: &str,
        replaces: Option<&str>,
        initial_cluster: Option<&str>,
        has_data: bool,
        through: &BTreeSet<String>,
    ) {
        let added = format!("member[\"{name}\"] is added as a learner");
        let replaced = replaces.map_or_else(|| Value::null(Type::String), Value::from);
        let is_new = self.wanted.kubernetes.is_some() && !has_data;
        let arguments = [("peer_url", url.into()), ("replaces", replaced.into()), ("is_new", is_new.into())];
        self.operate(&added, "etcd_join", through, arguments, MEMBERSHIP_LIMIT);
        // One that has data of the cluster starts as any other; without it the cluster may have no majority.
        let unit = part(name, "unit");
        if let (Some(list), Some(place)) = (initial_cluster, &self.wanted.kubernetes) {
            self.start_pod(place, name, list, has_data, through);
        } else if let Some(list) = initial_cluster {
            let outside = self.members.get(name).into_iter().flat_map(Member::outside).filter(|path| *path != unit);
            for path in outside.map(<[ChildStep]>::to_vec).chain(restore::of_joining(self.scene, name)) {
                self.order(Point::Child(path), Point::Gate(added.clone()));
            }
            self.order(Point::Gate(added), Point::Child(unit.clone()));
            self.start_with(&unit, &[("ETCD_INITIAL_CLUSTER", list), (JOINS, replaces.unwrap_or(JOINS_EMPTY))]);
        }
        let promoted = format!("member[\"{name}\"] is promoted when it has caught up");
        let size = self.members.keys().filter_map(|n| seen(self.scene, &part(n, "etcd"), "size_bytes")?.as_i64()).max().unwrap_or(0);
        let limit = CATCH_UP_LIMIT.0 + CATCH_UP_LIMIT.1 * u64::try_from(size >> 30).unwrap_or(0);
        if let Some(place) = &self.wanted.kubernetes {
            let arguments = [("name", name.into()), ("peer_url", url.into()), ("only_waits", true.into())];
            self.operate(&format!("member[\"{name}\"] catches up"), "etcd_promote", through, arguments, limit);
            self.close_list(place, name);
        }
        self.operate(&promoted, "etcd_promote", through, [("name", name.into()), ("peer_url", url.into())], limit);
        self.order(Point::Child(unit), Point::Gate(promoted));
    }

    /// What a unit of a cluster that was formed is started with: never as one that forms it.
    pub(super) fn start_with(&mut self, unit: &[ChildStep], more: &[(&str, &str)]) {
        let entries = [("ETCD_INITIAL_CLUSTER_STATE", "existing")].iter().chain(more).map(|(n, v)| ((*n).to_owned(), (*v).into()));
        let value = Value::map(Type::String, entries.collect());
        self.choreography.told.retain(|told| told.child != unit);
        self.choreography.told.push(Told { child: unit.to_vec(), attribute: "start_environment", value });
    }

    /// Whoever starts now goes on from its data, whatever has happened to it meanwhile.
    pub(super) fn start_as_members(&mut self) {
        if !self.formed {
            return;
        }
        let units = self.wanted.members.keys().map(|name| part(name, "unit"));
        for unit in units.filter(|unit| self.scene.children.contains_key(unit)).collect::<Vec<_>>() {
            self.start_with(&unit, &[]);
        }
    }
}
