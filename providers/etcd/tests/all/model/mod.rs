//! A model of etcd clusters on hosts, for tests: what is on each host, what systemd and etcd make of it, and what must never happen.
//!
//! Everything that a provider would do goes through [`World::observe`], [`World::apply`], [`World::issue`],
//! [`World::look_at_member`], [`World::add_ids`] and [`World::gate`], so that the same world can stand behind real plans. Time only passes in [`World::settle`]: a member that was
//! started takes part from the next settling on, which is the slowest that a start can be, and so the hardest case for an order of steps.
//!
//! Knows nothing of plans and orders.

#![allow(dead_code, reason = "each test uses a part of the model")]

mod changes;
mod guard;
mod host;
pub(crate) mod moving;
mod operations;
mod process;
mod restore;
pub(crate) mod roster;
pub(crate) mod shared;
mod things;
pub(crate) mod trust;
mod version;

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Change, Object, Value};

pub(crate) use host::Host;
pub(crate) use operations::Answer;
pub(crate) use process::Process;
use roster::Known;
pub(crate) use roster::Roster;
pub(crate) use things::file_sum;
pub(crate) use trust::Client;
use trust::Shown;

/// All hosts, and what was seen to go wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct World {
    /// By the `id` of their connection.
    pub(crate) hosts: BTreeMap<String, Host>,
    /// The cluster that was formed: from then on there is something to lose.
    pub(crate) formed: Option<Roster>,
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
    /// All members stop, since what is in them is given up; until a majority serves what was restored.
    pub(crate) restoring: bool,
    /// Members came or went a moment ago: etcd refuses the next one for some seconds.
    moved: bool,
    hidden: Option<String>,
    /// Members with more free pages than used ones.
    pub(crate) fragmented: BTreeSet<String>,
    /// The alarm NOSPACE is on.
    pub(crate) is_full: bool,
    /// Hosts, by the `id` of their connection, that nobody reaches.
    pub(crate) away: BTreeSet<String>,
    /// Who uses the cluster.
    pub(crate) clients: Vec<Client>,
    /// The client certificate that the state has.
    ours: Option<String>,
}

impl World {
    /// Nobody is locked out.
    fn notes_who_is_refused(&mut self) {
        let formed = self.formed.as_ref();
        let shown = |host: &'_ Host, file: &str| host.file_ending(file).unwrap_or_default();
        let members = self.hosts.values().filter(|h| h.takes_part_in(formed)).filter_map(|host| {
            let Process::Running { trust, .. } = &host.process else { return None };
            Some(Shown { name: &host.member, trust, server: shown(host, "/pki/server.crt"), peer: shown(host, "/pki/peer.crt") })
        });
        let found = trust::refusals(&members.collect::<Vec<_>>(), &self.clients, self.ours.as_deref());
        self.violations.extend(found);
    }

    /// Majority of the formed cluster.
    pub(crate) fn quorum(&self) -> usize {
        self.formed.as_ref().map_or(0, |roster| roster.voters() / 2 + 1)
    }

    /// Voters that take part in the formed cluster.
    pub(crate) fn alive(&self) -> BTreeSet<String> {
        let formed = self.formed.as_ref();
        let votes = |h: &&Host| h.takes_part_in(formed) && h.known_to(formed) == Some(true);
        self.hosts.values().filter(votes).map(|h| h.member.clone()).collect()
    }

    /// The formed cluster has a quorum.
    pub(crate) fn has_quorum(&self) -> bool {
        self.formed.is_some() && self.alive().len() >= self.quorum()
    }

    /// Time passes: members find each other, systemd hears that they are ready.
    pub(crate) fn settle(&mut self) {
        let mut clusters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (id, host) in &self.hosts {
            if let Process::Running { cluster, .. } = &host.process
                && !host.is_deaf()
            {
                clusters.entry(cluster.clone()).or_default().push(id.clone());
            }
        }
        for (cluster, running) in clusters {
            if self.formed.is_none() || self.gives_way_to(&cluster, &running) {
                self.form(&cluster, &running);
            }
            let Some(formed) = self.formed.as_mut() else { continue };
            if formed.id != cluster {
                let Some(first) = running.first().and_then(|h| self.hosts.get(h)) else { continue };
                if running.len() > first.known_members.len() / 2 {
                    self.violations.push(format!("a second cluster {cluster} beside {}", formed.id));
                }
                continue;
            }
            let votes = |id: &&String| self.hosts.get(*id).and_then(|h| h.known_to(Some(formed))) == Some(true);
            if running.iter().filter(votes).count() < formed.voters() / 2 + 1 {
                continue;
            }
            for id in &running {
                let Some(host) = self.hosts.get_mut(id) else { continue };
                if host.known_to(Some(formed)).is_none() {
                    host.ends_removed();
                    continue;
                }
                host.becomes_ready();
                if let Some(known) = host.url().and_then(|url| formed.members.get_mut(&url)) {
                    known.name = Some(host.member.clone());
                }
                self.down_by_us.remove(&host.member);
            }
        }
        let lowest = self.hosts.values().filter_map(Host::minor).min();
        self.hosts.values_mut().filter(|h| h.minor().is_some()).for_each(|h| lowest.into_iter().for_each(|minor| h.logs(minor)));
        self.raise_version();
        self.notes_who_is_refused();
        let alive = self.alive();
        if !self.has_quorum() {
            self.leader = None;
        } else if !self.leader.as_ref().is_some_and(|l| alive.contains(l)) {
            self.leader = alive.first().cloned();
        }
    }

    /// What was restored takes the place of the cluster that there was, once nobody of that could serve any more.
    fn gives_way_to(&mut self, cluster: &str, running: &[String]) -> bool {
        let Some(formed) = &self.formed else { return false };
        let known = running.first().and_then(|h| self.hosts.get(h)).map_or(0, |h| h.known_members.len());
        let runs = |h: &&Host| {
            matches!(&h.process, Process::Running { cluster, .. } if *cluster == formed.id) && h.known_to(Some(formed)) == Some(true)
        };
        let still = self.hosts.values().filter(runs).count();
        let gives_way =
            formed.id != cluster && cluster.starts_with("restored-") && running.len() > known / 2 && still <= formed.voters() / 2;
        if gives_way {
            self.restoring = false;
            self.down_by_us.clear();
        }
        gives_way
    }

    /// The leader asks all voters; once all of them run a newer minor version, the cluster is at it.
    fn raise_version(&mut self) {
        let alive = self.alive();
        let minors = self.hosts.values().filter(|h| alive.contains(&h.member)).filter_map(|h| match h.process {
            Process::Running { version: (minor, _), .. } => Some(minor),
            _ => None,
        });
        let minors: BTreeSet<u32> = minors.collect();
        if let Some(formed) = self.formed.as_mut().filter(|f| f.version.is_none() || f.voters() == alive.len()) {
            formed.monitor(&minors);
        }
    }

    /// A majority of those that were told of each other runs: from now on there is a cluster.
    fn form(&mut self, cluster: &str, running: &[String]) {
        let Some(first) = running.first().and_then(|h| self.hosts.get(h)) else { return };
        if running.len() > first.known_members.len() / 2 {
            let known = |url: &String| (url.clone(), Known { incarnation: 0, learner: false, name: None });
            self.formed = Some(Roster {
                id: cluster.to_owned(),
                members: first.known_members.iter().map(known).collect(),
                version: None,
                goes_down_to: None,
            });
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

    /// The host of a member is gone, and the member with it.
    pub(crate) fn lose(&mut self, member: &str) {
        self.crash(member);
        let is_it = |(_, host): &(&String, &Host)| host.member == member;
        self.away.extend(self.hosts.iter().find(is_it).map(|(id, _)| id.clone()));
    }

    /// A host loses all its etcd data; the marker stays.
    pub(crate) fn wipe(&mut self, member: &str) {
        for host in self.hosts.values_mut().filter(|h| h.member == member) {
            host.process = Process::Failed("its data is gone".to_owned());
            host.data = None;
        }
    }

    /// A host loses a part of its etcd data, and the log is in that.
    pub(crate) fn wipe_in_part(&mut self, member: &str) {
        self.wipe(member);
        for host in self.hosts.values_mut().filter(|h| h.member == member) {
            host.hollow_at.clone_from(&host.data_at);
        }
    }

    /// Somebody takes a member out of the cluster.
    pub(crate) fn remove_by_hand(&mut self, member: &str) {
        let Some(url) = self.hosts.values().find(|h| h.member == member).and_then(Host::url) else { return };
        self.formed.as_mut().map(|roster| roster.members.remove(&url));
        self.hosts.values_mut().filter(|h| h.member == member).for_each(Host::ends_removed);
    }

    /// Somebody adds a voter that nobody here knows, and that has started.
    pub(crate) fn add_by_hand(&mut self, url: &str) {
        let known = Known { incarnation: 99, learner: true, name: Some("stranger".to_owned()) };
        self.formed.as_mut().map(|roster| roster.members.insert(url.to_owned(), known));
    }

    /// A member serves no clients any more, and nobody sees why: its files are as they were.
    pub(crate) fn hide(&mut self, member: &str) {
        self.hidden = Some(member.to_owned());
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
        let versions = |world: &Self| world.hosts.values().filter_map(Host::version).max();
        let newest = versions(self);
        let on_host = self.hosts.entry(host.to_owned()).or_insert_with(|| Host::new(host));
        let (result, mut violations) = on_host.apply(resource_type, change, formed.as_ref());
        if change
            .after()
            .and_then(|after| restore::asked(resource_type, after))
            .is_some_and(|a| a.is_told && a.act != restore::Act::Prepare)
        {
            self.restoring = true;
        }
        self.violations.append(&mut violations);
        self.notes_who_is_refused();
        let alive = self.alive();
        for member in alive_before.difference(&alive) {
            self.down_by_us.insert(member.clone());
        }
        if self.destroying || self.restoring {
            return result;
        }
        if let (Some(newest), Some((minor, _))) = (newest, versions(self).filter(|now| Some(*now) > newest))
            && formed.is_some_and(|f| f.version.is_some_and(|v| v < minor))
            && !self.hosts.values().any(|h| h.saved.is_some_and(|(version, from)| version.0 == minor && from.is_some_and(|f| f <= newest)))
        {
            self.violations.push(format!("3.{minor} is put on {host}, and nothing was saved before"));
        }
        let members = self.formed.as_ref().map_or(0, Roster::voters);
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
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_known = |name: &str| object.get(name).is_some_and(|v| !v.is_unknown() && !v.is_null());
        match resource_type {
            "tls_ca" | "tls_certificate" if is_known("certificate") => {}
            // What is kept in the state is who it was when its value changes.
            "terraform_data" => {
                (!is_known("id")).then(|| object.insert("id".to_owned(), format!("id-{}", self.made).into()));
            }
            "tls_ca" => trust::authority(&mut object, self.made),
            _ => {
                let certificate = trust::leaf(&text("ca_certificate"), self.made);
                if text("common_name") == "root" {
                    self.ours = Some(certificate.clone());
                }
                object.insert("certificate".to_owned(), certificate.into());
                object.insert("private_key".to_owned(), format!("private_key-{}", self.made).into());
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
        self.has_quorum()
            && self.hidden.as_deref() != Some(member)
            && self.alive().contains(member)
            && self.hosts.values().any(|h| h.member == member && h.serves_clients())
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
            let in_use: i64 = if self.fragmented.contains(member) { 50 << 20 } else { 290 << 20 };
            seen.extend([("size_bytes".to_owned(), (300_i64 << 20).into()), ("size_in_use_bytes".to_owned(), in_use.into())]);
            let is_on = self.is_full && self.leader.as_deref() == Some(member);
            seen.insert("alarms".to_owned(), Value::strings(is_on.then_some("NOSPACE")));
            seen.insert("roster".to_owned(), self.formed.as_ref()?.told());
        }
        if let Some(Process::Running { version: (minor, patch), .. }) =
            self.hosts.values().find(|h| h.member == member).map(|h| &h.process).filter(|_| healthy)
        {
            seen.insert("version".to_owned(), format!("3.{minor}.{patch}").into());
            let to = self.formed.as_ref().and_then(|formed| formed.goes_down_to).filter(|_| *minor > 5);
            seen.insert(
                "goes_down_to".to_owned(),
                to.map_or_else(|| Value::null(karmaform_model::Type::Number), |to| i64::from(to).into()),
            );
        }
        if let Some(voter) = self.votes(member) {
            seen.insert("nonvoter".to_owned(), (!voter).into());
        }
        Some(seen)
    }

    /// What a look at the cluster tells of a member: that it votes, that it does not, or nothing.
    fn votes(&self, member: &str) -> Option<bool> {
        let host = self.hosts.values().find(|h| h.member == member)?;
        match host.known_to(self.formed.as_ref()) {
            Some(votes) => host.process.is_running().then_some(votes),
            // Another one tells that it was removed.
            None => self.has_quorum().then_some(false),
        }
    }

    /// The ids that the cluster gives a member.
    pub(crate) fn add_ids(&self, member: &str, object: &mut Object) {
        let cluster = self.formed.as_ref().map(|roster| roster.id.clone()).unwrap_or_default();
        let host = self.hosts.values().find(|h| h.member == member);
        let url = |name: &str| host.and_then(|h| h.setting(name)).unwrap_or_default();
        let id = self.formed.as_ref().and_then(|roster| roster.id_of(&url("ETCD_INITIAL_ADVERTISE_PEER_URLS"))).unwrap_or_default();
        object.insert("nonvoter".to_owned(), false.into());
        object.insert("member_id".to_owned(), id.into());
        object.insert("cluster_id".to_owned(), cluster.into());
        object.insert("peer_url".to_owned(), url("ETCD_INITIAL_ADVERTISE_PEER_URLS").into());
        object.insert("client_url".to_owned(), url("ETCD_ADVERTISE_CLIENT_URLS").into());
    }

    /// Anything that is left on any host.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        self.hosts.iter().flat_map(|(id, host)| host.leftovers().into_iter().map(move |what| format!("{id}: {what}"))).collect()
    }
}
