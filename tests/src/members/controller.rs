//! What stands in for Karmada's controllers of members in a plane: `pkg/controllers/cluster`, `status` and `execution` of Karmada, as far as
//! joining and leaving need them. It reaches a member with nothing but what is in the Cluster object and its Secrets.
//!
//! As Karmada before 1.18 it never lets go of the Works of a member that does not answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::api::{JSON, MERGE};
use super::planes::{Cluster, written};

const PAUSE: Duration = Duration::from_millis(100);
/// A member is looked at when what it is reached by has changed, and so often otherwise.
const LOOK: Duration = Duration::from_secs(2);
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
/// Source: `ClusterControllerFinalizer`, `pkg/util/constants.go` in karmada.
const FINALIZER: &str = "karmada.io/cluster-controller";

/// It ends when it is dropped.
pub(super) struct Controller {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Controller {
    /// Begins to look after the members of this plane.
    pub(super) fn of(plane: &Arc<Cluster>) -> Self {
        let ends = Arc::<AtomicBool>::default();
        let mut work = Controllers { plane: Arc::clone(plane), looked: BTreeMap::new() };
        let over = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::SeqCst) {
                // What fails is tried again, as there.
                let _ = work.turn();
                std::thread::sleep(PAUSE);
            }
        });
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Controllers {
    plane: Arc<Cluster>,
    /// By Cluster's UID: what it was reached by when it was looked at, and when that was.
    looked: BTreeMap<String, (String, Instant)>,
}

/// How a member is reached: server, its authority, and the two tokens.
struct Way {
    server: String,
    authority: tempfile::NamedTempFile,
    token: String,
    impersonator: Option<String>,
    /// Changes when any of them does.
    version: String,
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Controllers {
    fn turn(&mut self) -> Result<(), String> {
        let mut all = Ok(());
        for cluster in self.plane.api.list(CLUSTERS)? {
            let done = if cluster["metadata"]["deletionTimestamp"].is_null() { self.joined(&cluster) } else { self.leaves(&cluster) };
            all = all.and(done);
        }
        all
    }

    fn joined(&mut self, cluster: &Value) -> Result<(), String> {
        let api = &self.plane.api;
        let name = text(&cluster["metadata"]["name"]);
        let path = format!("{CLUSTERS}/{name}");
        if cluster["metadata"]["finalizers"].as_array().is_none_or(|all| !all.iter().any(|f| f == FINALIZER)) {
            api.write("PATCH", &path, MERGE, &json!({ "metadata": { "finalizers": [FINALIZER] } }))?;
        }
        let space = format!("karmada-es-{name}");
        if api.get(&format!("/api/v1/namespaces/{space}"))?.is_none() {
            api.write("POST", "/api/v1/namespaces", JSON, &json!({ "metadata": { "name": space } }))?;
        }
        let way = self.way(cluster)?;
        let version = way.as_ref().map_or_else(|why| why.clone(), |w| w.version.clone());
        let uid = text(&cluster["metadata"]["uid"]).to_owned();
        if self.looked.get(&uid).is_some_and(|(seen, when)| *seen == version && when.elapsed() < LOOK) {
            return Ok(());
        }
        let found = way.and_then(|way| self.look(&way));
        self.looked.insert(uid, (version, Instant::now()));
        let (status, reason, message) = match found {
            Ok(()) => ("True", "ClusterReady", "cluster is healthy and ready to accept workloads".to_owned()),
            Err(why) => ("False", "ClusterNotReachable", why),
        };
        let condition = |kind: &str| json!({ "type": kind, "status": status, "reason": reason, "message": message });
        let conditions = json!(["Ready", "CompleteAPIEnablements"].map(condition));
        if cluster["status"]["conditions"] != conditions {
            let status = json!({ "status": { "conditions": conditions } });
            self.plane.api.write("PATCH", &format!("{path}/status"), MERGE, &status)?;
        }
        Ok(())
    }

    /// What is in the Cluster object and its Secrets; why it is not enough.
    fn way(&self, cluster: &Value) -> Result<Result<Way, String>, String> {
        let spec = &cluster["spec"];
        let of = |reference: &Value| -> Result<Option<Value>, String> {
            let (namespace, name) = (text(&reference["namespace"]), text(&reference["name"]));
            self.plane.api.get(&format!("/api/v1/namespaces/{namespace}/secrets/{name}"))
        };
        let Some(secret) = of(&spec["secretRef"])? else { return Ok(Err("the Secret is not there".to_owned())) };
        let decoded = |value: &Value| BASE64_STANDARD.decode(text(value)).ok().and_then(|b| String::from_utf8(b).ok()).unwrap_or_default();
        let mut version = format!("{} {}", cluster["metadata"]["generation"], secret["metadata"]["resourceVersion"]);
        let mut impersonator = None;
        if !spec["impersonatorSecretRef"].is_null() {
            let Some(secret) = of(&spec["impersonatorSecretRef"])? else {
                return Ok(Err("the impersonator's Secret is not there".to_owned()));
            };
            version = format!("{version} {}", secret["metadata"]["resourceVersion"]);
            impersonator = Some(decoded(&secret["data"]["token"]));
        }
        let authority = written(&decoded(&secret["data"]["caBundle"]));
        let token = decoded(&secret["data"]["token"]);
        Ok(Ok(Way { server: text(&spec["apiEndpoint"]).to_owned(), authority, token, impersonator, version }))
    }

    /// Whether the member answers, lets it in, and lets it do everything.
    fn look(&self, way: &Way) -> Result<(), String> {
        let as_whom = |token: &str, arguments: &[&str]| {
            // Without a token anybody may ask whether it is ready.
            let (done, said) = if token.is_empty() {
                (false, String::new())
            } else {
                self.plane.asks(&way.server, token, way.authority.path(), arguments)
            };
            if done { Ok(said) } else { Err(format!("{}: {said}", arguments.join(" "))) }
        };
        as_whom(&way.token, &["auth", "can-i", "*", "*"])?;
        if let Some(token) = &way.impersonator {
            as_whom(token, &["get", "--raw", "/readyz"]).map_err(|e| format!("as the impersonator: {e}"))?;
        }
        Ok(())
    }

    fn leaves(&self, cluster: &Value) -> Result<(), String> {
        let api = &self.plane.api;
        let name = text(&cluster["metadata"]["name"]);
        let space = format!("/api/v1/namespaces/karmada-es-{name}");
        let conditions = cluster["status"]["conditions"].as_array();
        let is_ready = conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True");
        let works = format!("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{name}/works");
        if is_ready {
            for work in api.list(&works)? {
                if work["spec"]["preserveResourcesOnDeletion"] != true {
                    self.delete(cluster, &work)?;
                }
                let path = format!("{works}/{}", text(&work["metadata"]["name"]));
                api.write("PATCH", &path, MERGE, &json!({ "metadata": { "finalizers": null } }))?;
                api.write("DELETE", &path, JSON, &json!({}))?;
            }
        }
        match api.get(&space)? {
            Some(live) if live["metadata"]["deletionTimestamp"].is_null() => api.write("DELETE", &space, JSON, &json!({})).map(drop),
            Some(live) => {
                if api.list(&works)?.is_empty() {
                    hurry(&self.plane, &space, &live)?;
                }
                Ok(())
            }
            None => {
                let patch = json!({ "metadata": { "finalizers": null } });
                api.write("PATCH", &format!("{CLUSTERS}/{name}"), MERGE, &patch).map(drop)
            }
        }
    }

    /// Deletes in the member what a Work brought there.
    fn delete(&self, cluster: &Value, work: &Value) -> Result<(), String> {
        let way = self.way(cluster)??;
        let manifests = &work["spec"]["workload"]["manifests"];
        let file = written(&json!({ "apiVersion": "v1", "kind": "List", "items": manifests }).to_string());
        let file = file.path().to_string_lossy();
        let arguments = ["delete", "--ignore-not-found", "--wait=false", "-f", &file];
        match self.plane.asks(&way.server, &way.token, way.authority.path(), &arguments) {
            (true, _) => Ok(()),
            (false, said) => Err(said),
        }
    }
}

/// An empty namespace goes. The server's own controller takes its time before it begins, which is nothing that this test is about.
fn hurry(plane: &Cluster, space: &str, live: &Value) -> Result<(), String> {
    for kind in ["serviceaccounts", "secrets", "configmaps"] {
        plane.api.write("DELETE", &format!("{space}/{kind}"), JSON, &json!({}))?;
    }
    let mut live = live.clone();
    live["spec"]["finalizers"] = json!([]);
    plane.api.write("PUT", &format!("{space}/finalize"), JSON, &live).map(drop)
}
