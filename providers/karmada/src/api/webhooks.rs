//! Admission: which kinds the Karmada API shows to the webhook before it stores them.
//!
//! The entries are those of `artifacts/deploy/webhook-configuration.yaml` of each version, which is the only complete set (the other installers
//! leave some out). The webhook must know every path: it answers others with 404, and as every entry fails closed nothing of that kind could
//! be written any more. So entries belong to versions.

use karmaform_model::Arg;
use serde_json::{Value as Json, json};

use super::{ApiObject, Labels, Place, Stage, object};
use crate::versions::Component;

/// Entries are named by this and a kind.
const DOMAIN: &str = "karmada.io";

/// One kind of requests that are shown to the webhook.
struct Entry {
    /// Its name before the domain.
    name: &'static str,
    /// The group of the kind before the domain.
    group: &'static str,
    /// The kind.
    resource: &'static str,
    /// Cluster or Namespaced.
    scope: &'static str,
    /// On update as well, not only when created.
    update: bool,
    /// The path after `/mutate-` or `/validate-`.
    path: &'static str,
    /// The first minor version that knows the path.
    since: u32,
    /// The longest wait in seconds.
    timeout: u32,
    /// What it changes elsewhere, in Kubernetes' words.
    side_effects: &'static str,
}

/// An entry as most are: created and updated objects, for as long as the webhook has had paths that are served here.
const fn entry(name: &'static str, group: &'static str, resource: &'static str, scope: &'static str, path: &'static str) -> Entry {
    Entry { name, group, resource, scope, update: true, path, since: 13, timeout: 3, side_effects: "None" }
}

/// What is changed on its way.
const MUTATING: &[Entry] = &[
    entry("propagationpolicy", "policy", "propagationpolicies", "Namespaced", "propagationpolicy"),
    entry("clusterpropagationpolicy", "policy", "clusterpropagationpolicies", "Cluster", "clusterpropagationpolicy"),
    entry("overridepolicy", "policy", "overridepolicies", "Namespaced", "overridepolicy"),
    Entry { update: false, ..entry("resourcebinding", "work", "resourcebindings", "Namespaced", "resourcebinding") },
    Entry { update: false, ..entry("clusterresourcebinding", "work", "clusterresourcebindings", "Cluster", "clusterresourcebinding") },
    entry("work", "work", "works", "Namespaced", "work"),
    entry("autoscaling", "autoscaling", "federatedhpas", "Namespaced", "federatedhpa"),
    entry("multiclusterservice", "networking", "multiclusterservices", "Namespaced", "multiclusterservice"),
];

/// What is refused if it is wrong. The protection from deletion is no such kind and made by itself.
const VALIDATING: &[Entry] = &[
    entry("propagationpolicy", "policy", "propagationpolicies", "Namespaced", "propagationpolicy"),
    entry("clusterpropagationpolicy", "policy", "clusterpropagationpolicies", "Cluster", "clusterpropagationpolicy"),
    entry("overridepolicy", "policy", "overridepolicies", "Namespaced", "overridepolicy"),
    entry("clusteroverridepolicy", "policy", "clusteroverridepolicies", "Cluster", "clusteroverridepolicy"),
    entry("config", "config", "resourceinterpreterwebhookconfigurations", "Cluster", "resourceinterpreterwebhookconfiguration"),
    // Scripts are run to see whether they are right, which takes longer.
    Entry {
        timeout: 10,
        ..entry(
            "resourceinterpretercustomization",
            "config",
            "resourceinterpretercustomizations",
            "Cluster",
            "resourceinterpretercustomization",
        )
    },
    entry("federatedresourcequota", "policy", "federatedresourcequotas", "Namespaced", "federatedresourcequota"),
    entry("multiclusteringress", "networking", "multiclusteringresses", "Namespaced", "multiclusteringress"),
    entry("federatedhpa", "autoscaling", "federatedhpas", "Namespaced", "federatedhpa"),
    entry("cronfederatedhpa", "autoscaling", "cronfederatedhpas", "Namespaced", "cronfederatedhpa"),
    entry("multiclusterservice", "networking", "multiclusterservices", "Namespaced", "multiclusterservice"),
    // It writes what is used into quotas, but not when a request is only tried.
    Entry {
        since: 14,
        side_effects: "NoneOnDryRun",
        ..entry("resourcebinding", "work", "resourcebindings", "Namespaced", "resourcebinding")
    },
    Entry { since: 14, ..entry("clustertaintpolicy", "policy", "clustertaintpolicies", "Cluster", "clustertaintpolicy") },
];

/// Both configurations.
pub(super) fn configurations(place: &Place<'_>) -> Vec<ApiObject> {
    let known = |list: &'static [Entry]| list.iter().filter(|e| e.since <= place.version.minor);
    let mutating = known(MUTATING).map(|e| of_kind(e, "mutate", place)).collect();
    let validating = known(VALIDATING).map(|e| of_kind(e, "validate", place)).chain([protection(place)]).collect();
    [("MutatingWebhookConfiguration", "mutating-config", mutating), ("ValidatingWebhookConfiguration", "validating-config", validating)]
        .into_iter()
        .map(|(kind, name, entries)| {
            object("admissionregistration.k8s.io/v1", kind, name, Labels::Plain, Stage::Webhooks)
                .with_arg(&["webhooks"], Arg::List(entries))
        })
        .collect()
}

/// The entry for a kind.
fn of_kind(entry: &Entry, verb: &str, place: &Place<'_>) -> Arg {
    let operations: &[&str] = if entry.update { &["CREATE", "UPDATE"] } else { &["CREATE"] };
    let rule = json!({
        "operations": operations,
        "apiGroups": [format!("{}.{DOMAIN}", entry.group)],
        "apiVersions": ["*"],
        "resources": [entry.resource],
        "scope": entry.scope,
    });
    webhook(entry.name, &rule, &format!("{verb}-{}", entry.path), entry.timeout, entry.side_effects, place)
}

/// The entry that keeps what is marked so from being deleted, of whatever kind it is.
fn protection(place: &Place<'_>) -> Arg {
    let name = "resourcedeletionprotection";
    let rule = json!({ "operations": ["DELETE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": "*" });
    let mut webhook = webhook(name, &rule, &format!("validate-{name}"), 3, "None", place);
    let marked = json!({ "matchExpressions": [{ "key": "resourcetemplate.karmada.io/deletion-protected", "operator": "Exists" }] });
    webhook.set(&["objectSelector"], Arg::from_json(&marked));
    webhook
}

/// One entry. The webhook is reached by its URL and not as a Service, because it is a Service of the host cluster and not of the Karmada API.
fn webhook(name: &str, rule: &Json, path: &str, timeout: u32, side_effects: &str, place: &Place<'_>) -> Arg {
    let (host, port) = (place.reached)(Component::Webhook);
    let mut webhook = Arg::from_json(&json!({
        "name": format!("{name}.{DOMAIN}"),
        "rules": [rule],
        "clientConfig": { "url": format!("https://{host}:{port}/{path}") },
        "failurePolicy": "Fail",
        "sideEffects": side_effects,
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": timeout,
    }));
    webhook.set(&["clientConfig", "caBundle"], Arg::Base64(Box::new(place.ca.clone())));
    webhook
}
