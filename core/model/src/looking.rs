//! The half of a provider that only looks: what it offers, and how to read the world. Nothing that can be reached from here changes anything.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::{AnyClient, Ask, BoxFuture, Connections, Diagnostic, GateAnswer, Known, Need, Object, Refused, ResourceSpec, Schema, Strays};

/// A provider without its client type, for who only looks. What acts is in [`crate::Driver`], to which there is no way from here.
pub trait Looking: Send + Sync {
    /// `"ssh"`
    fn name(&self) -> &'static str;
    /// The provider block.
    fn schema(&self) -> &Schema;
    /// The pure halves of its resource types.
    fn specs(&self) -> Vec<&dyn ResourceSpec>;
    /// Names and schemas of its data sources.
    fn data_schemas(&self) -> Vec<(&'static str, &Schema)>;
    /// See [`crate::DataSource::refused`].
    fn refused(&self, data_source: &str, arguments: &Object) -> Refused {
        let _ = (data_source, arguments);
        Refused::new()
    }
    /// Names and schemas of its gates and operations.
    fn gate_schemas(&self) -> Vec<(&'static str, &Schema)>;
    /// See [`crate::Provider::needs`].
    fn needs(&self, resource_type: &str, wanted: &Object) -> Vec<Need> {
        let _ = (resource_type, wanted);
        Vec::new()
    }
    /// See [`crate::Provider::unseen`].
    fn unseen(&self, data_source: &str, defaults: &Object, arguments: &Object, architecture: &str) -> Option<Object> {
        let _ = (data_source, defaults, arguments, architecture);
        None
    }
    /// See [`crate::Provider::connect`].
    fn connect<'a>(
        &'a self,
        defaults: &'a Object,
        connection: &'a Object,
        connections: Arc<dyn Connections>,
    ) -> BoxFuture<'a, Result<AnyClient, Diagnostic>>;
    /// See [`crate::Provider::observe`].
    fn observe<'a>(&'a self, client: &'a AnyClient, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>>;
    /// See [`crate::Provider::strays`].
    fn strays<'a>(&'a self, client: &'a AnyClient, known: &'a [Known]) -> BoxFuture<'a, Strays> {
        let _ = (client, known);
        Box::pin(async { Strays::default() })
    }
    /// See [`crate::DataSource::read`].
    fn read<'a>(&'a self, client: &'a AnyClient, data_source: &'a str, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>>;
    /// See [`crate::Gate::check`].
    fn check<'a>(&'a self, client: &'a AnyClient, gate: &'a str, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>>;
    /// See [`crate::Provider::forward`].
    fn forward<'a>(&'a self, client: &'a AnyClient, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>>;
}
