//! What a control plane is on its host cluster: Secrets, Services and Deployments, and what leads to the API server from outside.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, ChildStep};
use serde_json::json;

use super::arguments::Arguments;
use super::children::{child, needs};
use super::deployment::{self, labels, selector};
use super::host::Host;
use super::places::{component as deployment_of, part, part_of, secret, service, target_port};
use super::settings::Settings;
use super::{secrets, store};
use crate::api::ApiObject;
use crate::versions::Component;

/// How long a Deployment may take to run as wanted, in seconds, while images are pulled; and a load balancer to have an address.
const ROLLOUT_TIMEOUT: i64 = 600;
/// How long anything else on the host cluster may take, in seconds.
const TIMEOUT: i64 = 60;
/// How long the namespace may take to go, in seconds: until the last pod in it has ended.
const NAMESPACE_TIMEOUT: i64 = 300;

/// All of it. `objects` are those inside the Karmada API.
pub(crate) fn expand(plane: &Arguments, host: &Host, objects: &[ApiObject], children: &mut Vec<Child>) {
    if host.create_namespace {
        children.push(namespace(plane, host));
    }
    for (component, settings) in &plane.components {
        of_component(plane, host, (*component, settings), objects, children);
    }
    if !plane.extras.files.is_empty() {
        let name = format!("{}-config", plane.object_name(Component::ApiServer));
        let labels = Arg::Object(labels(plane, Component::ApiServer.name()));
        let manifest = secrets::manifest(name, &plane.namespace, labels, plane.extras.files.clone());
        children.push(on_host(host, part_of("secret", "apiserver-config"), manifest, None));
    }
    children.extend(ways_in(plane, host));
    let name = format!("{}-admin-kubeconfig", plane.name);
    let files = BTreeMap::from([("kubeconfig".to_owned(), secrets::admin_kubeconfig(plane))]);
    let manifest = secrets::manifest(name, &plane.namespace, Arg::Object(labels(plane, "admin")), files);
    children.push(on_host(host, part("kubeconfig_secret"), manifest, None));
    if plane.certificates.keeps_authority {
        let labels = Arg::Object(labels(plane, "authority"));
        let manifest = secrets::manifest(format!("{}-authority", plane.name), &plane.namespace, labels, secrets::authority(plane));
        children.push(on_host(host, part("authority_secret"), manifest, None));
    }
}

/// Made if it is not there. One that is there already stays as it is, and stays when the control plane goes.
fn namespace(plane: &Arguments, host: &Host) -> Child {
    let manifest = Arg::from_json(&json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": plane.namespace, "labels": { "app.kubernetes.io/managed-by": "karmaform" } },
    }));
    let connection = host.connection.clone().into();
    child(
        part("namespace"),
        "kubernetes_object",
        [("cluster", connection), ("manifest", manifest), ("shared", true.into()), ("timeout", NAMESPACE_TIMEOUT.into())],
    )
}

/// An object on the host cluster, in the namespace.
fn on_host(host: &Host, path: Vec<ChildStep>, manifest: Arg, wait: Option<Arg>) -> Child {
    let timeout = if wait.is_some() { ROLLOUT_TIMEOUT } else { TIMEOUT };
    let connection = host.connection.clone().into();
    let mut made = child(
        path,
        "kubernetes_object",
        [
            ("cluster", connection),
            ("manifest", manifest),
            ("reclaim", true.into()),
            ("exclusive", true.into()),
            ("timeout", timeout.into()),
        ],
    );
    if let Some(wait) = wait {
        made.arguments.insert("wait".to_owned(), wait);
    }
    if host.create_namespace {
        made.after.push(part("namespace"));
    }
    made
}

fn of_component(
    plane: &Arguments,
    host: &Host,
    (component, settings): (Component, &Settings),
    objects: &[ApiObject],
    children: &mut Vec<Child>,
) {
    let name = plane.object_name(component);
    let files = secrets::files(plane, component);
    let own_labels = || Arg::Object(labels(plane, component.name()));
    let manifest = secrets::manifest(name.clone(), &plane.namespace, own_labels(), files);
    children.push(on_host(host, secret(component), manifest, None));
    let mut after = vec![secret(component)];
    if let Some(port) = target_port(component) {
        let is_balanced = matches!(component, Component::ApiServer) && plane.exposure.is_balanced();
        let address = is_balanced.then(|| Arg::object([("address", true.into())]));
        children.push(on_host(host, service(component), service_manifest(plane, component, port), address));
        after.push(service(component));
    }
    after.extend(needs(plane, component, objects));
    if secrets::uses_etcd(component) {
        after.push(store::prefix_path());
    }
    let rollout = Arg::object([("rollout", true.into())]);
    let manifest = deployment::manifest(plane, component, settings);
    let mut made = on_host(host, deployment_of(component), manifest, Some(rollout));
    made.after.extend(after);
    if secrets::uses_etcd(component) && plane.etcd.on_destroy == "delete" {
        // Its pods must have ended when the data goes: one that is still ending writes some of it again.
        made.arguments.insert("propagation".to_owned(), "foreground".into());
    }
    if matches!(component, Component::ApiServer) && !plane.extras.files.is_empty() {
        made.after.push(part_of("secret", "apiserver-config"));
    }
    children.push(made);
    if let Some((field, value)) = settings.budget() {
        let mut budget = Arg::from_json(&json!({
            "apiVersion": host.budget_version(),
            "kind": "PodDisruptionBudget",
            "metadata": { "name": name, "namespace": plane.namespace },
        }));
        budget.set(&["metadata", "labels"], own_labels());
        budget.set(&["spec", "selector", "matchLabels"], Arg::Object(selector(plane, component.name())));
        budget.set(&["spec", field], value.into());
        children.push(on_host(host, part_of("disruption_budget", component.name()), budget, None));
    }
}

/// What hands connections on to the API server by its name.
fn ways_in(plane: &Arguments, host: &Host) -> Vec<Child> {
    let ingress = plane.exposure.ingress.as_ref().map(|i| on_host(host, part("ingress"), i.manifest(plane), None));
    let route = plane.exposure.route.as_ref().map(|r| {
        let mut made = on_host(host, part("tls_route"), r.manifest(plane), None);
        made.arguments.insert("expect_kind".to_owned(), true.into());
        made
    });
    let mut ways: Vec<Child> = ingress.into_iter().chain(route).collect();
    for way in &mut ways {
        way.after.push(service(Component::ApiServer));
    }
    ways
}

fn service_manifest(plane: &Arguments, component: Component, target: i64) -> Arg {
    let is_api = matches!(component, Component::ApiServer);
    let port = if is_api { target } else { 443 };
    let mut manifest = Arg::from_json(&json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": plane.object_name(component), "namespace": plane.namespace },
        "spec": {
            "type": "ClusterIP",
            "ports": [{ "name": "https", "port": port, "targetPort": target, "protocol": "TCP" }],
        },
    }));
    manifest.set(&["metadata", "labels"], Arg::Object(labels(plane, component.name())));
    manifest.set(&["spec", "selector"], Arg::Object(selector(plane, component.name())));
    if is_api {
        let exposure = &plane.exposure;
        manifest.set(&["spec", "type"], exposure.kind.as_str().into());
        if let Some(port) = exposure.node_port {
            manifest.set(&["spec", "ports", "0", "nodePort"], port.into());
        }
        if !exposure.load_balancer_class.is_null() {
            manifest.set(&["spec", "loadBalancerClass"], exposure.load_balancer_class.clone().into());
        }
        if !exposure.annotations.is_null() {
            manifest.set(&["metadata", "annotations"], exposure.annotations.clone().into());
        }
    }
    manifest
}
