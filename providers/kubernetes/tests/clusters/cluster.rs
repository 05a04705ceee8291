//! Ways to a cluster, and what it says when there is none.

use std::time::{Duration, Instant};

use karmaform_model::{Action, Value};
use serde_json::json;

use crate::lab::{Lab, lab, object, say};

/// A part of the kubeconfig.
pub(crate) fn config(lab: &Lab, path: &str) -> String {
    lab.kubectl(&["config", "view", "--raw", "--minify", "-o", &format!("jsonpath={{{path}}}")])
}

/// From base64.
pub(crate) fn decoded(text: &str) -> String {
    use std::io::Write;
    let mut child = std::process::Command::new("base64")
        .arg("-d")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn the_same_cluster_by_several_ways() {
    let Some(lab) = lab("ways") else { return };
    let file = lab.read(&object([("kubeconfig_file", lab.kubeconfig.as_str().into())])).unwrap();
    let id = file["connection"].get("id").and_then(Value::as_str).unwrap().to_owned();
    assert_eq!(id, lab.kubectl(&["get", "ns", "kube-system", "-o", "jsonpath={.metadata.uid}"]));
    assert_eq!(file["version"].as_str(), std::env::var("KARMAFORM_TEST_KUBE_VERSION").ok().as_deref());
    let content = std::fs::read_to_string(&lab.kubeconfig).unwrap();
    let content = lab.read(&object([("kubeconfig", content.as_str().into())])).unwrap();
    assert_eq!(content["connection"].get("id").and_then(Value::as_str), Some(id.as_str()));
    assert!(content["connection"].get("kubeconfig").unwrap().secret);
    let pem = |path: &str| Value::from(decoded(&config(&lab, path)));
    let address = object([
        ("address", config(&lab, ".clusters[0].cluster.server").as_str().into()),
        ("ca_certificate", pem(".clusters[0].cluster.certificate-authority-data")),
        ("client_certificate", pem(".users[0].user.client-certificate-data")),
        ("client_key", pem(".users[0].user.client-key-data")),
    ]);
    let by_address = lab.read(&address).unwrap();
    assert_eq!(by_address["connection"].get("id").and_then(Value::as_str), Some(id.as_str()));
    assert_eq!(by_address["connection"].get("version"), file.get("version"));
    // a connection value opens it again
    lab.read(by_address["connection"].as_entries().unwrap()).unwrap();
}

#[test]
fn what_is_denied_is_told_before_it_is_tried() {
    let Some(lab) = lab("rights") else { return };
    let wanted = Value::strings([
        "create deployments.apps in default",
        "get pods/portforward",
        "delete customresourcedefinitions.apiextensions.k8s.io",
    ]);
    let admin = lab.read(&object([("kubeconfig_file", lab.kubeconfig.as_str().into()), ("permissions", wanted)])).unwrap();
    assert_eq!(admin["missing_permissions"], Value::strings(Vec::<String>::new()));
    let stranger = format!("system:serviceaccount:{}:default", lab.namespace);
    let role = format!("{}-reader", lab.namespace);
    lab.kubectl(&["create", "clusterrole", &role, "--verb=get,list", "--resource=namespaces,nodes,storageclasses.storage.k8s.io"]);
    lab.kubectl(&[
        "create",
        "clusterrolebinding",
        &role,
        "--clusterrole",
        &role,
        "--serviceaccount",
        &stranger["system:serviceaccount:".len()..],
    ]);
    lab.kubectl(&["-n", &lab.namespace, "create", "role", "pods", "--verb=get", "--resource=pods,pods/log"]);
    lab.kubectl(&[
        "-n",
        &lab.namespace,
        "create",
        "rolebinding",
        "pods",
        "--role=pods",
        &format!("--serviceaccount={}:default", lab.namespace),
    ]);
    let (here, log) = (format!("get pods in {}", lab.namespace), format!("get pods/log in {}", lab.namespace));
    let asked = [here.as_str(), "get pods", "create deployments.apps in default", log.as_str(), "list nodes", "get pods/portforward"];
    let mut arguments = object([("permissions", Value::strings(asked))]);
    arguments.extend(by_token(&lab));
    let found = lab.read(&arguments);
    lab.kubectl(&["delete", "clusterrole,clusterrolebinding", &role]);
    let expected = Value::strings(["get pods", "create deployments.apps in default", "get pods/portforward"]);
    assert_eq!(found.unwrap()["missing_permissions"], expected);
    arguments.insert("permissions".into(), Value::strings(["pods"]));
    assert_eq!(lab.read(&arguments).unwrap_err().summary, "Unreadable permission");
}

/// As an account without rights.
pub(crate) fn by_token(lab: &Lab) -> karmaform_model::Object {
    object([
        ("address", config(lab, ".clusters[0].cluster.server").as_str().into()),
        ("ca_certificate", decoded(&config(lab, ".clusters[0].cluster.certificate-authority-data")).as_str().into()),
        ("token", token(lab).as_str().into()),
    ])
}

#[test]
fn a_program_gives_the_credentials() {
    let Some(lab) = lab("program") else { return };
    let script = |text: &str| {
        json!({ "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{ "name": "c", "cluster": { "server": config(&lab, ".clusters[0].cluster.server"),
                "certificate-authority-data": config(&lab, ".clusters[0].cluster.certificate-authority-data") } }],
            "users": [{ "name": "u", "user": { "exec": { "apiVersion": "client.authentication.k8s.io/v1beta1", "command": "sh", "args": ["-c", text] } } }],
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }] })
        .to_string()
    };
    let status = json!({ "apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", "status": {
        "clientCertificateData": decoded(&config(&lab, ".users[0].user.client-certificate-data")),
        "clientKeyData": decoded(&config(&lab, ".users[0].user.client-key-data")) } });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), status.to_string()).unwrap();
    let works = script(&format!("cat {}", file.path().display()));
    lab.read(&object([("kubeconfig", works.as_str().into())])).unwrap();
    let error = lab.read(&object([("kubeconfig", script("echo log in first >&2; exit 3 # hunter22").as_str().into())])).unwrap_err();
    assert_eq!(error.summary, "No credentials for the cluster");
    assert!(error.detail.contains("exit status: 3") && !format!("{error:?}").contains("hunter22"), "{error:?}");
}

#[test]
fn each_failure_has_its_own_words() {
    let Some(lab) = lab("failures") else { return };
    let server = config(&lab, ".clusters[0].cluster.server");
    let ca = Value::from(decoded(&config(&lab, ".clusters[0].cluster.certificate-authority-data")));
    let summary = |arguments| lab.read(&arguments).unwrap_err();
    let refused = summary(object([("address", "https://127.0.0.1:1".into())]));
    assert!(refused.summary == "Cluster is unreachable" && refused.detail.contains("nothing listens"), "{refused:?}");
    match std::env::var("KARMAFORM_TEST_BLACKHOLE") {
        Ok(hole) => {
            let begin = Instant::now();
            let silent = summary(object([("address", format!("https://{hole}:6443").into()), ("timeout", 1i64.into())]));
            assert_eq!(silent.summary, "Cluster is unreachable", "{silent:?}");
            assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
        }
        Err(_) => say("SKIPPED: the black hole: KARMAFORM_TEST_BLACKHOLE is not set"),
    }
    let distrusted = summary(object([("address", server.as_str().into()), ("token", "hunter22".into())]));
    assert_eq!(distrusted.summary, "Certificate of the cluster is not trusted", "{distrusted:?}");
    let unauthorized = summary(object([("address", server.as_str().into()), ("token", "hunter22".into()), ("ca_certificate", ca.clone())]));
    assert_eq!(unauthorized.summary, "Not logged in to the cluster", "{unauthorized:?}");
    assert!(!format!("{unauthorized:?}").contains("hunter22"));
    let forbidden =
        summary(object([("address", server.as_str().into()), ("ca_certificate", ca.clone()), ("token", token(&lab).as_str().into())]));
    assert_eq!(forbidden.summary, "Right missing in the cluster", "{forbidden:?}");
    assert!(forbidden.detail.contains("The right to get namespaces is not given to \"system:serviceaccount:"), "{forbidden:?}");
    let client = lab
        .connect(&object([("address", server.as_str().into()), ("ca_certificate", ca), ("token", token(&lab).as_str().into())]))
        .unwrap();
    let wanted = lab.wanted(&lab.map("a", json!({})));
    let asks = [lab.ask(None, Some(&wanted))];
    let error = lab.runtime.block_on(lab.driver.rehearse(&client, &asks)).remove(0).unwrap_err();
    assert!(error.detail.contains("The right to get configmaps in the namespace"), "{error:?}");
    assert_eq!(lab.plan(None, Some(&wanted)).unwrap().action(), Action::Create);
}

/// Of an account without rights.
pub(crate) fn token(lab: &Lab) -> String {
    for _ in 0..50 {
        let secrets = lab.kubectl(&["-n", &lab.namespace, "get", "secrets", "-o", "jsonpath={.items[*].data.token}"]);
        if let Some(token) = secrets.split_whitespace().next() {
            return decoded(token);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("no token");
}
