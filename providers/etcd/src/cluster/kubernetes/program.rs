//! karmaform in pods that need etcd's programs as well: an image of karmaform has no etcd and an image of etcd no karmaform, nor any program that copies. A
//! pod begins in the one, puts karmaform into a volume, and goes on in the other.

use serde_json::{Value as Json, json};

use super::template::USER;

/// Where the volume with the program is.
pub(crate) const PROGRAM: &str = "/program";

/// The container that a pod begins with, but for its image.
pub(crate) fn installer() -> Json {
    json!({
        "name": "program",
        "command": ["karmaform", "etcd", "backup", "install", PROGRAM],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": container_security(),
        "volumeMounts": [{ "name": "program", "mountPath": PROGRAM }],
    })
}

/// What the program is called then.
pub(crate) fn installed() -> String {
    format!("{PROGRAM}/karmaform")
}

/// The volume, as a container that uses it has it.
pub(crate) fn mount() -> Json {
    json!({ "name": "program", "mountPath": PROGRAM, "readOnly": true })
}

/// What no container of ours may do.
pub(crate) fn container_security() -> Json {
    json!({ "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] } })
}

/// Who a pod's programs are. A folder that the kubelet makes on a node belongs to root, and no group is set on it.
pub(crate) fn pod_security(on_node: bool) -> Json {
    let user = if on_node { 0 } else { USER };
    json!({
        "runAsUser": user, "runAsGroup": user, "fsGroup": user, "runAsNonRoot": !on_node, "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}
