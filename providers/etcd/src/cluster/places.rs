//! Where a member's files are on its host, and what its children are called.

use karmaform_model::{ChildStep, Key};

use super::arguments::Arguments;
use super::restore::Restore;

/// Paths on a member's host.
pub(crate) struct Places {
    pub(crate) config: String,
    pub(crate) pki: String,
    /// Keys that only root may read, and nothing on the host does.
    pub(crate) authority: String,
    pub(crate) programs: String,
    pub(crate) program: String,
    /// The programs of the version before.
    pub(crate) previous: String,
    pub(crate) data: String,
    /// What the data was before each upgrade. Beside the data: where there is room for that there is room for these.
    pub(crate) snapshots: String,
    /// What is restored, until it takes the place of the data.
    pub(crate) restore: String,
    pub(crate) environment: String,
    /// Who the members are, for a first start. Apart from the environment, so that others may come and go without a restart.
    pub(crate) peers: String,
    pub(crate) guard: String,
    /// Exists once the member was ready: from then on it must have data. Not below /var, so that a lost disk does not take both.
    pub(crate) marker: String,
    /// The environment of the very first start; gone after it, and after a reboot.
    pub(crate) formation: String,
}

impl Places {
    /// Of each member of this cluster; they are the same on every host.
    pub(crate) fn of(cluster: &Arguments) -> Self {
        let config = format!("/etc/etcd/{}", cluster.name);
        // The same for every version: whoever starts the unit finds a program there at any moment of an upgrade.
        let programs = format!("/opt/karmaform/etcd-{}", cluster.name);
        Self {
            pki: format!("{config}/pki"),
            authority: format!("{config}/pki/authority"),
            program: format!("{programs}/etcd"),
            previous: format!("{programs}/previous"),
            data: cluster.data_directory.clone(),
            snapshots: format!("{}.snapshots", cluster.data_directory),
            restore: format!("{}.restore", cluster.data_directory),
            environment: format!("{config}/etcd.env"),
            peers: format!("{config}/peers.env"),
            guard: format!("{config}/guard"),
            marker: format!("{config}/formed"),
            formation: format!("/run/karmaform/{}.env", cluster.unit()),
            config,
            programs,
        }
    }
}

/// Where the data is unless something else is written.
pub(crate) fn default_data_directory(cluster_name: &str) -> String {
    format!("/var/lib/etcd/{cluster_name}")
}

/// The role of the CA of server and client certificates.
pub(crate) const CLIENT_CA: &str = "client_ca";
/// That of the certificates between members. Its own one, because with a shared one every client could speak as a member.
pub(crate) const PEER_CA: &str = "peer_ca";

/// A CA of this role. The first of each has no number in its name: there are clusters that were made before there could be others.
pub(crate) fn authority(role: &str, number: i64) -> Vec<ChildStep> {
    let key = u64::try_from(number).ok().filter(|n| *n != 1).map(Key::Index);
    vec![ChildStep { name: role.to_owned(), key }]
}

/// The number of a CA of either role; `None`: it is none.
pub(crate) fn number_of_authority(path: &[ChildStep]) -> Option<i64> {
    match path {
        [step] if [CLIENT_CA, PEER_CA].contains(&step.name.as_str()) => match &step.key {
            None => Some(1),
            Some(Key::Index(number)) => i64::try_from(*number).ok(),
            Some(Key::Name(_)) => None,
        },
        _ => None,
    }
}

/// True for a CA of either role.
pub(crate) fn is_authority(path: &[ChildStep]) -> bool {
    number_of_authority(path).is_some()
}

/// What the state remembers of a restoration that began. Each has one of its own, so that nothing waits for what there is of an earlier one on a
/// host that is gone.
pub(crate) fn restoring(what: &Restore) -> Vec<ChildStep> {
    vec![ChildStep::keyed("restoring", &what.name())]
}

/// Which backup in a bucket was chosen for a restoration.
pub(crate) fn chosen(what: &Restore) -> Vec<ChildStep> {
    vec![ChildStep::keyed("chosen", &what.asked())]
}

/// What the state remembers of one that ended well.
pub(crate) fn restored() -> Vec<ChildStep> {
    vec![ChildStep::new("restored")]
}

/// What the state remembers of the moment from which on pods were stopped for one.
pub(crate) fn stopping() -> Vec<ChildStep> {
    vec![ChildStep::new("stopping")]
}

/// And of the moment from which on members in pods may have started with what was restored: it is not restored once more.
pub(crate) fn starting() -> Vec<ChildStep> {
    vec![ChildStep::new("starting")]
}

/// True for any of these.
pub(crate) fn is_record_of_restoration(path: &[ChildStep]) -> bool {
    matches!(path, [step] if ["chosen", "restoring", "restored", "stopping", "starting"].contains(&step.name.as_str()))
}

/// True for what only a restoration needs: it has no part in how a member works.
pub(crate) fn is_of_restoration(path: &[ChildStep]) -> bool {
    let Some(step) = path.get(1) else { return false };
    let is_keyed = |key: &str| matches!(&step.key, Some(Key::Name(name)) if name == key);
    match step.name.as_str() {
        "restore" => true,
        "directory" => is_keyed("restore"),
        "program" => is_keyed("etcdutl"),
        _ => false,
    }
}

/// What names the formation.
pub(crate) fn token() -> Vec<ChildStep> {
    vec![ChildStep::new("token")]
}

/// The client certificate of karmaform and of the cluster's users.
pub(crate) fn client_certificate() -> Vec<ChildStep> {
    vec![ChildStep::new("client_certificate")]
}

/// The StatefulSet of a cluster on Kubernetes.
pub(crate) fn stateful_set() -> Vec<ChildStep> {
    vec![ChildStep::new("stateful_set")]
}

/// The list on Kubernetes of those that form the cluster.
pub(crate) fn founders() -> Vec<ChildStep> {
    vec![ChildStep::new("founders")]
}

/// How many pods may be evicted at once.
pub(crate) fn disruption_budget() -> Vec<ChildStep> {
    vec![ChildStep::new("disruption_budget")]
}

/// The note on Kubernetes that the cluster was formed.
pub(crate) fn formed_note() -> Vec<ChildStep> {
    vec![ChildStep::new("formed")]
}

/// A part of a member.
pub(crate) fn part(member: &str, name: &str) -> Vec<ChildStep> {
    vec![ChildStep::keyed("member", member), ChildStep::new(name)]
}

/// A part of a member, one of several of its kind.
pub(crate) fn part_of(member: &str, name: &str, key: &str) -> Vec<ChildStep> {
    vec![ChildStep::keyed("member", member), ChildStep::keyed(name, key)]
}
