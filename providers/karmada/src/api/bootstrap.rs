//! What members need that register themselves (pull mode, `karmadactl register`): where the Karmada API is and whom to trust, and the rights to
//! ask for certificates.
//!
//! Names and rules are Karmada's (`artifacts/deploy/bootstrap-token-configuration.yaml`), as both its command line and its controllers expect
//! them. Tokens are not here: they are made when a member is to register, and end soon. Whoever has one gets, without being asked again, a
//! certificate for the user that may do everything below; that is Karmada's design.

use karmaform_model::Arg;
use serde_json::{Value as Json, json};

use super::roles::{cluster_binding, cluster_role, rule};
use super::{ApiObject, Labels, Place, RBAC, Stage, key, object};

/// The namespace everybody may read; the API server makes it.
const PUBLIC: &str = "kube-public";
/// The group of those who have a token.
const TOKENS: &str = "system:bootstrappers:karmada:default-cluster-token";
/// The group of agents. Source: `ClusterPermissionGroups`, `pkg/karmadactl/register` in karmada.
pub(crate) const AGENTS: &str = "system:karmada:agents";
/// Who makes the rights of a new agent.
const GENERATOR: &str = "system:karmada:agent:rbac-generator";

/// All of it.
pub(super) fn objects(place: &Place<'_>) -> Vec<ApiObject> {
    let mut objects = vec![cluster_info(place)];
    objects.extend(anonymous_reader());
    let group = |name: &str| subject("Group", name);
    // Kubernetes has this role: to ask for a certificate.
    objects.push(bound("system:karmada:agent-bootstrap", "system:node-bootstrapper", &group(TOKENS)));
    for (role, resource, binding, who) in [
        ("system:karmada:certificatesigningrequest:autoapprover", "clusteragent", "system:karmada:agent-autoapprove-bootstrap", TOKENS),
        (
            "system:karmada:certificatesigningrequest:selfautoapprover",
            "selfclusteragent",
            "system:karmada:agent-autoapprove-certificate-rotation",
            AGENTS,
        ),
    ] {
        let requests = format!("certificatesigningrequests/{resource}");
        objects.push(cluster_role(role, &json!([rule("certificates.k8s.io", &[&requests], &["create"])]), Stage::Rest));
        objects.push(bound(binding, role, &group(who)).after(&[key("ClusterRole", role)]));
    }
    let generator = "system:karmada:agent-rbac-generator";
    objects.push(cluster_role(generator, &json!([rule("*", &["*"], &["*"])]), Stage::Rest));
    objects.push(bound(generator, generator, &subject("User", GENERATOR)).after(&[key("ClusterRole", generator)]));
    objects
}

/// A role for all namespaces given to somebody, in its stage.
fn bound(name: &str, role: &str, who: &Json) -> ApiObject {
    cluster_binding(name, role, who, Stage::Rest)
}

/// Somebody.
fn subject(kind: &str, name: &str) -> Json {
    json!({ "apiGroup": RBAC, "kind": kind, "name": name })
}

/// Where the Karmada API is, for those who can't know it yet. Kubernetes' signer adds a signature by each token (`jws-kubeconfig-...`), which
/// is its own.
fn cluster_info(place: &Place<'_>) -> ApiObject {
    let kubeconfig = Arg::Text(vec![
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: ".into(),
        Arg::Base64(Box::new(place.ca.clone())),
        // In quotes, whatever brackets an address has.
        "\n    server: \"".into(),
        place.server.clone(),
        "\"\n  name: \"\"\nkind: Config\n".into(),
    ]);
    object("v1", "ConfigMap", "cluster-info", Labels::Plain, Stage::Rest).within(PUBLIC).with_arg(&["data", "kubeconfig"], kubeconfig)
}

/// Those who have nothing yet may read it: who they talk to is proved by the signature and the pin of the CA.
fn anonymous_reader() -> [ApiObject; 2] {
    let name = "system:karmada:bootstrap-signer-clusterinfo";
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"], "verbs": ["get"] }]);
    let api = format!("{RBAC}/v1");
    [
        object(&api, "Role", name, Labels::System, Stage::Rest).within(PUBLIC).with(&["rules"], &rules),
        object(&api, "RoleBinding", name, Labels::System, Stage::Rest)
            .within(PUBLIC)
            .with(&["roleRef"], &json!({ "apiGroup": RBAC, "kind": "Role", "name": name }))
            .with(&["subjects"], &json!([subject("User", "system:anonymous")]))
            .after(&[key("Role", name)]),
    ]
}
