//! Changes to what is on its way out.

use std::sync::atomic::{AtomicUsize, Ordering};

use karmaform_model::{Object, implied_from_json};
use serde_json::{Value as Json, json};

use super::apply;
use crate::mock;
use crate::values::object;

const AT: &str = "/api/v1/namespaces/n/configmaps/a";

fn manifest(data: &str) -> Json {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "n" }, "data": { "k": data } })
}

fn wanted(data: &str, timeout: i64) -> Object {
    object([
        ("object", "ConfigMap/n/a".into()),
        ("uid", "1".into()),
        ("manifest", implied_from_json(&manifest(data))),
        ("timeout", timeout.into()),
    ])
}

/// One of a uid, on its way out or not.
fn live(uid: &str, is_going: bool) -> Json {
    let mut live = manifest("old");
    live["metadata"]["uid"] = uid.into();
    if is_going {
        live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        live["metadata"]["finalizers"] = json!(["a.example/b"]);
    }
    live
}

/// A server whose object goes once it was looked at so often.
async fn server(looks: usize) -> (crate::client::Client, mock::Seen) {
    let seen = AtomicUsize::new(0);
    mock::client(move |method, path| match (method, path) {
        ("GET", AT) if seen.fetch_add(1, Ordering::SeqCst) < looks => (200, live("1", true)),
        ("PATCH", AT) => (200, live("2", false)),
        _ => mock::missing(),
    })
    .await
}

#[tokio::test]
async fn what_is_on_its_way_out_is_made_anew_once_it_is_gone() {
    let (client, seen) = server(2).await;
    let made = apply(&client, Some(&wanted("old", 60)), &wanted("new", 60)).await.unwrap();
    assert_eq!(made["uid"], "2".into());
    let get = format!("GET {AT}");
    assert_eq!(*seen.lock().unwrap(), [get.clone(), get.clone(), get, format!("PATCH {AT}")]);
}

#[tokio::test]
async fn what_does_not_go_is_not_changed_any_more() {
    let (client, seen) = server(usize::MAX).await;
    let error = apply(&client, Some(&wanted("old", 0)), &wanted("new", 0)).await.unwrap_err();
    assert_eq!(error.summary, "Deletion does not finish");
    assert!(error.detail.contains("\"a.example/b\""), "{}", error.detail);
    assert!(!seen.lock().unwrap().iter().any(|asked| asked.starts_with("PATCH")), "{seen:?}");
}
