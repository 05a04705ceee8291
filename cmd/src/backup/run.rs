//! One backup, from whose turn it is to what is noted of it. It counts only when a scratch etcd came back from it.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karmaform_encryption::AgeFiles;
use karmaform_etcd::{About, Cluster, Saving, Survey, Tell, Turn, drill, save, survey, verify};
use karmaform_model::{Connections, Diagnostic};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::retention;
use super::settings::Settings;
use super::shelf::{Entry, SEALED, Shelf, entries};
use crate::ui::json::timestamp;

/// Who may do it begin so long after each other, so that backups don't lie here and there.
const STAGGER: Duration = Duration::from_secs(3);
/// Clocks of hosts differ by so little, in seconds.
const SKEW: i64 = 5;
/// Room that is left to whoever else lives on the disk, in bytes.
const SPARE: u64 = 1 << 30;
/// What is not whole is removed when it is so much older than the newest that is.
const LEFT_FOR: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);
/// The longest reason that is noted, in characters.
const LONGEST_REASON: usize = 300;

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// It was made, and is here.
    Here { place: String, size: u64, revision: i64, keys: Option<i64>, member: String },
    /// There is nothing to do, because of this.
    ByAnother(&'static str),
}

/// Makes one. `shelf`: where it is to be, or why that can't be used, which the cluster is told then. `now`: seconds since 1970.
///
/// # Errors
/// Why there is none. The cluster was told, too.
pub(crate) async fn run(
    settings: &Settings,
    shelf: Result<Shelf, Diagnostic>,
    connections: Arc<dyn Connections>,
    now: &dyn Fn() -> i64,
    tell: Tell<'_>,
) -> Result<Made, Diagnostic> {
    let began = now();
    tokio::time::sleep(STAGGER * u32::try_from(settings.rank).unwrap_or(0)).await;
    let cluster = Cluster::new(&settings.cluster, connections)?;
    let seen = survey(&cluster).await;
    let is_full = seen.alarming("NOSPACE");
    if is_full && settings.rank > 0 {
        return Ok(Made::ByAnother("the cluster is full and takes no lock, so only the first host backs it up"));
    }
    let turn =
        if is_full { Turn::without_lock(&cluster, &settings.name) } else { Turn::take(&cluster, &settings.name, &settings.host).await? };
    let ended = in_turn(settings, shelf, &cluster, &seen, &turn, (began, now), tell).await;
    turn.end().await;
    ended
}

async fn in_turn(
    settings: &Settings,
    shelf: Result<Shelf, Diagnostic>,
    cluster: &Cluster,
    seen: &Survey,
    turn: &Turn,
    (began, now): (i64, &dyn Fn() -> i64),
    tell: Tell<'_>,
) -> Result<Made, Diagnostic> {
    if turn.newest().await?.is_some_and(|newest| newest > began - SKEW) {
        return Ok(Made::ByAnother("another one has done it"));
    }
    let shelf = &match shelf {
        Ok(shelf) => shelf,
        Err(why) => return Err(failed(settings, turn, now, why).await),
    };
    let (made, mut note) = match make(settings, shelf, cluster, seen, now, tell).await {
        Ok(done) => done,
        Err(why) => return Err(failed(settings, turn, now, why).await),
    };
    note["epoch"] = now().into();
    // A cluster that is full takes no note of it; the backup is there all the same.
    if let Err(why) = turn.made(&note).await {
        tell(&format!("it is made, but {}", why.detail));
    }
    match tidy(settings, shelf).await {
        Ok(()) => Ok(made),
        Err(why) => {
            let detail = format!("The backup was made, but old ones could not be removed: {}", why.detail);
            Err(failed(settings, turn, now, Diagnostic { detail, ..why }).await)
        }
    }
}

async fn failed(settings: &Settings, turn: &Turn, now: &dyn Fn() -> i64, why: Diagnostic) -> Diagnostic {
    let reason: String = format!("{}: {}", why.summary, why.detail).chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect();
    let note = json!({ "epoch": now(), "host": settings.host, "why": reason.trim_end_matches('.') });
    match turn.failed(&note).await {
        Ok(()) => why,
        Err(_) => Diagnostic { detail: format!("{} The cluster could not be told.", why.detail), ..why },
    }
}

/// A directory that goes.
struct Work(PathBuf);

impl Work {
    /// What an earlier run has left that did not come to its end goes first.
    fn make(path: PathBuf) -> Result<Self, Diagnostic> {
        drop(std::fs::remove_dir_all(&path));
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|e| disk(&path, &e))?;
        Ok(Self(path))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // The next run removes what could not be removed now.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

async fn make(
    settings: &Settings,
    shelf: &Shelf,
    cluster: &Cluster,
    seen: &Survey,
    now: &dyn Fn() -> i64,
    tell: Tell<'_>,
) -> Result<(Made, Json), Diagnostic> {
    let work = Work::make(settings.directory.join(format!(".work-{}", settings.name)))?;
    room(settings, shelf, seen).await?;
    let created = now();
    let stem = retention::stem(&settings.name, created);
    let file = work.0.join(format!("{stem}.db"));
    let about = About { created: timestamp(created), address: settings.address.clone(), ..About::default() };
    let saved = save(cluster, &file, &Saving { about, ..Saving::default() }, tell).await?;
    let verified = verify(&file)?;
    let drilled = drill(&file, &verified, settings.programs.as_deref(), &work.0.join("drill"), tell).await?;
    let mut manifest = saved.manifest.to_json();
    let mut ready = file;
    if !settings.recipients.is_empty() {
        tell("encrypting it");
        let (path, sealed) = seal(settings, &ready)?;
        manifest["encrypted"] = sealed;
        drop(std::fs::remove_file(&ready));
        ready = path;
    }
    let name = ready.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let place = shelf.place(&name);
    tell(&format!("putting it to {place}"));
    shelf.put(&name, &ready).await?;
    // Last, so that only what has one is whole.
    std::fs::write(&saved.manifest_file, format!("{manifest:#}\n")).map_err(|e| disk(&saved.manifest_file, &e))?;
    shelf.put(&format!("{stem}.db.json"), &saved.manifest_file).await?;
    let of = &saved.manifest;
    let note = json!({
        "created": of.about.created, "host": settings.host, "file": place, "size": of.size, "revision": of.revision,
        "keys": drilled.keys, "sha256": of.sha256,
    });
    let made = Made::Here { place, size: of.size, revision: of.revision, keys: drilled.keys, member: of.member.0.clone() };
    Ok((made, note))
}

/// For the file, for the scratch etcd, and for the etcd that may live on the same disk: without room nothing is begun.
async fn room(settings: &Settings, shelf: &Shelf, seen: &Survey) -> Result<(), Diagnostic> {
    let database = seen.answered().map(|(_, facts)| facts.size.unsigned_abs()).max().unwrap_or(0);
    let copies = if settings.recipients.is_empty() { 2 } else { 3 };
    let needed = copies * database + SPARE;
    let directory = &settings.directory;
    let free = || {
        let told = rustix::fs::statvfs(directory).map_err(|e| disk(directory, &e.into()))?;
        Ok::<_, Diagnostic>(told.f_bavail * told.f_frsize)
    };
    if free()? < needed {
        tidy(settings, shelf).await?;
    }
    let found = free()?;
    if found >= needed {
        return Ok(());
    }
    let mib = |bytes: u64| bytes >> 20;
    let detail = format!("There is no room: {} MiB are needed in {}, and {} are free.", mib(needed), directory.display(), mib(found));
    Err(Diagnostic::error("No room for a backup", detail)
        .with_hint("Make room there, keep fewer of them, or let `directory` be on another disk."))
}

/// The encrypted file, and what the manifest says of it.
fn seal(settings: &Settings, file: &Path) -> Result<(PathBuf, Json), Diagnostic> {
    let mut name = file.as_os_str().to_owned();
    name.push(SEALED);
    let path = PathBuf::from(name);
    let recipients: Vec<&str> = settings.recipients.iter().map(String::as_str).collect();
    let unusable = |e: std::io::Error| disk(&path, &e);
    let mut from = BufReader::with_capacity(1 << 20, File::open(file).map_err(unusable)?);
    let to = File::options().write(true).create_new(true).mode(0o600).open(&path).map_err(unusable)?;
    let mut to = BufWriter::with_capacity(1 << 20, to);
    AgeFiles::new(&recipients, None)?.seal(&mut from, &mut to)?;
    to.flush().map_err(unusable)?;
    let (size, sha256) = sum(&path).map_err(unusable)?;
    Ok((path, json!({ "by": "age", "size": size, "sha256": sha256 })))
}

/// The length of a file, in bytes, and its SHA-256 sum.
fn sum(path: &Path) -> std::io::Result<(u64, String)> {
    let (mut file, mut digest, mut size) = (File::open(path)?, Sha256::new(), 0);
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            n => {
                digest.update(&piece[..n]);
                size += n as u64;
            }
        }
    }
    Ok((size, digest.finalize().iter().map(|b| format!("{b:02x}")).collect()))
}

/// Removes old ones: their data first, so that nothing is listed as whole that is not.
async fn tidy(settings: &Settings, shelf: &Shelf) -> Result<(), Diagnostic> {
    let found = entries(&settings.name, &shelf.files().await?);
    let times: BTreeSet<_> = found.iter().filter(|e| e.is_whole()).map(|e| e.time).collect();
    let old = retention::old(&times, settings.keep);
    // What a run has left that was ended half-way counts for nothing, and keeps none from staying.
    let left = |e: &Entry| !e.is_whole() && times.last().is_some_and(|newest| e.time + LEFT_FOR < *newest);
    for entry in found.iter().filter(|e| old.contains(&e.time) || left(e)) {
        for file in [&entry.data, &entry.manifest].into_iter().flatten() {
            shelf.remove(file).await?;
        }
    }
    Ok(())
}

fn disk(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("The directory of backups can't be used", format!("{}: {error}.", path.display()))
}
