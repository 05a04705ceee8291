//! The hosts, and a small stand-in for the engine: observe, plan, apply.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use karmaform_model::{
    Action, Adapter, AnyClient, Ask, BoxFuture, Change, Connections, Diagnostic, Driver, Object, PlanContext, ResourceSpec, Value,
};
use karmaform_ssh::Ssh;
use tokio::runtime::Runtime;

/// Real hosts.
pub(crate) struct Lab {
    /// The provider.
    pub(crate) driver: Arc<dyn Driver>,
    /// To wait on it.
    pub(crate) runtime: Runtime,
    /// Addresses, by name in the order of the names.
    pub(crate) hosts: BTreeMap<String, String>,
    /// The private key's file.
    pub(crate) key: String,
    /// The hosts' keys.
    pub(crate) known_hosts: String,
    /// For local files.
    pub(crate) folder: tempfile::TempDir,
    client: Option<AnyClient>,
    turn: Turn,
}

/// Whose turn it is: the tests, also those of other binaries, share hosts and look at what is left on them.
struct Turn {
    /// The number of the test's host.
    own: usize,
    /// What others wait for.
    _locked: Vec<File>,
}

struct NoConnections;

impl Connections for NoConnections {
    fn forward<'a>(&'a self, _: &'a Object, _: &'a str, _: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async { Err(Diagnostic::error("None", "None.")) })
    }
}

/// Says it even if the test passes: what a test prints by macros is only shown when it fails.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A host of the lab, or `None` after saying that `test` is skipped. Tests have different ones at the same time: they wait most of the time.
pub(crate) fn lab(test: &str) -> Option<Lab> {
    open(test, one)
}

/// The same with all hosts, for a test that goes from one to another.
pub(crate) fn lab_of_all(test: &str) -> Option<Lab> {
    open(test, all)
}

fn locks(key: &str, name: &str) -> File {
    File::create(Path::new(key).with_file_name(name)).expect("a file that is locked")
}

/// Nobody else has any host.
fn all(key: &str, _: usize) -> Turn {
    let hosts = locks(key, "hosts.lock");
    hosts.lock().expect("its lock");
    Turn { own: 0, _locked: vec![hosts] }
}

/// Nobody else has this host, and nobody has all.
fn one(key: &str, hosts: usize) -> Turn {
    let any = locks(key, "hosts.lock");
    any.lock_shared().expect("its lock");
    loop {
        for own in 0..hosts {
            let host = locks(key, &format!("host-{own}.lock"));
            if host.try_lock().is_ok() {
                return Turn { own, _locked: vec![any, host] };
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn open(test: &str, turn: fn(&str, usize) -> Turn) -> Option<Lab> {
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let needed = ["KARMAFORM_TEST_HOSTS", "KARMAFORM_TEST_KEY", "KARMAFORM_TEST_KNOWN_HOSTS"].map(variable);
    let [Some(hosts), Some(key), Some(known_hosts)] = needed else {
        say(&format!("SKIPPED: {test}: KARMAFORM_TEST_HOSTS, KARMAFORM_TEST_KEY and KARMAFORM_TEST_KNOWN_HOSTS are not all set"));
        return None;
    };
    let hosts = hosts.split(',').map(|h| h.split_once('=').expect("name=address")).map(|(n, a)| (n.to_owned(), a.to_owned()));
    let hosts: BTreeMap<String, String> = hosts.collect();
    let turn = turn(&key, hosts.len());
    let mut lab = Lab {
        driver: Arc::new(Adapter(Ssh::new("test"))),
        runtime: tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap(),
        hosts,
        key,
        known_hosts,
        folder: tempfile::tempdir().unwrap(),
        client: None,
        turn,
    };
    lab.driver.begin("one state");
    lab.client = Some(lab.connect(&lab.connection()).unwrap());
    Some(lab)
}

impl Drop for Lab {
    /// A test that fails leaves what it was at. The next one looks at all that is left on the host, and is not to fail for that.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.ssh("rm -rf /var/lib/karmaform /run/karmaform*; find / -xdev -name '.karmaform*' -exec rm -rf {} + 2>/dev/null");
        }
    }
}

/// An object of these.
pub(crate) fn object<const N: usize>(parts: [(&str, Value); N]) -> Object {
    parts.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()
}

/// `map(string)`
pub(crate) fn map(parts: &[(&str, &str)]) -> Value {
    Value::map(karmaform_model::Type::String, parts.iter().map(|(n, v)| ((*n).to_owned(), (*v).into())).collect())
}

impl Lab {
    /// The address of the test's own host (0), or of the n-th behind it.
    pub(crate) fn address(&self, index: usize) -> &str {
        assert!(index < self.hosts.len(), "more hosts");
        self.hosts.values().nth((self.turn.own + index) % self.hosts.len()).expect("a host")
    }

    /// How the test's host is reached.
    pub(crate) fn connection(&self) -> Object {
        object([
            ("provider", "ssh".into()),
            ("id", format!("{}:22", self.address(0)).into()),
            ("address", self.address(0).into()),
            ("private_key_file", self.key.as_str().into()),
            ("known_hosts_file", self.known_hosts.as_str().into()),
        ])
    }

    /// The same with other arguments.
    pub(crate) fn connection_with<const N: usize>(&self, parts: [(&str, Value); N]) -> Object {
        let mut connection = self.connection();
        connection.extend(object(parts));
        connection
    }

    /// Connects.
    pub(crate) fn connect(&self, connection: &Object) -> Result<AnyClient, Diagnostic> {
        let defaults = object([("cache", self.folder.path().join("cache").to_string_lossy().into_owned().into())]);
        self.runtime.block_on(self.driver.connect(&defaults, connection, Arc::new(NoConnections)))
    }

    /// The open client of the test's host.
    pub(crate) fn client(&self) -> &AnyClient {
        self.client.as_ref().unwrap()
    }

    /// Begins another run, which has nothing but what is on the disk.
    pub(crate) fn renew(&mut self) {
        self.driver = Arc::new(Adapter(Ssh::new("test")));
        self.driver.begin("one state");
        self.client = Some(self.connect(&self.connection()).unwrap());
    }

    /// Begins a run for another state, while the one until now, which this gives, goes on.
    pub(crate) fn another_run(&mut self, who: &str, lineage: &str) -> (Arc<dyn Driver>, Option<AnyClient>) {
        let driver = std::mem::replace(&mut self.driver, Arc::new(Adapter(Ssh::new(who))));
        self.driver.begin(lineage);
        let client = self.client.take();
        self.client = Some(self.connect(&self.connection()).unwrap());
        (driver, client)
    }

    /// Bytes that came to the test's host over its network.
    pub(crate) fn received(&self) -> u64 {
        self.shell("sed -n 's/^ *eth0: *\\([0-9]*\\).*/\\1/p' /proc/net/dev").parse().unwrap()
    }

    /// Works with another client from now on.
    pub(crate) fn use_client(&mut self, client: AnyClient) {
        self.client = Some(client);
    }

    /// The pure half of a type.
    pub(crate) fn spec(&self, kind: &str) -> &dyn ResourceSpec {
        self.driver.specs().into_iter().find(|s| s.name() == kind).expect("a type of this name")
    }

    /// All arguments, with defaults, as the language gives them.
    pub(crate) fn arguments<const N: usize>(&self, kind: &str, parts: [(&str, Value); N]) -> Object {
        let given = object(parts);
        let attributes = self.spec(kind).schema().attributes.iter().filter(|a| a.is_configurable());
        let mut arguments: Object = attributes
            .map(|a| {
                let value = given.get(a.name).cloned().or_else(|| a.default.clone());
                (a.name.to_owned(), value.unwrap_or_else(|| Value::null(a.ty.clone())))
            })
            .collect();
        arguments.insert("host".into(), self.connection().into());
        arguments
    }

    /// Looks at one thing.
    pub(crate) fn observe(&self, kind: &str, identity_of: &Object, known: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        self.ask(kind, identity_of, known, None)
    }

    fn ask(&self, kind: &str, identity_of: &Object, known: Option<&Object>, wanted: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        let identity = self.spec(kind).schema().identity(identity_of);
        let asks = [Ask { resource_type: kind.to_owned(), identity, known: known.cloned(), wanted: wanted.cloned(), begun: false }];
        self.runtime.block_on(self.driver.rehearse(self.client(), &asks)).remove(0)
    }

    /// Observes and plans, as the engine does: what was seen over what the state says.
    pub(crate) fn plan(&self, kind: &str, state: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostic> {
        let seen = self.ask(kind, wanted.or(state).unwrap(), state, wanted)?;
        let before = seen.map(|seen| {
            let mut before = state.cloned().unwrap_or_default();
            before.insert("host".into(), self.connection().into());
            before.extend(seen);
            before
        });
        let planned = self.spec(kind).plan(&PlanContext { now: 0 }, before.as_ref(), wanted);
        planned.map_err(|d| d.into_iter().next().unwrap())
    }

    /// Carries a change out.
    pub(crate) fn apply(&self, kind: &str, change: &Change) -> Result<Option<Object>, Diagnostic> {
        let mut done = self.runtime.block_on(self.driver.apply(self.client(), kind, change))?;
        if let Some(object) = &mut done {
            let schema = self.spec(kind).schema();
            object.retain(|name, _| schema.attribute(name).is_some_and(karmaform_model::Attribute::is_stored));
            assert!(object.values().all(Value::is_wholly_known), "{object:?}");
            assert_keeps_promises(change, object);
        }
        Ok(done)
    }

    /// Plans, checks the action, applies it twice (each step twice must equal once), and gives the new state.
    pub(crate) fn step(&self, kind: &str, state: Option<&Object>, wanted: Option<&Object>, expected: Action) -> Option<Object> {
        let change = self.plan(kind, state, wanted).unwrap();
        assert_eq!(change.action(), expected, "{change:?}");
        if expected == Action::NoOp {
            return state.cloned();
        }
        let first = self.apply(kind, &change).unwrap();
        let second = self.apply(kind, &change).unwrap();
        if kind != "ssh_command" {
            // a command whose check now passes prints nothing the second time
            assert_eq!(first, second, "done twice");
        }
        second
    }

    /// Creates it, and sees that there is nothing left to do.
    pub(crate) fn create(&self, kind: &str, wanted: &Object) -> Object {
        let state = self.step(kind, None, Some(wanted), Action::Create).unwrap();
        self.step(kind, Some(&state), Some(wanted), Action::NoOp);
        // the state is lost: what is ours is found again, and at most done once more
        if kind != "ssh_command" {
            let again = self.plan(kind, None, Some(wanted)).unwrap();
            assert!(matches!(again.action(), Action::NoOp | Action::Update), "{again:?}");
            assert_eq!(
                again.action() == Action::NoOp,
                matches!(kind, "ssh_file" | "ssh_directory" | "ssh_hosts_entries" | "ssh_package" | "ssh_user"),
                "{again:?}"
            );
        }
        state
    }

    /// Deletes it, and sees that nothing of ours is left on the host.
    pub(crate) fn delete(&self, kind: &str, state: &Object) {
        let change = Change::Delete { before: state.clone() };
        assert_eq!(self.apply(kind, &change).unwrap(), None);
        assert_eq!(self.apply(kind, &change).unwrap(), None, "already gone");
        self.assert_nothing_left();
    }

    /// The ownership file and everything else of ours is gone.
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(
            self.shell("ls -d /var/lib/karmaform /run/karmaform* 2>/dev/null; find / -xdev -name '.karmaform*' 2>/dev/null; true"),
            ""
        );
    }

    /// Runs a command on the test's host, by the ssh client of this machine.
    pub(crate) fn shell(&self, command: &str) -> String {
        let output = self.ssh(command);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn ssh(&self, command: &str) -> Output {
        let options = ["-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", &format!("UserKnownHostsFile={}", self.known_hosts)]
            .map(str::to_owned);
        Command::new("ssh").args(options).args(["-i", &self.key, &format!("root@{}", self.address(0)), command]).output().unwrap()
    }

    /// A local file.
    pub(crate) fn local(&self, name: &str, content: &[u8]) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_string_lossy().into_owned()
    }
}

/// What the plan showed is what came out.
fn assert_keeps_promises(change: &Change, done: &Object) {
    for (name, planned) in change.after().into_iter().flatten().filter(|(_, v)| v.is_wholly_known()) {
        if let Some(now) = done.get(name) {
            assert!(karmaform_model::same(Some(planned), Some(now)), "{name}: {planned:?} was planned, {now:?} came out");
        }
    }
}
