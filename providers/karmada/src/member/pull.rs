//! Pull mode: karmada-agent in the member, which fetches what is to be done; and what it may do in the Karmada API.
//!
//! The same rights that `karmadactl register` gives (`pkg/karmadactl/register/register.go`), for a user of its own. There is no bootstrap token
//! that would have to travel: whoever applies this may ask for the agent's certificate on both sides.

use karmaform_model::{Arg, Child, ChildStep};
use serde_json::{Value as Json, json};

use super::agent;
use super::arguments::Arguments;
use super::children::{after, in_plane, joined_as, labels, with};
use crate::api::{AGENTS, RBAC};
use crate::plane::{child, part, part_of};

/// The user of the agent. Source: `generateAgentUserName` there.
fn user(member: &Arguments) -> String {
    format!("system:karmada:agent:{}", member.name)
}

/// The namespace of what the agent is to do; its name is fixed in Karmada (`GenerateExecutionSpaceName`).
pub(crate) fn work_namespace(member: &Arguments) -> String {
    format!("karmada-es-{}", member.name)
}

/// The step whose end means that the agent runs.
pub(crate) fn runs() -> Vec<ChildStep> {
    part("agent")
}

/// What the agent needs in the Karmada API before the Cluster object is there.
pub(crate) fn rights(member: &Arguments) -> Vec<Child> {
    let mut children = vec![namespace(member)];
    for grant in ["agent", "agent-secret", "agent-work"] {
        let name = format!("system:karmada:{}:{grant}", member.name);
        let place = match grant {
            "agent-secret" => Some(member.namespace.clone()),
            "agent-work" => Some(work_namespace(member)),
            _ => None,
        };
        let first = match grant {
            "agent-secret" => vec![part("plane_namespace")],
            "agent-work" => vec![part("work_namespace")],
            _ => Vec::new(),
        };
        let prefix = if place.is_some() { "" } else { "Cluster" };
        let object = |kind: &str| {
            let mut manifest = json!({ "apiVersion": format!("{RBAC}/v1"), "kind": format!("{prefix}{kind}"), "metadata": { "name": name, "labels": labels() } });
            if let Some(namespace) = &place {
                manifest["metadata"]["namespace"] = namespace.as_str().into();
            }
            manifest
        };
        let mut role = object("Role");
        role["rules"] = rules(member, grant);
        let mut binding = object("RoleBinding");
        binding["roleRef"] = json!({ "apiGroup": RBAC, "kind": format!("{prefix}Role"), "name": name });
        binding["subjects"] = json!([{ "apiGroup": RBAC, "kind": "User", "name": user(member) }]);
        let role_path = part_of("plane_role", grant);
        let binding_path = part_of("plane_role_binding", grant);
        let [role, binding] = [(role_path.clone(), role), (binding_path, binding)].map(|(path, manifest)| {
            let made = after(in_plane(member, path, Arg::from_json(&manifest)), &first);
            // What is in the namespace of Works goes with the Cluster object.
            if grant == "agent-work" { with(made, "replace_with", joined_as(member)) } else { made }
        });
        children.extend([role, after(binding, &[role_path])]);
    }
    children
}

/// The paths of the agent's rights.
pub(crate) fn rights_paths() -> Vec<Vec<ChildStep>> {
    ["agent", "agent-secret", "agent-work"].map(|grant| part_of("plane_role_binding", grant)).to_vec()
}

/// Karmada's controllers make it as well, and take it away with the Cluster object.
fn namespace(member: &Arguments) -> Child {
    let manifest = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": work_namespace(member), "labels": { "karmada.io/system": "true" } } });
    let made = with(in_plane(member, part("work_namespace"), Arg::from_json(&manifest)), "force", true.into());
    // Not before the Cluster object: while another one of this name leaves, this namespace is on its way out.
    let made = after(made, &[part("cluster")]);
    with(made, "replace_with", joined_as(member))
}

fn rules(member: &Arguments, grant: &str) -> Json {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    let named = |group: &str, resources: &[&str], names: &[&str], verbs: &[&str]| json!({ "apiGroups": [group], "resources": resources, "resourceNames": names, "verbs": verbs });
    let name = member.name.as_str();
    match grant {
        "agent-secret" => {
            let impersonator = format!("{name}-impersonator");
            json!([named("", &["secrets"], &[name, &impersonator], &["get", "patch"]), rule("", &["secrets"], &["create"])])
        }
        "agent-work" => json!([
            rule("work.karmada.io", &["works"], &["get", "create", "list", "watch", "update", "delete"]),
            rule("work.karmada.io", &["works/status"], &["patch", "update"]),
        ]),
        _ => json!([
            named("cluster.karmada.io", &["clusters"], &[name], &["get", "delete"]),
            rule("cluster.karmada.io", &["clusters"], &["create", "list", "watch"]),
            named("cluster.karmada.io", &["clusters/status"], &[name], &["update"]),
            rule(
                "config.karmada.io",
                &["resourceinterpreterwebhookconfigurations", "resourceinterpretercustomizations"],
                &["get", "list", "watch"]
            ),
            rule("", &["namespaces"], &["get"]),
            rule("coordination.k8s.io", &["leases"], &["get", "create", "update"]),
            rule("certificates.k8s.io", &["certificatesigningrequests"], &["get", "create"]),
            rule("", &["services"], &["list", "watch"]),
            rule("", &["events"], &["patch", "create", "update"]),
        ]),
    }
}

/// The agent's key and certificate, its kubeconfig, its rights in the member, and itself.
pub(crate) fn agent(member: &Arguments) -> Vec<Child> {
    let Some(settings) = &member.agent else { return Vec::new() };
    let request = child(
        part("certificate_request"),
        "tls_certificate_request",
        [("common_name", user(member).into()), ("organizations", Arg::List(vec![AGENTS.into()]))],
    );
    let certificate = child(
        part("certificate"),
        "kubernetes_certificate",
        [
            ("cluster", member.plane.clone().into()),
            ("name", format!("karmada-agent-{}", member.name).into()),
            ("request", Arg::child(&part("certificate_request"), "request")),
            ("validity_hours", settings.validity_hours.clone().into()),
            ("renew_before_hours", settings.renew_before_hours.clone().into()),
        ],
    );
    let mut children = vec![request, certificate];
    children.extend(agent::children(member, settings));
    children
}

/// The files beside the kubeconfig: what is in them can be found again, whole, if the state is lost.
pub(crate) const CA: &str = "ca.crt";
pub(crate) const CERTIFICATE: &str = "tls.crt";
pub(crate) const KEY: &str = "tls.key";

/// The agent's certificate and key.
pub(crate) fn identity() -> [Arg; 2] {
    [Arg::child(&part("certificate"), "certificate"), Arg::child(&part("certificate_request"), "private_key")]
}

/// The kubeconfig of the agent, in this folder.
pub(crate) fn kubeconfig(member: &Arguments, server: &Arg, folder: &str) -> Arg {
    let user = &member.name;
    Arg::Text(vec![
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: karmada\nclusters:\n- name: karmada\n  cluster:\n    \
             certificate-authority: {folder}/{CA}\n    server: \""
        )
        .into(),
        server.clone(),
        format!(
            "\"\ncontexts:\n- name: karmada\n  context:\n    cluster: karmada\n    user: {user}\nusers:\n- name: {user}\n  user:\n    \
             client-certificate: {folder}/{CERTIFICATE}\n    client-key: {folder}/{KEY}\n"
        )
        .into(),
    ])
}

/// What changes with the certificate: the agent reads its kubeconfig when it starts.
pub(crate) fn certificate_mark() -> Arg {
    Arg::child(&part("certificate"), "not_after")
}
