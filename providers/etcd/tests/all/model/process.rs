//! A member's process: what becomes of it when its unit is started, as systemd, the guard and etcd would have it.

use std::collections::BTreeSet;

use super::guard::{self, Start};
use super::host::{Data, Host};
use super::roster::Roster;
use super::trust::Trust;
use super::version::{self, Version};

/// The member's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// Not started.
    Stopped,
    /// It ended, or could not start.
    Failed(String),
    /// It runs.
    Running {
        /// What it read when it started.
        config: String,
        /// The cluster its data belongs to.
        cluster: String,
        /// It takes part: it found its peers since it started.
        joined: bool,
        /// Its version.
        version: Version,
        /// Whom it trusts.
        trust: Trust,
    },
}

impl Process {
    /// It runs.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }
}

impl Host {
    /// Starts the unit by what is on the host now, as systemd, the guard and etcd would.
    pub(crate) fn start(&mut self, formed: Option<&Roster>, violations: &mut Vec<String>) {
        self.process = match self.try_start(formed, violations) {
            Ok(process) => process,
            Err(why) => Process::Failed(why),
        };
    }

    fn try_start(&mut self, formed: Option<&Roster>, violations: &mut Vec<String>) -> Result<Process, String> {
        let unit = self.unit().and_then(|u| u.get("content")?.as_str()).ok_or("no unit")?.to_owned();
        if unit.contains("BROKEN") {
            return Err("the unit is broken".to_owned());
        }
        let guard = self.file_ending("/guard").ok_or("no guard")?;
        let program = unit.lines().find_map(|l| l.strip_prefix("ExecStart=")).ok_or("no program in the unit")?;
        if !self.things.contains_key(&("ssh_artifact".to_owned(), program.to_owned())) {
            return Err("the program is missing".to_owned());
        }
        let setting = |name: &str| self.setting(name).ok_or(format!("the environment does not say {name}"));
        for file in ["CERT", "KEY", "TRUSTED_CA", "PEER_CERT", "PEER_KEY", "PEER_TRUSTED_CA"] {
            let path = setting(&format!("ETCD_{file}_FILE"))?;
            if !self.things.contains_key(&("ssh_file".to_owned(), path.clone())) {
                return Err(format!("{path} is missing"));
            }
        }
        if setting("ETCD_INITIAL_CLUSTER_STATE")? != "existing" {
            violations.push(format!("{} has the state \"new\" in its lasting environment", self.member));
        }
        let given = self.formation.as_ref().and_then(|f| f.get("ETCD_INITIAL_CLUSTER")).cloned();
        let list = given.map_or_else(|| setting("ETCD_INITIAL_CLUSTER"), Ok)?;
        let urls: BTreeSet<String> = list.split(',').filter_map(|e| e.split_once('=')).map(|(_, url)| url.to_owned()).collect();
        let wanted_cluster = format!("{} {list}", setting("ETCD_INITIAL_CLUSTER_TOKEN")?);
        let directory = setting("ETCD_DATA_DIR")?;
        let start = guard::decide(self, &guard, &wanted_cluster)?;
        if matches!(start, Start::FromData) != self.has_data_at(&directory) {
            violations.push(format!("{} starts in {directory}, and its guard looked elsewhere", self.member));
        }
        if !unit.contains(&format!("ReadWritePaths={directory}\n")) {
            return Err("the unit may not write there".to_owned());
        }
        self.data_at = Some(directory);
        let cluster = match start {
            Start::FromData => self.data.as_ref().map(|d| d.cluster.clone()).unwrap_or_default(),
            Start::Forms(cluster) => {
                violations.extend(guard::danger(self, &cluster, formed));
                self.known_members = urls;
                self.had_data_of.insert(cluster.clone());
                self.data = Some(Data { cluster: cluster.clone(), incarnation: 0, restored: None });
                cluster
            }
            Start::Joins => {
                let formed = formed.ok_or("no peer answers")?;
                if urls != formed.members.keys().cloned().collect() {
                    return Err("member count is unequal".to_owned());
                }
                let known = self.url().and_then(|url| formed.members.get(&url)).ok_or("not in the list")?;
                if known.name.is_some() {
                    violations.push(format!("{} starts empty as a member that had data: it panics", self.member));
                }
                if self.hollow_at.is_some() {
                    violations.push(format!("{} starts on what is left of its data", self.member));
                }
                self.had_data_of.insert(formed.id.clone());
                self.data = Some(Data { cluster: formed.id.clone(), incarnation: known.incarnation, restored: None });
                self.log_of = None;
                formed.id.clone()
            }
        };
        if formed.is_some_and(|f| f.id == cluster) && self.known_to(formed).is_none() {
            return Ok(Process::Stopped); // it learns that it was removed, and ends with success
        }
        let version = self.version().ok_or("the program has no version")?;
        let lowest = formed.filter(|f| f.id == cluster).and_then(|f| f.version);
        if let Some(why) = lowest.and_then(|lowest| version::refuses(lowest, version)) {
            violations.push(format!("{} ends at once: {why}", self.member));
            return Err(why);
        }
        if version.0 > 6 && self.log_of.is_some_and(|log| log < 6) {
            violations.push(format!("{} ends at once: 3.5 has written to its log", self.member));
            return Err("unmarshal should never fail".to_owned());
        }
        Ok(Process::Running { config: self.written(), cluster, joined: false, version, trust: self.written_trust() })
    }

    /// What it read when it started is what is written now.
    pub(crate) fn runs_what_is_written(&self) -> bool {
        matches!(&self.process, Process::Running { config, .. } if *config == self.written())
    }

    /// Whom it would trust after a start.
    fn written_trust(&self) -> Trust {
        let file = |name: &str| self.file_ending(name).unwrap_or_default();
        Trust { clients: file("/pki/client-ca.crt"), peers: file("/pki/peer-ca.crt") }
    }

    pub(super) fn written(&self) -> String {
        let unit = self.unit().and_then(|u| u.get("content")?.as_str()).unwrap_or_default();
        let parts = ["/etcd.env", "/pki/client-ca.crt", "/pki/peer-ca.crt"].map(|f| self.file_ending(f).unwrap_or_default());
        format!("{unit}\n{}\n{:?}", parts.join("\n"), self.version())
    }
}
