//! A component's Deployment: its pods, and how they are spread and replaced.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Object, Type, Value};
use serde_json::json;

use super::arguments::Arguments;
use super::extras::sum;
use super::merge::patched;
use super::pki::ca_mark;
use super::places::{CONFIG, PKI, certificate, client_role, extends_api, part};
use super::secrets::uses_etcd;
use super::settings::Settings;
use super::{flags, pods};
use crate::versions::Component;

/// The annotation whose change restarts pods.
const RESTART: &str = "karmaform.io/restart";
/// How many old revisions are kept.
const REVISIONS: i64 = 3;
/// Readable for the pod's group, which its user is in.
const FILE_MODE: i64 = 0o440;

/// The labels of everything of a component on the host cluster.
pub(crate) fn labels(plane: &Arguments, component: &str) -> BTreeMap<String, Arg> {
    let mut labels = selector(plane, component);
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "karmaform".into());
    labels.insert("app.kubernetes.io/part-of".to_owned(), "karmada".into());
    labels
}

/// The labels that a component's pods are found by.
pub(crate) fn selector(plane: &Arguments, component: &str) -> BTreeMap<String, Arg> {
    let entries = [("app.kubernetes.io/name", component), ("app.kubernetes.io/instance", &plane.name)];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// The manifest.
pub(crate) fn manifest(plane: &Arguments, component: Component, settings: &Settings) -> Arg {
    let name = plane.object_name(component);
    let all_labels = with(labels(plane, component.name()), settings.entries("labels"));
    let mut metadata = Arg::object([("name", name.into()), ("namespace", plane.namespace.as_str().into()), ("labels", all_labels.clone())]);
    let annotations = settings.entries("annotations");
    if annotations.as_ref().is_none_or(|a| !a.is_empty()) {
        metadata.set(&["annotations"], with(BTreeMap::new(), annotations.clone()));
    }
    let pod_annotations = with(BTreeMap::from([(RESTART.to_owned(), restart(plane, component))]), annotations);
    let mut manifest = Arg::from_json(&json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {
            "replicas": settings.replicas(),
            "revisionHistoryLimit": REVISIONS,
            // A new pod first: with one replica, too, nothing is missing while the components change that work as one of several.
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } },
        },
    }));
    manifest.set(&["metadata"], metadata);
    manifest.set(&["spec", "selector", "matchLabels"], Arg::Object(selector(plane, component.name())));
    manifest.set(&["spec", "template", "metadata"], Arg::object([("labels", all_labels), ("annotations", pod_annotations)]));
    manifest.set(&["spec", "template", "spec"], pod(plane, component, settings));
    patched(manifest, &settings.value("patch"))
}

/// The user's entries over these; all unknown while not even their names are known.
fn with(mut entries: BTreeMap<String, Arg>, more: Option<Object>) -> Arg {
    let Some(more) = more else { return Value::unknown_not_null(Type::map(Type::String)).into() };
    entries.extend(more.into_iter().filter(|(_, v)| !v.is_null()).map(|(n, v)| (n, v.into())));
    Arg::Object(entries)
}

/// What the program reads only when it starts. Certificates that it serves with, or comes to API servers with, are not among it: their files
/// are read again.
pub(crate) fn marks(plane: &Arguments, component: Component) -> BTreeMap<&'static str, Arg> {
    let mut marks: BTreeMap<&'static str, Arg> = BTreeMap::from([("ca", ca_mark(plane))]);
    if !plane.etcd.cluster_id.is_null() {
        // What was restored is older than what is remembered of it, by the API servers and by whoever watches them.
        marks.insert("etcd-cluster", sum(&plane.etcd.cluster_id).into());
    }
    if uses_etcd(component) {
        marks.insert("etcd-ca", sum(&plane.etcd.ca_certificate).into());
        marks.insert("etcd", sum(&plane.etcd.certificate).into());
    }
    if matches!(component, Component::ApiServer) {
        marks.insert("front-proxy-ca", Arg::child(&part("front_proxy_ca"), "serial_number"));
        marks.extend(plane.extras.sums.iter().map(|(name, sum)| (*name, sum.clone().into())));
    }
    if matches!(component, Component::Scheduler | Component::Descheduler) {
        marks.insert("agent-ca", Arg::child(&part("agent_ca"), "serial_number"));
        // With this one they call estimators, and what they have once connected with they keep.
        marks.insert("client", Arg::child(&certificate(&client_role(component)), "serial_number"));
    }
    if matches!(component, Component::ApiServer | Component::KubeControllerManager) {
        marks.insert("agent-ca", Arg::child(&part("agent_ca"), "serial_number"));
        marks.insert("service-account-key", Arg::child(&part("service_account_key"), "fingerprint"));
    }
    marks
}

/// The same as one text.
fn restart(plane: &Arguments, component: Component) -> Arg {
    let mut text = Vec::new();
    for (i, (name, mark)) in marks(plane, component).into_iter().enumerate() {
        text.push(format!("{}{name}=", if i == 0 { "" } else { " " }).into());
        text.push(mark);
    }
    Arg::Text(text)
}

fn pod(plane: &Arguments, component: Component, settings: &Settings) -> Arg {
    let mut pod = Arg::from_json(&json!({
        // Nothing in the control plane uses the host cluster's API.
        "automountServiceAccountToken": false,
        // The variables of hundreds of Services in a namespace are of no use, and too many of them keep programs from starting.
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 30,
    }));
    pod.set(&["securityContext"], pods::pod_security());
    if !plane.image_pull_secrets.is_empty() {
        let names = plane.image_pull_secrets.iter().map(|n| Arg::object([("name", n.as_str().into())]));
        pod.set(&["imagePullSecrets"], Arg::List(names.collect()));
    }
    let apart = Arg::Object(selector(plane, component.name()));
    let mut prefer = Arg::from_json(&json!({ "weight": 100, "podAffinityTerm": { "topologyKey": "kubernetes.io/hostname" } }));
    prefer.set(&["podAffinityTerm", "labelSelector", "matchLabels"], apart.clone());
    let mut affinity = Arg::Object(BTreeMap::new());
    affinity.set(&["podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution"], Arg::List(vec![prefer]));
    let mut spread =
        Arg::from_json(&json!({ "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway" }));
    spread.set(&["labelSelector", "matchLabels"], apart);
    for (setting, field, default) in [
        ("affinity", "affinity", Some(affinity)),
        ("topology_spread", "topologySpreadConstraints", Some(Arg::List(vec![spread]))),
        ("node_selector", "nodeSelector", None),
        ("tolerations", "tolerations", None),
        ("priority_class", "priorityClassName", None),
    ] {
        let own = settings.value(setting);
        if let Some(value) = (!own.is_null()).then(|| own.into()).or(default) {
            pod.set(&[field], value);
        }
    }
    pod.set(&["containers"], appended(vec![container(plane, component, settings)], &settings.value("sidecars")));
    pod.set(&["volumes"], appended(volumes(plane, component), &settings.value("extra_volumes")));
    pod
}

/// A list with the user's items behind ours.
fn appended(mut list: Vec<Arg>, more: &Value) -> Arg {
    if more.is_unknown() {
        return Value::unknown_not_null(Type::Any).into();
    }
    list.extend(more.as_items().unwrap_or_default().iter().map(|v| v.clone().secret_if(more.secret).into()));
    Arg::List(list)
}

fn has_config(plane: &Arguments, component: Component) -> bool {
    matches!(component, Component::ApiServer) && !plane.extras.files.is_empty()
}

fn volumes(plane: &Arguments, component: Component) -> Vec<Arg> {
    let name = plane.object_name(component);
    let secret = |volume: &str, secret: String| {
        Arg::from_json(&json!({ "name": volume, "secret": { "secretName": secret, "defaultMode": FILE_MODE } }))
    };
    let mut volumes = vec![secret("pki", name.clone()), Arg::from_json(&json!({ "name": "tmp", "emptyDir": {} }))];
    if has_config(plane, component) {
        volumes.push(secret("config", format!("{name}-config")));
    }
    volumes
}

fn container(plane: &Arguments, component: Component, settings: &Settings) -> Arg {
    let mut mounts = vec![
        Arg::from_json(&json!({ "name": "pki", "mountPath": PKI, "readOnly": true })),
        Arg::from_json(&json!({ "name": "tmp", "mountPath": "/tmp" })),
    ];
    if has_config(plane, component) {
        mounts.push(Arg::from_json(&json!({ "name": "config", "mountPath": CONFIG, "readOnly": true })));
    }
    let program = if component.is_kube() { component.binary().to_owned() } else { format!("/bin/{}", component.binary()) };
    let mut container = Arg::object([
        ("name", component.binary().into()),
        ("image", plane.image(component, settings)),
        ("imagePullPolicy", plane.image_pull_policy.as_str().into()),
        ("command", Arg::List(vec![program.into()])),
        ("args", flags::arguments(plane, component, settings)),
        ("ports", pods::container_ports(component)),
        ("securityContext", pods::container_security(component)),
        ("volumeMounts", appended(mounts, &settings.value("extra_volume_mounts"))),
    ]);
    for (name, probe) in pods::probes(component) {
        container.set(&[name], probe);
    }
    if extends_api(component) {
        // With the version that servers fill in: they keep account of the reference as a whole (in 1.36), so that otherwise each look would
        // take a dry run to tell that nothing changed.
        let field = json!({ "apiVersion": "v1", "fieldPath": "status.podIP" });
        container.set(&["env"], Arg::from_json(&json!([{ "name": "POD_IP", "valueFrom": { "fieldRef": field } }])));
    }
    let resources = settings.value("resources");
    if !resources.is_null() {
        container.set(&["resources"], resources.into());
    }
    container
}
