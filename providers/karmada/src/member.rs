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

use karmaform_model::{Address, Choreography, Composite, Diagnostics, Expansion, Object, Scene, Schema};

use arguments::Arguments;

/// The composite `karmada_member`: a cluster as a member of a control plane. Pure: it names parts and orders, and touches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct KarmadaMember;

impl Composite for KarmadaMember {
    fn name(&self) -> &'static str {
        "karmada_member"
    }

    fn schema(&self) -> &Schema {
        &schema::SCHEMA
    }

    fn expand(&self, address: &Address, arguments: &Object) -> Result<Expansion, Diagnostics> {
        Ok(children::expand(&Arguments::read(address, arguments)?))
    }

    fn choreograph(&self, scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        choreography::choreograph(scene)
    }
}
