//! The flags of each component.
//!
//! Source: the manifests of Karmada's own installers (`operator/pkg/controlplane`, `pkg/karmadactl/cmdinit/kubernetes`, `artifacts/deploy`
//! in karmada), the flag lists in `docs/command-line-flags`, and those of kube-apiserver and kube-controller-manager. What is a binary's
//! default anyway is left to it.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Kind, Type, Value};

use super::arguments::Arguments;
use super::host::minor;
use super::hosts;
use super::places::{estimator_prefix, extends_api};
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

/// The first minor version of Kubernetes whose controller manager has no port for everybody (10252) beside its own any more. It takes the
/// flag for it with 0 until 1.23. Source: its changelog, 1.22.
const HAS_ONE_PORT: u32 = 22;
/// The first minor version of Kubernetes whose API server can end watches when it ends, and how long it may take for that.
const ENDS_WATCHES: u32 = 27;
const WATCHES_END: &str = "2s";

pub(crate) type Flags = BTreeMap<String, Arg>;

fn put<const N: usize>(flags: &mut Flags, entries: [(&str, String); N]) {
    flags.extend(entries.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
}

/// A component, and where its files are.
#[derive(Clone, Copy)]
struct Of<'a> {
    plane: &'a Arguments,
    component: Component,
    folder: &'a str,
    /// The host, if it runs on one.
    host: Option<&'a hosts::Host>,
}

impl Of<'_> {
    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// Where it serves, if that is not said by an address.
    fn port(&self) -> String {
        self.plane.listens(self.component).to_string()
    }

    /// Where it listens for whoever runs beside it: in a pod anywhere, on a host on the loopback alone.
    fn beside(&self, port: i64) -> String {
        if self.host.is_some() { format!("127.0.0.1:{port}") } else { format!(":{port}") }
    }

    fn health(&self) -> (&'static str, String) {
        ("health-probe-bind-address", self.beside(self.plane.health_port(self.component)))
    }

    fn metrics(&self) -> (&'static str, String) {
        ("metrics-bind-address", self.beside(self.plane.metrics_port(self.component)))
    }

    /// All addresses, those of IPv6 among them where a host has one.
    fn anywhere(&self) -> String {
        let is_v6 = self.host.and_then(|host| host.is_v6()) == Some(true);
        if is_v6 { "::" } else { "0.0.0.0" }.to_owned()
    }
}

/// The flags that karmaform sets.
fn defaults(of: Of<'_>) -> Flags {
    let Of { plane, component, .. } = of;
    let mut flags = Flags::new();
    if uses_etcd(component) {
        etcd(of, &mut flags);
    }
    if !matches!(component, Component::ApiServer) {
        put(&mut flags, [("kubeconfig", of.file("kubeconfig"))]);
    }
    if extends_api(component) {
        extension(of, &mut flags);
    }
    let leases = || ("leader-elect-resource-namespace", SYSTEM_NAMESPACE.to_owned());
    match component {
        Component::ApiServer => api_server(of, &mut flags),
        Component::KubeControllerManager => {
            kube_controller_manager(plane, of, &mut flags);
            put(&mut flags, [leases()]);
        }
        Component::ControllerManager => {
            put(&mut flags, [("cluster-status-update-frequency", "10s".to_owned()), of.health(), of.metrics(), leases()]);
        }
        Component::Scheduler | Component::Descheduler => {
            put(&mut flags, [of.health(), of.metrics(), leases()]);
            estimators(of, &mut flags);
            if matches!(component, Component::Scheduler) && plane.asks_estimators {
                put(&mut flags, [("enable-scheduler-estimator", "true".to_owned())]);
            }
        }
        Component::Webhook => {
            put(&mut flags, [("cert-dir", of.folder.to_owned()), of.health(), of.metrics(), ("secure-port", of.port())]);
            if of.host.is_some() {
                put(&mut flags, [("bind-address", of.anywhere())]);
            }
        }
        Component::MetricsAdapter => put(&mut flags, [("client-ca-file", of.file("ca.crt")), of.metrics()]),
        Component::AggregatedApiServer | Component::Search => {}
    }
    flags
}

fn etcd(of: Of<'_>, flags: &mut Flags) {
    let plane = of.plane;
    put(flags, [("etcd-cafile", of.file("etcd-ca.crt")), ("etcd-certfile", of.file("etcd.crt")), ("etcd-keyfile", of.file("etcd.key"))]);
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

fn api_server(of: Of<'_>, flags: &mut Flags) {
    let plane = of.plane;
    put(
        flags,
        [
            // Templates of any pod may be kept here to be propagated.
            ("allow-privileged", "true".to_owned()),
            ("authorization-mode", "Node,RBAC".to_owned()),
            ("bind-address", of.anywhere()),
            ("client-ca-file", of.file("client-ca.crt")),
            // Nothing here protects volumes in use or makes service accounts for pods: with these, claims could not be deleted and pods
            // not be created.
            ("disable-admission-plugins", "StorageObjectInUseProtection,ServiceAccount".to_owned()),
            ("enable-bootstrap-token-auth", "true".to_owned()),
            ("max-mutating-requests-inflight", "500".to_owned()),
            ("max-requests-inflight", "1500".to_owned()),
            ("proxy-client-cert-file", of.file("front-proxy-client.crt")),
            ("proxy-client-key-file", of.file("front-proxy-client.key")),
            ("requestheader-allowed-names", "front-proxy-client".to_owned()),
            ("requestheader-client-ca-file", of.file("front-proxy-ca.crt")),
            ("requestheader-extra-headers-prefix", "X-Remote-Extra-".to_owned()),
            ("requestheader-group-headers", "X-Remote-Group".to_owned()),
            ("requestheader-username-headers", "X-Remote-User".to_owned()),
            ("secure-port", of.port()),
            ("service-account-issuer", format!("https://kubernetes.default.svc.{}", plane.domain)),
            ("service-account-key-file", of.file("sa.pub")),
            ("service-account-signing-key-file", of.file("sa.key")),
            ("service-cluster-ip-range", plane.service_subnet.clone()),
            ("tls-cert-file", of.file("tls.crt")),
            ("tls-min-version", TLS_VERSION.to_owned()),
            ("tls-private-key-file", of.file("tls.key")),
        ],
    );
    match of.host {
        // Its Service goes on sending requests to a pod that ends, until every node knows: so long it goes on answering.
        None => put(flags, [("shutdown-delay-duration", SHUTDOWN_DELAY.to_owned())]),
        Some(host) => {
            // Otherwise it takes that of the default route, which a host need not have.
            flags.insert("advertise-address".to_owned(), host.address.clone().into());
            // Otherwise it waits a minute for watches to end by themselves, and does not listen meanwhile.
            if minor(&plane.kube_version).is_some_and(|m| m >= ENDS_WATCHES) {
                put(flags, [("shutdown-watch-termination-grace-period", WATCHES_END.to_owned())]);
            }
            if plane.target.hosts().is_some_and(|h| h.balancer.is_some()) {
                put(flags, [("shutdown-delay-duration", SHUTDOWN_DELAY.to_owned())]);
            }
        }
    }
    flags.extend(plane.extras.flags.clone());
}

fn kube_controller_manager(plane: &Arguments, of: Of<'_>, flags: &mut Flags) {
    put(
        flags,
        [
            ("authentication-kubeconfig", of.file("kubeconfig")),
            ("authorization-kubeconfig", of.file("kubeconfig")),
            ("bind-address", if of.host.is_some() { "127.0.0.1".to_owned() } else { "0.0.0.0".to_owned() }),
            ("client-ca-file", of.file("ca.crt")),
            ("cluster-name", "karmada".to_owned()),
            ("cluster-signing-cert-file", of.file("agent-ca.crt")),
            ("cluster-signing-key-file", of.file("agent-ca.key")),
            ("controllers", CONTROLLERS.to_owned()),
            ("leader-elect", "true".to_owned()),
            ("root-ca-file", of.file("ca.crt")),
            ("service-account-private-key-file", of.file("sa.key")),
            ("use-service-account-credentials", "true".to_owned()),
        ],
    );
    // Whoever reaches it could read there without asking, and no second control plane could start on the same host.
    if minor(&plane.kube_version).is_some_and(|m| m < HAS_ONE_PORT) {
        put(flags, [("port", "0".to_owned())]);
    }
    if of.host.is_some() {
        put(flags, [("secure-port", of.port())]);
    }
}

/// Of what the Karmada API is extended by.
fn extension(of: Of<'_>, flags: &mut Flags) {
    put(
        flags,
        [
            ("authentication-kubeconfig", of.file("kubeconfig")),
            ("authorization-kubeconfig", of.file("kubeconfig")),
            ("bind-address", if of.host.is_some() { of.anywhere() } else { "$(POD_IP)".to_owned() }),
            ("secure-port", of.port()),
            ("tls-cert-file", of.file("tls.crt")),
            ("tls-min-version", TLS_VERSION.to_owned()),
            ("tls-private-key-file", of.file("tls.key")),
        ],
    );
}

/// How estimators are asked, where there are some.
fn estimators(of: Of<'_>, flags: &mut Flags) {
    let plane = of.plane;
    put(
        flags,
        [
            ("scheduler-estimator-ca-file", of.file("estimator-ca.crt")),
            ("scheduler-estimator-cert-file", of.file("client.crt")),
            ("scheduler-estimator-key-file", of.file("client.key")),
            ("scheduler-estimator-service-namespace", plane.namespace.clone()),
            // Other instances in this namespace may have a member of the same name.
            ("scheduler-estimator-service-prefix", estimator_prefix(&plane.name)),
        ],
    );
}

/// A component's flags by name: karmaform's own, and over them what the user wrote. None while not even the names are known.
pub(crate) fn of(plane: &Arguments, component: Component, settings: &Settings, host: Option<&hosts::Host>) -> Option<Flags> {
    let (extra, gates) = (settings.entries("extra_args")?, settings.entries("feature_gates")?);
    // What may turn out to be null decides whether the flag is there at all.
    let undecided = |v: &Value| matches!(&v.kind, Kind::Unknown(u) if !u.not_null);
    if extra.values().any(undecided) || (uses_etcd(component) && undecided(&plane.etcd.prefix)) {
        return None;
    }
    let folder = plane.pki(component);
    let mut flags = defaults(Of { plane, component, folder: &folder, host });
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
    Some(flags)
}

/// A component's arguments in a pod, sorted by name.
pub(crate) fn arguments(plane: &Arguments, component: Component, settings: &Settings) -> Arg {
    match of(plane, component, settings, None) {
        Some(flags) => Arg::List(flags.into_iter().map(|(name, value)| one(&name, value)).collect()),
        None => Arg::Value(Value::unknown_not_null(Type::list(Type::String))),
    }
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
