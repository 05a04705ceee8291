//! karmada-agent in the member: its account, its rights, its kubeconfig and its Deployment.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, Value};
use serde_json::json;

use super::arguments::Arguments;
use super::children::{after, in_member, labels, with};
use super::names::part;
use super::pull;
use super::push;
use crate::read::Reader;

const RBAC: &str = "rbac.authorization.k8s.io";
/// Where its kubeconfig is, as in `karmadactl register`.
const KUBECONFIG: &str = "/etc/kubeconfig";
/// The file there.
const FILE: &str = "karmada-kubeconfig";
/// Where it says how it is: at `/healthz`, and at no other path. Source: `cmd/agent/app/agent.go` and `options` in karmada.
const HEALTH_PORT: i64 = 10_357;
/// How long its pods may take, in seconds: images are pulled.
const ROLLOUT_TIMEOUT: i64 = 300;

/// The block `agent`.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    image: Value,
    image_pull_policy: Value,
    image_pull_secrets: Vec<String>,
    replicas: i64,
    resources: Value,
    extra_args: BTreeMap<String, Value>,
    node_selector: Value,
    tolerations: Value,
    annotations: Value,
    labels: Value,
    priority_class: Value,
    server: Value,
    ca_certificate: Value,
    pub(crate) validity_hours: Value,
    pub(crate) renew_before_hours: Value,
}

impl Settings {
    /// Reads it; none if it is not written.
    pub(crate) fn read(reader: &mut Reader<'_, '_>, plane: &Value) -> Option<Self> {
        if !reader.is_there() {
            return None;
        }
        let part = |name: &str| plane.get(name).filter(|v| !v.is_null()).cloned();
        let image = match (reader.value("image").cloned(), reader.text("version")) {
            (Some(image), None) => image,
            (None, Some(version)) => {
                let registry = reader.text("registry").unwrap_or_else(|| super::schema::REGISTRY.to_owned());
                format!("{registry}/karmada-agent:v{}", version.trim_start_matches('v')).into()
            }
            (None, None) if reader.value("version").is_some() => return None,
            _ => return reader.wrong("version", "or `image` must be written, one of them: which karmada-agent runs in the member"),
        };
        // What is made by karmaform is known by an address inside its own cluster, where other clusters don't reach it.
        let is_inside = plane.get("via").is_some_and(|v| !v.is_null());
        let server = reader.value("server").cloned().or_else(|| if is_inside { None } else { part("server") }).or_else(|| part("address"));
        let ca_certificate = reader.value("ca_certificate").cloned().or_else(|| part("ca_certificate")).or_else(|| part("server_ca"));
        if plane.is_wholly_known() && (server.is_none() || ca_certificate.is_none()) {
            reader.wrong::<()>(
                if server.is_none() { "server" } else { "ca_certificate" },
                "must be written: the connection of the control plane does not say it",
            );
        }
        for name in ["extra_args", "labels", "annotations"] {
            if reader.value(name).is_some_and(Value::is_unknown) {
                reader.later::<()>(name);
            }
        }
        let later = || Value::unknown_not_null(karmaform_model::Type::String);
        let extra_args = reader.value("extra_args").and_then(Value::as_entries).cloned().unwrap_or_default().into_iter().collect();
        Some(Self {
            image,
            image_pull_policy: reader.given("image_pull_policy"),
            image_pull_secrets: reader.texts("image_pull_secrets"),
            replicas: reader.number("replicas", 0..=100).unwrap_or(2),
            resources: reader.given("resources"),
            extra_args,
            node_selector: reader.given("node_selector"),
            tolerations: reader.given("tolerations"),
            annotations: reader.given("annotations"),
            labels: reader.given("labels"),
            priority_class: reader.given("priority_class"),
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
    let meta = |kind: &str, version: &str| json!({ "apiVersion": version, "kind": kind, "metadata": { "namespace": member.namespace, "labels": labels() } });
    let mut account = Arg::from_json(&meta("ServiceAccount", "v1"));
    account.set(&["metadata", "name"], name(member));
    let mut role = Arg::from_json(&json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRole",
        "metadata": { "labels": labels() },
        "rules": push::everything(),
    }));
    role.set(&["metadata", "name"], name(member));
    if !member.rules.is_null() {
        role.set(&["rules"], member.rules.clone().into());
    }
    let mut binding = Arg::from_json(&json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": { "labels": labels() },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole" },
        "subjects": [{ "kind": "ServiceAccount", "namespace": member.namespace }],
    }));
    for path in [["metadata", "name"].as_slice(), &["roleRef", "name"], &["subjects", "0", "name"]] {
        binding.set(path, name(member));
    }
    let mut secret = Arg::from_json(&meta("Secret", "v1"));
    secret.set(&["metadata", "name"], name(member));
    let encoded = |arg: Arg| Arg::Base64(Box::new(arg));
    secret.set(&["data", FILE], encoded(pull::kubeconfig(member, &settings.server.clone().into(), KUBECONFIG)));
    secret.set(&["data", pull::CA], encoded(settings.ca_certificate.clone().into()));
    let [certificate, key] = pull::identity();
    secret.set(&["data", pull::CERTIFICATE], encoded(certificate));
    secret.set(&["data", pull::KEY], encoded(key));
    let first = [part("namespace")];
    vec![
        after(in_member(member, part("agent_account"), account), &first),
        in_member(member, part("agent_role"), role),
        after(in_member(member, part("agent_role_binding"), binding), &[part("agent_role")]),
        after(in_member(member, part("agent_secret"), secret), &first),
        deployment(member, settings),
    ]
}

fn deployment(member: &Arguments, settings: &Settings) -> Child {
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": HEALTH_PORT, "scheme": "HTTP" }, "periodSeconds": 5, "failureThreshold": 6, "timeoutSeconds": 5 });
    let mut manifest = Arg::from_json(&json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "namespace": member.namespace, "labels": labels() },
        "spec": {
            "replicas": settings.replicas,
            "template": {
                "spec": {
                    "containers": [{
                        "name": "karmada-agent",
                        "command": ["/bin/karmada-agent"],
                        "livenessProbe": probe("/healthz"),
                        "readinessProbe": probe("/healthz"),
                        "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
                        "volumeMounts": [{ "name": "kubeconfig", "mountPath": KUBECONFIG, "readOnly": true }],
                    }],
                    "volumes": [{ "name": "kubeconfig", "secret": {} }],
                },
            },
        },
    }));
    let pod = ["spec", "template", "spec"];
    let within = |rest: &[&'static str]| pod.iter().copied().chain(rest.iter().copied()).collect::<Vec<_>>();
    manifest.set(&["metadata", "name"], name(member));
    // With the mark: another control plane's agent may be beside it.
    for place in [["spec", "selector", "matchLabels"].as_slice(), &["spec", "template", "metadata", "labels"]] {
        let selector = Arg::object([("app.kubernetes.io/name", "karmada-agent".into()), ("app.kubernetes.io/instance", name(member))]);
        manifest.set(place, selector);
    }
    manifest.set(&within(&["serviceAccountName"]), name(member));
    manifest.set(&within(&["volumes", "0", "secret", "secretName"]), name(member));
    manifest.set(&within(&["containers", "0", "image"]), settings.image.clone().into());
    manifest.set(&within(&["containers", "0", "args"]), Arg::List(arguments(member, settings)));
    manifest.set(&["spec", "template", "metadata", "annotations", "karmaform/certificate"], pull::certificate_mark());
    for (path, value) in [
        (within(&["containers", "0", "imagePullPolicy"]), &settings.image_pull_policy),
        (within(&["containers", "0", "resources"]), &settings.resources),
        (within(&["nodeSelector"]), &settings.node_selector),
        (within(&["tolerations"]), &settings.tolerations),
        (within(&["priorityClassName"]), &settings.priority_class),
    ] {
        if !value.is_null() {
            manifest.set(&path, value.clone().into());
        }
    }
    for (place, given) in [("annotations", &settings.annotations), ("labels", &settings.labels)] {
        for (key, value) in given.as_entries().into_iter().flatten() {
            manifest.set(&["spec", "template", "metadata", place, key], value.clone().into());
        }
    }
    if !settings.image_pull_secrets.is_empty() {
        let names: Vec<_> = settings.image_pull_secrets.iter().map(|name| json!({ "name": name })).collect();
        manifest.set(&within(&["imagePullSecrets"]), Arg::from_json(&json!(names)));
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
fn arguments(member: &Arguments, settings: &Settings) -> Vec<Arg> {
    let flag = |name: &str, value: Arg| Arg::Text(vec![format!("--{name}=").into(), value]);
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
    all.extend(settings.extra_args.iter().map(|(name, value)| (name.clone(), value.clone().into())));
    all.into_iter().map(|(name, value)| flag(&name, value)).collect()
}
