//! Ways in by a name that several services share: an Ingress, and a TLSRoute of the Gateway API. Both look at the name that a client asks for
//! (SNI) and hand the connection on as it is, so that the API server sees client certificates; nothing on the way may end TLS.

use karmaform_model::{Arg, Type, Value};
use serde_json::json;

use super::arguments::Arguments;
use super::deployment::labels;
use super::exposure::PORTS;
use super::places::API_PORT;
use crate::check::{is_address, is_domain, is_label};
use crate::read::Reader;
use crate::versions::Component;

/// The port of HTTPS, where gateways listen unless it is said otherwise.
const HTTPS: i64 = 443;
/// What makes ingress-nginx hand connections on, if its controller was started with `--enable-ssl-passthrough`. Source: its "Annotations",
/// `kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/annotations/#ssl-passthrough`.
const PASSTHROUGH: (&str, &str) = ("nginx.ingress.kubernetes.io/ssl-passthrough", "true");
/// The group of the Gateway API.
const GATEWAY: &str = "gateway.networking.k8s.io";
/// Its versions with a TLSRoute: `v1` alone in the standard channel from its release 1.5, the others in the experimental one. Source: its pull
/// request 4439, "TLSRoute: Promote to standard".
pub(crate) const VERSIONS: [&str; 3] = ["v1", "v1alpha3", "v1alpha2"];

/// The block `ingress`.
#[derive(Clone, Debug)]
pub(crate) struct Ingress {
    pub(crate) host: String,
    pub(crate) port: i64,
    class_name: Value,
    annotations: Value,
}

impl Ingress {
    /// Reads it; none if it is not written.
    pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        if !reader.is_there() {
            return None;
        }
        let port = reader.number("port", PORTS).unwrap_or(HTTPS);
        let (class_name, annotations) = (reader.given("class_name"), reader.given("annotations"));
        let Some(host) = reader.text("host") else {
            return if reader.value("host").is_none() { reader.wrong("host", "is missing: clients are told apart by it") } else { None };
        };
        if is_address(&host) || !is_domain(&host) {
            let why = "is no DNS name. TLS is handed on by the name that a client asks for, which is never an address or a wildcard";
            return reader.wrong("host", why);
        }
        Some(Self { host, port, class_name, annotations })
    }

    /// The Ingress. With `tls` but no Secret in it: TLS is routed by SNI, and ended by nobody.
    pub(crate) fn manifest(&self, plane: &Arguments) -> Arg {
        let name = plane.object_name(Component::ApiServer);
        let backend = json!({ "service": { "name": name, "port": { "number": API_PORT } } });
        let mut manifest = Arg::from_json(&json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": { "name": name, "namespace": plane.namespace },
            "spec": {
                "rules": [{ "host": self.host, "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] } }],
                "tls": [{ "hosts": [self.host] }],
            },
        }));
        manifest.set(&["metadata", "labels"], Arg::Object(labels(plane, Component::ApiServer.name())));
        let annotations = if self.annotations.is_null() {
            Value::map(Type::String, [(PASSTHROUGH.0.to_owned(), PASSTHROUGH.1.into())].into())
        } else {
            self.annotations.clone()
        };
        manifest.set(&["metadata", "annotations"], annotations.into());
        if !self.class_name.is_null() {
            manifest.set(&["spec", "ingressClassName"], self.class_name.clone().into());
        }
        manifest
    }
}

/// The block `tls_route`.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) hosts: Vec<String>,
    pub(crate) port: i64,
    version: String,
    gateway: Gateway,
}

/// The gateway that a route is attached to.
#[derive(Clone, Debug)]
struct Gateway {
    name: String,
    namespace: Option<String>,
    listener: Option<String>,
}

impl Route {
    /// Reads it; none if it is not written.
    pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        if !reader.is_there() {
            return None;
        }
        let port = reader.number("port", PORTS).unwrap_or(HTTPS);
        let version = reader.word("api_version", &VERSIONS, VERSIONS[0]);
        let hosts = reader.texts("hosts");
        let is_later = reader.value("hosts").is_some_and(|v| !v.is_wholly_known());
        if hosts.is_empty() && !is_later {
            reader.wrong::<()>("hosts", "is missing or empty: a TLSRoute chooses connections by the name that is asked for");
        }
        for host in hosts.iter().filter(|h| is_address(h) || !is_domain(h.strip_prefix("*.").unwrap_or(h))) {
            reader.wrong::<()>("hosts", &format!("has \"{host}\", which is no DNS name"));
        }
        if hosts.first().is_some_and(|h| h.starts_with("*.")) {
            reader.wrong::<()>("hosts", "starts with a wildcard, but its first entry is what kubeconfigs say");
        }
        let gateway = Gateway::read(&mut reader.block("gateway"))?;
        Some(Self { hosts, port, version, gateway })
    }

    /// The TLSRoute.
    pub(crate) fn manifest(&self, plane: &Arguments) -> Arg {
        let name = plane.object_name(Component::ApiServer);
        let mut parent = json!({ "group": GATEWAY, "kind": "Gateway", "name": self.gateway.name });
        for (field, value) in [("namespace", &self.gateway.namespace), ("sectionName", &self.gateway.listener)] {
            if let Some(value) = value {
                parent[field] = value.as_str().into();
            }
        }
        let mut manifest = Arg::from_json(&json!({
            "apiVersion": format!("{GATEWAY}/{}", self.version),
            "kind": "TLSRoute",
            "metadata": { "name": name, "namespace": plane.namespace },
            "spec": {
                "parentRefs": [parent],
                "hostnames": self.hosts,
                "rules": [{ "backendRefs": [{ "name": name, "port": API_PORT }] }],
            },
        }));
        manifest.set(&["metadata", "labels"], Arg::Object(labels(plane, Component::ApiServer.name())));
        manifest
    }
}

impl Gateway {
    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        let (namespace, listener) = (reader.text("namespace"), reader.text("section_name"));
        let Some(name) = reader.text("name") else {
            return if reader.value("name").is_none() {
                reader.wrong("name", "is missing: a route is attached to a gateway")
            } else {
                None
            };
        };
        for (argument, text) in [("name", Some(&name)), ("namespace", namespace.as_ref()), ("section_name", listener.as_ref())] {
            if text.is_some_and(|t| if argument == "namespace" { !is_label(t) } else { !is_domain(t) }) {
                reader.wrong::<()>(argument, "is not the name of such a thing: letters, digits, \"-\" and \".\"");
            }
        }
        Some(Self { name, namespace, listener })
    }
}
