//! A model of etcd clusters on hosts, for tests: what is on each host, what systemd and etcd make of it, and what must never happen.
//!
//! Everything that a provider would do goes through [`World::observe`], [`World::apply`], [`World::issue`],
//! [`World::look_at_member`], [`World::add_ids`] and [`World::gate`], so that the same world can stand behind real plans. Time only passes in [`World::settle`]: a member that was
//! started takes part from the next settling on, which is the slowest that a start can be, and so the hardest case for an order of steps.
//!
//! Knows nothing of plans and orders.

#![allow(dead_code, reason = "each test uses a part of the model")]

mod guard;
mod host;
mod things;

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Change, Object, Value};

pub(crate) use host::{Host, Process};
pub(crate) use things::file_sum;

/// All hosts, and what was seen to go wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    /// By the `id` of their connection.
    pub(crate) hosts: BTreeMap<String, Host>,
    /// The cluster that was formed and its members: from then on there is something to lose.
    pub(crate) formed: Option<(String, BTreeSet<String>)>,
    /// The leader's name.
    pub(crate) leader: Option<String>,
    /// What must never happen, and did.
    pub(crate) violations: Vec<String>,
    /// Members that a step of ours took down and that are not back.
    pub(crate) down_by_us: BTreeSet<String>,
    /// The cluster is being destroyed: members may go.
    pub(crate) destroying: bool,
    /// Something outside interfered after a gate had seen the members healthy; then a lost quorum is not our doing. Before any gate it is:
    /// who takes a member down has to look first.
    pub(crate) disturbed: bool,
    /// A gate passed in this run.
    pub(crate) was_looked_at: bool,
    made: u64,
}

impl World {
    /// Majority of the formed cluster.
    pub(crate) fn quorum(&self) -> usize {
        self.formed.as_ref().map_or(0, |(_, members)| members.len() / 2 + 1)
    }

    /// Members that take part in the formed cluster.
    pub(crate) fn alive(&self) -> BTreeSet<String> {
        let id = self.formed.as_ref().map(|(id, _)| id.as_str());
        self.hosts.values().filter(|h| h.takes_part_in(id)).map(|h| h.member.clone()).collect()
    }

    /// The formed cluster has a quorum.
    pub(crate) fn has_quorum(&self) -> bool {
        self.formed.is_some() && self.alive().len() >= self.quorum()
    }

    /// Time passes: members find each other, systemd hears that they are ready.
    pub(crate) fn settle(&mut self) {
        let mut clusters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (id, host) in &self.hosts {
            if let Process::Running { cluster, .. } = &host.process {
                clusters.entry(cluster.clone()).or_default().push(id.clone());
            }
        }
        for (cluster, running) in clusters {
            let Some(first) = running.first().and_then(|h| self.hosts.get(h)) else { continue };
            let members = first.known_members.clone();
            if running.len() < members.len() / 2 + 1 {
                continue;
            }
            match &self.formed {
                None => self.formed = Some((cluster.clone(), members)),
                Some((id, _)) if *id != cluster => self.violations.push(format!("a second cluster {cluster} beside {id}")),
                Some(_) => {}
            }
            for id in &running {
                if let Some(host) = self.hosts.get_mut(id) {
                    host.becomes_ready();
                    self.down_by_us.remove(&host.member);
                }
            }
        }
        let alive = self.alive();
        if !self.has_quorum() {
            self.leader = None;
        } else if !self.leader.as_ref().is_some_and(|l| alive.contains(l)) {
            self.leader = alive.first().cloned();
        }
    }

    /// A gate asks for these members: time passes, then each is looked at. Gives those that are not healthy.
    pub(crate) fn gate(&mut self, required: &[&str]) -> Vec<String> {
        self.settle();
        let unhealthy: Vec<String> = required.iter().filter(|m| !self.is_healthy(m)).map(|m| (*m).to_owned()).collect();
        if unhealthy.is_empty() {
            self.was_looked_at = true;
            self.disturbed = false;
        }
        unhealthy
    }

    /// A member's process ends by itself, and systemd has given up on it.
    pub(crate) fn crash(&mut self, member: &str) {
        self.disturbed |= self.was_looked_at;
        for host in self.hosts.values_mut().filter(|h| h.member == member && h.process.is_running()) {
            host.process = Process::Failed("killed".to_owned());
        }
    }

    /// Someone stops a member's unit.
    pub(crate) fn stop(&mut self, member: &str) {
        for host in self.hosts.values_mut().filter(|h| h.member == member) {
            host.process = Process::Stopped;
        }
    }

    /// A host loses all its etcd data; the marker stays.
    pub(crate) fn wipe(&mut self, member: &str) {
        for host in self.hosts.values_mut().filter(|h| h.member == member) {
            host.process = Process::Failed("its data is gone".to_owned());
            host.data = None;
        }
    }

    /// The host of a member.
    pub(crate) fn host_mut(&mut self, member: &str) -> Option<&mut Host> {
        self.hosts.values_mut().find(|h| h.member == member)
    }

    /// What is on a host under this type and identity, with facts of the moment.
    pub(crate) fn observe(&self, host: &str, resource_type: &str, identity: &Object) -> Option<Object> {
        self.hosts.get(host)?.observe(resource_type, identity)
    }

    /// Does one change on a host.
    pub(crate) fn apply(&mut self, host: &str, resource_type: &str, change: &Change) -> Result<Option<Object>, String> {
        let alive_before = self.alive();
        let quorum_before = self.has_quorum();
        let formed = self.formed.clone();
        let on_host = self.hosts.entry(host.to_owned()).or_insert_with(|| Host::new(host));
        let (result, mut violations) = on_host.apply(resource_type, change, formed.as_ref().map(|(id, _)| id.as_str()));
        self.violations.append(&mut violations);
        let alive = self.alive();
        for member in alive_before.difference(&alive) {
            self.down_by_us.insert(member.clone());
        }
        if self.destroying {
            return result;
        }
        let members = self.formed.as_ref().map_or(0, |(_, m)| m.len());
        if self.down_by_us.len() > 1 {
            self.violations.push(format!("{:?} down by us at once", self.down_by_us));
        }
        if quorum_before && !self.has_quorum() && members > 2 && !self.disturbed {
            self.violations.push(format!("quorum given up by a change of {resource_type} on {host}"));
        }
        result
    }

    /// Makes what lives in the state alone: certificates, tokens.
    pub(crate) fn issue(&mut self, resource_type: &str, change: &Change) -> Option<Object> {
        let mut object = change.after()?.clone();
        self.made += 1;
        let computed: &[&str] = match resource_type {
            "terraform_data" => &["id"],
            _ => &["certificate", "private_key"],
        };
        for name in computed {
            if object.get(*name).is_none_or(|v| v.is_unknown() || v.is_null()) || change.before().is_some() {
                object.insert((*name).to_owned(), format!("{resource_type}-{name}-{}", self.made).into());
            }
        }
        for name in ["not_before", "not_after", "serial_number", "output"] {
            if object.get(name).is_some_and(Value::is_unknown) {
                object.insert(name.to_owned(), format!("{name}-{}", self.made).into());
            }
        }
        Some(object)
    }

    /// A read goes through this member, and what clients see of it is in order.
    pub(crate) fn is_healthy(&self, member: &str) -> bool {
        self.has_quorum() && self.alive().contains(member) && self.hosts.values().any(|h| h.member == member && h.serves_clients())
    }

    /// What the provider `etcd` says of a member; `known`: it is in the state.
    pub(crate) fn look_at_member(&self, member: &str, known: bool) -> Option<Object> {
        let healthy = self.is_healthy(member);
        if !healthy && !known {
            return None;
        }
        let mut seen = Object::from([
            ("name".to_owned(), member.into()),
            ("healthy".to_owned(), healthy.into()),
            ("leader".to_owned(), (healthy && self.leader.as_deref() == Some(member)).into()),
        ]);
        if healthy {
            self.add_ids(member, &mut seen);
        }
        Some(seen)
    }

    /// The ids that the cluster gives a member.
    pub(crate) fn add_ids(&self, member: &str, object: &mut Object) {
        let cluster = self.formed.as_ref().map(|(id, _)| id.clone()).unwrap_or_default();
        let host = self.hosts.values().find(|h| h.member == member);
        let url = |name: &str| host.and_then(|h| h.setting(name)).unwrap_or_default();
        object.insert("member_id".to_owned(), format!("id-{member}").into());
        object.insert("cluster_id".to_owned(), cluster.into());
        object.insert("peer_url".to_owned(), url("ETCD_INITIAL_ADVERTISE_PEER_URLS").into());
        object.insert("client_url".to_owned(), url("ETCD_ADVERTISE_CLIENT_URLS").into());
    }

    /// Anything that is left on any host.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        self.hosts.iter().flat_map(|(id, host)| host.leftovers().into_iter().map(move |what| format!("{id}: {what}"))).collect()
    }
}
