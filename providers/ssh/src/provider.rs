//! The provider `ssh`: connects, and asks a host all its questions at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use karmaform_model::{
    Ask, Attribute, BoxFuture, Connections, DataSource, Diagnostic, Gate, Known, Need, Object, Operation, Provider, Registries,
    ResourceType, Schema, Severity, Shelves, Stock, Strays, Supplied, Supply, Trust, Type,
};

use crate::artifact::{Lent, Stocked, Store, Trusted};
use crate::client::{Client, Door, Run};
use crate::connection::{self, Options, PROVIDER};
use crate::facts::HostFacts;
use crate::files::Files;
use crate::gate::Disk;
use crate::host::Host;
use crate::look::{Look, Seen};
use crate::stop::{Runs, Stop};
use crate::strays;
use crate::sum::sha256;
use crate::typed::AnyType;
use crate::types;
use crate::unused::Unused;
use crate::values::text;

/// The provider `ssh`.
pub struct Ssh {
    schema: Schema,
    types: Vec<Box<dyn AnyType>>,
    facts: HostFacts,
    files: Files,
    /// By their directory; shared by all hosts, so that an artifact is fetched once for all.
    stores: Mutex<BTreeMap<PathBuf, Arc<Store>>>,
    hosts: Mutex<Vec<(Options, Arc<Shared>)>>,
    run: Arc<Run>,
    stock: Stocked,
    trusted: Trusted,
    shelves: Lent,
}

/// A host that is open as long as somebody uses it. A data source's arguments and the connection value that it gives are two ways to say
/// the same, and must not lead to two connections.
type Shared = tokio::sync::Mutex<Weak<Host>>;

impl Ssh {
    /// With nothing open yet, for one run. `who` runs it, as others are told who want to work on the same hosts: "ops@desk".
    pub fn new(who: &str) -> Self {
        let mut attributes = connection::attributes();
        attributes.push(Attribute::optional(
            "cache",
            Type::String,
            "Directory on this machine for fetched artifacts; by default \"karmaform\" in the user's cache directory.",
        ));
        let schema = Schema::new("Defaults for every connection to a host.", attributes);
        let run = Arc::new(Run { id: OnceLock::new(), who: who.replace(char::is_control, " ") });
        Self {
            schema,
            types: types::all(),
            facts: HostFacts::new(),
            files: Files::new(),
            stores: Mutex::default(),
            hosts: Mutex::default(),
            run,
            stock: Stocked::default(),
            trusted: Trusted::default(),
            shelves: Lent::default(),
        }
    }

    /// That takes backups of etcd off these shelves.
    #[must_use]
    pub fn with_shelves(self, shelves: Arc<dyn Shelves>) -> Self {
        let _ = self.shelves.set(shelves);
        self
    }

    /// Who takes programs out of images knows registries, for all who need to.
    pub fn registries(&self) -> Arc<dyn Registries> {
        self.store(&Object::new())
    }

    fn store(&self, defaults: &Object) -> Arc<Store> {
        let directory = text(defaults, "cache").map_or_else(Store::usual_directory, PathBuf::from);
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let made = |directory| {
            let store = Store::new(directory).with_stock(Arc::clone(&self.stock)).with_trust(Arc::clone(&self.trusted));
            store.with_shelves(Arc::clone(&self.shelves))
        };
        Arc::clone(stores.entry(directory.clone()).or_insert_with(|| Arc::new(made(directory))))
    }

    /// The open host for these options; opened if it is not. Those who come while it is being opened wait for it.
    async fn host(&self, options: Options) -> Result<Arc<Host>, Diagnostic> {
        let shared = {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            match hosts.iter().find(|(o, _)| *o == options) {
                Some((_, shared)) => Arc::clone(shared),
                None => {
                    let shared = Arc::new(Shared::default());
                    hosts.push((options.clone(), Arc::clone(&shared)));
                    shared
                }
            }
        };
        let mut open = shared.lock().await;
        if let Some(host) = open.upgrade() {
            return Ok(host);
        }
        let host = Arc::new(Host::open(options).await?);
        *open = Arc::downgrade(&host);
        Ok(host)
    }

    fn find(&self, name: &str) -> Option<&dyn AnyType> {
        self.types.iter().map(Box::as_ref).find(|t| t.name() == name)
    }

    /// A local source that can't be used is found when planning, not in the middle of a run.
    async fn check_need(&self, client: &Client, ask: &Ask, seen: Option<&Object>) -> Result<(), Diagnostic> {
        let (Some(found), Some(wanted)) = (self.find(&ask.resource_type), &ask.wanted) else { return Ok(()) };
        match found.inner().need(seen, ask.known.as_ref(), wanted) {
            Some(supply) => client.store.check(&supply).await,
            None => Ok(()),
        }
    }

    fn answer(&self, seen: &Seen, ask: &Ask) -> Result<Option<Object>, Diagnostic> {
        match self.find(&ask.resource_type) {
            Some(found) => found.inner().answer_for(seen, ask),
            None => {
                Err(Diagnostic::error("Unknown resource type", format!("The provider \"{PROVIDER}\" has no \"{}\".", ask.resource_type)))
            }
        }
    }
}

/// Of a host that may be away it is only a warning that it can't be asked: what the state remembers stands.
fn excused(mut error: Diagnostic) -> Diagnostic {
    error.severity = Severity::Warning;
    error.detail.push_str(" What the state remembers of what is there is taken to be so.");
    error
}

impl Provider for Ssh {
    type Client = Client;

    fn name(&self) -> &'static str {
        PROVIDER
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn types(&self) -> Vec<&dyn ResourceType<Client>> {
        self.types.iter().map(|t| t.as_ref() as &dyn ResourceType<Client>).collect()
    }

    fn data_sources(&self) -> Vec<&dyn DataSource<Client>> {
        vec![&self.facts, &self.files]
    }

    fn gates(&self) -> Vec<&dyn Gate<Client>> {
        vec![&Disk, &Runs, &Unused]
    }

    fn operations(&self) -> Vec<&dyn Operation<Client>> {
        vec![&Stop]
    }

    fn needs(&self, resource_type: &str, wanted: &Object) -> Vec<Need> {
        self.find(resource_type).map(|found| found.inner().needs(wanted)).unwrap_or_default()
    }

    fn unseen(&self, data_source: &str, defaults: &Object, arguments: &Object, architecture: &str) -> Option<Object> {
        if data_source != self.facts.name() {
            return None;
        }
        Some(self.facts.unseen(&Options::new(arguments, defaults).ok()?, arguments, architecture))
    }

    fn stock(&self, stock: Arc<dyn Stock>) {
        // One run has one configuration, and that one bundle.
        let _ = self.stock.set(stock);
    }

    fn trust(&self, trust: Arc<dyn Trust>) {
        let _ = self.trusted.set(trust);
    }

    fn supply<'a>(&'a self, defaults: &'a Object, supply: &'a Supply) -> BoxFuture<'a, Result<Supplied, Diagnostic>> {
        Box::pin(async move {
            let ready = self.store(defaults).get(supply).await?;
            Ok(Supplied { size: ready.size, sha256: ready.sha256.clone(), content: ready.read() })
        })
    }

    fn digest<'a>(&'a self, defaults: &'a Object, image: &'a str) -> BoxFuture<'a, Result<Option<String>, Diagnostic>> {
        Box::pin(async move { self.store(defaults).digest(image).await.map(Some) })
    }

    fn begin(&self, lineage: &str) {
        // What a run has begun as it stays.
        let _ = self.run.id.set(sha256(lineage.as_bytes())[..32].to_owned());
    }

    fn connect<'a>(
        &'a self,
        defaults: &'a Object,
        connection: &'a Object,
        connections: Arc<dyn Connections>,
    ) -> BoxFuture<'a, Result<Client, Diagnostic>> {
        Box::pin(async move {
            let options = Options::new(connection, defaults)?;
            let door = match self.host(options.clone()).await {
                Ok(host) => Door::Open(host),
                // Whom we do not trust, and who does not let us in, is not away, but for who only looks: that one is to see all the others. It is not tried
                // again in this run.
                Err(why) if (why.retryable || connections.only_looks()) && !connection::is_required(connection) => {
                    Door::Shut { options: Box::new(options), why: Box::new(Diagnostic { retryable: false, ..why }) }
                }
                Err(why) => return Err(why),
            };
            Ok(Client { door, store: self.store(defaults), run: Arc::clone(&self.run) })
        })
    }

    fn rehearse<'a>(&'a self, client: &'a Client, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move {
            let mut answers = self.observe(client, asks).await;
            for (answer, ask) in answers.iter_mut().zip(asks) {
                if let Ok(seen) = answer
                    && let Err(error) = self.check_need(client, ask, seen.as_ref()).await
                {
                    *answer = Err(error);
                }
            }
            answers
        })
    }

    fn strays<'a>(&'a self, client: &'a Client, known: &'a [Known]) -> BoxFuture<'a, Strays> {
        Box::pin(async move { Strays::from(strays::strays(client, known).await) })
    }

    fn observe<'a>(&'a self, client: &'a Client, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move {
            let looks: Vec<Look> = asks.iter().filter_map(|a| Some(self.find(&a.resource_type)?.inner().looks_for(a))).flatten().collect();
            match client.look(&looks).await {
                Ok(seen) => asks.iter().map(|ask| self.answer(&seen, ask)).collect(),
                Err(error) => {
                    let error = if matches!(client.door, Door::Shut { .. }) { excused(error) } else { error };
                    asks.iter().map(|_| Err(error.clone())).collect()
                }
            }
        })
    }

    fn forward<'a>(&'a self, client: &'a Client, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async move { client.host()?.forward(host, port).await })
    }
}
