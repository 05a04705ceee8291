//! What a cluster on Kubernetes expands into: for each member its certificates, their Secret, its volume, its pod and the member itself; for
//! all of them the Services, the disruption budget, the StatefulSet, and the note that the cluster was formed.

use karmaform_model::{Arg, Child, ChildStep, Type, Value};
use serde_json::{Value as Json, json};

use super::super::arguments::Arguments;
use super::super::authorities;
use super::super::children::{as_known, certificate, child};
use super::super::choreography::quorum;
use super::super::places::{CLIENT_CA, PEER_CA, authority, disruption_budget, formed_note, founders, part, part_of, stateful_set, token};
use super::template::{self, Parts};
use super::{Kubernetes, LOST, Minor, NODE_FOLDER, Storage, given};

/// How long a pod may take until it runs, in seconds: mostly the time to pull its image.
const POD_TIMEOUT: i64 = 300;
/// How long the StatefulSet's pods may take to end, in seconds; each has 60 s to hand over its leadership.
const STOP_TIMEOUT: i64 = 120;
/// A list of members that nobody of the cluster is on: etcd ends then, and says so ([`LOST`](super::LOST)).
const NOBODY: &str = "nobody-without-data=https://127.0.0.1:2380";

/// The children that are not the same as on hosts.
pub(crate) fn expand(cluster: &Arguments, place: &Kubernetes, children: &mut Vec<Child>) {
    // The token is in the pods' arguments, which are not known while not even the names of the settings are.
    let mut needed = vec![token()];
    let mut add = |children: &mut Vec<Child>, child: Child| {
        needed.push(child.path.clone());
        children.push(child);
    };
    add(children, service(place, "peer_service", &place.name, true));
    add(children, service(place, "client_service", &format!("{}-client", place.name), false));
    add(children, founding(cluster, place));
    if place.members > 1 {
        children.push(budget(place));
    }
    for ordinal in 0..place.members {
        let name = place.member(ordinal);
        for (role, ca) in [("server", CLIENT_CA), ("peer", PEER_CA)] {
            let path = part_of(&name, "certificate", role);
            let address = cluster.members.get(&name).map(|host| &host.address);
            // Both usages on both: etcd dials its own client port with the server certificate, and peers dial each other with the peer's.
            children.push(certificate(cluster, path, ca, &name, address, &["server_auth", "client_auth"]));
        }
        add(children, secret(cluster, place, &name));
        match &place.storage {
            Storage::EmptyDir => {}
            Storage::HostPath { nodes } => {
                let node = nodes.get(ordinal % nodes.len().max(1)).cloned();
                children.push(volume(cluster, place, &name, node.unwrap_or_else(|| Value::unknown_not_null(Type::String))));
                let mut claim = claim(cluster, place, &name);
                claim.after.push(part(&name, "volume"));
                add(children, claim);
            }
            Storage::Class(_) => {
                let mut claim = claim(cluster, place, &name);
                // What asks for another class is another claim. Where there is data in it the choreography says how.
                claim.arguments.insert("remake".to_owned(), true.into());
                add(children, claim);
            }
        }
    }
    if cluster.keeps_authority {
        children.push(kept(cluster, place));
    }
    let Parts { template, revision } = template::template(cluster, place);
    let mut set = object(place, stateful_set(), stateful_set_manifest(place, template, place.members));
    // Kubernetes changes no volumes that a StatefulSet asks for, whether or not they can grow.
    set.arguments.insert("remake".to_owned(), true.into());
    set.arguments.insert("propagation".to_owned(), "foreground".into());
    set.arguments.insert("timeout".to_owned(), STOP_TIMEOUT.into());
    set.after = needed;
    children.push(set);
    for name in cluster.members.keys() {
        let mut pod = child(
            part(name, "pod"),
            "kubernetes_pod",
            [
                ("cluster", place.connection.clone().into()),
                ("namespace", place.namespace.clone().into()),
                ("name", name.as_str().into()),
                ("revision", revision.clone().into()),
                ("renew_on", LOST.into()),
                ("timeout", POD_TIMEOUT.into()),
            ],
        );
        pod.after.push(stateful_set());
        children.push(pod);
        // Not after its pod: who has joined is noted before the next one does, and pods follow their StatefulSet, which comes last.
        children.push(as_known(cluster, name));
    }
    children.push(object(place, formed_note(), note_manifest(place, NOBODY.into())));
}

/// Labels by which the pods are found.
pub(super) fn selector(place: &Kubernetes) -> Json {
    json!({ "app.kubernetes.io/name": "etcd", "app.kubernetes.io/instance": place.name })
}

/// Labels of everything.
pub(super) fn labels(place: &Kubernetes) -> Json {
    let mut labels = selector(place);
    labels["app.kubernetes.io/managed-by"] = "karmaform".into();
    labels["app.kubernetes.io/part-of"] = "etcd".into();
    labels
}

fn manifest(place: &Kubernetes, api_version: &str, kind: &str, name: &str, rest: Json) -> Arg {
    let namespace = (kind != "PersistentVolume").then_some(&place.namespace);
    manifest_of((namespace, &labels(place)), api_version, kind, name, rest)
}

/// An object with these labels, in a namespace or without one. `rest`: what it has besides its head.
pub(crate) fn manifest_of((namespace, labels): (Option<&Value>, &Json), api_version: &str, kind: &str, name: &str, rest: Json) -> Arg {
    let mut json = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name, "labels": labels } });
    if let (Json::Object(all), Json::Object(rest)) = (&mut json, rest) {
        all.extend(rest);
    }
    let mut manifest = Arg::from_json(&json);
    if let Some(namespace) = namespace {
        manifest.set(&["metadata", "namespace"], namespace.clone().into());
    }
    manifest
}

fn object(place: &Kubernetes, path: Vec<ChildStep>, manifest: Arg) -> Child {
    child(
        path,
        "kubernetes_object",
        [("cluster", place.connection.clone().into()), ("manifest", manifest), ("reclaim", true.into()), ("exclusive", true.into())],
    )
}

/// The headless one gives each pod its name, also before it is ready: peers must find each other to get ready.
fn service(place: &Kubernetes, path: &str, name: &str, headless: bool) -> Child {
    let port = |name: &str, port: u16| json!({ "name": name, "port": port, "targetPort": port, "protocol": "TCP" });
    let spec = if headless {
        json!({ "clusterIP": "None", "publishNotReadyAddresses": true, "selector": selector(place), "ports": [port("client", 2379), port("peer", 2380)] })
    } else {
        json!({ "selector": selector(place), "ports": [port("client", 2379)] })
    };
    object(place, vec![ChildStep::new(path)], manifest(place, "v1", "Service", name, json!({ "spec": spec })))
}

/// One for a single member would only keep its node from being drained; that is a decision of who drains it.
fn budget(place: &Kubernetes) -> Child {
    let spec = json!({ "minAvailable": quorum(place.members), "selector": { "matchLabels": selector(place) } });
    let mut made = manifest(place, "", "PodDisruptionBudget", &place.name, json!({ "spec": spec }));
    let api_version = match place.minor {
        Minor::Later => Value::unknown_not_null(Type::String),
        Minor::Known(minor) if minor < 21 => "policy/v1beta1".into(),
        Minor::Known(_) | Minor::Untold => "policy/v1".into(),
    };
    made.set(&["apiVersion"], api_version.into());
    object(place, disruption_budget(), made)
}

fn secret(cluster: &Arguments, place: &Kubernetes, member: &str) -> Child {
    let mut made = manifest(place, "v1", "Secret", &template::secret_name(member), json!({ "type": "Opaque" }));
    for (file, role) in [("client-ca.crt", CLIENT_CA), ("peer-ca.crt", PEER_CA)] {
        made.set(&["stringData", file], authorities::trusted(cluster, role));
    }
    for (file, from, attribute) in [
        ("server.crt", part_of(member, "certificate", "server"), "certificate"),
        ("server.key", part_of(member, "certificate", "server"), "private_key"),
        ("peer.crt", part_of(member, "certificate", "peer"), "certificate"),
        ("peer.key", part_of(member, "certificate", "peer"), "private_key"),
    ] {
        made.set(&["stringData", file], Arg::child(&from, attribute));
    }
    object(place, part(member, "secret"), made)
}

/// What no pod has, and what the cluster can't be managed without.
fn kept(cluster: &Arguments, place: &Kubernetes) -> Child {
    let mut made = manifest(place, "v1", "Secret", &format!("{}-authority", place.name), json!({ "type": "Opaque" }));
    for (file, from, attribute) in authorities::kept(cluster) {
        made.set(&["stringData", &file], Arg::child(&from, attribute));
    }
    object(place, vec![ChildStep::new("authority")], made)
}

/// A part of a node's disk. The folder has the formation's token in its path: a cluster that is formed anew never starts on old data.
fn volume(cluster: &Arguments, place: &Kubernetes, member: &str, node: Value) -> Child {
    let name = volume_name(place, member);
    // Volumes are bound to nodes by labels alone; this one every node has.
    let affinity = json!({ "required": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "kubernetes.io/hostname", "operator": "In", "values": [null] }] }
    ] } });
    // No class: servers don't keep an empty one, and each look would take a dry run to tell that this is no difference.
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "nodeAffinity": affinity, "claimRef": { "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim_name(member) },
        "hostPath": { "type": "DirectoryOrCreate" },
    });
    let mut made = manifest(place, "v1", "PersistentVolume", "", json!({ "spec": spec }));
    made.set(&["metadata", "name"], name.into());
    made.set(
        &["spec", "nodeAffinity", "required", "nodeSelectorTerms", "0", "matchExpressions", "0", "values"],
        Arg::List(vec![node.into()]),
    );
    made.set(&["spec", "capacity", "storage"], place.storage_size.clone().into());
    made.set(&["spec", "claimRef", "namespace"], place.namespace.clone().into());
    let folder = given(&place.block, "host_path").unwrap_or_else(|| NODE_FOLDER.into());
    let path = Arg::Text(vec![
        folder.into(),
        "/".into(),
        place.namespace.clone().into(),
        format!("/{member}-").into(),
        Arg::child(&token(), "id"),
    ]);
    made.set(&["spec", "hostPath", "path"], path);
    let mut volume = object(place, part(member, "volume"), made);
    // A volume stays as long as the claim that it is bound to.
    volume.arguments.insert("keep".to_owned(), cluster.keeps_data.into());
    volume
}

/// Volumes have no namespace.
fn volume_name(place: &Kubernetes, member: &str) -> Value {
    place.namespace.as_str().map_or_else(|| Value::unknown_not_null(Type::String), |ns| format!("{ns}-{member}").into())
}

/// As a StatefulSet calls the claims of its pods: it uses one that is there.
pub(crate) fn claim_name(member: &str) -> String {
    format!("{}-{member}", template::DATA)
}

fn claim(cluster: &Arguments, place: &Kubernetes, member: &str) -> Child {
    let made = claim_manifest(place, member);
    let mut claim = object(place, part(member, "claim"), made);
    claim.arguments.insert("keep".to_owned(), cluster.keeps_data.into());
    // A claim stays as long as its pod, which has a minute to end.
    claim.arguments.insert("timeout".to_owned(), STOP_TIMEOUT.into());
    // So a claim that is there while the CAs are not in the state is of another cluster, and never of an apply that did not finish.
    let signs_with = cluster.authorities.signs_with;
    claim.after = vec![authority(CLIENT_CA, signs_with), authority(PEER_CA, signs_with), token()];
    claim
}

pub(super) fn claim_spec(place: &Kubernetes) -> Json {
    let class = if let Storage::Class(class) = &place.storage { class.as_str() } else { "" };
    json!({ "accessModes": ["ReadWriteOnce"], "storageClassName": class })
}

fn stateful_set_manifest(place: &Kubernetes, template: Arg, replicas: usize) -> Arg {
    let spec = json!({
        "serviceName": place.name,
        "replicas": replicas,
        "selector": { "matchLabels": selector(place) },
        // All at once: no member of a new cluster is ready before a second one runs.
        "podManagementPolicy": "Parallel",
        // Which member may restart when is decided by who knows the leader and each member's health.
        "updateStrategy": { "type": "OnDelete" },
        "revisionHistoryLimit": 3,
    });
    let mut made = manifest(place, "apps/v1", "StatefulSet", &place.name, json!({ "spec": spec }));
    made.set(&["spec", "template"], template);
    if place.storage != Storage::EmptyDir {
        // With all that servers fill in (`SetDefaults_PersistentVolumeClaim` of Kubernetes): they keep account of this list as a whole, so
        // that otherwise each look would take a dry run to tell that nothing changed.
        let mut claim = Arg::from_json(&json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": template::DATA }, "spec": claim_spec(place),
            "status": { "phase": "Pending" },
        }));
        claim.set(&["spec", "volumeMode"], "Filesystem".into());
        claim.set(&["spec", "resources", "requests", "storage"], place.storage_size.clone().into());
        made.set(&["spec", "volumeClaimTemplates"], Arg::List(vec![claim]));
    }
    for (kind, written) in [("labels", given(&place.block, "labels")), ("annotations", given(&place.block, "annotations"))] {
        template::extend(&mut made, &["metadata", kind], written);
    }
    made
}

/// Who forms the cluster: what each member starts with while it was not formed, all of them at once.
fn founding(cluster: &Arguments, place: &Kubernetes) -> Child {
    let mut list: Vec<Arg> = Vec::new();
    for (i, (name, host)) in cluster.members.iter().enumerate() {
        list.push(format!("{}{name}=", if i == 0 { "" } else { "," }).into());
        list.extend(cluster.url(host, cluster.peer_port).into_iter().map(Arg::Value));
    }
    let mut made = manifest(place, "v1", "ConfigMap", &template::members_name(place), json!({}));
    made.set(&["data", template::MEMBERS], Arg::Text(list));
    object(place, founders(), made)
}

/// From the moment that it is there members start only as a part of a cluster that exists, and who has no data only if it is on the list. Made when
/// all are healthy, so that a member whose data is gone never forms an empty cluster beside the real one, nor takes part as the one that it
/// was: the others know what that had agreed to. When it is made and removed is the choreography's part: after the members of a new cluster,
/// but before those of one that was formed, and gone only when they are.
fn note_manifest(place: &Kubernetes, list: Arg) -> Arg {
    let mut made = manifest(place, "v1", "ConfigMap", &template::note_name(place), json!({ "data": { template::STATE: "existing" } }));
    made.set(&["data", template::LIST], list);
    made
}

/// What lets one more member start: it is on the list, and there is a pod for it.
pub(crate) fn to_start(cluster: &Arguments, place: &Kubernetes, list: &str, replicas: usize) -> Vec<Arg> {
    vec![note_manifest(place, list.into()), scaled(cluster, place, replicas)]
}

/// The StatefulSet with so many pods.
pub(crate) fn scaled(cluster: &Arguments, place: &Kubernetes, replicas: usize) -> Arg {
    stateful_set_manifest(place, template::template(cluster, place).template, replicas)
}

/// After which nobody starts without data.
pub(crate) fn to_close(place: &Kubernetes) -> Vec<Arg> {
    vec![note_manifest(place, NOBODY.into())]
}

/// Saves a snapshot on the member's volume, beside its data, in place of the one of before. etcdctl gives it its name when it came to its end.
pub(crate) fn save_command(member: &str) -> Vec<String> {
    let pki = template::pki(member);
    let fixed = ["etcdctl", "--endpoints=https://127.0.0.1:2379", "--dial-timeout=10s", "--command-timeout=1740s"].map(str::to_owned);
    let files = [("cacert", "client-ca.crt"), ("cert", "server.crt"), ("key", "server.key")];
    let files = files.map(|(flag, file)| format!("--{flag}={pki}/{file}"));
    let save = ["snapshot", "save", &template::saved()].map(str::to_owned);
    fixed.into_iter().chain(files).chain(save).collect()
}

/// The claim of a member, for one that is made anew.
pub(crate) fn claim_manifest(place: &Kubernetes, member: &str) -> Arg {
    let mut made = manifest(place, "v1", "PersistentVolumeClaim", &claim_name(member), json!({ "spec": claim_spec(place) }));
    made.set(&["spec", "resources", "requests", "storage"], place.storage_size.clone().into());
    if matches!(place.storage, Storage::HostPath { .. }) {
        made.set(&["spec", "volumeName"], volume_name(place, member).into());
    }
    made
}
