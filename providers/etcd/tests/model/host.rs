//! One host: its files and units, and the one etcd member that its unit runs.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Change, Object, Value};

use super::guard::{self, Start};
use super::things;

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
    },
}

impl Process {
    /// It runs.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }
}

/// A host.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// The member's name, once its environment says it.
    pub(crate) member: String,
    /// Things by type and identity, as they are.
    pub(crate) things: BTreeMap<(String, String), Object>,
    /// The cluster whose data is in the data directory.
    pub(crate) data: Option<String>,
    /// Data that was moved aside at the end.
    pub(crate) kept: Option<String>,
    /// Clusters whose data it ever had.
    pub(crate) had_data_of: BTreeSet<String>,
    /// The marker of a formed member.
    pub(crate) marker: bool,
    /// The environment of the first start, in /run.
    pub(crate) formation: bool,
    /// The process.
    pub(crate) process: Process,
    /// The members in its data, or in its first configuration.
    pub(crate) known_members: BTreeSet<String>,
}

impl Host {
    pub(super) fn new(id: &str) -> Self {
        Self {
            member: format!("(on {id})"),
            things: BTreeMap::new(),
            data: None,
            kept: None,
            had_data_of: BTreeSet::new(),
            marker: false,
            formation: false,
            process: Process::Stopped,
            known_members: BTreeSet::new(),
        }
    }

    pub(super) fn takes_part_in(&self, formed: Option<&str>) -> bool {
        matches!(&self.process, Process::Running { joined: true, cluster, .. } if Some(cluster.as_str()) == formed)
    }

    pub(super) fn becomes_ready(&mut self) {
        if let Process::Running { joined, .. } = &mut self.process {
            *joined = true;
            self.marker = true;
            self.formation = false;
        }
    }

    /// etcd reads its server certificate at each handshake.
    pub(super) fn serves_clients(&self) -> bool {
        ["server.crt", "server.key"].iter().all(|f| self.file_ending(f).is_some())
    }

    /// What it read when it started is what is written now.
    pub(crate) fn runs_what_is_written(&self) -> bool {
        matches!(&self.process, Process::Running { config, .. } if *config == self.written())
    }

    /// A line of its environment file.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        let environment = self.file_ending("/etcd.env")?;
        environment.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    }

    fn file_ending(&self, end: &str) -> Option<String> {
        let file = self.things.iter().find(|((ty, path), _)| ty == "ssh_file" && path.ends_with(end))?;
        file.1.get("content").and_then(Value::as_str).map(str::to_owned)
    }

    fn unit(&self) -> Option<&Object> {
        self.things.iter().find(|((ty, _), _)| ty == "ssh_systemd_unit").map(|(_, unit)| unit)
    }

    fn written(&self) -> String {
        let unit = self.unit().and_then(|u| u.get("content")?.as_str()).unwrap_or_default();
        let parts = ["/etcd.env", "client-ca.crt", "peer-ca.crt"].map(|f| self.file_ending(f).unwrap_or_default());
        format!("{unit}\n{}", parts.join("\n"))
    }

    pub(super) fn observe(&self, resource_type: &str, identity: &Object) -> Option<Object> {
        let key = (resource_type.to_owned(), things::identity(resource_type, identity)?);
        let mut seen = self.things.get(&key)?.clone();
        match resource_type {
            "ssh_directory" if self.setting("ETCD_DATA_DIR").as_deref() == Some(key.1.as_str()) => {
                seen.insert("empty".to_owned(), self.data.is_none().into());
            }
            "ssh_systemd_unit" => {
                let (active, sub) = match &self.process {
                    Process::Stopped => ("inactive", "dead"),
                    Process::Failed(_) => ("failed", "failed"),
                    Process::Running { joined: false, .. } => ("activating", "start"),
                    Process::Running { joined: true, .. } => ("active", "running"),
                };
                seen.insert("active".to_owned(), self.process.is_running().into());
                seen.insert("active_state".to_owned(), active.into());
                seen.insert("sub_state".to_owned(), sub.into());
            }
            _ => {}
        }
        Some(seen)
    }

    pub(super) fn apply(&mut self, ty: &str, change: &Change, formed: Option<&str>) -> (Result<Option<Object>, String>, Vec<String>) {
        let mut violations = Vec::new();
        let side = change.after().or(change.before());
        let Some(identity) = side.and_then(|o| things::identity(ty, o)) else {
            return (Err(format!("a {ty} without an identity")), violations);
        };
        let key = (ty.to_owned(), identity);
        let Some(after) = change.after() else {
            self.remove(&key);
            return (Ok(None), violations);
        };
        if matches!(change.action(), Action::DestroyThenCreate | Action::CreateThenDestroy)
            && let Some(old) = change.before().and_then(|b| things::identity(ty, b))
        {
            self.remove(&(ty.to_owned(), old));
        }
        let mut object = after.clone();
        things::compute(ty, &mut object);
        let before = self.things.insert(key, object.clone());
        if ty == "ssh_file"
            && let Some(name) = self.setting("ETCD_NAME")
        {
            self.member = name;
        }
        if ty == "ssh_systemd_unit" {
            let same = |name: &str| before.as_ref().is_some_and(|b| b.get(name) == object.get(name));
            if !(self.process.is_running() && same("content") && same("restart_triggers")) {
                self.formation = after.get("start_environment").is_some_and(|e| e.get("ETCD_INITIAL_CLUSTER_STATE").is_some());
                self.start(formed, &mut violations);
            }
        }
        (Ok(Some(object)), violations)
    }

    fn remove(&mut self, key: &(String, String)) {
        let data_directory = self.setting("ETCD_DATA_DIR");
        let Some(old) = self.things.remove(key) else { return };
        match key.0.as_str() {
            "ssh_systemd_unit" => self.process = Process::Stopped,
            "ssh_command" if old.get("undo").and_then(Value::as_str).is_some_and(|u| u.contains("rm -f")) => {
                self.marker = false;
                self.formation = false;
                if old.get("undo").and_then(Value::as_str).is_some_and(|u| u.contains("mv ")) {
                    self.kept = self.data.take();
                }
            }
            "ssh_directory"
                if old.get("purge").and_then(Value::as_bool) == Some(true)
                    && (data_directory.is_none() || data_directory.as_ref() == Some(&key.1)) =>
            {
                self.data = None;
            }
            _ => {}
        }
    }

    /// Starts the unit by what is on the host now, as systemd, the guard and etcd would.
    pub(crate) fn start(&mut self, formed: Option<&str>, violations: &mut Vec<String>) {
        self.process = match self.try_start(formed, violations) {
            Ok(process) => process,
            Err(why) => Process::Failed(why),
        };
    }

    fn try_start(&mut self, formed: Option<&str>, violations: &mut Vec<String>) -> Result<Process, String> {
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
        let list = setting("ETCD_INITIAL_CLUSTER")?;
        let wanted_cluster = format!("{} {list}", setting("ETCD_INITIAL_CLUSTER_TOKEN")?);
        let cluster = match guard::decide(self, &guard, self.formation, &wanted_cluster)? {
            Start::FromData(cluster) => cluster,
            Start::Forms(cluster) => {
                violations.extend(guard::danger(self, &cluster, formed));
                self.known_members = list.split(',').filter_map(|e| e.split('=').next()).map(str::to_owned).collect();
                self.had_data_of.insert(cluster.clone());
                self.data = Some(cluster.clone());
                cluster
            }
        };
        Ok(Process::Running { config: self.written(), cluster, joined: false })
    }

    pub(super) fn leftovers(&self) -> Vec<String> {
        let mut left: Vec<String> = self.things.keys().map(|(ty, id)| format!("{ty} {id}")).collect();
        let more = [
            (self.data.is_some(), "data"),
            (self.kept.is_some(), "kept data"),
            (self.marker, "marker"),
            (self.formation, "formation"),
            (self.process.is_running(), "process"),
        ];
        left.extend(more.into_iter().filter(|(is, _)| *is).map(|(_, what)| what.to_owned()));
        left
    }
}
