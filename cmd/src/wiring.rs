//! What a run is made of: providers, backends, and its doors to the machine. The only list of providers and backends.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use karmaform_engine::Runtime;
use karmaform_model::{
    Adapter, Attribute, BackendError, Diagnostic, Driver, Journal, Object, Registry, Schema, Seal, Shelves, StateBackend, StateStore,
    States, Type,
};
use karmaform_remote::RemoteState;
use sha2::{Digest as _, Sha256};

use crate::backend::{Others, Record};
use crate::backup::Buckets;
use crate::disk::hexadecimal;
use crate::runtime::SystemClock;

/// Everything that a test may want to be another one.
pub struct Wiring {
    /// Providers and composites.
    pub registry: Arc<Registry>,
    /// State backends.
    pub backends: Vec<BackendKind>,
    /// Where the run starts.
    pub directory: PathBuf,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// `user@host`, for locks.
    pub who: String,
    /// Time.
    pub clock: Arc<dyn Runtime>,
    /// Random ids, for locks and lineages.
    pub ids: Arc<dyn Fn() -> String + Send + Sync>,
    /// Makes `-chdir` true for providers too, which read relative paths.
    pub enter: fn(&Path) -> io::Result<()>,
    /// Listen to Ctrl-C, SIGTERM and SIGHUP.
    pub signals: bool,
}

/// A kind of backend.
#[derive(Clone, Copy, Debug)]
pub struct BackendKind {
    /// The label of its block.
    pub name: &'static str,
    /// Its arguments; they have no blocks.
    pub schema: fn() -> &'static Schema,
    /// Opens it.
    pub open: fn(&BackendRequest<'_>) -> Result<OpenBackend, Diagnostic>,
}

/// What a backend is opened with.
pub struct BackendRequest<'a> {
    /// The directory of the configuration.
    pub directory: &'a Path,
    /// The arguments of its block, all that the schema has.
    pub arguments: &'a Object,
    /// The workspace; `default` unless another one was chosen.
    pub workspace: &'a str,
    /// `-state`
    pub state: Option<&'a str>,
    /// Environment variables, for credentials.
    pub environment: &'a BTreeMap<String, String>,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
    /// What the state is sealed with.
    pub seal: &'a Arc<dyn Seal>,
}

/// An open backend.
pub struct OpenBackend {
    /// The label of its block.
    pub kind: &'static str,
    /// The backend.
    pub backend: Arc<dyn StateBackend>,
    /// What it is over, if that is not this machine's disk.
    pub store: Option<Arc<dyn StateStore>>,
    /// Where the state is, as shown.
    pub place: String,
    /// The workspace whose state it is.
    pub workspace: String,
    /// Set if nothing keeps runs apart that work on this state at the same time: says so.
    pub unlocked: Option<Diagnostic>,
    /// Opens the journal that belongs to this state.
    pub journal: OpenJournal,
    /// What state and journal are sealed with.
    pub seal: Arc<dyn Seal>,
    /// What the directory shall remember of it once it is worked with, if that is news.
    pub(crate) record: Option<Record>,
}

/// How long a lock in a store is respected without a sign of life.
const LEASE: Duration = Duration::from_secs(60);
/// Another number of seconds for it.
const LEASE_VARIABLE: &str = "KF_LOCK_LEASE";
/// The workspace that is always there.
pub(crate) const DEFAULT_WORKSPACE: &str = "default";
/// The state of a directory that says nothing else.
pub(crate) const STATE_FILE: &str = "karmaform.tfstate";
/// The states of workspaces other than `default`; Terraform's layout.
const WORKSPACES: &str = "karmaform.tfstate.d";
/// Working files; `.karmaform/journal` is the journal.
pub(crate) const WORKING_DIRECTORY: &str = ".karmaform";

impl Wiring {
    /// This machine with everything that is linked in.
    pub fn real() -> Self {
        let environment: BTreeMap<_, _> =
            std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?))).collect();
        let home = std::env::home_dir();
        let others = Others { backends: backends(), environment: environment.clone(), home: home.clone() };
        let shelves: Arc<dyn Shelves> = Arc::new(Buckets::new(environment.clone(), home.clone()));
        Self {
            registry: Arc::new(registry(Arc::new(others), &shelves)),
            backends: backends(),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            environment,
            home,
            who: who(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(|| uuid::Uuid::new_v4().to_string()),
            enter: |path| std::env::set_current_dir(path),
            signals: true,
        }
    }
}

/// All providers and composites. `shelves`: what is restored is taken off them.
pub(crate) fn registry(states: Arc<dyn States>, shelves: &Arc<dyn Shelves>) -> Registry {
    let mut drivers: Vec<Arc<dyn Driver>> = Vec::new();
    drivers.extend(karmaform_builtin::drivers(&states));
    let ssh = karmaform_ssh::Ssh::new(&who()).with_shelves(Arc::clone(shelves));
    let kubernetes = karmaform_kubernetes::Kubernetes::new(ssh.registries()).with_shelves(Arc::clone(shelves));
    drivers.push(Arc::new(Adapter(ssh)));
    drivers.extend(karmaform_tls::drivers());
    drivers.push(karmaform_etcd::driver_with(Arc::clone(shelves)));
    drivers.push(Arc::new(Adapter(kubernetes)));
    let composites = karmaform_etcd::composites_of(own_sum).into_iter().chain(karmaform_karmada::composites());
    Registry::new(drivers, composites.collect())
}

/// The SHA-256 sum of this program, in hexadecimal digits; asked of the disk once, where backups on hosts are to be made by it.
fn own_sum() -> Option<String> {
    static SUM: LazyLock<Option<String>> = LazyLock::new(|| {
        let mut digest = Sha256::new();
        io::copy(&mut std::fs::File::open("/proc/self/exe").ok()?, &mut digest).ok()?;
        Some(hexadecimal(digest))
    });
    SUM.clone()
}

/// All backends.
pub(crate) fn backends() -> Vec<BackendKind> {
    vec![
        BackendKind { name: "local", schema: local_schema, open: open_local },
        BackendKind { name: "etcd", schema: karmaform_etcd_state::schema, open: open_etcd },
        BackendKind { name: "kubernetes", schema: karmaform_kubernetes_state::schema, open: open_kubernetes },
        BackendKind { name: "http", schema: karmaform_http_state::schema, open: open_http },
        BackendKind { name: "s3", schema: karmaform_s3::schema, open: open_s3 },
    ]
}

fn local_schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let path = Attribute::optional("path", Type::String, "The file, relative to the configuration.").or(STATE_FILE);
        let workspaces = "Folder with the states of workspaces other than `default`, relative to the configuration: `<workspace_dir>/<workspace>/karmaform.tfstate`.";
        let workspaces = Attribute::optional("workspace_dir", Type::String, workspaces).or(WORKSPACES);
        Schema::new(
            "Keeps the state in a file on this machine, readable by its owner alone, and what earlier runs left beside it in `<path>.generations/`.",
            vec![path, workspaces],
        )
    });
    &SCHEMA
}

fn open_local(request: &BackendRequest<'_>) -> Result<OpenBackend, Diagnostic> {
    let argument = |name: &str| request.arguments.get(name).and_then(|v| v.as_str());
    let workspaces = argument("workspace_dir").unwrap_or(WORKSPACES).trim_end_matches('/');
    let path = match request.state {
        Some(file) => file.to_owned(),
        None if request.workspace == DEFAULT_WORKSPACE => argument("path").unwrap_or(STATE_FILE).to_owned(),
        None => format!("{workspaces}/{}/{STATE_FILE}", request.workspace),
    };
    if path.is_empty() || workspaces.is_empty() {
        return Err(Diagnostic::error(
            "Invalid backend configuration",
            "\"path\" and \"workspace_dir\" must be names of a file and of a folder.",
        )
        .with_hint("Leave the one out that is empty, for its usual place."));
    }
    let file = request.directory.join(&path);
    Ok(OpenBackend {
        kind: "local",
        backend: Arc::new(
            karmaform_local::LocalBackend::new(file)
                .sealed(Arc::clone(request.seal))
                .with_workspaces(request.directory.join(workspaces), STATE_FILE),
        ),
        store: None,
        journal: journal_of(request, &path),
        seal: Arc::clone(request.seal),
        unlocked: None,
        place: path,
        workspace: request.workspace.to_owned(),
        record: None,
    })
}

fn open_etcd(request: &BackendRequest<'_>) -> Result<OpenBackend, Diagnostic> {
    let store = karmaform_etcd_state::EtcdStore::open(request.arguments, request.workspace, request.directory, request.home)?;
    open_remote("etcd", Arc::new(store), request)
}

fn open_kubernetes(request: &BackendRequest<'_>) -> Result<OpenBackend, Diagnostic> {
    let BackendRequest { arguments, workspace, environment, directory, home, .. } = request;
    let store = karmaform_kubernetes_state::KubernetesStore::open(arguments, workspace, environment, directory, *home)?;
    open_remote("kubernetes", Arc::new(store), request)
}

fn open_s3(request: &BackendRequest<'_>) -> Result<OpenBackend, Diagnostic> {
    let store = karmaform_s3::S3Store::open(request.arguments, request.workspace, request.environment, request.home)?;
    open_remote("s3", Arc::new(store), request)
}

fn open_http(request: &BackendRequest<'_>) -> Result<OpenBackend, Diagnostic> {
    if request.workspace != DEFAULT_WORKSPACE {
        let detail = format!("The backend \"http\" has no workspaces, so it has no \"{}\".", request.workspace);
        return Err(
            Diagnostic::error("No workspaces here", detail).with_hint("Unset KF_WORKSPACE, or run: karmaform workspace select default")
        );
    }
    let backend = karmaform_http_state::HttpBackend::open(request.arguments, request.environment)?;
    let place = backend.place();
    no_file(request, &place)?;
    let unlocked = (!backend.locks()).then(|| {
        let detail = format!("Nothing says where the state at {place} is locked, so runs at the same time are not kept apart.");
        Diagnostic::warning("State without a lock", detail)
            .with_hint("Set lock_address and unlock_address if the server has locks; if not, see to it that one run goes at a time.")
    });
    Ok(OpenBackend {
        kind: "http",
        backend: Arc::new(backend.sealed(Arc::clone(request.seal))),
        store: None,
        journal: journal_of(request, &place),
        seal: Arc::clone(request.seal),
        unlocked,
        place,
        workspace: request.workspace.to_owned(),
        record: None,
    })
}

/// -state is for states in files.
fn no_file(request: &BackendRequest<'_>, place: &str) -> Result<(), Diagnostic> {
    if request.state.is_none() {
        return Ok(());
    }
    let detail = format!("-state names a file, and the state of this configuration is at {place}.");
    Err(Diagnostic::error("Flag without use here", detail).with_hint("Leave -state out."))
}

fn open_remote(kind: &'static str, store: Arc<dyn StateStore>, request: &BackendRequest<'_>) -> Result<OpenBackend, Diagnostic> {
    no_file(request, &store.place())?;
    let lease = request.environment.get(LEASE_VARIABLE).map(|text| text.parse().ok().filter(|s| *s > 0).ok_or(text)).transpose();
    let lease = lease.map_err(|_| {
        Diagnostic::error("Invalid environment variable", format!("{LEASE_VARIABLE} must be a whole number of seconds, 1 or more."))
    })?;
    let place = store.place();
    Ok(OpenBackend {
        kind,
        backend: Arc::new(RemoteState::new(Arc::clone(&store), lease.map_or(LEASE, Duration::from_secs)).sealed(Arc::clone(request.seal))),
        store: Some(store),
        journal: journal_of(request, &place),
        seal: Arc::clone(request.seal),
        unlocked: None,
        place,
        workspace: request.workspace.to_owned(),
        record: None,
    })
}

/// Opens a journal.
pub type OpenJournal = Box<dyn Fn() -> Result<Box<dyn Journal>, BackendError> + Send + Sync>;

fn journal_of(request: &BackendRequest<'_>, state: &str) -> OpenJournal {
    let (journal, seal) = (journal_beside(request.directory, state), Arc::clone(request.seal));
    Box::new(move || karmaform_local::FileJournal::open_sealed(&journal, Arc::clone(&seal)).map(|j| Box::new(j) as Box<dyn Journal>))
}

/// Each state of a directory has its own journal: they must not be mixed up.
fn journal_beside(directory: &Path, state: &str) -> PathBuf {
    let base = directory.join(WORKING_DIRECTORY);
    if state == STATE_FILE {
        return base.join("journal");
    }
    let name: String = state.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' }).collect();
    base.join(format!("journal-{name}-{}", &crate::disk::sha256(state.as_bytes())[..8]))
}

fn who() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok().or_else(user_of_process);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    format!("{}@{}", user.unwrap_or_else(|| "unknown".to_owned()), if host.is_empty() { "localhost" } else { host })
}

/// Where no login said who this is, as in containers and units.
fn user_of_process() -> Option<String> {
    let id = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").ok()?).to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mine = users.lines().find(|l| l.split(':').nth(2) == Some(&id))?;
    mine.split(':').next().map(str::to_owned)
}
