//! Ways to pods through the API server. Needs a node.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use karmaform_model::{AnyClient, Diagnostic};
use serde_json::{Value as Json, json};

use crate::cluster::by_token;
use crate::lab::{Lab, lab, object, say};

/// The lab, if it has a node for pods.
pub(crate) fn with_node(test: &str) -> Option<Lab> {
    let lab = lab(test)?;
    if lab.kubectl(&["get", "nodes", "-o", "name"]).is_empty() {
        say(&format!("SKIPPED: {test}: the cluster has no node, so no pod runs; `kube.sh up NAME --node` makes one with a node"));
        return None;
    }
    Some(lab)
}

/// A pod that runs a line of shell.
pub(crate) fn pod(lab: &Lab, name: &str, app: &str, line: &str, readiness: &Json) -> Json {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": lab.namespace, "labels": { "app": app } },
        "spec": { "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false, "containers": [{ "name": "main",
            "image": "karmaform.test/busybox:1", "imagePullPolicy": "Never", "command": ["sh", "-c", line], "readinessProbe": readiness,
            "ports": [{ "name": "web", "containerPort": 8080 }] }] } })
}

/// A Service that leads to the port `web` of its pods.
pub(crate) fn service(lab: &Lab, name: &str) -> Json {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": lab.namespace },
        "spec": { "selector": { "app": name }, "ports": [{ "name": "metrics", "port": 9, "targetPort": 9 }, { "name": "web", "port": 80, "targetPort": "web" }] } })
}

pub(crate) fn client(lab: &Lab) -> AnyClient {
    lab.connect(&object([("kubeconfig_file", lab.kubeconfig.as_str().into())])).unwrap()
}

fn forward(lab: &Lab, client: &AnyClient, host: &str, port: u16) -> Result<SocketAddr, Diagnostic> {
    lab.runtime.block_on(lab.driver.forward(client, host, port))
}

/// Asks for a page; empty if the connection is cut.
fn page(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = String::new();
    let _ = stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes());
    let _ = stream.read_to_string(&mut answer);
    answer.split_once("\r\n\r\n").map(|(_, body)| body.trim().to_owned()).unwrap_or_default()
}

/// Without waiting for the end of the connection, which containerd delays by a second.
fn first_bytes(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

const WEB: &str = "mkdir -p /tmp/w && hostname >/tmp/w/index.html && head -c 3000000 /dev/zero | tr '\\0' x >/tmp/w/big && exec httpd -f -p 8080 -h /tmp/w";

fn probe(path: &str) -> Json {
    json!({ "httpGet": { "path": path, "port": 8080 }, "periodSeconds": 1 })
}

#[test]
fn services_and_pods_are_reached() {
    let Some(lab) = with_node("forward") else { return };
    let client = client(&lab);
    let web = format!("web.{}.svc", lab.namespace);
    let nothing = |host: &str, part: &str| {
        let error = forward(&lab, &client, host, 80).unwrap_err();
        assert!(error.summary == "Nothing to forward to" && error.detail.contains(part) && error.retryable, "{error:?}");
    };
    nothing(&web, "There is no Service \"web\"");
    nothing("kubernetes.default.svc", "has no port 80");
    assert!(forward(&lab, &client, "kubernetes.default.svc", 443).unwrap_err().detail.contains("are no pods"));
    assert_eq!(forward(&lab, &client, "example.com", 80).unwrap_err().summary, "No way through this connection");
    lab.kubectl_with(&["create", "-f", "-"], &service(&lab, "web"));
    nothing(&web, "no pod behind the Service \"web\"");
    let direct = format!("dull.web.{}.svc.cluster.local", lab.namespace);
    nothing(&direct, "There is no pod \"dull\"");
    lab.kubectl_with(&["create", "-f", "-"], &pod(&lab, "dull", "web", WEB, &probe("/missing")));
    let wait = |pod: &str| {
        lab.kubectl(&["-n", &lab.namespace, "wait", &format!("pod/{pod}"), "--for=condition=Ready", "--timeout=60s"]);
    };
    let begin = Instant::now();
    // never ready, and reached by its own name nevertheless
    let dull = loop {
        match forward(&lab, &client, &direct, 8080) {
            Ok(address) if page(address, "/") == "dull" => break address,
            other => assert!(begin.elapsed() < Duration::from_secs(60), "{other:?}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    // a pod is a moment later in the Endpoints
    let unready = |e: &Diagnostic| e.detail.contains("is not ready");
    while !forward(&lab, &client, &web, 80).is_err_and(|e| unready(&e)) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", forward(&lab, &client, &web, 80));
        std::thread::sleep(Duration::from_millis(50));
    }
    lab.kubectl_with(&["create", "-f", "-"], &pod(&lab, "one", "web", WEB, &probe("/")));
    wait("one");
    let listed = || {
        let begin = Instant::now();
        while let Err(error) = forward(&lab, &client, &web, 80) {
            assert!(begin.elapsed() < Duration::from_secs(20), "{error:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    listed();
    let begin = Instant::now();
    let address = forward(&lab, &client, &web, 80).unwrap();
    let opened = begin.elapsed();
    assert_eq!(first_bytes(address), "HTTP/1.1");
    say(&format!("forward: opened in {opened:?}, first answer after {:?}", begin.elapsed()));
    assert_eq!(page(address, "/"), "one");
    assert_eq!(forward(&lab, &client, &web, 80).unwrap(), address, "the same when asked again");
    assert_ne!(dull, address);
    // several at once, none in the way of another
    let idle = TcpStream::connect(address).unwrap();
    let begin = Instant::now();
    let pages: Vec<_> = (0..8).map(|_| std::thread::spawn(move || page(address, "/big").len())).collect();
    assert!(pages.into_iter().all(|p| p.join().unwrap() == 3_000_000));
    say(&format!("forward: 8 times 3 MB at once in {:?}", begin.elapsed()));
    drop(idle);
    // the same name and then another; the address stays
    lab.kubectl(&["-n", &lab.namespace, "delete", "pod", "one"]);
    for name in ["one", "two"] {
        lab.kubectl_with(&["create", "-f", "-"], &pod(&lab, name, "web", WEB, &probe("/")));
        wait(name);
        listed();
        assert_eq!(page(address, "/"), name);
        lab.kubectl(&["-n", &lab.namespace, "delete", "pod", name]);
    }
    let begin = Instant::now();
    assert_eq!(page(address, "/"), "", "cut, and not hung");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    // each way needs the right to it
    let stranger = lab.connect(&by_token(&lab)).unwrap();
    let error = forward(&lab, &stranger, &web, 80).unwrap_err();
    assert_eq!(error.summary, "Right missing in the cluster");
    assert!(error.detail.contains("pods/portforward"), "{error:?}");
}
