//! The ways in, on a real cluster. Nobody gives addresses to load balancers there, so that the test does what a cloud's controller does.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::plane::{Plane, etcd_block, host_block};
use super::{Host, KARMADA};
use crate::project::Project;

/// The API server, and what it needs to be there for the plan's own waits; nobody else runs.
fn configuration(host: &Host, ways: &str) -> String {
    let (namespace, kube) = (&host.namespace, &host.kube_version);
    let plane = format!(
        r#"
resource "karmada_control_plane" "way" {{
  version      = "{KARMADA}"
  kube_version = "{kube}"
  etcd         = etcd_cluster.way.client
  install_crds = false
  kubernetes {{
    cluster   = data.kubernetes_cluster.host
    namespace = "{namespace}"
  }}
  defaults {{
    replicas = 0
  }}
  component "apiserver" {{
    replicas = 1
  }}
  component "aggregated-apiserver" {{
    replicas = 1
  }}
{ways}
}}

output "kubeconfig" {{
  value     = karmada_control_plane.way.kubeconfig
  sensitive = true
}}

output "endpoint" {{
  value = karmada_control_plane.way.endpoint
}}
"#
    );
    host_block(host) + &etcd_block(host, "way", "") + &plane
}

struct Way<'a> {
    plane: Plane<'a>,
}

impl Way<'_> {
    fn is(&self, ways: &str) {
        self.plane.project.write("main.kf.hcl", &configuration(self.plane.host, ways));
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let host = self.plane.host;
        host.run(&[&["-n", &host.namespace], arguments].concat())
    }

    /// The Service of the API server, once it is there.
    fn service(&self) -> Value {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let text = self.kubectl(&["get", "services", "--field-selector=metadata.name=way-apiserver", "-o", "json"]);
            let list: Value = serde_json::from_str(&text).expect("JSON");
            if list["items"][0].is_object() {
                return list["items"][0].clone();
            }
            assert!(Instant::now() < until, "the Service is never made");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Gives the Service an address, as a controller of load balancers does.
    fn give(&self, ingress: &Value) {
        let mut service = self.service();
        service["status"] = json!({ "loadBalancer": { "ingress": [ingress] } });
        self.plane.project.write("service.json", &service.to_string());
        let file = self.plane.project.path().join("service.json").to_string_lossy().into_owned();
        let path = format!("/api/v1/namespaces/{}/services/way-apiserver/status", self.plane.host.namespace);
        self.plane.host.run(&["replace", "--raw", &path, "-f", &file]);
    }

    /// True if the certificate that the API server is given is for this name, as OpenSSL writes it: `DNS:a`, `IP Address:1.2.3.4`.
    fn is_certified(&self, name: &str) -> bool {
        let pem = self.kubectl(&["get", "secret", "way-apiserver", "-o", "go-template={{index .data \"tls.crt\" | base64decode}}"]);
        self.plane.project.write("tls.crt", &pem);
        let read =
            Command::new("openssl").args(["x509", "-in", "tls.crt", "-noout", "-text"]).current_dir(self.plane.project.path()).output();
        let text = String::from_utf8(read.expect("openssl").stdout).expect("text");
        assert!(text.contains("DNS:way-apiserver.kf-way.svc"), "{text}");
        text.split([',', '\n']).any(|n| n.trim() == name)
    }

    /// The Karmada API answers there to the kubeconfig that people have; its certificate is for `name`. kube-proxy is given a moment: it hears of
    /// a Service's port after the API server has it, and tells nobody when its rules are written.
    #[track_caller]
    fn answers(&self, address: &str, name: &str) {
        self.plane.project.write("people.yaml", &self.plane.project.output("kubeconfig"));
        let file = self.plane.project.path().join("people.yaml").to_string_lossy().into_owned();
        let (server, name) = (format!("--server=https://{address}"), format!("--tls-server-name={name}"));
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let output = self.plane.host.kubectl().args(["--kubeconfig", &file, &server, &name, "get", "--raw", "/readyz"]).output();
            let output = output.expect("kubectl");
            if output.status.success() {
                return;
            }
            assert!(Instant::now() < until, "{address}: {}", String::from_utf8_lossy(&output.stderr));
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn endpoint(&self) -> String {
        self.plane.project.output("endpoint")
    }
}

#[test]
fn ways_in() {
    let Some(host) = Host::for_test("ways_in", "kf-way") else { return };
    let before = host.inventory();
    host.run(&["create", "namespace", &host.namespace]);
    let way = Way { plane: Plane { host: &host, project: Project::new() } };
    way.is("service {\n type = \"LoadBalancer\"\n}");
    what_others_have_is_said_in_the_plan(&way);
    an_address_is_known_after_one_apply(&way);
    another_address_changes_what_it_is_in(&way);
    a_node_port_is_told_to_people(&way);
    way.plane.project.must(0, &["destroy", "-auto-approve"]);
    host.run(&["delete", "namespace", &host.namespace]);
    host.is_as_before(&before);
}

fn what_others_have_is_said_in_the_plan(way: &Way<'_>) {
    way.kubectl(&["create", "service", "clusterip", "way-apiserver", "--tcp=1"]);
    way.kubectl(&["create", "deployment", "way-scheduler", "--image=nobody", "--replicas=0"]);
    way.kubectl(&["create", "secret", "generic", "way-webhook"]);
    let refused = way.plane.project.must(1, &["plan"]);
    for name in ["Service/kf-way/way-apiserver", "Deployment.apps/kf-way/way-scheduler", "Secret/kf-way/way-webhook"] {
        assert!(refused.contains(&format!("{name} is in the cluster already")), "{name}: {refused}");
    }
    assert_eq!(refused.matches("Exists already").count(), 3, "{refused}");
    way.kubectl(&["delete", "service/way-apiserver", "deployment/way-scheduler", "secret/way-webhook"]);
}

fn an_address_is_known_after_one_apply(way: &Way<'_>) {
    let project = &way.plane.project;
    let apply = project.start(&["apply", "-auto-approve"]);
    way.give(&json!({ "ip": "192.0.2.7" }));
    let ended = apply.end();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    project.no_changes();
    assert_eq!(way.endpoint(), "https://192.0.2.7:5443");
    assert!(project.output("kubeconfig").contains("server: https://192.0.2.7:5443\n"));
    assert!(way.is_certified("IP Address:192.0.2.7"));
    // What it is verified by is the address outside, though there is no way to that one here.
    let inside = way.service()["spec"]["clusterIP"].as_str().expect("an address").to_owned();
    way.answers(&format!("{inside}:5443"), "192.0.2.7");
}

fn another_address_changes_what_it_is_in(way: &Way<'_>) {
    way.give(&json!({ "hostname": "lb.example.org" }));
    // Of a key with a space in it the first word is seen: "configmap cluster-info".
    let expected = ["api[\"configmap", "certificate[\"apiserver\"]", "kubeconfig_secret", "secret[\"apiserver\"]"];
    let expected = expected.map(|child| format!("karmada_control_plane.way/{child}"));
    assert_eq!(way.plane.planned(), BTreeSet::from(expected));
    way.plane.converge();
    assert_eq!(way.endpoint(), "https://lb.example.org:5443");
    assert!(way.is_certified("DNS:lb.example.org") && !way.is_certified("IP Address:192.0.2.7"));
}

fn a_node_port_is_told_to_people(way: &Way<'_>) {
    let project = &way.plane.project;
    let ways = |port: &str, more: &str| {
        way.is(&format!("service {{\n type = \"NodePort\"\n names = [\"node.example.org\"]\n {port}\n}}\n{more}"));
    };
    // What is not there, and what others have, is said before anything is done.
    ways("", "tls_route {\n hosts = [\"r.example.org\"]\n gateway {\n name = \"g\"\n }\n}");
    let refused = project.must(1, &["plan"]);
    assert!(refused.contains("serves no TLSRoute of gateway.networking.k8s.io/v1"), "{refused}");
    let other = "jsonpath={.spec.ports[0].nodePort}";
    way.kubectl(&["create", "service", "nodeport", "other", "--tcp=1"]);
    let taken = way.kubectl(&["get", "service", "other", "-o", other]);
    ways(&format!("node_port = {taken}"), "");
    let refused = project.must(1, &["plan"]);
    assert!(refused.contains("Node port is taken") && refused.contains("the Service \"other\" in the namespace \"kf-way\""), "{refused}");
    way.kubectl(&["delete", "service", "other"]);

    let ingress = "ingress {\n host = \"i.example.org\"\n class_name = \"nginx\"\n}";
    ways("", ingress);
    way.plane.converge();
    let port = way.service()["spec"]["ports"][0]["nodePort"].to_string();
    assert_eq!(way.endpoint(), format!("https://node.example.org:{port}"));
    assert!(way.is_certified("DNS:node.example.org") && way.is_certified("DNS:i.example.org") && !way.is_certified("DNS:lb.example.org"));
    let made = way.plane.host.object("ingress.networking.k8s.io", "way-apiserver");
    assert_eq!(made["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["port"]["number"], 5443);
    let node = way.plane.host.run(&["get", "nodes", "-o", "jsonpath={.items[0].status.addresses[?(@.type==\"InternalIP\")].address}"]);
    way.answers(&format!("{node}:{port}"), "way-apiserver.kf-way.svc");
    let free = if port == "32443" { "32444" } else { "32443" };
    ways(&format!("node_port = {free}"), ingress);
    way.plane.converge();
    assert_eq!(way.endpoint(), format!("https://node.example.org:{free}"));
    way.answers(&format!("{node}:{free}"), "way-apiserver.kf-way.svc");
}
