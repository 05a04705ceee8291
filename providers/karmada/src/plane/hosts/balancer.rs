//! What is in front of the API servers on hosts: somebody else's load balancer, or one of ours.
//!
//! Ours is haproxy on each host that has an API server, and a virtual IP that keepalived holds on one of them, by VRRP. haproxy listens on all
//! addresses, so that it runs also where the virtual one is not, and hands connections on to API servers that say that they are ready.

mod children;
mod held;
mod roll;
mod texts;
mod unused;

use karmaform_model::{ChildStep, Value};

use super::{Host, Hosts, Ports, family, homes, on_of, programs, unit_at};
use crate::check::{is_address, is_host};
use crate::plane::arguments::Arguments;
use crate::plane::exposure::PORTS;
use crate::plane::places::short_sum;
use crate::read::Reader;
use crate::versions::Component;

pub(super) use children::expand;
pub(crate) use held::{care, taken};
pub(crate) use roll::impact;
pub(super) use roll::roll;

/// Where ours listens, unless something else is written: the usual port of a Kubernetes API.
const PORT: i64 = 6443;
/// Ports below are for those with the right to them, which haproxy does not have.
const LOWEST_PORT: i64 = 1024;
/// What there can be of a virtual router on a network. Source: RFC 5798, 5.2.3.
const ROUTERS: std::ops::RangeInclusive<i64> = 1..=255;
/// What says something of ours alone.
const OF_OURS: [&str; 6] =
    ["interface", "router_id", "haproxy_source", "haproxy_source_sha256", "keepalived_source", "keepalived_source_sha256"];

/// The two programs of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Haproxy,
    Keepalived,
}

impl Program {
    /// Both, in the order in which they start.
    pub(crate) const ALL: [Self; 2] = [Self::Haproxy, Self::Keepalived];

    /// Its name, and its package's.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Haproxy => "haproxy",
            Self::Keepalived => "keepalived",
        }
    }

    /// The file that it reads.
    pub(crate) fn configuration(self) -> &'static str {
        match self {
            Self::Haproxy => "haproxy.cfg",
            Self::Keepalived => "keepalived.conf",
        }
    }
}

/// What is in front.
#[derive(Clone, Debug)]
pub(crate) struct Balancer {
    /// The address that people use: a name, or an IP address.
    pub(crate) address: Value,
    pub(crate) port: i64,
    /// What it is made of, if it is ours.
    pub(crate) ours: Option<Ours>,
}

/// What is written of ours.
#[derive(Clone, Debug)]
pub(crate) struct Ours {
    /// The network interface on all hosts; where each has its own address, unless written.
    interface: Option<String>,
    router: i64,
    /// Where the programs come from, each with its sum: from the host's packages, unless written.
    sources: [(Value, Value); 2],
}

impl Balancer {
    /// Reads the block, if it is there.
    pub(super) fn read(reader: &mut Reader<'_, '_>, ports: &Ports) -> Option<Self> {
        let mut block = reader.block("load_balancer");
        if !block.is_there() {
            return None;
        }
        let is_ours = block.value("vip").is_some();
        if is_ours == block.value("address").is_some() {
            let what = if is_ours {
                "and `load_balancer.vip` are both there: the one is a load balancer of yours, the other one of karmaform's"
            } else {
                "or `load_balancer.vip` must be written: the address of a load balancer of yours, or a free one for karmaform's"
            };
            block.wrong::<()>("address", what);
        }
        let port = block.number("port", PORTS);
        if !is_ours {
            for name in OF_OURS.into_iter().filter(|n| block.value(n).is_some()).collect::<Vec<_>>() {
                block.wrong::<()>(name, "is for a load balancer of karmaform's, which has a `vip`");
            }
            let address = block.given("address");
            if address.as_str().is_some_and(|a| !is_host(a) || a.starts_with('*')) {
                block.wrong::<()>("address", "is no DNS name and no IP address");
            }
            return Some(Self { address, port: port.unwrap_or_else(|| ports.of(Component::ApiServer)), ours: None });
        }
        let vip = block.text("vip").unwrap_or_default();
        if !vip.is_empty() && !is_address(&vip) {
            block.wrong::<()>("vip", "is no IP address");
        }
        let port = port.unwrap_or(PORT);
        if port < LOWEST_PORT {
            block.wrong::<()>("port", "is below 1024, where haproxy has no right to listen");
        }
        if let Some(other) = ports.user(port) {
            let what = format!("is {port}, which is the port of \"{other}\" on the same hosts");
            block.wrong::<()>("port", &what);
        }
        let interface = block.text("interface");
        let is_interface =
            |n: &String| !n.is_empty() && n.len() <= 15 && n.bytes().all(|b| b.is_ascii_graphic() && !b"/{}\"'#!".contains(&b));
        if interface.as_ref().is_some_and(|n| !is_interface(n)) {
            block.wrong::<()>("interface", "is no name of a network interface");
        }
        // Of one address in another spelling the number is the same.
        let address = family::canonical(&vip.into());
        let router = block.number("router_id", ROUTERS).unwrap_or_else(|| router(address.as_str().unwrap_or_default()));
        let sources = Program::ALL.map(|p| programs::source(&mut block, p.name()));
        Some(Self { address, port, ours: Some(Ours { interface, router, sources }) })
    }
}

impl Ours {
    /// The interface of a host that the virtual IP is put on.
    fn interface(&self, host: &Host) -> Value {
        self.interface.as_deref().map_or_else(|| host.interface.clone(), Value::from)
    }

    fn source(&self, program: Program) -> &(Value, Value) {
        &self.sources[program as usize]
    }
}

/// A number that another address hardly has.
fn router(vip: &str) -> i64 {
    let first = short_sum(vip).get(..4).and_then(|text| i64::from_str_radix(text, 16).ok()).unwrap_or_default();
    first % ROUTERS.end() + 1
}

/// What of the hosts does not go with a virtual IP.
pub(super) fn check(reader: &mut Reader<'_, '_>, hosts: &Hosts) {
    let Some(Balancer { address: vip, ours: Some(ours), .. }) = &hosts.balancer else { return };
    let vip = vip.as_str().unwrap_or_default();
    let is_v6 = vip.contains(':');
    let mut block = reader.block("load_balancer");
    for (name, host) in &hosts.all {
        let address = host.address.as_str();
        if address == Some(vip) {
            block.wrong::<()>("vip", &format!("is {vip}, which is the address of the host \"{name}\" itself"));
        } else if host.is_v6().is_some_and(|v6| v6 != is_v6) {
            block.wrong::<()>("vip", &format!("is {vip}, but the host \"{name}\" has {}", address.unwrap_or_default()));
        } else if ours.interface(host).is_null() {
            block
                .wrong::<()>("interface", &format!("must be written: none of the host \"{name}\" has the address that others reach it by"));
        }
    }
}

/// The hosts that it is on, which are those with an API server.
fn on<'a>(plane: &'a Arguments, hosts: &'a Hosts) -> Vec<(&'a String, &'a Host)> {
    homes(plane, hosts, Component::ApiServer)
}

/// The unit of one of its programs on a host.
fn unit_of(host: &str, program: Program) -> Vec<ChildStep> {
    on_of(host, "unit", program.name())
}

/// The program whose unit is at a path.
pub(crate) fn program_at(path: &[ChildStep]) -> Option<Program> {
    let (_, name) = unit_at(path)?;
    Program::ALL.into_iter().find(|p| p.name() == name)
}

/// What listens on the port of ours: the path of its unit on each host, with the host.
pub(crate) fn listeners<'a>(plane: &'a Arguments, hosts: &'a Hosts) -> Vec<(&'a String, &'a Host, Vec<ChildStep>)> {
    let of = |(name, host): (&'a String, &'a Host)| (name, host, unit_of(name, Program::Haproxy));
    if hosts.balancer.as_ref().is_some_and(|b| b.ours.is_some()) { on(plane, hosts).into_iter().map(of).collect() } else { Vec::new() }
}
