//! One backup, from whose turn it is to what is noted of it. It counts only when a scratch etcd came back from it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::DateTime;
use karmaform_etcd::{About, Cluster, Saving, Survey, Tell, Turn, drill, save, survey, verify};
use karmaform_model::{Connections, Diagnostic};
use serde_json::{Value as Json, json};

use super::settings::Settings;
use super::shelf::{Entry, Shelf, disk, entries};
use super::work::Work;
use super::{owner, retention, sealing};
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
    Here {
        place: String,
        /// In bytes.
        size: u64,
        revision: i64,
        keys: Option<i64>,
        /// Its keys and values were compared with those that the member had.
        compared: bool,
        member: String,
    },
    /// There is nothing to do, because of this.
    ByAnother(&'static str),
}

/// Makes one. `shelf`: where it is to be, or why that can't be used, which the cluster is told then. `now`: seconds since 1970. `stopped` comes when it is to
/// end early.
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
    let who = format!("{} {}", settings.host, uuid::Uuid::new_v4());
    let ended = tokio::select! {
        biased;
        ended = when_it_is_time(settings, shelf, (&cluster, &who), (began, now), tell) => ended,
        () = stopped => Err(Diagnostic::error("A backup was ended", "It was told to end before it had come to its end.")),
    };
    match ended {
        Err(why) => {
            noting.release(&who).await;
            Err(failed(settings, &noting, now, why).await)
        }
        made => made,
    }
}

async fn when_it_is_time(
    settings: &Settings,
    shelf: Result<Shelf, Diagnostic>,
    (cluster, who): (&Cluster, &str),
    (began, now): (i64, &dyn Fn() -> i64),
    tell: Tell<'_>,
) -> Result<Made, Diagnostic> {
    tokio::time::sleep(STAGGER * u32::try_from(settings.rank).unwrap_or(0)).await;
    let is_full = survey(cluster).await.alarming("NOSPACE");
    if is_full && settings.rank > 0 {
        return Ok(Made::ByAnother("the cluster is full and takes no lock, so only the first host backs it up"));
    }
    let turn = if is_full {
        Turn::without_lock(cluster, &settings.name)
    } else {
        Turn::take(cluster, &settings.name, who, settings.timeout).await?
    };
    // From here on: who waits for another one has all of it.
    let limit = settings.timeout;
    let ended = tokio::time::timeout(limit, in_turn(settings, shelf, cluster, &turn, (began, now), tell)).await;
    turn.end().await;
    ended.unwrap_or_else(|_| {
        let detail = format!("It took longer than {} s, and was ended.", limit.as_secs());
        Err(Diagnostic::error("A backup takes too long", detail).with_hint("Raise `timeout` of the etcd_backup."))
    })
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
        tell(&format!("it is made, and not noted: {}", why.detail));
    }
    match tidy(settings, shelf, now()).await {
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

async fn make(
    settings: &Settings,
    shelf: &Shelf,
    (cluster, turn): (&Cluster, &Turn),
    now: &dyn Fn() -> i64,
    tell: Tell<'_>,
) -> Result<(Made, Json), Diagnostic> {
    let work = Work::make(&settings.directory, &settings.name)?;
    room(settings, shelf, &survey(cluster).await, now()).await?;
    owner::check(shelf, &settings.name, turn, &work).await?;
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
    let whole = file.clone();
    let mut verified = apart(move || verify(&whole)).await?;
    verified.manifest = Some(saved.manifest.clone());
    let drilled = drill(&file, &verified, settings.programs.as_deref(), &work.path.join("drill"), tell).await.map_err(without_hints)?;
    let mut manifest = saved.manifest.to_json();
    let mut ready = file;
    if !settings.recipients.is_empty() {
        tell("encrypting it");
        let (recipients, plain) = (settings.recipients.clone(), ready.clone());
        let (path, sealed) = apart(move || sealing::seal(&recipients, &plain)).await?;
        manifest["encrypted"] = sealed;
        drop(std::fs::remove_file(&ready));
        ready = path;
    }
    let name = ready.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let place = shelf.place(&name);
    turn.holds().await?;
    tell(&format!("putting it to {place}"));
    let beside = work.file("manifest", &format!("{manifest:#}\n"))?;
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
        "keys": drilled.keys, "sha256": of.sha256, "compared": drilled.same_hash.is_some(),
    });
    let (compared, member) = (drilled.same_hash.is_some(), of.member.0.clone());
    let made = Made::Here { place, size: of.size, revision: of.revision, keys: drilled.keys, compared, member };
    Ok((made, note))
}

/// For the file, for the scratch etcd, and for the etcd that may live on the same disk: without room nothing is begun.
async fn room(settings: &Settings, shelf: &Shelf, seen: &Survey, now: i64) -> Result<(), Diagnostic> {
    let database = seen.answered().map(|(_, facts)| facts.size.unsigned_abs()).max().unwrap_or(0);
    // The scratch etcd is gone before anything is encrypted.
    let needed = 2 * database + SPARE;
    let directory = &settings.directory;
    let free = || {
        let told = rustix::fs::statvfs(directory).map_err(|e| disk(directory, &e.into()))?;
        Ok::<_, Diagnostic>(told.f_bavail * told.f_frsize)
    };
    if free()? < needed && matches!(shelf, Shelf::Directory(_)) {
        tidy(settings, shelf, now).await?;
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

/// Hints that are for who does it by hand.
fn without_hints(why: Diagnostic) -> Diagnostic {
    let of_another = why.summary == "Programs of another version";
    let why = Diagnostic { hints: Vec::new(), ..why };
    if of_another { why.with_hint("`version` of the etcd_backup is that of its programs, and has to be the cluster's.") } else { why }
}

/// Reads or writes a whole database, while others hear signals and clocks.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, Diagnostic> + Send + 'static) -> Result<T, Diagnostic> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|_| Err(Diagnostic::error("A backup was ended", "The work on it ended early. This is a bug.")))
}

/// Removes old ones: their data first, so that nothing is listed as whole that is not.
async fn tidy(settings: &Settings, shelf: &Shelf, now: i64) -> Result<(), Diagnostic> {
    if settings.keep_all {
        return Ok(());
    }
    let found = entries(&settings.name, &shelf.files().await?);
    for entry in goes(&found, settings.keep, retention::at(now + SKEW)) {
        for file in [&entry.data, &entry.manifest].into_iter().flatten() {
            shelf.remove(file).await?;
        }
    }
    Ok(())
}

/// Those that go. What is of a time that is still to come is of a wrong clock: it neither goes nor keeps others from staying.
fn goes(found: &[Entry], keep: [usize; 3], now: DateTime) -> Vec<&Entry> {
    let past: Vec<&Entry> = found.iter().filter(|e| e.time <= now).collect();
    let times: BTreeSet<_> = past.iter().filter(|e| e.is_whole()).map(|e| e.time).collect();
    let old = retention::old(&times, keep);
    // What a run has left that was ended half-way counts for nothing either.
    let left = |e: &Entry| !e.is_whole() && times.last().is_some_and(|newest| e.time.saturating_add(LEFT_FOR) < *newest);
    past.into_iter().filter(|e| old.contains(&e.time) || left(e)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_were_wrong_and_runs_that_were_ended_cost_no_backup() {
        let whole = |stamp: &str| [format!("m-{stamp}.db"), format!("m-{stamp}.db.json")];
        let mut files: std::collections::BTreeMap<String, u64> =
            ["20310101T000000Z", "20260105T110000Z", "20260105T100000Z"].iter().flat_map(|s| whole(s)).map(|f| (f, 1)).collect();
        let half = ["m-20260101T000000Z.db", "m-20260105T103000Z.db", "m-99991231T235959Z.db.json"];
        files.extend(half.map(|f| (f.to_owned(), 1)));
        let found = entries("m", &files);
        let now = retention::time("m", "m-20260105T120000Z").unwrap();
        let gone = |keep: [usize; 3]| goes(&found, keep, now).iter().map(|e| e.stem.clone()).collect::<Vec<_>>();
        assert_eq!(gone([9, 9, 9]), ["m-20260101T000000Z"]);
        assert_eq!(gone([1, 0, 0]), ["m-20260101T000000Z", "m-20260105T100000Z"]);
    }

    #[test]
    fn without_room_nothing_is_begun() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let lines = "NAME=m\nADDRESS=etcd_backup.m\nHOST=a\nRANK=0\nKEEP_HOURLY=1\nKEEP_DAILY=0\nKEEP_WEEKLY=0\nKEEP_ALL=false\nTIMEOUT=60\nENDPOINTS=https://a:1\n";
        write("settings", &format!("{lines}DIRECTORY={}\n", folder.path().display()));
        for file in ["ca.crt", "client.crt", "client.key"] {
            write(file, "PEM");
        }
        let settings = Settings::read(folder.path()).unwrap();
        let facts = |size: i64| karmaform_etcd::Facts {
            member_id: 1,
            cluster_id: 1,
            leader: 1,
            version: "3.6.8".into(),
            storage_version: String::new(),
            learner: false,
            term: 1,
            index: 1,
            applied: 1,
            size,
            in_use: size,
            quota: -1,
            revision: 1,
            errors: Vec::new(),
            read: Ok(()),
        };
        let seen = Survey { members: [("a".to_owned(), Ok(facts(i64::MAX / 4)))].into(), list: Vec::new(), alarms: Vec::new() };
        let shelf = Shelf::Directory(settings.directory.clone());
        let why = crate::runtime::Executor::new().unwrap().block_on(room(&settings, &shelf, &seen, 0)).unwrap_err();
        assert_eq!(why.summary, "No room for a backup");
        assert!(why.detail.contains(" MiB are needed in "), "{}", why.detail);
    }
}
