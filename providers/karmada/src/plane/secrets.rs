//! What is in the components' Secrets: each holds what its component needs, and nothing else.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Value};

use super::arguments::Arguments;
use super::extras::OIDC_CA;
use super::hosts;
use super::pki::ca_certificate;
use super::places::{certificate, client_role, extends_api, part};
use crate::versions::Component;

/// The files of a component's Secret.
pub(crate) fn files(plane: &Arguments, component: Component) -> BTreeMap<String, Arg> {
    let mut files = BTreeMap::new();
    let mut put = |name: &str, content: Arg| drop(files.insert(name.to_owned(), content));
    let etcd = &plane.etcd;
    if uses_etcd(component) {
        put("etcd-ca.crt", etcd.ca_certificate.clone().into());
        put("etcd.crt", etcd.certificate.clone().into());
        put("etcd.key", etcd.private_key.clone().into());
    }
    if serves(component) {
        put("tls.crt", Arg::child(&certificate(component.name()), "certificate"));
        put("tls.key", Arg::child(&certificate(component.name()), "private_key"));
    }
    if matches!(component, Component::ApiServer) {
        put("client-ca.crt", Arg::Text(vec![ca_certificate(plane), "\n".into(), Arg::child(&part("agent_ca"), "certificate")]));
        put("front-proxy-ca.crt", Arg::child(&part("front_proxy_ca"), "certificate"));
        put("front-proxy-client.crt", Arg::child(&certificate("front-proxy-client"), "certificate"));
        put("front-proxy-client.key", Arg::child(&certificate("front-proxy-client"), "private_key"));
        put("sa.key", Arg::child(&part("service_account_key"), "private_key"));
        put("sa.pub", Arg::child(&part("service_account_key"), "public_key"));
        if let Some(ca) = &plane.extras.oidc_ca {
            put(OIDC_CA, ca.clone().into());
        }
    } else {
        let role = certificate(&client_role(component));
        put("ca.crt", ca_certificate(plane));
        put("client.crt", Arg::child(&role, "certificate"));
        put("client.key", Arg::child(&role, "private_key"));
        put("kubeconfig", kubeconfig(plane, component).into());
    }
    if matches!(component, Component::Scheduler | Component::Descheduler) {
        // Estimators' certificates are signed by whoever signs those of agents.
        put("estimator-ca.crt", Arg::Text(vec![ca_certificate(plane), "\n".into(), Arg::child(&part("agent_ca"), "certificate")]));
    }
    if matches!(component, Component::KubeControllerManager) {
        put("agent-ca.crt", Arg::child(&part("agent_ca"), "certificate"));
        put("agent-ca.key", Arg::child(&part("agent_ca"), "private_key"));
        put("sa.key", Arg::child(&part("service_account_key"), "private_key"));
    }
    files
}

/// The keys that no component has, and that the control plane can't be managed without: a state that was lost is made anew from them
/// (docs/decisions/0006). The certificates beside them tell whose they are.
pub(crate) fn authority(plane: &Arguments) -> BTreeMap<String, Arg> {
    let mut files = BTreeMap::new();
    for name in ["ca", "front_proxy_ca", "agent_ca"] {
        if name == "ca" && !plane.certificates.makes_ca() {
            continue;
        }
        let file = name.replace('_', "-");
        files.insert(format!("{file}.crt"), Arg::child(&part(name), "certificate"));
        files.insert(format!("{file}.key"), Arg::child(&part(name), "private_key"));
    }
    files
}

/// True for what reads and writes etcd itself.
pub(crate) fn uses_etcd(component: Component) -> bool {
    matches!(component, Component::ApiServer | Component::AggregatedApiServer | Component::Search)
}

/// True for what others connect to over TLS by a certificate of its own.
pub(crate) fn serves(component: Component) -> bool {
    matches!(component, Component::ApiServer | Component::Webhook) || extends_api(component)
}

/// A component's kubeconfig. It names files beside it, so that a renewed certificate is read without a restart.
fn kubeconfig(plane: &Arguments, component: Component) -> String {
    let (server, user) = (plane.inside(), component.name());
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: karmada
  cluster:
    certificate-authority: ca.crt
    server: {server}
users:
- name: {user}
  user:
    client-certificate: client.crt
    client-key: client.key
contexts:
- name: karmada
  context:
    cluster: karmada
    user: {user}
current-context: karmada
"
    )
}

/// The kubeconfig of an administrator, with everything inside.
pub(crate) fn admin_kubeconfig(plane: &Arguments) -> Arg {
    let data = |arg: Arg| Arg::Base64(Box::new(arg));
    let admin = certificate("admin");
    let (name, server) = (&plane.name, plane.endpoint());
    let mut text: Vec<Arg> = vec!["apiVersion: v1\nkind: Config\nclusters:\n".into()];
    let servers = || std::iter::once((name.clone(), server.clone())).chain(each_server(plane));
    for (cluster, server) in servers() {
        text.extend([
            format!("- name: {cluster}\n  cluster:\n    certificate-authority-data: ").into(),
            data(ca_certificate(plane)),
            "\n    server: ".into(),
            server,
            "\n".into(),
        ]);
    }
    text.extend([
        format!("users:\n- name: {name}-admin\n  user:\n    client-certificate-data: ").into(),
        data(Arg::child(&admin, "certificate")),
        "\n    client-key-data: ".into(),
        data(Arg::child(&admin, "private_key")),
        "\ncontexts:\n".into(),
    ]);
    for (cluster, _) in servers() {
        text.push(format!("- name: {cluster}\n  context:\n    cluster: {cluster}\n    user: {name}-admin\n").into());
    }
    text.push(format!("current-context: {name}\n").into());
    Arg::Text(text)
}

/// The API server of each host, where nothing in front of them chooses one that works.
fn each_server(plane: &Arguments) -> Vec<(String, Arg)> {
    let Some(hosts) = plane.target.hosts().filter(|h| h.balancer.is_none() && h.all.len() > 1) else { return Vec::new() };
    let port = plane.listens(Component::ApiServer);
    let homes = hosts::homes(plane, hosts, Component::ApiServer).into_iter();
    homes.map(|(host, at)| (format!("{}-{host}", plane.name), hosts::url(at.address.clone(), port))).collect()
}

/// The manifest of a Secret.
pub(crate) fn manifest(name: String, namespace: &str, labels: Arg, files: BTreeMap<String, Arg>) -> Arg {
    Arg::object([
        ("apiVersion", "v1".into()),
        ("kind", "Secret".into()),
        ("metadata", Arg::object([("name", name.into()), ("namespace", namespace.into()), ("labels", labels)])),
        ("type", Value::from("Opaque").into()),
        ("stringData", Arg::Object(files)),
    ])
}
