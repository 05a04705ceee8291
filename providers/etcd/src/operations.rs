//! Operations on a running cluster: what its members agree on, which no resource stands for. Each is done a careful step at a time, and what is
//! done already is found by looking (facts of etcd: one change of members at a time; a learner costs no quorum; refusals of the first five seconds
//! after a connection came up are no errors).

mod change;
mod disarm;
mod downgrade;
mod join;
mod leave;
mod make_room;
mod move_prefix;
mod promote;
mod settle;

use std::collections::BTreeMap;

use etcd_client::Error;
use karmaform_model::{Diagnostic, Object, Value};

pub(crate) use disarm::EtcdDisarm;
pub(crate) use downgrade::EtcdDowngrade;
pub(crate) use join::EtcdJoin;
pub(crate) use leave::EtcdLeave;
pub(crate) use make_room::EtcdMakeRoom;
pub(crate) use move_prefix::{EtcdCopy, EtcdMove};
pub(crate) use promote::EtcdPromote;
pub(crate) use settle::EtcdSettle;

use crate::client::Client;
use crate::look::{Known, Look, REFUSED, is_unanswered, look_at, reason};

/// gRPC's numbers for answers that say why something can't be done now, and may be done later: cancelled, deadline exceeded, resource exhausted,
/// failed precondition, aborted, internal, unavailable.
const LATER: &[i32] = &[1, 4, 8, 9, 10, 13, 14];

/// What voters say, asked all at once.
pub(crate) struct Voters {
    /// Those that work, by name.
    healthy: BTreeMap<String, Look>,
    /// Why the others don't.
    troubles: Vec<String>,
}

impl Voters {
    /// Asks these.
    pub(crate) async fn ask(client: &Client, names: &[String]) -> Self {
        let mut looks = look_at(client, names.iter().cloned()).await;
        let (mut healthy, mut troubles) = (BTreeMap::new(), Vec::new());
        for name in names {
            let seen = looks.remove(name).unwrap_or_else(|| Err("a look at it ended early".to_owned()));
            match seen.as_ref().map(Look::trouble) {
                // Without its list, everybody would be taken for one who has left.
                Ok(None) if seen.as_ref().is_ok_and(Look::hides_members) => troubles.push(format!("member {name}: {REFUSED}")),
                Ok(None) => drop(seen.map(|look| healthy.insert(name.clone(), look))),
                Ok(Some(why)) => troubles.push(format!("member {name}: {why}")),
                Err(why) => troubles.push(format!("member {name}: {why}")),
            }
        }
        Self { healthy, troubles }
    }

    /// One that works and whose list of members can be trusted: a linearizable read has just gone through it. The one that leads, if it is among them:
    /// etcd judges a change by the connections of whoever is asked, and a follower may be cut off from another one that the leader reaches.
    pub(crate) fn speaker(&self) -> Result<(&String, &Look), String> {
        self.speakers().into_iter().next().ok_or_else(|| format!("no member can be asked: {}", self.troubles.join("; ")))
    }

    /// All that work, in the order that they are asked in.
    pub(crate) fn speakers(&self) -> Vec<(&String, &Look)> {
        let mut speakers: Vec<_> = self.healthy.iter().collect();
        speakers.sort_by_key(|(_, look)| look.leader != look.member_id);
        speakers
    }

    /// What waits until all of these work.
    pub(crate) fn all_healthy(&self) -> Result<(), String> {
        if self.troubles.is_empty() { Ok(()) } else { Err(self.troubles.join("; ")) }
    }
}

/// The voters in a list of members.
pub(crate) fn voters(list: &[Known]) -> usize {
    list.iter().filter(|m| !m.learner).count()
}

/// A refusal that ends by itself: what it waits for, in a few words. `None`: it does not.
pub(crate) fn passing(error: &Error) -> Option<String> {
    let is_later = matches!(error, Error::GRpcStatus(status) if LATER.contains(&(status.code() as i32)));
    (is_later || is_unanswered(error)).then(|| reason(error))
}

pub(crate) fn refused(what: &str, client: &Client, error: &Error) -> Diagnostic {
    Diagnostic::error("etcd refuses a change of its members", format!("{what} of {} was refused: {}.", client.id(), reason(error)))
        .with_hint("Look at `etcdctl member list` and at the log of the member that was asked, then plan again.")
}

pub(crate) fn text<'a>(arguments: &'a Object, name: &str) -> Result<&'a str, Diagnostic> {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| Diagnostic::error("An argument is missing", format!("`{name}` is needed for this, and is not known by now.")))
}

pub(crate) fn names(arguments: &Object, name: &str) -> Vec<String> {
    arguments.get(name).and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A member's id as it is shown: hexadecimal digits.
pub(crate) fn id(text: &str) -> Result<u64, Diagnostic> {
    u64::from_str_radix(text, 16).map_err(|_| {
        Diagnostic::error("Not a member's id", format!("\"{text}\" is no number in hexadecimal digits."))
            .with_hint("Plan again: the ids are read from the cluster then.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leader_speaks_for_all_if_it_is_there() {
        let look = |member_id: u64, leader: u64| Look { member_id, leader, ..Look::of_version("3.5.16", None, None) };
        let speaks = |healthy: &[(&str, Look)]| {
            let healthy = healthy.iter().map(|(name, look)| ((*name).to_owned(), look.clone())).collect();
            let voters = Voters { healthy, troubles: vec!["member c: refused".to_owned()] };
            voters.speaker().map(|(name, _)| name.clone())
        };
        assert_eq!(speaks(&[("a", look(1, 2)), ("b", look(2, 2))]), Ok("b".to_owned()));
        assert_eq!(speaks(&[("a", look(1, 3)), ("b", look(2, 3))]), Ok("a".to_owned()));
        assert_eq!(speaks(&[]), Err("no member can be asked: member c: refused".to_owned()));
    }
}
