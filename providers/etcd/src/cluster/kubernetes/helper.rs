//! A pod beside a member's, with the member's volume: what is restored is put there, and what was there before is taken away.

use karmaform_model::Arg;
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

/// The pod. `has_pod`: the member's own is there, and a volume can be on one node alone.
pub(crate) fn manifest(place: &Kubernetes, member: &str, program_image: &Arg, has_pod: bool) -> Arg {
    let on_node = matches!(place.storage, Storage::HostPath { .. });
    let affinity = if has_pod {
        let its_own = json!({ "labelSelector": { "matchLabels": { "statefulset.kubernetes.io/pod-name": member } }, "topologyKey": "kubernetes.io/hostname" });
        json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [its_own] } })
    } else {
        // A volume that is not there yet comes to where its first pod is: members are spread in this way, too.
        template::apart(place, &labels(place))
    };
    let spec = json!({
        "restartPolicy": "Never",
        "activeDeadlineSeconds": LONGEST,
        // It has nothing to put in order.
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "affinity": affinity,
        "securityContext": pod_security(on_node),
        "initContainers": [installer()],
        "containers": [{
            "name": CONTAINER,
            "command": [installed(), "etcd", "restore", "wait"],
            "env": [{ "name": "KF_IN_AUTOMATION", "value": "1" }],
            "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
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
    if let Some(policy) = super::given(&place.block, "image_pull_policy") {
        pod.set(&["spec", "initContainers", "0", "imagePullPolicy"], policy.into());
    }
    pod
}

/// No Service leads to it, and no budget counts it.
fn labels(place: &Kubernetes) -> Json {
    let mut labels = selector(place);
    labels["app.kubernetes.io/name"] = "etcd-restore".into();
    labels["app.kubernetes.io/managed-by"] = "karmaform".into();
    labels["app.kubernetes.io/part-of"] = "etcd".into();
    labels
}
