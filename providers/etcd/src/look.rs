//! One look at one member, through a connection to that member alone.
//!
//! A client with several endpoints would pick any of them, and then one healthy member could answer for a dead one.

use std::collections::BTreeMap;

use etcd_client::{AlarmAction, AlarmType, Client as Connection, Error, GetOptions};
use karmaform_model::Diagnostic;
use tokio::task::JoinSet;

use crate::client::{Client, within};

/// gRPC's number for "permission denied".
const PERMISSION_DENIED: i32 = 7;
/// What etcd says to a certificate that is no user of its own, once authentication was enabled, besides "permission denied". Source: etcd's
/// `api/v3rpc/rpctypes`.
const REFUSALS: [&str; 3] = ["user name is empty", "user name not found", "invalid auth token"];
/// The same, for people.
pub(crate) const REFUSED: &str = "authentication was enabled in etcd, and it refuses the certificate that it is asked with";

/// What a member said about itself and about the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Its id.
    pub(crate) member_id: u64,
    /// The cluster's id.
    pub(crate) cluster_id: u64,
    /// The leader it follows; 0: none.
    pub(crate) leader: u64,
    /// Its version.
    pub(crate) version: String,
    /// The minor version whose way of keeping data it has; `None`: it does not say (before 3.6).
    pub(crate) storage: Option<u32>,
    /// The minor version that the cluster was told to go down to.
    pub(crate) goes_down_to: Option<u32>,
    /// It does not vote.
    pub(crate) learner: bool,
    /// Its database, in bytes.
    pub(crate) size: i64,
    /// What of that is not free, in bytes.
    pub(crate) in_use: i64,
    /// What it may grow to, in bytes; 0: it does not say (before 3.6.6).
    pub(crate) quota: i64,
    /// The newest revision it has.
    pub(crate) revision: i64,
    /// A linearizable read went through it; else why not.
    pub(crate) read: Result<(), String>,
    /// The read went through, and who asked may not see the answer: authentication was enabled, and the name in the certificate has no rights.
    pub(crate) refuses: bool,
    /// Alarms of the whole cluster: member id and name.
    pub(crate) alarms: Vec<(u64, String)>,
    /// The members it knows.
    pub(crate) members: Vec<Known>,
}

/// A member as another one knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) learner: bool,
    pub(crate) peer_urls: Vec<String>,
    pub(crate) client_urls: Vec<String>,
}

impl Look {
    /// Why this member can't be counted on, in a few words; `None` if it can.
    pub(crate) fn trouble(&self) -> Option<String> {
        if let Err(why) = &self.read {
            return Some(why.clone());
        }
        if self.leader == 0 {
            return Some("it sees no leader".to_owned());
        }
        if self.learner {
            return Some("it is a learner and does not vote".to_owned());
        }
        None
    }

    /// It refuses to say who the members are.
    pub(crate) fn hides_members(&self) -> bool {
        self.refuses && self.members.is_empty()
    }

    /// What the member list says about this member itself.
    pub(crate) fn own(&self) -> Option<&Known> {
        self.members.iter().find(|m| m.id == self.member_id)
    }
}

#[cfg(test)]
impl Look {
    /// A voter that works, as far as its version says it.
    pub(crate) fn of_version(version: &str, storage: Option<u32>, goes_down_to: Option<u32>) -> Self {
        Self {
            member_id: 1,
            cluster_id: 1,
            leader: 1,
            version: version.to_owned(),
            storage,
            goes_down_to,
            learner: false,
            size: 0,
            in_use: 0,
            quota: 0,
            revision: 1,
            read: Ok(()),
            refuses: false,
            alarms: Vec::new(),
            members: Vec::new(),
        }
    }
}

impl Known {
    /// It has told the cluster its name and its client URLs. A member of a new cluster has a name before, from everybody's first list.
    pub(crate) fn has_started(&self) -> bool {
        !self.name.is_empty() && !self.client_urls.is_empty()
    }
}

/// Looks at these members, all at once: one that does not answer costs its time limit once, not once per member behind it. One whose look
/// ended early is missing.
pub(crate) async fn look_at(client: &Client, names: impl IntoIterator<Item = String>) -> BTreeMap<String, Result<Look, String>> {
    let mut running = JoinSet::new();
    for name in names {
        let client = client.clone();
        running.spawn(async move {
            let seen = look(&client, &name).await;
            (name, seen)
        });
    }
    let mut looks = BTreeMap::new();
    while let Some(done) = running.join_next().await {
        looks.extend(done);
    }
    looks
}

/// Looks once. The error says in a few words why the member could not be asked at all.
pub(crate) async fn look(client: &Client, name: &str) -> Result<Look, String> {
    let mut connection = client.open(name).await?;
    let status = within(connection.status()).await.map_err(|e| reason(&e))?;
    let header = status.header().ok_or("its answer has no header")?;
    let read = read_through(&mut connection).await;
    let mut look = Look {
        member_id: header.member_id(),
        cluster_id: header.cluster_id(),
        leader: status.leader(),
        version: status.version().to_owned(),
        storage: minor(status.storage_version()),
        goes_down_to: status.downgrade_info().filter(|info| info.enabled()).and_then(|info| minor(info.target_version())),
        learner: status.is_learner(),
        size: status.db_size(),
        in_use: status.raft_used_db_size(),
        quota: status.db_size_quota(),
        revision: header.revision(),
        refuses: read == Ok(Reading::Refused),
        read: read.map(|_| ()),
        alarms: Vec::new(),
        members: Vec::new(),
    };
    if look.read.is_ok() {
        look.alarms = alarms(&mut connection).await?;
        look.members = members(&mut connection).await?;
    }
    Ok(look)
}

/// The second number of `3.5.0`, and of `3.5`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("3.")?.split('.').next()?.parse().ok()
}

/// A read that went through the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Answered,
    /// That we may not see the answer says nothing about its health: etcd asks for rights only once it has read.
    Refused,
}

/// A linearizable read needs the leader and a quorum: it is what health means.
async fn read_through(connection: &mut Connection) -> Result<Reading, String> {
    let options = GetOptions::new().with_keys_only().with_limit(1);
    match within(connection.get("health", Some(options))).await {
        Ok(_) => Ok(Reading::Answered),
        Err(error) if is_refusal(&error) => Ok(Reading::Refused),
        Err(error) => Err(reason(&error)),
    }
}

async fn alarms(connection: &mut Connection) -> Result<Vec<(u64, String)>, String> {
    match within(connection.alarm(AlarmAction::Get, AlarmType::None, None)).await {
        Ok(answer) => Ok(answer.alarms().iter().map(|a| (a.member_id(), alarm_name(a.alarm()))).collect()),
        Err(error) if is_refusal(&error) => Ok(Vec::new()),
        Err(error) => Err(reason(&error)),
    }
}

fn alarm_name(alarm: AlarmType) -> String {
    match alarm {
        AlarmType::Nospace => "NOSPACE",
        AlarmType::Corrupt => "CORRUPT",
        _ => "unknown",
    }
    .to_owned()
}

async fn members(connection: &mut Connection) -> Result<Vec<Known>, String> {
    let answer = match within(connection.member_list()).await {
        Ok(answer) => answer,
        Err(error) if is_refusal(&error) => return Ok(Vec::new()),
        Err(error) => return Err(reason(&error)),
    };
    let known = answer.members().iter().map(|m| Known {
        id: m.id(),
        name: m.name().to_owned(),
        learner: m.is_learner(),
        peer_urls: m.peer_urls().to_vec(),
        client_urls: m.client_urls().to_vec(),
    });
    Ok(known.collect())
}

pub(crate) fn is_permission_denied(error: &Error) -> bool {
    matches!(error, Error::GRpcStatus(status) if status.code() as i32 == PERMISSION_DENIED)
}

/// True if etcd refuses it to whoever asks, as it knows no user of that name, or none with the right.
fn is_refusal(error: &Error) -> bool {
    is_permission_denied(error)
        || matches!(error, Error::GRpcStatus(status) if REFUSALS.iter().any(|said| status.message().ends_with(said)))
}

/// No server has said this: the connection broke, as where the member that was asked is killed, or the answer took too long. What became of the
/// question is seen at the next look.
pub(crate) fn is_unanswered(error: &Error) -> bool {
    match error {
        // Only what was met on the way has a cause. Its number is that of anything unknown.
        Error::GRpcStatus(status) => std::error::Error::source(status).is_some(),
        Error::TransportError(_) | Error::IoError(_) | Error::Internal(_) => true,
        _ => false,
    }
}

/// What `failed` makes of an error's reason. A plan tries it again where nobody answered: a member that was killed meanwhile has refused nothing.
pub(crate) fn failed_by(error: &Error, failed: impl FnOnce(String) -> Diagnostic) -> Diagnostic {
    let told = failed(reason(error));
    if is_unanswered(error) { told.retryable() } else { told }
}

/// An error in a few words. The deepest cause says most ("Connection refused"), the layers above it only that something went wrong.
pub(crate) fn reason(error: &Error) -> String {
    if is_refusal(error) {
        return REFUSED.to_owned();
    }
    let mut deepest: &dyn std::error::Error = error;
    if let Error::GRpcStatus(status) = error {
        match std::error::Error::source(status) {
            Some(cause) => deepest = cause,
            None => return shorten(status.message()),
        }
    }
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    shorten(&deepest.to_string())
}

fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim().trim_start_matches("etcdserver: ");
    let mut short: String = line.chars().take(120).collect();
    if short.is_empty() {
        short.push_str("it does not answer");
    }
    short
}
