//! The engine's view of a provider: the client's type is erased here and nowhere else.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::{
    Ask, BoxFuture, Change, Connections, Diagnostic, GateAnswer, Known, Looking, Need, Object, Provider, Refused, ResourceSpec, Schema,
    Stock, Strays, Supplied, Supply, Trust,
};

/// An open connection whose type only its provider knows.
pub type AnyClient = Arc<dyn Any + Send + Sync>;

/// A provider without its client type: what looks, and what acts.
pub trait Driver: Looking {
    /// See [`Provider::stock`].
    fn stock(&self, stock: Arc<dyn Stock>) {
        let _ = stock;
    }
    /// See [`Provider::trust`].
    fn trust(&self, trust: Arc<dyn Trust>) {
        let _ = trust;
    }
    /// See [`Provider::supply`].
    fn supply<'a>(&'a self, defaults: &'a Object, supply: &'a Supply) -> BoxFuture<'a, Result<Supplied, Diagnostic>> {
        let _ = defaults;
        Box::pin(
            async move { Err(Diagnostic::error("Nothing to get", format!("Nobody gets {}.", crate::without_credentials(&supply.source)))) },
        )
    }
    /// See [`Provider::digest`].
    fn digest<'a>(&'a self, defaults: &'a Object, image: &'a str) -> BoxFuture<'a, Result<Option<String>, Diagnostic>> {
        let _ = (defaults, image);
        Box::pin(async { Ok(None) })
    }
    /// See [`Provider::begin`].
    fn begin(&self, lineage: &str) {
        let _ = lineage;
    }
    /// See [`Provider::rehearse`].
    fn rehearse<'a>(&'a self, client: &'a AnyClient, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        self.observe(client, asks)
    }
    /// See [`crate::ResourceType::apply`].
    fn apply<'a>(
        &'a self,
        client: &'a AnyClient,
        resource_type: &'a str,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>>;
    /// See [`crate::Operation::attempt`].
    fn operate<'a>(
        &'a self,
        client: &'a AnyClient,
        operation: &'a str,
        arguments: &'a Object,
    ) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>>;
}

/// Makes a [`Driver`] of any [`Provider`].
#[derive(Debug)]
pub struct Adapter<P>(pub P);

impl<P: Provider> Adapter<P> {
    fn client<'a>(&self, client: &'a AnyClient) -> Result<&'a P::Client, Diagnostic> {
        client.downcast_ref().ok_or_else(|| {
            Diagnostic::error(
                "Connection of another provider",
                format!("The provider \"{}\" was given a connection that it did not open. This is a bug.", self.0.name()),
            )
        })
    }

    fn nothing<T>(&self, what: &str, name: &str) -> Result<T, Diagnostic> {
        Err(Diagnostic::error(format!("Unknown {what}"), format!("The provider \"{}\" has no \"{name}\".", self.0.name())))
    }
}

impl<P: Provider> Looking for Adapter<P> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn schema(&self) -> &Schema {
        self.0.schema()
    }

    fn specs(&self) -> Vec<&dyn ResourceSpec> {
        self.0.types().into_iter().map(|t| t as &dyn ResourceSpec).collect()
    }

    fn data_schemas(&self) -> Vec<(&'static str, &Schema)> {
        self.0.data_sources().into_iter().map(|d| (d.name(), d.schema())).collect()
    }

    fn refused(&self, data_source: &str, arguments: &Object) -> Refused {
        let found = self.0.data_sources().into_iter().find(|d| d.name() == data_source);
        found.map(|d| d.refused(arguments)).unwrap_or_default()
    }

    fn gate_schemas(&self) -> Vec<(&'static str, &Schema)> {
        let operations = self.0.operations().into_iter().map(|o| (o.name(), o.schema()));
        self.0.gates().into_iter().map(|g| (g.name(), g.schema())).chain(operations).collect()
    }

    fn needs(&self, resource_type: &str, wanted: &Object) -> Vec<Need> {
        self.0.needs(resource_type, wanted)
    }

    fn unseen(&self, data_source: &str, defaults: &Object, arguments: &Object, architecture: &str) -> Option<Object> {
        self.0.unseen(data_source, defaults, arguments, architecture)
    }

    fn connect<'a>(
        &'a self,
        defaults: &'a Object,
        connection: &'a Object,
        connections: Arc<dyn Connections>,
    ) -> BoxFuture<'a, Result<AnyClient, Diagnostic>> {
        Box::pin(async move {
            let client = self.0.connect(defaults, connection, connections).await?;
            Ok(Arc::new(client) as AnyClient)
        })
    }

    fn observe<'a>(&'a self, client: &'a AnyClient, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move {
            match self.client(client) {
                Ok(client) => self.0.observe(client, asks).await,
                Err(error) => asks.iter().map(|_| Err(error.clone())).collect(),
            }
        })
    }

    fn strays<'a>(&'a self, client: &'a AnyClient, known: &'a [Known]) -> BoxFuture<'a, Strays> {
        Box::pin(async move {
            match self.client(client) {
                Ok(client) => self.0.strays(client, known).await,
                Err(error) => Strays { wrong: error.into(), ..Strays::default() },
            }
        })
    }

    fn read<'a>(&'a self, client: &'a AnyClient, data_source: &'a str, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async move {
            match self.0.data_sources().into_iter().find(|d| d.name() == data_source) {
                Some(d) => d.read(self.client(client)?, arguments).await,
                None => self.nothing("data source", data_source),
            }
        })
    }

    fn check<'a>(&'a self, client: &'a AnyClient, gate: &'a str, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            match self.0.gates().into_iter().find(|g| g.name() == gate) {
                Some(g) => g.check(self.client(client)?, arguments).await,
                None => self.nothing("gate", gate),
            }
        })
    }

    fn forward<'a>(&'a self, client: &'a AnyClient, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async move { self.0.forward(self.client(client)?, host, port).await })
    }
}

impl<P: Provider> Driver for Adapter<P> {
    fn stock(&self, stock: Arc<dyn Stock>) {
        self.0.stock(stock);
    }

    fn trust(&self, trust: Arc<dyn Trust>) {
        self.0.trust(trust);
    }

    fn supply<'a>(&'a self, defaults: &'a Object, supply: &'a Supply) -> BoxFuture<'a, Result<Supplied, Diagnostic>> {
        self.0.supply(defaults, supply)
    }

    fn digest<'a>(&'a self, defaults: &'a Object, image: &'a str) -> BoxFuture<'a, Result<Option<String>, Diagnostic>> {
        self.0.digest(defaults, image)
    }

    fn begin(&self, lineage: &str) {
        self.0.begin(lineage);
    }

    fn rehearse<'a>(&'a self, client: &'a AnyClient, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move {
            match self.client(client) {
                Ok(client) => self.0.rehearse(client, asks).await,
                Err(error) => asks.iter().map(|_| Err(error.clone())).collect(),
            }
        })
    }

    fn apply<'a>(
        &'a self,
        client: &'a AnyClient,
        resource_type: &'a str,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            match self.0.types().into_iter().find(|t| t.name() == resource_type) {
                Some(t) => t.apply(self.client(client)?, change).await,
                None => self.nothing("resource type", resource_type),
            }
        })
    }

    fn operate<'a>(
        &'a self,
        client: &'a AnyClient,
        operation: &'a str,
        arguments: &'a Object,
    ) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            match self.0.operations().into_iter().find(|o| o.name() == operation) {
                Some(o) => o.attempt(self.client(client)?, arguments).await,
                None => self.nothing("operation", operation),
            }
        })
    }
}
