//! The shelves that are lent to providers: buckets, as the environment reaches them, for what is restored out of one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use karmaform_etcd::{Manifest, beside};
use karmaform_model::{BoxFuture, Diagnostic, Shelved, Shelves, Supplied};

use super::getting::{choose, fetch, gone, identity, moment};
use super::place;
use super::retention::at;
use super::shelf::{Entry, SEALED, Shelf, entries};
use super::unfinished::Unfinished;
use crate::disk::reason_to_write;

/// Names the file with the identities of age that decrypt backups.
const IDENTITY: &str = "KF_AGE_IDENTITY_FILE";
/// These name a store that is not Amazon's, and all of those know buckets in the path.
const ENDPOINTS: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

/// Buckets, by what the environment says of them.
pub(crate) struct Buckets {
    environment: BTreeMap<String, String>,
    home: Option<PathBuf>,
    /// What was got in this run or can't be, by its place. Each is asked for once.
    got: Mutex<BTreeMap<String, Once>>,
}

/// Who comes while it is got waits for it.
type Once = Arc<OnceLock<Result<Got, Diagnostic>>>;

/// A snapshot in a file without a name, so that it goes with the run however that ends: from when it is whole, it has none any more.
#[derive(Clone)]
struct Got {
    file: Arc<File>,
    size: u64,
    sha256: String,
}

/// A backup that was found.
struct Found {
    shelf: Shelf,
    entry: Entry,
}

impl Buckets {
    /// By these variables, and by what is in `.aws` below `home`.
    pub(crate) fn new(environment: BTreeMap<String, String>, home: Option<PathBuf>) -> Self {
        Self { environment, home, got: Mutex::default() }
    }

    async fn find(&self, from: &str, before: Option<&str>) -> Result<Found, Diagnostic> {
        let place = place::read(from)?.ok_or_else(|| place::none(from))?;
        let time = before.map(|text| moment("`before`", text)).transpose()?;
        if place.backup.is_some() && before.is_some() {
            return Err(place::named_twice(from, "`before`"));
        }
        let mut bucket = place.bucket;
        bucket.use_path_style = ENDPOINTS.iter().any(|name| self.environment.get(*name).is_some_and(|url| !url.is_empty()));
        let opened = bucket.open(&self.environment, self.home.as_deref()).map_err(place::in_environment)?;
        let shelf = Shelf::Bucket(Box::new(opened));
        let found = entries(&place.name, &shelf.files().await?);
        let entry = choose(found, place.backup.as_deref(), time, at(Timestamp::now().as_second()))?;
        Ok(Found { shelf, entry })
    }

    async fn get(&self, place: &str) -> Result<Got, Diagnostic> {
        let Found { shelf, entry } = self.find(place, None).await?;
        let file = self.environment.get(IDENTITY).filter(|file| !file.is_empty());
        let identity = file.map(|file| identity(Path::new(file), &format!("that {IDENTITY} names"))).transpose()?;
        let directory = self.directory();
        let unwritable = |e: std::io::Error| {
            Diagnostic::error("The file can't be written", format!("{}: {}.", directory.display(), reason_to_write(&e)))
        };
        let work = std::fs::create_dir_all(&directory).and_then(|()| Unfinished::new(&directory)).map_err(unwritable)?;
        // Not in it itself, which is locked, by us too: who fetches makes such a directory beside what is to be there.
        let inside = work.path().join("got");
        std::fs::create_dir(&inside).map_err(unwritable)?;
        let out = inside.join("got.db");
        let its = beside(&out);
        fetch(&shelf, &entry, identity.as_ref(), (&out, &its)).await.map_err(in_environment)?;
        let told = manifest(place, &std::fs::read_to_string(&its).map_err(unwritable)?)?;
        let file = File::open(&out).map_err(unwritable)?;
        Ok(Got { file: Arc::new(file), size: told.size, sha256: told.sha256 })
    }

    /// Where there is room: that of what is fetched for hosts.
    fn directory(&self) -> PathBuf {
        let cache = self.environment.get("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = cache.or_else(|| Some(self.home.as_ref()?.join(".cache")));
        cache.unwrap_or_else(std::env::temp_dir).join("karmaform")
    }
}

impl Shelves for Buckets {
    fn choose<'a>(&'a self, from: &'a str, before: Option<&'a str>) -> BoxFuture<'a, Result<Shelved, Diagnostic>> {
        Box::pin(async move {
            let Found { shelf, entry } = self.find(from, before).await?;
            let (data, its) = (entry.data.as_deref().unwrap_or_default(), entry.manifest.as_deref().unwrap_or_default());
            let place = shelf.place(data);
            let text = shelf.read(its).await?.ok_or_else(|| gone(&entry))?;
            let Manifest { size, sha256, revision, version, about, .. } = manifest(&place, &text)?;
            Ok(Shelved { is_encrypted: data.ends_with(SEALED), created: about.created, place, size, sha256, revision, version })
        })
    }

    fn take(&self, place: &str) -> Result<Supplied, Diagnostic> {
        // What is newest may be another one than what was chosen.
        if place::read(place)?.is_none_or(|place| place.backup.is_none()) {
            return Err(not_one(place));
        }
        let cell = Arc::clone(self.got.lock().unwrap_or_else(PoisonError::into_inner).entry(place.to_owned()).or_default());
        // Who wants the same waits, since it is large, and hears the same.
        let got = cell.get_or_init(|| tokio::runtime::Handle::current().block_on(self.get(place)).map_err(in_vain)).clone()?;
        Ok(Supplied { content: Box::new(ByPlace { file: got.file, at: 0 }), size: got.size, sha256: got.sha256 })
    }
}

/// Backups that are not told apart.
fn not_one(place: &str) -> Diagnostic {
    Diagnostic::error("Not one backup", format!("\"{place}\" does not say which backup it is."))
        .with_hint("Write the name of one: s3://BUCKET/PREFIX/NAME-20260102T030405Z.db.age.")
}

/// What can't be got is not tried again in the same run. Who needs nothing of it any more is told how to do without.
fn in_vain(why: Diagnostic) -> Diagnostic {
    let why =
        why.with_hint("If the restoration has ended and only a member joins, take the block `restore` out: there is nothing to restore.");
    Diagnostic { retryable: false, ..why }
}

fn manifest(place: &str, text: &str) -> Result<Manifest, Diagnostic> {
    Manifest::read(text).map_err(|why| {
        Diagnostic::error("The manifest of a backup can't be read", format!("That of {place}: {why}."))
            .with_hint("Take another backup, or one that this version of karmaform has made.")
    })
}

/// What is said of the flag of a command, in words for who has none.
fn in_environment(mut why: Diagnostic) -> Diagnostic {
    let worded = |hint: &String| hint.replace("Give -identity FILE:", &format!("Let {IDENTITY} name"));
    why.hints = why.hints.iter().map(worded).collect();
    why
}

/// Reads a file from its beginning, whoever else reads it.
struct ByPlace {
    file: Arc<File>,
    at: u64,
}

impl Read for ByPlace {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read_at(buffer, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(variables: &[(&str, &str)], from: &str, before: Option<&str>) -> Diagnostic {
        let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Buckets::new(environment, None).choose(from, before)).unwrap_err()
    }

    #[test]
    fn what_is_no_place_or_no_time_is_told_before_anybody_is_asked() {
        assert_eq!(refused(&[], "s3://b/main", None).summary, "Not a place of backups");
        assert_eq!(refused(&[], "main.db", None).summary, "Not a place of backups");
        assert_eq!(refused(&[], "s3://b/p/main", Some("yesterday")).detail, "`before` is \"yesterday\".");
        let both = refused(&[], "s3://b/p/main-20260102T030405Z.db", Some("2026-01-02T03:04:05Z"));
        assert_eq!(both.summary, "Which backup?");
        let nowhere = refused(&[], "s3://b/p/main", None);
        assert_eq!(nowhere.hints, ["Set AWS_REGION; or AWS_ENDPOINT_URL_S3, for a store that is not Amazon's."]);
    }

    #[test]
    fn one_backup_is_taken_and_what_fails_is_not_tried_again() {
        let taken = |buckets: &Buckets, place: &str| buckets.take(place).err().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let buckets = Buckets::new(BTreeMap::new(), None);
        assert_eq!(taken(&buckets, "s3://b/p/main").summary, "Not one backup");
        assert_eq!(taken(&buckets, "main.db").summary, "Not one backup");
        assert!(buckets.got.lock().unwrap().is_empty());
        let place = "s3://b/p/main-20260102T030405Z.db";
        let why = taken(&buckets, place);
        assert!(why.hints.iter().any(|hint| hint.contains("take the block `restore` out")) && !why.retryable, "{why:?}");
        let cell = Arc::clone(&buckets.got.lock().unwrap()[place]);
        assert_eq!(cell.get().and_then(|got| got.as_ref().err()), Some(&why));
        assert_eq!(taken(&buckets, place), why);
    }

    #[test]
    fn what_is_no_manifest_is_told() {
        let why = manifest("s3://b/p/main-20260102T030405Z.db", "{}").unwrap_err();
        assert_eq!(why.summary, "The manifest of a backup can't be read");
        assert!(why.detail.starts_with("That of s3://b/p/main-20260102T030405Z.db: it is no manifest"), "{}", why.detail);
    }

    #[test]
    fn many_read_one_file() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), "abc").unwrap();
        let file = Arc::new(File::open(path.path()).unwrap());
        for _ in 0..2 {
            let mut text = String::new();
            ByPlace { file: Arc::clone(&file), at: 0 }.read_to_string(&mut text).unwrap();
            assert_eq!(text, "abc");
        }
    }
}
