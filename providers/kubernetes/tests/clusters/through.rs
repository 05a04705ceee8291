//! An API server behind a Service of another cluster. Here it is the cluster's own, behind a pod that relays to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use karmaform_model::{AnyClient, BoxFuture, Change, Connections, Diagnostic, Driver, GateAnswer, Object, Value};
use serde_json::json;

use crate::cluster::{config, decoded};
use crate::forward::{client, pod, service, with_node};
use crate::lab::{KIND, Lab, object, say};

/// To the relay, whoever is asked for: the certificate is for `kubernetes.default.svc`, but behind that Service are no pods.
struct Relay {
    driver: Arc<dyn Driver>,
    host: AnyClient,
    service: String,
}

impl Connections for Relay {
    fn forward<'a>(&'a self, via: &'a Object, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        assert_eq!((via["id"].as_str(), host, port), (Some("host"), "kubernetes.default.svc", 443));
        self.driver.forward(&self.host, &self.service, 80)
    }
}

fn gate(lab: &Lab, plane: &AnyClient) -> GateAnswer {
    lab.runtime.block_on(lab.driver.check(plane, "kubernetes_ready", &object([("path", "/readyz".into())]))).unwrap()
}

#[test]
fn a_server_behind_a_service_is_found_when_it_is_there() {
    let Some(lab) = with_node("through") else { return };
    let pem = |path: &str| Value::from(decoded(&config(&lab, path)));
    let connection = |host: &str| {
        object([
            ("provider", "kubernetes".into()),
            ("id", "plane".into()),
            ("address", host.into()),
            ("ca_certificate", pem(".clusters[0].cluster.certificate-authority-data")),
            ("client_certificate", pem(".users[0].user.client-certificate-data")),
            ("client_key", pem(".users[0].user.client-key-data")),
            ("via", Value::object([("provider", "kubernetes".into()), ("id", "host".into())])),
        ])
    };
    let relay = || Arc::new(Relay { driver: Arc::clone(&lab.driver), host: client(&lab), service: format!("relay.{}.svc", lab.namespace) });
    let plane = lab.runtime.block_on(lab.driver.connect(&Object::new(), &connection("https://kubernetes.default.svc"), relay())).unwrap();
    let wanted = lab.wanted(&lab.map("a", json!({ "k": "1" })));
    let state = object([("object", wanted["object"].clone()), ("manifest", wanted["manifest"].clone()), ("uid", "remembered".into())]);
    let look = || {
        let asks = [lab.ask(Some(&state), Some(&wanted)), lab.ask(None, Some(&wanted))];
        lab.runtime.block_on(lab.driver.rehearse(&plane, &asks))
    };
    let apply = || lab.runtime.block_on(lab.driver.apply(&plane, KIND, &Change::Create { after: wanted.clone() }));
    let absent = |part: &str| {
        assert_eq!(look(), [Ok(Some(state.clone())), Ok(None)]);
        let error = apply().unwrap_err();
        assert!(error.retryable, "{error:?}");
        let GateAnswer::Waiting(reason) = gate(&lab, &plane) else { panic!("passed") };
        assert!(reason.contains(part), "{reason}");
    };
    absent("There is no Service \"relay\"");
    lab.kubectl_with(&["create", "-f", "-"], &service(&lab, "relay"));
    absent("no pod behind the Service \"relay\"");
    // it is ready, and nothing listens in it
    lab.kubectl_with(&["create", "-f", "-"], &pod(&lab, "relay", "relay", "sleep 1000", &json!(null)));
    lab.kubectl(&["-n", &lab.namespace, "wait", "pod/relay", "--for=condition=Ready", "--timeout=60s"]);
    // a ready pod is a moment later in the Endpoints
    let begin = Instant::now();
    while matches!(gate(&lab, &plane), GateAnswer::Waiting(reason) if reason.contains("behind the Service")) {
        assert!(begin.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(50));
    }
    absent("could not be reached");
    let line = "exec nc -ll -p 8080 -e nc $KUBERNETES_SERVICE_HOST 443";
    let serve = || {
        lab.kubectl(&["-n", &lab.namespace, "delete", "pod", "relay", "--ignore-not-found"]);
        lab.kubectl_with(&["create", "-f", "-"], &pod(&lab, "relay", "relay", line, &json!(null)));
        let begin = Instant::now();
        while let GateAnswer::Waiting(reason) = gate(&lab, &plane) {
            assert!(begin.elapsed() < Duration::from_secs(60), "{reason}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    serve();
    let begin = Instant::now();
    assert_eq!(look(), [Ok(None), Ok(None)], "it says itself that it is not there");
    say(&format!("through: looked in {:?}", begin.elapsed()));
    let made = apply().unwrap().unwrap();
    assert_eq!(lab.kubectl(&["-n", &lab.namespace, "get", "cm", "a", "-o", "jsonpath={.metadata.uid}"]), made["uid"].as_str().unwrap());
    assert_eq!(look()[0].as_ref().unwrap().as_ref().unwrap()["uid"], made["uid"]);
    lab.kubectl(&["-n", &lab.namespace, "delete", "pod", "relay"]);
    let begin = Instant::now();
    // what runs in it ends a moment after the pod
    while matches!(gate(&lab, &plane), GateAnswer::Passed(_)) {
        assert!(begin.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(50));
    }
    let begin = Instant::now();
    absent("behind the Service");
    say(&format!("through: that it is not there is seen in {:?}", begin.elapsed()));
    serve();
    assert_eq!(look()[0].as_ref().unwrap().as_ref().unwrap()["uid"], made["uid"]);
}
