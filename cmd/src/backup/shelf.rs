//! Where backups lie: a directory, or a bucket.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::civil::DateTime;
use karmaform_engine::Pool;
use karmaform_model::{Diagnostic, Object, Value};
use karmaform_s3::S3Objects;

use super::retention;
use super::settings::in_block;

/// What follows the name of a backup that is encrypted.
pub(crate) const SEALED: &str = ".age";

/// A place.
pub(crate) enum Shelf {
    Directory(PathBuf),
    Bucket(Box<S3Objects>),
}

/// A backup on a shelf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// `NAME-20260102T030405Z`
    pub(crate) stem: String,
    /// In UTC.
    pub(crate) time: DateTime,
    /// The file with the data; `None`: it is gone, or was never whole.
    pub(crate) data: Option<String>,
    /// Its manifest, which is put there last.
    pub(crate) manifest: Option<String>,
    /// The length of the data, in bytes.
    pub(crate) size: u64,
}

impl Entry {
    /// True if all of it is there.
    pub(crate) fn is_whole(&self) -> bool {
        self.data.is_some() && self.manifest.is_some()
    }
}

impl Shelf {
    /// What people call a file there.
    pub(crate) fn place(&self, file: &str) -> String {
        match self {
            Self::Directory(directory) => directory.join(file).display().to_string(),
            Self::Bucket(bucket) => format!("{}/{file}", bucket.place()),
        }
    }

    /// Puts a file there under this name. The file is gone from where it was if it was on the same disk.
    pub(crate) async fn put(&self, file: &str, from: &Path) -> Result<(), Diagnostic> {
        match self {
            Self::Directory(directory) => {
                let moved = std::fs::File::open(from).and_then(|f| f.sync_all()).and_then(|()| std::fs::rename(from, directory.join(file)));
                let lasting = moved.and_then(|()| std::fs::File::open(directory)?.sync_all());
                lasting.map_err(|e| disk(&directory.join(file), &e))
            }
            Self::Bucket(bucket) => bucket.put(file, from).await.map_err(in_block),
        }
    }

    /// The text of a small file; `None`: there is none.
    pub(crate) async fn read(&self, file: &str) -> Result<Option<String>, Diagnostic> {
        let mut bytes = Vec::new();
        let is_there = match self {
            Self::Directory(directory) => match std::fs::read(directory.join(file)) {
                Ok(read) => {
                    bytes = read;
                    true
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
                Err(error) => return Err(disk(&directory.join(file), &error)),
            },
            Self::Bucket(bucket) => bucket.get(file, &mut bytes).await.map_err(in_block)?,
        };
        Ok(is_there.then(|| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Names and sizes of all that is there, backups or not.
    pub(crate) async fn files(&self) -> Result<BTreeMap<String, u64>, Diagnostic> {
        match self {
            Self::Directory(directory) => {
                let mut files = BTreeMap::new();
                for entry in std::fs::read_dir(directory).map_err(|e| disk(directory, &e))? {
                    let entry = entry.map_err(|e| disk(directory, &e))?;
                    let size = entry.metadata().map(|m| m.len()).unwrap_or_default();
                    files.insert(entry.file_name().to_string_lossy().into_owned(), size);
                }
                Ok(files)
            }
            Self::Bucket(bucket) => Ok(bucket.list().await.map_err(in_block)?.into_iter().map(|o| (o.name, o.size)).collect()),
        }
    }

    /// Removes a file; one that is gone is as good.
    pub(crate) async fn remove(&self, file: &str) -> Result<(), Diagnostic> {
        match self {
            Self::Directory(directory) => match std::fs::remove_file(directory.join(file)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(disk(&directory.join(file), &error)),
                _ => Ok(()),
            },
            Self::Bucket(bucket) => bucket.remove(file).await.map_err(in_block),
        }
    }
}

/// A place for who only looks: there is no way from here to putting anything there, or to taking anything away.
pub(crate) struct ShelfView(Seen);

enum Seen {
    Shelf(Shelf),
    /// A directory of a host, by the connection to that.
    OnHost {
        pool: Arc<Pool>,
        host: Value,
        directory: String,
    },
}

impl ShelfView {
    /// Of this place, which nobody can do anything else with from then on.
    pub(crate) fn of(shelf: Shelf) -> Self {
        Self(Seen::Shelf(shelf))
    }

    /// Of a directory of a host.
    pub(crate) fn on_host(pool: Arc<Pool>, host: Value, directory: String) -> Self {
        Self(Seen::OnHost { pool, host, directory })
    }

    /// As [`Shelf::files`].
    pub(crate) async fn files(&self) -> Result<BTreeMap<String, u64>, Diagnostic> {
        let seen = match &self.0 {
            Seen::Shelf(shelf) => return shelf.files().await,
            Seen::OnHost { pool, host, directory } => look(pool, host, directory, None).await?,
        };
        let sizes = seen.get("sizes").and_then(Value::as_entries).into_iter().flatten();
        Ok(sizes.filter_map(|(name, size)| Some((name.clone(), size.as_i64()?.unsigned_abs()))).collect())
    }

    /// As [`Shelf::read`].
    pub(crate) async fn read(&self, file: &str) -> Result<Option<String>, Diagnostic> {
        let seen = match &self.0 {
            Seen::Shelf(shelf) => return shelf.read(file).await,
            Seen::OnHost { pool, host, directory } => look(pool, host, directory, Some(file)).await?,
        };
        Ok(seen.get("contents").and_then(|c| c.get(file)?.as_str().map(str::to_owned)))
    }
}

async fn look(pool: &Pool, host: &Value, directory: &str, file: Option<&str>) -> Result<Object, Diagnostic> {
    let arguments = [("host", host.clone()), ("path", directory.into()), ("read", Value::strings(file))];
    pool.read("ssh_files", &arguments.map(|(name, value)| (name.to_owned(), value)).into()).await
}

/// The backups of this name among files, oldest first.
pub(crate) fn entries(name: &str, files: &BTreeMap<String, u64>) -> Vec<Entry> {
    let mut found: BTreeMap<DateTime, Entry> = BTreeMap::new();
    for (file, size) in files {
        let Some((stem, ending)) = file.split_at_checked(name.len() + retention::STAMP_LENGTH) else { continue };
        let Some(time) = retention::time(name, stem) else { continue };
        let new = || Entry { stem: stem.to_owned(), time, data: None, manifest: None, size: 0 };
        match ending {
            ".db" | ".db.age" => {
                let entry = found.entry(time).or_insert_with(new);
                (entry.data, entry.size) = (Some(file.clone()), *size);
            }
            ".db.json" => found.entry(time).or_insert_with(new).manifest = Some(file.clone()),
            _ => {}
        }
    }
    found.into_values().collect()
}

/// Whose a file is by its name, and of which backup; `None`: it is called as no backup is, so it is taken for a name. `main-20260102T030405Z.db.age` is of
/// `main`.
pub(crate) fn of_file(file: &str) -> (&str, Option<&str>) {
    let stem = [".db.age", ".db.json", ".db"].into_iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(file);
    let name = stem.len().checked_sub(retention::STAMP_LENGTH).and_then(|length| stem.get(..length)).unwrap_or_default();
    if name.is_empty() || retention::time(name, stem).is_none() { (file, None) } else { (name, Some(stem)) }
}

/// The disk refused.
pub(super) fn disk(file: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("The directory of backups can't be used", format!("{}: {error}.", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_its_data_and_its_manifest() {
        let files = [
            ("m-20260102T030405Z.db.age", 9),
            ("m-20260102T030405Z.db.json", 1),
            ("m-20260101T030405Z.db", 7),
            ("m-20260103T030405Z.db.json", 1),
            ("m-20260104T030405Z.db.part", 1),
            ("m-other-20260104T030405Z.db", 1),
            ("notes.txt", 1),
        ];
        let found = entries("m", &files.map(|(f, s)| (f.to_owned(), s)).into());
        let told: Vec<_> = found.iter().map(|e| (e.stem.as_str(), e.is_whole(), e.size)).collect();
        assert_eq!(told, [("m-20260101T030405Z", false, 7), ("m-20260102T030405Z", true, 9), ("m-20260103T030405Z", false, 0)]);
    }

    #[test]
    fn files_are_somebodys() {
        for (file, expected) in [
            ("m-20260102T030405Z.db.age", ("m", Some("m-20260102T030405Z"))),
            ("m-20260102T030405Z", ("m", Some("m-20260102T030405Z"))),
            ("m-20261302T030405Z", ("m-20261302T030405Z", None)),
            ("-20260102T030405Z", ("-20260102T030405Z", None)),
            ("main", ("main", None)),
            ("ü-main-of-all-sites", ("ü-main-of-all-sites", None)),
        ] {
            assert_eq!(of_file(file), expected, "{file}");
        }
    }
}
