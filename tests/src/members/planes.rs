//! The clusters: two planes and two members, started at once, and ended however the test ends.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::api::Api;
use super::controller::Controller;
use super::{PATIENCE, eventually};
use crate::parts::tell;

/// Starts a cluster, and ends it when nobody holds the other end of its input any more: even a killed test leaves none behind.
const KEEPER: &str = r#"trap '' INT TERM HUP; bash "$0" up "$1" && read -r _; bash "$0" down "$1""#;

/// Where kinds are that joining makes, or could leave behind.
const KINDS: [&str; 6] = [
    "/api/v1/namespaces",
    "/api/v1/serviceaccounts",
    "/api/v1/secrets",
    "/api/v1/configmaps",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
];
/// And in a plane.
const PLANE_KINDS: [&str; 2] = ["/apis/cluster.karmada.io/v1alpha1/clusters", "/apis/work.karmada.io/v1alpha1/works"];

/// One cluster. It ends when it is dropped.
pub(crate) struct Cluster {
    /// In the lab.
    pub(crate) name: String,
    pub(crate) kubeconfig: String,
    kubectl: String,
    /// Where kubectl remembers which kinds there are.
    cache: tempfile::TempDir,
    pub(super) api: Api,
    keeper: Child,
}

/// All of them, and what stands in for the planes' controllers.
pub(super) struct Planes {
    // They end before what they look after.
    _controllers: [Controller; 2],
    pub(super) p1: Arc<Cluster>,
    pub(super) p2: Arc<Cluster>,
    pub(super) m1: Arc<Cluster>,
    pub(super) m2: Arc<Cluster>,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

impl Planes {
    /// Running; `None`, and said so, where none can.
    pub(super) fn up(test: &str) -> Option<Self> {
        let Some(script) = variable("KARMAFORM_TEST_KUBE") else {
            tell(&format!("*** SKIPPED (no Kubernetes): {test}"));
            return None;
        };
        let started = Instant::now();
        let lab = variable("KARMAFORM_TEST_KUBE_NAME").expect("a name of the cluster, where there is one");
        let starting = ["p1", "p2", "m1", "m2"].map(|name| Starting::new(&script, &format!("{lab}{name}")));
        let [p1, p2, m1, m2] = starting.map(|s| Arc::new(s.end()));
        let controllers = [&p1, &p2].map(|plane| {
            plane.becomes_a_plane();
            Controller::of(plane)
        });
        tell(&format!("members: four clusters in {:.1?}", started.elapsed()));
        Some(Self { _controllers: controllers, p1, p2, m1, m2 })
    }
}

impl Cluster {
    /// One more cluster, without a node, that the lab can start.
    pub(crate) fn up(name: &str) -> Self {
        let script = variable("KARMAFORM_TEST_KUBE").expect("the lab's script");
        let lab = variable("KARMAFORM_TEST_KUBE_NAME").expect("a name of the cluster");
        Starting::new(&script, &format!("{lab}{name}")).end()
    }
}

/// A cluster that is being started. It ends when it is dropped.
struct Starting {
    name: String,
    keeper: Option<Child>,
}

impl Starting {
    fn new(script: &str, name: &str) -> Self {
        let mut command = Command::new("bash");
        command.args(["-c", KEEPER, script, name]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self { name: name.to_owned(), keeper: Some(command.spawn().expect("bash")) }
    }

    /// When it is up.
    fn end(mut self) -> Cluster {
        let keeper = self.keeper.as_mut().expect("a keeper");
        let mut line = String::new();
        let _ = BufReader::new(keeper.stdout.as_mut().expect("an output")).read_line(&mut line);
        let environment = std::fs::read_to_string(line.trim()).unwrap_or_else(|e| panic!("{} did not start: {e}", self.name));
        let given = |variable: &str| {
            let found = environment.lines().find_map(|l| l.strip_prefix("export ")?.strip_prefix(variable)?.strip_prefix('='));
            found.unwrap_or_else(|| panic!("{variable} is not said")).trim_matches('"').to_owned()
        };
        let kubeconfig = given("KARMAFORM_TEST_KUBECONFIG");
        Cluster {
            name: self.name.clone(),
            api: Api::new(&kubeconfig),
            kubeconfig,
            kubectl: given("KARMAFORM_TEST_KUBECTL"),
            cache: tempfile::tempdir().expect("a temporary directory"),
            keeper: self.keeper.take().expect("a keeper"),
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            let _ = keeper.wait(); // which closes its input first
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.keeper.wait();
    }
}

impl Cluster {
    /// kubectl, not yet told whom to ask; it keeps nothing in the home folder.
    pub(super) fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--cache-dir").arg(self.cache.path()).stdin(Stdio::null());
        command
    }

    /// What kubectl prints as the administrator; it must succeed.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.kubectl().args(["--kubeconfig", &self.kubeconfig]).args(arguments).output().expect("kubectl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "kubectl {}\n{text}{}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        text
    }

    /// Whether kubectl gets what it asks for with this token here, and what it says. The server's certificate must be of this authority.
    pub(super) fn asks(&self, server: &str, token: &str, authority: &Path, arguments: &[&str]) -> (bool, String) {
        let mut command = self.kubectl();
        command.args(["--kubeconfig=/dev/null", "--request-timeout=2s", "--server", server, "--token", token]);
        command.arg("--certificate-authority").arg(authority).args(arguments);
        let output = command.output().expect("kubectl");
        let text = [output.stdout, output.stderr].map(|s| String::from_utf8_lossy(&s).trim().to_owned()).join(" ");
        (output.status.success(), text)
    }

    /// Its address.
    pub(crate) fn server(&self) -> String {
        let kubeconfig = std::fs::read_to_string(&self.kubeconfig).expect("a kubeconfig");
        let line = kubeconfig.lines().find_map(|l| l.trim().strip_prefix("server:")).expect("a server");
        line.trim().trim_matches('"').to_owned()
    }

    /// Makes an object.
    #[track_caller]
    pub(super) fn create(&self, manifest: &Value) {
        let file = written(&manifest.to_string());
        self.run(&["create", "-f", &file.path().to_string_lossy()]);
    }

    /// An object; `None` if it is not there.
    #[track_caller]
    pub(super) fn get(&self, path: &str) -> Option<Value> {
        self.api.get(path).unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    /// An object that is there.
    #[track_caller]
    pub(super) fn object(&self, path: &str) -> Value {
        self.get(path).unwrap_or_else(|| panic!("{path} is not in {}", self.name))
    }

    #[track_caller]
    pub(super) fn cluster(&self, name: &str) -> Value {
        self.object(&format!("/apis/cluster.karmada.io/v1alpha1/clusters/{name}"))
    }

    #[track_caller]
    pub(super) fn secret(&self, name: &str) -> Value {
        self.object(&format!("/api/v1/namespaces/karmada-cluster/secrets/{name}"))
    }

    /// The paths of all objects of the kinds that matter, and their UIDs.
    #[track_caller]
    pub(crate) fn inventory(&self) -> BTreeMap<String, String> {
        let kinds = KINDS.iter().chain(&PLANE_KINDS);
        let listed = |kind: &str| -> Vec<Value> { self.api.list(kind).unwrap_or_else(|e| panic!("{}: {e}", self.name)) };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let all = kinds.flat_map(|kind| listed(kind).into_iter().map(move |item| (kind, item["metadata"].clone())));
        all.map(|(kind, m)| {
            let kind = kind.rsplit('/').next().unwrap_or_default();
            (format!("{kind}/{}/{}", text(&m["namespace"]), text(&m["name"])), text(&m["uid"]))
        })
        .collect()
    }

    /// What is there more than before.
    #[track_caller]
    pub(super) fn more_than(&self, before: &BTreeMap<String, String>) -> BTreeSet<String> {
        self.inventory().into_keys().filter(|path| !before.contains_key(path)).collect()
    }

    /// Everything is as it was, nothing of it made anew; what is on its way out is waited for.
    #[track_caller]
    pub(super) fn is_as_before(&self, before: &BTreeMap<String, String>) {
        let started = Instant::now();
        loop {
            let now = self.inventory();
            if now == *before {
                return;
            }
            let more: Vec<_> = now.iter().filter(|pair| before.get(pair.0) != Some(pair.1)).collect();
            let less: Vec<_> = before.iter().filter(|pair| now.get(pair.0) != Some(pair.1)).collect();
            assert!(started.elapsed() < PATIENCE, "{}: left over: {more:#?}\ntaken away: {less:#?}", self.name);
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }

    /// Makes the namespace of credentials, as a plane has it that had members before, or a member of others.
    #[track_caller]
    pub(super) fn has_namespace(&self) {
        if self.get("/api/v1/namespaces/karmada-cluster").is_none() {
            self.run(&["create", "namespace", "karmada-cluster"]);
        }
        let accounts = "/api/v1/namespaces/karmada-cluster/serviceaccounts/default";
        eventually("its default account is there", || {
            self.get(accounts).is_some_and(|a| self.gives_no_tokens() || !a["secrets"].is_null())
        });
    }

    /// True for a server that makes no Secret for each account: since Kubernetes 1.24.
    fn gives_no_tokens(&self) -> bool {
        self.object("/api/v1/namespaces/default/serviceaccounts/default")["secrets"].is_null()
    }

    /// From now on it serves Karmada's kinds.
    fn becomes_a_plane(&self) {
        let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
        let crd = |group: &str, plural: &str, kind: &str, scope: &str| {
            let names = json!({ "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") });
            let version =
                json!({ "name": "v1alpha1", "served": true, "storage": true, "schema": schema, "subresources": { "status": {} } });
            json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": { "name": format!("{plural}.{group}") },
                "spec": { "group": group, "scope": scope, "names": names, "versions": [version] } })
        };
        let kinds = [crd("cluster.karmada.io", "clusters", "Cluster", "Cluster"), crd("work.karmada.io", "works", "Work", "Namespaced")];
        self.create(&json!({ "apiVersion": "v1", "kind": "List", "items": kinds }));
        for path in PLANE_KINDS {
            eventually(path, || self.api.get(path).is_ok_and(|list| list.is_some()));
        }
    }
}

/// A file with this in it, which goes when it is dropped.
pub(super) fn written(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file
}
