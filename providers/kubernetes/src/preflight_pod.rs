//! A short-lived pod, and the ways that lead through it: for each connection to a local address `nc` runs in the pod. What goes that way is the
//! caller's TLS, so nothing that is secret can be read in the pod.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use karmaform_model::Diagnostic;
use kube::Api;
use kube::api::{AttachParams, PropagationPolicy};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};

use crate::client::{Client, Place};
use crate::forward::LIMITS;
use crate::pods::is_stuck;
use crate::pods_why::{self, pods};
use crate::preflight_check::NO_NAMESPACE;

/// What marks them, so that those that a killed run left behind are cleared away by the next one.
const LABEL: &str = "karmaform.io/preflight";
/// Seconds that it lives beyond the time that it may take to start, and so many more for each way: then it ends by itself.
const LIFE: u64 = 120;
const EACH: u64 = 5;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// So much is kept of what `nc` says, in bytes.
const MOST: usize = 400;

/// A pod that runs.
pub(crate) struct Doorway {
    client: Client,
    place: Place,
    name: String,
}

/// A local address that leads to a server as the pod sees it.
pub(crate) struct Way {
    pub(crate) local: SocketAddr,
    said: Arc<Mutex<String>>,
    task: AbortHandle,
}

impl Drop for Way {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Way {
    /// What `nc` had to say; empty if it found its way.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).trim().replace('\n', "; ")
    }
}

impl Doorway {
    /// Makes the pod for so many ways and waits until it runs, at most `limit`.
    pub(crate) async fn open(
        client: &Client,
        namespace: &str,
        image: &str,
        fields: &Json,
        (limit, ways): (Duration, usize),
    ) -> Result<Self, Diagnostic> {
        let place = pods(namespace);
        clear(client, &place).await;
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let made =
            client.create(&path, &manifest(image, fields, limit.as_secs() + LIFE + EACH * ways as u64)).await.map_err(|failure| {
                match failure.code() {
                    Some(404) => {
                        Diagnostic::error(NO_NAMESPACE, format!("{} has no namespace \"{namespace}\" for the pod.", client.place()))
                    }
                    _ => failure.diagnostic(client.place(), &place.call("create", "karmaform-preflight"), &[]),
                }
            })?;
        let name = made["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let doorway = Self { client: client.clone(), place, name };
        match doorway.runs(limit).await {
            Ok(()) => Ok(doorway),
            Err(error) => {
                doorway.end().await;
                Err(error)
            }
        }
    }

    async fn runs(&self, limit: Duration) -> Result<(), Diagnostic> {
        let end = Instant::now() + limit;
        loop {
            let found = self.client.get(&self.place, &self.name).await;
            let pod = found.map_err(|f| f.diagnostic(self.client.place(), &self.place.call("get", &self.name), &[]))?.unwrap_or_default();
            let phase = pod["status"]["phase"].as_str().unwrap_or_default();
            if phase == "Running" {
                return Ok(());
            }
            if is_stuck(&pod) || !matches!(phase, "" | "Pending") || Instant::now() >= end {
                let why = pods_why::of_pod(&self.client, &pod, &[]).await.unwrap_or_else(|| "is not running yet".to_owned());
                let detail = format!("The pod {} in {}, which is to try the way, {why}.", self.name, self.client.place());
                return Err(Diagnostic::error("Pod for the preflight does not come up", detail)
                    .with_hint("Let its image be one that can be pulled there and has the programs `sleep` and `nc`."));
            }
            sleep(PAUSE).await;
        }
    }

    /// A way to this server.
    pub(crate) async fn to(&self, host: &str, port: u16) -> Result<Way, Diagnostic> {
        let broken = |error: std::io::Error| {
            Diagnostic::error("No local port", format!("A port of this machine can't be opened: {error}.")).with_hint(LIMITS)
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(broken)?;
        let local = listener.local_addr().map_err(broken)?;
        let said = Arc::new(Mutex::new(String::new()));
        let namespace = self.place.namespace.clone().unwrap_or_default();
        let (client, name, heard) = (self.client.clone(), self.name.clone(), said.clone());
        let command = vec!["nc".to_owned(), host.to_owned(), port.to_string()];
        let task = tokio::spawn(async move {
            let mut running = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(kube) = client.0.kube().await else { break };
                let api: Api<Pod> = Api::namespaced(kube, &namespace);
                running.spawn(carry(api, name.clone(), command.clone(), stream, heard.clone()));
            }
        });
        Ok(Way { local, said, task: task.abort_handle() })
    }

    /// Deletes the pod. What can't be deleted ends by itself.
    pub(crate) async fn end(mut self) {
        delete(&self.client, &self.place, &std::mem::take(&mut self.name)).await;
    }
}

impl Drop for Doorway {
    /// Whoever is not waited for any more leaves no pod behind either.
    fn drop(&mut self) {
        if self.name.is_empty() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (client, place, name) = (self.client.clone(), self.place.clone(), std::mem::take(&mut self.name));
            drop(runtime.spawn(async move { delete(&client, &place, &name).await }));
        }
    }
}

async fn delete(client: &Client, place: &Place, name: &str) {
    let _ = client.delete(place, name, None, PropagationPolicy::Background).await;
}

/// Those of runs that were killed, which have ended by now.
async fn clear(client: &Client, place: &Place) {
    let found = client.select(place, LABEL, "").await.unwrap_or_default();
    let ended = found.iter().filter(|p| matches!(p["status"]["phase"].as_str(), Some("Failed" | "Succeeded")));
    join_all(ended.filter_map(|p| p["metadata"]["name"].as_str()).map(|n| delete(client, place, n))).await;
}

/// It may do nothing, and nobody lets it be more: so it runs where the strictest rules for pods are enforced.
fn manifest(image: &str, fields: &Json, life: u64) -> Json {
    let mut spec = json!({
        "restartPolicy": "Never",
        "activeDeadlineSeconds": life,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": { "runAsNonRoot": true, "runAsUser": 65_534, "runAsGroup": 65_534, "seccompProfile": { "type": "RuntimeDefault" } },
        "containers": [{
            "name": "preflight",
            "image": image,
            "command": ["sleep", life.to_string()],
            "resources": { "requests": { "cpu": "10m", "memory": "16Mi" }, "limits": { "cpu": "1", "memory": "64Mi" } },
            "securityContext": { "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] } },
        }],
    });
    if let (Some(spec), Some(fields)) = (spec.as_object_mut(), fields.as_object()) {
        spec.extend(fields.iter().filter(|(_, v)| !v.is_null()).map(|(n, v)| (n.clone(), v.clone())));
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "generateName": "karmaform-preflight-", "labels": { "app.kubernetes.io/managed-by": "karmaform", LABEL: "true" } },
        "spec": spec,
    })
}

/// One connection, from its start to its end.
async fn carry(api: Api<Pod>, name: String, command: Vec<String>, mut local: TcpStream, heard: Arc<Mutex<String>>) {
    let hear = |text: &str| {
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST.saturating_sub(heard.len());
        heard.extend(text.chars().take(room));
    };
    let parameters = AttachParams::default().stdin(true).stdout(true).stderr(true).container("preflight");
    let mut process = match api.exec(&name, command, &parameters).await {
        Ok(process) => process,
        // The library's words may quote a header.
        Err(kube::Error::Api(status)) if status.code == 403 => {
            return hear(
                "the user of the connection may not run programs in pods there (it takes \"get\" and \"create\" on \"pods/exec\")",
            );
        }
        Err(_) => return hear("no program can be run in the pod: the cluster does not open the way to it"),
    };
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) = (process.stdin(), process.stdout(), process.stderr()) else { return };
    let status = process.take_status();
    let (mut from_here, mut to_here) = local.split();
    let words = async {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text).await;
        text
    };
    let carried = async {
        tokio::select! {
            _ = tokio::io::copy(&mut stdout, &mut to_here) => {}
            _ = tokio::io::copy(&mut from_here, &mut stdin) => { let _ = stdin.shutdown().await; }
        }
    };
    // It says why it ends before it does.
    let ((), text) = tokio::join!(carried, async { tokio::time::timeout(Duration::from_secs(60), words).await.unwrap_or_default() });
    hear(&text);
    if let Some(status) = status
        && let Ok(Some(status)) = tokio::time::timeout(PAUSE, status).await
        && status.status.as_deref() == Some("Failure")
        && text.trim().is_empty()
    {
        hear(status.message.as_deref().unwrap_or_default());
    }
    let _ = to_here.shutdown().await;
    process.abort();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock;

    #[tokio::test]
    async fn who_may_run_no_programs_in_pods_is_told_so() {
        let heard = async |code: u16| {
            let (client, _) = mock::client(move |_, _| mock::refused(code, "pods \"p\" is forbidden")).await;
            let api: Api<Pod> = Api::namespaced(client.0.kube().await.unwrap(), "n");
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let local = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let said = Arc::new(Mutex::new(String::new()));
            carry(api, "p".to_owned(), vec!["nc".to_owned()], local, Arc::clone(&said)).await;
            said.lock().unwrap().clone()
        };
        let refused = heard(403).await;
        assert!(refused.contains("\"get\" and \"create\" on \"pods/exec\""), "{refused}");
        let other = heard(500).await;
        assert_eq!(other, "no program can be run in the pod: the cluster does not open the way to it");
    }
}
