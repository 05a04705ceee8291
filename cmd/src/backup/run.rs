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
use super::settings::{Settings, in_block};
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
    (tell, stopped): (Tell<'_>, impl Future<Output = ()>),
) -> Result<Made, Diagnostic> {
    let began = now();
    let cluster = Cluster::new(&settings.cluster, connections)?;
    let noting = Turn::without_lock(&cluster, &settings.name);
    let limit = settings.timeout;
    let ended = tokio::select! {
        ended = when_it_is_time(settings, shelf, &cluster, (began, now), tell) => ended,
        () = tokio::time::sleep(limit) => {
            let detail = format!("It took longer than {} s, and was ended.", limit.as_secs());
            Err(Diagnostic::error("A backup takes too long", detail).with_hint("Raise `timeout` of the etcd_backup."))
        }
        () = stopped => Err(Diagnostic::error("A backup was ended", "It was told to end before it had come to its end.")),
    };
    match ended {
        Err(why) => Err(failed(settings, &noting, now, why).await),
        made => made,
    }
}

async fn when_it_is_time(
    settings: &Settings,
    shelf: Result<Shelf, Diagnostic>,
    cluster: &Cluster,
    (began, now): (i64, &dyn Fn() -> i64),
    tell: Tell<'_>,
) -> Result<Made, Diagnostic> {
    tokio::time::sleep(STAGGER * u32::try_from(settings.rank).unwrap_or(0)).await;
    let is_full = survey(cluster).await.alarming("NOSPACE");
    if is_full && settings.rank > 0 {
        return Ok(Made::ByAnother("the cluster is full and takes no lock, so only the first host backs it up"));
    }
    let turn =
        if is_full { Turn::without_lock(cluster, &settings.name) } else { Turn::take(cluster, &settings.name, &settings.host).await? };
    let ended = in_turn(settings, shelf, cluster, &turn, (began, now), tell).await;
    turn.end().await;
    ended
}

async fn in_turn(
    settings: &Settings,
    shelf: Result<Shelf, Diagnostic>,
    cluster: &Cluster,
    turn: &Turn,
    (began, now): (i64, &dyn Fn() -> i64),
    tell: Tell<'_>,
) -> Result<Made, Diagnostic> {
    // One that was made by other settings says nothing of these; and one that is still to come is of a clock that was wrong.
    let is_done = |note: &Json| {
        let epoch = note["epoch"].as_i64().unwrap_or(0);
        epoch > began - SKEW && epoch <= now() + SKEW && note["settings"] == *settings.digest
    };
    if turn.newest().await?.is_some_and(|newest| is_done(&newest)) {
        return Ok(Made::ByAnother("another one has done it"));
    }
    let shelf = &shelf?;
    let (made, mut note) = make(settings, shelf, (cluster, turn), now, tell).await?;
    note["epoch"] = now().into();
    note["settings"] = settings.digest.as_str().into();
    // A cluster that is full takes no note of it; the backup is there all the same.
    if let Err(why) = turn.made(&note).await {
        tell(&format!("it is made, but {}", why.detail));
    }
    match tidy(settings, shelf).await {
        Ok(()) => Ok(made),
        Err(why) => {
            let detail = format!("The backup was made, but old ones could not be removed: {}", why.detail);
            Err(Diagnostic { detail, ..why }.with_hint("Where they are not to be removed, write `keep_all = true`."))
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

/// A directory that goes, in one that nobody else works in meanwhile: of a cluster that is full the lock in etcd keeps nobody apart.
struct Work {
    path: PathBuf,
    _alone: File,
}

impl Work {
    /// What an earlier run has left that did not come to its end goes first.
    fn make(directory: &Path, name: &str) -> Result<Self, Diagnostic> {
        let make = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| disk(path, &e));
        make(directory)?;
        let alone = File::open(directory).map_err(|e| disk(directory, &e))?;
        if alone.try_lock().is_err() {
            let detail = format!("Another one works in {}.", directory.display());
            return Err(Diagnostic::error("No backup can be begun", detail));
        }
        let path = directory.join(format!(".work-{name}"));
        drop(std::fs::remove_dir_all(&path));
        make(&path)?;
        Ok(Self { path, _alone: alone })
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // The next run removes what could not be removed now.
        drop(std::fs::remove_dir_all(&self.path));
    }
}

async fn make(
    settings: &Settings,
    shelf: &Shelf,
    (cluster, turn): (&Cluster, &Turn),
    now: &dyn Fn() -> i64,
    tell: Tell<'_>,
) -> Result<(Made, Json), Diagnostic> {
    let work = Work::make(&settings.directory, &settings.name)?;
    room(settings, shelf, &survey(cluster).await).await?;
    whose(shelf, &settings.name, turn, &work).await?;
    let unsaved = work.path.join("snapshot.db");
    let about = About { address: settings.address.clone(), ..About::default() };
    let mut saved = save(cluster, &unsaved, &Saving { about, ..Saving::default() }, tell).await.map_err(without_hints)?;
    // Nothing that is later than its name is in it: who looks for what was there at a time finds that.
    let created = now();
    let stem = retention::stem(&settings.name, created);
    let file = work.path.join(format!("{stem}.db"));
    saved.manifest.about.created = timestamp(created);
    std::fs::rename(&unsaved, &file).map_err(|e| disk(&file, &e))?;
    drop(std::fs::remove_file(&saved.manifest_file));
    let mut verified = verify(&file)?;
    verified.manifest = Some(saved.manifest.clone());
    let drilled = drill(&file, &verified, settings.programs.as_deref(), &work.path.join("drill"), tell).await.map_err(without_hints)?;
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
    turn.holds().await?;
    tell(&format!("putting it to {place}"));
    let beside = work.path.join("manifest");
    write(&beside, &format!("{manifest:#}\n"))?;
    // The manifest last, so that only what has one is whole.
    let put = match shelf.put(&name, &ready).await {
        Ok(()) => shelf.put(&format!("{stem}.db.json"), &beside).await,
        failed => failed,
    };
    if let Err(why) = put {
        // Else each try would leave a whole database; what can't be removed is told by the error already.
        drop(shelf.remove(&name).await);
        return Err(why);
    }
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
    // The scratch etcd is gone before anything is encrypted.
    let needed = 2 * database + SPARE;
    let directory = &settings.directory;
    let free = || {
        let told = rustix::fs::statvfs(directory).map_err(|e| disk(directory, &e.into()))?;
        Ok::<_, Diagnostic>(told.f_bavail * told.f_frsize)
    };
    if free()? < needed && matches!(shelf, Shelf::Directory(_)) {
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

/// Whether what lies in the bucket under this name is this cluster's: two that are called alike would remove each other's backups.
async fn whose(shelf: &Shelf, name: &str, turn: &Turn, work: &Work) -> Result<(), Diagnostic> {
    let Shelf::Bucket(bucket) = shelf else { return Ok(()) };
    let file = format!("{name}.owner");
    let mut there = Vec::new();
    let there = bucket.get(&file, &mut there).await.map_err(in_block)?.then(|| String::from_utf8_lossy(&there).trim().to_owned());
    let here = turn.owner().await?;
    if there.is_some() && there == here {
        return Ok(());
    }
    if there.is_some() {
        let detail = format!("{} says that the backups there are of another cluster.", shelf.place(&file));
        return Err(Diagnostic::error("A prefix of another cluster", detail).with_hint(
            "Take another `s3.prefix`. If that cluster is gone and this one is in its place, remove that file: what lies there is this one's then.",
        ));
    }
    let owner = match here {
        Some(owner) => owner,
        None => {
            let owner = uuid::Uuid::new_v4().to_string();
            turn.own(&owner).await?;
            owner
        }
    };
    let mark = work.path.join("owner");
    write(&mark, &owner)?;
    shelf.put(&file, &mark).await
}

/// Hints that are for who does it by hand.
fn without_hints(why: Diagnostic) -> Diagnostic {
    let of_another = why.summary == "Programs of another version";
    let why = Diagnostic { hints: Vec::new(), ..why };
    if of_another { why.with_hint("`version` of the etcd_backup is that of its programs, and has to be the cluster's.") } else { why }
}

fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    let file = File::options().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| disk(path, &e))
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
    if settings.keep_all {
        return Ok(());
    }
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
