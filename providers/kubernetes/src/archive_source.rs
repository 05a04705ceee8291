//! Gets an archive: a file of this machine, or a URL. Nothing of it is used before its sum is checked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use karmaform_model::{Diagnostic, Shelves, Stock, Supply, Trust, damaged, is_shelved, names_backup, not_in_stock, without_credentials};
use sha2::{Digest, Sha256};

use crate::needs::supply;
use crate::trust::{self, Trusted};

/// The largest archive; sets of manifests have some 100 KB.
const LARGEST: u64 = 64 << 20;
/// From the request to the last byte.
const LONGEST: Duration = Duration::from_secs(120);

const UNFETCHED: &str = "Archive can't be fetched";

/// The archives that were downloaded in this run, by their URL: plan and apply see the same.
#[derive(Default)]
pub(crate) struct Downloads {
    by_source: Mutex<BTreeMap<String, Arc<Vec<u8>>>>,
    stock: OnceLock<Arc<dyn Stock>>,
    trusted: Trusted,
    shelves: OnceLock<Arc<dyn Shelves>>,
}

/// True if it must be fetched over the network.
pub(crate) fn is_remote(source: &str) -> bool {
    source.starts_with("http://") || source.starts_with("https://")
}

impl Downloads {
    /// From now on nothing is downloaded: this is what was brought along.
    pub(crate) fn use_stock(&self, stock: Arc<dyn Stock>) {
        let _ = self.stock.set(stock);
    }

    /// From now on these are the authorities that servers' certificates may be signed by.
    pub(crate) fn use_trust(&self, trust: Arc<dyn Trust>) {
        let _ = self.trusted.set(trust);
    }

    /// From now on backups are taken off these shelves.
    pub(crate) fn use_shelves(&self, shelves: Arc<dyn Shelves>) {
        let _ = self.shelves.set(shelves);
    }

    /// The bytes at `source`, with the SHA-256 sum `sum` if one is given. Waits for the network: call it where waiting is allowed.
    pub(crate) fn get(&self, source: &str, sum: Option<&str>) -> Result<Arc<Vec<u8>>, Diagnostic> {
        if let Some(stock) = self.stock.get() {
            let supply = supply(source, sum);
            if is_remote(source) || stock.has(&supply) {
                return brought(stock.as_ref(), &supply).map(Arc::new);
            }
        }
        let bytes = if is_remote(source) { self.download(source)? } else { Arc::new(local(source)?) };
        let found = sha256(&bytes);
        match sum {
            Some(sum) if !sum.eq_ignore_ascii_case(&found) => {
                // Fetched anew next time: it may have been cut short.
                self.by_source.lock().unwrap_or_else(PoisonError::into_inner).remove(source);
                Err(Diagnostic::error(
                    "Archive has the wrong sum",
                    format!("{} has the SHA-256 sum {found}, but `sha256` says {sum}. Nothing of it was used.", shown(source)),
                )
                .with_hint("Check the version in `source`, and take the sum from whoever published it, not from this message."))
            }
            _ => Ok(bytes),
        }
    }

    /// What is at `source`, to be read once, and its length in bytes. Nothing of it is kept, and its sum is for whoever reads it to compare.
    pub(crate) fn open(&self, source: &str, sum: &str) -> Result<(u64, Box<dyn Read + Send>), Diagnostic> {
        if let Some(stock) = self.stock.get() {
            let supply = supply(source, Some(sum));
            if is_remote(source) || is_shelved(source) || stock.has(&supply) {
                let supplied = stock.find(&supply)?.ok_or_else(|| not_in_stock(stock.as_ref(), &shown(source)))?;
                return Ok((supplied.size, supplied.content));
            }
        }
        if let Some(shelves) = self.shelves.get().filter(|_| names_backup(source)) {
            let supplied = shelves.take(source)?;
            return Ok((supplied.size, supplied.content));
        }
        if !is_remote(source) {
            let (path, file) = opened(source)?;
            let length = file.metadata().map_err(|e| unreadable(&path, &format!("can't be read ({e})")))?.len();
            return Ok((length, Box::new(file)));
        }
        let response = ask(source, &self.trusted, None)?;
        let length = length(&response).ok_or_else(|| unfetched(source, "the server does not say how long it is"))?;
        Ok((length as u64, Box::new(response.into_body().into_reader())))
    }

    /// Gets a backup off its shelf, which keeps it for who [opens](Self::open) it. Of anything else there is nothing to be done. Waits as that does.
    ///
    /// # Errors
    /// It can't be got.
    pub(crate) fn get_ready(&self, source: &str) -> Result<(), Diagnostic> {
        match self.shelves.get().filter(|_| self.stock.get().is_none() && names_backup(source)) {
            Some(shelves) => shelves.take(source).map(drop),
            None => Ok(()),
        }
    }

    fn download(&self, url: &str) -> Result<Arc<Vec<u8>>, Diagnostic> {
        if let Some(bytes) = self.by_source.lock().unwrap_or_else(PoisonError::into_inner).get(url) {
            return Ok(bytes.clone());
        }
        let bytes = Arc::new(receive(url, &self.trusted)?);
        self.by_source.lock().unwrap_or_else(PoisonError::into_inner).insert(url.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

/// The SHA-256 sum, in lower-case hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Takes an archive out of what was brought along.
fn brought(stock: &dyn Stock, supply: &Supply) -> Result<Vec<u8>, Diagnostic> {
    let name = shown(&supply.source);
    let Some(supplied) = stock.find(supply)? else { return Err(not_in_stock(stock, &name)) };
    let mut bytes = Vec::new();
    let read = supplied.content.take(LARGEST).read_to_end(&mut bytes);
    read.map_err(|e| Diagnostic::error("Bundle can't be read", format!("{name} out of {}: {e}.", stock.name())))?;
    if sha256(&bytes) == supplied.sha256 { Ok(bytes) } else { Err(damaged(stock, &name)) }
}

fn unreadable(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("File can't be read", format!("{} {why} on this machine.", path.display()))
        .with_hint("Correct the path, or put the file there.")
}

/// A file of this machine.
fn opened(source: &str) -> Result<(PathBuf, File), Diagnostic> {
    let path = source.strip_prefix("file://").unwrap_or(source);
    if let Some((scheme, _)) = path.split_once("://") {
        return Err(Diagnostic::error(
            "File can't be read",
            format!("\"{scheme}\" is not supported; write a path, or a file, http or https URL."),
        ));
    }
    let path = PathBuf::from(path);
    if !path.is_file() {
        return Err(unreadable(&path, if path.exists() { "is not a file" } else { "does not exist" }));
    }
    let file = File::open(&path).map_err(|e| unreadable(&path, &format!("can't be opened ({e})")))?;
    Ok((path, file))
}

fn local(source: &str) -> Result<Vec<u8>, Diagnostic> {
    let (path, file) = opened(source)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| unreadable(&path, &format!("can't be read ({e})")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(unreadable(&path, &format!("is larger than {} MiB", LARGEST >> 20)));
    }
    Ok(bytes)
}

/// For messages.
pub(crate) fn shown(source: &str) -> String {
    if !is_remote(source) {
        return source.to_owned();
    }
    without_credentials(source)
}

fn unfetched(url: &str, why: &str) -> Diagnostic {
    Diagnostic::error(UNFETCHED, format!("{}: {why}.", shown(url)))
        .with_hint("Check the URL and the network; a mirror or a local path can be given instead.")
}

/// `limit`: from the request to the last byte; `None`: as long as it takes.
fn ask(url: &str, trusted: &Trusted, limit: Option<Duration>) -> Result<ureq::http::Response<ureq::Body>, Diagnostic> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .tls_config(trust::tls(trusted)?)
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_global(limit)
        .user_agent(concat!("karmaform/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    match agent.get(url).call() {
        Ok(response) => Ok(response),
        Err(ureq::Error::StatusCode(status)) => Err(unfetched(url, &format!("the server answered with status {status}"))),
        Err(error) => {
            let problem = trust::problem(&error, UNFETCHED, &shown(url));
            Err(problem.unwrap_or_else(|| unfetched(url, &error.to_string()).retryable()))
        }
    }
}

fn length(response: &ureq::http::Response<ureq::Body>) -> Option<usize> {
    response.headers().get("content-length").and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok())
}

fn receive(url: &str, trusted: &Trusted) -> Result<Vec<u8>, Diagnostic> {
    let failed = |why: String| unfetched(url, &why);
    let mut response = ask(url, trusted, Some(LONGEST))?;
    let expected = length(&response);
    let mut bytes = Vec::new();
    let read = response.body_mut().as_reader().take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|e| failed(e.to_string()).retryable())?;
    match expected {
        _ if bytes.len() as u64 > LARGEST => Err(failed(format!("it is larger than {} MiB", LARGEST >> 20))),
        Some(expected) if expected != bytes.len() => Err(failed(format!("{} of {expected} bytes arrived", bytes.len())).retryable()),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::{BoxFuture, Shelved, Supplied};

    #[test]
    fn sums_are_checked_and_missing_files_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let path = file.path().to_str().unwrap();
        let get = |source: &str, sum: Option<&str>| Downloads::default().get(source, sum);
        let sum = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
        assert_eq!(get(path, Some(sum)).unwrap().as_slice(), b"abc");
        assert_eq!(get(&format!("file://{path}"), None).unwrap().len(), 3);
        let error = get(path, Some("00")).unwrap_err();
        assert!(error.summary == "Archive has the wrong sum" && error.detail.contains(&sum.to_lowercase()), "{error:?}");
        assert!(error.detail.contains("says 00"), "{error:?}");
        for (source, words) in [
            ("/does/not/exist.tgz", "/does/not/exist.tgz does not exist on this machine."),
            ("/proc", "/proc is not a file on this machine."),
            ("s3://a/b", "\"s3\" is not supported; write a path, or a file, http or https URL."),
        ] {
            let error = get(source, None).unwrap_err();
            assert_eq!((error.summary.as_str(), error.detail.as_str()), ("File can't be read", words));
        }
    }

    struct Brought(Supply, Vec<u8>);

    impl Stock for Brought {
        fn name(&self) -> String {
            "the bundle x".to_owned()
        }

        fn has(&self, supply: &Supply) -> bool {
            *supply == self.0
        }

        fn find(&self, supply: &Supply) -> Result<Option<Supplied>, Diagnostic> {
            let bytes = self.1.clone();
            let supplied =
                || Supplied { size: bytes.len() as u64, sha256: sha256(b"crds"), content: Box::new(std::io::Cursor::new(bytes)) };
            Ok(self.has(supply).then(supplied))
        }
    }

    #[test]
    fn with_a_bundle_nothing_is_downloaded() {
        // Nobody listens there: whoever asks fails.
        let (there, elsewhere) = ("https://127.0.0.1:1/crds.tgz", "https://u:hunter2@127.0.0.1:1/other.tgz");
        let with = |bytes: &[u8]| {
            let downloads = Downloads::default();
            downloads.use_stock(Arc::new(Brought(supply(there, Some("ab")), bytes.to_vec())));
            downloads
        };
        assert_eq!(with(b"crds").get(there, Some("ab")).unwrap().as_slice(), b"crds");
        assert_eq!(with(b"crd").get(there, Some("ab")).unwrap_err().summary, "Bundle is damaged");
        let error = with(b"crds").get(elsewhere, None).unwrap_err();
        assert!(error.summary == "Not in the bundle" && !error.detail.contains("hunter2"), "{error:?}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "local").unwrap();
        assert_eq!(with(b"crds").get(file.path().to_str().unwrap(), None).unwrap().as_slice(), b"local");
    }

    /// On which one backup lies.
    struct Shelf;

    impl Shelves for Shelf {
        fn choose<'a>(&'a self, _: &'a str, _: Option<&'a str>) -> BoxFuture<'a, Result<Shelved, Diagnostic>> {
            Box::pin(async { Ok(Shelved::default()) })
        }

        fn take(&self, _: &str) -> Result<Supplied, Diagnostic> {
            Ok(Supplied { content: Box::new(&b"snapshot"[..]), size: 8, sha256: sha256(b"snapshot") })
        }
    }

    #[test]
    fn backups_are_taken_off_shelves_unless_there_is_a_bundle() {
        let place = "s3://b/p/main-20260102T030405Z.db.age";
        let downloads = Downloads::default();
        downloads.use_shelves(Arc::new(Shelf));
        assert_eq!(downloads.get_ready(place), Ok(()));
        let (length, mut content) = downloads.open(place, "").ok().unwrap();
        let mut text = String::new();
        content.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), length), ("snapshot", 8));
        downloads.use_stock(Arc::new(Brought(supply("elsewhere", None), Vec::new())));
        assert_eq!(downloads.open(place, "").err().unwrap().summary, "Not in the bundle");
        assert_eq!(downloads.get_ready(place), Ok(()), "a bundle has it at hand, or not at all");
        let several = Downloads::default();
        several.use_shelves(Arc::new(Shelf));
        let why = several.open("s3://b/p/main", "").err().unwrap();
        assert!(why.detail.starts_with("\"s3\" is not supported"), "{why:?}");
    }

    #[test]
    fn no_password_of_an_address_is_shown() {
        assert_eq!(shown("https://u:p@h/a.tgz?token=t#x"), "https://h/a.tgz");
        assert_eq!(shown("dir/a#b.tgz"), "dir/a#b.tgz");
    }
}
