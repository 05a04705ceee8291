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

    /// The names of all objects that stay, in namespaces and outside, but for what comes and goes by itself. What earlier tests had is gone
    /// only when its namespace is.
    #[track_caller]
    pub(crate) fn inventory(&self) -> BTreeSet<String> {
        self.listed().into_iter().filter_map(|(name, stays)| stays.then_some(name)).collect()
    }

    /// All of these, and whether they stay: neither they nor their namespace are on their way out.
    #[track_caller]
    fn listed(&self) -> Vec<(String, bool)> {
        let kinds = self.run(&["api-resources", "--verbs=list,delete", "-o", "name"]);
        let kinds: Vec<_> = kinds.split_whitespace().filter(|k| !NOT_COUNTED.contains(k)).collect();
        let format =
            "-o=jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name} {.metadata.deletionTimestamp}{\"\\n\"}{end}";
        let text = self.run(&["get", &kinds.join(","), "--all-namespaces", format]);
        // Tests of states keep theirs in the same cluster at the same time.
        let is_state = |line: &str| line.contains("/tfstate-") || line.contains("/lock-tfstate-");
        let objects: Vec<(&str, &str)> = text.lines().filter(|l| !is_state(l)).filter_map(|l| l.split_once(' ')).collect();
        let is_going = |name: &str| objects.iter().any(|(n, deleted)| *n == name && !deleted.is_empty());
        let going: BTreeSet<&str> =
            objects.iter().filter_map(|(n, _)| n.strip_prefix("Namespace//")).filter(|n| is_going(&format!("Namespace//{n}"))).collect();
        let stays = |name: &str, deleted: &str| deleted.is_empty() && name.split('/').nth(1).is_none_or(|n| !going.contains(n));
        objects.iter().map(|(name, deleted)| ((*name).to_owned(), stays(name, deleted))).collect()
    }

    /// Everything is as it was; what is on its way out is waited for.
    #[track_caller]
    pub(crate) fn is_as_before(&self, before: &BTreeSet<String>) {
        let started = Instant::now();
        loop {
            let now: BTreeSet<String> = self.listed().into_iter().map(|(name, _)| name).collect();
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
