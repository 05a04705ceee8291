//! A pod beside a member's, with the member's volume: what is restored is put there, and what was there before is taken away.

use karmaform_model::{Arg, Value};
use serde_json::{Value as Json, json};

use super::children::{claim_name, manifest_of, selector};
use super::program::{container_security, installed, installer, mount, pod_security};
use super::template::{self, DATA, VOLUME};
use super::{Kubernetes, Storage};

/// So long it is there at most, in seconds, whatever became of who made it.
const LONGEST: i64 = 4 * 3_600;
/// Its container.
pub(crate) const CONTAINER: &str = "helper";

/// What it is called.
pub(crate) fn name(member: &str) -> String {
    format!("{member}-restore")
}

/// Where the member's data is in it; what belongs to a restoration is beside that.
pub(crate) fn data() -> String {
    format!("{VOLUME}/{DATA}")
}

/// All that is known of it when it is to go.
pub(crate) fn named(namespace: &Value, member: &str) -> Arg {
    let mut pod = Arg::from_json(&json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name(member) } }));
    pod.set(&["metadata", "namespace"], namespace.clone().into());
    pod
}

/// The pod. Where the member's own is, it is put beside that; `has_pod`: it was there, and what it asks for is taken already.
pub(crate) fn manifest(place: &Kubernetes, member: &str, program_image: &Arg, has_pod: bool) -> Arg {
    let on_node = matches!(place.storage, Storage::HostPath { .. });
    let spec = json!({
        "restartPolicy": "Never",
        "activeDeadlineSeconds": LONGEST,
        // It has nothing to put in order.
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        // A volume that is not there yet comes to where its first pod is, and stays there: as members are spread, so are these, and from members, too.
        "affinity": template::apart(place, &[labels(place), selector(place)]),
        "topologySpreadConstraints": template::across_zones(&labels(place)),
        "securityContext": pod_security(on_node),
        "initContainers": [installer()],
        "containers": [{
            "name": CONTAINER,
            "command": [installed(), "etcd", "restore", "wait"],
            "env": [{ "name": "KF_IN_AUTOMATION", "value": "1" }],
            "securityContext": container_security(),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [mount(), { "name": DATA, "mountPath": VOLUME }],
        }],
        "volumes": [
            { "name": "program", "emptyDir": {} },
            { "name": DATA, "persistentVolumeClaim": { "claimName": claim_name(member) } },
        ],
    });
    let head = (Some(&place.namespace), &labels(place));
    let mut pod = manifest_of(head, "v1", "Pod", &name(member), json!({ "spec": spec }));
    pod.set(&["spec", "initContainers", "0", "image"], program_image.clone());
    pod.set(&["spec", "containers", "0", "image"], place.image.clone().into());
    template::placed(&mut pod, &["spec"], place);
    let resources = resources(place, has_pod);
    pod.set(&["spec", "initContainers", "0", "resources"], resources.clone());
    pod.set(&["spec", "containers", "0", "resources"], resources);
    template::extend(&mut pod, &["metadata", "labels"], super::given(&place.block, "labels"));
    template::extend(&mut pod, &["metadata", "annotations"], super::given(&place.block, "annotations"));
    if let Some(policy) = super::given(&place.block, "image_pull_policy") {
        pod.set(&["spec", "initContainers", "0", "imagePullPolicy"], policy.into());
    }
    pod
}

/// As members have them, so that a node that is chosen has room for one; beside one that is there, little, within what limits there are.
fn resources(place: &Kubernetes, has_pod: bool) -> Arg {
    let written = super::given(&place.block, "resources");
    if !has_pod {
        return written.map_or_else(|| Arg::from_json(&template::resources()), Arg::from);
    }
    let mut little = Arg::from_json(&json!({ "requests": { "cpu": "10m", "memory": "64Mi" } }));
    if let Some(limits) = written.as_ref().and_then(|w| w.get("limits")).filter(|l| !l.is_null()) {
        little.set(&["limits"], limits.clone().into());
    }
    little
}

/// No Service leads to it, and no budget counts it.
fn labels(place: &Kubernetes) -> Json {
    let mut labels = selector(place);
    labels["app.kubernetes.io/name"] = "etcd-restore".into();
    labels["app.kubernetes.io/managed-by"] = "karmaform".into();
    labels["app.kubernetes.io/part-of"] = "etcd".into();
    labels
}
