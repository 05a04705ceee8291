//! Giving free pages of the databases back to the disk: one member at a time, followers first, the leader last and after it has handed over, each
//! behind a look at the whole cluster. A member that defragments answers nobody meanwhile.
//!
//! The facts: etcd's `op-guide/maintenance`; a leader that defragments stalls the whole cluster (etcd-backup-restore issue 1052), and does not
//! hand over by itself (etcd issue 15477).

use std::time::Duration;

use karmaform_model::Diagnostic;

use super::leader::moved;
use super::{Cluster, Facts, Survey, Tell, not_whole, settled, survey};
use crate::care::{self, bytes};
use crate::look::failed_by;

/// The longest wait for a defragmentation: this, and as much again for each GiB. Disks do 60 MB/s and more.
const LIMIT: u64 = 60;

/// How to do it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Defragmenting {
    /// Also members with few free pages, and also where a member is away.
    pub force: bool,
}

/// What was done to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defragmented {
    /// Which.
    pub member: String,
    /// Its database before, in bytes.
    pub before: i64,
    /// And after.
    pub after: i64,
}

pub(super) fn is_fragmented(facts: &Facts) -> bool {
    care::is_fragmented(facts.size, facts.in_use)
}

/// Defragments what needs it; with `force` all that answer. Nothing to do is an empty list.
///
/// # Errors
/// The cluster is not whole, or is not any more after a member: then nothing more was done.
pub async fn defragment(cluster: &Cluster, how: Defragmenting, tell: Tell<'_>) -> Result<Vec<Defragmented>, Diagnostic> {
    cluster.may_act()?;
    let seen = survey(cluster).await;
    let troubles = seen.troubles();
    if seen.alarming("CORRUPT") {
        return Err(corrupt());
    }
    if !troubles.is_empty() && !how.force {
        return Err(not_whole("defragmented", &troubles)
            .with_hint("Mend that first: a member that defragments answers nobody, and is missing beside the one that is away."));
    }
    if seen.leader().is_none() {
        return Err(not_whole("defragmented", &["no member leads".to_owned()]));
    }
    all(cluster, &seen, !troubles.is_empty(), |facts| how.force || is_fragmented(facts), tell).await
}

/// Those of a cluster that was looked at for which this is true. `lenient`: it was not whole before, so it need not be between.
pub(super) async fn all(
    cluster: &Cluster,
    seen: &Survey,
    lenient: bool,
    needs: impl Fn(&Facts) -> bool,
    tell: Tell<'_>,
) -> Result<Vec<Defragmented>, Diagnostic> {
    let mut done = Vec::new();
    for name in order(seen, needs) {
        let now = survey(cluster).await;
        // Where it was led to meanwhile, the way is cleared again.
        if now.leader().is_some_and(|(leader, _)| *leader == name) && now.answered().count() > 1 && !lenient {
            let (old, new) = moved(cluster, &now, None).await?;
            tell(&format!("the leader moved from {old} to {new}"));
        }
        let Some(Ok(before)) = now.members.get(&name) else { continue };
        let after = one(cluster, &name, before).await?;
        tell(&format!("member {name}: {} before, {} now", bytes(before.size), bytes(after)));
        done.push(Defragmented { member: name.clone(), before: before.size, after });
        if !lenient {
            settled(cluster, &format!("member {name} was defragmented")).await?;
        }
    }
    Ok(done)
}

/// Followers by name, the leader last.
fn order(seen: &Survey, needs: impl Fn(&Facts) -> bool) -> Vec<String> {
    let mut all: Vec<(bool, &String)> = seen.answered().filter(|(_, f)| needs(f)).map(|(name, f)| (f.leads(), name)).collect();
    all.sort();
    all.into_iter().map(|(_, name)| name.clone()).collect()
}

async fn one(cluster: &Cluster, name: &str, before: &Facts) -> Result<i64, Diagnostic> {
    let gibibytes = u64::try_from(before.size >> 30).unwrap_or(0);
    let limit = Duration::from_secs(LIMIT * (1 + gibibytes));
    let failed = |why: String| {
        let detail = format!("Member {name} was asked to defragment, and that failed: {why}. Nothing more was done.");
        Diagnostic::error("Defragmentation failed", detail)
            .with_hint("It needs as much free space on its disk as its database has; look at its log.")
    };
    // A plan tries again what a member has not answered that was killed meanwhile.
    let mut connection = cluster.client.open_for(name, limit).await.map_err(|why| failed(why).retryable())?;
    connection.defragment().await.map_err(|e| failed_by(&e, failed))?;
    let status = connection.status().await.map_err(|e| failed_by(&e, failed))?;
    Ok(status.db_size())
}

/// What is damaged stays as it is until somebody knows which copy is good.
pub(crate) fn corrupt() -> Diagnostic {
    Diagnostic::error(
        "The data of members differ",
        "The alarm CORRUPT is on: members have different data, and nothing is done to any of them.",
    )
    .with_hint("Stop what writes, save the data directories of all members, and see with etcd hashkv which one differs from most.")
}

#[cfg(test)]
mod tests {
    use super::super::survey::tests::{facts, three};
    use super::*;

    #[test]
    fn the_leader_is_last_and_small_databases_need_nothing() {
        let mut seen = three();
        assert_eq!(order(&seen, |_| true), ["b", "c", "a"]);
        seen.members.insert("b".into(), Err("away".into()));
        assert_eq!(order(&seen, |_| true), ["c", "a"]);
        assert_eq!(order(&seen, is_fragmented), Vec::<String>::new());
        assert!(is_fragmented(&Facts { size: 300 << 20, in_use: 100 << 20, ..facts(1, 1) }));
        assert!(!is_fragmented(&Facts { size: 300 << 20, in_use: 200 << 20, ..facts(1, 1) }));
        assert!(!is_fragmented(&Facts { size: 90 << 20, in_use: 1, ..facts(1, 1) }));
    }
}
