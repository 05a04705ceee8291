//! A control plane as its users have it: a project, and kubectl with the kubeconfig that comes out of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::{Host, KARMADA};
use crate::project::Project;

/// The command as a process, with the example.
pub(super) struct Plane<'a> {
    pub(super) host: &'a Host,
    pub(super) project: Project,
}

/// What an instance's Karmada API is asked with, from outside the host cluster: by its Service's address, and its own name.
pub(super) struct Kubectl<'a> {
    host: &'a Host,
    arguments: Vec<String>,
}

/// The way to the host cluster, for a configuration that is not the example.
pub(super) fn host_block(host: &Host) -> String {
    format!(
        r#"
data "kubernetes_cluster" "host" {{
  kubeconfig_file = "{}"
}}
"#,
        host.kubeconfig()
    )
}

/// An etcd for the control plane of this name: one member whose data goes with its pod. `more` goes into its block.
pub(super) fn etcd_block(host: &Host, name: &str, more: &str) -> String {
    let (version, namespace) = (&host.etcd_version, &host.namespace);
    format!(
        r#"
resource "etcd_cluster" "{name}" {{
  version = "{version}"
  kubernetes {{
    cluster   = data.kubernetes_cluster.host
    name      = "{name}-etcd"
    namespace = "{namespace}"
    members   = 1
    storage   = "emptyDir"
    resources = {{}}
  }}
  {more}
}}
"#
    )
}

impl<'a> Plane<'a> {
    /// The example, with one member of etcd whose data goes with its pod.
    pub(super) fn example(host: &'a Host, name: &str) -> Self {
        let plane = Self { host, project: Project::example("karmada-on-kubernetes") };
        plane.values(name, "");
        plane
    }

    /// Writes the example's values, but for those that are among these, and these after them.
    pub(super) fn values(&self, name: &str, more: &str) {
        let host = self.host;
        let mut text = String::new();
        for (variable, value) in [
            ("kubeconfig", host.kubeconfig()),
            ("namespace", &host.namespace),
            ("name", name),
            ("karmada_version", KARMADA),
            ("kube_version", &host.kube_version),
            ("etcd_version", &host.etcd_version),
            ("crds", &host.crds.to_string_lossy()),
            ("storage", "emptyDir"),
            ("service_type", "ClusterIP"),
            ("etcd_members", "1"),
        ] {
            if !more.lines().any(|l| l.starts_with(&format!("{variable} ="))) {
                let _ = writeln!(text, "{variable} = {value:?}");
            }
        }
        self.project.write("karmaform.kfvars.hcl", &format!("{text}{more}\n"));
    }

    /// Puts a block into that of the (first) control plane, in place of the one that was put there before.
    pub(super) fn with_block(&self, block: &str) {
        const MARK: &str = " # put here by a test";
        for entry in std::fs::read_dir(self.project.path()).expect("the project").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            if !name.ends_with(".kf.hcl") || !text.contains("resource \"karmada_control_plane\"") {
                continue;
            }
            let (mut next, mut block) = (String::new(), Some(block));
            for line in text.lines().filter(|l| !l.ends_with(MARK)) {
                let _ = writeln!(next, "{line}");
                if line.starts_with("resource \"karmada_control_plane\"") {
                    for line in block.take().into_iter().flat_map(str::lines) {
                        let _ = writeln!(next, "  {line}{MARK}");
                    }
                }
            }
            self.project.write(&name, &next);
            return;
        }
        panic!("the example has no karmada_control_plane");
    }

    /// The parts that a plan would change.
    #[track_caller]
    pub(super) fn planned(&self) -> BTreeSet<String> {
        let text = self.project.must(2, &["plan", "-detailed-exitcode"]);
        let words = text.split_whitespace().filter(|w| w.starts_with("karmada_control_plane.") && w.contains('/'));
        words.map(|w| w.trim_end_matches([':', ',']).to_owned()).collect()
    }

    /// A plan changes parts of this component, and no others.
    #[track_caller]
    pub(super) fn plans_only(&self, component: &str) {
        let parts = self.planned();
        assert!(!parts.is_empty(), "nothing is planned for {component}");
        let others: Vec<_> = parts.iter().filter(|p| !p.contains(&format!("[\"{component}\"]"))).collect();
        assert!(others.is_empty(), "not only {component} changes: {others:#?}");
    }

    /// Applies, and then there is nothing to do.
    #[track_caller]
    pub(super) fn converge(&self) -> String {
        let applied = self.project.apply();
        self.project.no_changes();
        applied
    }

    /// kubectl for the kubeconfig in this output.
    #[track_caller]
    pub(super) fn kubectl(&self, output: &str) -> Kubectl<'a> {
        let kubeconfig = self.project.output(output);
        let server = kubeconfig.lines().find_map(|l| l.split_once("server:")).map(|(_, url)| url.trim().trim_matches('"').to_owned());
        let server = server.expect("a server in the kubeconfig");
        let name = server.trim_start_matches("https://").split(':').next().unwrap_or_default().to_owned();
        let service = self.host.object("service", name.split('.').next().unwrap_or_default());
        let address = service["spec"]["clusterIP"].as_str().expect("an address of the Service");
        let file = format!("{output}.yaml");
        self.project.write(&file, &kubeconfig);
        let file = self.project.path().join(&file).to_string_lossy().into_owned();
        let arguments = vec![
            format!("--kubeconfig={file}"),
            format!("--server={}", server.replace(&name, address)),
            format!("--tls-server-name={name}"),
        ];
        Kubectl { host: self.host, arguments }
    }
}

impl Kubectl<'_> {
    /// Whether it succeeds.
    pub(super) fn tries(&self, arguments: &[&str]) -> bool {
        self.host.kubectl().args(&self.arguments).args(arguments).output().is_ok_and(|o| o.status.success())
    }

    /// What it prints; it must succeed.
    #[track_caller]
    pub(super) fn run(&self, arguments: &[&str]) -> String {
        let output = self.host.kubectl().args(&self.arguments).args(arguments).output().expect("kubectl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "kubectl {}\n{text}{}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        text
    }

    /// The status of a condition of an object: "True".
    #[track_caller]
    pub(super) fn condition(&self, kind: &str, name: &str, condition: &str) -> String {
        let object: Value = serde_json::from_str(&self.run(&["get", kind, name, "-o", "json"])).expect("JSON");
        let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.iter().find(|c| c["type"] == condition).and_then(|c| c["status"].as_str()).unwrap_or("missing").to_owned()
    }

    /// How many lines, but for empty ones, it prints.
    #[track_caller]
    pub(super) fn count(&self, arguments: &[&str]) -> usize {
        self.run(arguments).lines().filter(|l| !l.trim().is_empty()).count()
    }
}
