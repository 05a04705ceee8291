//! What somebody does to a running cluster by hand: look closely, save it, defragment it, end its alarms, move its leader.
//!
//! Each member is asked through a connection of its own: a client with several endpoints would take any of them, which is wrong for all of
//! this. Nothing here knows a state, a plan or a terminal; what takes long tells in words how far it is.

mod alarm;
mod defragment;
mod drill;
mod file;
mod hash;
mod leader;
mod manifest;
mod restore;
mod snapshot;
mod survey;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use karmaform_model::{Connections, Diagnostic, Object};

use crate::client::Client;

pub use alarm::{Disarmed, disarm};
pub(crate) use defragment::corrupt;
pub use defragment::{Defragmented, Defragmenting, defragment};
pub use drill::{Drilled, drill};
pub use hash::{Hash, Hashes, hashes};
pub use leader::move_leader;
pub use manifest::{About, Manifest};
pub use restore::{Beginning, restore};
pub use snapshot::{Saved, Saving, beside, save};
pub use survey::{Alarm, Facts, Listed, Survey, survey};
pub use verify::{Verified, verify};

/// The longest wait until a cluster is whole again after a step, in seconds.
const SETTLE_LIMIT: u64 = 120;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// A cluster to work at.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) client: Client,
}

/// Hears in words how far something is.
pub type Tell<'a> = &'a mut (dyn FnMut(&str) + Send);

impl Cluster {
    /// Reads a connection value of the provider `etcd`. Nothing is opened yet. `connections`: the other connections of the run, through which
    /// members may be reached.
    ///
    /// # Errors
    /// The value is no connection to a cluster.
    pub fn new(connection: &Object, connections: Arc<dyn Connections>) -> Result<Self, Diagnostic> {
        Ok(Self { client: Client::new(connection, connections)? })
    }

    /// The names that its members are asked by.
    pub fn names(&self) -> Vec<String> {
        self.client.names().map(str::to_owned).collect()
    }

    /// What acts goes through here first: in a run that only looks there is no way on.
    fn may_act(&self) -> Result<(), Diagnostic> {
        if self.client.only_looks() {
            return Err(Diagnostic::error(
                "Nothing may be changed",
                "Something was about to change a cluster in a run that only looks. This is a bug.",
            ));
        }
        Ok(())
    }

    /// # Errors
    /// There is no member of this name.
    fn member<'a>(&self, name: &'a str) -> Result<&'a str, Diagnostic> {
        if self.client.names().any(|known| known == name) {
            return Ok(name);
        }
        let known = self.names().join(", ");
        Err(Diagnostic::error("No such member", format!("The cluster has no member \"{name}\".")).with_hint(format!("There is {known}.")))
    }
}

/// Looks until everything is whole again, or the limit is over.
///
/// # Errors
/// What was still wrong then.
async fn settled(cluster: &Cluster, after: &str) -> Result<Survey, Diagnostic> {
    settled_within(SETTLE_LIMIT, cluster, after).await
}

async fn settled_within(limit: u64, cluster: &Cluster, after: &str) -> Result<Survey, Diagnostic> {
    let began = tokio::time::Instant::now();
    loop {
        let seen = survey(cluster).await;
        let troubles = seen.troubles();
        if troubles.is_empty() {
            return Ok(seen);
        }
        if began.elapsed() >= Duration::from_secs(limit) {
            let detail = format!("{limit} s after {after} the cluster is not whole: {}. Nothing more was done.", troubles.join("; "));
            return Err(Diagnostic::error("The cluster did not recover", detail)
                .with_hint("Look at it with etcd status, and at the member's log, before anything else is done."));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// A refusal because of what was seen.
fn not_whole(what: &str, troubles: &[String]) -> Diagnostic {
    Diagnostic::error("The cluster is not whole", format!("Nothing was {what}, because of this: {}.", troubles.join("; ")))
}

#[cfg(test)]
mod tests {
    use karmaform_model::{BoxFuture, Value};

    use super::*;

    /// Leads nowhere.
    pub(super) struct Nowhere;

    impl Connections for Nowhere {
        fn forward<'a>(&'a self, _: &'a Object, _: &'a str, _: u16) -> BoxFuture<'a, Result<std::net::SocketAddr, Diagnostic>> {
            Box::pin(async { Err(Diagnostic::error("no", "no")) })
        }
    }

    #[tokio::test]
    async fn a_cluster_that_does_not_come_back_is_told_of_with_what_is_wrong() {
        // Nobody listens at a port that only root can have, and that nobody is given by chance.
        let members = Value::strings(["http://127.0.0.1:1"]);
        let cluster = Cluster::new(&Object::from([("endpoints".to_owned(), members)]), Arc::new(Nowhere)).unwrap();
        let told = settled_within(0, &cluster, "member a was defragmented").await.unwrap_err();
        assert_eq!(told.summary, "The cluster did not recover");
        let begin = "0 s after member a was defragmented the cluster is not whole: member http://127.0.0.1:1: ";
        assert!(told.detail.starts_with(begin) && told.detail.ends_with(". Nothing more was done."), "{told:?}");
        assert!(told.hints[0].contains("etcd status"), "{told:?}");
    }
}
