//! Moving the leader to another member. A restart of a leader, or its defragmentation, stops writes; moving it away first costs them a moment.

use karmaform_model::Diagnostic;

use super::{Cluster, Survey, not_whole, settled, survey};
use crate::client::within;
use crate::look::failed_by;

/// Moves it to this member, or to the voter that lags least. Gives the names of the old leader and the new one; they are the same if nothing was
/// to do.
///
/// # Errors
/// The cluster is not whole, the target can't lead, there is nobody else, or etcd refused.
pub async fn move_leader(cluster: &Cluster, to: Option<&str>) -> Result<(String, String), Diagnostic> {
    cluster.may_act()?;
    let to = to.map(|name| cluster.member(name)).transpose()?;
    let seen = survey(cluster).await;
    let troubles = seen.troubles();
    if !troubles.is_empty() {
        return Err(not_whole("moved", &troubles).with_hint("Mend that first: the leader is where it is for want of others."));
    }
    moved(cluster, &seen, to).await
}

/// The same for a cluster that was looked at.
pub(super) async fn moved(cluster: &Cluster, seen: &Survey, to: Option<&str>) -> Result<(String, String), Diagnostic> {
    let Some((old, _)) = seen.leader() else {
        return Err(Diagnostic::error("No leader", "No member says that it leads, so there is nobody to ask.")
            .with_hint("Look at it with etcd status, and at the members' logs, until one leads; then run this again."));
    };
    let target = to.or_else(|| best(seen)).ok_or_else(|| {
        Diagnostic::error("Nobody else can lead", "The cluster has one member that votes, and it is the leader.")
            .with_hint("Until another member has joined, whatever stops this one stops writes.")
    })?;
    if target == old {
        return Ok((old.clone(), old.clone()));
    }
    let failed = |why: String| {
        Diagnostic::error("The leader could not be moved", format!("Member {old} was asked to hand over to {target}: {why}."))
            .with_hint("Look at the log of the one that leads, then run this again or name another with -to.")
    };
    let Some(Ok(facts)) = seen.members.get(target) else { return Err(failed("that one does not answer".to_owned())) };
    // A plan tries again what the one that led has not answered, since it was killed meanwhile.
    let mut connection = cluster.client.open(old).await.map_err(|why| failed(why).retryable())?;
    // Only the leader itself can be asked for this.
    let moved = within(connection.move_leader(facts.member_id)).await;
    moved.map_err(|e| failed_by(&e, failed))?;
    let after = settled(cluster, "the leader was moved").await?;
    let (new, _) = after.leader().ok_or_else(|| failed("nobody leads now".to_owned()))?;
    Ok((old.clone(), new.clone()))
}

/// The voter that works, does not lead, and lags least.
fn best(seen: &Survey) -> Option<&str> {
    let able = seen.answered().filter(|(_, f)| !f.leads() && !f.learner && f.read.is_ok());
    able.min_by_key(|(name, f)| (seen.lag(f), *name)).map(|(name, _)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::survey::tests::three;
    use super::*;

    #[test]
    fn the_one_that_lags_least_leads_next() {
        let mut seen = three();
        assert_eq!(best(&seen), Some("b"));
        seen.members.get_mut("b").unwrap().as_mut().unwrap().applied -= 3;
        assert_eq!(best(&seen), Some("c"));
        seen.members.get_mut("c").unwrap().as_mut().unwrap().learner = true;
        seen.members.insert("b".into(), Err("away".into()));
        assert_eq!(best(&seen), None);
    }
}
