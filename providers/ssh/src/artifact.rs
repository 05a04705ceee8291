//! Where artifacts come from: a file, a URL or an image of containers, fetched once per run, checked, and taken out of its archive or image
//! if need be.
//!
//! Local work only; knows no hosts.

mod archive;
mod fetch;
pub(crate) mod oci;
mod sums;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karmaform_model::{Diagnostic, without_credentials};
use tempfile::NamedTempFile;
use tokio::sync::{Mutex, OnceCell};

use crate::sum::sha256_of;

/// How the names of unfinished downloads begin.
const UNFINISHED: &str = ".karmaform-";

/// After so long without a lock, a download is nobody's any more; none takes that long.
const STALE: Duration = Duration::from_secs(60 * 60);

/// Fetched artifacts of a run, each made once however many hosts want it.
pub(crate) struct Store {
    directory: PathBuf,
    /// Docker's configuration file, for the log-ins of registries.
    docker: PathBuf,
    images: Mutex<BTreeMap<Wish, oci::Shared>>,
    ready: OncePerWish<Arc<Ready>>,
    verdicts: OncePerWish<Result<(), Diagnostic>>,
}

/// Made once; who wants the same in the meantime waits.
type OncePerWish<T> = Mutex<BTreeMap<Wish, Arc<OnceCell<T>>>>;

/// What somebody wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wish {
    /// A path, a `file:` or `http(s)` URL, or an image.
    pub(crate) source: String,
    /// What the sum of the source must be, or the path or URL of a file that says it.
    pub(crate) sha256: Option<String>,
    /// What to take out of it.
    pub(crate) member: Option<String>,
    /// Of an image, for what it is to run on.
    pub(crate) platform: Option<String>,
}

/// A local file that is what was wanted. It may have no name, so that it goes with the run however that ends.
pub(crate) struct Ready {
    /// To be read by place, not in sequence: many read it at once.
    pub(crate) file: Arc<File>,
    /// Its sum.
    pub(crate) sha256: String,
    /// Its size.
    pub(crate) size: u64,
    /// The same compressed, once somebody wanted that.
    packed: OnceCell<Arc<Ready>>,
}

impl Store {
    /// That keeps downloads in `directory`.
    pub(crate) fn new(directory: PathBuf) -> Self {
        let docker = oci::usual_file();
        Self { directory, docker, images: Mutex::default(), ready: Mutex::default(), verdicts: Mutex::default() }
    }

    /// With log-ins from another file.
    #[cfg(test)]
    fn with_docker(mut self, file: PathBuf) -> Self {
        self.docker = file;
        self
    }

    /// Where downloads are kept unless the provider block says otherwise.
    pub(crate) fn usual_directory() -> PathBuf {
        let home = || std::env::var_os("HOME").map(|h| Path::new(&h).join(".cache"));
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute()).or_else(home);
        cache.unwrap_or_else(std::env::temp_dir).join("karmaform")
    }

    /// The file that is wanted. Those who want the same wait for the one who fetches it; after a failure the next one tries again.
    pub(crate) async fn get(&self, wish: &Wish) -> Result<Arc<Ready>, Diagnostic> {
        if oci::is_image(&wish.source) {
            let whole = Wish { member: None, sha256: None, ..wish.clone() };
            let (image, docker) = (Arc::clone(self.images.lock().await.entry(whole).or_default()), self.docker.clone());
            return self.once(wish, move |directory, wish| oci::take(&image, &directory, &docker, &wish)).await;
        }
        let whole = self.once(&Wish { member: None, ..wish.clone() }, |directory, wish| fetch::fetch(&directory, &wish)).await?;
        let Some(member) = wish.member.clone() else { return Ok(whole) };
        let source = wish.source.clone();
        self.once(wish, move |directory, _| {
            let file = archive::extract(&whole.file, &source, &member, &directory)?;
            Ready::of(file, &source)
        })
        .await
    }

    /// Whether it can be had at all. Asked for every host, and found out once per run, also if it can't.
    pub(crate) async fn check(&self, wish: &Wish) -> Result<(), Diagnostic> {
        let cell = Arc::clone(self.verdicts.lock().await.entry(wish.clone()).or_default());
        cell.get_or_init(|| async { self.get(wish).await.map(|_| ()) }).await.clone()
    }

    /// The same file compressed with gzip; made once, however many hosts want it, and the same bytes whenever it is made by this version.
    pub(crate) async fn packed(&self, ready: &Arc<Ready>) -> Result<Arc<Ready>, Diagnostic> {
        let pack = || async {
            let (directory, whole) = (self.directory.clone(), Arc::clone(ready));
            working(move || archive::pack(&whole.file, &directory).and_then(|f| Ready::of(f, "the compressed file"))).await.map(Arc::new)
        };
        ready.packed.get_or_try_init(pack).await.cloned()
    }

    async fn once(
        &self,
        wish: &Wish,
        make: impl FnOnce(PathBuf, Wish) -> Result<Ready, Diagnostic> + Send + 'static,
    ) -> Result<Arc<Ready>, Diagnostic> {
        let cell = Arc::clone(self.ready.lock().await.entry(wish.clone()).or_default());
        let ready = cell.get_or_try_init(|| async {
            let (directory, wish) = (self.directory.clone(), wish.clone());
            working(move || make(directory, wish)).await.map(Arc::new)
        });
        ready.await.cloned()
    }
}

/// Does work that takes a while beside everything else.
async fn working<T: Send + 'static>(work: impl FnOnce() -> Result<T, Diagnostic> + Send + 'static) -> Result<T, Diagnostic> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|_| Diagnostic::error("Artifact can't be prepared", "The work on it ended early. This is a bug."))?
}

impl Wish {
    /// The path, if the source is on this machine.
    pub(crate) fn local(&self) -> Option<&Path> {
        local(&self.source)
    }
}

/// The path of what is on this machine: a path, or a `file:` URL.
fn local(source: &str) -> Option<&Path> {
    let path = source.strip_prefix("file://").or_else(|| source.strip_prefix("file:")).unwrap_or(source);
    (!path.contains("://")).then(|| Path::new(path))
}

impl Ready {
    /// `name` is for messages.
    fn of(file: File, name: &str) -> Result<Self, Diagnostic> {
        let read = |e: std::io::Error| Diagnostic::error("Artifact can't be read", format!("{}: {e}.", without_credentials(name)));
        let sha256 = sha256_of(&mut ByPlace::new(&file)).map_err(read)?;
        let size = file.metadata().map_err(read)?.len();
        Ok(Self { file: Arc::new(file), sha256, size, packed: OnceCell::new() })
    }
}

/// Reads a file from its beginning, whoever else reads it.
struct ByPlace<'a> {
    file: &'a File,
    at: u64,
}

impl<'a> ByPlace<'a> {
    fn new(file: &'a File) -> Self {
        Self { file, at: 0 }
    }
}

impl Read for ByPlace<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read_at(buffer, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// A new file in the cache, without a name: nothing is left of it even if we are killed.
fn unnamed(directory: &Path) -> Result<File, Diagnostic> {
    prepare(directory).and_then(|()| tempfile::tempfile_in(directory)).map_err(|e| unwritable(directory, &e))
}

/// A new file in the cache that may become a kept one; readable for us alone, and locked so that nobody takes it for a stale one.
fn unfinished(directory: &Path) -> Result<NamedTempFile, Diagnostic> {
    let made = prepare(directory).and_then(|()| {
        let file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)?;
        file.as_file().lock()?;
        Ok(file)
    });
    made.map_err(|e| unwritable(directory, &e))
}

fn unwritable(directory: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("Cache can't be written", format!("A file can't be made in {}: {error}.", directory.display()))
        .with_hint("Set \"cache\" in the provider block to another directory.")
}

/// Makes the directory, and removes from it what runs that were killed left.
fn prepare(directory: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    for entry in fs::read_dir(directory)?.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(UNFINISHED)) {
        let is_old = entry.metadata().and_then(|m| m.modified()).is_ok_and(|t| t.elapsed().is_ok_and(|age| age > STALE));
        if is_old && File::open(entry.path()).is_ok_and(|f| f.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
