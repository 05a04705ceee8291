//! The world as one knows it who can reach none of it: nothing is there, and hosts are of an architecture that is given. A plan against that
//! says what a configuration needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_model::{
    AnyClient, Ask, BoxFuture, Change, Connections, Diagnostic, Driver, GateAnswer, Looking, Object, Refused, Registry, ResourceSpec,
    Schema, Value,
};

/// A driver that reaches nothing.
struct Unseen {
    inner: Arc<dyn Driver>,
    defaults: Object,
    architecture: String,
}

/// The same providers and composites, where nothing is there and hosts are of this architecture. `defaults` are the provider blocks.
pub(crate) fn unseen(registry: &Registry, defaults: &BTreeMap<String, Object>, architecture: &str) -> Registry {
    let over = |inner: &Arc<dyn Driver>| {
        let defaults = defaults.get(inner.name()).cloned().unwrap_or_default();
        Arc::new(Unseen { inner: Arc::clone(inner), defaults, architecture: architecture.to_owned() }) as Arc<dyn Driver>
    };
    Registry::new(registry.drivers().map(over).collect(), registry.composites().cloned().collect())
}

/// Nothing is done here; a plan only looks.
fn never<'a, T>() -> BoxFuture<'a, Result<T, Diagnostic>> {
    Box::pin(async { Err(Diagnostic::error("Nothing is changed here", "A bundle is made without changing anything. This is a bug.")) })
}

impl Looking for Unseen {
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

    fn connect<'a>(&'a self, _: &'a Object, _: &'a Object, _: Arc<dyn Connections>) -> BoxFuture<'a, Result<AnyClient, Diagnostic>> {
        Box::pin(async { Ok(Arc::new(()) as AnyClient) })
    }

    fn observe<'a>(&'a self, _: &'a AnyClient, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move { asks.iter().map(|_| Ok(None)).collect() })
    }

    fn read<'a>(&'a self, _: &'a AnyClient, data_source: &'a str, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async move {
            if let Some(told) = self.inner.unseen(data_source, &self.defaults, arguments, &self.architecture) {
                return Ok(told);
            }
            let mut object = arguments.clone();
            let schema = self.inner.data_schemas().into_iter().find(|(name, _)| *name == data_source).map(|(_, schema)| schema);
            for attribute in schema.into_iter().flat_map(|s| &s.attributes).filter(|a| a.is_computed()) {
                if object.get(attribute.name).is_none_or(Value::is_null) {
                    object.insert(attribute.name.to_owned(), Value::unknown(attribute.ty.clone()));
                }
            }
            Ok(object)
        })
    }

    fn check<'a>(&'a self, _: &'a AnyClient, _: &'a str, _: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        never()
    }

    fn forward<'a>(&'a self, _: &'a AnyClient, _: &'a str, _: u16) -> BoxFuture<'a, Result<std::net::SocketAddr, Diagnostic>> {
        never()
    }
}

impl Driver for Unseen {
    fn apply<'a>(&'a self, _: &'a AnyClient, _: &'a str, _: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        never()
    }

    fn operate<'a>(&'a self, _: &'a AnyClient, _: &'a str, _: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        never()
    }
}
