//! The provider `etcd`: what it offers, and how a connection value becomes a client.

use std::sync::{Arc, LazyLock};

use futures::future::join_all;
use karmaform_model::{Ask, BoxFuture, Connections, Diagnostic, Gate, Object, Operation, Provider, ResourceType, Schema, Shelves};

use crate::backup::{self, EtcdBackupRecord};
use crate::choice::{self, EtcdBackupChoice};
use crate::client::Client;
use crate::gate::{EtcdHealthy, EtcdSilent};
use crate::member::{self, EtcdMember};
use crate::operations::{EtcdCopy, EtcdDisarm, EtcdDowngrade, EtcdJoin, EtcdLeave, EtcdMakeRoom, EtcdMove, EtcdPromote, EtcdSettle};
use crate::prefix::{self, EtcdPrefix};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Reaches etcd clusters. It has no settings of its own: everything is in the connection that an `etcd_cluster` gives.",
        Vec::new(),
    )
});

/// The provider `etcd`.
#[derive(Default)]
pub struct Etcd {
    choice: EtcdBackupChoice,
}

impl Etcd {
    /// That chooses backups off these shelves.
    pub fn with_shelves(shelves: Arc<dyn Shelves>) -> Self {
        Self { choice: EtcdBackupChoice::new(shelves) }
    }
}

impl Provider for Etcd {
    type Client = Client;

    fn name(&self) -> &'static str {
        "etcd"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn types(&self) -> Vec<&dyn ResourceType<Client>> {
        vec![&EtcdMember, &EtcdPrefix, &EtcdBackupRecord, &self.choice]
    }

    fn gates(&self) -> Vec<&dyn Gate<Client>> {
        vec![&EtcdHealthy, &EtcdSilent]
    }

    fn operations(&self) -> Vec<&dyn Operation<Client>> {
        vec![&EtcdJoin, &EtcdPromote, &EtcdLeave, &EtcdDisarm, &EtcdMakeRoom, &EtcdDowngrade, &EtcdSettle, &EtcdCopy, &EtcdMove]
    }

    fn connect<'a>(
        &'a self,
        _defaults: &'a Object,
        connection: &'a Object,
        connections: Arc<dyn Connections>,
    ) -> BoxFuture<'a, Result<Client, Diagnostic>> {
        Box::pin(async move {
            // What is chosen off a shelf is asked of no cluster.
            if connection.is_empty() { Ok(Client::nowhere(connections)) } else { Client::new(connection, connections) }
        })
    }

    /// Members together, since they tell of each other; beside them the prefixes, the records of backups and what is chosen of these, all at once.
    fn observe<'a>(&'a self, client: &'a Client, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move {
            let of = |kind: &'static str| asks.iter().filter(move |ask| ask.resource_type == kind);
            let is_member = |ask: &&Ask| ![prefix::KIND, backup::KIND, choice::KIND].contains(&ask.resource_type.as_str());
            let members: Vec<&Ask> = asks.iter().filter(is_member).collect();
            let prefixes = join_all(of(prefix::KIND).map(|ask| prefix::observe(client, ask)));
            let records = join_all(of(backup::KIND).map(|ask| backup::observe(client, ask)));
            let choices = join_all(of(choice::KIND).map(|ask| self.choice.look(ask)));
            let (members, prefixes, records, choices) = tokio::join!(member::observe(client, &members), prefixes, records, choices);
            let (mut members, mut prefixes, mut choices) = (members.into_iter(), prefixes.into_iter(), choices.into_iter());
            let mut records = records.into_iter().map(Ok);
            let lost = || Err(Diagnostic::error("A member could not be looked at", "Asking it ended before there was an answer."));
            let mut next = |ask: &Ask| match ask.resource_type.as_str() {
                prefix::KIND => prefixes.next(),
                backup::KIND => records.next(),
                choice::KIND => choices.next(),
                _ => members.next(),
            };
            asks.iter().map(|ask| next(ask).unwrap_or_else(lost)).collect()
        })
    }
}
