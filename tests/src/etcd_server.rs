//! A single real etcd for one test, from the archives that the environment names.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::parts::tell;

/// Longer than a start takes, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// It ends when it is dropped.
pub(crate) struct EtcdServer {
    child: Child,
    /// Where clients reach it.
    pub(crate) url: String,
    directory: tempfile::TempDir,
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

impl EtcdServer {
    /// The first version of `KARMAFORM_TEST_ETCD` (`VERSION=ARCHIVE,...`); says what is skipped where there is none.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let Some(given) = std::env::var("KARMAFORM_TEST_ETCD").ok().filter(|g| !g.is_empty()) else {
            tell(&format!("SKIPPED (no etcd): {test}"));
            return None;
        };
        let archive = given.split(',').next()?.split_once('=')?.1.to_owned();
        let directory = tempfile::tempdir().expect("a directory");
        let unpacked = Command::new("tar").args(["-xzf", &archive, "--strip-components=1", "-C"]).arg(directory.path()).status();
        assert!(unpacked.expect("tar").success());
        let (client, peer) = (free_port(), free_port());
        let (url, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let child = Command::new(directory.path().join("etcd"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url, "--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer, "--initial-cluster", &format!("default={peer}"), "--data-dir"])
            .arg(directory.path().join("data"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let server = Self { child: child.expect("etcd"), url, directory };
        let until = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", client)).is_err() {
            assert!(Instant::now() < until, "etcd does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }
    /// The keys of everything in it.
    pub(crate) fn keys(&self) -> Vec<String> {
        let asked = Command::new(self.directory.path().join("etcdctl"))
            .args(["--endpoints", &self.url, "get", "", "--prefix", "--keys-only"])
            .env("ETCDCTL_API", "3")
            .output()
            .expect("etcdctl");
        assert!(asked.status.success(), "{asked:?}");
        String::from_utf8_lossy(&asked.stdout).lines().filter(|l| !l.is_empty()).map(str::to_owned).collect()
    }
}
