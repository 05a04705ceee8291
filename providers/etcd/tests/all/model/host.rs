//! One host: its files and units, and the one etcd member that its unit runs.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Change, Object, Value};

use super::guard::{self, Start};
use super::moving;
use super::restore;
use super::roster::Roster;
use super::shared::Shared;
use super::things;
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

/// Whose data it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    /// The cluster's id.
    pub(crate) cluster: String,
    /// See [`super::roster::Known::incarnation`].
    pub(crate) incarnation: u64,
    /// The restoration that it is from.
    pub(crate) restored: Option<String>,
}

/// A host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Host {
    /// The member's name, once its environment says it.
    pub(crate) member: String,
    /// Things by type and identity, as they are.
    pub(crate) things: Shared<BTreeMap<(String, String), Object>>,
    /// What is in the data directory.
    pub(crate) data: Option<Data>,
    /// Where that is.
    pub(crate) data_at: Option<String>,
    /// Where something of it is left with which nobody can start.
    pub(crate) hollow_at: Option<String>,
    /// The host's notes that data is on its way between two places, under each of them.
    pub(crate) moving: BTreeMap<String, String>,
    /// And of where what was at a place was brought.
    pub(crate) moved: BTreeMap<String, String>,
    /// Data that was moved aside at the end.
    pub(crate) kept: Option<Data>,
    /// Ids of members whose data was moved aside.
    pub(crate) set_aside: BTreeSet<String>,
    /// Clusters whose data it ever had.
    pub(crate) had_data_of: BTreeSet<String>,
    /// The marker of a formed member.
    pub(crate) marker: bool,
    /// The environment of the first start, in /run.
    pub(crate) formation: Option<BTreeMap<String, String>>,
    /// The process.
    pub(crate) process: Process,
    /// What the command that saves remembers: for which version it ran, and which one that went away from.
    pub(crate) saved: Option<(Version, Option<Version>)>,
    /// Nothing can be saved there.
    pub(crate) has_no_room: bool,
    /// The restoration that data is made ready for, and the members that it is made ready with.
    pub(crate) prepared: Option<(String, String)>,
    /// The restoration that is done here.
    pub(crate) switched: Option<String>,
    /// Data of before, each with the restoration that it was before.
    pub(crate) before: Vec<(String, Data)>,
    /// Restorations that ended well.
    pub(crate) ended: BTreeSet<String>,
    /// The lowest minor version that has written to its log since its last snapshot.
    pub(crate) log_of: Option<u32>,
    /// The peer URLs of the members in its first configuration.
    pub(crate) known_members: BTreeSet<String>,
}

impl Host {
    pub(super) fn new(id: &str) -> Self {
        Self {
            member: format!("(on {id})"),
            things: Shared::default(),
            data: None,
            data_at: None,
            hollow_at: None,
            moving: BTreeMap::new(),
            moved: BTreeMap::new(),
            kept: None,
            set_aside: BTreeSet::new(),
            had_data_of: BTreeSet::new(),
            marker: false,
            formation: None,
            process: Process::Stopped,
            saved: None,
            has_no_room: false,
            prepared: None,
            switched: None,
            before: Vec::new(),
            ended: BTreeSet::new(),
            log_of: None,
            known_members: BTreeSet::new(),
        }
    }

    /// It runs with what lets it hear nobody.
    pub(super) fn is_deaf(&self) -> bool {
        matches!(&self.process, Process::Running { config, .. } if config.contains("DEAF"))
    }

    /// It runs as a member that the cluster knows, and has found the others.
    pub(super) fn takes_part_in(&self, formed: Option<&Roster>) -> bool {
        let is_ours = |cluster: &str| formed.is_some_and(|f| f.id == cluster) && self.known_to(formed).is_some();
        matches!(&self.process, Process::Running { joined: true, cluster, .. } if is_ours(cluster))
    }

    /// True if the cluster knows the member that its data is of: whether it votes.
    pub(super) fn known_to(&self, formed: Option<&Roster>) -> Option<bool> {
        let known = formed?.members.get(&self.url()?)?;
        self.has_data_of(&formed?.id, known.incarnation).then_some(!known.learner)
    }

    pub(super) fn has_data_of(&self, cluster: &str, incarnation: u64) -> bool {
        self.data.as_ref().is_some_and(|d| d.cluster == cluster && d.incarnation == incarnation)
    }

    pub(super) fn url(&self) -> Option<String> {
        self.setting("ETCD_INITIAL_ADVERTISE_PEER_URLS")
    }

    pub(super) fn is_at(&self, url: &str) -> bool {
        self.url().as_deref() == Some(url)
    }

    /// A member that was removed ends by itself, with success.
    pub(super) fn ends_removed(&mut self) {
        if self.process.is_running() {
            self.process = Process::Stopped;
        }
    }

    pub(super) fn becomes_ready(&mut self) {
        if let Process::Running { joined, .. } = &mut self.process {
            *joined = true;
            self.marker = true;
            self.formation = None;
        }
    }

    /// Somebody of this minor version has written to the log; it begins anew at once where `snapshot-count` is 1.
    pub(super) fn logs(&mut self, minor: u32) {
        let is_short = self.setting("ETCD_SNAPSHOT_COUNT").as_deref() == Some("1");
        self.log_of = Some(self.log_of.filter(|_| !is_short).map_or(minor, |log| log.min(minor)));
    }

    /// The minor version that takes part in a cluster here.
    pub(super) fn minor(&self) -> Option<u32> {
        match self.process {
            Process::Running { version: (minor, _), joined: true, .. } => Some(minor),
            _ => None,
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
        let environment = [self.text_ending("/etcd.env")?, self.text_ending("/peers.env").unwrap_or_default()];
        let mut lines = environment.into_iter().flat_map(str::lines);
        lines.find_map(|l| l.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    }

    pub(super) fn file_ending(&self, end: &str) -> Option<String> {
        self.text_ending(end).map(str::to_owned)
    }

    fn text_ending(&self, end: &str) -> Option<&str> {
        let file = self.things.iter().find(|((ty, path), _)| ty == "ssh_file" && path.ends_with(end))?;
        file.1.get("content").and_then(Value::as_str)
    }

    /// Whom it would trust after a start.
    fn written_trust(&self) -> Trust {
        let file = |name: &str| self.file_ending(name).unwrap_or_default();
        Trust { clients: file("/pki/client-ca.crt"), peers: file("/pki/peer-ca.crt") }
    }

    fn unit(&self) -> Option<&Object> {
        self.things.iter().find(|((ty, _), _)| ty == "ssh_systemd_unit").map(|(_, unit)| unit)
    }

    /// That of the program on it.
    pub(crate) fn version(&self) -> Option<Version> {
        self.version_of("/etcd")
    }

    pub(super) fn version_of(&self, program: &str) -> Option<Version> {
        let is_it = |(ty, path): &(String, String)| ty == "ssh_artifact" && path.ends_with(program);
        let (_, program) = self.things.iter().find(|(key, _)| is_it(key))?;
        version::of_archive(program.get("source")?.as_str()?)
    }

    fn written(&self) -> String {
        let unit = self.unit().and_then(|u| u.get("content")?.as_str()).unwrap_or_default();
        let parts = ["/etcd.env", "/pki/client-ca.crt", "/pki/peer-ca.crt"].map(|f| self.file_ending(f).unwrap_or_default());
        format!("{unit}\n{}\n{:?}", parts.join("\n"), self.version())
    }

    pub(super) fn observe(&self, resource_type: &str, identity: &Object) -> Option<Object> {
        let key = (resource_type.to_owned(), things::identity(resource_type, identity)?);
        let is_moving = resource_type == "ssh_directory" && self.moving.contains_key(&key.1);
        if is_moving && !self.has_data_at(&key.1) {
            return Some(moving::on_its_way(&key.1));
        }
        let mut seen = self.things.get(&key)?.clone();
        if is_moving {
            seen.insert("moving".to_owned(), true.into());
        }
        // Its check says that it is done for the version that it is asked for.
        if version::to_save_for(resource_type, identity).is_some_and(|version| self.saved.is_none_or(|(was, _)| was != version)) {
            return None;
        }
        if restore::asked(resource_type, identity).is_some_and(|asked| !self.is_done(&asked)) {
            return None;
        }
        match resource_type {
            "ssh_directory" => {
                let is_hollow = self.hollow_at.as_ref() == Some(&key.1);
                seen.insert("empty".to_owned(), (!is_hollow && !self.has_data_at(&key.1)).into());
                seen.insert("hollow".to_owned(), is_hollow.into());
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

    pub(super) fn apply(&mut self, ty: &str, change: &Change, formed: Option<&Roster>) -> (Result<Option<Object>, String>, Vec<String>) {
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
        // Of a command that is another one by now nothing is left.
        if ty == "ssh_command"
            && let Some(old) = change.before().and_then(|b| things::identity(ty, b)).filter(|old| *old != key.1)
        {
            self.things.remove(&(ty.to_owned(), old));
        }
        let mut object = after.clone();
        things::compute(ty, &mut object);
        if let Some(version) = version::to_save_for(ty, after) {
            let saved = self.save(version, formed.and_then(|f| f.version));
            if let Err(why) = saved {
                return (Err(why), violations);
            }
        }
        let mut starts = false;
        if let Some(asked) = restore::asked(ty, after) {
            match self.restore(&asked) {
                Ok(is_switched) => starts = is_switched && self.unit().is_some(),
                Err(why) => return (Err(why), violations),
            }
        }
        if ty == "ssh_directory"
            && let Err(why) = moving::carry(self, change)
        {
            return (Err(why), violations);
        }
        let before = self.things.insert(key, object.clone());
        if starts {
            self.formation = None;
            self.start(formed, &mut violations);
        }
        if ty == "ssh_file"
            && let Some(name) = self.setting("ETCD_NAME")
        {
            self.member = name;
        }
        if ty == "ssh_systemd_unit" {
            let same = |name: &str| before.as_ref().is_some_and(|b| b.get(name) == object.get(name));
            if !(self.process.is_running() && same("content") && same("restart_triggers")) {
                let given = after.get("start_environment").and_then(Value::as_entries);
                let text = |(n, v): (&String, &Value)| Some((n.clone(), v.as_str()?.to_owned()));
                self.formation = given.map(|entries| entries.iter().filter_map(text).collect());
                self.start(formed, &mut violations);
            }
        }
        (Ok(Some(object)), violations)
    }

    fn remove(&mut self, key: &(String, String)) {
        let Some(old) = self.things.remove(key) else { return };
        let undo = old.get("undo").and_then(Value::as_str).unwrap_or_default();
        match key.0.as_str() {
            "ssh_systemd_unit" => self.process = Process::Stopped,
            "ssh_command" if undo.contains(".snapshots/version") => self.saved = None,
            "ssh_command" if undo.contains(".restore/ended") => {
                let ended = &self.ended;
                self.before.retain(|(token, _)| !ended.contains(token));
            }
            "ssh_command" if undo.contains("rm -f ") => {
                self.marker = false;
                self.formation = None;
                if undo.contains(".replaced-*") {
                    self.set_aside.clear();
                    self.before.clear();
                }
                if undo.contains("mv ") {
                    self.kept = self.data.take();
                }
                if self.data_at.as_ref().is_some_and(|at| undo.contains(&format!("{at}/member "))) {
                    (self.data, self.hollow_at) = (None, None);
                }
            }
            "ssh_directory" if key.1.ends_with(".restore") => {
                let is_purged = old.get("purge").and_then(Value::as_bool) == Some(true);
                assert!(is_purged || self.prepared.is_none(), "it is not empty, and stays");
                (self.prepared, self.switched) = (None, None);
                self.ended.clear();
            }
            "ssh_directory"
                if old.get("purge").and_then(Value::as_bool) == Some(true) && self.data_at.as_ref().is_none_or(|at| *at == key.1) =>
            {
                (self.data, self.hollow_at) = (None, None);
                self.moved.clear();
            }
            _ => {}
        }
    }

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

    /// Its data is there.
    pub(crate) fn has_data_at(&self, path: &str) -> bool {
        self.data.is_some() && self.data_at.as_deref() == Some(path)
    }

    /// What the command that saves does before a version.
    fn save(&mut self, version: Version, cluster: Option<u32>) -> Result<(), String> {
        let (was, from) = self.saved.map_or((None, None), |(was, from)| (Some(was), from));
        if was == Some(version) {
            return Ok(());
        }
        // Only as long as not all have it.
        let is_taken_back = from == Some(version) && was.is_some_and(|was| was.0 != version.0 && cluster < Some(was.0));
        if is_taken_back || self.data.is_none() || (was.is_none() && self.version() == Some(version)) {
            self.saved = Some((version, None));
            return Ok(());
        }
        if !matches!(self.process, Process::Running { joined: true, .. }) {
            return Ok(());
        }
        if self.has_no_room {
            return Err("there is no room for a snapshot".to_owned());
        }
        self.saved = Some((version, self.version()));
        Ok(())
    }

    /// What of a cluster is on it.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let mut left: Vec<String> = self.things.keys().map(|(ty, id)| format!("{ty} {id}")).collect();
        let more = [
            (self.data.is_some(), "data"),
            (self.hollow_at.is_some(), "what is left of data"),
            (!self.moving.is_empty(), "a move"),
            (self.kept.is_some(), "kept data"),
            (self.marker, "marker"),
            (self.formation.is_some(), "formation"),
            (!self.set_aside.is_empty(), "data set aside"),
            (self.saved.is_some(), "snapshots"),
            (self.prepared.is_some() || self.switched.is_some() || !self.before.is_empty(), "what was restored"),
            (self.process.is_running(), "process"),
        ];
        left.extend(more.into_iter().filter(|(is, _)| *is).map(|(_, what)| what.to_owned()));
        left
    }
}
