//! Raises an etcd's revision. Everybody who watches remembers the highest one that he has seen, and asks for what came after it: in an etcd that is
//! behind it he would be told nothing until that gets there, and would miss what is written until then.

use std::time::{Duration, Instant};

use etcd_client::{Client as Connection, Error};
use tokio::task::JoinSet;

use crate::client::within;

/// The key that is written for it; it goes again.
const KEY: &str = "/karmaform.io/revision";
/// Writes at a time: an etcd puts as many as come together onto the disk at once.
const AT_ONCE: usize = 128;
/// How long it goes on before it says how far it is.
const STRETCH: Duration = Duration::from_secs(10);
/// gRPC's numbers for answers to who drops history that somebody else has dropped, or may not.
const NOT_NEEDED: &[i32] = &[7, 11];
/// After so many revisions what was written for it is dropped, or the database would grow with each.
const DROPPED: i64 = 100_000;

/// Writes until the revision, which is this one now, is at least the one that is wanted, for a while; gives the one that it is at. Nobody else's key is touched;
/// history is dropped.
pub(crate) async fn raise(to: &Connection, now: i64, wanted: i64) -> Result<i64, Error> {
    let started = Instant::now();
    let (mut at, mut dropped) = (now, now);
    let mut running: JoinSet<Result<i64, Error>> = JoinSet::new();
    let mut sent = at;
    while at < wanted && (started.elapsed() < STRETCH || !running.is_empty()) {
        while running.len() < AT_ONCE && sent < wanted && started.elapsed() < STRETCH {
            let mut kv = to.kv_client();
            running
                .spawn(async move { Ok(within(kv.put(KEY, "", None)).await?.header().map_or(0, etcd_client::ResponseHeader::revision)) });
            sent += 1;
        }
        match running.join_next().await {
            Some(Ok(Ok(revision))) => at = at.max(revision),
            Some(Ok(Err(error))) => return Err(error),
            Some(Err(_)) => return Err(Error::Internal("a write ended early".to_owned())),
            None => break,
        }
        if at - dropped >= DROPPED {
            drop_history(to, at).await?;
            dropped = at;
        }
    }
    if at >= wanted {
        within(to.kv_client().delete(KEY, None)).await?;
    }
    Ok(at)
}

/// Drops what was before this revision, unless it is dropped already or that is not allowed here.
pub(crate) async fn drop_history(of: &Connection, before: i64) -> Result<(), Error> {
    match within(of.kv_client().compact(before, None)).await {
        Err(Error::GRpcStatus(status)) if NOT_NEEDED.contains(&(status.code() as i32)) => Ok(()),
        answer => answer.map(drop),
    }
}
