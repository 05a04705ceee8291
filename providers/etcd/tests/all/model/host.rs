//! One host: its files and units, and the one etcd member that its unit runs.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Object, Value};

use super::process::Process;
use super::roster::Roster;
use super::shared::Shared;
use super::version::{self, Version};
use super::{moving, restore, things};

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

    pub(super) fn unit(&self) -> Option<&Object> {
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

    /// Its data is there.
    pub(crate) fn has_data_at(&self, path: &str) -> bool {
        self.data.is_some() && self.data_at.as_deref() == Some(path)
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
