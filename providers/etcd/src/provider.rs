//! The provider `etcd`: what it offers, and how a connection value becomes a client.

use std::sync::{Arc, LazyLock};

use futures::future::join_all;
use karmaform_model::{Ask, BoxFuture, Connections, Diagnostic, Gate, Object, Operation, Provider, ResourceType, Schema};

use crate::backup::{self, EtcdBackupRecord};
use crate::client::Client;
use crate::gate::EtcdHealthy;
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Etcd;

impl Provider for Etcd {
    type Client = Client;

    fn name(&self) -> &'static str {
        "etcd"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn types(&self) -> Vec<&dyn ResourceType<Client>> {
        vec![&EtcdMember, &EtcdPrefix, &EtcdBackupRecord]
    }

    fn gates(&self) -> Vec<&dyn Gate<Client>> {
        vec![&EtcdHealthy]
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
        Box::pin(async move { Client::new(connection, connections) })
    }

    /// Members together, since they tell of each other; beside them the prefixes and the records of backups, all at once.
    fn observe<'a>(&'a self, client: &'a Client, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move {
            let is_prefix = |ask: &Ask| ask.resource_type == prefix::KIND;
            let is_record = |ask: &Ask| ask.resource_type == backup::KIND;
            let members: Vec<&Ask> = asks.iter().filter(|ask| !is_prefix(ask) && !is_record(ask)).collect();
            let prefixes = join_all(asks.iter().filter(|ask| is_prefix(ask)).map(|ask| prefix::observe(client, ask)));
            let records = join_all(asks.iter().filter(|ask| is_record(ask)).map(|ask| backup::observe(client, ask)));
            let (members, prefixes, records) = tokio::join!(member::observe(client, &members), prefixes, records);
            let (mut members, mut prefixes, mut records) = (members.into_iter(), prefixes.into_iter(), records.into_iter().map(Ok));
            let lost = || Err(Diagnostic::error("A member could not be looked at", "Asking it ended before there was an answer."));
            let mut next = |ask: &Ask| match (is_prefix(ask), is_record(ask)) {
                (true, _) => prefixes.next(),
                (_, true) => records.next(),
                _ => members.next(),
            };
            asks.iter().map(|ask| next(ask).unwrap_or_else(lost)).collect()
        })
    }
}
