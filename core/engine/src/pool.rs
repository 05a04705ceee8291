//! Open connections, each opened once however many steps ask for it. Knows no provider: a client is opaque here.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::FutureExt as _;
use futures::future::Shared;
use karmaform_model::{AnyClient, BoxFuture, Catalog, Connection, Connections, Diagnostic, Looking, Object, Schema, Value, to_json};

use crate::question::entries;

type Opening = Shared<BoxFuture<'static, Result<AnyClient, Diagnostic>>>;

/// The attribute of a connection value that names its provider.
const PROVIDER: &str = "provider";
/// The attribute of one that stands for several, any of which will do.
const ANY_OF: &str = "any_of";

/// All connections of one run.
pub struct Pool {
    registry: Arc<Catalog>,
    providers: BTreeMap<String, Object>,
    open: Mutex<BTreeMap<String, Opening>>,
    only_looks: bool,
    myself: Weak<Self>,
}

impl Pool {
    /// Nothing open yet. `providers` are the arguments of the `provider` blocks.
    pub fn new(registry: Arc<Catalog>, providers: BTreeMap<String, Object>) -> Arc<Self> {
        Self::made(registry, providers, false)
    }

    /// The same for a run that only looks.
    pub fn only_looking(registry: Arc<Catalog>, providers: BTreeMap<String, Object>) -> Arc<Self> {
        Self::made(registry, providers, true)
    }

    fn made(registry: Arc<Catalog>, providers: BTreeMap<String, Object>, only_looks: bool) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self { registry, providers, open: Mutex::default(), only_looks, myself: myself.clone() })
    }

    /// The client behind a connection value (empty for a provider that needs none). Opens it at the first call; a failure is remembered,
    /// so that an unreachable host costs one timeout and not one per resource.
    ///
    /// # Errors
    /// What the provider said when it was opened.
    pub async fn open(&self, provider: &str, connection: &Object) -> Result<AnyClient, Diagnostic> {
        self.opening(provider, connection)?.await
    }

    /// Like [`Pool::open`], but what failed before is tried anew, once for all who ask at the same time.
    ///
    /// # Errors
    /// What the provider said when it was opened.
    pub async fn reopen(&self, provider: &str, connection: &Object) -> Result<AnyClient, Diagnostic> {
        let key = connection_key(provider, connection);
        {
            let mut open = self.lock();
            if open.get(&key).and_then(Shared::peek).is_some_and(Result::is_err) {
                open.remove(&key);
            }
        }
        self.open(provider, connection).await
    }

    fn opening(&self, provider: &str, connection: &Object) -> Result<Opening, Diagnostic> {
        let driver = self.registry.provider(provider).cloned().ok_or_else(|| unknown_provider(provider))?;
        let myself = self.myself.upgrade().ok_or_else(|| {
            Diagnostic::error("Connections are closed", "A connection was asked for after the end of the run. This is a bug.")
        })?;
        let key = connection_key(provider, connection);
        let mut open = self.lock();
        let opening = open.entry(key).or_insert_with(|| {
            let defaults = self.providers.get(provider).cloned().unwrap_or_default();
            connect(driver, defaults, connection.clone(), &myself).shared()
        });
        Ok(opening.clone())
    }

    /// Reads a data source that stands in no configuration. All that it takes has to be given.
    ///
    /// # Errors
    /// There is none of this name, it can't be reached, or what it says.
    pub async fn read(&self, data_source: &str, arguments: &Object) -> Result<Object, Diagnostic> {
        let found = self.registry.data_source(data_source).ok_or_else(|| unknown_data_source(data_source))?;
        let client = self.open(found.driver.name(), &way(found.schema, arguments)).await?;
        found.driver.read(&client, data_source, arguments).await
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Opening>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds the pool weakly: a future kept in the pool must not keep the pool alive.
fn connect(
    driver: Arc<dyn Looking>,
    defaults: Object,
    connection: Object,
    pool: &Arc<Pool>,
) -> BoxFuture<'static, Result<AnyClient, Diagnostic>> {
    let through = Through { pool: Arc::downgrade(pool), only_looks: pool.only_looks };
    Box::pin(async move { driver.connect(&defaults, &connection, Arc::new(through)).await })
}

/// What a provider is given to reach its world through other connections. Weak, since clients may keep it and the pool keeps clients.
struct Through {
    pool: Weak<Pool>,
    only_looks: bool,
}

impl Connections for Through {
    fn forward<'a>(&'a self, connection: &'a Object, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async move {
            let pool = self.pool.upgrade().ok_or_else(|| {
                Diagnostic::error("Connections are closed", "A connection was asked for after the end of the run. This is a bug.")
            })?;
            pool.forward(connection, host, port).await
        })
    }

    fn only_looks(&self) -> bool {
        self.only_looks
    }
}

impl Connections for Pool {
    fn forward<'a>(&'a self, connection: &'a Object, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async move {
            let provider = connection.get(PROVIDER).and_then(Value::as_str).ok_or_else(|| {
                Diagnostic::error("Not a connection", "A value was used as a connection, but it does not say of which provider it is.")
                    .with_hint("Use the `connection` attribute of a data source or resource.")
            })?;
            if let Some(ways) = connection.get(ANY_OF).and_then(Value::as_items) {
                return self.through_any(ways, host, port).await;
            }
            // Whoever needs a way asks again when there was none, as it may have come up since: a host that this very run starts, for one.
            let client = self.reopen(provider, connection).await?;
            let driver = self.registry.provider(provider).ok_or_else(|| unknown_provider(provider))?;
            driver.forward(&client, host, port).await
        })
    }

    fn only_looks(&self) -> bool {
        self.only_looks
    }
}

impl Pool {
    /// The first of these that works. What failed before in this run is tried again only when no other is left, so that a way that is gone
    /// costs one timeout.
    async fn through_any(&self, ways: &[Value], host: &str, port: u16) -> Result<SocketAddr, Diagnostic> {
        let mut last = None;
        for again in [false, true] {
            for way in ways.iter().filter_map(Value::as_entries) {
                let provider = way.get(PROVIDER).and_then(Value::as_str).unwrap_or_default();
                let opened = if again { self.reopen(provider, way).await } else { self.open(provider, way).await };
                let driver = self.registry.provider(provider).ok_or_else(|| unknown_provider(provider))?;
                match opened {
                    Ok(client) => match driver.forward(&client, host, port).await {
                        Ok(address) => return Ok(address),
                        Err(error) => last = Some(error),
                    },
                    Err(error) => last = Some(error),
                }
            }
        }
        Err(last
            .unwrap_or_else(|| Diagnostic::error("No way there", format!("There is nothing that {host}:{port} could be reached through."))))
    }
}

/// Names a connection: equal texts share one client. Never shown: it holds secrets.
pub(crate) fn connection_key(provider: &str, connection: &Object) -> String {
    let mut key = provider.to_owned();
    for (name, value) in connection {
        key.push('\0');
        key.push_str(name);
        key.push('=');
        key.push_str(&to_json(value).to_string());
    }
    key
}

/// What a data source or a gate with these arguments is asked through.
pub(crate) fn way(schema: &Schema, arguments: &Object) -> Object {
    match schema.connection {
        Connection::None => Object::new(),
        Connection::Arguments => arguments.clone(),
        Connection::Attribute(name) => entries(arguments.get(name)),
    }
}

/// There is no such data source.
pub(crate) fn unknown_data_source(name: &str) -> Diagnostic {
    Diagnostic::error("Unknown data source", format!("There is no data source \"{name}\" in this version."))
}

/// There is no such provider.
pub(crate) fn unknown_provider(name: &str) -> Diagnostic {
    Diagnostic::error("Unknown provider", format!("There is no provider \"{name}\" in this version."))
}
