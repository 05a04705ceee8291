//! Where artifacts come from: a file, a URL or an image of containers, fetched once per run, checked, and taken out of its archive or image
//! if need be.
//!
//! Local work only; knows no hosts.

mod archive;
mod fetch;
pub(crate) mod oci;
mod sums;
mod trust;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use karmaform_model::{
    BoxFuture, Diagnostic, Registries, Shelves, Stock, Supply, damaged, names_backup, not_in_stock, without_credentials,
};
use tempfile::NamedTempFile;
use tokio::sync::{Mutex, OnceCell};

pub(crate) use self::trust::Trusted;
use crate::sum::sha256_of;

/// How the names of unfinished downloads begin.
const UNFINISHED: &str = ".karmaform-";

/// After so long without a lock, a download is nobody's any more; none takes that long.
const STALE: Duration = Duration::from_secs(60 * 60);

/// Fetched artifacts of a run, each made once however many hosts want it.
pub(crate) struct Store {
    directory: PathBuf,
    access: Access,
    images: Mutex<BTreeMap<Supply, oci::Shared>>,
    ready: OncePerSupply<Arc<Ready>>,
    verdicts: OncePerSupply<Result<(), Diagnostic>>,
    resting: Mutex<BTreeMap<String, Rest>>,
    stock: Stocked,
    shelves: Lent,
}

/// What a server said that wants to be left alone until then.
struct Rest {
    until: Instant,
    why: Diagnostic,
}

/// What there is to show and to believe where something is fetched.
#[derive(Clone)]
pub(crate) struct Access {
    /// Docker's configuration file, for the log-ins of registries.
    docker: PathBuf,
    /// Whom servers are believed.
    trusted: Trusted,
}

/// What was brought along, if anything was.
pub(crate) type Stocked = Arc<OnceLock<Arc<dyn Stock>>>;

/// The shelves of backups, if somebody has lent them.
pub(crate) type Lent = Arc<OnceLock<Arc<dyn Shelves>>>;

/// Made once; who wants the same in the meantime waits.
type OncePerSupply<T> = Mutex<BTreeMap<Supply, Arc<OnceCell<T>>>>;

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
        let (access, stock) = (Access { docker: oci::usual_file(), trusted: Trusted::default() }, Stocked::default());
        let (images, ready, verdicts, resting) = (Mutex::default(), Mutex::default(), Mutex::default(), Mutex::default());
        Self { directory, access, images, ready, verdicts, resting, stock, shelves: Lent::default() }
    }

    /// That takes things out of what was brought along, once something is.
    pub(crate) fn with_stock(mut self, stock: Stocked) -> Self {
        self.stock = stock;
        self
    }

    /// That takes backups off these shelves, once they are lent.
    pub(crate) fn with_shelves(mut self, shelves: Lent) -> Self {
        self.shelves = shelves;
        self
    }

    /// That believes servers whom this machine trusts, once that is told.
    pub(crate) fn with_trust(mut self, trusted: Trusted) -> Self {
        self.access.trusted = trusted;
        self
    }

    /// With log-ins from another file.
    #[cfg(test)]
    fn with_docker(mut self, file: PathBuf) -> Self {
        self.access.docker = file;
        self
    }

    /// Where downloads are kept unless the provider block says otherwise.
    pub(crate) fn usual_directory() -> PathBuf {
        let home = || std::env::var_os("HOME").map(|h| Path::new(&h).join(".cache"));
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute()).or_else(home);
        cache.unwrap_or_else(std::env::temp_dir).join("karmaform")
    }

    /// The file that is wanted. Those who want the same wait for the one who fetches it; after a failure the next one tries again.
    pub(crate) async fn get(&self, supply: &Supply) -> Result<Arc<Ready>, Diagnostic> {
        if let Some(stock) = self.stock.get().cloned().filter(|s| needs_network(supply) || s.has(supply)) {
            return self.once(supply, move |directory, supply| brought(stock.as_ref(), &directory, &supply)).await;
        }
        if names_backup(&supply.source)
            && let Some(shelves) = self.shelves.get().cloned()
        {
            return self.once(supply, move |directory, supply| fetch::taken(&directory, &supply, shelves.as_ref())).await;
        }
        if oci::is_image(&supply.source) {
            let whole = Supply { member: None, sha256: None, ..supply.clone() };
            let (image, access) = (Arc::clone(self.images.lock().await.entry(whole).or_default()), self.access.clone());
            return self.once(supply, move |directory, supply| oci::take(&image, &directory, &access, &supply)).await;
        }
        let (archive, trusted) = (Supply { member: None, ..supply.clone() }, Arc::clone(&self.access.trusted));
        let whole = self.once(&archive, move |directory, supply| fetch::fetch(&directory, &supply, &trusted)).await?;
        let Some(member) = supply.member.clone() else { return Ok(whole) };
        let source = supply.source.clone();
        self.once(supply, move |directory, _| {
            let file = archive::extract(&whole.file, &source, &member, &directory)?;
            Ready::of(file, &source)
        })
        .await
    }

    /// The digest of what an image's name, as clusters write it, means now.
    pub(crate) async fn digest(&self, image: &str) -> Result<String, Diagnostic> {
        let (image, directory, access) = (image.to_owned(), self.directory.clone(), self.access.clone());
        working(move || oci::digest_now(&image, &directory, &access)).await
    }

    /// Whether it can be had at all, as far as that can be told without the network. Asked for every host, and found out once per run, also
    /// if it can't.
    pub(crate) async fn check(&self, supply: &Supply) -> Result<(), Diagnostic> {
        match self.stock.get() {
            Some(stock) if stock.has(supply) => return Ok(()),
            Some(stock) if needs_network(supply) => {
                return stock.find(supply).and(Err(not_in_stock(stock.as_ref(), &oci::shown(&supply.source))));
            }
            None if local(&supply.source).is_none() => return Ok(()),
            _ => {}
        }
        let cell = Arc::clone(self.verdicts.lock().await.entry(supply.clone()).or_default());
        cell.get_or_init(|| async { self.get(supply).await.map(|_| ()) }).await.clone()
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
        supply: &Supply,
        make: impl FnOnce(PathBuf, Supply) -> Result<Ready, Diagnostic> + Send + 'static,
    ) -> Result<Arc<Ready>, Diagnostic> {
        let cell = Arc::clone(self.ready.lock().await.entry(supply.clone()).or_default());
        let ready = cell.get_or_try_init(|| async {
            self.rested(&supply.source).await?;
            let (directory, wanted) = (self.directory.clone(), supply.clone());
            let made = working(move || make(directory, wanted)).await.map(Arc::new);
            if let Err(why) = &made {
                self.rest(&supply.source, why).await;
            }
            made
        });
        ready.await.cloned()
    }

    /// A server that wants to be left alone is, however many hosts want what it has.
    async fn rested(&self, source: &str) -> Result<(), Diagnostic> {
        let resting = self.resting.lock().await;
        let Some(rest) = resting.get(source) else { return Ok(()) };
        let left = rest.until.saturating_duration_since(Instant::now());
        // Not a moment too early: a second that has begun counts.
        if left.is_zero() { Ok(()) } else { Err(rest.why.clone().retryable_after(left.as_secs() + 1)) }
    }

    async fn rest(&self, source: &str, why: &Diagnostic) {
        if let Some(seconds) = why.retry_after {
            let rest = Rest { until: Instant::now() + Duration::from_secs(seconds), why: why.clone() };
            self.resting.lock().await.insert(source.to_owned(), rest);
        }
    }
}

impl Registries for Store {
    fn lacks<'a>(&'a self, image: &'a str) -> BoxFuture<'a, bool> {
        let (image, access) = (image.to_owned(), self.access.clone());
        Box::pin(async move {
            // With a bundle there is no way out to ask anybody.
            self.stock.get().is_none() && tokio::task::spawn_blocking(move || oci::is_lacking(&image, &access)).await.unwrap_or(false)
        })
    }
}

/// Whether something of it is not on this machine: the source, or the sum that was published of it.
fn needs_network(supply: &Supply) -> bool {
    local(&supply.source).is_none() || supply.sha256.as_deref().is_some_and(|sum| local(sum).is_none())
}

/// Takes a file out of what was brought along.
fn brought(stock: &dyn Stock, directory: &Path, supply: &Supply) -> Result<Ready, Diagnostic> {
    let name = oci::shown(&supply.source);
    let Some(mut supplied) = stock.find(supply)? else { return Err(not_in_stock(stock, &name)) };
    let mut file = unnamed(directory)?;
    let copied = std::io::copy(&mut supplied.content, &mut file);
    copied.map_err(|e| Diagnostic::error("Bundle can't be read", format!("{name} out of {}: {e}.", stock.name())))?;
    let ready = Ready::of(file, &name)?;
    if ready.sha256 == supplied.sha256 { Ok(ready) } else { Err(damaged(stock, &name)) }
}

/// Does work that takes a while beside everything else.
async fn working<T: Send + 'static>(work: impl FnOnce() -> Result<T, Diagnostic> + Send + 'static) -> Result<T, Diagnostic> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|_| Diagnostic::error("Artifact can't be prepared", "The work on it ended early. This is a bug."))?
}

/// The path of what is on this machine: a path, or a `file:` URL.
pub(crate) fn local(source: &str) -> Option<&Path> {
    let path = source.strip_prefix("file://").or_else(|| source.strip_prefix("file:")).unwrap_or(source);
    (!path.contains("://")).then(|| Path::new(path))
}

impl Ready {
    /// Its bytes.
    pub(crate) fn read(&self) -> Box<dyn Read + Send> {
        // An `Arc` lends what it holds, not what that is.
        struct Shared(Arc<File>);
        impl Borrow<File> for Shared {
            fn borrow(&self) -> &File {
                &self.0
            }
        }
        Box::new(ByPlace::new(Shared(Arc::clone(&self.file))))
    }

    /// `name` is for messages.
    fn of(file: File, name: &str) -> Result<Self, Diagnostic> {
        let read = |e: std::io::Error| Diagnostic::error("Artifact can't be read", format!("{}: {e}.", without_credentials(name)));
        let sha256 = sha256_of(&mut ByPlace::new(&file)).map_err(read)?;
        let size = file.metadata().map_err(read)?.len();
        Ok(Self { file: Arc::new(file), sha256, size, packed: OnceCell::new() })
    }
}

/// Reads a file from its beginning, whoever else reads it.
struct ByPlace<F> {
    file: F,
    at: u64,
}

impl<F: Borrow<File>> ByPlace<F> {
    fn new(file: F) -> Self {
        Self { file, at: 0 }
    }
}

impl<F: Borrow<File>> Read for ByPlace<F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.borrow().read_at(buffer, self.at)?;
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
