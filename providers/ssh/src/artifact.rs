//! Where artifacts come from: a file or a URL, fetched once per run, checked, and taken out of its archive if need be.
//!
//! Local work only; knows no hosts.

mod archive;
mod fetch;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karmaform_model::Diagnostic;
use tempfile::NamedTempFile;
use tokio::sync::{Mutex, OnceCell};

use crate::sum::sha256_of;

/// Fetched artifacts of a run, each made once however many hosts want it.
pub(crate) struct Store {
    directory: PathBuf,
    ready: Mutex<BTreeMap<Wish, Arc<OnceCell<Arc<Ready>>>>>,
}

/// What somebody wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wish {
    /// A path, `file:` or `http(s)` URL.
    pub(crate) source: String,
    /// What the sum of the source must be.
    pub(crate) sha256: Option<String>,
    /// What to take out of it.
    pub(crate) member: Option<String>,
}

/// A local file that is what was wanted.
pub(crate) struct Ready {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its sum.
    pub(crate) sha256: String,
    /// Its size.
    pub(crate) size: u64,
    /// Deleted with the run, if it was made for it.
    _temporary: Option<NamedTempFile>,
}

impl Store {
    /// That keeps downloads in `directory`.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, ready: Mutex::default() }
    }

    /// Where downloads are kept unless the provider block says otherwise.
    pub(crate) fn usual_directory() -> PathBuf {
        let home = || std::env::var_os("HOME").map(|h| Path::new(&h).join(".cache"));
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute()).or_else(home);
        cache.unwrap_or_else(std::env::temp_dir).join("karmaform")
    }

    /// The file that is wanted. Those who want the same wait for the one who fetches it; after a failure the next one tries again.
    pub(crate) async fn get(&self, wish: &Wish) -> Result<Arc<Ready>, Diagnostic> {
        let whole = self.once(&Wish { member: None, ..wish.clone() }, |directory, wish| fetch::fetch(&directory, &wish)).await?;
        let Some(member) = wish.member.clone() else { return Ok(whole) };
        let source = wish.source.clone();
        self.once(wish, move |directory, _| {
            let file = archive::extract(&whole.path, &source, &member, &directory)?;
            Ready::of(file.path().to_owned(), Some(file))
        })
        .await
    }

    async fn once(
        &self,
        wish: &Wish,
        make: impl FnOnce(PathBuf, Wish) -> Result<Ready, Diagnostic> + Send + 'static,
    ) -> Result<Arc<Ready>, Diagnostic> {
        let cell = Arc::clone(self.ready.lock().await.entry(wish.clone()).or_default());
        let ready = cell.get_or_try_init(|| async {
            let (directory, wish) = (self.directory.clone(), wish.clone());
            let made = tokio::task::spawn_blocking(move || make(directory, wish)).await;
            made.map_err(|_| Diagnostic::error("Artifact can't be prepared", "The work on it ended early. This is a bug."))?.map(Arc::new)
        });
        ready.await.cloned()
    }
}

impl Ready {
    fn of(path: PathBuf, temporary: Option<NamedTempFile>) -> Result<Self, Diagnostic> {
        let read = |e: std::io::Error| Diagnostic::error("Artifact can't be read", format!("{}: {e}.", path.display()));
        let sha256 = sha256_of(&path).map_err(read)?;
        let size = fs::metadata(&path).map_err(read)?.len();
        Ok(Self { path, sha256, size, _temporary: temporary })
    }
}

/// A new file in the cache, readable for us alone.
fn temporary(directory: &Path) -> Result<NamedTempFile, Diagnostic> {
    fs::create_dir_all(directory).and_then(|()| tempfile::Builder::new().prefix(".karmaform-").tempfile_in(directory)).map_err(|e| {
        Diagnostic::error("Cache can't be written", format!("A file can't be made in {}: {e}.", directory.display()))
            .with_hint("Set \"cache\" in the provider block to another directory.")
    })
}

#[cfg(test)]
mod tests;
