//! karmada-agent in the member: its account, its rights, its kubeconfig and its Deployment.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, Type, Value};
use serde_json::json;

use super::arguments::{Arguments, plane_ca};
use super::children::{after, in_member, labels, with};
use super::pods::{Pods, ROLLOUT_TIMEOUT, Shape};
use super::pull;
use super::push;
use crate::plane::{part, sum};
use crate::read::Reader;

/// The program.
const PROGRAM: &str = "karmada-agent";
/// Where its kubeconfig is, as in `karmadactl register`.
const KUBECONFIG: &str = "/etc/kubeconfig";
/// The file there.
const FILE: &str = "karmada-kubeconfig";
/// Where it says how it is: at `/healthz`, and at no other path. Source: `cmd/agent/app/agent.go` and `options` in karmada.
const HEALTH_PORT: i64 = 10_357;
/// The block `agent`.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) pods: Pods,
    /// The URL at which it reaches the Karmada API; of several API servers, the first one's.
    pub(crate) server: Value,
    /// The way to all API servers, if they are several that nothing is in front of.
    ways: Ways,
    pub(crate) ca_certificate: Value,
    pub(crate) validity_hours: Value,
    pub(crate) renew_before_hours: Value,
}

/// How an agent reaches API servers of which any may be gone.
#[derive(Clone, Debug)]
enum Ways {
    /// There is one URL.
    One,
    /// A name has the addresses of all of them, in the file /etc/hosts of its pods: programs in Go try one after the other. Source:
    /// `lookupStaticHost` and `dialSerial` in Go's `net`; `CGO_ENABLED=0` in `hack/build.sh` of karmada.
    All { server: Value, aliases: Value },
    /// Nobody knows before there is a control plane.
    Later,
}

impl Ways {
    /// Of a control plane.
    fn of(plane: &Value) -> Self {
        if plane.is_unknown() {
            return Self::Later;
        }
        let name = |url: &Value| Some(url.as_str()?.strip_prefix("https://")?.rsplit_once(':')?.0.to_owned());
        let addresses = plane.get("addresses").and_then(Value::as_items);
        match (addresses, plane.get("address").and_then(|url| Some((url, name(url)?)))) {
            (Some(addresses), Some((server, name))) => {
                let names = Value::tuple(vec![name.into()]);
                let line = |address: &Value| Value::object([("ip", address.clone()), ("hostnames", names.clone())]);
                Self::All { server: server.clone(), aliases: Value::tuple(addresses.iter().map(line).collect()) }
            }
            _ => Self::One,
        }
    }
}

impl Settings {
    /// Reads it; none if it is not written.
    pub(crate) fn read(reader: &mut Reader<'_, '_>, plane: &Value) -> Option<Self> {
        if !reader.is_there() {
            return None;
        }
        let part = |name: &str| plane.get(name).filter(|v| !v.is_null()).cloned();
        let pods = Pods::read(reader, PROGRAM, plane);
        // What is made by karmaform is known by an address inside its own cluster, where other clusters don't reach it.
        let is_inside = super::host_cluster(plane).is_some();
        let server = reader.value("server").cloned().or_else(|| if is_inside { None } else { part("server") }).or_else(|| part("address"));
        let ca_certificate = reader.value("ca_certificate").cloned().or_else(|| plane_ca(plane));
        if plane.is_wholly_known() && (server.is_none() || ca_certificate.is_none()) {
            reader.wrong::<()>(
                if server.is_none() { "server" } else { "ca_certificate" },
                "must be written: the connection of the control plane does not say it",
            );
        }
        let later = || Value::unknown_not_null(Type::String);
        Some(Self {
            pods: pods?,
            ways: if reader.value("server").is_some() { Ways::One } else { Ways::of(plane) },
            server: server.unwrap_or_else(later),
            ca_certificate: ca_certificate.unwrap_or_else(later),
            validity_hours: reader.given("validity_hours"),
            renew_before_hours: reader.given("renew_before_hours"),
        })
    }
}

/// What everything of it is called.
fn name(member: &Arguments) -> Arg {
    member.account("agent")
}

/// All of it.
pub(crate) fn children(member: &Arguments, settings: &Settings) -> Vec<Child> {
    let meta = json!({ "namespace": member.namespace, "labels": labels() });
    let mut secret = Arg::from_json(&json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta }));
    secret.set(&["metadata", "name"], name(member));
    let encoded = |arg: Arg| Arg::Base64(Box::new(arg));
    let server = if let Ways::All { server, .. } = &settings.ways { server } else { &settings.server };
    secret.set(&["data", FILE], encoded(pull::kubeconfig(member, &server.clone().into(), KUBECONFIG)));
    secret.set(&["data", pull::CA], encoded(settings.ca_certificate.clone().into()));
    let [certificate, key] = pull::identity();
    secret.set(&["data", pull::CERTIFICATE], encoded(certificate));
    secret.set(&["data", pull::KEY], encoded(key));
    let binding = push::binding(member, part("agent_role_binding"), &name(member), name(member));
    vec![
        push::service_account(member, part("agent_account"), name(member)),
        push::role(member, part("agent_role"), name(member)),
        after(binding, &[part("agent_role")]),
        after(in_member(member, part("agent_secret"), secret), &[part("namespace")]),
        deployment(member, settings),
    ]
}

fn deployment(member: &Arguments, settings: &Settings) -> Child {
    let probe = json!({ "httpGet": { "path": "/healthz", "port": HEALTH_PORT, "scheme": "HTTP" }, "periodSeconds": 5, "failureThreshold": 6, "timeoutSeconds": 5 });
    let mut manifest = settings.pods.deployment(Shape {
        program: PROGRAM,
        name: name(member),
        namespace: member.namespace.as_str().into(),
        account: Some(name(member)),
        flags: flags(member),
        secret: (name(member), KUBECONFIG),
        container: json!({ "livenessProbe": probe, "readinessProbe": probe }),
        // Of two agents the one that waits would go on with the CA that it has read, and be no help once the other is gone.
        marks: vec![("karmaform/certificate", pull::certificate_mark()), ("karmaform/ca", sum(&settings.ca_certificate).into())],
    });
    let pod = ["spec", "template", "spec"];
    match &settings.ways {
        Ways::One => {}
        Ways::All { aliases, .. } => manifest.set(&[&pod[..], &["hostAliases"]].concat(), aliases.clone().into()),
        Ways::Later => manifest.set(&pod, Value::unknown(Type::Any).into()),
    }
    let made = with(in_member(member, pull::runs(), manifest), "wait", Arg::object([("rollout", true.into())]));
    let made = with(made, "timeout", ROLLOUT_TIMEOUT.into());
    // Its pods have ended when it is gone: what they still hold would keep their namespace.
    let made = with(made, "propagation", "foreground".into());
    // It ends if its Cluster object is not as its flags say: it may make one, and never change one.
    let mut first = vec![part("agent_account"), part("agent_role_binding"), part("agent_secret"), part("cluster")];
    first.extend(pull::rights_paths());
    after(made, &first)
}

/// Its flags. Credentials of the member are not its to report: karmaform brings them, under names of their own.
fn flags(member: &Arguments) -> BTreeMap<String, Arg> {
    let mut all: BTreeMap<String, Arg> = BTreeMap::from([
        ("karmada-kubeconfig".to_owned(), format!("{KUBECONFIG}/{FILE}").into()),
        ("cluster-name".to_owned(), member.name.as_str().into()),
        ("cluster-api-endpoint".to_owned(), member.endpoint.clone().into()),
        ("cluster-namespace".to_owned(), member.namespace.as_str().into()),
        // It goes with the Cluster object, and with it the lease.
        ("leader-elect-resource-namespace".to_owned(), pull::work_namespace(member).into()),
        ("report-secrets".to_owned(), "None".into()),
        ("controllers".to_owned(), "*".into()),
        ("cluster-status-update-frequency".to_owned(), "10s".into()),
        ("metrics-bind-address".to_owned(), ":8080".into()),
        ("health-probe-bind-address".to_owned(), format!("0.0.0.0:{HEALTH_PORT}").into()),
        ("v".to_owned(), "2".into()),
    ]);
    let written = [("cluster-provider", &member.provider), ("cluster-region", &member.region), ("proxy-server-address", &member.proxy_url)];
    all.extend(written.into_iter().filter(|(_, v)| !v.is_null()).map(|(n, v)| (n.to_owned(), v.clone().into())));
    if let Some(zones) = member.zones.as_items().filter(|z| !z.is_empty()) {
        let mut text = Vec::new();
        for (index, zone) in zones.iter().enumerate() {
            text.extend((index > 0).then(|| Arg::from(",")));
            text.push(zone.clone().into());
        }
        all.insert("cluster-zones".to_owned(), Arg::Text(text));
    }
    all
}
