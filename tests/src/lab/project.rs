//! `examples/etcd-on-hosts` for the lab's hosts, and etcdctl for what it makes.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::Lab;
use crate::project::Project;

/// How long a node may take to send those who ask a Service to the pods that there are.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the example is given.
pub(super) struct Given<'a> {
    pub(super) hosts: &'a [(String, String)],
    pub(super) etcd: &'a (String, String),
    pub(super) more: &'a str,
}

impl Project {
    /// `examples/etcd-on-hosts` for these hosts, by the newest etcd.
    pub(super) fn etcd(lab: &Lab) -> Self {
        Self::etcd_with(lab, &Given { hosts: &lab.hosts, etcd: lab.etcd.last().expect("an etcd"), more: "" })
    }

    pub(super) fn etcd_with(lab: &Lab, given: &Given<'_>) -> Self {
        let project = Self::example("etcd-on-hosts");
        project.variables(lab, given);
        project
    }

    /// Writes what it is given.
    pub(super) fn variables(&self, lab: &Lab, given: &Given<'_>) {
        let hosts: String = given.hosts.iter().map(|(name, address)| format!("  {name} = \"{address}\"\n")).collect();
        self.write(
            "karmaform.kfvars.hcl",
            &format!(
                "hosts = {{\n{hosts}}}\nprivate_key_file = \"{}\"\nknown_hosts_file = \"{}\"\netcd_version = \"{}\"\netcd_source = \"{}\"\n{}\n",
                lab.key, lab.known_hosts, given.etcd.0, given.etcd.1, given.more
            ),
        );
    }

    pub(super) fn settings(&self, settings: &str) {
        self.write("settings.auto.kfvars.hcl", &format!("settings = {{ {settings} }}\n"));
    }
}

/// `etcdctl` as a user has it: out of the archive, with the example's outputs.
pub(crate) struct Etcdctl<'a> {
    project: &'a Project,
    endpoints: String,
    /// The certificates have other names than these endpoints: those of pods, and the client asks by the address of their Service.
    by_service: bool,
}

impl<'a> Etcdctl<'a> {
    pub(super) fn new(project: &'a Project, archive: &str) -> Self {
        let json: serde_json::Value = serde_json::from_str(&project.must(0, &["output", "-json", "endpoints"])).expect("JSON");
        let endpoints: Vec<_> = json.as_array().expect("a list").iter().filter_map(serde_json::Value::as_str).collect();
        Self::at(project, archive, endpoints.join(","))
    }

    /// With these endpoints.
    pub(crate) fn at(project: &'a Project, archive: &str, endpoints: String) -> Self {
        let unpacked = Command::new("tar").args(["-xzf", archive, "--strip-components=1"]).current_dir(project.path()).status();
        assert!(unpacked.is_ok_and(|s| s.success()), "unpacking {archive}");
        for name in ["ca_certificate", "client_certificate", "client_key"] {
            project.write(name, &project.output(name));
        }
        Self { project, endpoints, by_service: false }
    }

    /// By the address of the Service of a cluster in pods.
    pub(crate) fn by_service(project: &'a Project, archive: &str, address: &str) -> Self {
        Self { by_service: true, ..Self::at(project, archive, format!("https://{address}:2379")) }
    }

    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let (worked, text) = self.attempt(arguments);
            // The node learns a moment after everybody else that a pod has another address: who was sent to that of before had no connection, or one
            // that nobody answers any more.
            let is_unanswered = ["context deadline exceeded", "DeadlineExceeded", "Unavailable"].iter().any(|w| text.contains(w));
            if self.by_service && !worked && is_unanswered && Instant::now() < until {
                continue;
            }
            assert!(worked, "etcdctl {}\n{text}", arguments.join(" "));
            return text;
        }
    }

    /// The number that is the value of a key, 0 where there is no such key; `None`: nobody answered.
    pub(super) fn value(&self, key: &str) -> Option<usize> {
        let output = self.output(&["get", key, "--print-value-only"], Stdio::null());
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let number = || if text.is_empty() { 0 } else { text.parse::<usize>().unwrap_or_else(|_| panic!("{key} is {text:?}")) };
        output.status.success().then(number)
    }

    /// Writes what a file has, as more than an argument can be; not for long.
    pub(super) fn tries_file(&self, key: &str, file: &Path) -> bool {
        let file = File::open(file).expect("a file");
        self.output(&["put", key, "--command-timeout=3s"], Stdio::from(file)).status.success()
    }

    pub(crate) fn tries(&self, arguments: &[&str]) -> bool {
        self.attempt(arguments).0
    }

    /// Removes a member, by its id. etcd refuses that for some seconds after a start; and who answers for itself may be gone before its answer is.
    #[track_caller]
    pub(crate) fn removes(&self, id: &str) {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let (worked, text) = self.attempt(&["member", "remove", id]);
            if worked || text.contains("member not found") {
                return;
            }
            assert!(Instant::now() < until, "{id} can't be removed: {text}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn attempt(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.output(arguments, Stdio::null());
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    }

    fn output(&self, arguments: &[&str], stdin: Stdio) -> Output {
        Command::new(self.project.path().join("etcdctl"))
            .args([
                "--cacert=ca_certificate",
                "--cert=client_certificate",
                "--key=client_key",
                "--dial-timeout=5s",
                "--command-timeout=10s",
            ])
            .args(self.by_service.then_some("--insecure-skip-tls-verify"))
            .arg(format!("--endpoints={}", self.endpoints))
            .args(arguments)
            .current_dir(self.project.path())
            .stdin(stdin)
            .output()
            .expect("etcdctl")
    }
}
