//! The proof of a snapshot: it is restored into a scratch etcd on this machine, which is asked what it has.
//!
//! The scratch etcd listens on sockets in a directory of its own that nobody else may enter, so it takes no port, and nobody else on this machine
//! reads what is in it. What only a real server finds (a store that restores and does not serve) is found here.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use karmaform_model::Diagnostic;
use serde_json::Value as Json;

use super::restore::{self, missing};
use super::{Tell, Verified};

/// The longest wait for the scratch etcd: this, and as much again for each GiB.
const LIMIT: u64 = 60;
/// Between two questions whether it serves.
const PAUSE: Duration = Duration::from_millis(200);
/// Its socket, in its directory. It needs the form of a host and a port (etcd 3.4).
const CLIENTS: &str = "unix://drill:1";
/// Where no other member will ever look for it; nobody listens there.
const PEER: &str = "http://127.0.0.1:1";

/// What the scratch etcd had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drilled {
    /// Its version.
    pub version: String,
    /// The newest revision in it.
    pub revision: i64,
    /// So many keys; `None`: they are not for everybody (authentication is on).
    pub keys: Option<i64>,
    /// True: its hash of all keys and values is the one that the member had; `None`: the manifest has none, or it can't be compared.
    pub same_hash: Option<bool>,
}

/// Restores a snapshot that was verified, starts etcd on it, and asks. `programs`: where `etcd`, `etcdctl` and (from 3.5 on) `etcdutl` are; without one
/// they are taken from the path. `scratch`: a directory that does not exist yet, for as long as it takes; it needs the room of the database, twice.
///
/// # Errors
/// A program is missing or of another minor version, the snapshot does not restore or serve, or what it has is not what its manifest says.
pub async fn drill(
    file: &Path,
    verified: &Verified,
    programs: Option<&Path>,
    scratch: &Path,
    tell: Tell<'_>,
) -> Result<Drilled, Diagnostic> {
    let tools = Tools { programs: programs.map(absolute), file: absolute(file), scratch: absolute(scratch) };
    let version = tools.version()?;
    fits(&version, verified)?;
    let room = Scratch::make(&tools.scratch)?;
    tell(&format!("restoring it with etcd {version}"));
    let restoring = tools.clone();
    apart(move || restoring.restore()).await?;
    let running = tools.start(&room)?;
    tell("asking the scratch etcd what it has");
    let drilled = tools.ask(running, version, verified).await?;
    drop(room);
    agrees(&drilled, verified)?;
    Ok(drilled)
}

/// Snapshots are restored by the minor version that they are of.
fn fits(version: &str, verified: &Verified) -> Result<(), Diagnostic> {
    let minor = |text: &str| text.split('.').take(2).collect::<Vec<_>>().join(".");
    match &verified.manifest {
        Some(manifest) if minor(&manifest.version) != minor(version) => {
            let detail = format!("The snapshot is of etcd {}, and the programs are of {version}.", manifest.version);
            Err(Diagnostic::error("Programs of another version", detail).with_hint("Name the directory of fitting ones with -programs."))
        }
        _ => Ok(()),
    }
}

/// What came back must be what was saved.
fn agrees(drilled: &Drilled, verified: &Verified) -> Result<(), Diagnostic> {
    let Some(manifest) = &verified.manifest else { return Ok(()) };
    let wrong = |why: String| {
        Err(Diagnostic::error("The snapshot is not what was saved", format!("A scratch etcd was started from it, and {why}."))
            .with_hint("Don't count on this one: save the cluster again, and prove that."))
    };
    if drilled.revision < manifest.revision || drilled.revision > manifest.revision_at_most {
        let (first, last) = (manifest.revision, manifest.revision_at_most);
        return wrong(format!("its newest revision is {}, where its manifest says {first} to {last}", drilled.revision));
    }
    if drilled.same_hash == Some(false) {
        return wrong(format!("its keys and values up to revision {} are not those that the member had", manifest.revision));
    }
    Ok(())
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A directory that goes.
struct Scratch(PathBuf);

impl Scratch {
    fn make(path: &Path) -> Result<Self, Diagnostic> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| {
            Diagnostic::error("No place for a restore drill", format!("The directory {} can't be made: {e}.", path.display()))
                .with_hint("It has to be where this may write, with twice the room of the database.")
        })?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed is in the way of nothing but the disk.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[derive(Clone)]
struct Tools {
    programs: Option<PathBuf>,
    file: PathBuf,
    scratch: PathBuf,
}

impl Tools {
    fn program(&self, name: &str) -> PathBuf {
        self.programs.as_ref().map_or_else(|| name.into(), |d| d.join(name))
    }

    /// A program in the scratch directory, without this machine's settings of etcd.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.program(name));
        for variable in ["ETCDCTL_ENDPOINTS", "ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY", "ETCDCTL_USER", "ETCDCTL_PASSWORD"] {
            command.env_remove(variable);
        }
        command.env("ETCDCTL_API", "3").stdin(Stdio::null());
        if self.scratch.is_dir() {
            command.current_dir(&self.scratch);
        }
        command
    }

    fn version(&self) -> Result<String, Diagnostic> {
        let output = self.command("etcd").arg("--version").output().map_err(|e| missing("etcd", &e))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().find_map(|l| l.strip_prefix("etcd Version: ")).map(|v| v.trim().to_owned());
        version.ok_or_else(|| Diagnostic::error("Not an etcd", "The program \"etcd\" does not say which version it is."))
    }

    fn restore(&self) -> Result<(), Diagnostic> {
        let told = ["--data-dir=data", "--name=drill"].map(str::to_owned).into_iter();
        let peers = [format!("--initial-cluster=drill={PEER}"), format!("--initial-advertise-peer-urls={PEER}")];
        restore::run(&|program| self.command(program), &self.file, &told.chain(peers).collect::<Vec<_>>())
    }

    fn start(&self, room: &Scratch) -> Result<Running, Diagnostic> {
        let failed = |e: std::io::Error| {
            Diagnostic::error("No scratch etcd", format!("The snapshot was restored, and etcd could not be started on it: {e}."))
                .with_hint("See that the program etcd can be run and that its disk has room, then run this again.")
        };
        let log = File::create(room.0.join("log")).map_err(failed)?;
        let mut command = self.command("etcd");
        command.env_clear().args(["--name=drill", "--data-dir=data", "--listen-peer-urls=unix://peer:1"]);
        command.args([format!("--listen-client-urls={CLIENTS}"), format!("--advertise-client-urls={CLIENTS}")]);
        command.args([format!("--initial-advertise-peer-urls={PEER}"), format!("--initial-cluster=drill={PEER}")]);
        // Below zero: no quota, whatever the cluster's own is.
        command.args(["--initial-cluster-state=existing", "--quota-backend-bytes=-1", "--logger=zap"]);
        command.stdout(Stdio::null()).stderr(log).spawn().map(Running).map_err(failed)
    }

    /// The answer of etcdctl as JSON; the error is what it said.
    fn etcdctl(&self, arguments: &[&str]) -> Result<Json, String> {
        let output =
            self.command("etcdctl").args(["--endpoints", CLIENTS, "-w", "json"]).args(arguments).output().map_err(|e| e.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().lines().next_back().unwrap_or_default().to_owned());
        }
        serde_json::from_slice(&output.stdout).map_err(|e| format!("no JSON: {e}"))
    }

    async fn ask(&self, mut running: Running, version: String, verified: &Verified) -> Result<Drilled, Diagnostic> {
        let limit = Duration::from_secs(LIMIT * (1 + (verified.size >> 30)));
        let began = tokio::time::Instant::now();
        let serves_not = |why: &str| {
            let log = std::fs::read_to_string(self.scratch.join("log")).unwrap_or_default();
            let last = log.lines().next_back().unwrap_or("nothing").to_owned();
            Diagnostic::error(
                "The snapshot does not serve",
                format!("A scratch etcd was started from it, and {why}. The last it said: {last}"),
            )
            .with_hint("Don't count on this one: save the cluster again, and prove that.")
        };
        let found = loop {
            if running.0.try_wait().ok().flatten().is_some() {
                return Err(serves_not("ended by itself"));
            }
            match self.etcdctl(&["get", "", "--from-key", "--limit=1", "--keys-only"]) {
                Ok(found) => break Some(found),
                Err(why) if is_for_others(&why) => break None,
                Err(_) if began.elapsed() < limit => tokio::time::sleep(PAUSE).await,
                Err(why) => return Err(serves_not(&format!("answered no read within {} s: {why}", limit.as_secs()))),
            }
        };
        let status = self.etcdctl(&["endpoint", "status"]).map_err(|why| serves_not(&format!("did not say how it is: {why}")))?;
        let revision = status[0]["Status"]["header"]["revision"].as_i64().unwrap_or(0);
        let same_hash = match verified.manifest.as_ref().and_then(|m| Some((m.revision, m.hash?))) {
            None => None,
            Some((at, (hash, compacted))) => {
                // It reads the whole database; etcdctl's own limit is five seconds.
                let patience = format!("--command-timeout={}s", limit.as_secs());
                let (asking, at) = (self.clone(), at.to_string());
                match apart(move || asking.etcdctl(&["endpoint", "hashkv", "--rev", &at, &patience])).await {
                    Ok(told) => {
                        let told = &told[0]["HashKV"];
                        let same_compaction = told["compact_revision"].as_i64().unwrap_or(0) == compacted;
                        same_compaction.then(|| told["hash"].as_u64() == Some(u64::from(hash)))
                    }
                    // Compacted between its hash and the stream: there is nothing to compare with.
                    Err(why) if is_for_others(&why) || why.contains("compacted") => None,
                    Err(why) => return Err(serves_not(&format!("did not say the hash of what it has: {why}"))),
                }
            }
        };
        // A store without keys has no field for their number.
        let keys = found.map(|f| f["count"].as_i64().unwrap_or(0));
        Ok(Drilled { version, revision, keys, same_hash })
    }
}

/// Waits for a program while others hear signals and clocks.
async fn apart<T: Send + 'static, E: Send + 'static>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// True if the scratch etcd asks for a name and a password, as the cluster does: that it asks says that it serves.
fn is_for_others(why: &str) -> bool {
    why.contains("permission denied") || why.contains("user name is empty")
}

#[cfg(test)]
mod tests {
    use super::super::manifest::tests::manifest;
    use super::*;

    #[test]
    fn what_came_back_must_be_what_was_saved() {
        let verified = |with: bool| Verified { size: 1056, sha256: "ab".into(), manifest: with.then(manifest) };
        let drilled = |revision: i64, same_hash: Option<bool>| Drilled { version: "3.5.30".into(), revision, keys: Some(1), same_hash };
        assert!(agrees(&drilled(7, Some(true)), &verified(true)).is_ok());
        assert!(agrees(&drilled(9, None), &verified(true)).is_ok());
        let other = agrees(&drilled(6, None), &verified(true)).unwrap_err();
        assert_eq!(other.summary, "The snapshot is not what was saved");
        assert!(
            other.detail.contains("newest revision is 6, where its manifest says 7 to 9")
                && other.hints[0].contains("save the cluster again")
        );
        assert!(agrees(&drilled(10, None), &verified(true)).is_err());
        assert!(agrees(&drilled(8, Some(false)), &verified(true)).unwrap_err().detail.contains("not those that the member had"));
        assert!(agrees(&drilled(1, None), &verified(false)).is_ok());
        assert!(fits("3.5.16", &verified(true)).is_ok() && fits("3.6.1", &verified(false)).is_ok());
        let unfit = fits("3.4.23", &verified(true)).unwrap_err();
        assert_eq!(unfit.summary, "Programs of another version");
        assert!(unfit.detail.contains("is of etcd 3.5.30, and the programs are of 3.4.23") && unfit.hints[0].contains("-programs"));
    }

    /// A drill with programs that are scripts: `etcd` says its version, and then does this; `etcdutl` does that.
    async fn drilled_by(etcd: &str, etcdutl: &str, scratch: &str) -> Diagnostic {
        let folder = tempfile::tempdir().unwrap();
        for (name, does) in [("etcd", etcd), ("etcdutl", etcdutl), ("etcdctl", "exit 1")] {
            let version = "[ \"$1\" = --version ] && echo 'etcd Version: 3.5.30' && exit 0";
            let script = format!("#!/bin/sh\n{version}\n{does}\n");
            let path = folder.path().join(name);
            std::fs::write(&path, script).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            // Another test that starts something in this moment may hold it open for writing until that runs.
            while std::process::Command::new(&path)
                .arg("--version")
                .output()
                .is_err_and(|e| e.kind() == std::io::ErrorKind::ExecutableFileBusy)
            {
                std::thread::yield_now();
            }
        }
        let verified = Verified { size: 1056, sha256: "ab".into(), manifest: None };
        let scratch = folder.path().join(scratch);
        let told = drill(&folder.path().join("s.db"), &verified, Some(folder.path()), &scratch, &mut |_| ()).await.unwrap_err();
        assert!(!scratch.exists(), "{told:?}");
        told
    }

    #[tokio::test]
    async fn a_drill_that_ends_early_says_why() {
        let nowhere = drilled_by("", "", "etcd/scratch").await;
        assert_eq!(nowhere.summary, "No place for a restore drill");
        assert!(nowhere.detail.contains("etcd/scratch can't be made: Not a directory") && nowhere.hints[0].contains("twice the room"));
        // Gone between the restore and the start.
        let unstarted = drilled_by("", "rm \"${0%/*}/etcd\"", "scratch").await;
        assert_eq!(unstarted.summary, "No scratch etcd");
        assert!(unstarted.detail.contains("could not be started on it: No such file") && unstarted.hints[0].contains("etcd can be run"));
        let ended = drilled_by("echo 'it panics' >&2", "exit 0", "scratch").await;
        assert_eq!(ended.summary, "The snapshot does not serve");
        assert!(
            ended.detail.ends_with("ended by itself. The last it said: it panics") && ended.hints[0].contains("save the cluster again")
        );
    }
}
