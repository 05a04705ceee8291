//! Saving a cluster: the stream of one member into a file that is there only once it is known to be whole.
//!
//! A snapshot holds everything: Secrets, password hashes, leases, alarms. So it is for nobody else (0600), and what is left of one that failed goes.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use karmaform_model::Diagnostic;

use super::defragment::corrupt;
use super::file::{Reading, Sums};
use super::survey::LAG;
use super::{About, Cluster, Facts, Manifest, Survey, Tell, hash, hashes, not_whole, survey};
use crate::care::bytes;
use crate::client::within;
use crate::look::reason;

/// A stream that brings nothing for so long is lost.
const STALLED: Duration = Duration::from_secs(30);
/// How often it is told how far it is, in bytes.
const STEP: u64 = 64 << 20;

/// How to save it.
#[derive(Clone, Debug, Default)]
pub struct Saving {
    /// From this member; else from a follower that works and lags least.
    pub member: Option<String>,
    /// Also where the cluster is not whole or its members' data differ: the last that can be had of a cluster that is lost.
    pub force: bool,
    /// For the manifest.
    pub about: About,
}

/// What was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The manifest.
    pub manifest: Manifest,
    /// Where it stands.
    pub manifest_file: PathBuf,
}

/// Saves it into a file that is not there yet, with its manifest beside it as `FILE.json`.
///
/// # Errors
/// No member is fit, the stream ended early or was damaged, or the disk refused: then nothing is left.
pub async fn save(cluster: &Cluster, file: &Path, saving: &Saving, tell: Tell<'_>) -> Result<Saved, Diagnostic> {
    let manifest_file = beside(file);
    for path in [file, &manifest_file] {
        if path.symlink_metadata().is_ok() {
            let detail = format!("{} is there already, and no snapshot is written over anything.", path.display());
            return Err(Diagnostic::error("The file is there already", detail).with_hint("Give another name, or move it away."));
        }
    }
    let seen = survey(cluster).await;
    let (name, before) = source(cluster, &seen, saving)?;
    if !saving.force && before.read.is_ok() {
        alike(cluster, &name).await?;
    }
    tell(&format!("from member {name}{}", if before.leads() { ", the leader" } else { "" }));
    let failed = |why: String| {
        let detail = format!("The snapshot of member {name} is not to be used: {why}. Nothing of it is left.");
        Diagnostic::error("No snapshot was made", detail).with_hint("Run this again, or take it from another member with -member.")
    };
    let mut connection = cluster.client.open_for(&name, hash::LIMIT).await.map_err(failed)?;
    // Compaction may come between; then there is nothing to compare with later, and that is all.
    let hash = hash::of(&mut connection, before.revision).await.ok().map(|h| (h.hash, h.compacted));
    let part = Part::create(file)?;
    let sums = stream(&mut connection, &part, tell).await.map_err(failed)?;
    let own = within(connection.status()).await.ok().and_then(|s| s.header().map(etcd_client::ResponseHeader::revision));
    let after = match own {
        Some(after) => after,
        // It has said all that is needed of it, and may be gone by now: a good snapshot is not to be taken for a damaged one for that.
        None => newest(&survey(cluster).await),
    };
    let manifest = Manifest {
        size: sums.size,
        sha256: sums.sha256,
        revision: before.revision,
        revision_at_most: after.max(before.revision),
        hash,
        cluster_id: format!("{:x}", before.cluster_id),
        // Who has only URLs of members asks them by those.
        member: (seen.listed(before.member_id).unwrap_or(&name).to_owned(), format!("{:x}", before.member_id)),
        version: before.version.clone(),
        storage_version: before.storage_version.clone(),
        about: saving.about.clone(),
    };
    let beside = Part::create(&manifest_file)?;
    let text = format!("{:#}\n", manifest.to_json());
    (&beside.file).write_all(text.as_bytes()).map_err(|e| disk(&manifest_file, &e))?;
    part.keep()?;
    beside.keep()?;
    Ok(Saved { manifest, manifest_file })
}

/// Where the manifest of a snapshot stands.
pub fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

/// Which member it is taken from.
fn source(cluster: &Cluster, seen: &Survey, saving: &Saving) -> Result<(String, Facts), Diagnostic> {
    let hint = "Mend that first, or save what one member has with -member NAME -force: the last that can be had of a cluster that is lost.";
    if seen.alarming("CORRUPT") && !saving.force {
        return Err(corrupt());
    }
    let fit = |f: &Facts| f.read.is_ok() && f.leader != 0 && !f.learner && f.errors.iter().all(|e| is_harmless(e)) && seen.lag(f) <= LAG;
    if let Some(name) = &saving.member {
        cluster.member(name)?;
        return match seen.members.get(name) {
            Some(Ok(facts)) if saving.force || fit(facts) => Ok((name.clone(), facts.clone())),
            Some(Ok(_)) => Err(not_whole("saved", &[format!("member {name} is not fit: {}", seen.troubles().join("; "))]).with_hint(hint)),
            Some(Err(why)) => Err(not_whole("saved", &[format!("member {name}: {why}")])),
            None => Err(not_whole("saved", &[format!("member {name} did not answer")])),
        };
    }
    let mut able: Vec<(&String, &Facts)> = seen.answered().filter(|(_, f)| fit(f)).collect();
    // A member that streams has a reader of its database open all the while: that is no work for a leader.
    able.sort_by_key(|(name, f)| (f.leads(), seen.lag(f), *name));
    able.first()
        .map(|(name, facts)| ((*name).clone(), (*facts).clone()))
        .ok_or_else(|| not_whole("saved", &seen.troubles()).with_hint(hint))
}

/// What no revision of a moment ago is above: that of who has heard of all that was written by now. Where nobody has, nothing can be said.
fn newest(seen: &Survey) -> i64 {
    seen.answered().filter(|(_, facts)| facts.read.is_ok()).map(|(_, facts)| facts.revision).max().unwrap_or(i64::MAX)
}

/// A database that is full can be saved, and wants to be.
fn is_harmless(error: &str) -> bool {
    error.contains("NOSPACE")
}

/// A copy of what differs from the others would be no copy of the cluster.
async fn alike(cluster: &Cluster, name: &str) -> Result<(), Diagnostic> {
    let found = hashes(cluster, None).await?;
    if !found.odd().contains(&name) {
        return Ok(());
    }
    let detail = format!("At revision {} member {name} has other data than the others.", found.revision);
    Err(Diagnostic::error("The data of members differ", detail)
        .with_hint("Look with etcd hashkv which member differs from most, and take another with -member, or this one with -force."))
}

async fn stream(connection: &mut etcd_client::Client, part: &Part, tell: Tell<'_>) -> Result<Sums, String> {
    let mut stream = within(connection.snapshot()).await.map_err(|e| reason(&e))?;
    let mut reading = Reading::default();
    let (mut told, mut had) = (0, 0);
    loop {
        let message = tokio::time::timeout(STALLED, stream.message()).await;
        let message = message.map_err(|_| format!("nothing came for {} s", STALLED.as_secs()))?.map_err(|e| reason(&e))?;
        let Some(message) = message else { break };
        reading.push(message.blob());
        (&part.file).write_all(message.blob()).map_err(|e| format!("it can't be written: {e}"))?;
        had += message.blob().len() as u64;
        if had / STEP > told {
            told = had / STEP;
            let all = had + message.remaining_bytes();
            let of = |n: u64| bytes(i64::try_from(n).unwrap_or(i64::MAX));
            tell(&format!("{} of {}", of(had), of(all)));
        }
    }
    part.file.sync_all().map_err(|e| format!("it can't be written: {e}"))?;
    reading.end()
}

/// A file under a name for the time being, which goes unless it is kept.
struct Part {
    file: File,
    now: PathBuf,
    then: PathBuf,
    kept: bool,
}

impl Part {
    fn create(then: &Path) -> Result<Self, Diagnostic> {
        let mut name = then.as_os_str().to_owned();
        name.push(format!(".part-{}", std::process::id()));
        let now = PathBuf::from(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&now).map_err(|e| disk(then, &e))?;
        Ok(Self { file, now, then: then.to_owned(), kept: false })
    }

    fn keep(mut self) -> Result<(), Diagnostic> {
        let kept = self.file.sync_all().and_then(|()| std::fs::rename(&self.now, &self.then));
        kept.map_err(|e| disk(&self.then, &e))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.kept {
            // Already gone is as good.
            drop(std::fs::remove_file(&self.now));
        }
    }
}

fn disk(file: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("The snapshot can't be written", format!("{} can't be written: {error}.", file.display()))
        .with_hint("Name a file in a directory that is there, where this may write, with room for the whole database.")
}

#[cfg(test)]
mod tests {
    use super::super::survey::tests::three;
    use super::super::tests::Nowhere;
    use super::*;

    fn chosen(seen: &Survey, saving: &Saving) -> Result<String, String> {
        let members = karmaform_model::Value::strings(["http://a:1", "http://b:1", "http://c:1"]);
        let connection = karmaform_model::Object::from([("endpoints".to_owned(), members)]);
        let cluster = Cluster::new(&connection, std::sync::Arc::new(Nowhere)).unwrap();
        source(&cluster, seen, saving).map(|(name, _)| name).map_err(|d| d.detail)
    }

    #[test]
    fn a_follower_that_works_is_taken() {
        let any = Saving::default();
        let mut seen = three();
        assert_eq!(chosen(&seen, &any), Ok("b".into()));
        seen.members.get_mut("b").unwrap().as_mut().unwrap().read = Err("no leader".into());
        assert_eq!(chosen(&seen, &any), Ok("c".into()));
        seen.members.get_mut("c").unwrap().as_mut().unwrap().errors = vec!["memberID:1 alarm:NOSPACE ".into()];
        assert_eq!(chosen(&seen, &any), Ok("c".into()));
        seen.members.get_mut("c").unwrap().as_mut().unwrap().applied = 1;
        assert_eq!(chosen(&seen, &any), Ok("a".into()));
        seen.members.get_mut("a").unwrap().as_mut().unwrap().learner = true;
        assert!(chosen(&seen, &any).unwrap_err().contains("member b: no leader"));
        let named = Saving { member: Some("d".into()), ..any };
        assert!(chosen(&seen, &named).unwrap_err().contains("no member \"d\""));
    }

    #[test]
    fn others_say_what_can_be_in_it_when_its_member_is_gone() {
        let mut seen = three();
        seen.members.insert("b".into(), Err("connection refused".into()));
        seen.members.get_mut("c").unwrap().as_mut().unwrap().revision = 9;
        assert_eq!(newest(&seen), 9);
        // Who hears no others may lag.
        seen.members.get_mut("c").unwrap().as_mut().unwrap().read = Err("no leader".into());
        assert_eq!(newest(&seen), 7);
        seen.members.get_mut("a").unwrap().as_mut().unwrap().read = Err("no leader".into());
        assert_eq!(newest(&seen), i64::MAX);
    }

    #[test]
    fn what_is_not_kept_goes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.db");
        let part = Part::create(&file).unwrap();
        (&part.file).write_all(b"x").unwrap();
        drop(part);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        Part::create(&file).unwrap().keep().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(beside(&file), folder.path().join("s.db.json"));
    }
}
