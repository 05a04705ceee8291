//! Makes what is below a prefix in one etcd the same as in another one: both are read in order, side by side, and what differs is written. So a second
//! time costs reading, and little else.
//!
//! Keys that end by themselves (events of an API server) get a lease with the time that they have left.

use std::cmp::Ordering;
use std::collections::HashMap;

use etcd_client::{Client as Connection, Compare, CompareOp, Error, KeyValue, PutOptions, Txn, TxnOp};
use karmaform_model::Diagnostic;
use tokio::task::JoinSet;

use super::ends::Opened;
use super::mark::{self, Mark};
use super::pages::Pages;
use crate::client::within;

/// Changes in one transaction. Source: etcd's `--max-txn-ops`, 128 unless written.
const MOST_CHANGES: usize = 100;
/// Bytes in one. Source: etcd's `--max-request-bytes`, 1.5 MiB unless written.
const MOST_BYTES: usize = 512 << 10;
/// Transactions at a time.
const AT_ONCE: usize = 8;

/// Why it ended early.
#[derive(Debug)]
pub(crate) enum Halt {
    /// An etcd said no, or nothing.
    Etcd(Error),
    /// The mark of the copy is not what it was: somebody else is at work.
    Changed,
    /// It can't be told yet; why, in a few words.
    Waiting(String),
    /// It must not be done.
    Refused(Box<Diagnostic>),
}

impl From<Diagnostic> for Halt {
    fn from(why: Diagnostic) -> Self {
        Self::Refused(Box::new(why))
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Etcd(error)
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Keys that there are.
    pub(crate) keys: u64,
    /// Keys that were missing or had another value.
    pub(crate) put: u64,
    /// Keys that were too many.
    pub(crate) deleted: u64,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every value.
    All,
    /// Keys, and the values of those that were written after this revision, by when all had been compared.
    Since(i64),
}

/// Copies what is below the prefix of this mark, which is the copy's. Nothing is written unless the mark is still what it was.
pub(crate) async fn copy(from: &Opened, to: &Opened, own: &Mark, scope: Scope) -> Result<Copied, Halt> {
    let keys_only = scope != Scope::All;
    let mut here = Pages::new(&from.connection, mark::range(&own.prefix), keys_only);
    let mut there = Pages::new(&to.connection, mark::range(&own.prefix), keys_only);
    let mut writer = Writer::new(&to.connection, own);
    let mut leases = Leases { from: from.connection.clone(), to: to.connection.clone(), known: HashMap::new() };
    let mut copied = Copied::default();
    let (mut source, mut target) = (here.next().await?, there.next().await?);
    loop {
        match which(source.as_ref(), target.as_ref()) {
            None => break,
            Some(Ordering::Greater) => {
                let Some(kv) = target.take() else { break };
                copied.deleted += 1;
                writer.write(TxnOp::delete(kv.key(), None), kv.key().len()).await?;
                target = there.next().await?;
            }
            Some(side) => {
                let Some(kv) = source.take() else { break };
                copied.keys += 1;
                if side == Ordering::Less || !target.as_ref().is_some_and(|there| is_same(&kv, there, scope)) {
                    copied.put += u64::from(put(&kv, keys_only, &mut leases, &mut writer).await?);
                }
                source = here.next().await?;
                if side == Ordering::Equal {
                    target = there.next().await?;
                }
            }
        }
    }
    writer.end().await?;
    Ok(copied)
}

/// Writes one key, with its value read if there is none with it; false if there is no such key any more.
async fn put(kv: &KeyValue, is_key_only: bool, leases: &mut Leases, writer: &mut Writer<'_>) -> Result<bool, Halt> {
    let read = if is_key_only { Some(value_of(&leases.from, kv.key()).await?) } else { None };
    let Some(kv) = read.as_ref().map_or(Some(kv), Option::as_ref) else { return Ok(false) };
    // What has ended meanwhile is not there any more.
    let Some(lease) = leases.of(kv.lease()).await? else { return Ok(false) };
    let options = (lease != 0).then(|| PutOptions::new().with_lease(lease));
    writer.write(TxnOp::put(kv.key(), kv.value(), options), kv.key().len() + kv.value().len()).await?;
    if lease != 0 {
        // It may have moments left only.
        writer.send().await?;
    }
    Ok(true)
}

async fn value_of(of: &Connection, key: &[u8]) -> Result<Option<KeyValue>, Error> {
    let mut kv = of.kv_client().max_decoding_message_size(usize::MAX);
    Ok(within(kv.get(key, None)).await?.take_kvs().pop())
}

/// Whose turn it is: less is the one that is read, greater the one that is written, equal both; none when both have ended.
fn which(source: Option<&KeyValue>, target: Option<&KeyValue>) -> Option<Ordering> {
    match (source, target) {
        (None, None) => None,
        (Some(_), None) => Some(Ordering::Less),
        (None, Some(_)) => Some(Ordering::Greater),
        (Some(source), Some(target)) => Some(source.key().cmp(target.key())),
    }
}

/// What stays as it is: nothing has to be written. In what was left there once, a key may have a revision of before that one; as an object's version it must not
/// go back, so it is written anew.
fn is_same(source: &KeyValue, target: &KeyValue, scope: Scope) -> bool {
    let is_as_it_was = match scope {
        Scope::All => source.value() == target.value() && source.mod_revision() <= target.mod_revision(),
        Scope::Since(revision) => source.mod_revision() <= revision,
    };
    is_as_it_was && (source.lease() == 0) == (target.lease() == 0)
}

/// Leases by what they are there: many keys share one.
struct Leases {
    from: Connection,
    to: Connection,
    known: HashMap<i64, Option<i64>>,
}

impl Leases {
    /// The lease for a key with this one; 0 for none, nothing if it has ended.
    async fn of(&mut self, id: i64) -> Result<Option<i64>, Error> {
        if id == 0 {
            return Ok(Some(0));
        }
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        // One that is not known any more has -1 left.
        let left = within(self.from.lease_client().time_to_live(id, None)).await?.ttl();
        let granted = if left > 0 { Some(within(self.to.lease_client().grant(left, None)).await?.id()) } else { None };
        self.known.insert(id, granted);
        Ok(granted)
    }
}

/// Gathers changes into transactions, several of which are under way.
struct Writer<'a> {
    connection: &'a Connection,
    own: &'a Mark,
    gathered: Vec<TxnOp>,
    bytes: usize,
    running: JoinSet<Result<bool, Error>>,
}

impl<'a> Writer<'a> {
    fn new(connection: &'a Connection, own: &'a Mark) -> Self {
        Self { connection, own, gathered: Vec::new(), bytes: 0, running: JoinSet::new() }
    }

    async fn write(&mut self, change: TxnOp, bytes: usize) -> Result<(), Halt> {
        if self.gathered.len() >= MOST_CHANGES || (self.bytes + bytes > MOST_BYTES && !self.gathered.is_empty()) {
            self.send().await?;
        }
        self.gathered.push(change);
        self.bytes += bytes;
        Ok(())
    }

    async fn send(&mut self) -> Result<(), Halt> {
        while self.running.len() >= AT_ONCE {
            self.one_ends().await?;
        }
        let (changes, mut kv) = (std::mem::take(&mut self.gathered), self.connection.kv_client());
        self.bytes = 0;
        let is_ours = Compare::mod_revision(mark::key(&self.own.prefix), CompareOp::Equal, self.own.revision);
        self.running.spawn(async move { Ok(within(kv.txn(Txn::new().when([is_ours]).and_then(changes))).await?.succeeded()) });
        Ok(())
    }

    async fn one_ends(&mut self) -> Result<(), Halt> {
        match self.running.join_next().await {
            None | Some(Ok(Ok(true))) => Ok(()),
            Some(Ok(Ok(false))) => Err(Halt::Changed),
            Some(Ok(Err(error))) => Err(error.into()),
            Some(Err(_)) => Err(Error::Internal("a transaction ended early".to_owned()).into()),
        }
    }

    async fn end(&mut self) -> Result<(), Halt> {
        if !self.gathered.is_empty() {
            self.send().await?;
        }
        while !self.running.is_empty() {
            self.one_ends().await?;
        }
        Ok(())
    }
}
