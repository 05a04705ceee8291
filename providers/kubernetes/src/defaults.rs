//! What a server fills in where nobody says anything. Whoever writes a whole object back, as `kubectl replace` does with what `kubectl get` printed, is
//! accounted for all of it, and has set nothing with it.
//!
//! Source: the defaults of Kubernetes' own types, and of CRDs' and webhooks' (`SetDefaults_*` in `pkg/apis/*/*/defaults.go`).

use serde_json::{Value as Json, json};

/// Fields that a server gives values of its own.
const ASSIGNED: &[&str] =
    &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort", "nodePort", "targetPort", "serviceAccount"];

/// True for a field with the value that a server fills in, or with one that it makes up.
pub(crate) fn is_filled_in(name: &str, value: &Json) -> bool {
    ASSIGNED.contains(&name) || values(name).contains(value) || value.as_object().is_some_and(serde_json::Map::is_empty)
}

fn values(name: &str) -> Vec<Json> {
    match name {
        "backoffLimit" => vec![json!(6)],
        "completions" | "parallelism" | "replicas" | "successThreshold" | "failedJobsHistoryLimit" => vec![json!(1)],
        "concurrencyPolicy" => vec![json!("Allow")],
        "conversion" => vec![json!({ "strategy": "None" })],
        "defaultMode" => vec![json!(420)],
        "dnsPolicy" => vec![json!("ClusterFirst")],
        "failurePolicy" => vec![json!("Fail")],
        "failureThreshold" | "successfulJobsHistoryLimit" => vec![json!(3)],
        "imagePullPolicy" => vec![json!("IfNotPresent"), json!("Always")],
        "internalTrafficPolicy" | "externalTrafficPolicy" => vec![json!("Cluster")],
        "matchPolicy" => vec![json!("Equivalent")],
        "maxSurge" | "maxUnavailable" => vec![json!("25%")],
        "partition" => vec![json!(0)],
        "path" => vec![json!("/")],
        "periodSeconds" => vec![json!(10)],
        "podManagementPolicy" => vec![json!("OrderedReady")],
        "progressDeadlineSeconds" => vec![json!(600)],
        "protocol" => vec![json!("TCP")],
        "reinvocationPolicy" => vec![json!("Never")],
        "restartPolicy" => vec![json!("Always")],
        "revisionHistoryLimit" => vec![json!(10)],
        "schedulerName" => vec![json!("default-scheduler")],
        "scheme" => vec![json!("HTTP")],
        "scope" => vec![json!("*")],
        "strategy" => vec![json!("None")],
        "whenDeleted" | "whenScaled" => vec![json!("Retain")],
        "sessionAffinity" => vec![json!("None")],
        "sideEffects" => vec![json!("Unknown")],
        "suspend" | "paused" | "hostNetwork" | "optional" => vec![json!(false)],
        "terminationGracePeriodSeconds" => vec![json!(30)],
        "terminationMessagePath" => vec![json!("/dev/termination-log")],
        "terminationMessagePolicy" => vec![json!("File")],
        "timeoutSeconds" => vec![json!(1), json!(10)],
        "type" => vec![json!("Opaque"), json!("ClusterIP"), json!("RollingUpdate"), json!("")],
        _ => Vec::new(),
    }
}
