//! One pod, its volume, and the etcd in it.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value as Json;

use super::World;
use super::trust::{Shown, Trust, accepts, refusals};

/// What a member wrote to its volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    /// The cluster it belongs to.
    pub(crate) cluster: String,
    /// The members of the cluster when this one began.
    pub(crate) members: BTreeSet<String>,
    /// Which of the members at this place it is of.
    pub(crate) incarnation: u64,
    /// The restoration that it is from.
    pub(crate) restored: Option<String>,
}

/// The container with etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// The pod waits for something outside of it.
    Pending(String),
    /// It ended, and is started again when time passes.
    Ended(String),
    /// It runs.
    Running {
        /// The cluster its data belongs to.
        cluster: String,
        /// It takes part: it found its peers since it started.
        joined: bool,
        /// Whom it trusts.
        trust: Trust,
    },
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    /// New for each pod of a name.
    pub(crate) uid: String,
    /// The template it was made of.
    pub(crate) template: Rc<Json>,
    /// What is in its `emptyDir`.
    pub(crate) data: Option<Data>,
    /// Its container.
    pub(crate) process: Process,
}

impl Pod {
    pub(super) fn new(uid: String, template: &Json) -> Self {
        let template = Rc::new(template.clone());
        Self { uid, template, data: None, process: Process::Pending("it was just made".to_owned()) }
    }

    /// The template's revision.
    pub(crate) fn revision(&self) -> String {
        self.template["metadata"]["annotations"]["karmaform.io/revision"].as_str().unwrap_or_default().to_owned()
    }

    fn container(&self) -> &Json {
        &self.template["spec"]["containers"][0]
    }

    /// The version of its image, as 3.6.8.
    pub(crate) fn version(&self) -> String {
        let image = self.container()["image"].as_str().unwrap_or_default();
        image.rsplit(':').next().and_then(|tag| tag.split('-').next()).unwrap_or_default().trim_start_matches('v').to_owned()
    }

    /// The second number of that.
    pub(super) fn minor(&self) -> Option<u32> {
        self.version().split('.').nth(1)?.parse().ok()
    }

    /// A flag of etcd.
    pub(super) fn flag(&self, name: &str) -> Option<&str> {
        let flags = self.container()["args"].as_array()?;
        flags.iter().filter_map(Json::as_str).find_map(|f| f.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
    }

    /// True if its data goes with it.
    pub(super) fn forgets(&self) -> bool {
        self.template["spec"]["volumes"].as_array().into_iter().flatten().any(|v| v["name"] == "data" && v["emptyDir"].is_object())
    }

    /// Where a variable comes from: an object's name and the entry in it, and whether it may be missing; what counts before the others last.
    fn sources(&self, variable: &str) -> Vec<(String, String, bool)> {
        let of = |json: &Json, key: &str| {
            Some((json["name"].as_str()?.to_owned(), json["key"].as_str().unwrap_or(key).to_owned(), json["optional"] == true))
        };
        let list = |name: &str| self.container()[name].as_array().into_iter().flatten();
        let all = list("envFrom").filter_map(|f| of(&f["configMapRef"], variable));
        let single = list("env").filter(|v| v["name"] == variable).filter_map(|v| of(&v["valueFrom"]["configMapKeyRef"], variable));
        all.chain(single).collect()
    }
}

impl World {
    /// Where a member's data is, if that is not in its pod.
    pub(super) fn disk_of(&self, member: &str) -> Option<String> {
        let claim = format!("data-{member}");
        let spec = &self.manifest("PersistentVolumeClaim", &claim)?["spec"];
        match spec["volumeName"].as_str() {
            Some(volume) => {
                let volume = self.manifest("PersistentVolume", volume)?;
                assert_eq!(volume["spec"]["claimRef"]["name"], claim.as_str(), "a volume for another claim");
                Some(format!("node {}", volume["spec"]["hostPath"]["path"].as_str()?))
            }
            None if spec["storageClassName"].as_str().is_none_or(str::is_empty) => None,
            None => Some(format!("claim {claim}")),
        }
    }

    pub(super) fn data_of(&self, member: &str) -> Option<&Data> {
        let pod = self.pods.get(member)?;
        if pod.forgets() { pod.data.as_ref() } else { self.disks.get(&self.disk_of(member)?) }
    }

    /// An entry of its Secret.
    fn entry(&self, member: &str, name: &str) -> &str {
        let secret = self.manifest("Secret", &format!("{member}-tls"));
        secret.and_then(|secret| secret["stringData"][name].as_str()).unwrap_or_default()
    }

    fn written_trust(&self, member: &str) -> Trust {
        let entry = |name: &str| self.entry(member, name).to_owned();
        Trust { clients: entry("client-ca.crt"), peers: entry("peer-ca.crt") }
    }

    /// Its Secret has everything, and it fits together.
    pub(super) fn has_certificates(&self, member: &str) -> bool {
        let entry = |name: &str| self.entry(member, name);
        let has_keys = !entry("server.key").is_empty() && !entry("peer.key").is_empty();
        has_keys && accepts(entry("client-ca.crt"), entry("server.crt")) && accepts(entry("peer-ca.crt"), entry("peer.crt"))
    }

    /// Nobody is locked out.
    pub(super) fn notes_who_is_refused(&mut self) {
        let members = self.voting().filter_map(|name| {
            let Process::Running { trust, .. } = &self.pods[name].process else { return None };
            Some(Shown { name, trust, server: self.entry(name, "server.crt").into(), peer: self.entry(name, "peer.crt").into() })
        });
        let found = refusals(&members.collect::<Vec<_>>(), &self.clients, self.ours.as_deref());
        self.violations.extend(found);
    }

    /// The kubelet tries to start a pod's container.
    pub(super) fn start(&mut self, member: &str) {
        let Some(pod) = self.pods.get(member) else { return };
        if matches!(pod.process, Process::Running { .. }) {
            return;
        }
        if !pod.forgets() && self.disk_of(member).is_none() {
            let waits = Process::Pending("its claim is not bound".to_owned());
            self.pods.entry(member.to_owned()).and_modify(|p| p.process = waits);
            return;
        }
        let process = match self.try_start(member) {
            Ok(data) => {
                let process = Process::Running { cluster: data.cluster.clone(), joined: false, trust: self.written_trust(member) };
                let (forgets, disk) = (self.pods[member].forgets(), self.disk_of(member));
                match disk {
                    Some(disk) if !forgets => drop(self.disks.insert(disk, data)),
                    _ => drop(self.pods.entry(member.to_owned()).and_modify(|p| p.data = Some(data))),
                }
                process
            }
            Err(why) => Process::Ended(why),
        };
        self.pods.entry(member.to_owned()).and_modify(|p| p.process = process);
    }

    /// What etcd does at a start: the data that it goes on from, or why it ends.
    fn try_start(&mut self, member: &str) -> Result<Data, String> {
        let pod = &self.pods[member];
        let flag = |name: &str| pod.flag(name).map(str::to_owned).ok_or(format!("no flag {name}"));
        if flag("max-snapshots").is_ok_and(|v| v == "broken") {
            return Err("invalid value".to_owned());
        }
        if !self.has_certificates(member) {
            return Err("no certificates".to_owned());
        }
        // What was restored is of no cluster yet.
        let of_it = self.formed.as_ref().filter(|r| self.data_of(member).is_none_or(|d| d.cluster == r.id));
        if let (Some(cluster), Some(minor)) = (of_it.and_then(|r| r.version), pod.minor()) {
            if minor < cluster || minor > cluster + 1 {
                return Err(format!("3.{minor} does not go with a cluster of 3.{cluster}"));
            }
            // One that goes on while the cluster is told to go down is no upgrade.
            let is_told = of_it.is_some_and(|r| r.goes_down_to.is_some());
            if !is_told && minor > cluster && self.saved != Some(cluster) {
                self.violations.push(format!("{member} starts with 3.{minor}, and nothing was saved before"));
            }
        }
        let token = flag("initial-cluster-token")?;
        if flag("initial-cluster-state").is_ok() || flag("initial-cluster").is_ok() {
            self.violations.push(format!("{member} has a fixed start in its template"));
        }
        if let Some(data) = self.data_of(member) {
            return Ok(data.clone());
        }
        let variable = |name: &str| {
            let mut found = None;
            for (object, entry, optional) in self.pods[member].sources(name) {
                match self.manifest("ConfigMap", &object) {
                    Some(object) => found = object["data"][&entry].as_str().map(str::to_owned).or(found),
                    None if optional => {}
                    None => return Err(format!("no ConfigMap {object}")),
                }
            }
            Ok(found)
        };
        let state = variable("ETCD_INITIAL_CLUSTER_STATE")?.unwrap_or_else(|| "new".to_owned());
        let list = variable("ETCD_INITIAL_CLUSTER")?.ok_or("nothing says who the members are")?;
        let listed: Vec<(&str, &str)> = list.split(',').filter_map(|e| e.split_once('=')).collect();
        if listed.iter().all(|(name, _)| *name != member) {
            return Err(format!("couldn't find local name \"{member}\" in the initial cluster configuration"));
        }
        if state == "existing" {
            return self.join_as(member, &listed);
        }
        let members: BTreeSet<String> = listed.iter().map(|(name, _)| (*name).to_owned()).collect();
        let cluster = format!("{token} {list}");
        if self.formed.is_none() {
            return Ok(Data { cluster, members, incarnation: 0, restored: None });
        }
        let is_asked_by_peers = self.voting().any(|m| m != member);
        match (self.had_data.contains(member), is_asked_by_peers) {
            (true, true) => Err("member has already been bootstrapped".to_owned()),
            // The token and the names are those of the first cluster, but what was agreed there is not known to this one.
            (true, false) => Ok(Data { cluster: format!("{cluster} anew"), members, incarnation: 0, restored: None }),
            (false, _) => Ok(Data { cluster, members, incarnation: 0, restored: None }),
        }
    }

    /// Without data, into a cluster that exists: who is asked must know exactly those that are on the list.
    fn join_as(&mut self, member: &str, listed: &[(&str, &str)]) -> Result<Data, String> {
        let somebody_answers = self.voting().any(|m| m != member);
        let Some(roster) = self.formed.as_mut().filter(|_| somebody_answers) else { return Err("nobody answers".to_owned()) };
        let urls: BTreeSet<&str> = listed.iter().map(|(_, url)| *url).collect();
        if urls.len() != roster.members.len() || !roster.members.keys().all(|url| urls.contains(url.as_str())) {
            return Err("member count is unequal".to_owned());
        }
        let id = roster.id.clone();
        let known = roster.members.get_mut(&Self::url(member)).ok_or("unmatched member")?;
        // Of one that does not vote nothing was agreed with; it ends at the first message of the leader.
        if known.name.is_some() && known.learner {
            return Err("tocommit(9) is out of range [lastIndex(0)]".to_owned());
        }
        if known.name.is_some() {
            self.violations.push(format!("{member} starts without data as the member that it was"));
        }
        known.name = Some(member.to_owned());
        let members = listed.iter().map(|(name, _)| (*name).to_owned()).collect();
        Ok(Data { cluster: id, members, incarnation: known.incarnation, restored: None })
    }
}
