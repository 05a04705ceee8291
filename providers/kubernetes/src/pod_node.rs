//! Whether a pod that is deleted can start again: not while its node is cordoned and its volume is there.

use karmaform_model::Diagnostic;
use serde_json::Value as Json;

use crate::client::Client;
use crate::look::place;
use crate::pods::is_leaving;

/// The label by which volumes are bound to one node.
const HOST: &str = "kubernetes.io/hostname";
/// The taint of a cordoned node.
const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// The refusal to delete a pod whose successor would have no node; none as well where that can't be seen.
pub(crate) async fn nowhere_to_start(client: &Client, pod: &Json) -> Option<Diagnostic> {
    let text = |json: &Json| json.as_str().map(str::to_owned);
    let (name, node) = (text(&pod["metadata"]["name"])?, text(&pod["spec"]["nodeName"])?);
    let namespace = text(&pod["metadata"]["namespace"])?;
    let is_cordoned = get(client, "Node", "", &node).await?["spec"]["unschedulable"] == true;
    if !is_cordoned || tolerates(pod) {
        return None;
    }
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    for claim in volumes.filter_map(|v| v["persistentVolumeClaim"]["claimName"].as_str()) {
        let claim = get(client, "PersistentVolumeClaim", &namespace, claim).await?;
        // It goes with the pod, and the next one gets another.
        if is_leaving(&claim) {
            continue;
        }
        let volume = get(client, "PersistentVolume", "", claim["spec"]["volumeName"].as_str()?).await?;
        if is_of_one_node(&volume) {
            let detail = format!(
                "Pod {name} is on the node {node} with its volume, and that is cordoned: it takes no pods now. It was not \
                 restarted."
            );
            let error = Diagnostic::error("Pod would have no node", detail);
            return Some(error.with_hint(format!("Let the node take pods again (`kubectl uncordon {node}`), then apply again.")));
        }
    }
    None
}

async fn get(client: &Client, kind: &str, namespace: &str, name: &str) -> Option<Json> {
    let place = place(client, "v1", kind, namespace).await.ok()??;
    client.get(&place, name).await.ok()?
}

/// True for a pod that cordoned nodes take.
fn tolerates(pod: &Json) -> bool {
    let mut all = pod["spec"]["tolerations"].as_array().into_iter().flatten();
    let is_any = |text: &Json| text.as_str().is_none_or(str::is_empty);
    let is_for_it = |t: &Json| t["key"] == CORDONED || t["operator"] == "Exists" && is_any(&t["key"]);
    all.any(|t| is_for_it(t) && (is_any(&t["effect"]) || t["effect"] == "NoSchedule"))
}

/// One of the terms has to hold, and in it all expressions.
fn is_of_one_node(volume: &Json) -> bool {
    let terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].as_array();
    let Some([term]) = terms.map(Vec::as_slice) else { return false };
    let names_one = |e: &Json| e["operator"] == "In" && e["values"].as_array().is_some_and(|names| names.len() == 1);
    term["matchExpressions"].as_array().into_iter().flatten().any(|e| e["key"] == HOST && names_one(e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What is told of a pod on this node, with a volume bound by this label.
    async fn told(is_cordoned: bool, label: &'static str, tolerations: Json) -> Option<Diagnostic> {
        let pod = json!({ "metadata": { "name": "etcd-0", "namespace": "n" }, "spec": { "nodeName": "n1", "tolerations": tolerations,
            "volumes": [{ "name": "pki", "secret": {} }, { "name": "data", "persistentVolumeClaim": { "claimName": "data-etcd-0" } }] } });
        let (client, _) = crate::mock::client(move |_, path| match path {
            "/api/v1/nodes/n1" => (200, json!({ "spec": { "unschedulable": is_cordoned } })),
            "/api/v1/namespaces/n/persistentvolumeclaims/data-etcd-0" => (200, json!({ "spec": { "volumeName": "v" } })),
            "/api/v1/persistentvolumes/v" => {
                let terms = json!([{ "matchExpressions": [{ "key": label, "operator": "In", "values": ["n1"] }] }]);
                (200, json!({ "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": terms } } } }))
            }
            _ => crate::mock::missing(),
        })
        .await;
        nowhere_to_start(&client, &pod).await
    }

    #[tokio::test]
    async fn a_pod_stays_whose_node_is_cordoned_with_its_volume_on_it() {
        let why = told(true, HOST, Json::Null).await.unwrap();
        assert_eq!(why.summary, "Pod would have no node");
        assert!(why.detail.contains("etcd-0 is on the node n1") && why.hints[0].contains("kubectl uncordon n1"), "{why:?}");
        assert!(told(false, HOST, Json::Null).await.is_none());
        assert!(told(true, "topology.kubernetes.io/zone", Json::Null).await.is_none(), "another node of the zone will do");
        for toleration in [json!({ "operator": "Exists" }), json!({ "key": CORDONED, "operator": "Exists", "effect": "NoSchedule" })] {
            assert!(told(true, HOST, json!([toleration])).await.is_none());
        }
        for toleration in [json!({ "key": "other", "operator": "Exists" }), json!({ "operator": "Exists", "effect": "NoExecute" })] {
            assert!(told(true, HOST, json!([toleration])).await.is_some());
        }
    }

    #[tokio::test]
    async fn a_pod_whose_claim_goes_with_it_gets_another_volume() {
        let pod = json!({ "metadata": { "name": "etcd-0", "namespace": "n" }, "spec": { "nodeName": "n1",
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "c" } }] } });
        for is_deleted in [true, false] {
            let mut claim = json!({ "metadata": { "name": "c" }, "spec": { "volumeName": "v" } });
            if is_deleted {
                claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }
            let (client, _) = crate::mock::client(move |_, path| match path {
                "/api/v1/nodes/n1" => (200, json!({ "spec": { "unschedulable": true } })),
                "/api/v1/namespaces/n/persistentvolumeclaims/c" => (200, claim.clone()),
                "/api/v1/persistentvolumes/v" => (200, volume(&["n1"])),
                _ => crate::mock::missing(),
            })
            .await;
            assert_eq!(nowhere_to_start(&client, &pod).await.is_none(), is_deleted);
        }
    }

    /// A volume that these nodes have.
    fn volume(nodes: &[&str]) -> Json {
        let terms = json!([{ "matchExpressions": [{ "key": HOST, "operator": "In", "values": nodes }] }]);
        json!({ "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": terms } } } })
    }

    #[test]
    fn a_volume_of_several_nodes_is_of_none_of_them() {
        assert!(is_of_one_node(&volume(&["n1"])) && !is_of_one_node(&volume(&["n1", "n2"])));
        let mut either = volume(&["n1"]);
        let other = volume(&["n2"])["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0].clone();
        either["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].as_array_mut().unwrap().push(other);
        assert!(!is_of_one_node(&either) && !is_of_one_node(&json!({})));
    }

    #[tokio::test]
    async fn who_may_not_see_nodes_restarts_all_the_same() {
        let pod = json!({ "metadata": { "name": "etcd-0", "namespace": "n" }, "spec": { "nodeName": "n1" } });
        let (client, _) = crate::mock::client(|_, _| crate::mock::refused(403, "nodes is forbidden")).await;
        assert!(nowhere_to_start(&client, &pod).await.is_none());
    }
}
