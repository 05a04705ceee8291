//! Ways to a cluster that need a surrounding: a proxy in between, and a pod to be in.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use karmaform_model::{Object, Value};
use serde_json::json;

use crate::cluster::config;
use crate::forward::{pod, service, with_node};
use crate::lab::{Lab, lab, object, read_alone, say};

/// What a child process is to read a cluster with, as JSON; empty for nothing at all. Only then does [`as_a_child`] do anything.
const CHILD: &str = "KARMAFORM_TEST_CHILD";

/// Not a test but what the tests below start: the same program in a surrounding of its own. Variables of a process can't be set safely while
/// others read them.
#[test]
fn as_a_child() {
    let Ok(arguments) = std::env::var(CHILD) else { return };
    let arguments: Object = serde_json::from_str::<serde_json::Value>(&arguments)
        .unwrap()
        .as_object()
        .unwrap()
        .iter()
        .map(|(n, v)| (n.clone(), v.as_str().unwrap().into()))
        .collect();
    let read = read_alone(&arguments).unwrap();
    say(&format!("id={}", read["connection"].get("id").and_then(Value::as_str).unwrap()));
}

fn id_of(text: &str) -> String {
    text.lines().find_map(|l| l.strip_prefix("id=")).unwrap_or_else(|| panic!("no id in:\n{text}")).to_owned()
}

fn child(arguments: &Object, variables: &[(&str, &str)]) -> String {
    let arguments =
        json!(arguments.iter().map(|(n, v)| (n.clone(), v.as_str().unwrap().to_owned())).collect::<std::collections::BTreeMap<_, _>>());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ways::as_a_child", "--nocapture"])
        .env(CHILD, arguments.to_string())
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    id_of(&text)
}

/// A proxy on loopback that knows CONNECT (RFC 9110, section 9.3.6) and nothing else, and remembers what it was asked for.
struct Proxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for local in listener.incoming().flatten() {
                let heard = Arc::clone(&heard);
                thread::spawn(move || relay(local, &heard));
            }
        });
        Self { address, asked }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked for since it was asked last.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

/// `CONNECT host:port HTTP/1.1`, headers, an empty line; then whatever the two ends say.
fn relay(mut local: TcpStream, heard: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(local.try_clone().ok()?);
    let mut request = String::new();
    reader.read_line(&mut request).ok()?;
    heard.lock().unwrap().push(request.trim().to_owned());
    let target = request.strip_prefix("CONNECT ")?.split_whitespace().next()?.to_owned();
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    let mut remote = TcpStream::connect(target).ok()?;
    local.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
    let (mut back, mut here) = (remote.try_clone().ok()?, local.try_clone().ok()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut back, &mut here);
        let _ = here.shutdown(std::net::Shutdown::Both);
    });
    let _ = std::io::copy(&mut reader, &mut remote);
    let _ = remote.shutdown(std::net::Shutdown::Both);
    Some(())
}

fn uid(lab: &Lab) -> String {
    lab.kubectl(&["get", "ns", "kube-system", "-o", "jsonpath={.metadata.uid}"])
}

#[test]
fn a_proxy_is_used_wherever_it_is_named() {
    let Some(lab) = lab("proxy") else { return };
    let proxy = Proxy::start();
    let server = config(&lab, ".clusters[0].cluster.server").trim_start_matches("https://").to_owned();
    let through = |what: &str| {
        let asked = proxy.asked();
        assert!(!asked.is_empty() && asked.iter().all(|a| a.starts_with(&format!("CONNECT {server} "))), "{what}: {asked:?}");
    };
    let plain = std::fs::read_to_string(&lab.kubeconfig).unwrap();
    let file = object([("kubeconfig_file", lab.kubeconfig.as_str().into())]);

    let mut named: serde_json::Value = serde_json::from_str(&lab.kubectl(&["config", "view", "--raw", "--minify", "-o", "json"])).unwrap();
    named["clusters"][0]["cluster"]["proxy-url"] = proxy.url().into();
    let read = lab.read(&object([("kubeconfig", named.to_string().as_str().into())])).unwrap();
    assert_eq!(read["connection"].get("id").and_then(Value::as_str), Some(uid(&lab).as_str()));
    through("proxy-url in the kubeconfig");

    let mut arguments = object([("kubeconfig", plain.as_str().into())]);
    arguments.insert("proxy_url".into(), proxy.url().as_str().into());
    let read = lab.read(&arguments).unwrap();
    through("proxy_url");
    assert_eq!(read["connection"].get("proxy_url").and_then(Value::as_str), Some(proxy.url().as_str()), "whoever uses it goes there too");

    assert_eq!(child(&file, &[("HTTPS_PROXY", &proxy.url())]), uid(&lab));
    through("HTTPS_PROXY");

    assert_eq!(child(&file, &[]), uid(&lab));
    assert_eq!(proxy.asked(), Vec::<String>::new(), "none is named");

    arguments.insert("proxy_url".into(), "http://127.0.0.1:1".into());
    let error = lab.read(&arguments).unwrap_err();
    assert!(error.summary == "Cluster is unreachable" && error.hints.iter().any(|h| h.contains("proxy")), "{error:?}");
    arguments.insert("proxy_url".into(), "ftp://127.0.0.1:1".into());
    assert_eq!(lab.read(&arguments).unwrap_err().summary, "Bad proxy URL");
}

#[test]
fn a_way_to_a_pod_goes_through_the_proxy_as_well() {
    let Some(lab) = with_node("proxied") else { return };
    let proxy = Proxy::start();
    lab.kubectl_with(&["create", "-f", "-"], &service(&lab, "web"));
    let line = "mkdir -p /tmp/w && echo hello >/tmp/w/index.html && exec httpd -f -p 8080 -h /tmp/w";
    lab.kubectl_with(
        &["create", "-f", "-"],
        &pod(&lab, "web", "web", line, &json!({ "httpGet": { "path": "/", "port": 8080 }, "periodSeconds": 1 })),
    );
    lab.kubectl(&["-n", &lab.namespace, "wait", "pod/web", "--for=condition=Ready", "--timeout=60s"]);
    let proxied =
        lab.connect(&object([("kubeconfig_file", lab.kubeconfig.as_str().into()), ("proxy_url", proxy.url().as_str().into())])).unwrap();
    let host = format!("web.{}.svc", lab.namespace);
    let begin = Instant::now();
    let address = loop {
        match lab.runtime.block_on(lab.driver.forward(&proxied, &host, 80)) {
            Ok(address) => break address,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(20), "{error:?}"),
        }
        thread::sleep(Duration::from_millis(100));
    };
    proxy.asked();
    // Each of them uses up a connection. The few that were opened before, for the looking, are used first.
    for _ in 0..8 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    }
    assert!(proxy.asked().len() >= 3, "when none is left over, the next one is opened through the proxy");
}

#[test]
fn a_pod_needs_to_be_told_nothing() {
    let Some(lab) = with_node("inside") else { return };
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set, though there is a node"));
    let program = std::env::current_exe().unwrap();
    let image = "karmaform.test/inside:1";
    let made = Command::new(variable("KARMAFORM_TEST_KUBE"))
        .args(["image", &variable("KARMAFORM_TEST_KUBE_NAME"), image])
        .arg(&program)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let role = lab.namespace.clone();
    lab.kubectl(&["create", "clusterrole", &role, "--verb=get,list", "--resource=namespaces,nodes,storageclasses.storage.k8s.io"]);
    let account = format!("--serviceaccount={}:default", lab.namespace);
    lab.kubectl(&["create", "clusterrolebinding", &role, "--clusterrole", &role, &account]);
    let mut wanted = pod(&lab, "inside", "inside", "", &json!(null));
    wanted["spec"]["automountServiceAccountToken"] = true.into();
    wanted["spec"]["restartPolicy"] = "Never".into();
    let container = &mut wanted["spec"]["containers"][0];
    container["image"] = image.into();
    container["command"] =
        json!([format!("/bin/{}", program.file_name().unwrap().to_string_lossy()), "--exact", "ways::as_a_child", "--nocapture"]);
    container["env"] = json!([{ "name": CHILD, "value": "{}" }]);
    lab.kubectl_with(&["create", "-f", "-"], &wanted);
    let begin = Instant::now();
    let phase = || lab.kubectl(&["-n", &lab.namespace, "get", "pod", "inside", "-o", "jsonpath={.status.phase}"]);
    while !["Succeeded", "Failed"].contains(&phase().as_str()) {
        assert!(begin.elapsed() < Duration::from_secs(60), "it is {}", phase());
        thread::sleep(Duration::from_millis(200));
    }
    let said = lab.kubectl(&["-n", &lab.namespace, "logs", "inside"]);
    lab.kubectl(&["delete", "clusterrole,clusterrolebinding", &role]);
    assert_eq!(id_of(&said), uid(&lab));
}

#[test]
fn a_context_is_chosen_by_its_name() {
    let Some(lab) = lab("context") else { return };
    let mut two: serde_json::Value = serde_json::from_str(&lab.kubectl(&["config", "view", "--raw", "--minify", "-o", "json"])).unwrap();
    let first = two["contexts"][0].clone();
    let mut lost = first.clone();
    lost["name"] = "lost".into();
    lost["context"]["cluster"] = "lost".into();
    let cluster = json!({ "name": "lost", "cluster": { "server": "https://127.0.0.1:1" } });
    two["contexts"].as_array_mut().unwrap().push(lost);
    two["clusters"].as_array_mut().unwrap().push(cluster);
    two["current-context"] = "lost".into();
    let with = |context: Option<&str>| {
        let mut arguments = object([("kubeconfig", two.to_string().as_str().into())]);
        arguments.extend(context.map(|c| ("context".to_owned(), c.into())));
        lab.read(&arguments)
    };
    assert_eq!(with(None).unwrap_err().summary, "Cluster is unreachable", "the current one");
    let read = with(first["name"].as_str()).unwrap();
    assert_eq!(read["connection"].get("id").and_then(Value::as_str), Some(uid(&lab).as_str()));
    assert_eq!(with(Some("none")).unwrap_err().summary, "Context not found");
}
