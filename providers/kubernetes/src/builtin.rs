//! Kinds that Kubernetes itself brings, so that servers need not be asked about them. A server that is too old for one says so when it is used.
//!
//! From what kube-apiserver 1.36 serves (<https://kubernetes.io/docs/reference/kubernetes-api/>); only stable versions are here,
//! which stay, and what servers up to 1.20 have in place of one: whoever wants that knows that the server is one of these.

use crate::client::Served;

/// Kind, plural, and whether it lives in namespaces.
type Row = (&'static str, &'static str, bool);

const KINDS: &[(&str, &[Row])] = &[
    (
        "v1",
        &[
            ("ConfigMap", "configmaps", true),
            ("Endpoints", "endpoints", true),
            ("Event", "events", true),
            ("LimitRange", "limitranges", true),
            ("Namespace", "namespaces", false),
            ("Node", "nodes", false),
            ("PersistentVolume", "persistentvolumes", false),
            ("PersistentVolumeClaim", "persistentvolumeclaims", true),
            ("Pod", "pods", true),
            ("PodTemplate", "podtemplates", true),
            ("ReplicationController", "replicationcontrollers", true),
            ("ResourceQuota", "resourcequotas", true),
            ("Secret", "secrets", true),
            ("Service", "services", true),
            ("ServiceAccount", "serviceaccounts", true),
        ],
    ),
    (
        "admissionregistration.k8s.io/v1",
        &[
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false),
            ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", false),
            ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", false),
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false),
        ],
    ),
    ("apiextensions.k8s.io/v1", &[("CustomResourceDefinition", "customresourcedefinitions", false)]),
    ("apiregistration.k8s.io/v1", &[("APIService", "apiservices", false)]),
    (
        "apps/v1",
        &[
            ("ControllerRevision", "controllerrevisions", true),
            ("DaemonSet", "daemonsets", true),
            ("Deployment", "deployments", true),
            ("ReplicaSet", "replicasets", true),
            ("StatefulSet", "statefulsets", true),
        ],
    ),
    ("autoscaling/v2", &[("HorizontalPodAutoscaler", "horizontalpodautoscalers", true)]),
    ("batch/v1", &[("CronJob", "cronjobs", true), ("Job", "jobs", true)]),
    ("coordination.k8s.io/v1", &[("Lease", "leases", true)]),
    (
        "networking.k8s.io/v1",
        &[("Ingress", "ingresses", true), ("IngressClass", "ingressclasses", false), ("NetworkPolicy", "networkpolicies", true)],
    ),
    ("policy/v1", &[("PodDisruptionBudget", "poddisruptionbudgets", true)]),
    (
        "rbac.authorization.k8s.io/v1",
        &[
            ("ClusterRole", "clusterroles", false),
            ("ClusterRoleBinding", "clusterrolebindings", false),
            ("Role", "roles", true),
            ("RoleBinding", "rolebindings", true),
        ],
    ),
    (
        "storage.k8s.io/v1",
        &[
            ("CSIDriver", "csidrivers", false),
            ("CSINode", "csinodes", false),
            ("CSIStorageCapacity", "csistoragecapacities", true),
            ("StorageClass", "storageclasses", false),
            ("VolumeAttachment", "volumeattachments", false),
        ],
    ),
];

/// What older servers have in the place of a stable version, and newer ones do not have any more.
const FORMER: &[(&str, &[Row])] = &[("policy/v1beta1", &[("PodDisruptionBudget", "poddisruptionbudgets", true)])];

/// True for a version that only some servers have.
pub(crate) fn is_former(api_version: &str) -> bool {
    FORMER.iter().any(|(v, _)| *v == api_version)
}

/// How servers serve a kind of Kubernetes' own; none for what is not its own, or not in this version of its group.
pub(crate) fn kind(api_version: &str, kind: &str) -> Option<Served> {
    let (_, rows) = KINDS.iter().chain(FORMER).find(|(v, _)| *v == api_version)?;
    let (kind, plural, namespaced) = rows.iter().find(|(k, ..)| *k == kind)?;
    Some(Served { kind: (*kind).to_owned(), plural: (*plural).to_owned(), namespaced: *namespaced })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_version_is_both_stable_and_gone_from_some_servers() {
        assert!(KINDS.iter().all(|(version, _)| !is_former(version)) && is_former("policy/v1beta1"));
        // Whether somebody else's is still there, the name of its version does not tell.
        assert!(!is_former("policy.example.com/v1beta1"));
    }

    #[test]
    fn own_kinds_are_known_in_their_stable_versions_alone() {
        let role = kind("rbac.authorization.k8s.io/v1", "ClusterRole").unwrap();
        assert_eq!((role.plural.as_str(), role.namespaced), ("clusterroles", false));
        assert!(kind("v1", "Secret").unwrap().namespaced && !kind("v1", "Namespace").unwrap().namespaced);
        assert_eq!(kind("policy/v1beta1", "PodDisruptionBudget"), kind("policy/v1", "PodDisruptionBudget"));
        assert_eq!(kind("policy/v1beta1", "PodSecurityPolicy"), None);
        assert_eq!(kind("v1", "Deployment"), None);
        assert_eq!(kind("policy.karmada.io/v1alpha1", "PropagationPolicy"), None);
    }
}
