//! What a control plane expands into: certificates, what runs on the host cluster, and what is inside the Karmada API.
//!
//! Order that every plan needs is said here: the API server, then namespaces and rights inside it, then what extends it, then CRDs and
//! everyone who watches them. What depends on a plan's changes is in `choreography`.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, ChildStep, Expansion, Value};
use serde_json::json;

use super::arguments::Arguments;
use super::deployment::{self, labels, selector};
use super::places::{api, component as deployment_of, part, part_of, secret, service, target_port};
use super::settings::Settings;
use super::{pki, secrets, store};
use crate::api::{self, ApiObject, Place, Stage};
use crate::versions::Component;

/// How long a Deployment may take to run as wanted, in seconds, while images are pulled; and a load balancer to have an address.
const ROLLOUT_TIMEOUT: i64 = 600;
/// How long anything else on the host cluster may take, in seconds.
const TIMEOUT: i64 = 60;
/// How long the namespace may take to go, in seconds: until the last pod in it has ended.
const NAMESPACE_TIMEOUT: i64 = 300;
/// How long an object inside the Karmada API may take, in seconds. An APIService waits for pods to be found.
const API_TIMEOUT: i64 = 180;
/// How long all CRDs may take, in seconds.
const CRDS_TIMEOUT: i64 = 180;

/// A child of this type with these arguments.
pub(crate) fn child<const N: usize>(path: Vec<ChildStep>, resource_type: &str, arguments: [(&str, Arg); N]) -> Child {
    let arguments = arguments.into_iter().map(|(n, a)| (n.to_owned(), a)).collect();
    Child { path, resource_type: resource_type.to_owned(), arguments, after: Vec::new() }
}

/// The children and outputs.
pub(crate) fn expand(plane: &Arguments) -> Expansion {
    let mut children = Vec::new();
    if plane.host.create_namespace {
        children.push(namespace(plane));
    }
    children.extend(pki::children(plane));
    children.push(store::prefix(plane));
    let objects = objects(plane);
    for (component, settings) in &plane.components {
        of_component(plane, *component, settings, &objects, &mut children);
    }
    if !plane.extras.files.is_empty() {
        let name = format!("{}-config", plane.object_name(Component::ApiServer));
        let labels = Arg::Object(labels(plane, Component::ApiServer.name()));
        let manifest = secrets::manifest(name, &plane.host.namespace, labels, plane.extras.files.clone());
        children.push(on_host(plane, part_of("secret", "apiserver-config"), manifest, None));
    }
    children.extend(ways_in(plane));
    if let Some(source) = &plane.crds {
        children.push(crds(plane, source));
    }
    for object in &objects {
        children.push(inside(plane, object, &objects));
    }
    children.push(store::members(plane));
    let name = format!("{}-admin-kubeconfig", plane.name);
    let files = BTreeMap::from([("kubeconfig".to_owned(), secrets::admin_kubeconfig(plane))]);
    let manifest = secrets::manifest(name, &plane.host.namespace, Arg::Object(labels(plane, "admin")), files);
    children.push(on_host(plane, part("kubeconfig_secret"), manifest, None));
    if plane.certificates.keeps_authority {
        let labels = Arg::Object(labels(plane, "authority"));
        let manifest = secrets::manifest(format!("{}-authority", plane.name), &plane.host.namespace, labels, secrets::authority(plane));
        children.push(on_host(plane, part("authority_secret"), manifest, None));
    }
    Expansion { children, outputs: outputs(plane) }
}

fn objects(plane: &Arguments) -> Vec<ApiObject> {
    let addons = plane.addons();
    api::objects(&Place {
        instance: &plane.name,
        namespace: &plane.host.namespace,
        domain: &plane.domain,
        version: &plane.version,
        ca: pki::ca_certificate(plane),
        server: plane.endpoint(),
        addons: &addons,
    })
}

/// Made if it is not there. One that is there already stays as it is, and stays when the control plane goes.
fn namespace(plane: &Arguments) -> Child {
    let manifest = Arg::from_json(&json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": plane.host.namespace, "labels": { "app.kubernetes.io/managed-by": "karmaform" } },
    }));
    let connection = plane.host.connection.clone().into();
    child(
        part("namespace"),
        "kubernetes_object",
        [("cluster", connection), ("manifest", manifest), ("shared", true.into()), ("timeout", NAMESPACE_TIMEOUT.into())],
    )
}

/// An object on the host cluster, in the namespace.
fn on_host(plane: &Arguments, path: Vec<ChildStep>, manifest: Arg, wait: Option<Arg>) -> Child {
    let timeout = if wait.is_some() { ROLLOUT_TIMEOUT } else { TIMEOUT };
    let connection = plane.host.connection.clone().into();
    let mut made = child(path, "kubernetes_object", [("cluster", connection), ("manifest", manifest), ("timeout", timeout.into())]);
    if let Some(wait) = wait {
        made.arguments.insert("wait".to_owned(), wait);
    }
    if plane.host.create_namespace {
        made.after.push(part("namespace"));
    }
    made
}

fn of_component(plane: &Arguments, component: Component, settings: &Settings, objects: &[ApiObject], children: &mut Vec<Child>) {
    let name = plane.object_name(component);
    let files = secrets::files(plane, component);
    let own_labels = || Arg::Object(labels(plane, component.name()));
    let manifest = secrets::manifest(name.clone(), &plane.host.namespace, own_labels(), files);
    children.push(on_host(plane, secret(component), manifest, None));
    let mut after = vec![secret(component)];
    if let Some(port) = target_port(component) {
        let is_balanced = matches!(component, Component::ApiServer) && plane.exposure.is_balanced();
        let address = is_balanced.then(|| Arg::object([("address", true.into())]));
        children.push(on_host(plane, service(component), self::service_manifest(plane, component, port), address));
        after.push(service(component));
    }
    after.extend(needs(plane, component, objects));
    if secrets::uses_etcd(component) {
        after.push(store::prefix_path());
    }
    let rollout = Arg::object([("rollout", true.into())]);
    let manifest = deployment::manifest(plane, component, settings);
    let mut made = on_host(plane, deployment_of(component), manifest, Some(rollout));
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
            "apiVersion": plane.host.budget_version(),
            "kind": "PodDisruptionBudget",
            "metadata": { "name": name, "namespace": plane.host.namespace },
        }));
        budget.set(&["metadata", "labels"], own_labels());
        budget.set(&["spec", "selector", "matchLabels"], Arg::Object(selector(plane, component.name())));
        budget.set(&["spec", field], value.into());
        children.push(on_host(plane, part_of("disruption_budget", component.name()), budget, None));
    }
}

/// What hands connections on to the API server by its name.
fn ways_in(plane: &Arguments) -> Vec<Child> {
    let ingress = plane.exposure.ingress.as_ref().map(|i| on_host(plane, part("ingress"), i.manifest(plane), None));
    let route = plane.exposure.route.as_ref().map(|r| {
        let mut made = on_host(plane, part("tls_route"), r.manifest(plane), None);
        made.arguments.insert("expect_kind".to_owned(), true.into());
        made
    });
    let mut ways: Vec<Child> = ingress.into_iter().chain(route).collect();
    for way in &mut ways {
        way.after.push(service(Component::ApiServer));
    }
    ways
}

/// What must be inside the Karmada API, and who must run, before a component starts.
fn needs(plane: &Arguments, component: Component, objects: &[ApiObject]) -> Vec<Vec<ChildStep>> {
    let of = |wanted: fn(&ApiObject) -> bool| objects.iter().filter(move |o| wanted(o)).map(|o| api(&o.key));
    let first = of(|o| matches!(o.stage, Stage::First));
    match component {
        Component::ApiServer => Vec::new(),
        // Rights, and the namespace of its leases.
        Component::AggregatedApiServer | Component::KubeControllerManager => first.collect(),
        // They end if the API of clusters or a CRD is not there, and start over and over.
        _ => {
            let clusters = of(|o| matches!(o.stage, Stage::Aggregation) && matches!(behind(&o.key), Component::AggregatedApiServer));
            let crds = plane.crds.is_some().then(|| part("crds"));
            first.chain(clusters).chain(crds).collect()
        }
    }
}

/// Who answers for an object that extends the API, by its key.
fn behind(key: &str) -> Component {
    if key.contains("search") {
        Component::Search
    } else if key.contains("metrics") {
        Component::MetricsAdapter
    } else {
        Component::AggregatedApiServer
    }
}

fn service_manifest(plane: &Arguments, component: Component, target: i64) -> Arg {
    let is_api = matches!(component, Component::ApiServer);
    let port = if is_api { target } else { 443 };
    let mut manifest = Arg::from_json(&json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": plane.object_name(component), "namespace": plane.host.namespace },
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

fn crds(plane: &Arguments, source: &Value) -> Child {
    let webhook = plane.object_name(Component::Webhook);
    let substitutions = Arg::object([
        ("name", webhook.into()),
        ("namespace", plane.host.namespace.as_str().into()),
        ("caBundle", Arg::Base64(Box::new(pki::ca_certificate(plane)))),
    ]);
    let mut made = child(
        part("crds"),
        "kubernetes_archive",
        [
            ("cluster", pki::connection(plane)),
            ("name", "karmada-crds".into()),
            ("source", source.clone().into()),
            ("sha256", plane.crds_sha256.clone().into()),
            ("include", "crds/bases/".into()),
            ("patches", "crds/patches/".into()),
            ("substitutions", substitutions),
            ("wait_condition", Arg::object([("Established", "True".into())])),
            ("timeout", CRDS_TIMEOUT.into()),
        ],
    );
    made.after = vec![deployment_of(Component::ApiServer)];
    made
}

/// An object inside the Karmada API.
fn inside(plane: &Arguments, object: &ApiObject, all: &[ApiObject]) -> Child {
    let mut made = child(
        api(&object.key),
        "kubernetes_object",
        [("cluster", pki::connection(plane)), ("manifest", object.manifest.clone()), ("timeout", API_TIMEOUT.into())],
    );
    if let Some(said) = &object.wait {
        made.arguments.insert("wait".to_owned(), said.clone());
    }
    made.after = vec![deployment_of(Component::ApiServer)];
    made.after.extend(object.after.iter().map(|key| api(key)));
    match object.stage {
        Stage::First => {}
        Stage::Rest => made.after.extend(all.iter().filter(|o| matches!(o.stage, Stage::First)).map(|o| api(&o.key))),
        // It is served by pods, and waits until they are found.
        Stage::Aggregation => made.after.push(deployment_of(behind(&object.key))),
        // After the pods: an older webhook does not know the paths of a newer configuration, and every write would be refused.
        Stage::Webhooks => {
            made.after.push(deployment_of(Component::Webhook));
            made.after.extend(plane.crds.is_some().then(|| part("crds")));
        }
    }
    made
}

fn outputs(plane: &Arguments) -> BTreeMap<String, Arg> {
    BTreeMap::from([
        ("kubeconfig".to_owned(), secrets::admin_kubeconfig(plane)),
        ("connection".to_owned(), pki::connection(plane)),
        ("ca_certificate".to_owned(), pki::ca_certificate(plane)),
        ("endpoint".to_owned(), plane.endpoint()),
        ("namespace".to_owned(), plane.host.namespace.as_str().into()),
        ("name".to_owned(), plane.name.as_str().into()),
        ("kube_version".to_owned(), plane.kube_version.as_str().into()),
    ])
}
