//! The provider `etcd`: what it offers, and how a connection value becomes a client.

use std::sync::{Arc, LazyLock};

use karmaform_model::{Ask, BoxFuture, Connections, Diagnostic, Gate, Object, Provider, ResourceType, Schema};
use tokio::task::JoinSet;

use crate::client::Client;
use crate::gate::EtcdHealthy;
use crate::member::{self, EtcdMember};
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
        vec![&EtcdMember, &EtcdPrefix]
    }

    fn gates(&self) -> Vec<&dyn Gate<Client>> {
        vec![&EtcdHealthy]
    }

    fn connect<'a>(
        &'a self,
        _defaults: &'a Object,
        connection: &'a Object,
        connections: Arc<dyn Connections>,
    ) -> BoxFuture<'a, Result<Client, Diagnostic>> {
        Box::pin(async move { Client::new(connection, connections) })
    }

    /// All members at once: one that does not answer costs its time limit once, not once per member behind it.
    fn observe<'a>(&'a self, client: &'a Client, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move {
            let mut answers: Vec<Option<Result<Option<Object>, Diagnostic>>> = vec![None; asks.len()];
            let mut running = JoinSet::new();
            for (i, ask) in asks.iter().cloned().enumerate() {
                let client = client.clone();
                running.spawn(async move {
                    let is_prefix = ask.resource_type == prefix::KIND;
                    (i, if is_prefix { prefix::observe(&client, &ask).await } else { member::observe(&client, &ask).await })
                });
            }
            while let Some(done) = running.join_next().await {
                if let Ok((i, answer)) = done {
                    answers[i] = Some(answer);
                }
            }
            let lost = || Err(Diagnostic::error("A member could not be looked at", "Asking it ended before there was an answer."));
            answers.into_iter().map(|a| a.unwrap_or_else(lost)).collect()
        })
    }
}
