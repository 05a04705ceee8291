//! An estimator in pods: beside the scheduler, which is the control plane's own cluster, or in any other one.

use karmaform_model::{Arg, Child, Type, Value};
use serde_json::json;

use super::arguments::{Arguments, connection_of};
use super::children::{after, labels, object, with};
use super::estimator::{self, Content, PROGRAM};
use super::pods::{Pods, ROLLOUT_TIMEOUT, Shape, selector};
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
    namespace: Value,
    /// It runs in the member itself.
    is_inside: bool,
    node_port: Option<i64>,
}

impl Settings {
    /// Reads what the block has for pods. Of the namespaces the first is where the scheduler looks, the second where accounts are.
    pub(crate) fn read(
        reader: &mut Reader<'_, '_>,
        plane: &Value,
        member: &Value,
        (service_namespace, accounts): (&Value, &str),
    ) -> Option<Self> {
        let is_inside = reader.flag("inside").unwrap_or(false);
        let via = super::host_cluster(plane).cloned();
        let is_given = reader.value("cluster").is_some();
        if is_inside && is_given {
            reader.wrong::<()>("inside", "and `cluster` are both written, and only one of them can be meant");
        }
        let connection = match via {
            _ if is_inside => member.clone(),
            _ if is_given => connection_of(reader, "cluster"),
            Some(via) => via,
            // What the control plane is, is not known yet.
            None if plane.is_unknown() => Value::unknown(Type::Any),
            None => {
                let why = super::why_no_cluster(plane);
                let what = format!("or `inside` or `host` must be written: {why}, so where its scheduler runs is not known");
                return reader.wrong("cluster", &what);
            }
        };
        let written = reader.text("namespace");
        if written.as_ref().is_some_and(|n| !is_label(n)) {
            reader.wrong::<()>("namespace", "is not the name of a namespace");
        }
        if written.is_none() && is_given && reader.value("address").is_some() {
            reader.wrong::<()>("namespace", "must be written: in another cluster nobody makes one for it");
        }
        let namespace = match written {
            Some(written) => written.into(),
            None if is_inside => accounts.into(),
            None => service_namespace.clone(),
        };
        for name in ["source", "source_sha256"] {
            if reader.value(name).is_some() {
                reader.wrong::<()>(name, "is for an estimator on a host, and there is no `host`");
            }
        }
        Some(Self {
            pods: Pods::read(reader, PROGRAM, plane)?,
            connection,
            namespace,
            is_inside,
            node_port: reader.number("node_port", 1..=65_535),
        })
    }

    /// False if the scheduler of this control plane does not find it by the name of its Service, as far as one can tell.
    pub(crate) fn is_beside(&self, plane: &Value, service_namespace: &Value) -> bool {
        let differs = |a: Option<&str>, b: Option<&str>| a.is_some() && b.is_some() && a != b;
        let id = |value: &Value| value.get("id").and_then(Value::as_str).map(str::to_owned);
        let host = super::host_cluster(plane).and_then(id);
        let elsewhere = differs(host.as_deref(), id(&self.connection).as_deref());
        !self.is_inside && !elsewhere && !differs(self.namespace.as_str(), service_namespace.as_str())
    }
}

/// Its files, its pods and its Service.
pub(crate) fn children(member: &Arguments, whole: &estimator::Settings, settings: &Settings) -> Vec<Child> {
    // Beside the scheduler it is called what the scheduler asks for; elsewhere other control planes may have one for the same member.
    let name: Arg = if whole.elsewhere.is_some() { member.account("estimator") } else { whole.service_name(member) };
    // It may be in the member, where other accounts are, or anywhere else.
    let at = |made: Child| after(made, &[part("namespace")]);
    // Its account's token may be in a Secret of that name beside it.
    let secret_name = Arg::Text(vec![name.clone(), "-files".into()]);
    let of = |kind: &str, name: &Arg| {
        let mut made = Arg::from_json(&json!({ "apiVersion": "v1", "kind": kind, "metadata": { "labels": labels() } }));
        made.set(&["metadata", "name"], name.clone());
        made.set(&["metadata", "namespace"], settings.namespace.clone().into());
        made
    };
    let mut secret = of("Secret", &secret_name);
    for (file, content) in estimator::files(member, whole, settings.is_inside) {
        let encoded = match content {
            Content::Plain(plain) => Arg::Base64(Box::new(plain)),
            Content::Encoded(encoded) => encoded,
        };
        secret.set(&["data", file], encoded);
    }
    let mut service = of("Service", &name);
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
        namespace: settings.namespace.clone().into(),
        account: None,
        flags,
        secret: (secret_name, FILES),
        container: json!({ "livenessProbe": alive, "readinessProbe": ready }),
        marks: estimator::marks(member, whole, settings.is_inside),
    });
    let made = at(object(part("estimator"), &settings.connection, deployment));
    // It is not waited for: that of a dead member is never ready, and the fleet is not to be held up by one.
    let made = with(with(made, "timeout", ROLLOUT_TIMEOUT.into()), "propagation", "foreground".into());
    vec![
        at(object(part("estimator_secret"), &settings.connection, secret)),
        at(object(part("estimator_service"), &settings.connection, service)),
        after(made, &[part("estimator_secret"), part("estimator_role_binding")]),
    ]
}
