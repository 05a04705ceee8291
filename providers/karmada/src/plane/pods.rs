//! What is the same in every pod of a component: its ports, its probes, and what it may do on its node.
//!
//! Ports are those of Karmada's installers, but nothing listens below 1024. No probe runs a program: the images need no shell.

use karmaform_model::Arg;
use serde_json::{Value as Json, json};

use super::places::{API_PORT, EXTENSION_PORT, METRICS_PORT, WEBHOOK_PORT, extends_api, health_port};
use crate::versions::Component;

/// Who runs the components: the number that images without root use for "nobody in particular".
const USER: i64 = 65_532;
/// What a component listens on, by the name of the port.
fn ports(component: Component) -> Vec<(&'static str, i64)> {
    match component {
        Component::ApiServer => vec![("https", API_PORT)],
        Component::KubeControllerManager => vec![("https", 10_257)],
        Component::ControllerManager => vec![("metrics", METRICS_PORT), ("health", health_port(component))],
        Component::Scheduler => vec![("metrics", METRICS_PORT), ("health", health_port(component))],
        Component::Descheduler => vec![("metrics", METRICS_PORT), ("health", health_port(component))],
        Component::Webhook => vec![("https", WEBHOOK_PORT), ("metrics", METRICS_PORT), ("health", health_port(component))],
        Component::MetricsAdapter => vec![("https", EXTENSION_PORT), ("metrics", METRICS_PORT)],
        Component::AggregatedApiServer | Component::Search => vec![("https", EXTENSION_PORT)],
    }
}

/// The container's ports.
pub(crate) fn container_ports(component: Component) -> Arg {
    let ports = ports(component).into_iter().map(|(name, port)| json!({ "name": name, "containerPort": port, "protocol": "TCP" }));
    Arg::from_json(&Json::Array(ports.collect()))
}

/// The paths that say whether a component lives and whether it is ready, and the port they are asked on.
fn health(component: Component) -> (&'static str, &'static str, &'static str, &'static str) {
    match component {
        Component::ApiServer => ("/livez", "/readyz", "https", "HTTPS"),
        Component::KubeControllerManager => ("/healthz", "/healthz", "https", "HTTPS"),
        Component::Webhook => ("/readyz", "/readyz", "https", "HTTPS"),
        _ if extends_api(component) => ("/livez", "/readyz", "https", "HTTPS"),
        _ => ("/healthz", "/healthz", "health", "HTTP"),
    }
}

/// The container's probes. The start may take five minutes; after that a pod is restarted after a minute and a half of silence, and gets
/// no requests after ten seconds of not being ready. What waits for a start looks every second, since others wait for it in turn.
///
/// karmada-search is alive only once it has seen objects that it serves itself, through the API server. So its API has to be found before it
/// is well: it is ready when it listens.
pub(crate) fn probes(component: Component) -> Vec<(&'static str, Arg)> {
    let (live, ready, port, scheme) = health(component);
    let probe = |path: &str, period: i64, failures: i64| {
        Arg::from_json(&json!({
            "httpGet": { "path": path, "port": port, "scheme": scheme },
            "periodSeconds": period,
            "timeoutSeconds": 10,
            "failureThreshold": failures,
        }))
    };
    if matches!(component, Component::Search) {
        let listens = json!({ "tcpSocket": { "port": port }, "periodSeconds": 1, "failureThreshold": 10 });
        let mut alive = probe(live, 15, 6);
        alive.set(&["initialDelaySeconds"], 60i64.into());
        return vec![("livenessProbe", alive), ("readinessProbe", Arg::from_json(&listens))];
    }
    vec![("startupProbe", probe(live, 1, 300)), ("livenessProbe", probe(live, 15, 6)), ("readinessProbe", probe(ready, 1, 10))]
}

/// What a pod may do.
pub(crate) fn pod_security() -> Arg {
    Arg::from_json(&json!({
        "runAsNonRoot": true,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": { "type": "RuntimeDefault" },
    }))
}

/// What a container may do.
///
/// The program kube-apiserver carries the file capability to listen on low ports, and can't be started at all where that is not allowed,
/// needed or not. kubeadm does the same where it runs it without root.
pub(crate) fn container_security(component: Component) -> Arg {
    let capabilities = match component {
        Component::ApiServer => json!({ "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] }),
        _ => json!({ "drop": ["ALL"] }),
    };
    Arg::from_json(&json!({ "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": capabilities }))
}
