//! Who may do what in the Karmada API: the components, and people.
//!
//! Karmada's own installers give every component the group `system:masters`, which no role can narrow. Here each has a user of its own.

use serde_json::{Value as Json, json};

use super::{ApiObject, Labels, RBAC, Stage, key, object, user};
use crate::versions::Component;

/// The user of the administrator's certificate where Karmada's own installers have `system:admin`.
const ADMIN: &str = "system:karmada:admin";

/// The roles and bindings of the components that run.
///
/// Most are administrators, because they act on whatever kind a user propagates, or (search, the metrics adapter) hand requests on and read
/// all members' credentials anyway. Those that only ever touch Karmada's own kinds may touch nothing else: the list of what they touch is from
/// `pkg/scheduler`, `pkg/descheduler`, `pkg/estimator/client` and `pkg/webhook` of Karmada 1.13 to 1.19.
pub(super) fn components(addons: &[Component]) -> Vec<ApiObject> {
    let mut objects = Vec::new();
    // Kubernetes has roles for its own controller manager, and the API server asks nobody.
    for component in Component::ALL.into_iter().filter(|c| !c.is_kube() && (!c.is_addon() || addons.contains(c))) {
        let who = user(component);
        let given = |role: &str| cluster_binding(&who, role, &json!({ "apiGroup": RBAC, "kind": "User", "name": who }), Stage::First);
        match rules(component) {
            None => objects.push(given("cluster-admin")),
            Some(rules) => {
                objects.push(cluster_role(&who, &rules, Stage::First));
                objects.push(given(&who).after(&[key("ClusterRole", &who)]));
            }
        }
    }
    objects
}

/// What a component may do; `None` if everything.
fn rules(component: Component) -> Option<Json> {
    match component {
        Component::Scheduler | Component::Descheduler => Some(json!([
            rule("cluster.karmada.io", &["clusters"], READ),
            rule("work.karmada.io", &["resourcebindings", "clusterresourcebindings"], &["get", "list", "watch", "update", "patch"]),
            rule("work.karmada.io", &["resourcebindings/status", "clusterresourcebindings/status"], &["get", "update", "patch"]),
            // Where an estimator is may be said by a Service of the Karmada API.
            rule("", &["services"], READ),
            rule("coordination.k8s.io", &["leases"], &["get", "list", "watch", "create", "update", "patch"]),
            rule("", &["events"], &["create", "update", "patch"]),
            rule("events.k8s.io", &["events"], &["create", "update", "patch"]),
        ])),
        Component::Webhook => Some(json!([
            rule("config.karmada.io", &["resourceinterpretercustomizations"], READ),
            rule("policy.karmada.io", &["federatedresourcequotas"], READ),
            // It counts what bindings use against quotas while it admits them.
            rule("policy.karmada.io", &["federatedresourcequotas/status"], &["get", "update", "patch"]),
        ])),
        _ => None,
    }
}

/// The roles that Karmada has for people, and who may reach members through it.
pub(super) fn people() -> Vec<ApiObject> {
    let proxy = "cluster-proxy-admin";
    let rules = json!([rule("cluster.karmada.io", &["clusters/proxy"], &["*"])]);
    // The administrator may do this already; people's tools look for the object, and it is where one adds others.
    let binding = cluster_binding(proxy, proxy, &json!({ "apiGroup": RBAC, "kind": "User", "name": ADMIN }), Stage::Rest);
    vec![
        cluster_role("karmada-view", &namespaced(READ), Stage::Rest).labelled("rbac.authorization.k8s.io/aggregate-to-view", "true"),
        cluster_role("karmada-edit", &namespaced(WRITE), Stage::Rest).labelled("rbac.authorization.k8s.io/aggregate-to-edit", "true"),
        cluster_role(proxy, &rules, Stage::Rest),
        binding.after(&[key("ClusterRole", proxy)]),
    ]
}

/// To look.
const READ: &[&str] = &["get", "list", "watch"];
/// To change.
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];

/// These verbs on all kinds of Karmada's that live in namespaces (`artifacts/deploy/admin-clusterrole-aggregation.yaml` of Karmada; those of
/// policies have no status there).
fn namespaced(verbs: &[&str]) -> Json {
    let with_status = |group: &str, resources: &[&str]| {
        let all: Vec<String> = resources.iter().flat_map(|r| [(*r).to_owned(), format!("{r}/status")]).collect();
        rule(group, &all.iter().map(String::as_str).collect::<Vec<_>>(), verbs)
    };
    json!([
        with_status("autoscaling.karmada.io", &["cronfederatedhpas", "federatedhpas"]),
        with_status("multicluster.x-k8s.io", &["serviceexports", "serviceimports"]),
        with_status("networking.karmada.io", &["multiclusteringresses", "multiclusterservices"]),
        rule("policy.karmada.io", &["overridepolicies", "propagationpolicies"], verbs),
        with_status("work.karmada.io", &["resourcebindings", "works"]),
    ])
}

/// One rule of a role.
pub(super) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Json {
    json!({ "apiGroups": [group], "resources": resources, "verbs": verbs })
}

/// A role for all namespaces.
pub(super) fn cluster_role(name: &str, rules: &Json, stage: Stage) -> ApiObject {
    object(&format!("{RBAC}/v1"), "ClusterRole", name, Labels::System, stage).with(&["rules"], rules)
}

/// A role for all namespaces given to somebody.
pub(super) fn cluster_binding(name: &str, role: &str, subject: &Json, stage: Stage) -> ApiObject {
    object(&format!("{RBAC}/v1"), "ClusterRoleBinding", name, Labels::System, stage)
        .with(&["roleRef"], &json!({ "apiGroup": RBAC, "kind": "ClusterRole", "name": role }))
        .with(&["subjects"], &json!([subject]))
}
