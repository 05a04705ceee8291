//! A close look at all members at once, each through its own connection. Reads only.

use std::collections::{BTreeMap, BTreeSet};

use etcd_client::{AlarmAction, AlarmType, Client as Connection, GetOptions};
use tokio::task::JoinSet;

use super::Cluster;
use crate::care::bytes;
use crate::client::{Client, within};
use crate::look::{is_permission_denied, reason};

/// A member with so many entries of the log still to be applied lags, and is not counted on. Source: what etcd's own health checks take.
pub(super) const LAG: u64 = 1_000;

/// What a member says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its id.
    pub member_id: u64,
    /// Its cluster's id.
    pub cluster_id: u64,
    /// The leader it follows; 0: none.
    pub leader: u64,
    /// The version it runs.
    pub version: String,
    /// The version of its data, from 3.6 on; empty before.
    pub storage_version: String,
    /// It does not vote.
    pub learner: bool,
    /// How many elections there were.
    pub term: u64,
    /// The newest entry of its log.
    pub index: u64,
    /// The newest entry that is in its database.
    pub applied: u64,
    /// Its database, in bytes.
    pub size: i64,
    /// What of that is not free, in bytes.
    pub in_use: i64,
    /// What it may grow to, in bytes; below zero: no limit.
    pub quota: i64,
    /// The newest revision it has.
    pub revision: i64,
    /// What it says is wrong with it.
    pub errors: Vec<String>,
    /// A linearizable read went through it; else why not.
    pub read: Result<(), String>,
}

/// A member as the cluster's list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: u64,
    /// Its name; empty until it has started once.
    pub name: String,
    /// It does not vote.
    pub learner: bool,
    /// Where other members reach it.
    pub peer_urls: Vec<String>,
    /// Where clients reach it; empty until it has started once.
    pub client_urls: Vec<String>,
}

/// An alarm that is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Whose it is. A restored cluster has those of members that are no more.
    pub member_id: u64,
    /// `NOSPACE`, `CORRUPT`
    pub kind: &'static str,
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// By the names that they are asked by: what each says of itself, or why it could not be asked.
    pub members: BTreeMap<String, Result<Facts, String>>,
    /// The cluster's list, from one through which a linearizable read went; empty if there is none.
    pub list: Vec<Listed>,
    /// Alarms that are on, from the same one.
    pub alarms: Vec<Alarm>,
}

/// Asks all members at the same time.
pub async fn survey(cluster: &Cluster) -> Survey {
    let client = &cluster.client;
    let mut running = JoinSet::new();
    for name in cluster.names() {
        let client = client.clone();
        running.spawn(async move {
            let seen = one(&client, &name).await;
            (name, seen)
        });
    }
    let mut seen = Survey::default();
    while let Some(done) = running.join_next().await {
        if let Ok((name, found)) = done {
            let told = found.map(|(facts, told)| {
                if let Some((list, alarms)) = told.filter(|_| seen.list.is_empty()) {
                    (seen.list, seen.alarms) = (list, alarms);
                }
                facts
            });
            seen.members.insert(name, told);
        }
    }
    seen
}

/// What one member says of itself, and of the cluster if a read went through it.
async fn one(client: &Client, name: &str) -> Result<(Facts, Option<(Vec<Listed>, Vec<Alarm>)>), String> {
    let mut connection = client.open(name).await?;
    let status = within(connection.status()).await.map_err(|e| reason(&e))?;
    let header = status.header().ok_or("its answer has no header")?;
    let own = status.db_size_quota();
    let mut facts = Facts {
        member_id: header.member_id(),
        cluster_id: header.cluster_id(),
        leader: status.leader(),
        version: status.version().to_owned(),
        storage_version: status.storage_version().to_owned(),
        learner: status.is_learner(),
        term: status.raft_term(),
        index: status.raft_index(),
        applied: status.raft_applied_index(),
        size: status.db_size(),
        in_use: status.raft_used_db_size(),
        quota: if own == 0 { client.quota() } else { own },
        revision: header.revision(),
        errors: status.errors().to_vec(),
        read: Ok(()),
    };
    // What a learner refuses is no sign of trouble: it answers nothing but questions about itself.
    if facts.learner {
        return Ok((facts, None));
    }
    facts.read = read_through(&mut connection).await;
    let told = if facts.read.is_ok() { Some((list(&mut connection).await?, alarms(&mut connection).await?)) } else { None };
    Ok((facts, told))
}

async fn read_through(connection: &mut Connection) -> Result<(), String> {
    match within(connection.get("health", Some(GetOptions::new().with_keys_only().with_limit(1)))).await {
        Err(error) if !is_permission_denied(&error) => Err(reason(&error)),
        _ => Ok(()),
    }
}

async fn list(connection: &mut Connection) -> Result<Vec<Listed>, String> {
    let answer = within(connection.member_list()).await.map_err(|e| reason(&e))?;
    let one = |m: &etcd_client::Member| Listed {
        id: m.id(),
        name: m.name().to_owned(),
        learner: m.is_learner(),
        peer_urls: m.peer_urls().to_vec(),
        client_urls: m.client_urls().to_vec(),
    };
    Ok(answer.members().iter().map(one).collect())
}

async fn alarms(connection: &mut Connection) -> Result<Vec<Alarm>, String> {
    let answer = match within(connection.alarm(AlarmAction::Get, AlarmType::None, None)).await {
        Err(error) if is_permission_denied(&error) => return Ok(Vec::new()),
        other => other.map_err(|e| reason(&e))?,
    };
    let kind = |of: AlarmType| match of {
        AlarmType::Nospace => "NOSPACE",
        AlarmType::Corrupt => "CORRUPT",
        _ => "unknown",
    };
    Ok(answer.alarms().iter().map(|a| Alarm { member_id: a.member_id(), kind: kind(a.alarm()) }).collect())
}

impl Facts {
    /// It is the leader.
    pub fn leads(&self) -> bool {
        self.leader == self.member_id
    }

    /// Free pages, in bytes. Before 3.4 nothing was said of what is in use.
    pub fn free(&self) -> i64 {
        if self.in_use > 0 { (self.size - self.in_use).max(0) } else { 0 }
    }

    /// Why it can't be counted on, in a few words.
    fn trouble(&self) -> Option<String> {
        match &self.read {
            Err(why) => Some(why.clone()),
            Ok(()) if self.leader == 0 => Some("it sees no leader".to_owned()),
            Ok(()) if self.learner => Some("it is a learner and does not vote".to_owned()),
            Ok(()) => None,
        }
    }
}

impl Survey {
    /// Those that answered.
    pub fn answered(&self) -> impl Iterator<Item = (&String, &Facts)> {
        self.members.iter().filter_map(|(name, seen)| Some((name, seen.as_ref().ok()?)))
    }

    /// The name and the facts of the leader, if it is among those that answered.
    pub fn leader(&self) -> Option<(&String, &Facts)> {
        self.answered().find(|(_, facts)| facts.leads())
    }

    /// So many entries of the log are still to be applied by a member.
    pub fn lag(&self, facts: &Facts) -> u64 {
        self.answered().map(|(_, f)| f.index).max().unwrap_or(0).saturating_sub(facts.applied)
    }

    /// What a member of this id is called.
    pub fn called(&self, id: u64) -> String {
        let asked = self.answered().find(|(_, f)| f.member_id == id).map(|(name, _)| name.clone());
        asked.or_else(|| self.listed(id).map(str::to_owned)).unwrap_or_else(|| format!("{id:x}"))
    }

    /// The name of a member of this id in the cluster's list.
    pub fn listed(&self, id: u64) -> Option<&str> {
        self.list.iter().find(|m| m.id == id && !m.name.is_empty()).map(|m| m.name.as_str())
    }

    /// True if an alarm of this kind is on.
    pub fn alarming(&self, kind: &str) -> bool {
        self.alarms.iter().any(|a| a.kind == kind)
    }

    /// What keeps the cluster from being whole, in a few words each: members that don't answer or don't work, that don't belong together, lag, have
    /// not started or don't vote yet, and members in its list that nobody can ask from here. Alarms are not among it.
    pub fn troubles(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, seen) in &self.members {
            match seen.as_ref().map(Facts::trouble) {
                Ok(None) => {}
                Ok(Some(why)) => found.push(format!("member {name}: {why}")),
                Err(why) => found.push(format!("member {name}: {why}")),
            }
        }
        let clusters: BTreeSet<u64> = self.answered().map(|(_, f)| f.cluster_id).collect();
        let leaders: BTreeSet<u64> = self.answered().map(|(_, f)| f.leader).filter(|l| *l != 0).collect();
        if clusters.len() > 1 {
            found.push("its members belong to different clusters".to_owned());
        }
        if leaders.len() > 1 {
            found.push("its members follow different leaders".to_owned());
        }
        let lagging = self.answered().filter(|(_, f)| self.lag(f) > LAG);
        found.extend(lagging.map(|(name, f)| format!("member {name} lags by {} entries of the log", self.lag(f))));
        let asked: BTreeSet<u64> = self.answered().map(|(_, f)| f.member_id).collect();
        for listed in &self.list {
            let who = if listed.name.is_empty() { format!("{:x}", listed.id) } else { listed.name.clone() };
            if listed.client_urls.is_empty() {
                found.push(format!("member {who} never started"));
            } else if !asked.contains(&listed.id) && !self.is_asked(listed) {
                found.push(format!("member {who} is in its list and not in the state, so nobody can ask it"));
            }
        }
        found
    }

    /// It is among those that were asked, by its name or by one of its URLs.
    fn is_asked(&self, listed: &Listed) -> bool {
        std::iter::once(&listed.name).chain(&listed.client_urls).any(|name| self.members.contains_key(name))
    }

    /// Alarms in words.
    pub fn alarm_words(&self) -> Vec<String> {
        self.alarms.iter().map(|a| format!("alarm {} of member {}", a.kind, self.called(a.member_id))).collect()
    }

    /// What a cluster that works is in need of: room and defragmentation.
    pub fn cares(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, facts) in self.answered() {
            if facts.quota > 0 && facts.size > facts.quota / 100 * crate::care::FULL {
                found.push(format!("member {name} has {} of the {} that its database may grow to", bytes(facts.size), bytes(facts.quota)));
            }
            if super::defragment::is_fragmented(facts) {
                found.push(format!("member {name} has {} of free pages in {}", bytes(facts.free()), bytes(facts.size)));
            }
        }
        found
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A member that is well; its id is its number.
    pub(in super::super) fn facts(id: u64, leader: u64) -> Facts {
        Facts {
            member_id: id,
            cluster_id: 9,
            leader,
            version: "3.5.30".into(),
            storage_version: String::new(),
            learner: false,
            term: 2,
            index: 5_000,
            applied: 5_000,
            size: 1 << 20,
            in_use: 1 << 20,
            quota: 2 << 30,
            revision: 7,
            errors: vec![],
            read: Ok(()),
        }
    }

    /// Members a, b and c; a leads.
    pub(in super::super) fn three() -> Survey {
        let members = [("a", 1), ("b", 2), ("c", 3)];
        let listed = |(name, id): (&str, u64)| Listed {
            id,
            name: name.into(),
            learner: false,
            peer_urls: vec![],
            client_urls: vec!["https://10.0.0.1:2379".into()],
        };
        Survey {
            members: members.iter().map(|(name, id)| ((*name).to_owned(), Ok(facts(*id, 1)))).collect(),
            list: members.map(listed).into(),
            alarms: vec![],
        }
    }

    fn with(name: &str, change: impl FnOnce(&mut Facts)) -> Survey {
        let mut seen = three();
        change(seen.members.get_mut(name).unwrap().as_mut().unwrap());
        seen
    }

    #[test]
    fn what_keeps_it_from_being_whole_is_named() {
        let check = |seen: &Survey, expected: &[&str]| assert_eq!(seen.troubles(), expected);
        check(&three(), &[]);
        check(&with("b", |f| f.read = Err("no leader".into())), &["member b: no leader"]);
        check(&with("b", |f| f.leader = 2), &["its members follow different leaders"]);
        check(&with("b", |f| f.cluster_id = 8), &["its members belong to different clusters"]);
        check(&with("b", |f| f.applied = 3_000), &["member b lags by 2000 entries of the log"]);
        check(&with("c", |f| f.learner = true), &["member c: it is a learner and does not vote"]);
        let mut away = three();
        away.members.insert("b".into(), Err("connection refused".into()));
        check(&away, &["member b: connection refused"]);
        // Where members are called by their URLs, too, one that is away is told once.
        let mut by_url = three();
        by_url.members = by_url.members.into_values().zip(1..).map(|(seen, n)| (format!("https://10.0.0.{n}:2379"), seen)).collect();
        by_url.members.insert("https://10.0.0.3:2379".into(), Err("connection refused".into()));
        by_url.list[2].client_urls = vec!["https://10.0.0.3:2379".into()];
        check(&by_url, &["member https://10.0.0.3:2379: connection refused"]);
        let mut strange = three();
        strange.list.push(Listed { id: 4, name: "d".into(), ..strange.list[0].clone() });
        strange.list.push(Listed { id: 5, name: String::new(), client_urls: vec![], ..strange.list[0].clone() });
        check(&strange, &["member d is in its list and not in the state, so nobody can ask it", "member 5 never started"]);
        let mut alarming = three();
        alarming.alarms = vec![Alarm { member_id: 2, kind: "NOSPACE" }, Alarm { member_id: 99, kind: "NOSPACE" }];
        check(&alarming, &[]);
        assert_eq!(alarming.alarm_words(), ["alarm NOSPACE of member b", "alarm NOSPACE of member 63"]);
    }

    #[test]
    fn room_and_free_pages_are_told() {
        assert_eq!(three().cares(), Vec::<String>::new());
        let full = with("a", |f| (f.size, f.in_use) = (1_900 << 20, 1_900 << 20));
        assert_eq!(full.cares(), ["member a has 1.9 GiB of the 2.0 GiB that its database may grow to"]);
        let free = with("c", |f| (f.size, f.in_use) = (300 << 20, 100 << 20));
        assert_eq!(free.cares(), ["member c has 200.0 MiB of free pages in 300.0 MiB"]);
    }
}
