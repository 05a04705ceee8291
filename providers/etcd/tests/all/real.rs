//! The provider against real etcd processes over TLS on loopback. Needs a directory with `etcd` in KARMAFORM_TEST_ETCD.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use etcd_client::{AlarmAction, AlarmType, ConnectOptions};
use karmaform_model::{Ask, BoxFuture, Change, Connections, Diagnostic, Driver, GateAnswer, Object, Value};

use crate::authority::Authority;
use crate::processes::Processes;

/// An address that is in the certificates and nowhere else: members are reached through "tunnels" only.
const MEMBER_ADDRESS: &str = "10.99.0.1";
/// Ports below the ephemeral ones: a random outgoing connection on a member's port would keep it from starting.
const FIRST_PORT: u16 = 23_100;

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn binaries(test: &str) -> Option<PathBuf> {
    let found = std::env::var_os("KARMAFORM_TEST_ETCD").map(PathBuf::from).filter(|d| d.join("etcd").exists());
    if found.is_none() {
        eprintln!("SKIPPED {test}: KARMAFORM_TEST_ETCD does not name a directory with etcd in it");
    }
    found
}

/// Members of one test; their processes end with it.
struct Lab {
    /// First, so that they end before what they write to goes.
    running: Processes,
    directory: tempfile::TempDir,
    etcd: PathBuf,
    ca: Authority,
    base: u16,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Lab {
    fn new(binaries: &Path, offset: u16) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ca = Authority::new();
        ca.write(directory.path(), MEMBER_ADDRESS);
        Self { directory, etcd: binaries.join("etcd"), ca, base: FIRST_PORT + offset, running: Processes::default() }
    }

    fn client_port(&self, name: &str) -> u16 {
        self.base + 2 * u16::try_from(NAMES.iter().position(|n| *n == name).unwrap()).unwrap()
    }

    fn start(&mut self, name: &str) {
        let (client, peer) = (self.client_port(name), self.client_port(name) + 1);
        let file = |name: &str| self.directory.path().join(name);
        let list: Vec<String> = NAMES.iter().map(|n| format!("{n}=https://127.0.0.1:{}", self.client_port(n) + 1)).collect();
        let child = Command::new(&self.etcd)
            .env_clear()
            .env("ETCD_NAME", name)
            .env("ETCD_DATA_DIR", file(&format!("data-{name}")))
            .env("ETCD_LISTEN_PEER_URLS", format!("https://127.0.0.1:{peer}"))
            .env("ETCD_INITIAL_ADVERTISE_PEER_URLS", format!("https://127.0.0.1:{peer}"))
            .env("ETCD_LISTEN_CLIENT_URLS", format!("https://127.0.0.1:{client}"))
            .env("ETCD_ADVERTISE_CLIENT_URLS", format!("https://127.0.0.1:{client}"))
            .env("ETCD_INITIAL_CLUSTER", list.join(","))
            .env("ETCD_INITIAL_CLUSTER_TOKEN", "test")
            .env("ETCD_INITIAL_CLUSTER_STATE", "new")
            .env("ETCD_CERT_FILE", file("member.crt"))
            .env("ETCD_KEY_FILE", file("member.key"))
            .env("ETCD_TRUSTED_CA_FILE", file("ca.crt"))
            .env("ETCD_CLIENT_CERT_AUTH", "true")
            .env("ETCD_PEER_CERT_FILE", file("member.crt"))
            .env("ETCD_PEER_KEY_FILE", file("member.key"))
            .env("ETCD_PEER_TRUSTED_CA_FILE", file("ca.crt"))
            .env("ETCD_PEER_CLIENT_CERT_AUTH", "true")
            .env("ETCD_LOGGER", "zap")
            .stdout(Stdio::null())
            .stderr(Stdio::from(std::fs::File::create(file(&format!("log-{name}"))).unwrap()))
            .spawn()
            .unwrap();
        self.running.add(name, child);
    }

    fn kill(&mut self, name: &str) {
        self.running.kill(name);
    }

    fn connection(&self) -> Object {
        let members = NAMES.iter().map(|name| {
            let via = Value::object([("provider", "tunnel".into()), ("id", "tunnel".into())]);
            let port = i64::from(self.client_port(name)).into();
            let endpoint = format!("https://{MEMBER_ADDRESS}:{}", self.client_port(name)).into();
            ((*name).to_owned(), Value::object([("endpoint", endpoint), ("host", MEMBER_ADDRESS.into()), ("port", port), ("via", via)]))
        });
        let (certificate, key) = self.ca.client();
        Object::from([
            ("provider".to_owned(), "etcd".into()),
            ("id".to_owned(), "etcd_cluster.test".into()),
            ("members".to_owned(), members.collect::<Object>().into()),
            ("ca_certificate".to_owned(), self.ca.certificate().into()),
            ("certificate".to_owned(), certificate.into()),
            ("private_key".to_owned(), Value::from(key).secret()),
        ])
    }
}

/// Leads to the same port on loopback.
struct Tunnels;

impl Connections for Tunnels {
    fn forward<'a>(&'a self, connection: &'a Object, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        assert_eq!((connection["provider"].as_str(), host), (Some("tunnel"), MEMBER_ADDRESS));
        Box::pin(async move { Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))) })
    }
}

type Client = karmaform_model::AnyClient;

async fn gate(driver: &Arc<dyn Driver>, client: &Client, require: &[&str]) -> GateAnswer {
    let arguments = Object::from([("require".to_owned(), Value::strings(require))]);
    let started = Instant::now();
    let answer = driver.check(client, "etcd_healthy", &arguments).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(20), "one look takes {:?}", started.elapsed());
    answer
}

async fn until(driver: &Arc<dyn Driver>, client: &Client, require: &[&str], expected: &GateAnswer) {
    let started = Instant::now();
    let mut last = None;
    while started.elapsed() < Duration::from_secs(60) {
        let answer = gate(driver, client, require).await;
        if answer == *expected {
            return;
        }
        last = Some(answer);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    panic!("expected {expected:?}, last was {last:?}");
}

async fn observe(driver: &Arc<dyn Driver>, client: &Client, known: bool) -> Vec<Option<Object>> {
    let identity = |name: &str| Object::from([("name".to_owned(), name.into())]);
    let asks: Vec<Ask> = NAMES
        .iter()
        .map(|n| Ask {
            resource_type: "etcd_member".to_owned(),
            identity: identity(n),
            known: known.then(|| identity(n)),
            wanted: None,
            begun: false,
        })
        .collect();
    driver.observe(client, &asks).await.into_iter().map(Result::unwrap).collect()
}

fn facts(members: &[Option<Object>], name: &str) -> Vec<Option<Value>> {
    members.iter().map(|m| m.as_ref().and_then(|m| m.get(name).cloned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_watched_from_formation_to_trouble() {
    let Some(binaries) = binaries("a_cluster_is_watched_from_formation_to_trouble") else { return };
    let mut lab = Lab::new(&binaries, 0);
    let driver = karmaform_etcd::driver();
    let client = driver.connect(&Object::new(), &lab.connection(), Arc::new(Tunnels)).await.unwrap();

    let GateAnswer::Waiting(why) = gate(&driver, &client, &NAMES).await else { panic!("nothing runs") };
    assert!(why.starts_with("member a: ") && why.to_lowercase().contains("refused"), "{why}");
    assert_eq!(observe(&driver, &client, false).await, [None, None, None]);

    lab.start("a");
    lab.start("b");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let GateAnswer::Waiting(why) = gate(&driver, &client, &NAMES).await else { panic!("c does not run") };
    assert!(why.contains("member c: "), "{why}");
    let GateAnswer::Waiting(why) = gate(&driver, &client, &["a", "b"]).await else { panic!("c never started") };
    assert!(why.contains("never started"), "{why}");
    lab.start("c");
    until(&driver, &client, &NAMES, &GateAnswer::Passed("3 of 3 members healthy".to_owned())).await;

    let seen = observe(&driver, &client, true).await;
    assert_eq!(facts(&seen, "healthy"), vec![Some(true.into()); 3]);
    assert_eq!(facts(&seen, "leader").iter().filter(|l| **l == Some(true.into())).count(), 1);
    let ids = facts(&seen, "member_id");
    assert!(
        ids[0] != ids[1] && ids[1] != ids[2] && ids.iter().all(|i| i.as_ref().is_some_and(|i| i.as_str().is_some_and(|t| t.len() > 8)))
    );
    let clusters = facts(&seen, "cluster_id");
    assert!(clusters[0] == clusters[1] && clusters[1] == clusters[2]);
    let peer = Value::from(format!("https://127.0.0.1:{}", lab.client_port("b") + 1));
    assert_eq!(facts(&seen, "peer_url")[1], Some(peer));

    let after = Object::from([("cluster".to_owned(), lab.connection().into()), ("name".to_owned(), "b".into())]);
    let made = driver.apply(&client, "etcd_member", &Change::Create { after }).await.unwrap().unwrap();
    assert_eq!(made.get("member_id"), ids[1].as_ref());

    lab.kill("c");
    until(&driver, &client, &["a", "b"], &GateAnswer::Passed("2 of 3 members healthy".to_owned())).await;
    let seen = observe(&driver, &client, true).await;
    assert_eq!(facts(&seen, "healthy"), [Some(true.into()), Some(true.into()), Some(false.into())]);
    assert!(seen[2].as_ref().unwrap()["error"].as_str().is_some_and(|e| e.to_lowercase().contains("refused")), "{:?}", seen[2]);
    let after = Object::from([("cluster".to_owned(), lab.connection().into()), ("name".to_owned(), "c".into())]);
    let error = driver.apply(&client, "etcd_member", &Change::Create { after }).await.unwrap_err();
    assert!(error.retryable && error.detail.contains("\"c\""), "{error:?}");

    lab.kill("b");
    let GateAnswer::Waiting(why) = gate(&driver, &client, &["a"]).await else { panic!("no quorum") };
    assert!(why.starts_with("member a: "), "{why}");
    lab.start("b");
    until(&driver, &client, &["a", "b"], &GateAnswer::Passed("2 of 3 members healthy".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_and_a_wrong_certificate_are_seen() {
    let Some(binaries) = binaries("an_alarm_and_a_wrong_certificate_are_seen") else { return };
    let mut lab = Lab::new(&binaries, 20);
    NAMES.iter().for_each(|n| lab.start(n));
    let driver = karmaform_etcd::driver();
    let client = driver.connect(&Object::new(), &lab.connection(), Arc::new(Tunnels)).await.unwrap();
    until(&driver, &client, &NAMES, &GateAnswer::Passed("3 of 3 members healthy".to_owned())).await;

    let connection = lab.connection();
    let tls = etcd_client::TlsOptions::new()
        .ca_certificate(etcd_client::Certificate::from_pem(connection["ca_certificate"].as_str().unwrap()))
        .identity(etcd_client::Identity::from_pem(connection["certificate"].as_str().unwrap(), connection["private_key"].as_str().unwrap()))
        .domain_name("127.0.0.1");
    let endpoint = format!("https://127.0.0.1:{}", lab.client_port("a"));
    let mut direct = etcd_client::Client::connect([endpoint], Some(ConnectOptions::new().with_tls(tls))).await.unwrap();
    direct.alarm(AlarmAction::Activate, AlarmType::Nospace, None).await.unwrap();
    let GateAnswer::Waiting(why) = gate(&driver, &client, &NAMES).await else { panic!("an alarm is on") };
    assert!(why.starts_with("alarm NOSPACE of member "), "{why}");

    let mut foreign = lab.connection();
    let (certificate, key) = Authority::new().client();
    foreign.insert("certificate".to_owned(), certificate.into());
    foreign.insert("private_key".to_owned(), key.into());
    let stranger = driver.connect(&Object::new(), &foreign, Arc::new(Tunnels)).await.unwrap();
    let started = Instant::now();
    let GateAnswer::Waiting(why) = gate(&driver, &stranger, &["a"]).await else { panic!("a stranger got in") };
    assert!(why.starts_with("member a: ") && !why.contains("BEGIN"), "{why}");
    assert!(started.elapsed() < Duration::from_secs(12), "{:?}: {why}", started.elapsed());
}
