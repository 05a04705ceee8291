//! The provider `kubernetes`: what it offers, and one client per way into a cluster.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use karmaform_model::{
    Ask, BoxFuture, Connections, DataSource, Diagnostic, Gate, Known, Need, Object, Operation, Provider, Registries, ResourceType, Schema,
    Shelves, Stock, Strays, Supplied, Supply, Trust,
};

use crate::accepts::KubernetesAccepts;
use crate::archive::KubernetesArchive;
use crate::archive_source::sha256;
use crate::certificate::KubernetesCertificate;
use crate::client::{Client, Inner, Needed};
use crate::cluster::Cluster;
use crate::connection::{self, Options, PROVIDER};
use crate::dispatch;
use crate::exec::KubernetesExec;
use crate::forward;
use crate::grown::KubernetesGrown;
use crate::helper::KubernetesHelper;
use crate::images::{self, Images};
use crate::job::KubernetesJob;
use crate::list::KubernetesList;
use crate::look::Rehearsal;
use crate::membership::KarmadaMembership;
use crate::needs::needs;
use crate::object::KubernetesObject;
use crate::owner::KubernetesOwner;
use crate::pod::KubernetesPod;
use crate::preflight::KubernetesPreflight;
use crate::ready::KubernetesReady;
use crate::runs::KubernetesRuns;
use crate::start::KubernetesStart;
use crate::stop::KubernetesStop;
use crate::strays;
use crate::through;

/// The provider `kubernetes`.
pub struct Kubernetes {
    schema: Schema,
    object: KubernetesObject,
    pod: KubernetesPod,
    job: KubernetesJob,
    archive: KubernetesArchive,
    exec: KubernetesExec,
    helper: KubernetesHelper,
    list: KubernetesList,
    certificate: KubernetesCertificate,
    membership: KarmadaMembership,
    owner: KubernetesOwner,
    preflight: KubernetesPreflight,
    cluster: Cluster,
    images: Images,
    /// A data source's arguments and the connection value that it gives are two ways to say the same; a plugin that gives credentials
    /// must not run for both.
    open: Mutex<Vec<(Options, Weak<Inner>)>>,
}

impl Kubernetes {
    /// With nothing open yet. `registries` are asked for images that pods are to run.
    pub fn new(registries: Arc<dyn Registries>) -> Self {
        let schema = Schema::new(
            "Reaches Kubernetes clusters. It has no settings of its own: everything is in a `data \"kubernetes_cluster\"`.",
            Vec::new(),
        );
        let archive = KubernetesArchive::new();
        Self {
            schema,
            helper: KubernetesHelper::default(),
            exec: KubernetesExec::new(Arc::clone(&archive.downloads)),
            object: KubernetesObject::new(),
            pod: KubernetesPod::new(),
            job: KubernetesJob::new(),
            archive,
            list: KubernetesList::new(),
            certificate: KubernetesCertificate::new(),
            membership: KarmadaMembership::new(),
            owner: KubernetesOwner::new(),
            preflight: KubernetesPreflight::new(),
            cluster: Cluster::new(),
            images: Images::new(registries),
            open: Mutex::default(),
        }
    }

    /// That takes backups of etcd off these shelves.
    #[must_use]
    pub fn with_shelves(self, shelves: Arc<dyn Shelves>) -> Self {
        self.archive.downloads.use_shelves(shelves);
        self
    }

    fn opened(&self, options: &Options) -> Option<Arc<Inner>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().find(|(o, _)| o == options).and_then(|(_, inner)| inner.upgrade())
    }
}

impl Provider for Kubernetes {
    type Client = Client;

    fn name(&self) -> &'static str {
        PROVIDER
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn types(&self) -> Vec<&dyn ResourceType<Client>> {
        vec![
            &self.object,
            &self.pod,
            &self.job,
            &self.archive,
            &self.list,
            &self.owner,
            &self.membership,
            &self.certificate,
            &self.preflight,
        ]
    }

    fn data_sources(&self) -> Vec<&dyn DataSource<Client>> {
        vec![&self.cluster]
    }

    fn gates(&self) -> Vec<&dyn Gate<Client>> {
        vec![&KubernetesAccepts, &KubernetesReady, &KubernetesRuns, &KubernetesGrown]
    }

    fn operations(&self) -> Vec<&dyn Operation<Client>> {
        vec![&KubernetesStart, &KubernetesStop, &self.helper, &self.exec]
    }

    fn needs(&self, resource_type: &str, wanted: &Object) -> Vec<Need> {
        needs(resource_type, wanted)
    }

    fn stock(&self, stock: Arc<dyn Stock>) {
        self.archive.downloads.use_stock(stock);
    }

    fn trust(&self, trust: Arc<dyn Trust>) {
        self.archive.downloads.use_trust(trust);
    }

    fn supply<'a>(&'a self, _: &'a Object, supply: &'a Supply) -> BoxFuture<'a, Result<Supplied, Diagnostic>> {
        Box::pin(async move {
            let (downloads, supply) = (Arc::clone(&self.archive.downloads), supply.clone());
            let got = tokio::task::spawn_blocking(move || downloads.get(&supply.source, supply.sha256.as_deref())).await;
            let bytes = got.map_err(|_| Diagnostic::error("Archive can't be fetched", "The work on it ended early. This is a bug."))??;
            let size = bytes.len() as u64;
            Ok(Supplied { size, sha256: sha256(&bytes), content: Box::new(std::io::Cursor::new(bytes.to_vec())) })
        })
    }

    fn connect<'a>(
        &'a self,
        _: &'a Object,
        connection: &'a Object,
        connections: Arc<dyn Connections>,
    ) -> BoxFuture<'a, Result<Client, Diagnostic>> {
        Box::pin(async move {
            let options = Options::new(connection)?;
            let needed = if connection::is_required(connection) { Needed::Yes } else { Needed::No };
            if let Some(inner) = self.opened(&options) {
                return Ok(Client(inner, needed));
            }
            let client = Client(Arc::new(Inner::open(options.clone(), connections).await?), needed);
            // What leads through other connections belongs to the run that these are of.
            if !client.is_through() {
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.retain(|(o, i)| *o != options && i.strong_count() > 0);
                open.push((options, Arc::downgrade(&client.0)));
            }
            Ok(client)
        })
    }

    fn observe<'a>(&'a self, client: &'a Client, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(through::observe(client, asks, || dispatch::observe(client, &self.archive, asks, None)))
    }

    fn strays<'a>(&'a self, client: &'a Client, known: &'a [Known]) -> BoxFuture<'a, Strays> {
        Box::pin(strays::strays(client, known))
    }

    fn rehearse<'a>(&'a self, client: &'a Client, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move {
            let rehearsal = Some(Rehearsal::permitted());
            let looked = through::observe(client, asks, || dispatch::observe(client, &self.archive, asks, rehearsal));
            let (answers, lacking) = futures::join!(looked, self.images.lacking(client, asks));
            images::merged(asks, answers, lacking)
        })
    }

    fn forward<'a>(&'a self, client: &'a Client, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(forward::forward(client, host, port))
    }
}
