//! The flags of each component.
//!
//! Source: the manifests of Karmada's own installers (`operator/pkg/controlplane`, `pkg/karmadactl/cmdinit/kubernetes`, `artifacts/deploy`
//! in karmada), the flag lists in `docs/command-line-flags`, and those of kube-apiserver and kube-controller-manager. What is a binary's
//! default anyway is left to it.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Kind, Type, Value};

use super::arguments::Arguments;
use super::places::{API_PORT, EXTENSION_PORT, PKI, WEBHOOK_PORT, estimator_prefix, extends_api};
use super::secrets::uses_etcd;
use super::settings::Settings;
use crate::api::SYSTEM_NAMESPACE;
use crate::versions::Component;

/// The controllers that make sense without nodes and pods. `serviceaccount` is none of them: no pod needs a default account.
/// With `bootstrapsigner`, `tokencleaner`, `csrcleaner` and `csrsigning` members in pull mode can register.
const CONTROLLERS: &str = "namespace,garbagecollector,serviceaccount-token,ttl-after-finished,bootstrapsigner,tokencleaner,csrcleaner,csrsigning,clusterrole-aggregation";
/// Everyone that can speaks TLS 1.3.
const TLS_VERSION: &str = "VersionTLS13";

/// How long an ending API server still answers. Well below the 30 s after which it is killed.
const SHUTDOWN_DELAY: &str = "10s";

type Flags = BTreeMap<String, Arg>;

fn put<const N: usize>(flags: &mut Flags, entries: [(&str, String); N]) {
    flags.extend(entries.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
}

fn file(name: &str) -> String {
    format!("{PKI}/{name}")
}

/// The flags that karmaform sets.
fn defaults(plane: &Arguments, component: Component) -> Flags {
    let mut flags = Flags::new();
    if uses_etcd(component) {
        etcd(plane, &mut flags);
    }
    if !matches!(component, Component::ApiServer) {
        put(&mut flags, [("kubeconfig", file("kubeconfig"))]);
    }
    if extends_api(component) {
        extension(&mut flags);
    }
    let leases = || ("leader-elect-resource-namespace", SYSTEM_NAMESPACE.to_owned());
    match component {
        Component::ApiServer => api_server(plane, &mut flags),
        Component::KubeControllerManager => {
            kube_controller_manager(&mut flags);
            put(&mut flags, [leases()]);
        }
        Component::ControllerManager => put(
            &mut flags,
            [
                ("cluster-status-update-frequency", "10s".to_owned()),
                ("health-probe-bind-address", ":10357".to_owned()),
                ("metrics-bind-address", ":8080".to_owned()),
                leases(),
            ],
        ),
        Component::Scheduler | Component::Descheduler => {
            let health = if matches!(component, Component::Scheduler) { ":10351" } else { ":10358" };
            put(&mut flags, [("health-probe-bind-address", health.to_owned()), ("metrics-bind-address", ":8080".to_owned()), leases()]);
            estimators(plane, &mut flags);
            if matches!(component, Component::Scheduler) && plane.asks_estimators {
                put(&mut flags, [("enable-scheduler-estimator", "true".to_owned())]);
            }
        }
        Component::Webhook => put(
            &mut flags,
            [
                ("cert-dir", PKI.to_owned()),
                ("health-probe-bind-address", ":8000".to_owned()),
                ("metrics-bind-address", ":8080".to_owned()),
                ("secure-port", WEBHOOK_PORT.to_string()),
            ],
        ),
        Component::MetricsAdapter => put(&mut flags, [("client-ca-file", file("ca.crt")), ("metrics-bind-address", ":8080".to_owned())]),
        Component::AggregatedApiServer | Component::Search => {}
    }
    flags
}

fn etcd(plane: &Arguments, flags: &mut Flags) {
    put(flags, [("etcd-cafile", file("etcd-ca.crt")), ("etcd-certfile", file("etcd.crt")), ("etcd-keyfile", file("etcd.key"))]);
    let servers = match plane.etcd.endpoints.as_items() {
        Some(items) => {
            let parts = items.iter().enumerate().flat_map(|(i, e)| (i > 0).then(|| ",".into()).into_iter().chain([e.clone().into()]));
            Arg::Text(parts.collect())
        }
        None => Value::unknown_not_null(Type::String).into(),
    };
    flags.insert("etcd-servers".to_owned(), servers);
    if !plane.etcd.prefix.is_null() {
        flags.insert("etcd-prefix".to_owned(), plane.etcd.prefix.clone().into());
    }
}

fn api_server(plane: &Arguments, flags: &mut Flags) {
    put(
        flags,
        [
            // Templates of any pod may be kept here to be propagated.
            ("allow-privileged", "true".to_owned()),
            ("authorization-mode", "Node,RBAC".to_owned()),
            ("bind-address", "0.0.0.0".to_owned()),
            ("client-ca-file", file("client-ca.crt")),
            // Nothing here protects volumes in use or makes service accounts for pods: with these, claims could not be deleted and pods
            // not be created.
            ("disable-admission-plugins", "StorageObjectInUseProtection,ServiceAccount".to_owned()),
            ("enable-bootstrap-token-auth", "true".to_owned()),
            ("max-mutating-requests-inflight", "500".to_owned()),
            ("max-requests-inflight", "1500".to_owned()),
            ("proxy-client-cert-file", file("front-proxy-client.crt")),
            ("proxy-client-key-file", file("front-proxy-client.key")),
            ("requestheader-allowed-names", "front-proxy-client".to_owned()),
            ("requestheader-client-ca-file", file("front-proxy-ca.crt")),
            ("requestheader-extra-headers-prefix", "X-Remote-Extra-".to_owned()),
            ("requestheader-group-headers", "X-Remote-Group".to_owned()),
            ("requestheader-username-headers", "X-Remote-User".to_owned()),
            ("secure-port", API_PORT.to_string()),
            ("service-account-issuer", format!("https://kubernetes.default.svc.{}", plane.domain)),
            ("service-account-key-file", file("sa.pub")),
            ("service-account-signing-key-file", file("sa.key")),
            ("service-cluster-ip-range", plane.service_subnet.clone()),
            // Its Service goes on sending requests to a pod that ends, until every node knows: so long it goes on answering.
            ("shutdown-delay-duration", SHUTDOWN_DELAY.to_owned()),
            ("tls-cert-file", file("tls.crt")),
            ("tls-min-version", TLS_VERSION.to_owned()),
            ("tls-private-key-file", file("tls.key")),
        ],
    );
    flags.extend(plane.extras.flags.clone());
}

fn kube_controller_manager(flags: &mut Flags) {
    put(
        flags,
        [
            ("authentication-kubeconfig", file("kubeconfig")),
            ("authorization-kubeconfig", file("kubeconfig")),
            ("bind-address", "0.0.0.0".to_owned()),
            ("client-ca-file", file("ca.crt")),
            ("cluster-name", "karmada".to_owned()),
            ("cluster-signing-cert-file", file("agent-ca.crt")),
            ("cluster-signing-key-file", file("agent-ca.key")),
            ("controllers", CONTROLLERS.to_owned()),
            ("leader-elect", "true".to_owned()),
            ("root-ca-file", file("ca.crt")),
            ("service-account-private-key-file", file("sa.key")),
            ("use-service-account-credentials", "true".to_owned()),
        ],
    );
}

/// Of what the Karmada API is extended by.
fn extension(flags: &mut Flags) {
    put(
        flags,
        [
            ("authentication-kubeconfig", file("kubeconfig")),
            ("authorization-kubeconfig", file("kubeconfig")),
            ("bind-address", "$(POD_IP)".to_owned()),
            ("secure-port", EXTENSION_PORT.to_string()),
            ("tls-cert-file", file("tls.crt")),
            ("tls-min-version", TLS_VERSION.to_owned()),
            ("tls-private-key-file", file("tls.key")),
        ],
    );
}

/// How estimators are asked, where there are some.
fn estimators(plane: &Arguments, flags: &mut Flags) {
    put(
        flags,
        [
            ("scheduler-estimator-ca-file", file("estimator-ca.crt")),
            ("scheduler-estimator-cert-file", file("client.crt")),
            ("scheduler-estimator-key-file", file("client.key")),
            ("scheduler-estimator-service-namespace", plane.host.namespace.clone()),
            // Other instances in this namespace may have a member of the same name.
            ("scheduler-estimator-service-prefix", estimator_prefix(&plane.name)),
        ],
    );
}

/// A component's arguments, sorted by name: karmaform's own, and over them what the user wrote.
pub(crate) fn arguments(plane: &Arguments, component: Component, settings: &Settings) -> Arg {
    let later = || Arg::Value(Value::unknown_not_null(Type::list(Type::String)));
    let (Some(extra), Some(gates)) = (settings.entries("extra_args"), settings.entries("feature_gates")) else { return later() };
    // What may turn out to be null decides whether the flag is there at all.
    let undecided = |v: &Value| matches!(&v.kind, Kind::Unknown(u) if !u.not_null);
    if extra.values().any(undecided) || (uses_etcd(component) && undecided(&plane.etcd.prefix)) {
        return later();
    }
    let mut flags = defaults(plane, component);
    if !gates.is_empty() {
        flags.insert("feature-gates".to_owned(), switches(gates.iter().filter(|(_, v)| !v.is_null())));
    }
    for (name, value) in extra {
        if value.is_null() {
            flags.remove(&name);
        } else {
            flags.insert(name, value.into());
        }
    }
    Arg::List(flags.into_iter().map(|(name, value)| one(&name, value)).collect())
}

/// `--name=value`, one text where it can be.
fn one(name: &str, value: Arg) -> Arg {
    match &value {
        Arg::Value(known) if !known.contains_secret() && known.as_str().is_some() => {
            format!("--{name}={}", known.as_str().unwrap_or_default()).into()
        }
        _ => Arg::Text(vec![format!("--{name}=").into(), value]),
    }
}

/// `A=true,B=false`
fn switches<'a>(gates: impl Iterator<Item = (&'a String, &'a Value)>) -> Arg {
    let mut texts = Vec::new();
    for (gate, value) in gates {
        match value.as_bool() {
            Some(on) => texts.push(format!("{gate}={on}")),
            None => return Value::unknown_not_null(Type::String).into(),
        }
    }
    texts.join(",").into()
}
