//! One real etcd over TLS on loopback. KARMAFORM_TEST_ETCD names a directory with `etcd` in it, or archives as
//! `tests/lab/with.sh` does: `VERSION=PATH,VERSION=PATH`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use etcd_client::ConnectOptions;
use karmaform_model::{BoxFuture, Connections, Diagnostic, Object, Value};

use crate::authority::Authority;

/// A cluster of one member, with its own CA.
pub(crate) struct Etcd {
    port: u16,
    directory: tempfile::TempDir,
    ca: Authority,
    child: Child,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The folder with etcd in it; the newest archive is unpacked.
fn binaries(directory: &Path) -> Option<PathBuf> {
    let given = std::env::var("KARMAFORM_TEST_ETCD").ok()?;
    let folder = match given.rsplit(',').next()?.split_once('=') {
        None => PathBuf::from(&given),
        Some((_, archive)) => {
            let folder = directory.join("programs");
            std::fs::create_dir(&folder).ok()?;
            let arguments = [archive, "--strip-components=1", "-C"];
            let unpacked = Command::new("tar").arg("-xzf").args(arguments).arg(&folder).status().ok()?;
            if !unpacked.success() {
                return None;
            }
            folder
        }
    };
    folder.join("etcd").exists().then_some(folder)
}

/// There is nothing to go through.
pub(crate) struct NoWays;

impl Connections for NoWays {
    fn forward<'a>(&'a self, _: &'a Object, host: &'a str, _: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async move { Err(Diagnostic::error("Nothing to forward to", format!("There is no {host}."))) })
    }
}

impl Etcd {
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    pub(crate) fn start(port: u16) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let Some(binaries) = binaries(directory.path()) else {
            eprintln!("SKIPPED: KARMAFORM_TEST_ETCD names no etcd");
            return None;
        };
        let ca = Authority::new();
        ca.write(directory.path(), "127.0.0.1");
        let file = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        let url = format!("https://127.0.0.1:{port}");
        let child = Command::new(binaries.join("etcd"))
            .env_clear()
            .args(["--data-dir", &file("data"), "--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &format!("http://127.0.0.1:{}", port + 1)])
            .args(["--cert-file", &file("member.crt"), "--key-file", &file("member.key"), "--trusted-ca-file", &file("ca.crt")])
            .args(["--client-cert-auth", "--logger", "zap"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self { port, directory, ca, child })
    }

    /// The connection of a control plane; its first endpoint need not be one that answers.
    pub(crate) fn connection(&self, ports: &[u16]) -> Object {
        let (certificate, key) = self.ca.client();
        Object::from([
            ("provider".to_owned(), "etcd".into()),
            ("id".to_owned(), "karmada_control_plane.test".into()),
            ("endpoints".to_owned(), Value::strings(ports.iter().map(|p| format!("https://127.0.0.1:{p}")))),
            ("ca_certificate".to_owned(), self.ca.certificate().into()),
            ("certificate".to_owned(), certificate.into()),
            ("private_key".to_owned(), Value::from(key).secret()),
        ])
    }

    pub(crate) async fn direct(&self) -> etcd_client::Client {
        let c = self.connection(&[self.port]);
        let text = |name: &str| c[name].as_str().unwrap().to_owned();
        let started = Instant::now();
        loop {
            let tls = etcd_client::TlsOptions::new()
                .ca_certificate(etcd_client::Certificate::from_pem(text("ca_certificate")))
                .identity(etcd_client::Identity::from_pem(text("certificate"), text("private_key")));
            let options = ConnectOptions::new().with_tls(tls);
            if let Ok(mut client) = etcd_client::Client::connect([format!("https://127.0.0.1:{}", self.port)], Some(options)).await
                && client.get("x", None).await.is_ok()
            {
                return client;
            }
            assert!(started.elapsed() < Duration::from_secs(30), "etcd does not start in {:?}", self.directory);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}
