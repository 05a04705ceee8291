//! Ending the alarm NOSPACE: a cluster whose database reached its quota takes no writes until somebody has made room and says so.
//!
//! The order is that of etcd's `op-guide/maintenance`: compact, defragment each member, look at the sizes, disarm. The alarm CORRUPT is never
//! ended here: only whoever knows which copy of the data is good can do that.

use etcd_client::{AlarmAction, AlarmOptions, AlarmType};
use karmaform_model::Diagnostic;

use super::defragment::{Defragmented, all, corrupt};
use super::{Alarm, Cluster, Survey, Tell, not_whole, survey};
use crate::care::{FULL, bytes};
use crate::client::within;
use crate::look::{failed_by, reason};

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disarmed {
    /// All history before this revision was dropped.
    pub compacted: Option<i64>,
    /// Members that were defragmented.
    pub defragmented: Vec<Defragmented>,
    /// Alarms that were on.
    pub alarms: Vec<Alarm>,
}

/// Makes room and ends the alarm. Nothing is done where none is on.
///
/// # Errors
/// The cluster is not whole, data differ, or there is no room even then: the alarm stays on.
pub async fn disarm(cluster: &Cluster, tell: Tell<'_>) -> Result<Disarmed, Diagnostic> {
    cluster.may_act()?;
    let seen = survey(cluster).await;
    if seen.alarming("CORRUPT") {
        return Err(corrupt());
    }
    let troubles = seen.troubles();
    if !troubles.is_empty() {
        return Err(not_whole("done", &troubles).with_hint("Mend that first, then run this again."));
    }
    if seen.alarms.is_empty() {
        return Ok(Disarmed::default());
    }
    let compacted = compact(cluster, &seen).await?;
    tell(&format!("history before revision {compacted} was dropped"));
    let defragmented = all(cluster, &seen, false, |_| true, tell).await?;
    let now = survey(cluster).await;
    if let Some(full) = full(&now) {
        return Err(full);
    }
    for alarm in &seen.alarms {
        end(cluster, &now, alarm).await?;
    }
    let left = survey(cluster).await.alarms;
    if !left.is_empty() {
        return Err(Diagnostic::error("The alarm is on again", "It was ended, and a member raised it again at once.")
            .with_hint("Something writes faster than there is room: raise quota-backend-bytes in the cluster's settings, or stop it."));
    }
    Ok(Disarmed { compacted: Some(compacted), defragmented, alarms: seen.alarms })
}

/// A revision that everybody has is the newest that may be compacted without a member falling behind it.
async fn compact(cluster: &Cluster, seen: &Survey) -> Result<i64, Diagnostic> {
    let revision = seen.answered().map(|(_, f)| f.revision).min().unwrap_or(0);
    let failed = |why: String| {
        let detail = format!("Compaction at revision {revision}: {why}. Nothing was defragmented, and the alarm stays on.");
        Diagnostic::error("The history could not be dropped", detail).with_hint("Look at the log of the leader, then run this again.")
    };
    let Some((leader, _)) = seen.leader() else { return Err(failed("no member leads".to_owned())) };
    let mut connection = cluster.client.open_for(leader, std::time::Duration::from_secs(120)).await.map_err(failed)?;
    // Physical: the pages are free when it returns, so that the defragmentation after it finds them.
    let options = etcd_client::CompactionOptions::new().with_physical();
    match connection.compact(revision, Some(options)).await {
        Ok(_) => Ok(revision),
        // Somebody else, an API server for one, was here before.
        Err(error) if reason(&error).contains("has been compacted") => Ok(revision),
        Err(error) => Err(failed_by(&error, failed)),
    }
}

/// Without room the alarm would be back with the next write.
fn full(seen: &Survey) -> Option<Diagnostic> {
    let full: Vec<String> = seen
        .answered()
        .filter(|(_, f)| f.quota > 0 && f.size > f.quota / 100 * FULL)
        .map(|(name, f)| format!("member {name} has {} of {}", bytes(f.size), bytes(f.quota)))
        .collect();
    if full.is_empty() {
        return None;
    }
    let detail = format!("Its history was dropped and its members were defragmented, and still {}. The alarm stays on.", full.join("; "));
    let hint = "Delete what is not needed, or raise quota-backend-bytes in the cluster's settings; then run this again.";
    Some(Diagnostic::error("There is no room", detail).with_hint(hint))
}

async fn end(cluster: &Cluster, seen: &Survey, alarm: &Alarm) -> Result<(), Diagnostic> {
    let whose = seen.called(alarm.member_id);
    let failed = |why: String| {
        let detail = format!("Alarm {} of member {whose}: {why}. There is room by now, and the cluster still takes no writes.", alarm.kind);
        Diagnostic::error("The alarm could not be ended", detail).with_hint("Run this again: it ends what is still on.")
    };
    let Some((leader, _)) = seen.leader() else { return Err(failed("no member leads".to_owned())) };
    let mut connection = cluster.client.open(leader).await.map_err(failed)?;
    let mut options = AlarmOptions::new();
    options.with_member(alarm.member_id);
    let ended = within(connection.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(options))).await;
    ended.map(drop).map_err(|e| failed_by(&e, failed))
}

#[cfg(test)]
mod tests {
    use super::super::survey::tests::three;
    use super::*;

    #[test]
    fn without_room_the_alarm_stays() {
        let mut seen = three();
        assert!(full(&seen).is_none());
        let b = seen.members.get_mut("b").unwrap().as_mut().unwrap();
        (b.size, b.quota) = (95 << 20, 100 << 20);
        assert!(full(&seen).unwrap().detail.contains("member b has 95.0 MiB of 100.0 MiB"));
        // Below zero there is no limit.
        seen.members.get_mut("b").unwrap().as_mut().unwrap().quota = -1;
        assert!(full(&seen).is_none());
    }
}
