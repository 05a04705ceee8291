//! Whether all members have the same data: their hashes of what all had at one revision. Reads only.
//!
//! Only hashes of one revision and one compaction can be compared; what can't be is told as that, and never as a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use etcd_client::Client as Connection;
use karmaform_model::Diagnostic;
use tokio::task::JoinSet;

use super::{Cluster, PAUSE, Survey, survey};
use crate::look::reason;

/// So often it is tried until hashes can be compared: members compact one after the other.
const TRIES: usize = 5;

/// The longest wait for a hash: a member reads its whole database for it.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// A member's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    /// etcd's CRC-32 of all keys and values.
    pub hash: u32,
    /// What is older than this revision was left out: it is compacted.
    pub compacted: i64,
}

/// Hashes of all members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashes {
    /// Up to this revision.
    pub revision: i64,
    /// By the names that they are asked by; why not, where there is none.
    pub members: BTreeMap<String, Result<Hash, String>>,
}

impl Hashes {
    /// True: all have the same data; false: not; `None`: nothing can be told, for one of them did not say, or has compacted meanwhile.
    pub fn agree(&self) -> Option<bool> {
        let known: Vec<Hash> = self.members.values().filter_map(|h| h.as_ref().ok().copied()).collect();
        let compactions: BTreeSet<i64> = known.iter().map(|h| h.compacted).collect();
        let hashes: BTreeSet<u32> = known.iter().map(|h| h.hash).collect();
        match (compactions.len() == 1, hashes.len() > 1) {
            (true, true) => Some(false),
            (true, false) if known.len() == self.members.len() => Some(true),
            _ => None,
        }
    }

    /// Who has another hash than most; all, if there is no majority.
    pub fn odd(&self) -> Vec<&str> {
        if self.agree() != Some(false) {
            return Vec::new();
        }
        let known = || self.members.iter().filter_map(|(name, h)| Some((name.as_str(), h.as_ref().ok()?.hash)));
        let count = |hash: u32| known().filter(|(_, h)| *h == hash).count();
        let most = known().map(|(_, h)| h).find(|h| count(*h) * 2 > known().count());
        known().filter(|(_, h)| most != Some(*h)).map(|(name, _)| name).collect()
    }
}

/// The hashes of all members at a revision; without one, at the newest that all have.
///
/// # Errors
/// No member could be asked which revision that is.
pub async fn hashes(cluster: &Cluster, revision: Option<i64>) -> Result<Hashes, Diagnostic> {
    let mut last = None;
    for _ in 0..TRIES {
        let seen = survey(cluster).await;
        let Some(at) = revision.or_else(|| newest_of_all(&seen)) else {
            let why: Vec<String> = seen.members.iter().filter_map(|(n, s)| Some(format!("member {n}: {}", s.as_ref().err()?))).collect();
            return Err(Diagnostic::error("No member can be asked", format!("None of the members answers: {}.", why.join("; "))));
        };
        let found = ask(cluster, at).await;
        let is_told = found.agree().is_some() || found.members.values().any(Result::is_err);
        last = Some(found);
        if is_told {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    last.ok_or_else(|| Diagnostic::error("No member can be asked", "There was no answer."))
}

fn newest_of_all(seen: &Survey) -> Option<i64> {
    seen.answered().map(|(_, facts)| facts.revision).min()
}

async fn ask(cluster: &Cluster, revision: i64) -> Hashes {
    let mut running = JoinSet::new();
    for name in cluster.names() {
        let client = cluster.client.clone();
        running.spawn(async move {
            let hash = match client.open_for(&name, LIMIT).await {
                Ok(mut connection) => of(&mut connection, revision).await,
                Err(why) => Err(why),
            };
            (name, hash)
        });
    }
    let mut members = BTreeMap::new();
    while let Some(done) = running.join_next().await {
        members.extend(done.ok());
    }
    Hashes { revision, members }
}

/// The hash of one member, whose connection was opened for [`LIMIT`]; the error is a few words.
pub(super) async fn of(connection: &mut Connection, revision: i64) -> Result<Hash, String> {
    let answer = tokio::time::timeout(LIMIT, connection.hash_kv(revision)).await;
    let answer = answer.map_err(|_| format!("no answer within {} s", LIMIT.as_secs()))?.map_err(|e| reason(&e))?;
    Ok(Hash { hash: answer.hash(), compacted: answer.compact_version() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_compared_is() {
        let check = |hashes: &[(&str, Option<(u32, i64)>)], agree: Option<bool>, odd: &[&str]| {
            let members = hashes.iter().map(|(name, h)| {
                let hash = h.map(|(hash, compacted)| Hash { hash, compacted }).ok_or_else(|| "no answer".to_owned());
                ((*name).to_owned(), hash)
            });
            let hashes = Hashes { revision: 7, members: members.collect() };
            assert_eq!((hashes.agree(), hashes.odd()), (agree, odd.to_vec()), "{hashes:?}");
        };
        check(&[("a", Some((1, 0))), ("b", Some((1, 0))), ("c", Some((1, 0)))], Some(true), &[]);
        check(&[("a", Some((1, 0))), ("b", Some((2, 0))), ("c", Some((1, 0)))], Some(false), &["b"]);
        check(&[("a", Some((1, 0))), ("b", Some((2, 0)))], Some(false), &["a", "b"]);
        check(&[("a", Some((1, 0))), ("b", Some((2, 5)))], None, &[]);
        // Who does not answer may have other data; who does, has.
        check(&[("a", Some((1, 0))), ("b", None), ("c", Some((1, 0)))], None, &[]);
        check(&[("a", Some((1, 0))), ("b", None), ("c", Some((2, 0)))], Some(false), &["a", "c"]);
        check(&[], None, &[]);
    }
}
