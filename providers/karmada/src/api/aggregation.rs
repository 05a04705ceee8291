//! Aggregation: which groups of the Karmada API are served by another component.
//!
//! The API server finds those through Services of the Karmada API that are nothing but other names for Services of the host cluster. It
//! expects the certificate of the name within the Karmada API (`karmada-search.karmada-system.svc`), not of where that leads.

use karmaform_model::Arg;
use serde_json::json;

use super::{ApiObject, Labels, Place, SYSTEM_NAMESPACE, Stage, key, object};
use crate::versions::Component;

/// A group that is served elsewhere: its component, group and version, and its priorities (how high the group and the version stand among
/// others, from the manifests of Karmada).
const GROUPS: &[(Component, &str, &str, u32, u32)] = &[
    (Component::AggregatedApiServer, "cluster.karmada.io", "v1alpha1", 2000, 10),
    (Component::Search, "search.karmada.io", "v1alpha1", 2000, 10),
    (Component::MetricsAdapter, "metrics.k8s.io", "v1beta1", 100, 200),
    (Component::MetricsAdapter, "custom.metrics.k8s.io", "v1beta1", 100, 200),
    (Component::MetricsAdapter, "custom.metrics.k8s.io", "v1beta2", 100, 200),
];

/// The port of APIServices that say none.
const HTTPS: i64 = 443;

/// The Services and groups of the components that run.
pub(super) fn services(place: &Place<'_>) -> Vec<ApiObject> {
    let mut objects: Vec<ApiObject> = Vec::new();
    for (component, group, version, group_priority, version_priority) in GROUPS {
        if component.is_addon() && !place.addons.contains(component) {
            continue;
        }
        let (target, port) = (place.reached)(*component);
        let name = format!("karmada-{}", component.name());
        let service = key("Service", &name);
        if !objects.iter().any(|o| o.key == service) {
            objects.push(
                object("v1", "Service", &name, Labels::Plain, Stage::Aggregation)
                    .within(SYSTEM_NAMESPACE)
                    .with(&["spec"], &json!({ "type": "ExternalName", "externalName": target }))
                    .after(&[key("Namespace", SYSTEM_NAMESPACE)]),
            );
        }
        let mut spec = json!({
            "group": group,
            "version": version,
            "groupPriorityMinimum": group_priority,
            "versionPriority": version_priority,
            "service": { "name": name, "namespace": SYSTEM_NAMESPACE },
        });
        // The one of HTTPS is what an API server takes for granted.
        if port != HTTPS {
            spec["service"]["port"] = port.into();
        }
        let mut served =
            object("apiregistration.k8s.io/v1", "APIService", &format!("{version}.{group}"), Labels::Plain, Stage::Aggregation)
                .with(&["spec"], &spec)
                .with_arg(&["spec", "caBundle"], Arg::Base64(Box::new(place.ca.clone())))
                .after(&[service]);
        served.wait = Some(Arg::from_json(&json!({ "condition": { "Available": "True" } })));
        objects.push(served);
    }
    objects
}
