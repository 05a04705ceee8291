//! What must be there in the Karmada API, and what we may do with it, before anything is served.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::component::{Component, Right};
use crate::files::Given;
use crate::flags::Flags;

/// How long the API may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Rights that were just given are known to the API server a moment later.
const RIGHTS_PATIENCE: Duration = Duration::from_secs(5);
/// What one API server serves already, another one serves when it has looked again, every 30 s at the latest. Source: `remote_available_controller.go`
/// in `k8s.io/kube-aggregator`.
const SERVED_PATIENCE: Duration = Duration::from_secs(40);
const ONE_ATTEMPT: Duration = Duration::from_secs(5);

/// The API, as one identity.
struct Api<'a> {
    flag: &'a str,
    url: String,
    client: Client,
}

/// Looks at everything that this component needs.
pub(crate) async fn review(component: Component, flags: &Flags, given: &Given) -> Result<(), String> {
    for (flag, config) in &given.karmada {
        let client = Client::try_from(config.clone()).map_err(|e| format!("--{flag}: {e}"))?;
        let api = Api { flag, url: config.cluster_url.to_string(), client };
        api.answers().await?;
        let rights = if *flag == "kubeconfig" { component.rights() } else { component.delegated_rights() };
        api.may(rights, None).await?;
        if *flag == "authentication-kubeconfig" {
            // Where it learns how to know the API server when that passes a caller on.
            api.must("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication").await?;
        }
        if *flag == "kubeconfig" {
            if component == Component::ControllerManager {
                let started = Instant::now();
                while let Err(why) = api.has_what_controllers_need().await {
                    if started.elapsed() > SERVED_PATIENCE {
                        return Err(why);
                    }
                    sleep(Duration::from_millis(500)).await;
                }
            }
            if component.elects() && flags.on("leader-elect") {
                api.leads(component.program(), flags.get("leader-elect-resource-namespace").unwrap_or("karmada-system")).await?;
            }
        }
    }
    Ok(())
}

/// The real karmada-search is alive only once it has listed what it serves itself, through the Karmada API: somebody has to register it
/// first. Says when that is so.
pub(crate) fn lists_what_it_serves(given: &Given, alive: Arc<AtomicBool>) -> Result<(), String> {
    let config = given.karmada.iter().find(|(flag, _)| *flag == "kubeconfig").map(|(_, config)| config.clone());
    let client = Client::try_from(config.ok_or("no --kubeconfig")?).map_err(|e| format!("--kubeconfig: {e}"))?;
    tokio::spawn(async move {
        loop {
            let request = Request::get("/apis/search.karmada.io/v1alpha1").body(Vec::new());
            if let Ok(request) = request
                && client.request::<Value>(request).await.is_ok()
            {
                return alive.store(true, Ordering::Relaxed);
            }
            sleep(Duration::from_millis(500)).await;
        }
    });
    Ok(())
}

impl Api<'_> {
    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let body = body.map(|b| b.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json").body(body);
        self.client.request(request.map_err(Error::HttpError)?).await
    }

    fn wrong(&self, why: impl std::fmt::Display) -> String {
        format!("--{}: {}: {why}", self.flag, self.url)
    }

    /// GET; what isn't there or may not be read is wrong.
    async fn must(&self, path: &str) -> Result<Value, String> {
        self.call("GET", path, None).await.map_err(|e| self.wrong(format!("{path}: {}", words(&e))))
    }

    async fn answers(&self) -> Result<(), String> {
        let started = Instant::now();
        loop {
            let why = match timeout(ONE_ATTEMPT, self.call("GET", "/version", None)).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => words(&error),
                Err(_) => "no answer".to_owned(),
            };
            if started.elapsed() > PATIENCE {
                return Err(self.wrong(why));
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Each of these rights is there; all that are missing are told at once.
    async fn may(&self, rights: &[Right], namespace: Option<&str>) -> Result<(), String> {
        let started = Instant::now();
        loop {
            let mut missing = Vec::new();
            for (verb, group, resource) in rights {
                let attributes = json!({ "verb": verb, "group": group, "resource": resource, "namespace": namespace });
                let review = json!({
                    "apiVersion": "authorization.k8s.io/v1",
                    "kind": "SelfSubjectAccessReview",
                    "spec": { "resourceAttributes": attributes },
                });
                let answer = self.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", Some(&review)).await;
                let answer = answer.map_err(|e| self.wrong(format!("may we {verb} {resource}? {}", words(&e))));
                if answer.as_ref().map(|a| a["status"]["allowed"] == true) != Ok(true) {
                    missing.push(answer.err().unwrap_or_else(|| format!("{verb} {resource}.{group}")));
                }
            }
            if missing.is_empty() {
                return Ok(());
            }
            if started.elapsed() > RIGHTS_PATIENCE {
                let place = namespace.map(|n| format!(" in namespace {n}")).unwrap_or_default();
                return Err(self.wrong(format!("no right to {}{place}", missing.join(", "))));
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// The real one ends at once without the first, and soon without the rest.
    async fn has_what_controllers_need(&self) -> Result<(), String> {
        let name = "v1alpha1.cluster.karmada.io";
        let service = self.must(&format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}")).await?;
        if !holds(&service, "Available") {
            return Err(self.wrong(format!("APIService {name} is not available")));
        }
        for (version, kinds) in [
            ("work.karmada.io/v1alpha2", ["resourcebindings", "clusterresourcebindings"]),
            ("work.karmada.io/v1alpha1", ["works", "works/status"]),
            ("policy.karmada.io/v1alpha1", ["propagationpolicies", "clusterpropagationpolicies"]),
        ] {
            let served = self.must(&format!("/apis/{version}")).await?;
            for kind in kinds {
                if !served["resources"].as_array().is_some_and(|all| all.iter().any(|r| r["name"] == kind)) {
                    return Err(self.wrong(format!("{kind} of {version} are not served")));
                }
            }
        }
        self.must("/apis/cluster.karmada.io/v1alpha1/clusters").await?;
        Ok(())
    }

    /// Takes the lead. Nobody here works, so it does not matter whether another replica has it too.
    async fn leads(&self, name: &str, namespace: &str) -> Result<(), String> {
        self.must(&format!("/api/v1/namespaces/{namespace}")).await.or_else(|why| {
            // Few may read namespaces; the lease will tell.
            if why.contains("403") { Ok(Value::Null) } else { Err(format!("{why} (--leader-elect-resource-namespace)")) }
        })?;
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let now = format!("{:.6}", jiff::Timestamp::now());
        let holder = std::env::var("HOSTNAME").unwrap_or_else(|_| name.to_owned());
        for _ in 0..5 {
            let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": now });
            let taken = match self.call("GET", &format!("{leases}/{name}"), None).await {
                Ok(mut lease) => {
                    lease["spec"] = spec;
                    self.call("PUT", &format!("{leases}/{name}"), Some(&lease)).await
                }
                Err(Error::Api(status)) if status.code == 404 => {
                    let meta = json!({ "name": name, "namespace": namespace });
                    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec });
                    self.call("POST", &leases, Some(&lease)).await
                }
                Err(error) => Err(error),
            };
            match taken {
                Ok(_) => return Ok(()),
                Err(Error::Api(status)) if status.code == 409 => sleep(Duration::from_millis(200)).await, // another replica was quicker
                Err(error) => return Err(self.wrong(format!("Lease {namespace}/{name}: {}", words(&error)))),
            }
        }
        Err(self.wrong(format!("Lease {namespace}/{name} is never ours")))
    }
}

/// Whether a condition of an object is True.
fn holds(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|c| c["type"] == condition && c["status"] == "True"))
}

/// An error with its causes, and with its code if an API server sent it.
fn words(error: &Error) -> String {
    if let Error::Api(status) = error {
        return format!("{} {}", status.code, status.message);
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_holds_only_when_it_is_true() {
        let with = |status: &str| json!({ "status": { "conditions": [{ "type": "Available", "status": status }] } });
        assert!(holds(&with("True"), "Available"));
        assert!(!holds(&with("False"), "Available") && !holds(&with("True"), "Ready") && !holds(&json!({}), "Available"));
    }
}
