//! Providers that are not to be asked: their schemas and their pure planning stay, and what would touch the outside is made up.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_lang::Mock;
use karmaform_model::{
    AnyClient, Ask, BoxFuture, Change, Connections, Diagnostic, Driver, GateAnswer, Looking, Need, Object, Registry, ResourceSpec, Schema,
    to_json,
};

use super::made_up::Letters;
use super::mock_spec::{MockedSpec, planned_otherwise};

/// Hosts that nobody sees are like most are.
pub(super) const ARCHITECTURE: &str = "amd64";

/// A driver that touches nothing.
struct Mocked {
    inner: Arc<dyn Driver>,
    mock: Mock,
    letters: Letters,
    /// What data sources say is made of: reading again gives the same.
    seed: String,
    /// Arguments of its `provider` block.
    given: Object,
    /// Resource types that are planned otherwise than by their provider.
    planned: Vec<MockedSpec>,
}

/// What things are made up of.
#[derive(Clone, Copy)]
pub(super) struct Seeds<'a> {
    /// Of a whole file: what is read twice is the same.
    pub(super) file: &'a str,
    /// Of one run: what is made twice is not.
    pub(super) run: &'a str,
}

/// The same providers and composites, with these mocked. `given` are the `provider` blocks.
pub(super) fn mocked(registry: &Registry, mocks: &BTreeMap<String, Mock>, given: &BTreeMap<String, Object>, seeds: Seeds<'_>) -> Registry {
    let over = |inner: &Arc<dyn Driver>| match mocks.get(inner.name()) {
        None => Arc::clone(inner) as Arc<dyn Driver>,
        Some(mock) => Arc::new(Mocked {
            given: given.get(inner.name()).cloned().unwrap_or_default(),
            letters: Letters::new(format!("{}/{}", seeds.run, inner.name())),
            seed: seeds.file.to_owned(),
            inner: Arc::clone(inner),
            planned: planned_otherwise(inner, mock, seeds.run),
            mock: mock.clone(),
        }),
    };
    Registry::new(registry.drivers().map(over).collect(), registry.composites().cloned().collect())
}

impl Mocked {
    fn unknown<T>(&self, what: &str, name: &str) -> Result<T, Diagnostic> {
        Err(Diagnostic::error(format!("Unknown {what}"), format!("The provider \"{}\" has no \"{name}\".", self.inner.name())))
    }
}

impl Looking for Mocked {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    fn specs(&self) -> Vec<&dyn ResourceSpec> {
        let own = |spec: &dyn ResourceSpec| self.planned.iter().find(|p| p.name == spec.name());
        self.inner.specs().into_iter().map(|spec| own(spec).map_or(spec, |own| own as &dyn ResourceSpec)).collect()
    }

    fn data_schemas(&self) -> Vec<(&'static str, &Schema)> {
        self.inner.data_schemas()
    }

    fn gate_schemas(&self) -> Vec<(&'static str, &Schema)> {
        self.inner.gate_schemas()
    }

    fn needs(&self, resource_type: &str, wanted: &Object) -> Vec<Need> {
        self.inner.needs(resource_type, wanted)
    }

    fn unseen(&self, data_source: &str, defaults: &Object, arguments: &Object, architecture: &str) -> Option<Object> {
        self.inner.unseen(data_source, defaults, arguments, architecture)
    }

    fn connect<'a>(&'a self, _: &'a Object, _: &'a Object, _: Arc<dyn Connections>) -> BoxFuture<'a, Result<AnyClient, Diagnostic>> {
        Box::pin(async { Ok(Arc::new(()) as AnyClient) })
    }

    /// What was made is there as it was made.
    fn observe<'a>(&'a self, _: &'a AnyClient, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move { asks.iter().map(|ask| Ok(ask.known.clone())).collect() })
    }

    fn read<'a>(&'a self, _: &'a AnyClient, data_source: &'a str, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async move {
            let Some((_, schema)) = self.inner.data_schemas().into_iter().find(|(name, _)| *name == data_source) else {
                return self.unknown("data source", data_source);
            };
            let told = self.inner.unseen(data_source, &self.given, arguments, ARCHITECTURE);
            let known: Vec<_> = arguments.iter().map(|(n, v)| format!("{n}={}", to_json(v))).collect();
            let letters = Letters::new(format!("{}/{data_source}/{}", self.seed, known.join("/")));
            Ok(letters.read(self.inner.name(), schema, self.mock.data.get(data_source), arguments, told))
        })
    }

    fn check<'a>(&'a self, _: &'a AnyClient, _: &'a str, _: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async { Ok(GateAnswer::Passed("mocked".to_owned())) })
    }

    fn forward<'a>(&'a self, _: &'a AnyClient, host: &'a str, port: u16) -> BoxFuture<'a, Result<std::net::SocketAddr, Diagnostic>> {
        let detail = format!("The provider \"{}\" is mocked, so {host}:{port} can't be reached through it.", self.inner.name());
        let error = Diagnostic::error("No way through a mocked provider", detail);
        let hint = "Mock the provider of what is reached there as well: mock_provider \"NAME\" {} (etcd, kubernetes).";
        Box::pin(async move { Err(error.with_hint(hint)) })
    }
}

impl Driver for Mocked {
    fn apply<'a>(
        &'a self,
        _: &'a AnyClient,
        resource_type: &'a str,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(mut object) = change.after().cloned() else { return Ok(None) };
            let Some(spec) = self.inner.specs().into_iter().find(|s| s.name() == resource_type) else {
                return self.unknown("resource type", resource_type);
            };
            self.letters.fill(spec.schema(), self.mock.resources.get(resource_type), &mut object);
            Ok(Some(object))
        })
    }

    fn operate<'a>(&'a self, _: &'a AnyClient, _: &'a str, _: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async { Ok(GateAnswer::Passed("mocked".to_owned())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_way_through_what_is_mocked() {
        let mocks = [("ssh".to_owned(), Mock::default())].into();
        let registry = mocked(&crate::Wiring::real().registry, &mocks, &BTreeMap::new(), Seeds { file: "f", run: "r" });
        let driver = registry.provider("ssh").unwrap();
        let client = Arc::new(()) as AnyClient;
        let executor = crate::runtime::Executor::new().unwrap();
        let why = executor.block_on(driver.forward(&client, "10.0.0.1", 2379)).unwrap_err();
        assert_eq!(why.summary, "No way through a mocked provider");
        assert_eq!(why.detail, "The provider \"ssh\" is mocked, so 10.0.0.1:2379 can't be reached through it.");
        assert!(why.hints.iter().any(|h| h.contains("mock_provider")), "{why:?}");
    }
}
