//! The composite `etcd_cluster`.

mod arguments;
mod authorities;
mod children;
mod choreography;
mod clocks;
mod condition;
mod hosts;
mod impact;
pub(crate) mod kubernetes;
mod leg;
mod membership;
mod moving;
mod places;
mod preflight;
mod refusals;
mod render;
mod restore;
mod roster;
mod schema;
mod settings;
mod snapshot;
mod upgrade;
mod volumes;
mod way;

use std::collections::BTreeMap;

use karmaform_model::{
    Address, Caveat, ChildStep, Choreography, Composite, Diagnostic, Diagnostics, Expansion, Leg, Object, Scene, Schema, Upkeep, Value,
};

use crate::versions::{ENDED, Version};
use arguments::Arguments;
pub(crate) use choreography::quorum;
pub(crate) use render::SANDBOX;

pub(crate) use arguments::{cluster_name, is_path};
pub(crate) use children::{child, file};
pub(crate) use hosts::connection;

/// The composite `etcd_cluster`: a whole cluster on hosts or on Kubernetes. Pure: it names parts and orders, and touches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct EtcdCluster;

impl Composite for EtcdCluster {
    fn name(&self) -> &'static str {
        "etcd_cluster"
    }

    fn schema(&self) -> &Schema {
        &schema::SCHEMA
    }

    fn upkeep(&self, object: &Object, _: &[&Object]) -> Vec<Upkeep> {
        let version = object.get("version").and_then(Value::as_str).and_then(|v| Version::parse(v).ok());
        let (ended, end) = ENDED;
        let over = version.filter(|v| v.minor == ended);
        over.map(|v| Upkeep { attribute: "version", what: format!("etcd 3.{}", v.minor), caveat: Caveat::Patches(Some(end)) })
            .into_iter()
            .collect()
    }

    fn expand(&self, address: &Address, arguments: &Object) -> Result<Expansion, Diagnostics> {
        Ok(children::expand(&Arguments::read(address, arguments)?))
    }

    fn first_leg(&self, before: &Object, wanted: &Object) -> Option<Leg> {
        leg::first(before, wanted)
    }

    fn legs(&self, wanted: &Object) -> Vec<Option<Object>> {
        leg::all(wanted)
    }

    fn care(&self, seen: &BTreeMap<&[ChildStep], &Object>) -> Vec<(Vec<ChildStep>, Diagnostic)> {
        membership::run_without_data(seen)
    }

    fn choreograph(&self, scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        choreography::choreograph(scene)
    }
}
