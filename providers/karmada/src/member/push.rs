//! Push mode: the accounts, rights and tokens that the control plane has in the member, and the Secrets in the Karmada API that hold them.
//!
//! The same that `karmadactl join` makes (`pkg/util/credential.go`), but named after the control plane, so that another one's stay its own.

use karmaform_model::{Arg, Child, ChildStep};
use serde_json::json;

use super::arguments::Arguments;
use super::children::{after, exposed, in_member, in_plane, joined_as, labels, with};
use crate::api::RBAC;
use crate::plane::{part, part_of};

/// The account that acts in the member.
const CONTROLLER: &str = "controller";
/// The account that acts there as users of the Karmada API.
const IMPERSONATOR: &str = "impersonator";
/// The ClusterRole that Karmada itself brings to each member: as whom the impersonator may act. Source: `karmadaImpersonatorName`,
/// `pkg/controllers/unifiedauth` in karmada.
const IMPERSONATORS: &str = "karmada-impersonator";

/// The accounts that are wanted.
fn accounts(member: &Arguments) -> Vec<&'static str> {
    if member.impersonation { vec![CONTROLLER, IMPERSONATOR] } else { vec![CONTROLLER] }
}

/// What an account and its token are called.
fn account_name(member: &Arguments, account: &str) -> Arg {
    member.account(if account == CONTROLLER { "" } else { account })
}

/// The Secret with an account's token in the Karmada API.
fn secret_name(member: &Arguments, account: &str) -> String {
    if account == CONTROLLER { member.name.clone() } else { impersonator_secret(member) }
}

/// The Secret with the token of the account that acts as others. Source: `names.GenerateImpersonationSecretName` in karmada.
pub(crate) fn impersonator_secret(member: &Arguments) -> String {
    format!("{}-impersonator", member.name)
}

/// The paths of the Secrets in the Karmada API.
pub(crate) fn secret_paths(member: &Arguments) -> Vec<Vec<ChildStep>> {
    accounts(member).iter().map(|account| part_of("secret", account)).collect()
}

/// The paths of what the control plane's rights in the member hang on.
pub(crate) fn rights_paths(member: &Arguments) -> Vec<Vec<ChildStep>> {
    accounts(member).iter().map(|account| part_of("role_binding", account)).collect()
}

/// Everything in the member.
pub(crate) fn children(member: &Arguments) -> Vec<Child> {
    let mut children = vec![namespace(member), role(member, part("role"), account_name(member, CONTROLLER))];
    for account in accounts(member) {
        let (path, name) = (part_of("account", account), account_name(member, account));
        children.push(service_account(member, path.clone(), name.clone()));
        children.push(rights(member, account));
        children.push(token(member, part_of("token", account), &name, path));
    }
    children
}

/// Shared with other control planes; the last one takes it away.
fn namespace(member: &Arguments) -> Child {
    let manifest = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": member.namespace, "labels": labels() } });
    let made = in_member(member, part("namespace"), Arg::from_json(&manifest));
    with(with(made, "shared", true.into()), "keep_if_used", true.into())
}

/// What the control plane, or its agent, may do there: what Karmada may unless it is said otherwise. Source: `ClusterPolicyRules`,
/// `pkg/util/credential.go` in karmada.
pub(crate) fn role(member: &Arguments, path: Vec<ChildStep>, name: Arg) -> Child {
    let all = || json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }, { "nonResourceURLs": ["*"], "verbs": ["get"] }]);
    let rules = match (member.rules.is_null(), member.rights.as_str()) {
        (false, _) => member.rules.clone().into(),
        (true, "workloads") => Arg::from_json(&workloads()),
        (true, _) => Arg::from_json(&all()),
    };
    role_of(member, path, name, rules)
}

/// What propagating workloads with their configuration takes, and counting what fits. Nothing here gives rights, defines kinds, or reaches
/// the cluster's own machinery.
fn workloads() -> serde_json::Value {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    let all = ["*"];
    json!([
        rule("", &["nodes", "pods"], &["get", "list", "watch"]),
        rule(
            "",
            &[
                "namespaces",
                "configmaps",
                "secrets",
                "services",
                "serviceaccounts",
                "persistentvolumeclaims",
                "replicationcontrollers",
                "resourcequotas",
                "limitranges",
            ],
            &all
        ),
        rule("apps", &["deployments", "statefulsets", "daemonsets", "replicasets"], &all),
        rule("batch", &["jobs", "cronjobs"], &all),
        rule("autoscaling", &["horizontalpodautoscalers"], &all),
        rule("networking.k8s.io", &["ingresses", "networkpolicies"], &all),
        rule("policy", &["poddisruptionbudgets"], &all),
        rule("discovery.k8s.io", &["endpointslices"], &all),
        // What Karmada brought here for users, as long as they were let in, must go when the member leaves.
        rule(RBAC, &["clusterroles", "clusterrolebindings"], &["get", "list", "watch"]),
        json!({ "apiGroups": [RBAC], "resources": ["clusterroles", "clusterrolebindings"], "resourceNames": [IMPERSONATORS], "verbs": ["delete"] }),
    ])
}

/// A role in the member with these rules.
pub(crate) fn role_of(member: &Arguments, path: Vec<ChildStep>, name: Arg, rules: Arg) -> Child {
    let mut manifest =
        Arg::from_json(&json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "labels": labels() } }));
    manifest.set(&["metadata", "name"], name);
    manifest.set(&["rules"], rules);
    in_member(member, path, manifest)
}

/// An account.
pub(crate) fn service_account(member: &Arguments, path: Vec<ChildStep>, name: Arg) -> Child {
    let mut manifest = Arg::from_json(
        &json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": member.namespace, "labels": labels() } }),
    );
    manifest.set(&["metadata", "name"], name);
    after(in_member(member, path, manifest), &[part("namespace")])
}

/// A role for an account; the binding is called like the account.
pub(crate) fn binding(member: &Arguments, path: Vec<ChildStep>, account: &Arg, role: Arg) -> Child {
    let mut manifest = Arg::from_json(&json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": { "labels": labels() },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole" },
        "subjects": [{ "kind": "ServiceAccount", "namespace": member.namespace }],
    }));
    manifest.set(&["metadata", "name"], account.clone());
    manifest.set(&["roleRef", "name"], role);
    manifest.set(&["subjects", "0", "name"], account.clone());
    in_member(member, path, manifest)
}

/// The rights of an account. Those of the impersonator are Karmada's to say, in a role that it brings itself; until then they are none.
fn rights(member: &Arguments, account: &str) -> Child {
    let (path, name) = (part_of("role_binding", account), account_name(member, account));
    if account == CONTROLLER {
        return after(binding(member, path, &name, name.clone()), &[part("role")]);
    }
    binding(member, path, &name, IMPERSONATORS.into())
}

/// The token of an account: the member's controller puts it into a Secret that is made for it. Since Kubernetes 1.24 nobody else makes one.
pub(crate) fn token(member: &Arguments, path: Vec<ChildStep>, account: &Arg, account_path: Vec<ChildStep>) -> Child {
    let mut manifest = Arg::from_json(&json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": { "namespace": member.namespace, "labels": labels() },
    }));
    // The server makes the same token again for a Secret of the same name: only another name gives another one.
    let name = match &member.rotation {
        Some(word) => Arg::Text(vec![account.clone(), format!("-{word}").into()]),
        None => account.clone(),
    };
    manifest.set(&["metadata", "name"], name);
    manifest.set(&["metadata", "annotations", "kubernetes.io/service-account.name"], account.clone());
    let mut made = in_member(member, path, manifest);
    made = with(made, "wait", Arg::object([("fields", Arg::object([("data.token", "*".into())]))]));
    made = with(made, "expose", Arg::object([("token", "/data/token".into()), ("ca", "/data/ca.crt".into())]));
    after(made, &[account_path])
}

/// The Secrets in the Karmada API. What an earlier try left there under the same name is taken over: only so its old token goes.
pub(crate) fn credentials(member: &Arguments) -> Vec<Child> {
    accounts(member).into_iter().map(|account| credential(member, account)).collect()
}

fn credential(member: &Arguments, account: &str) -> Child {
    let token = part_of("token", account);
    let mut manifest = Arg::from_json(&json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": secret_name(member, account), "namespace": member.namespace, "labels": labels() },
    }));
    manifest.set(&["data", "token"], exposed(&token, "token"));
    if account == CONTROLLER {
        let given = &member.ca_certificate;
        let ca = if given.is_null() { exposed(&token, "ca") } else { Arg::Base64(Box::new(given.clone().into())) };
        manifest.set(&["data", "caBundle"], ca);
    }
    let made = with(in_plane(member, part_of("secret", account), manifest), "force", true.into());
    // It goes with the Cluster object, which is replaced for the same.
    let made = with(made, "replace_with", joined_as(member));
    // With a token that can do nothing yet the control plane would call the member unreachable, and look again 10 s later.
    after(made, &[part("plane_namespace"), part_of("role_binding", account)])
}
