//! How the API server is reached: its Service, the names in its certificate, and the address in kubeconfigs.

use karmaform_model::{Diagnostic, Value};

use super::check::{is_address, is_host};
use super::places::API_PORT;
use super::read::Reader;

/// Ports that Kubernetes gives to Services on nodes unless a cluster says otherwise.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// The block `service`.
#[derive(Clone, Debug)]
pub(crate) struct Exposure {
    pub(crate) kind: String,
    pub(crate) node_port: Option<i64>,
    pub(crate) annotations: Value,
    pub(crate) load_balancer_class: Value,
    pub(crate) names: Vec<String>,
}

impl Exposure {
    /// Reads it.
    pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Self {
        let kind = reader.word("type", &["ClusterIP", "NodePort", "LoadBalancer"], "ClusterIP");
        let node_port = reader.number("node_port", NODE_PORTS);
        if node_port.is_some() && kind == "ClusterIP" {
            reader.wrong::<()>("node_port", "is set, but a Service of the type ClusterIP has none");
        }
        let load_balancer_class = reader.given("load_balancer_class");
        if !load_balancer_class.is_null() && kind != "LoadBalancer" {
            reader.wrong::<()>("load_balancer_class", "is set, but the Service is not of the type LoadBalancer");
        }
        let names = reader.texts("names");
        for name in names.iter().filter(|n| !is_host(n)) {
            reader.wrong::<()>("names", &format!("has \"{name}\", which is no DNS name and no IP address"));
        }
        if names.first().is_some_and(|n| n.starts_with('*')) {
            reader.wrong::<()>("names", "starts with a wildcard, but its first entry is what kubeconfigs say");
        }
        if kind == "NodePort" && node_port.is_none() && !names.is_empty() {
            let called = reader.called("node_port");
            let detail = format!("Kubeconfigs would say \"{}\", but {called} is not set, so nobody knows the port.", names[0]);
            reader.found.push(Diagnostic::error("A node port that nobody knows", detail).with_hint("Set it, from 30000 to 32767."));
        }
        Self { kind, node_port, annotations: reader.given("annotations"), load_balancer_class, names }
    }

    /// Where people reach the API: the first of the names. Where none is given, only the host cluster can.
    pub(crate) fn endpoint(&self, inside: &str) -> String {
        let Some(name) = self.names.first() else { return inside.to_owned() };
        let port = if self.kind == "NodePort" { self.node_port.unwrap_or(API_PORT) } else { API_PORT };
        if is_address(name) && name.contains(':') { format!("https://[{name}]:{port}") } else { format!("https://{name}:{port}") }
    }
}
