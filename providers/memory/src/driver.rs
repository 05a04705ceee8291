//! A driver whose outside is a world.

use std::net::SocketAddr;
use std::sync::Arc;

use karmaform_model::{
    Adapter, AnyClient, Ask, BoxFuture, Change, Connections, Diagnostic, Driver, GateAnswer, Looking, Object, Refused, ResourceSpec, Schema,
};

use crate::World;
use crate::calls::{Client, Memory};
use crate::things::Things;
use crate::world::connection_id;

impl Memory {
    /// Puts a driver over a world: its schemas and its planning stay, its calls go to the map.
    pub fn over(driver: Arc<dyn Driver>, world: Arc<World>) -> Arc<dyn Driver> {
        world.learn(&*driver);
        Arc::new(Self { inner: driver, world })
    }

    /// What the test says; that it passed, if it says nothing.
    fn answer(&self, gate: &str, arguments: &Object) -> Result<GateAnswer, Diagnostic> {
        let hook = self.world.inner().on_gate.clone();
        hook.map_or_else(|| Ok(GateAnswer::Passed("passed".to_owned())), |hook| hook(&self.world, gate, arguments))
    }
}

/// The provider `memory`, over this world.
pub fn driver(world: Arc<World>) -> Arc<dyn Driver> {
    Memory::over(Arc::new(Adapter(Things::new())), world)
}

/// The provider `memory` alone, over this world, as the registry takes it.
pub fn drivers(world: Arc<World>) -> Vec<Arc<dyn Driver>> {
    vec![driver(world)]
}

impl Looking for Memory {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    fn specs(&self) -> Vec<&dyn ResourceSpec> {
        self.inner.specs()
    }

    fn data_schemas(&self) -> Vec<(&'static str, &Schema)> {
        self.inner.data_schemas()
    }

    fn refused(&self, data_source: &str, arguments: &Object) -> Refused {
        self.inner.refused(data_source, arguments)
    }

    fn gate_schemas(&self) -> Vec<(&'static str, &Schema)> {
        self.inner.gate_schemas()
    }

    fn connect<'a>(
        &'a self,
        _: &'a Object,
        connection: &'a Object,
        _: Arc<dyn Connections>,
    ) -> BoxFuture<'a, Result<AnyClient, Diagnostic>> {
        Box::pin(async move {
            let id = connection_id(connection);
            self.world.inner().log.push(format!("connect {} {id}", self.name()));
            self.pause().await;
            self.reach(&id)?;
            Ok(Arc::new(Client { id, connection: connection.clone() }) as AnyClient)
        })
    }

    fn observe<'a>(&'a self, client: &'a AnyClient, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move {
            self.pause().await;
            let mut answers = Vec::with_capacity(asks.len());
            for ask in asks {
                answers.push(match self.client(client) {
                    Ok(client) => self.observe_one(client, ask).await,
                    Err(error) => Err(error),
                });
            }
            answers
        })
    }

    fn read<'a>(&'a self, client: &'a AnyClient, data_source: &'a str, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async move { self.read_one(self.client(client)?, data_source, arguments).await })
    }

    fn check<'a>(&'a self, client: &'a AnyClient, gate: &'a str, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let client = self.client(client)?;
            self.world.inner().log.push(format!("check {gate} {}", client.id));
            self.pause().await;
            self.reach(&client.id)?;
            self.answer(gate, arguments)
        })
    }

    fn forward<'a>(&'a self, client: &'a AnyClient, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async move {
            let id = &self.client(client)?.id;
            Err(Diagnostic::error("No way through this connection", format!("A world in memory has no ports: {host}:{port} beyond {id}.")))
        })
    }
}

impl Driver for Memory {
    fn apply<'a>(
        &'a self,
        client: &'a AnyClient,
        resource_type: &'a str,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { self.apply_one(self.client(client)?, resource_type, change).await })
    }

    /// Operations are answered like gates.
    fn operate<'a>(
        &'a self,
        client: &'a AnyClient,
        operation: &'a str,
        arguments: &'a Object,
    ) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let client = self.client(client)?;
            self.world.inner().log.push(format!("operate {operation} {}", client.id));
            self.pause().await;
            self.reach(&client.id)?;
            self.answer(operation, arguments)
        })
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
