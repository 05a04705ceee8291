//! A control plane on hosts as its users have it: a project, and kubectl for the API server of each host.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{KARMADA, Parts};
use crate::lab::Lab;
use crate::parts::{tell, url};
use crate::project::Project;

/// Where everybody reaches the API: what the kubeconfig says.
pub(super) const EVERYBODYS: &str = "everybody's";

/// The command as a process, with the example.
pub(super) struct Site<'a> {
    pub(super) lab: &'a Lab,
    parts: &'a Parts,
    pub(super) project: Project,
    /// Where the load balancer is, if the hosts have packages to make one of.
    pub(super) vip: Option<String>,
    /// Where kubectl remembers which kinds there are.
    cache: tempfile::TempDir,
    /// Links to where programs and archives come from, which can be taken away.
    sources: tempfile::TempDir,
}

impl<'a> Site<'a> {
    /// The example on so many of the lab's hosts.
    pub(super) fn example(lab: &'a Lab, parts: &'a Parts, hosts: usize) -> Self {
        let first = &lab.hosts[0];
        let end = first.1.rfind(['.', ':']).expect("an address");
        let vip = lab.has_packages().then(|| format!("{}90", &first.1[..=end]));
        if vip.is_none() {
            tell("*** SKIPPED (the hosts have no packages to install): the load balancer");
        }
        let cache = tempfile::tempdir().expect("a directory");
        let sources = tempfile::tempdir().expect("a directory");
        let site = Self { lab, parts, project: Project::example("karmada-on-hosts"), vip, cache, sources };
        site.link();
        site.values(hosts, "");
        site
    }

    /// What is behind the links, by their names.
    fn links(&self) -> [(&'static str, std::path::PathBuf); 4] {
        let etcd = self.lab.etcd.last().expect("an etcd").1.clone().into();
        let (karmada, kube) = (self.parts.karmada.clone(), self.parts.kube.clone());
        [("karmada", karmada), ("kube", kube), ("etcd.tar.gz", etcd), ("crds.tar.gz", self.parts.crds.clone())]
    }

    fn link(&self) {
        for (name, target) in self.links() {
            std::os::unix::fs::symlink(target, self.sources.path().join(name)).expect("a link");
        }
    }

    /// Does something with all that comes from elsewhere in a bundle, and nothing of it anywhere else.
    pub(super) fn with_a_bundle_alone<T>(&self, work: impl FnOnce() -> T) -> T {
        self.project.must(0, &["bundle", "-out=site.kfbundle"]);
        for (name, _) in self.links() {
            std::fs::remove_file(self.sources.path().join(name)).expect("a link");
        }
        self.project.write("bundle.kf.hcl", "karmaform {\n  bundle = \"site.kfbundle\"\n}\n");
        let done = work();
        self.link();
        self.project.remove("bundle.kf.hcl");
        self.project.remove("site.kfbundle");
        done
    }

    /// Writes the example's values, but for those that are among these, and these after them.
    pub(super) fn values(&self, hosts: usize, more: &str) {
        let (etcd_version, _) = self.lab.etcd.last().expect("an etcd");
        let source = |name: &str| self.sources.path().join(name).display().to_string();
        let hosts: String = self.lab.hosts[..hosts].iter().map(|(name, address)| format!("  {name} = \"{address}\"\n")).collect();
        let mut text = format!("hosts = {{\n{hosts}}}\n");
        for (variable, value) in [
            ("private_key_file", self.lab.key.clone()),
            ("known_hosts_file", self.lab.known_hosts.clone()),
            ("etcd_version", etcd_version.clone()),
            ("etcd_source", source("etcd.tar.gz")),
            ("name", "demo".to_owned()),
            ("karmada_version", KARMADA.to_owned()),
            ("kube_version", self.parts.kube_version.clone()),
            ("karmada_source", format!("{}/{{program}}", source("karmada"))),
            ("kube_source", format!("{}/{{program}}", source("kube"))),
            ("crds", source("crds.tar.gz")),
        ] {
            if !more.lines().any(|l| l.starts_with(&format!("{variable} ="))) {
                let _ = writeln!(text, "{variable} = {value:?}");
            }
        }
        if let Some(vip) = &self.vip {
            let _ = writeln!(text, "vip = {vip:?}");
        }
        self.project.write("karmaform.kfvars.hcl", &format!("{text}{more}\n"));
    }

    /// Puts a block into that of the control plane, in place of the one that was put there before.
    pub(super) fn with_block(&self, block: &str) {
        self.put("resource \"karmada_control_plane\"", block, " # put here by a test");
    }

    /// Puts lines into the block `load_balancer`, in place of those that were put there before.
    pub(super) fn with_balancer(&self, lines: &str) {
        self.put("      vip = ", lines, " # put into the load balancer by a test");
    }

    /// Puts lines behind the one that begins so; by the mark they are found again.
    fn put(&self, behind: &str, lines: &str, mark: &str) {
        let path = self.project.path().join("main.kf.hcl");
        let text = std::fs::read_to_string(path).expect("the example");
        let mut next = String::new();
        for line in text.lines().filter(|l| !l.ends_with(mark)) {
            let _ = writeln!(next, "{line}");
            if line.starts_with(behind) {
                for line in lines.lines() {
                    let _ = writeln!(next, "  {line}{mark}");
                }
            }
        }
        self.project.write("main.kf.hcl", &next);
    }

    /// Applies, and then there is nothing to do.
    #[track_caller]
    pub(super) fn converge(&self) -> String {
        let applied = self.project.apply();
        self.project.no_changes();
        applied
    }

    /// kubectl as the administrator, for the API server of a host; or for what the kubeconfig says.
    fn kubectl(&self, host: &str, arguments: &[&str]) -> Command {
        let file = self.project.path().join("kubeconfig.yaml");
        if !file.exists() {
            self.project.write("kubeconfig.yaml", &self.project.output("kubeconfig"));
        }
        let mut command = Command::new(self.parts.kube.join("kubectl"));
        command.arg("--kubeconfig").arg(file);
        if host != EVERYBODYS {
            let address = &self.lab.hosts.iter().find(|(n, _)| n == host).expect("a host").1;
            command.arg(format!("--server={}", url(address, 5443)));
        }
        command.arg("--cache-dir").arg(self.cache.path()).arg("--request-timeout=5s").args(arguments).stdin(Stdio::null());
        command
    }

    /// What it prints; it must succeed.
    #[track_caller]
    pub(super) fn ask(&self, host: &str, arguments: &[&str]) -> String {
        let output = self.kubectl(host, arguments).output().expect("kubectl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{host}: kubectl {}\n{text}{}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        text
    }

    pub(super) fn answers(&self, host: &str, arguments: &[&str]) -> bool {
        self.kubectl(host, arguments).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    }

    /// Waits until it does, and says how long that took.
    #[track_caller]
    pub(super) fn answers_within(&self, limit: Duration, host: &str, arguments: &[&str]) -> Duration {
        let started = Instant::now();
        while !self.answers(host, arguments) {
            assert!(started.elapsed() < limit, "{host}: kubectl {} does not work within {limit:?}", arguments.join(" "));
            std::thread::sleep(Duration::from_millis(200));
        }
        started.elapsed()
    }

    /// Policies are admitted through the API server of a host: both kinds of webhooks answer it.
    #[track_caller]
    pub(super) fn admits(&self, host: &str) {
        self.project.write("policy.yaml", POLICY);
        let file = self.project.path().join("policy.yaml").to_string_lossy().into_owned();
        // What kubectl checks itself it checks by OpenAPI, which an API server puts together some seconds after all else.
        self.ask(host, &["create", "--validate=false", "-f", &file]);
        self.ask(host, &["delete", "-f", &file]);
    }
}

const POLICY: &str = r#"
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: { name: probe, namespace: default }
spec:
  resourceSelectors: [{ apiVersion: apps/v1, kind: Deployment }]
  placement: { clusterAffinity: { clusterNames: [one] } }
"#;
