//! An estimator in pods: beside the scheduler, which is the control plane's own cluster, or in any other one.

use karmaform_model::{Arg, Child, Value};
use serde_json::json;

use super::arguments::{Arguments, connection_of};
use super::children::{after, labels, object, with};
use super::estimator::{self, Content, PROGRAM};
use super::pods::{Pods, ROLLOUT_TIMEOUT, Shape, selector};
use crate::api::CLUSTER_NAMESPACE;
use crate::check::is_label;
use crate::plane::{ESTIMATOR_PORT, part};
use crate::read::Reader;

/// Where its files are in its pods.
const FILES: &str = "/etc/karmada/estimator";
/// Where it says how it is. Source: `options.go` of `cmd/scheduler-estimator` in karmada.
const HEALTH_PORT: i64 = 10_351;
/// Its metrics.
const METRICS_PORT: i64 = 8080;

/// What is written of it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) pods: Pods,
    /// How the cluster is reached that it runs in.
    connection: Value,
    namespace: String,
    /// It runs in the member itself.
    is_inside: bool,
    node_port: Option<i64>,
}

impl Settings {
    /// Reads what the block has for pods.
    pub(crate) fn read(reader: &mut Reader<'_, '_>, plane: &Value, member: &Value, service_namespace: &str) -> Option<Self> {
        let id = |value: &Value| value.get("id").and_then(Value::as_str).map(str::to_owned);
        let via = plane.get("via").filter(|v| !v.is_null()).cloned();
        let connection = match (reader.value("cluster").is_some(), via) {
            (true, _) => connection_of(reader, "cluster"),
            (false, Some(via)) => via,
            // What the control plane is, is not known yet.
            (false, None) if plane.is_unknown() => Value::unknown(karmaform_model::Type::Any),
            (false, None) => {
                let why = "or `host` must be written: karmaform did not make the control plane, so where its scheduler runs is not known";
                return reader.wrong("cluster", why);
            }
        };
        let is_inside = id(&connection).is_some() && id(&connection) == id(member);
        let is_host = id(&connection).is_some() && plane.get("via").and_then(&id) == id(&connection);
        let namespace = reader
            .text("namespace")
            .unwrap_or_else(|| if is_inside && !is_host { CLUSTER_NAMESPACE.to_owned() } else { service_namespace.to_owned() });
        if !is_label(&namespace) {
            reader.wrong::<()>("namespace", "is not the name of a namespace");
        }
        for name in ["source", "source_sha256"] {
            if reader.value(name).is_some() {
                reader.wrong::<()>(name, "is for an estimator on a host, and there is no `host`");
            }
        }
        Some(Self {
            pods: Pods::read(reader, PROGRAM, plane)?,
            connection: if is_inside { member.clone() } else { connection },
            namespace,
            is_inside,
            node_port: reader.number("node_port", 1..=65_535),
        })
    }

    /// True if the scheduler of this control plane finds it by the name of its Service, as far as one can tell.
    pub(crate) fn is_beside(&self, plane: &Value, service_namespace: &str) -> bool {
        let id = |value: Option<&Value>| value.and_then(|v| v.get("id")).and_then(Value::as_str).map(str::to_owned);
        let host = id(plane.get("via").filter(|v| !v.is_null()));
        let is_other = host.is_some() && id(Some(&self.connection)).is_some_and(|own| Some(own) != host);
        !is_other && self.namespace == service_namespace
    }
}

/// Its files, its pods and its Service.
pub(crate) fn children(member: &Arguments, whole: &estimator::Settings, settings: &Settings) -> Vec<Child> {
    // Beside the scheduler it is called what the scheduler asks for; elsewhere other control planes may have one for the same member.
    let name: Arg = if whole.elsewhere.is_some() { member.account("scheduler-estimator") } else { whole.service_name(member).into() };
    // It may be in the member, where other accounts are, or anywhere else.
    let at = |made: Child| after(made, &[part("namespace")]);
    let metadata = || {
        let mut metadata = Arg::from_json(&json!({ "namespace": settings.namespace, "labels": labels() }));
        metadata.set(&["name"], name.clone());
        metadata
    };
    let of = |kind: &str| Arg::object([("apiVersion", "v1".into()), ("kind", kind.into()), ("metadata", metadata())]);
    let mut secret = of("Secret");
    for (file, content) in estimator::files(member, whole, settings.is_inside) {
        let encoded = match content {
            Content::Plain(plain) => Arg::Base64(Box::new(plain)),
            Content::Encoded(encoded) => encoded,
        };
        secret.set(&["data", file], encoded);
    }
    let mut service = of("Service");
    service.set(&["spec", "selector"], selector(PROGRAM, &name));
    let mut port = json!({ "name": "grpc", "port": ESTIMATOR_PORT, "targetPort": ESTIMATOR_PORT, "protocol": "TCP" });
    if let Some(node_port) = settings.node_port {
        service.set(&["spec", "type"], "NodePort".into());
        port["nodePort"] = node_port.into();
    }
    service.set(&["spec", "ports"], Arg::from_json(&json!([port])));
    let mut flags = estimator::flags(member, FILES, ESTIMATOR_PORT);
    flags.insert("health-probe-bind-address".to_owned(), format!(":{HEALTH_PORT}").into());
    flags.insert("metrics-bind-address".to_owned(), format!(":{METRICS_PORT}").into());
    let alive = json!({ "httpGet": { "path": "/healthz", "port": HEALTH_PORT, "scheme": "HTTP" }, "periodSeconds": 15, "failureThreshold": 6, "timeoutSeconds": 5 });
    // It says that it is well before it knows anything, and listens only when it has seen the member.
    let ready = json!({ "tcpSocket": { "port": ESTIMATOR_PORT }, "periodSeconds": 1, "failureThreshold": 10 });
    let deployment = settings.pods.deployment(Shape {
        program: PROGRAM,
        name: name.clone(),
        namespace: settings.namespace.as_str().into(),
        account: None,
        flags,
        secret: (name.clone(), FILES),
        container: json!({ "livenessProbe": alive, "readinessProbe": ready }),
        marks: estimator::marks(member),
    });
    let made = at(object(part("estimator"), &settings.connection, deployment));
    let made = with(made, "wait", Arg::object([("rollout", true.into())]));
    let made = with(with(made, "timeout", ROLLOUT_TIMEOUT.into()), "propagation", "foreground".into());
    vec![
        at(object(part("estimator_secret"), &settings.connection, secret)),
        at(object(part("estimator_service"), &settings.connection, service)),
        after(made, &[part("estimator_secret"), part("estimator_role_binding")]),
    ]
}
