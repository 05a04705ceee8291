//! The composite `karmada_member`.

mod agent;
mod arguments;
mod children;
mod choreography;
mod estimator;
mod estimator_host;
mod estimator_pods;
mod names;
mod pods;
mod preflight;
mod pull;
mod push;
mod schema;
mod skew;

use karmaform_model::{Address, Choreography, Composite, Diagnostics, Expansion, Object, Scene, Schema, Upkeep, Value};

use arguments::Arguments;

/// The composite `karmada_member`: a cluster as a member of a control plane. Pure: it names parts and orders, and touches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct KarmadaMember;

/// The cluster that a control plane runs in, if its connection says that it runs in one.
fn host_cluster(plane: &Value) -> Option<&Value> {
    plane.get("via").filter(|v| !v.is_null() && v.get("any_of").is_none())
}

/// Why there is no such cluster, as the end of a sentence: where what runs there is not known.
fn why_no_cluster(plane: &Value) -> &'static str {
    let is_on_hosts = plane.get("via").is_some_and(|v| v.get("any_of").is_some());
    if is_on_hosts { "the control plane is on hosts and in no cluster" } else { "karmaform did not make the control plane" }
}

impl Composite for KarmadaMember {
    fn name(&self) -> &'static str {
        "karmada_member"
    }

    fn schema(&self) -> &Schema {
        &schema::SCHEMA
    }

    fn upkeep(&self, object: &Object, fellows: &[&Object]) -> Vec<Upkeep> {
        skew::skewed(object, fellows)
    }

    fn expand(&self, address: &Address, arguments: &Object) -> Result<Expansion, Diagnostics> {
        Ok(children::expand(&Arguments::read(address, arguments)?))
    }

    fn choreograph(&self, scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        choreography::choreograph(scene)
    }
}
