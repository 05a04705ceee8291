//! How the API server is reached: its Service, the names in its certificate, and the address in kubeconfigs.

use karmaform_model::{Arg, Diagnostic, Value};

use super::places::{API_PORT, service};
use super::routes::{Ingress, Route};
use crate::check::is_host;
use crate::read::Reader;
use crate::versions::Component;

/// Ports that Kubernetes gives to Services on nodes unless a cluster says otherwise.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;
/// Every port.
pub(crate) const PORTS: std::ops::RangeInclusive<i64> = 1..=65_535;

/// The blocks `service`, `ingress` and `tls_route`.
#[derive(Clone, Debug)]
pub(crate) struct Exposure {
    pub(crate) kind: String,
    pub(crate) node_port: Option<i64>,
    pub(crate) annotations: Value,
    pub(crate) load_balancer_class: Value,
    names: Vec<String>,
    external_port: Option<i64>,
    pub(crate) ingress: Option<Ingress>,
    pub(crate) route: Option<Route>,
}

impl Exposure {
    /// Reads the blocks out of the arguments.
    pub(crate) fn read(arguments: &mut Reader<'_, '_>) -> Self {
        let ingress = Ingress::read(&mut arguments.block("ingress"));
        let route = Route::read(&mut arguments.block("tls_route"));
        let reader = &mut arguments.block("service");
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
        let external_port = reader.number("external_port", PORTS);
        if external_port.is_some() && names.is_empty() && kind != "LoadBalancer" {
            let called = reader.called("external_port");
            let detail =
                format!("{called} is set, but there are no `service.names` that people reach it by, and the Service has no address.");
            let error = Diagnostic::error("A port without a name", detail);
            reader.found.push(error.with_hint("Write into `service.names` what the load balancer is called, or leave the port out."));
        }
        Self { kind, node_port, annotations: reader.given("annotations"), load_balancer_class, names, external_port, ingress, route }
    }

    /// True if the Service gets an address of its own outside.
    pub(crate) fn is_balanced(&self) -> bool {
        self.kind == "LoadBalancer"
    }

    /// The names that were written, of every way in.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        let routed = self.route.iter().flat_map(|r| &r.hosts);
        self.names.iter().chain(self.ingress.iter().map(|i| &i.host)).chain(routed)
    }

    /// Names and addresses that the cluster gives later.
    pub(crate) fn later_names(&self) -> Option<Arg> {
        self.is_balanced().then(|| Arg::child(&service(Component::ApiServer), "addresses"))
    }

    /// Where people reach the API: by the first name that was written, else by the address of the load balancer. Where there is neither, only
    /// the host cluster can.
    pub(crate) fn endpoint(&self, inside: &str) -> Arg {
        let server = service(Component::ApiServer);
        let (host, port): (Arg, Arg) = if let Some(name) = self.names.first() {
            let port = match (self.external_port, self.kind.as_str()) {
                (Some(port), _) => port.into(),
                (None, "NodePort") => self.node_port.map_or_else(|| Arg::item(&server, "node_ports", 0), Arg::from),
                (None, _) => API_PORT.into(),
            };
            (name.as_str().into(), port)
        } else if let Some(ingress) = &self.ingress {
            (ingress.host.as_str().into(), ingress.port.into())
        } else if let Some((route, host)) = self.route.as_ref().and_then(|r| Some((r, r.hosts.first()?))) {
            (host.as_str().into(), route.port.into())
        } else if self.is_balanced() {
            (Arg::item(&server, "addresses", 0), self.external_port.unwrap_or(API_PORT).into())
        } else {
            return inside.into();
        };
        Arg::Text(vec!["https://".into(), Arg::UrlHost(Box::new(host)), ":".into(), port])
    }
}
