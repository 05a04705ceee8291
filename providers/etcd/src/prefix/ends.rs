//! The two etcds of a move: the one that was used, and the one that is to be.

use etcd_client::{Client as Connection, Error, PutOptions, ResponseHeader};
use karmaform_model::{Diagnostic, Object, Value};

use super::mark::{self, Mark};
use super::pages::PAGE_LIMIT;
use crate::client::{Client, within};
use crate::look::reason;

/// What is written to see whether both are one, and for how many seconds at most.
const PROBE: &str = "/karmaform.io/probe";
const PROBE_SECONDS: i64 = 60;

/// One etcd, by a member that answers.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    /// The revision that it was at.
    pub(crate) revision: i64,
    /// The mark of the prefix.
    pub(crate) mark: Option<Mark>,
}

/// Both.
pub(crate) struct Ends {
    pub(crate) from: Opened,
    pub(crate) to: Opened,
}

impl Ends {
    /// Opens both. The error says which one does not answer, and why: true if it is the one that was used.
    pub(crate) async fn open(client: &Client, arguments: &Object) -> Result<Result<Self, (bool, String)>, Diagnostic> {
        let prefix = arguments.get("prefix").and_then(Value::as_str).unwrap_or_default();
        let before = arguments.get("from").and_then(Value::as_entries).cloned().unwrap_or_default();
        let before = client.beside(&before)?;
        let (from, to) = tokio::join!(opened(&before, prefix), opened(client, prefix));
        Ok(match (from, to) {
            (Ok(from), Ok(to)) => Ok(Self { from, to }),
            (Err(why), _) => Err((true, why)),
            (_, Err(why)) => Err((false, why)),
        })
    }

    /// A word that nothing else has, or none if both are one and the same: what is written through one is read through the other. Ids don't tell that,
    /// since those of clusters of one member that were started with the same words are the same.
    pub(crate) async fn word(&self) -> Result<Option<String>, Error> {
        // No two leases of a cluster have one id.
        let lease = within(self.to.connection.lease_client().grant(PROBE_SECONDS, None)).await?.id();
        let (key, word) = (format!("{PROBE}/{lease:x}"), format!("{lease:x}"));
        let options = PutOptions::new().with_lease(lease);
        within(self.to.connection.kv_client().put(key.clone(), word.clone(), Some(options))).await?;
        let read = within(self.from.connection.kv_client().get(key, None)).await?;
        within(self.to.connection.lease_client().revoke(lease)).await?;
        let is_one = read.kvs().first().is_some_and(|kv| kv.value() == word.as_bytes());
        Ok(if is_one { None } else { Some(word) })
    }
}

/// The first member that a read goes through.
async fn opened(client: &Client, prefix: &str) -> Result<Opened, String> {
    let mut troubles = Vec::new();
    for name in client.names() {
        match client.open_for(name, PAGE_LIMIT).await {
            Err(why) => troubles.push(format!("{name}: {why}")),
            Ok(connection) => match seen(connection, prefix).await {
                Ok(opened) => return Ok(opened),
                Err(error) => troubles.push(format!("{name}: {}", reason(&error))),
            },
        }
    }
    Err(troubles.join("; "))
}

async fn seen(mut connection: Connection, prefix: &str) -> Result<Opened, Error> {
    let answer = within(connection.get(mark::key(prefix), None)).await?;
    let revision = answer.header().map_or(0, ResponseHeader::revision);
    let mark = answer.kvs().first().and_then(|kv| Mark::read(kv.key(), kv.value(), kv.mod_revision()));
    Ok(Opened { connection, revision, mark })
}
