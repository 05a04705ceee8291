//! Whose turn it is to back up a cluster. Several may try at the same time: one does it, and the others find it done. That is kept in the cluster
//! itself, below `/karmaform.io/backups/NAME`: `lock` goes with the lease of who holds it, `last` and `failed` say what became of it.

use std::time::Duration;

use etcd_client::{Client as Connection, Compare, CompareOp, DeleteOptions, PutOptions, Txn, TxnOp};
use karmaform_model::Diagnostic;
use serde_json::Value as Json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::record::{FAILED, LAST, prefix, read};
use crate::by_hand::Cluster;
use crate::client::{Client, within};
use crate::look::reason;

/// The key that goes with the lease of who holds it.
const LOCK: &str = "lock";
/// The note whose the backups are.
const OWNER: &str = "owner";
/// So long after the last sign of life a turn is over, in seconds.
const LEASE: i64 = 60;
/// Between two tries.
const PAUSE: Duration = Duration::from_secs(2);
/// Members that don't answer are asked so often.
const TRIES: u32 = 5;

/// A turn; over when it is dropped, but for others only some time later. [`Turn::end`] tells them at once.
pub struct Turn {
    client: Client,
    name: String,
    held: Option<Held>,
}

struct Held {
    lease: i64,
    alive: JoinHandle<()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.alive.abort();
    }
}

impl Turn {
    /// Waits until nobody else backs up the cluster under this name. `who` is like nobody else's, and for people who look. `limit`: how long to wait.
    ///
    /// # Errors
    /// No member takes part, or others never ended.
    pub async fn take(cluster: &Cluster, name: &str, who: &str, limit: Duration) -> Result<Self, Diagnostic> {
        let (client, began) = (&cluster.client, Instant::now());
        let mut failures = 0;
        loop {
            let why = match claim(client, name, who).await {
                Ok(Some(lease)) => {
                    let alive = tokio::spawn(keep_alive(client.clone(), lease));
                    return Ok(Self { client: client.clone(), name: name.to_owned(), held: Some(Held { lease, alive }) });
                }
                Ok(None) => "another backup did not come to its end".to_owned(),
                Err(why) => {
                    failures += 1;
                    why
                }
            };
            if began.elapsed() >= limit || failures >= TRIES {
                return Err(Diagnostic::error("No backup can be begun", format!("The cluster gave no lock for it: {why}.")));
            }
            sleep(PAUSE).await;
        }
    }

    /// Without a lock: a cluster that is full takes none, and is to be saved all the same. Only one of those who may do it takes this way.
    pub fn without_lock(cluster: &Cluster, name: &str) -> Self {
        Self { client: cluster.client.clone(), name: name.to_owned(), held: None }
    }

    /// What is noted of the newest backup.
    ///
    /// # Errors
    /// No member says it.
    pub async fn newest(&self) -> Result<Option<Json>, Diagnostic> {
        let notes = read(&self.client, &self.name).await.map_err(|why| untold(&why))?;
        Ok(notes.last)
    }

    /// Whether it is still this one's turn: who could not be heard of for a minute has lost it, and another one may be at it.
    ///
    /// # Errors
    /// It is not, or nobody says so.
    pub async fn holds(&self) -> Result<(), Diagnostic> {
        let Some(held) = &self.held else { return Ok(()) };
        let lock = self.get(LOCK).await?;
        if lock.is_some_and(|(lease, _)| lease == held.lease) {
            return Ok(());
        }
        Err(Diagnostic::error(
            "The lock was lost",
            "The cluster did not hear from this backup for a minute, so another one may have begun.",
        )
        .with_hint("See with `karmaform etcd backup list` whether another one was made; if not, begin again."))
    }

    /// Whose the backups under this name are: a text that stands in the cluster's data since the first of them, also after a restoration.
    ///
    /// # Errors
    /// No member says it.
    pub async fn owner(&self) -> Result<Option<String>, Diagnostic> {
        Ok(self.get(OWNER).await?.map(|(_, value)| value))
    }

    /// Writes that.
    ///
    /// # Errors
    /// As for [`Turn::made`].
    pub async fn own(&self, owner: &str) -> Result<(), Diagnostic> {
        self.note(Txn::new().and_then([TxnOp::put(self.key(OWNER), owner, None)])).await
    }

    /// Notes that a backup was made, and that it is not true any more that it failed.
    ///
    /// # Errors
    /// The cluster does not take the note: it may be full.
    pub async fn made(&self, note: &Json) -> Result<(), Diagnostic> {
        let (last, failed) = (self.key(LAST), self.key(FAILED));
        let put = TxnOp::put(last, note.to_string(), None);
        let delete = TxnOp::delete(failed, None::<DeleteOptions>);
        self.note(Txn::new().and_then([put, delete])).await
    }

    /// Notes that it failed.
    ///
    /// # Errors
    /// As for [`Turn::made`].
    pub async fn failed(&self, note: &Json) -> Result<(), Diagnostic> {
        self.note(Txn::new().and_then([TxnOp::put(self.key(FAILED), note.to_string(), None)])).await
    }

    /// The next one need not wait.
    pub async fn end(self) {
        let Some(held) = &self.held else { return };
        // Else it ends by itself.
        drop(self.anyone(async |connection| connection.lease_revoke(held.lease).await).await);
    }

    /// The lease and the value of a key.
    async fn get(&self, key: &str) -> Result<Option<(i64, String)>, Diagnostic> {
        let key = self.key(key);
        let found = self.anyone(async |connection| connection.get(key.clone(), None).await).await?;
        Ok(found.kvs().first().map(|kv| (kv.lease(), String::from_utf8_lossy(kv.value()).into_owned())))
    }

    /// Ends the turn of who was interrupted in it, if that is still on.
    pub async fn release(&self, who: &str) {
        let lock = self.key(LOCK);
        let is_theirs = Compare::value(lock.clone(), CompareOp::Equal, who);
        // Else it ends with its lease.
        drop(self.note(Txn::new().when([is_theirs]).and_then([TxnOp::delete(lock, None::<DeleteOptions>)])).await);
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", prefix(&self.name))
    }

    async fn note(&self, txn: Txn) -> Result<(), Diagnostic> {
        self.anyone(async |connection| connection.txn(txn.clone()).await).await.map(drop)
    }

    /// What the first member says that answers.
    async fn anyone<T>(&self, ask: impl AsyncFn(&mut Connection) -> Result<T, etcd_client::Error>) -> Result<T, Diagnostic> {
        let mut last = "there is no member".to_owned();
        for member in self.client.names() {
            let answer = match self.client.open(member).await {
                Ok(mut connection) => within(ask(&mut connection)).await.map_err(|e| reason(&e)),
                Err(why) => Err(why),
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(why) => last = why,
            }
        }
        Err(untold(&last))
    }
}

fn untold(why: &str) -> Diagnostic {
    Diagnostic::error("The cluster takes no note of backups", format!("What became of them could not be read or written: {why}."))
        .with_hint("See with `karmaform etcd status` whether its members work and have room.")
}

/// The lease of who holds the lock now; `None`: another one does.
async fn claim(client: &Client, name: &str, who: &str) -> Result<Option<i64>, String> {
    let mut last = "there is no member".to_owned();
    for member in client.names() {
        let answer = match client.open(member).await {
            Ok(mut connection) => claim_at(&mut connection, &format!("{}{LOCK}", prefix(name)), who).await,
            Err(why) => Err(why),
        };
        match answer {
            Ok(found) => return Ok(found),
            Err(why) => last = why,
        }
    }
    Err(last)
}

async fn claim_at(connection: &mut Connection, key: &str, who: &str) -> Result<Option<i64>, String> {
    let says = |e: etcd_client::Error| reason(&e);
    let is_held = within(connection.get(key, None)).await.map_err(says)?.count() > 0;
    if is_held {
        return Ok(None);
    }
    let lease = within(connection.lease_grant(LEASE, None)).await.map_err(says)?.id();
    let put = TxnOp::put(key, who, Some(PutOptions::new().with_lease(lease)));
    let txn = Txn::new().when([Compare::version(key, CompareOp::Equal, 0)]).and_then([put]);
    if within(connection.txn(txn)).await.map_err(says)?.succeeded() {
        return Ok(Some(lease));
    }
    // Another one was quicker; what is not revoked ends by itself.
    drop(within(connection.lease_revoke(lease)).await);
    Ok(None)
}

/// By whichever member answers: the one of last time may be the one that is restarted.
async fn keep_alive(client: Client, lease: i64) {
    loop {
        sleep(Duration::from_secs(LEASE.unsigned_abs() / 4)).await;
        for member in client.names() {
            let Ok(mut connection) = client.open(member).await else { continue };
            let told = within(async {
                let (mut keeper, mut stream) = connection.lease_keep_alive(lease).await?;
                keeper.keep_alive().await?;
                stream.message().await
            });
            if told.await.is_ok() {
                break;
            }
        }
    }
}
