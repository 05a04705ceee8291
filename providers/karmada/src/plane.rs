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

use karmaform_model::{Address, Choreography, Composite, Diagnostics, Expansion, Object, Scene, Schema};

use arguments::Arguments;

pub(crate) use children::child;
pub(crate) use extras::sum;
pub(crate) use host::minor;
pub(crate) use places::{ESTIMATOR_PORT, ESTIMATOR_PREFIX, part, part_of, short_sum};
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
