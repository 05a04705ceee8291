use super::lists::EXPIRED;
use super::*;
use crate::values::object;
use karmaform_model::{BoxFuture, Object};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[derive(Clone, Copy, Default)]
struct NoConnections {
    only_looks: bool,
}

impl Connections for NoConnections {
    fn forward<'a>(&'a self, _: &'a Object, _: &'a str, _: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async { Err(Diagnostic::error("None", "None.")) })
    }

    fn only_looks(&self) -> bool {
        self.only_looks
    }
}

type Seen = Arc<Mutex<Vec<String>>>;

/// A server that has nothing but the group `apps/v1`, and what was asked of it.
async fn server() -> (Client, Seen) {
    server_for(NoConnections::default()).await
}

async fn server_for(connections: NoConnections) -> (Client, Seen) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Seen::default();
    let list = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let list = Arc::clone(&list);
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                    let head = String::from_utf8_lossy(&buffer[..read]).into_owned();
                    let mut words = head.split_whitespace();
                    let (method, path) = (words.next().unwrap(), words.next().unwrap().split('?').next().unwrap().to_owned());
                    list.lock().unwrap().push(format!("{method} {path}"));
                    let (status, body) = match path.as_str() {
                        "/apis/apps/v1/namespaces/ns/deployments/a" => (
                            404,
                            json!({ "kind": "Status", "code": 404, "message": "deployments \"a\" not found", "details": { "name": "a" } })
                                .to_string(),
                        ),
                        "/apis/example.com/v1" => {
                            (200, json!({ "resources": [{ "name": "things", "kind": "Thing", "namespaced": true }] }).to_string())
                        }
                        _ => (404, "404 page not found".to_owned()),
                    };
                    let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    let options = Options::new(&object([("address", format!("http://{address}").as_str().into())])).ok().unwrap();
    (Client(Arc::new(Inner::open(options, Arc::new(connections)).await.ok().unwrap()), Needed::Yes), seen)
}

fn place(api_version: &str, served: Served) -> Place {
    Place { api_version: api_version.to_owned(), served, namespace: Some("ns".to_owned()) }
}

#[test]
fn who_only_looks_sends_nothing_but_reads() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, seen) = server_for(NoConnections { only_looks: true }).await;
        let deployment = client.kind("apps/v1", "Deployment").await.unwrap().unwrap();
        let place = place("apps/v1", deployment);
        assert_eq!(client.get(&place, "a").await.unwrap(), None);
        for dry_run in [true, false] {
            let how = How { force: false, dry_run };
            let why = client.apply(&place, "a", &json!({}), how).await.unwrap_err().diagnostic("", &crate::failure::Call::none(), &[]);
            assert_eq!(why.summary, "A run that only looks was to change something");
            assert!(why.detail.starts_with("A PATCH was about to be sent to http://127.0.0.1:"), "{}", why.detail);
        }
        assert!(client.delete(&place, "a", None, kube::api::PropagationPolicy::Background).await.is_err());
        assert!(client.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &json!({})).await.is_err());
        assert_eq!(*seen.lock().unwrap(), ["GET /apis/apps/v1/namespaces/ns/deployments/a"]);
    });
}

#[test]
fn servers_are_asked_only_about_what_is_not_their_own() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, seen) = server().await;
        let asked = || std::mem::take(&mut *seen.lock().unwrap());
        let deployment = client.kind("apps/v1", "Deployment").await.unwrap().unwrap();
        assert_eq!(client.get(&place("apps/v1", deployment.clone()), "a").await.unwrap(), None);
        assert_eq!(client.kind("apps/v1", "Deployment").await.unwrap(), Some(deployment));
        assert_eq!(asked(), ["GET /apis/apps/v1/namespaces/ns/deployments/a"], "an object that is not there says nothing of its kind");
        assert!(client.kind("example.com/v1", "Thing").await.unwrap().is_some());
        assert_eq!(asked(), ["GET /apis/example.com/v1"]);
        // a kind that this server is too old for
        let budget = client.kind("policy/v1", "PodDisruptionBudget").await.unwrap().unwrap();
        let budget = place("policy/v1", budget);
        let how = How { force: false, dry_run: false };
        let failure = client.apply(&budget, "a", &json!({}), how).await.unwrap_err();
        let told = failure.diagnostic(client.place(), &budget.call("patch", "a"), &[]);
        assert_eq!(told.summary, "Kind is not known to the cluster");
        assert!(told.retryable && told.detail.contains("serves no PodDisruptionBudget of policy/v1"), "{told:?}");
        assert!(client.list(&budget).await.unwrap_err().is_unserved());
        asked();
        assert_eq!(client.kind("policy/v1", "PodDisruptionBudget").await.unwrap(), None);
        assert_eq!(asked(), ["GET /apis/policy/v1"]);
    });
}

/// The names in a list whose rest is gone so many times, and what was asked.
async fn listed(gone: usize) -> (Result<Vec<String>, Failure>, Seen) {
    fn item(name: &str) -> Json {
        json!({ "metadata": { "name": name } })
    }
    let turn = std::sync::atomic::AtomicUsize::new(0);
    let (client, seen) = crate::mock::client(move |_, _| match turn.fetch_add(1, Ordering::Relaxed) {
        n if n < 2 * gone && n % 2 == 0 => (200, json!({ "metadata": { "continue": "c" }, "items": [item("of before")] })),
        n if n < 2 * gone => crate::mock::refused(EXPIRED, "The provided continue parameter is too old"),
        _ => (200, json!({ "items": [item("a"), item("b")] })),
    })
    .await;
    let deployments = place("apps/v1", client.kind("apps/v1", "Deployment").await.unwrap().unwrap());
    let found = client.list(&deployments).await;
    (found.map(|items| items.iter().filter_map(|i| i["metadata"]["name"].as_str().map(str::to_owned)).collect()), seen)
}

#[tokio::test]
async fn a_list_whose_rest_is_gone_is_begun_anew() {
    let (found, seen) = listed(1).await;
    assert_eq!(found.unwrap(), ["a", "b"], "nothing of before is among it");
    assert_eq!(seen.lock().unwrap().len(), 3);
    // But not for ever.
    let (found, _) = listed(100).await;
    assert_eq!(found.unwrap_err().code(), Some(EXPIRED));
}

#[test]
fn what_has_no_usable_name_or_went_away_is_said() {
    use karmaform_model::{Ask, Value, implied_from_json};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, _) = server().await;
        let ask = |kind: &str, identity: Object| Ask { resource_type: kind.to_owned(), identity, known: None, wanted: None, begun: false };
        let nameless = ask("kubernetes_object", object([("object", "no name".into())]));
        let answer = crate::look::observe(&client, &[&nameless], None).await.remove(0);
        assert_eq!(answer.unwrap_err().summary, "Unreadable name of an object");
        let nameless = ask("kubernetes_pod", object([("namespace", "ns".into())]));
        let answer = crate::pod_look::observe(&client, &[&nameless]).await.remove(0);
        assert_eq!(answer.unwrap_err().summary, "Unreadable name of a pod");
        let unfinished = object([("namespace", "ns".into()), ("name", "p".into())]);
        assert_eq!(crate::pod_act::up(&client, &unfinished, None).await.unwrap_err().summary, "Pod is not named");
        // It was to be used as it is, and somebody has taken it away since.
        let manifest = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a", "namespace": "ns" } });
        let adopted = object([("manifest", implied_from_json(&manifest)), ("adopted", Value::from(true))]);
        let why = crate::act::apply(&client, None, &adopted).await.unwrap_err();
        assert_eq!(why.summary, "Object is gone");
        assert_eq!(why.detail, "Deployment.apps/ns/a was there when the plan was made, and is not any more.");
    });
}

#[test]
fn a_key_that_is_not_the_certificates_is_told_before_anybody_is_asked() {
    let own = || rcgen::generate_simple_self_signed(["client".to_owned()]).unwrap();
    let (one, other) = (own(), own());
    let (certificate, key) = (one.cert.pem(), other.signing_key.serialize_pem());
    let connection = object([
        ("address", "https://127.0.0.1:1".into()),
        ("client_certificate", certificate.as_str().into()),
        ("client_key", key.as_str().into()),
    ]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let opened = runtime.block_on(Inner::open(Options::new(&connection).ok().unwrap(), Arc::new(NoConnections::default())));
    let why = opened.map(drop).unwrap_err();
    assert_eq!(why.summary, "Unusable certificates");
    assert!(why.detail.contains("don't belong together") && why.hints[0].contains("client_key"), "{why:?}");
}
