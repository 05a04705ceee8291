//! The composite `karmada_control_plane`.

mod arguments;
mod children;
mod choreography;
mod deployment;
mod encryption;
mod exposure;
mod extras;
mod flags;
mod host;
mod hosts;
mod impact;
mod kubernetes;
mod members;
mod merge;
mod moving;
mod pki;
mod places;
mod pods;
mod refusals;
mod routes;
mod schema;
mod secrets;
mod settings;
mod store;
mod target;

use std::collections::BTreeMap;

use karmaform_model::{
    Address, Caveat, ChildStep, Choreography, Composite, Diagnostic, Diagnostics, Expansion, Object, Scene, Schema, Upkeep, Value,
};

use crate::versions::{self, Version};
use arguments::Arguments;

pub(crate) use children::child;
pub(crate) use extras::sum;
pub(crate) use host::minor;
pub(crate) use places::{ESTIMATOR_PORT, ESTIMATOR_PREFIX, module_prefix, part, part_of, short_sum};
pub(crate) use schema::{KARMADA_REGISTRY, NAMESPACE as HOST_NAMESPACE};

/// The composite `karmada_control_plane`: a whole control plane in a cluster. Pure: it names parts and orders, and touches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct KarmadaControlPlane;

impl Composite for KarmadaControlPlane {
    fn name(&self) -> &'static str {
        "karmada_control_plane"
    }

    fn schema(&self) -> &Schema {
        &schema::SCHEMA
    }

    fn upkeep(&self, object: &Object, _: &[&Object]) -> Vec<Upkeep> {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let karmada = text("version").and_then(|v| Version::parse(v).ok()).filter(versions::is_over);
        let karmada =
            karmada.map(|v| Upkeep { attribute: "version", what: format!("Karmada 1.{}", v.minor), caveat: Caveat::Patches(None) });
        let minor = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
        let kube = text("kube_version").and_then(|v| Some((v, versions::kube_end(v)?)));
        let kube = kube.map(|(v, end)| Upkeep {
            attribute: "kube_version",
            what: format!("Kubernetes {}", minor(v)),
            caveat: Caveat::Patches(end),
        });
        karmada.into_iter().chain(kube).collect()
    }

    fn care(&self, seen: &BTreeMap<&[ChildStep], &Object>) -> Vec<(Vec<ChildStep>, Diagnostic)> {
        hosts::care(seen)
    }

    fn expand(&self, address: &Address, arguments: &Object) -> Result<Expansion, Diagnostics> {
        Ok(children::expand(&Arguments::read(address, arguments)?))
    }

    fn choreograph(&self, scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        choreography::choreograph(scene)
    }

    fn recover(&self, scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        choreography::recover(scene)
    }
}
