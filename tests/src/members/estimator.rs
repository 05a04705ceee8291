//! An estimator of a member: that it gets what it needs to look at the member and nothing else, a certificate that the scheduler can check, and
//! that the scheduler is told where it is. No pod of it runs: it is wanted with no replicas, for none of these clusters has a node.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::fleet::Fleet;
use super::planes::{Cluster, Planes, written};

const FILES: &str = "/api/v1/namespaces/karmada-cluster/secrets";
const SERVICE: &str = "/api/v1/namespaces/karmada-system/services/karmada-scheduler-estimator-m1";

/// Runs it all.
pub(super) fn a_member_is_counted(planes: &Planes) {
    let Planes { p1, m1, .. } = planes;
    let before = m1.inventory();
    p1.has_namespace();
    // Every control plane has it.
    p1.run(&["create", "namespace", "karmada-system"]);
    let before_p1 = p1.inventory();
    let fleet = Fleet::new(p1);
    let estimator = |address: &str| json!({ "estimator": { "address": address, "port": 30352 } });
    fleet.members(&[("m1", &m1.kubeconfig, estimator("10.9.8.7"))]);
    fleet.converge();

    let secret = the_secret(m1);
    let file = |name: &str| decoded(&secret["data"][name]);
    let kubeconfig = file("kubeconfig");
    assert!(kubeconfig.contains("server: \"https://kubernetes.default.svc\"") && kubeconfig.contains("tokenFile: token"), "{kubeconfig}");
    let authority = written(&file("member-ca.crt"));
    let may = |arguments: &[&str]| p1.asks(&m1.server(), &file("token"), authority.path(), arguments).0;
    for what in [["nodes", "-A"], ["pods", "-A"], ["resourcequotas", "-A"], ["replicasets.apps", "-A"], ["deployments.apps", "-A"]] {
        assert!(may(&["get", what[0], what[1]]), "{what:?}");
    }
    assert!(!may(&["get", "secrets", "-A"]) && !may(&["auth", "can-i", "create", "pods"]));
    // The planes of this test have one authority for everything.
    let (certificate, trust) = (written(&file("tls.crt")), written(&file("client-ca.crt")));
    let verify = |address: &str| verified(certificate.path(), trust.path(), address);
    assert!(verify("10.9.8.7") && !verify("10.9.8.8"));

    let service = p1.object(SERVICE);
    assert_eq!((&service["spec"]["type"], &service["spec"]["externalName"]), (&json!("ExternalName"), &json!("10.9.8.7")));
    assert_eq!((&service["spec"]["ports"][0]["port"], &service["spec"]["ports"][0]["targetPort"]), (&json!(10352), &json!(30352)));

    // Somebody takes away what it may; another address is another certificate, and the scheduler must be told.
    m1.run(&["delete", "clusterrolebinding", name_of(&secret).trim_end_matches("-files")]);
    fleet.plans(&["create m1/estimator_role_binding"]);
    fleet.members(&[("m1", &m1.kubeconfig, estimator("estimator.example.org"))]);
    let planned = fleet.plan(&[]);
    assert!(planned.text.contains("restart karmada-scheduler"), "{}", planned.text);
    fleet.converge();
    let certificate = written(&decoded(&the_secret(m1)["data"]["tls.crt"]));
    let text = openssl(&["x509", "-in", &certificate.path().to_string_lossy(), "-noout", "-text"]).1;
    assert!(text.contains("DNS:estimator.example.org") && text.contains("TLS Web Server Authentication"), "{text}");
    assert!(!text.contains("TLS Web Client Authentication"), "{text}");
    assert_eq!(p1.object(SERVICE)["spec"]["externalName"], "estimator.example.org");

    // It goes, and the member stays.
    fleet.members(&[("m1", &m1.kubeconfig, json!({}))]);
    fleet.converge();
    assert!(p1.api.get(SERVICE).expect("an answer").is_none());
    fleet.members(&[]);
    fleet.converge();
    m1.is_as_before(&before);
    p1.is_as_before(&before_p1);
    p1.run(&["delete", "namespace", "karmada-system"]);
}

/// The Secret with its files: the one with a kubeconfig.
fn the_secret(member: &Cluster) -> Value {
    let all = member.api.list(FILES).expect("Secrets");
    all.into_iter().find(|s| !s["data"]["kubeconfig"].is_null()).expect("one with a kubeconfig")
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn decoded(value: &Value) -> String {
    let bytes = BASE64_STANDARD.decode(value.as_str().unwrap_or_default()).expect("base64");
    String::from_utf8(bytes).expect("text")
}

/// As a client of this address would.
fn verified(certificate: &Path, trust: &Path, address: &str) -> bool {
    let [certificate, trust] = [certificate, trust].map(|p| p.to_string_lossy().into_owned());
    openssl(&["verify", "-CAfile", &trust, "-purpose", "sslserver", "-verify_ip", address, &certificate]).0
}

fn openssl(arguments: &[&str]) -> (bool, String) {
    let ended = Command::new("openssl").args(arguments).output().expect("openssl");
    (ended.status.success(), String::from_utf8_lossy(&ended.stdout).into_owned())
}
