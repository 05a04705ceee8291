//! What a run is made of: providers, backends, and its doors to the machine. The only list of providers and backends.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karmaform_engine::Runtime;
use karmaform_model::{Adapter, BackendError, Diagnostic, Driver, Journal, Object, Registry, StateBackend, Value};

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
    /// Listen to Ctrl-C and SIGTERM.
    pub signals: bool,
}

/// A kind of backend.
#[derive(Clone, Copy)]
pub struct BackendKind {
    /// The label of its block.
    pub name: &'static str,
    /// Opens it.
    pub open: fn(&BackendRequest<'_>) -> Result<OpenBackend, Diagnostic>,
}

/// What a backend is opened with.
pub struct BackendRequest<'a> {
    /// The directory of the configuration.
    pub directory: &'a Path,
    /// The arguments of its block.
    pub arguments: &'a Object,
    /// `-state`
    pub state: Option<&'a str>,
}

/// An open backend.
pub struct OpenBackend {
    /// The backend.
    pub backend: Box<dyn StateBackend>,
    /// Where the state is, as shown.
    pub place: String,
    /// Opens the journal that belongs to this state.
    pub journal: Box<dyn Fn() -> Result<Box<dyn Journal>, BackendError> + Send + Sync>,
}

/// The state of a directory that says nothing else.
const STATE_FILE: &str = "karmaform.tfstate";
/// Working files; `.karmaform/journal` is the journal.
pub(crate) const WORKING_DIRECTORY: &str = ".karmaform";

impl Wiring {
    /// This machine with everything that is linked in.
    pub fn real() -> Self {
        Self {
            registry: Arc::new(registry()),
            backends: backends(),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            environment: std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?))).collect(),
            home: std::env::home_dir(),
            who: who(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(|| uuid::Uuid::new_v4().to_string()),
            enter: |path| std::env::set_current_dir(path),
            signals: true,
        }
    }
}

/// All providers and composites.
pub(crate) fn registry() -> Registry {
    let mut drivers: Vec<Arc<dyn Driver>> = Vec::new();
    drivers.extend(karmaform_builtin::drivers());
    drivers.push(Arc::new(Adapter(karmaform_ssh::Ssh::new())));
    drivers.extend(karmaform_tls::drivers());
    drivers.push(karmaform_etcd::driver());
    drivers.push(Arc::new(Adapter(karmaform_kubernetes::Kubernetes::new())));
    let composites = karmaform_etcd::composites().into_iter().chain(karmaform_karmada::composites());
    Registry::new(drivers, composites.collect())
}

/// All backends.
pub(crate) fn backends() -> Vec<BackendKind> {
    vec![BackendKind { name: "local", open: open_local }]
}

fn open_local(request: &BackendRequest<'_>) -> Result<OpenBackend, Diagnostic> {
    let mut path = STATE_FILE.to_owned();
    for (name, value) in request.arguments {
        match (name.as_str(), value.as_str()) {
            ("path", Some(text)) if !text.is_empty() => path = text.to_owned(),
            ("path", _) if value.is_null() => {}
            ("path", _) => return Err(refused("\"path\" must be the name of a file, known before planning.")),
            _ => return Err(refused("The backend \"local\" has one argument, \"path\".")),
        }
    }
    if let Some(state) = request.state {
        path = state.to_owned();
    }
    let file = request.directory.join(&path);
    let journal = journal_beside(request.directory, &path);
    Ok(OpenBackend {
        backend: Box::new(karmaform_local::LocalBackend::new(file)),
        place: path,
        journal: Box::new(move || karmaform_local::FileJournal::open(&journal).map(|j| Box::new(j) as Box<dyn Journal>)),
    })
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

fn refused(detail: &str) -> Diagnostic {
    Diagnostic::error("Invalid backend configuration", detail)
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

/// The arguments of a `backend` block as far as nothing of them is unknown or secret.
pub(crate) fn plain_arguments(arguments: &Object) -> Result<(), Diagnostic> {
    let all_known = arguments.values().all(Value::is_wholly_known);
    if all_known { Ok(()) } else { Err(refused("Its arguments must be known before planning.")) }
}
