//! What a control plane expands into: certificates, what runs on the host cluster, and what is inside the Karmada API.
//!
//! Order that every plan needs is said here: the API server, then namespaces and rights inside it, then what extends it, then CRDs and
//! everyone who watches them. What depends on a plan's changes is in `choreography`.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, ChildStep, Expansion, Value};

use serde_json::json;

use super::arguments::Arguments;
use super::places::{api, part};
use super::target::Target;
use super::{hosts, kubernetes, pki, secrets, store};
use crate::api::{self, ApiObject, Place, Stage};
use crate::versions::Component;

/// How long an object inside the Karmada API may take, in seconds. An APIService waits for pods to be found.
const API_TIMEOUT: i64 = 180;
/// How long all CRDs may take, in seconds.
const CRDS_TIMEOUT: i64 = 180;

/// The kinds that the webhook converts between versions. Source: `charts/karmada/_crds/patches` in karmada.
const CONVERTED: [&str; 2] = ["clusterresourcebindings.work.karmada.io", "resourcebindings.work.karmada.io"];

/// A child of this type with these arguments.
pub(crate) fn child<const N: usize>(path: Vec<ChildStep>, resource_type: &str, arguments: [(&str, Arg); N]) -> Child {
    let arguments = arguments.into_iter().map(|(n, a)| (n.to_owned(), a)).collect();
    Child { path, resource_type: resource_type.to_owned(), arguments, after: Vec::new(), apart: &[] }
}

/// The children and outputs.
pub(crate) fn expand(plane: &Arguments) -> Expansion {
    let mut children = Vec::new();
    children.extend(pki::children(plane));
    children.push(store::prefix(plane));
    let objects = objects(plane);
    match &plane.target {
        Target::Kubernetes(host) => kubernetes::expand(plane, host, &objects, &mut children),
        Target::Hosts(hosts) => hosts::expand(plane, hosts, &objects, &mut children),
    }
    if let Some(source) = &plane.crds {
        children.push(crds(plane, source));
    }
    for object in &objects {
        children.push(inside(plane, object, &objects));
    }
    children.push(store::members(plane));
    if matches!(plane.target, Target::Hosts(_)) {
        children.iter_mut().filter(|c| hosts::is_apart(c)).for_each(|c| c.apart = &["etcd"]);
    }
    Expansion { children, outputs: outputs(plane) }
}

/// Where the API server finds what extends it: a name and a port.
fn reached(plane: &Arguments, component: Component) -> (String, i64) {
    // A Service of the host cluster is called by its short name where it is in a URL.
    let is_short = matches!(component, Component::Webhook) && plane.target.hosts().is_none_or(|h| h.dns_name.is_none());
    let host = if is_short { plane.service_name(component) } else { plane.service_host(component) };
    (host, plane.service_port(component))
}

fn objects(plane: &Arguments) -> Vec<ApiObject> {
    let addons = plane.addons();
    api::objects(&Place {
        reached: &|component| reached(plane, component),
        version: &plane.version,
        ca: pki::ca_certificate(plane),
        server: plane.endpoint(),
        addons: &addons,
    })
}

/// What must be inside the Karmada API, and who must run, before a component starts.
pub(crate) fn needs(plane: &Arguments, component: Component, objects: &[ApiObject]) -> Vec<Vec<ChildStep>> {
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

fn crds(plane: &Arguments, source: &Value) -> Child {
    let webhook = plane.object_name(Component::Webhook);
    let substitutions = Arg::object([
        ("name", webhook.into()),
        ("namespace", plane.namespace.as_str().into()),
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
    if plane.target.hosts().is_some() {
        // The patches of the archive know no other port than a Service's.
        let (host, port) = reached(plane, Component::Webhook);
        let overrides = CONVERTED.map(|name| {
            let url = format!("https://{host}:{port}/convert");
            Arg::from_json(&json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": { "name": name },
                "spec": { "conversion": { "webhook": { "clientConfig": { "url": url } } } },
            }))
        });
        made.arguments.insert("overrides".to_owned(), Arg::List(overrides.into()));
    }
    made.after = plane.runners(Component::ApiServer);
    made
}

/// An object inside the Karmada API.
fn inside(plane: &Arguments, object: &ApiObject, all: &[ApiObject]) -> Child {
    let mut made = child(
        api(&object.key),
        "kubernetes_object",
        [
            ("cluster", pki::connection(plane)),
            ("manifest", object.manifest.clone()),
            ("reclaim", true.into()),
            ("exclusive", true.into()),
            ("timeout", API_TIMEOUT.into()),
        ],
    );
    if let Some(said) = &object.wait {
        made.arguments.insert("wait".to_owned(), said.clone());
    }
    made.after = plane.runners(Component::ApiServer);
    made.after.extend(object.after.iter().map(|key| api(key)));
    match object.stage {
        Stage::First => {}
        Stage::Rest => made.after.extend(all.iter().filter(|o| matches!(o.stage, Stage::First)).map(|o| api(&o.key))),
        // It is served by others, and waits until they are found.
        Stage::Aggregation => made.after.extend(plane.runners(behind(&object.key))),
        // After the webhook: an older one does not know the paths of a newer configuration, and every write would be refused.
        Stage::Webhooks => {
            made.after.extend(plane.runners(Component::Webhook));
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
        ("namespace".to_owned(), plane.namespace.as_str().into()),
        ("name".to_owned(), plane.name.as_str().into()),
        ("kube_version".to_owned(), plane.kube_version.as_str().into()),
    ])
}
