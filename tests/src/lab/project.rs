//! A working directory with the example in it, and the command as a process there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::Lab;
use crate::parts::root;

/// Longer than anything here takes; so a wait without end fails and does not hang.
const LIMIT: Duration = Duration::from_secs(240);

pub(super) struct Project {
    directory: tempfile::TempDir,
}

/// How a command ended.
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    /// Both streams.
    pub(super) text: String,
    pub(super) took: Duration,
}

/// What the example is given.
pub(super) struct Given<'a> {
    pub(super) hosts: &'a [(String, String)],
    pub(super) etcd: &'a (String, String),
    pub(super) more: &'a str,
}

impl Project {
    /// An empty directory.
    pub(super) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// `examples/etcd-on-hosts` for these hosts, by the newest etcd.
    pub(super) fn etcd(lab: &Lab) -> Self {
        Self::etcd_with(lab, &Given { hosts: &lab.hosts, etcd: lab.etcd.last().expect("an etcd"), more: "" })
    }

    pub(super) fn etcd_with(lab: &Lab, given: &Given<'_>) -> Self {
        let project = Self::new();
        let example = root().join("examples/etcd-on-hosts");
        for entry in fs::read_dir(&example).expect("the example").flatten() {
            if entry.file_name().to_string_lossy().ends_with(".kf.hcl") {
                fs::copy(entry.path(), project.path().join(entry.file_name())).expect("copied");
            }
        }
        let hosts: String = given.hosts.iter().map(|(name, address)| format!("  {name} = \"{address}\"\n")).collect();
        project.write(
            "karmaform.kfvars.hcl",
            &format!(
                "hosts = {{\n{hosts}}}\nprivate_key_file = \"{}\"\nknown_hosts_file = \"{}\"\netcd_version = \"{}\"\netcd_source = \"{}\"\n{}\n",
                lab.key, lab.known_hosts, given.etcd.0, given.etcd.1, given.more
            ),
        );
        project
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).expect("written");
    }

    pub(super) fn settings(&self, settings: &str) {
        self.write("settings.auto.kfvars.hcl", &format!("settings = {{ {settings} }}\n"));
    }

    /// Starts a command.
    pub(super) fn start(&self, arguments: &[&str]) -> Running {
        let (out, err) = (self.path().join("stdout"), self.path().join("stderr"));
        let file = |path: &PathBuf| Stdio::from(fs::File::create(path).expect("a file"));
        let child = Command::new(env!("CARGO_BIN_EXE_karmaform-under-test"))
            .args(arguments)
            .current_dir(self.path())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(file(&out))
            .stderr(file(&err))
            .spawn()
            .expect("the command");
        Running { child, out, err, started: Instant::now(), line: arguments.join(" ") }
    }

    /// Runs a command to its end.
    pub(super) fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// Runs it; it must end with this code.
    #[track_caller]
    pub(super) fn must(&self, code: i32, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(code), "karmaform {}\n{}", arguments.join(" "), ended.text);
        ended.text
    }

    #[track_caller]
    pub(super) fn apply(&self) -> String {
        self.must(0, &["apply", "-auto-approve"])
    }

    #[track_caller]
    pub(super) fn no_changes(&self) {
        let text = self.must(0, &["plan", "-detailed-exitcode"]);
        assert!(text.contains("No changes"), "{text}");
    }

    #[track_caller]
    pub(super) fn output(&self, name: &str) -> String {
        let output =
            Command::new(env!("CARGO_BIN_EXE_karmaform-under-test")).args(["output", "-raw", name]).current_dir(self.path()).output();
        let Output { status, stdout, stderr } = output.expect("the command");
        assert!(status.success(), "output {name}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8_lossy(&stdout).into_owned()
    }
}

/// A command under way.
pub(super) struct Running {
    pub(super) child: Child,
    out: PathBuf,
    err: PathBuf,
    started: Instant,
    line: String,
}

impl Running {
    pub(super) fn text(&self) -> String {
        [&self.out, &self.err].iter().map(|p| String::from_utf8_lossy(&fs::read(p).unwrap_or_default()).into_owned()).collect()
    }

    /// Waits until it has said this; false if it ended before.
    pub(super) fn says(&mut self, words: &str) -> bool {
        while self.started.elapsed() < LIMIT {
            if self.text().contains(words) {
                return true;
            }
            if self.child.try_wait().expect("a process").is_some() {
                return self.text().contains(words);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    pub(super) fn end(mut self) -> Ended {
        loop {
            if let Some(status) = self.child.try_wait().expect("a process") {
                return Ended { code: status.code(), text: self.text(), took: self.started.elapsed() };
            }
            if self.started.elapsed() > LIMIT {
                let _ = self.child.kill();
                panic!("karmaform {} did not end within {LIMIT:?}:\n{}", self.line, self.text());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGKILL.
    pub(super) fn kill(mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.text()
    }
}

/// `etcdctl` as a user has it: out of the archive, with the example's outputs.
pub(super) struct Etcdctl<'a> {
    project: &'a Project,
    endpoints: String,
}

impl<'a> Etcdctl<'a> {
    pub(super) fn new(project: &'a Project, archive: &str) -> Self {
        let unpacked = Command::new("tar").args(["-xzf", archive, "--strip-components=1"]).current_dir(project.path()).status();
        assert!(unpacked.is_ok_and(|s| s.success()), "unpacking {archive}");
        for name in ["ca_certificate", "client_certificate", "client_key"] {
            project.write(name, &project.output(name));
        }
        let json: serde_json::Value = serde_json::from_str(&project.must(0, &["output", "-json", "endpoints"])).expect("JSON");
        let endpoints: Vec<_> = json.as_array().expect("a list").iter().filter_map(serde_json::Value::as_str).collect();
        Self { project, endpoints: endpoints.join(",") }
    }

    #[track_caller]
    pub(super) fn run(&self, arguments: &[&str]) -> String {
        let (worked, text) = self.attempt(arguments);
        assert!(worked, "etcdctl {}\n{text}", arguments.join(" "));
        text
    }

    pub(super) fn tries(&self, arguments: &[&str]) -> bool {
        self.attempt(arguments).0
    }

    fn attempt(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(self.project.path().join("etcdctl"))
            .env("ETCDCTL_API", "3")
            .args([
                "--cacert=ca_certificate",
                "--cert=client_certificate",
                "--key=client_key",
                "--dial-timeout=5s",
                "--command-timeout=10s",
            ])
            .arg(format!("--endpoints={}", self.endpoints))
            .args(arguments)
            .current_dir(self.project.path())
            .output()
            .expect("etcdctl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    }
}
