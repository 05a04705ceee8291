//! The cluster, and a small stand-in for the engine: observe, plan, apply.

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use karmaform_kubernetes::Kubernetes;
use karmaform_model::{
    Action, Adapter, AnyClient, Ask, BoxFuture, Change, Connections, Diagnostic, Driver, Looking, Object, PlanContext, Registries,
    ResourceSpec, Value, implied_from_json, same,
};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

pub(crate) const KIND: &str = "kubernetes_object";

/// A real cluster, and a namespace in it for one test.
pub(crate) struct Lab {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) runtime: Runtime,
    pub(crate) kubeconfig: String,
    kubectl: String,
    client: AnyClient,
    pub(crate) namespace: String,
}

struct NoConnections;

impl Connections for NoConnections {
    fn forward<'a>(&'a self, _: &'a Object, _: &'a str, _: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async { Err(Diagnostic::error("None", "None.")) })
    }
}

/// Registries that lack just one image.
pub(crate) struct Known;

pub(crate) const LACKING: &str = "karmaform.test/lacking:1";

impl Registries for Known {
    fn lacks<'a>(&'a self, image: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move { image == LACKING })
    }
}

/// Says it even if the test passes: what a test prints by macros is only shown when it fails.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

pub(crate) fn object<const N: usize>(parts: [(&str, Value); N]) -> Object {
    parts.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()
}

/// Reads a cluster with nothing but its arguments.
pub(crate) fn read_alone(arguments: &Object) -> Result<Object, Diagnostic> {
    let driver = Adapter(Kubernetes::new(Arc::new(Known)));
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(async {
        let client = driver.connect(&Object::new(), arguments, Arc::new(NoConnections)).await?;
        driver.read(&client, "kubernetes_cluster", arguments).await
    })
}

/// The lab with a fresh namespace, or `None` after saying that `test` is skipped.
pub(crate) fn lab(test: &str) -> Option<Lab> {
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let (Some(kubeconfig), Some(kubectl)) = (variable("KARMAFORM_TEST_KUBECONFIG"), variable("KARMAFORM_TEST_KUBECTL")) else {
        say(&format!("SKIPPED: {test}: KARMAFORM_TEST_KUBECONFIG and KARMAFORM_TEST_KUBECTL are not both set"));
        return None;
    };
    let driver: Arc<dyn Driver> = Arc::new(Adapter(Kubernetes::new(Arc::new(Known))));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let namespace = format!("kf-{}-{}", test.replace('_', "-"), std::process::id());
    let arguments = object([("kubeconfig_file", kubeconfig.as_str().into())]);
    let client = runtime.block_on(driver.connect(&Object::new(), &arguments, Arc::new(NoConnections))).unwrap();
    let lab = Lab { driver, runtime, kubeconfig, kubectl, client, namespace };
    lab.kubectl(&["create", "namespace", &lab.namespace]);
    Some(lab)
}

/// The same, if pods can run in it.
pub(crate) fn lab_with_node(test: &str) -> Option<Lab> {
    let lab = lab(test)?;
    if lab.kubectl(&["get", "nodes", "-o", "name"]).is_empty() {
        say(&format!("SKIPPED: {test}: the cluster has no node"));
        return None;
    }
    Some(lab)
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.command(&["delete", "namespace", &self.namespace, "--wait=false"]).output();
    }
}

impl Lab {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.args(["--kubeconfig", &self.kubeconfig]).args(arguments);
        command
    }

    /// Runs kubectl as administrator.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// True if there is such an object in the namespace.
    pub(crate) fn has(&self, kind: &str, name: &str) -> bool {
        !self.kubectl(&["-n", &self.namespace, "get", kind, name, "--ignore-not-found", "-o", "name"]).is_empty()
    }

    /// Gives a manifest to kubectl.
    pub(crate) fn kubectl_with(&self, arguments: &[&str], manifest: &Json) {
        let mut child = self.command(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(manifest.to_string().as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{arguments:?}");
    }

    pub(crate) fn connect(&self, arguments: &Object) -> Result<AnyClient, Diagnostic> {
        self.runtime.block_on(self.driver.connect(&Object::new(), arguments, Arc::new(NoConnections)))
    }

    pub(crate) fn read(&self, arguments: &Object) -> Result<Object, Diagnostic> {
        let client = self.connect(arguments)?;
        self.runtime.block_on(self.driver.read(&client, "kubernetes_cluster", arguments))
    }

    fn spec(&self) -> &dyn ResourceSpec {
        self.spec_of(KIND)
    }

    fn spec_of(&self, kind: &str) -> &dyn ResourceSpec {
        self.driver.specs().into_iter().find(|s| s.name() == kind).unwrap()
    }

    /// Arguments of a type as the language and the engine give them, when only the cluster is written.
    pub(crate) fn arguments(&self, kind: &str) -> Object {
        let attributes = self.spec_of(kind).schema().attributes.iter().filter(|a| a.is_configurable());
        let mut wanted: Object =
            attributes.map(|a| (a.name.to_owned(), a.default.clone().unwrap_or_else(|| Value::null(a.ty.clone())))).collect();
        wanted.insert("cluster".into(), Value::object([("provider", "kubernetes".into()), ("id", "lab".into())]));
        wanted
    }

    /// A ConfigMap of this namespace.
    pub(crate) fn map(&self, name: &str, data: Json) -> Json {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": self.namespace }, "data": data })
    }

    /// Arguments as the language and the engine give them.
    pub(crate) fn wanted(&self, manifest: &Json) -> Object {
        let mut wanted = self.arguments(KIND);
        wanted.insert("wait".into(), Value::null(self.spec().schema().block("wait").unwrap().ty()));
        wanted.insert("manifest".into(), implied_from_json(manifest));
        self.spec().derived(wanted)
    }

    pub(crate) fn forced(&self, manifest: &Json) -> Object {
        let mut wanted = self.wanted(manifest);
        wanted.insert("force".into(), true.into());
        wanted
    }

    pub(crate) fn ask(&self, state: Option<&Object>, wanted: Option<&Object>) -> Ask {
        self.ask_of(KIND, state, wanted)
    }

    pub(crate) fn ask_of(&self, kind: &str, state: Option<&Object>, wanted: Option<&Object>) -> Ask {
        let identity = self.spec_of(kind).schema().identity(state.or(wanted).unwrap());
        Ask { resource_type: kind.to_owned(), identity, known: state.cloned(), wanted: wanted.cloned(), begun: false }
    }

    pub(crate) fn observe_all(&self, asks: &[Ask]) -> Vec<Result<Option<Object>, Diagnostic>> {
        self.runtime.block_on(self.driver.rehearse(&self.client, asks))
    }

    pub(crate) fn observe(&self, state: Option<&Object>, wanted: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        self.observe_of(KIND, state, wanted)
    }

    pub(crate) fn observe_of(&self, kind: &str, state: Option<&Object>, wanted: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        self.observe_all(&[self.ask_of(kind, state, wanted)]).remove(0)
    }

    /// Observes and plans, as the engine does: what was seen over what the state says.
    pub(crate) fn plan(&self, state: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostic> {
        self.plan_of(KIND, state, wanted)
    }

    pub(crate) fn plan_of(&self, kind: &str, state: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostic> {
        let seen = self.observe_of(kind, state, wanted)?;
        let before = seen.map(|seen| {
            let mut before = state.cloned().unwrap_or_default();
            before.extend(seen);
            before.insert("cluster".into(), Value::object([("id", "lab".into())]));
            before
        });
        self.spec_of(kind).plan(&PlanContext { now: 0 }, before.as_ref(), wanted).map_err(|d| d.into_iter().next().unwrap())
    }

    pub(crate) fn apply(&self, change: &Change) -> Result<Option<Object>, Diagnostic> {
        self.apply_of(KIND, change)
    }

    pub(crate) fn apply_of(&self, kind: &str, change: &Change) -> Result<Option<Object>, Diagnostic> {
        let mut done = self.runtime.block_on(self.driver.apply(&self.client, kind, change))?;
        if let Some(object) = &mut done {
            let schema = self.spec_of(kind).schema();
            object.retain(|name, _| schema.attribute(name).is_none_or(karmaform_model::Attribute::is_stored));
            assert!(object.values().all(Value::is_wholly_known), "{object:?}");
            let is_kept = |name: &str| schema.attribute(name).is_none_or(karmaform_model::Attribute::is_stored);
            for (name, planned) in change.after().into_iter().flatten().filter(|(n, v)| v.is_wholly_known() && is_kept(n)) {
                assert!(same(Some(planned), object.get(name)), "{name}: {planned:?} was planned, {:?} came out", object.get(name));
            }
        }
        Ok(done)
    }

    /// Plans, checks the action, applies it twice (each step twice must equal once), and gives the new state.
    pub(crate) fn step(&self, state: Option<&Object>, wanted: Option<&Object>, expected: Action) -> Option<Object> {
        self.step_of(KIND, state, wanted, expected)
    }

    pub(crate) fn step_of(&self, kind: &str, state: Option<&Object>, wanted: Option<&Object>, expected: Action) -> Option<Object> {
        let change = self.plan_of(kind, state, wanted).unwrap();
        assert_eq!(change.action(), expected, "{change:?}");
        if expected == Action::NoOp {
            return state.cloned();
        }
        let first = self.apply_of(kind, &change).unwrap();
        let second = self.apply_of(kind, &change).unwrap();
        assert_eq!(first, second, "done twice");
        second
    }

    /// Creates it, and sees that there is nothing left to do, and no drift; with the state and without.
    pub(crate) fn create(&self, wanted: &Object) -> Object {
        let state = self.step(None, Some(wanted), Action::Create).unwrap();
        self.step(Some(&state), Some(wanted), Action::NoOp);
        let seen = self.observe(Some(&state), Some(wanted)).unwrap().unwrap();
        assert!(same(seen.get("manifest"), state.get("manifest")), "{:?} is no drift of {:?}", seen.get("manifest"), state.get("manifest"));
        self.step(None, Some(wanted), Action::NoOp);
        state
    }

    pub(crate) fn delete(&self, state: &Object) {
        assert_eq!(self.apply(&Change::Delete { before: state.clone() }).unwrap(), None);
        assert_eq!(self.apply(&Change::Delete { before: state.clone() }).unwrap(), None, "already gone");
        assert_eq!(self.observe(Some(state), None).unwrap(), None);
    }

    /// How many requests of these verbs the server has had for a resource.
    pub(crate) fn requests(&self, resource: &str, verbs: &[&str]) -> u64 {
        let metrics = self.kubectl(&["get", "--raw", "/metrics"]);
        let counted = metrics.lines().filter(|l| {
            l.starts_with("apiserver_request_total{")
                && l.contains(&format!("resource=\"{resource}\""))
                && verbs.iter().any(|v| l.contains(&format!("verb=\"{v}\"")))
        });
        counted.filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok()).map(|n| n as u64).sum()
    }
}
