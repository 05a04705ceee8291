//! The host cluster as its administrator sees it.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Host;

/// What comes and goes by itself, and what only says what was seen.
const NOT_COUNTED: &[&str] = &["events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io"];
/// A namespace is gone when all in it is, and its pods take their time.
const PATIENCE: Duration = Duration::from_secs(90);

impl Host {
    pub(crate) fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.kubectl();
        command.args(["--kubeconfig", &self.kubeconfig]).args(arguments);
        command
    }

    /// kubectl for any kubeconfig; it keeps nothing in the home folder.
    pub(crate) fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--cache-dir").arg(self.cache.path()).stdin(Stdio::null());
        command
    }

    /// What kubectl prints; it must succeed.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("kubectl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "kubectl {}\n{text}{}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        text
    }

    /// One object of the namespace.
    #[track_caller]
    pub(crate) fn object(&self, kind: &str, name: &str) -> Value {
        serde_json::from_str(&self.run(&["-n", &self.namespace, "get", kind, name, "-o", "json"])).expect("JSON")
    }

    /// Waits until something is so that comes by itself.
    #[track_caller]
    pub(crate) fn eventually(&self, what: &str, is_so: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The names of all objects, in namespaces and outside, but for what comes and goes by itself.
    #[track_caller]
    pub(crate) fn inventory(&self) -> BTreeSet<String> {
        let kinds = self.run(&["api-resources", "--verbs=list,delete", "-o", "name"]);
        let kinds: Vec<_> = kinds.split_whitespace().filter(|k| !NOT_COUNTED.contains(k)).collect();
        let format = "-o=jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}";
        let text = self.run(&["get", &kinds.join(","), "--all-namespaces", format]);
        // Tests of states keep theirs in the same cluster at the same time.
        let is_state = |line: &str| line.contains("/tfstate-") || line.contains("/lock-tfstate-");
        text.lines().filter(|l| !l.is_empty() && !is_state(l)).map(str::to_owned).collect()
    }

    /// Everything is as it was; what is on its way out is waited for.
    #[track_caller]
    pub(crate) fn is_as_before(&self, before: &BTreeSet<String>) {
        let started = Instant::now();
        loop {
            let now = self.inventory();
            let more: Vec<_> = now.difference(before).collect();
            let less: Vec<_> = before.difference(&now).collect();
            if more.is_empty() && less.is_empty() {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "left over: {more:#?}\ntaken away: {less:#?}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}
