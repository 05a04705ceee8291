//! The port plan: everything on a host has ports of its own, above 1023, so that nobody needs rights for them.
//!
//! Karmada's defaults collide on one host: 8080 and 443 are several components' (`cmd/*/app/options` in karmada). What only the host itself
//! asks (health, metrics) listens on its loopback alone.

use std::collections::BTreeMap;

use crate::plane::exposure::PORTS;
use crate::read::Reader;
use crate::versions::Component;

/// What there is, and where unless something else is written. The first five are reached from other hosts; these are the ports of Karmada's
/// own documentation, where it has some (`installation/install-binary.md`).
const PLAN: [(&str, i64); 15] = [
    ("apiserver", 5443),
    ("aggregated-apiserver", 7443),
    ("webhook", 8443),
    ("search", 9443),
    ("metrics-adapter", 9444),
    ("kube-controller-manager", 10_257),
    ("scheduler-health", 10_351),
    ("controller-manager-health", 10_357),
    ("descheduler-health", 10_358),
    ("webhook-health", 10_359),
    ("controller-manager-metrics", 10_380),
    ("scheduler-metrics", 10_381),
    ("descheduler-metrics", 10_382),
    ("webhook-metrics", 10_383),
    ("metrics-adapter-metrics", 10_384),
];

/// The ports by what they are for.
#[derive(Clone, Debug)]
pub(crate) struct Ports(BTreeMap<&'static str, i64>);

impl Ports {
    /// Reads those that are written over the plan.
    pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Self {
        let mut ports = BTreeMap::from(PLAN);
        let written = reader.value("ports");
        if written.is_some_and(|v| !v.is_wholly_known()) {
            reader.later::<()>("ports");
        }
        for (name, value) in written.and_then(karmaform_model::Value::as_entries).into_iter().flatten() {
            let dashed = name.replace('_', "-");
            let Some((known, _)) = PLAN.iter().find(|(n, _)| *n == dashed) else {
                let names: Vec<_> = PLAN.iter().map(|(n, _)| *n).collect();
                reader.wrong::<()>("ports", &format!("has an entry \"{name}\", but there are {}", names.join(", ")));
                continue;
            };
            match value.as_i64().filter(|p| PORTS.contains(p)) {
                Some(port) if port < 1024 => {
                    reader.wrong::<()>("ports", &format!("has {port} for \"{name}\"; no component has the right to listen below 1024"));
                }
                Some(port) => drop(ports.insert(known, port)),
                None if value.is_unknown() || value.is_null() => {}
                None => drop(reader.wrong::<()>("ports", &format!("has no port for \"{name}\": it must be from 1024 to 65535"))),
            }
        }
        let mut seen: BTreeMap<i64, &str> = BTreeMap::new();
        for (name, port) in &ports {
            if let Some(other) = seen.insert(*port, name) {
                reader.wrong::<()>("ports", &format!("would have \"{other}\" and \"{name}\" listen on {port} both"));
            }
        }
        Self(ports)
    }

    /// Who listens on a port.
    pub(crate) fn user(&self, port: i64) -> Option<&'static str> {
        self.0.iter().find(|(_, p)| **p == port).map(|(name, _)| *name)
    }

    fn named(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Where a component serves, if it serves anybody; where it is asked for its health otherwise.
    pub(crate) fn of(&self, component: Component) -> i64 {
        match self.0.get(component.name()) {
            Some(port) => *port,
            None => self.health(component),
        }
    }

    /// Where a component is asked for its health without TLS.
    pub(crate) fn health(&self, component: Component) -> i64 {
        self.named(&format!("{}-health", component.name()))
    }

    /// Where a component has its metrics, without TLS.
    pub(crate) fn metrics(&self, component: Component) -> i64 {
        self.named(&format!("{}-metrics", component.name()))
    }

    /// All that a component listens on.
    pub(crate) fn all(&self, component: Component) -> Vec<i64> {
        let name = component.name();
        let ends = ["", "-health", "-metrics"];
        ends.iter().filter_map(|end| self.0.get(format!("{name}{end}").as_str()).copied()).collect()
    }
}
