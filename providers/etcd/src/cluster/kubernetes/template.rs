//! The pods of a cluster's StatefulSet.

use karmaform_model::{Arg, Object, Type, Value, to_json};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::super::arguments::Arguments;
use super::super::places::token;
use super::children::{labels, selector};
use super::program::{container_security, pod_security};
use super::{Kubernetes, MOST_MEMBERS, Storage, given};

/// The volume with the data.
pub(super) const DATA: &str = "data";
/// The entries of the note: that the cluster was formed, and who may start without data.
pub(super) const STATE: &str = "initial-cluster-state";
pub(super) const LIST: &str = "initial-cluster";
/// The variable by which etcd learns who the members are; who has data passes it over (`ETCD_` and the flag's name: etcd's documentation,
/// "Configuration options").
pub(super) const MEMBERS: &str = "ETCD_INITIAL_CLUSTER";
/// The annotation that tells pods of one template from those of another.
const REVISION: &str = "karmaform.io/revision";
/// The annotation with the CAs that a pod trusts: etcd reads them only when it starts, so pods of others are to be made anew. Not there for the
/// first ones, which pods trusted before there could be others.
const AUTHORITIES: &str = "karmaform.io/authorities";
/// Where the certificates are in a pod: a folder for each member.
const PKI: &str = "/etc/etcd/pki";
/// Where the volume is in a pod.
pub(super) const VOLUME: &str = "/var/lib/etcd";
/// Who runs etcd: nobody that a node knows.
pub(crate) const USER: i64 = 65_532;
/// How long a member has to hand over its leadership and to end, in seconds.
const GRACE: i64 = 60;

/// What a StatefulSet makes pods of.
pub(super) struct Parts {
    /// The template.
    pub(super) template: Arg,
    /// What tells it from others; not known while the template is not.
    pub(super) revision: Value,
}

/// Where a member's certificates are in its pod.
pub(super) fn pki(member: &str) -> String {
    format!("{PKI}/{member}")
}

/// Where the data of before an upgrade is in a pod.
pub(crate) fn saved() -> String {
    format!("{VOLUME}/before-upgrade.db")
}

/// The name of the Secret with a member's certificates.
pub(super) fn secret_name(member: &str) -> String {
    format!("{member}-tls")
}

/// The name of the note that says that the cluster was formed.
pub(super) fn note_name(place: &Kubernetes) -> String {
    format!("{}-formed", place.name)
}

/// The name of the list of those that form the cluster.
pub(super) fn members_name(place: &Kubernetes) -> String {
    format!("{}-members", place.name)
}

/// Adds what a user wrote to a map.
pub(super) fn extend(arg: &mut Arg, path: &[&str], written: Option<Value>) {
    let Some(written) = written else { return };
    let Some(entries) = written.as_entries() else {
        arg.set(path, written.into());
        return;
    };
    for (name, value) in entries {
        let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
        arg.set(&path, value.clone().into());
    }
}

/// `image_pull_secrets` of a block as pods have them; `None`: it has none.
pub(crate) fn pull_secrets(block: &Object) -> Option<Arg> {
    let secrets = given(block, "image_pull_secrets")?;
    let named = secrets.as_items().map(|s| s.iter().map(|name| Arg::object([("name", name.clone().into())])).collect());
    Some(named.map_or_else(|| Value::unknown(Type::Any).into(), Arg::List))
}

/// Where a pod may be, and how its first image gets there, as it is written for members. `at`: where the pod's specification is.
pub(super) fn placed(pod: &mut Arg, at: &[&str], place: &Kubernetes) {
    for (name, path) in [
        ("image_pull_policy", &["containers", "0", "imagePullPolicy"][..]),
        ("tolerations", &["tolerations"]),
        ("node_selector", &["nodeSelector"]),
        ("priority_class", &["priorityClassName"]),
        ("selinux_level", &["securityContext", "seLinuxOptions", "level"]),
    ] {
        if let Some(written) = given(&place.block, name) {
            pod.set(&[at, path].concat(), written.into());
        }
    }
    if let Some(secrets) = pull_secrets(&place.block) {
        pod.set(&[at, &["imagePullSecrets"]].concat(), secrets);
    }
}

/// That a pod is on another node than those with each of these labels, always or if it can be.
pub(super) fn apart(place: &Kubernetes, labels: &[Json]) -> Json {
    let terms = labels.iter().map(|labels| json!({ "labelSelector": { "matchLabels": labels }, "topologyKey": "kubernetes.io/hostname" }));
    if place.required_spread {
        json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms.collect::<Vec<_>>() } })
    } else {
        let weighed: Vec<Json> = terms.map(|term| json!({ "weight": 100, "podAffinityTerm": term })).collect();
        json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": weighed } })
    }
}

/// That pods with these labels are spread over zones, if it can be.
pub(super) fn across_zones(labels: &Json) -> Json {
    json!([{
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": labels },
    }])
}

/// What a member asks for unless something else is written.
pub(super) fn resources() -> Json {
    json!({ "requests": { "cpu": "500m", "memory": "512Mi" } })
}

/// The template of a member's pod, the same for all.
pub(super) fn template(cluster: &Arguments, place: &Kubernetes) -> Parts {
    let mut template = Arg::from_json(&json!({ "metadata": { "labels": labels(place) }, "spec": spec(cluster, place) }));
    template.set(&["spec", "containers", "0", "image"], place.image.clone().into());
    placed(&mut template, &["spec"], place);
    if let Some(written) = given(&place.block, "resources") {
        template.set(&["spec", "containers", "0", "resources"], written.into());
    }
    extend(&mut template, &["metadata", "labels"], given(&place.block, "labels"));
    extend(&mut template, &["metadata", "annotations"], given(&place.block, "annotations"));
    // Where nobody knows whether there are annotations this one is among them, or not known like all others.
    let are_known = !given(&place.block, "annotations").is_some_and(|a| a.is_unknown());
    if are_known && !cluster.authorities.trusts_the_first_alone() {
        template.set(&["metadata", "annotations", AUTHORITIES], cluster.authorities.text().into());
    }
    let (mut flags, known) = flags(cluster, place);
    template.set(&["spec", "containers", "0", "args"], flags.clone());
    let revision = if known { revision(&template) } else { Value::unknown_not_null(Type::String) };
    // Not known are all of them, or it would look as if there were no others.
    if are_known {
        template.set(&["metadata", "annotations", REVISION], revision.clone().into());
    }
    // Not a part of the revision: it never changes, and is not known when the first plan is made.
    if !known {
        flags = Value::unknown(Type::Any).into();
    } else if let Arg::List(flags) = &mut flags {
        flags.push(Arg::Text(vec!["--initial-cluster-token=".into(), Arg::child(&token(), "id")]));
    }
    template.set(&["spec", "containers", "0", "args"], flags);
    Parts { template, revision }
}

fn revision(template: &Arg) -> Value {
    let resolved = template.resolve(&|_, _| Value::unknown(Type::Any));
    if !resolved.is_wholly_known() {
        return Value::unknown_not_null(Type::String);
    }
    let digest = Sha256::digest(to_json(&resolved).to_string().as_bytes());
    digest.iter().take(6).map(|b| format!("{b:02x}")).collect::<String>().into()
}

/// The arguments of etcd, without the token. False if not even their names are known.
fn flags(cluster: &Arguments, place: &Kubernetes) -> (Arg, bool) {
    let fixed = |text: &str| Arg::from(text);
    let own = |flag: &str, port: u16| {
        let start = format!("--{flag}=https://$(POD_NAME).{}.", place.name);
        Arg::Text(vec![start.into(), place.namespace.clone().into(), format!(".svc:{port}").into()])
    };
    let mut flags = vec![
        fixed("--name=$(POD_NAME)"),
        format!("--data-dir={VOLUME}/{DATA}").into(),
        fixed("--listen-client-urls=https://0.0.0.0:2379"),
        own("advertise-client-urls", cluster.client_port),
        fixed("--listen-peer-urls=https://0.0.0.0:2380"),
        own("initial-advertise-peer-urls", cluster.peer_port),
        fixed("--listen-metrics-urls=http://0.0.0.0:2381"),
        fixed("--client-cert-auth=true"),
        fixed("--peer-client-cert-auth=true"),
        fixed("--strict-reconfig-check=true"),
    ];
    for (flag, file) in [
        ("trusted-ca-file", "client-ca.crt"),
        ("cert-file", "server.crt"),
        ("key-file", "server.key"),
        ("peer-trusted-ca-file", "peer-ca.crt"),
        ("peer-cert-file", "peer.crt"),
        ("peer-key-file", "peer.key"),
    ] {
        flags.push(format!("--{flag}={PKI}/$(POD_NAME)/{file}").into());
    }
    let Some(settings) = &cluster.settings else { return (Arg::List(flags), false) };
    if cluster.version.minor == 4 && !settings.contains_key("logger") {
        flags.push(fixed("--logger=zap"));
    }
    for (name, value) in settings.iter().filter(|(n, v)| !v.is_null() && n.as_str() != "strict-reconfig-check") {
        flags.push(Arg::Text(vec![format!("--{name}=").into(), value.clone().into()]));
    }
    (Arg::List(flags), true)
}

fn spec(cluster: &Arguments, place: &Kubernetes) -> Json {
    let on_node = matches!(place.storage, Storage::HostPath { .. });
    let mut volumes = vec![certificates(place)];
    if place.storage == Storage::EmptyDir {
        volumes.push(json!({ "name": DATA, "emptyDir": {} }));
    }
    json!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": GRACE,
        "affinity": apart(place, &[selector(place)]),
        "topologySpreadConstraints": across_zones(&selector(place)),
        "securityContext": pod_security(on_node),
        "containers": [container(cluster, place)],
        "volumes": volumes,
    })
}

/// The Secrets of all members that there may ever be: so that one more member is no change to the pods of the others.
fn certificates(place: &Kubernetes) -> Json {
    let sources = (0..MOST_MEMBERS).map(|i| place.member(i)).map(|member| {
        let files = ["client-ca.crt", "peer-ca.crt", "server.crt", "server.key", "peer.crt", "peer.key"];
        let items: Vec<Json> = files.iter().map(|f| json!({ "key": f, "path": format!("{member}/{f}") })).collect();
        json!({ "secret": { "name": secret_name(&member), "optional": true, "items": items } })
    });
    json!({ "name": "pki", "projected": { "defaultMode": 0o440, "sources": sources.collect::<Vec<_>>() } })
}

fn container(cluster: &Arguments, place: &Kubernetes) -> Json {
    let port = |name: &str, port: u16| json!({ "name": name, "containerPort": port, "protocol": "TCP" });
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": path } } });
    let noted = |name: &str, entry: &str| {
        json!({ "name": name, "valueFrom": {
        "configMapKeyRef": { "name": note_name(place), "key": entry, "optional": true },
    } })
    };
    let mut container = json!({
        "name": "etcd",
        "command": ["etcd"],
        // Who has no data starts by these. What a single variable says counts before all that comes from `envFrom`, and one whose entry is not there
        // says nothing: so it is the note, once the cluster was formed.
        "env": [field("POD_NAME", "metadata.name"), noted("ETCD_INITIAL_CLUSTER_STATE", STATE), noted(MEMBERS, LIST)],
        "envFrom": [{ "configMapRef": { "name": members_name(place) } }],
        // Why a member does not start is told by its status: of one that has lost its data that is how it is known.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "ports": [port("client", 2379), port("peer", 2380), port("metrics", 2381)],
        "resources": resources(),
        "securityContext": container_security(),
        "volumeMounts": [{ "name": "pki", "mountPath": PKI, "readOnly": true }, { "name": DATA, "mountPath": VOLUME }],
    });
    for (name, probe) in probes(cluster) {
        container[name] = probe;
    }
    container
}

/// The image has no shell, so all ask over HTTP. Ready is who takes part in the cluster. Alive is who answers at all: a member that waits for
/// a quorum is not to be killed for it, so liveness is asked of `/livez` alone, which older versions don't have.
fn probes(cluster: &Arguments) -> Vec<(&'static str, Json)> {
    let get = |path: &str| json!({ "path": path, "port": 2381, "scheme": "HTTP" });
    let probe = |path: &str, period: u32, failures: u32| json!({ "httpGet": get(path), "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures, "successThreshold": 1 });
    if !cluster.version.has_livez() {
        return vec![("readinessProbe", probe("/health", 2, 3))];
    }
    vec![
        // Half an hour to read a large database.
        ("startupProbe", probe("/livez", 1, 1800)),
        ("livenessProbe", probe("/livez", 10, 12)),
        ("readinessProbe", probe("/readyz", 2, 3)),
    ]
}
