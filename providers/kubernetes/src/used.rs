//! Whether a Namespace has anything in it but what every Namespace has.

use futures::future::try_join_all;
use karmaform_model::Diagnostic;
use serde_json::Value as Json;

use crate::client::Client;

/// What people and programs keep in Namespaces: the kinds that a shared one is told by.
const KINDS: [(&str, &str); 9] = [
    ("v1", "ServiceAccount"),
    ("v1", "Service"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("v1", "Pod"),
    ("v1", "PersistentVolumeClaim"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
];

/// True if something of others is in it. Asks once per kind.
pub(crate) async fn is_used(client: &Client, namespace: &str) -> Result<bool, Diagnostic> {
    let lists = KINDS.iter().map(|(version, kind)| list(client, version, kind, namespace));
    let lists = try_join_all(lists).await?;
    let accounts: Vec<String> = lists[0].iter().map(|a| name(a).to_owned()).collect();
    Ok(KINDS.iter().zip(&lists).any(|((_, kind), items)| items.iter().any(|item| counts(kind, item, &accounts))))
}

async fn list(client: &Client, version: &str, kind: &str, namespace: &str) -> Result<Vec<Json>, Diagnostic> {
    let Some(place) = crate::look::place(client, version, kind, namespace).await? else { return Ok(Vec::new()) };
    client.select(&place, "", "").await.map_err(|f| f.diagnostic(client.place(), &place.call("list", ""), &[]))
}

fn name(item: &Json) -> &str {
    item["metadata"]["name"].as_str().unwrap_or_default()
}

/// Accounts that controllers put into every Namespace: Kubernetes', and OpenShift's for builds.
const USUAL_ACCOUNTS: [&str; 3] = ["default", "builder", "deployer"];
/// How bundles of CAs end that controllers put into every Namespace: `kube-root-ca.crt`, `openshift-service-ca.crt`, `istio-ca-root-cert`.
const USUAL_BUNDLES: [&str; 2] = ["ca.crt", "ca-root-cert"];

/// False for what controllers put into every Namespace, what is on its way out, and what is of accounts that are gone: the server takes that
/// away a moment later.
fn counts(kind: &str, item: &Json, accounts: &[String]) -> bool {
    let metadata = &item["metadata"];
    let is_leaving = metadata["deletionTimestamp"].is_string();
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let owner = owners.filter(|o| o["kind"] == "ServiceAccount").find_map(|o| o["name"].as_str());
    let account = metadata["annotations"]["kubernetes.io/service-account.name"].as_str().or(owner);
    let is_usual = match kind {
        "ServiceAccount" => USUAL_ACCOUNTS.contains(&name(item)),
        "ConfigMap" => USUAL_BUNDLES.iter().any(|end| name(item).ends_with(end)),
        "Secret" => account.is_some_and(|a| USUAL_ACCOUNTS.contains(&a) || !accounts.iter().any(|other| other == a)),
        _ => false,
    };
    !is_leaving && !is_usual
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_in_every_namespace_does_not_count() {
        let token = |of: &str| json!({ "metadata": { "name": "t", "annotations": { "kubernetes.io/service-account.name": of } }, "type": "kubernetes.io/service-account-token" });
        let named = |name: &str| json!({ "metadata": { "name": name } });
        let accounts = ["default".to_owned(), "other".to_owned()];
        assert!(!counts("ServiceAccount", &named("default"), &accounts));
        assert!(counts("ServiceAccount", &named("other"), &accounts));
        for bundle in ["kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"] {
            assert!(!counts("ConfigMap", &named(bundle), &accounts));
        }
        assert!(counts("ConfigMap", &named("settings"), &accounts));
        assert!(!counts("Secret", &token("default"), &accounts));
        assert!(!counts("Secret", &token("gone"), &accounts));
        assert!(counts("Secret", &token("other"), &accounts));
        assert!(counts("Secret", &named("mine"), &accounts));
        let leaving = json!({ "metadata": { "name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        assert!(!counts("Pod", &leaving, &accounts));
    }
}
