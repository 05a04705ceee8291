//! What is done by hand to a cluster, against real etcd on loopback: three members of each version that is given. KARMAFORM_TEST_ETCD names a directory
//! with `etcd`, `etcdctl` and (from 3.5 on) `etcdutl` in it, or archives as `tests/lab/with.sh` does: `VERSION=PATH,VERSION=PATH`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use karmaform_etcd::{About, Cluster, Defragmenting, Saving, defragment, disarm, drill, hashes, move_leader, save, survey, verify};
use karmaform_model::{BoxFuture, Connections, Diagnostic, Object, Value};

use crate::processes::Processes;

/// Below the ephemeral ports, and beside those of the other tests.
const FIRST_PORT: u16 = 23_200;
const NAMES: [&str; 3] = ["a", "b", "c"];
/// So small that it is full at once, in bytes.
const QUOTA: usize = 16 << 20;
const VALUE: usize = 1 << 20;

/// The folders with programs in them, one for each version.
fn programs(directory: &Path) -> Vec<PathBuf> {
    let given = std::env::var("KARMAFORM_TEST_ETCD").unwrap_or_default();
    let unpacked = |entry: &str| {
        let Some((version, archive)) = entry.split_once('=') else { return PathBuf::from(entry) };
        let folder = directory.join(version);
        std::fs::create_dir(&folder).unwrap();
        let done = Command::new("tar").args(["-xzf", archive, "--strip-components=1", "-C"]).arg(&folder).status().unwrap();
        assert!(done.success(), "{archive} can't be unpacked");
        folder
    };
    given.split(',').filter(|e| !e.is_empty()).map(unpacked).collect()
}

struct Servers {
    /// First, so that they end before what they write to goes.
    running: Processes,
    directory: tempfile::TempDir,
    programs: PathBuf,
    base: u16,
}

impl Servers {
    fn port(&self, name: &str) -> u16 {
        self.base + 2 * u16::try_from(NAMES.iter().position(|n| *n == name).unwrap()).unwrap()
    }

    fn start(&mut self, name: &str) {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let (client, peer) = (url(self.port(name)), url(self.port(name) + 1));
        let list: Vec<String> = NAMES.iter().map(|n| format!("{n}={}", url(self.port(n) + 1))).collect();
        let child = Command::new(self.programs.join("etcd"))
            .env_clear()
            .args(["--name", name, "--logger=zap", &format!("--quota-backend-bytes={QUOTA}")])
            .arg("--data-dir")
            .arg(self.directory.path().join(name))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer, "--initial-cluster", &list.join(",")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.running.add(name, child);
    }

    fn kill(&mut self, name: &str) {
        self.running.kill(name);
    }

    fn cluster(&self) -> Cluster {
        let member = |name: &&str| {
            let port = i64::from(self.port(name)).into();
            ((*name).to_owned(), Value::object([("host", "127.0.0.1".into()), ("port", port)]))
        };
        let connection = Object::from([
            ("provider".to_owned(), "etcd".into()),
            ("id".to_owned(), "etcd_cluster.test".into()),
            ("quota_bytes".to_owned(), i64::try_from(QUOTA).unwrap().into()),
            ("members".to_owned(), NAMES.iter().map(member).collect::<Object>().into()),
        ]);
        Cluster::new(&connection, Arc::new(NoWays { only_looks: false })).unwrap()
    }

    fn looking(&self) -> Cluster {
        let endpoints = Value::strings(NAMES.iter().map(|n| format!("http://127.0.0.1:{}", self.port(n))));
        Cluster::new(&Object::from([("endpoints".to_owned(), endpoints)]), Arc::new(NoWays { only_looks: true })).unwrap()
    }

    async fn direct(&self, name: &str) -> etcd_client::Client {
        etcd_client::Client::connect([format!("http://127.0.0.1:{}", self.port(name))], None).await.unwrap()
    }

    fn files(&self, folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

struct NoWays {
    only_looks: bool,
}

impl Connections for NoWays {
    fn forward<'a>(&'a self, _: &'a Object, host: &'a str, _: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async move { Err(Diagnostic::error("Nothing to forward to", format!("There is no {host}."))) })
    }

    fn only_looks(&self) -> bool {
        self.only_looks
    }
}

async fn until_whole(cluster: &Cluster) {
    let started = Instant::now();
    loop {
        let troubles = survey(cluster).await.troubles();
        if troubles.is_empty() {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(90), "{troubles:?}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
async fn a_cluster_is_saved_and_cared_for() {
    let directory = tempfile::tempdir().unwrap();
    let all = programs(directory.path());
    if all.is_empty() {
        eprintln!("SKIPPED a_cluster_is_saved_and_cared_for: KARMAFORM_TEST_ETCD names no etcd");
    }
    for (n, programs) in all.into_iter().enumerate() {
        let base = FIRST_PORT + 10 * u16::try_from(n).unwrap();
        let mut servers = Servers { directory: tempfile::tempdir().unwrap(), programs, base, running: Processes::default() };
        NAMES.iter().for_each(|name| servers.start(name));
        let cluster = servers.cluster();
        until_whole(&cluster).await;
        is_saved_and_proven(&servers, &cluster).await;
        leads_elsewhere(&cluster).await;
        gets_room(&servers, &cluster).await;
        is_refused_where_it_would_hurt(&mut servers, &cluster).await;
    }
}

async fn is_saved_and_proven(servers: &Servers, cluster: &Cluster) {
    let mut writer = servers.direct("a").await;
    for n in 0..50 {
        writer.put(format!("k{n}"), format!("v{n}"), None).await.unwrap();
    }
    assert_eq!(hashes(cluster, None).await.unwrap().agree(), Some(true));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let about = About { address: "etcd_cluster.test".into(), lineage: "l".into(), ..About::default() };
    let mut told = Vec::new();
    let saving = Saving { about, ..Saving::default() };
    let saved = save(cluster, &file, &saving, &mut |line| told.push(line.to_owned())).await.unwrap();
    let seen = survey(cluster).await;
    // A follower's.
    assert_ne!(seen.leader().unwrap().0, &saved.manifest.member.0);
    assert_eq!((saved.manifest.revision, saved.manifest.revision_at_most), (51, 51));
    assert_eq!(servers.files(folder.path()), ["s.db", "s.db.json"]);
    assert!(save(cluster, &file, &saving, &mut |_| ()).await.unwrap_err().detail.contains("no snapshot is written over anything"));

    let verified = verify(&file).unwrap();
    assert_eq!(verified.manifest.as_ref(), Some(&saved.manifest));
    let scratch = folder.path().join("scratch");
    let drilled = drill(&file, &verified, Some(&servers.programs), &scratch, &mut |_| ()).await.unwrap();
    assert_eq!((drilled.revision, drilled.keys, drilled.same_hash), (51, Some(50), Some(true)));
    assert!(!scratch.exists());

    // Another manifest than its own: a whole snapshot that is of something else.
    let mut other = saved.manifest.clone();
    other.hash = other.hash.map(|(hash, compacted)| (hash ^ 1, compacted));
    let lied = karmaform_etcd::Verified { manifest: Some(other), ..verified.clone() };
    let error = drill(&file, &lied, Some(&servers.programs), &scratch, &mut |_| ()).await.unwrap_err();
    assert!(error.detail.contains("not those that the member had"), "{error:?}");

    // One byte of a value.
    let mut bytes = std::fs::read(&file).unwrap();
    let place = bytes.windows(3).position(|w| w == b"v49").unwrap();
    bytes[place] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(verify(&file).unwrap_err().summary, "The snapshot is damaged");
    // Nor does etcd take it, whatever its own status says.
    let error = drill(&file, &verified, Some(&servers.programs), &scratch, &mut |_| ()).await.unwrap_err();
    assert_eq!(error.summary, "The snapshot does not restore", "{error:?}");
    assert!(!scratch.exists());
}

async fn leads_elsewhere(cluster: &Cluster) {
    let (old, new) = move_leader(cluster, None).await.unwrap();
    assert_ne!(old, new);
    assert_eq!(survey(cluster).await.leader().unwrap().0, &new);
    assert_eq!(move_leader(cluster, Some(&new)).await.unwrap(), (new.clone(), new));
    assert_eq!(move_leader(cluster, Some(&old)).await.unwrap().1, old);
    assert!(move_leader(cluster, Some("z")).await.unwrap_err().hints[0].contains("a, b, c"));
}

/// Filled up to its quota with what is old already.
async fn gets_room(servers: &Servers, cluster: &Cluster) {
    let mut writer = servers.direct("b").await;
    let mut refused = None;
    for n in 0..64u8 {
        let value: Vec<u8> = std::iter::repeat_n(n, VALUE).collect();
        if let Err(error) = writer.put("big", value, None).await {
            // On a busy machine it may be late with an answer, or without a leader for a while; it is full all the same in the end.
            let is_full = error.to_string().contains("space exceeded");
            refused = Some(error.to_string());
            if is_full {
                break;
            }
        }
    }
    let refused = refused.unwrap_or_default();
    assert!(refused.contains("space exceeded"), "{refused}");
    let seen = survey(cluster).await;
    assert!(seen.alarming("NOSPACE") && seen.troubles().is_empty(), "{seen:?}");
    // It can still be saved.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("full.db");
    save(cluster, &file, &Saving::default(), &mut |_| ()).await.unwrap();
    verify(&file).unwrap();

    assert!(disarm(&servers.looking(), &mut |_| ()).await.unwrap_err().detail.contains("only looks"));
    let leader = seen.leader().unwrap().0.clone();
    let mut told = Vec::new();
    let done = disarm(cluster, &mut |line| told.push(line.to_owned())).await.unwrap();
    assert_eq!((done.defragmented.len(), done.defragmented.last().map(|d| d.member.clone())), (3, Some(leader.clone())), "{told:?}");
    assert!(done.defragmented.iter().all(|d| d.after < d.before / 2), "{done:?}");
    assert!(told.iter().any(|line| line.starts_with(&format!("the leader moved from {leader}"))), "{told:?}");
    assert!(survey(cluster).await.alarms.is_empty());
    writer.put("after", "x", None).await.unwrap();
    assert_eq!(disarm(cluster, &mut |_| ()).await.unwrap().compacted, None);
}

async fn is_refused_where_it_would_hurt(servers: &mut Servers, cluster: &Cluster) {
    let gently = Defragmenting { force: false };
    assert_eq!(defragment(cluster, gently, &mut |_| ()).await.unwrap(), []);
    assert_eq!(defragment(cluster, Defragmenting { force: true }, &mut |_| ()).await.unwrap().len(), 3);
    let seen = survey(cluster).await;
    let follower = seen.answered().find(|(_, f)| !f.leads()).unwrap().0.clone();
    servers.kill(&follower);
    for refused in [defragment(cluster, gently, &mut |_| ()).await.unwrap_err(), move_leader(cluster, None).await.unwrap_err()] {
        assert!(refused.summary == "The cluster is not whole" && refused.detail.contains(&format!("member {follower}: ")), "{refused:?}");
    }
    // What is left can be saved all the same, from another.
    let folder = tempfile::tempdir().unwrap();
    let saved = save(cluster, &folder.path().join("s.db"), &Saving::default(), &mut |_| ()).await.unwrap();
    assert_ne!(saved.manifest.member.0, follower);
    let named = Saving { member: Some(follower.clone()), force: true, ..Saving::default() };
    assert!(save(cluster, &folder.path().join("t.db"), &named, &mut |_| ()).await.is_err());
    // Without a majority only what one member has can be had, and only if it is asked for.
    let leader = seen.leader().unwrap().0.clone();
    servers.kill(&leader);
    let last = NAMES.iter().find(|n| **n != follower && **n != leader).unwrap();
    assert!(save(cluster, &folder.path().join("u.db"), &Saving::default(), &mut |_| ()).await.is_err());
    let named = Saving { member: Some((*last).to_owned()), force: true, ..Saving::default() };
    save(cluster, &folder.path().join("u.db"), &named, &mut |_| ()).await.unwrap();
    verify(&folder.path().join("u.db")).unwrap();
    assert_eq!(servers.files(folder.path()), ["s.db", "s.db.json", "u.db", "u.db.json"]);
}
