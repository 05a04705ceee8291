//! Where something is that was made before: servers leave versions of a group out one day, and serve what there is in others.

use karmaform_model::Diagnostic;

use crate::builtin;
use crate::client::{Client, Place};
use crate::look::place;

/// As [`place`], for what is known of before alone: in the version that the server prefers where it serves the one of then no more.
pub(crate) async fn known_place(client: &Client, version: &str, kind: &str, namespace: &str) -> Result<Option<Place>, Diagnostic> {
    // Who wants it in a version that goes away one day knows that it is served; what was made once does not tell.
    if builtin::is_former(version) {
        client.doubt(version);
    }
    let found = place(client, version, kind, namespace).await?;
    match version.split_once('/').filter(|(_, version)| found.is_none() && !version.is_empty()) {
        Some((group, _)) => place(client, &format!("{group}/"), kind, namespace).await,
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use karmaform_model::{Ask, Object, implied_from_json};
    use serde_json::{Value as Json, json};

    use crate::mock;
    use crate::values::object;

    const AT: &str = "/apis/policy/v1/namespaces/n/poddisruptionbudgets/b";

    /// A server of 1.25 or later, with a budget that was made when it was older.
    async fn server() -> (crate::client::Client, mock::Seen) {
        let is_there = std::sync::atomic::AtomicBool::new(true);
        mock::client(move |method, path| match (method, path) {
            ("GET", "/apis/policy") => (200, json!({ "preferredVersion": { "groupVersion": "policy/v1" } })),
            ("DELETE", AT) => {
                is_there.store(false, std::sync::atomic::Ordering::Relaxed);
                (200, json!({}))
            }
            ("GET", AT) if is_there.load(std::sync::atomic::Ordering::Relaxed) => (200, manifest("policy/v1")),
            _ => mock::missing(),
        })
        .await
    }

    fn manifest(version: &str) -> Json {
        let metadata = json!({ "name": "b", "namespace": "n", "uid": "1" });
        json!({ "apiVersion": version, "kind": "PodDisruptionBudget", "metadata": metadata })
    }

    fn known() -> Object {
        object([
            ("object", "PodDisruptionBudget.policy/n/b".into()),
            ("uid", "1".into()),
            ("manifest", implied_from_json(&manifest("policy/v1beta1"))),
        ])
    }

    #[tokio::test]
    async fn what_was_made_in_a_version_that_is_gone_is_found_and_deleted() {
        let (client, seen) = server().await;
        let ask = |wanted: Option<Object>| Ask {
            resource_type: "kubernetes_object".to_owned(),
            identity: object([("object", "PodDisruptionBudget.policy/n/b".into())]),
            known: Some(known()),
            wanted,
            begun: false,
        };
        let found = crate::look::observe(&client, &[&ask(None)], None).await.remove(0).unwrap();
        assert_eq!(found.unwrap()["uid"], "1".into());
        // Who still wants it in that version would not get it.
        let wanted = crate::look::observe(&client, &[&ask(Some(known()))], None).await.remove(0).unwrap();
        assert_eq!(wanted, None);
        crate::act::delete(&client, &known()).await.unwrap();
        assert!(seen.lock().unwrap().iter().any(|asked| *asked == format!("DELETE {AT}")), "{seen:?}");
    }

    #[tokio::test]
    async fn what_is_in_no_version_any_more_is_gone() {
        let (client, seen) = mock::client(|_, _| mock::missing()).await;
        crate::act::delete(&client, &known()).await.unwrap();
        assert!(!seen.lock().unwrap().iter().any(|asked| asked.starts_with("DELETE")), "{seen:?}");
    }
}
